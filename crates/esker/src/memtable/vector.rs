//! The unordered index: rows in the order of their arrival, sorted once, when the memtable is flushed.
//!
//! For bulk loads. An insert copies the row into the arena (concurrently) and appends 16 bytes under a lock. What is
//! sorted is an array of `(head, row)`: most comparisons stay within it and read no row.
//!
//! Readers need order: [`Vector::rows`] sorts what came since it was last called and merges it with what was sorted
//! before, O(new log new + all), and gives a snapshot, which later inserts don't change. Readers that alternate
//! with inserts make this quadratic; that is what the ordered memtable is for.
//!
//! Invariants:
//! 1. Every row is in `sorted` or in `tail`, never in both.
//! 2. `sorted` is in the order of internal keys; a snapshot handed out never changes.
//! 3. `tail_ordered`: the tail is in order, and behind `sorted`. So ascending inserts are never sorted at all.
//! 4. Once `finished` is set it holds all rows: the memtable was sealed before, and nothing is inserted afterwards.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use super::arena::{Arena, MemtableArenaPool};
use super::heads::Heads;
use super::row::Row;
use super::skiplist::Target;
use crate::key::{KeyOrder, Sequence, ValueKind, pack_trailer};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering::Relaxed};

/// A row and the head of its key.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    head: u64,
    pub(super) row: Row,
}

// SAFETY: rows are immutable once an `Entry` exists, and whoever holds entries also holds the memtable with its arena.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

struct Rows {
    sorted: Arc<Vec<Entry>>,
    tail: Vec<Entry>,
    tail_ordered: bool,
}

/// The index (see the module's head).
pub(super) struct Vector {
    order: KeyOrder,
    heads: Heads,
    rows: Mutex<Rows>,
    finished: OnceLock<Arc<Vec<Entry>>>,
    inserted: AtomicU64,
    index_bytes: AtomicUsize,
    pub(super) arena: Arena,
}

impl Vector {
    pub(super) fn new(
        order: KeyOrder,
        heads: Heads,
        pool: &Arc<MemtableArenaPool>,
        budget_bytes: usize,
    ) -> Self {
        Self {
            order,
            heads,
            rows: Mutex::new(Rows {
                sorted: Arc::default(),
                tail: Vec::new(),
                tail_ordered: true,
            }),
            finished: OnceLock::new(),
            inserted: AtomicU64::new(0),
            index_bytes: AtomicUsize::new(0),
            arena: Arena::new(pool, budget_bytes),
        }
    }

    pub(super) fn insert(&self, sequence: Sequence, kind: ValueKind, key: &[u8], value: &[u8]) {
        let entry = Entry {
            head: self.heads.head(key),
            row: Row::new(&self.arena, 0, key, pack_trailer(sequence, kind), value),
        };
        let mut rows = self.rows.lock();
        if rows.tail_ordered {
            let last = rows.tail.last().or(rows.sorted.last());
            rows.tail_ordered = last.is_none_or(|last| self.compare(last, &entry).is_le());
        }
        rows.tail.push(entry);
        let count = rows.sorted.len() + rows.tail.len();
        self.inserted.store(count as u64, Relaxed);
        let held = (rows.sorted.capacity() + rows.tail.capacity()) * size_of::<Entry>();
        self.index_bytes.store(held, Relaxed);
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.inserted.load(Relaxed)
    }

    #[inline]
    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        a.head.cmp(&b.head).then_with(|| {
            // SAFETY: entries hold rows of this vector's arena, which lives.
            let (a, b) = unsafe { (a.row.internal_key(), b.row.internal_key()) };
            self.order.compare_internal(a, b)
        })
    }

    /// All rows inserted before the call, in order.
    pub(super) fn rows(&self) -> Arc<Vec<Entry>> {
        if let Some(finished) = self.finished.get() {
            return Arc::clone(finished);
        }
        let mut rows = self.rows.lock();
        let rows = &mut *rows;
        if rows.tail.is_empty() {
            return Arc::clone(&rows.sorted);
        }
        if !rows.tail_ordered {
            rows.tail.sort_unstable_by(|a, b| self.compare(a, b));
        }
        if rows.sorted.is_empty() {
            rows.sorted = Arc::new(std::mem::take(&mut rows.tail));
        } else {
            let sorted = Arc::make_mut(&mut rows.sorted);
            sorted.append(&mut rows.tail);
            // Two runs, which the standard library's stable sort finds and merges in O(n).
            if !rows.tail_ordered {
                sorted.sort_by(|a, b| self.compare(a, b));
            }
        }
        rows.tail_ordered = true;
        Arc::clone(&rows.sorted)
    }

    /// Sorts for good; only once no more is inserted.
    pub(super) fn finish(&self) {
        let rows = self.rows();
        self.finished.get_or_init(|| rows);
    }

    #[inline]
    pub(super) fn target<'a>(&self, user_key: &'a [u8], trailer: u64) -> Target<'a> {
        Target {
            head: self.heads.head(user_key),
            user_key,
            trailer,
        }
    }

    /// Index of the first of `rows` that is >= the target (with `past_equal`: > the target). O(log n).
    pub(super) fn search(&self, rows: &[Entry], target: &Target<'_>, past_equal: bool) -> usize {
        rows.partition_point(|entry| {
            let ordering = entry.head.cmp(&target.head).then_with(|| {
                // SAFETY: as in `compare`.
                let (user_key, trailer) = unsafe { (entry.row.user_key(), entry.row.trailer()) };
                self.order
                    .compare(user_key, target.user_key)
                    .then_with(|| target.trailer.cmp(&trailer))
            });
            ordering.is_lt() || past_equal && ordering.is_eq()
        })
    }

    /// About how many keys `rows` has, each of which may have several rows: exact for few, else by runs of rows, evenly spread.
    pub(super) fn approximate_keys(rows: &[Entry]) -> u64 {
        const RUNS: usize = 32;
        const RUN: usize = 64;
        // SAFETY: as in `compare`.
        let key = |at: usize| rows.get(at).map(|entry| unsafe { entry.row.user_key() });
        // Of each key one row is followed by none of the same key.
        let keys = |from: usize, to: usize| (from..to).filter(|&at| key(at) != key(at + 1)).count() as u128;
        let all = rows.len();
        if all <= RUNS * RUN {
            return keys(0, all) as u64;
        }
        let found: u128 = (0..RUNS)
            .map(|run| run * (all - RUN) / (RUNS - 1))
            .map(|from| keys(from, from + RUN))
            .sum();
        (found * all as u128 / (RUNS * RUN) as u128) as u64
    }

    /// Bytes of the index itself, when a row was last inserted.
    pub(super) fn index_bytes(&self) -> usize {
        self.index_bytes.load(Relaxed)
    }

    /// What some dozens of user keys, evenly spread over time, all begin with (bytewise order only). O(1).
    pub(super) fn shared_prefix(&self) -> Vec<u8> {
        const SAMPLES: usize = 64;
        if !self.order.is_bytewise() {
            return Vec::new();
        }
        let rows = self.rows.lock();
        let all = rows.sorted.iter().chain(&rows.tail);
        let step = ((rows.sorted.len() + rows.tail.len()) / SAMPLES).max(1);
        // SAFETY: as in `compare`.
        let keys = all.step_by(step).map(|entry| unsafe { entry.row.user_key() });
        keys.reduce(super::heads::shared_prefix)
            .map_or(Vec::new(), <[u8]>::to_vec)
    }
}
