//! WRITE 4: what was written lately, in memory, in order.
//!
//! A memtable takes rows until it is as large as its budget, is then *sealed* and, as an immutable source of rows,
//! flushed to an SSTable. Two kinds share one surface:
//!
//! - [`MemtableKind::Ordered`]: a concurrent skiplist (`skiplist.rs`) over an arena. Lock-free readers, inserts in parallel.
//! - [`MemtableKind::Vector`]: an array (`vector.rs`) that is sorted once. For bulk loads, which nobody reads yet.
//!
//! Rows (internal key and value, adjacent) are copied once, into an arena (`arena.rs`) whose chunks are recycled from
//! memtable to memtable, and never move or change: slices handed out live as long as the memtable.
//!
//! # Thread safety
//! - [`insert`](Memtable::insert) may be called by any number of threads at once, with an [`InsertHint`] each.
//! - Readers need no lock against inserts, and see a row at the latest when its insert has returned. What they may
//!   see is decided by sequence numbers: a row is published by the commit that inserted it, not by the memtable.
//! - [`seal`](Memtable::seal) is called once no insert runs or can start: the commit path orders that.
//!
//! # Invariants
//! 1. Internal keys of a memtable are distinct: every mutation has its own sequence number.
//! 2. Point rows are in the index, range tombstones in their list (`tombstones.rs`), never the other way round.
//! 3. No row is removed or changed before the memtable is dropped; its chunks return to the pool only then.
//! 4. `sequence_min` and `sequence_max` bound the sequence numbers of everything whose insert has returned.
//!
//! The figures behind these choices, and what was rejected, are in `docs/decisions/0002-memtable.md`.

mod arena;
mod cursor;
mod guide;
mod heads;
mod hint;
#[cfg(all(test, loom))]
mod loom;
mod prefetch;
mod row;
mod skiplist;
#[cfg(all(test, not(loom)))]
mod tests;
mod tombstones;
mod vector;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use arena::MemtableArenaPool;
pub use cursor::MemtableCursor;
pub use hint::InsertHint;
pub use skiplist::RangeCount;

use crate::key::{FragmentedTombstones, KeyOrder, Sequence, ValueKind, pack_trailer, user_key};
use crate::options::MemtableKind;
use heads::Heads;
use row::Row;
use skiplist::Skiplist;
use tombstones::Tombstones;
use vector::Vector;

/// Bytes of a shared key prefix that heads don't skip, so that the next memtable's keys may differ there.
const PREFIX_SLACK_BYTES: usize = 2;

enum Index {
    Ordered(Skiplist),
    Vector(Vector),
}

/// Rows in memory (see the module's head).
pub struct Memtable {
    id: u64,
    order: KeyOrder,
    pool: Arc<MemtableArenaPool>,
    index: Index,
    tombstones: Tombstones,
    deletions: AtomicU64,
    sequence_min: AtomicU64,
    sequence_max: AtomicU64,
    sealed: AtomicBool,
}

impl Memtable {
    /// An empty memtable. `id` is the caller's name for it; `budget_bytes` is the size at which it is going to be sealed
    /// and only decides how large its chunks grow (from 4 KiB to a sixteenth of it, at most 2 MiB).
    pub fn new(
        kind: MemtableKind,
        order: KeyOrder,
        id: u64,
        budget_bytes: usize,
        pool: &Arc<MemtableArenaPool>,
    ) -> Arc<Self> {
        Self::with_prefix(kind, order, id, budget_bytes, pool, &[])
    }

    /// An empty memtable to take over from this one: of the same kind, order and pool, and faster than a
    /// [`new`](Self::new) one if its keys begin as the keys of this one do (a table's id, leading zeros).
    pub fn successor(&self, id: u64, budget_bytes: usize) -> Arc<Self> {
        let mut prefix = match &self.index {
            Index::Ordered(list) => list.shared_prefix(),
            Index::Vector(vector) => vector.shared_prefix(),
        };
        prefix.truncate(prefix.len().saturating_sub(PREFIX_SLACK_BYTES));
        let order = self.order.clone();
        Self::with_prefix(self.kind(), order, id, budget_bytes, &self.pool, &prefix)
    }

    /// [`new`](Self::new) for keys of which most begin with `prefix`. Any prefix is correct; one that few keys have
    /// is slow.
    pub fn with_prefix(
        kind: MemtableKind,
        order: KeyOrder,
        id: u64,
        budget_bytes: usize,
        pool: &Arc<MemtableArenaPool>,
        prefix: &[u8],
    ) -> Arc<Self> {
        let heads = Heads::new(&order, prefix);
        let index = match kind {
            MemtableKind::Ordered => Index::Ordered(Skiplist::new(order.clone(), heads, pool, budget_bytes)),
            MemtableKind::Vector => Index::Vector(Vector::new(order.clone(), heads, pool, budget_bytes)),
        };
        Arc::new(Self {
            id,
            order,
            pool: Arc::clone(pool),
            index,
            tombstones: Tombstones::default(),
            deletions: AtomicU64::new(0),
            sequence_min: AtomicU64::new(u64::MAX),
            sequence_max: AtomicU64::new(0),
            sealed: AtomicBool::new(false),
        })
    }

    /// Inserts a mutation; of a range delete, `key` is the start and `value` the end. Keys and values are within
    /// the limits that a [batch](crate::batch::RawBatch) checks. O(log n) (ordered), O(1) (vector).
    pub fn insert(&self, sequence: Sequence, kind: ValueKind, key: &[u8], value: &[u8]) {
        self.insert_with(&mut InsertHint::default(), sequence, kind, key, value);
    }

    /// [`insert`](Self::insert) by a writer that keeps its hint from one insert to the next: ascending keys cost O(1).
    #[inline]
    pub fn insert_with(
        &self,
        hint: &mut InsertHint,
        sequence: Sequence,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) {
        debug_assert!(!self.is_sealed(), "insert into a sealed memtable");
        match kind {
            ValueKind::Put | ValueKind::Merge | ValueKind::BlobPointer => {}
            ValueKind::Delete | ValueKind::SingleDelete | ValueKind::RangeDelete => {
                self.deletions.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Looking first saves the atomic operation where there is nothing to change.
        if sequence > self.sequence_max.load(Ordering::Relaxed) {
            self.sequence_max.fetch_max(sequence, Ordering::Relaxed);
        }
        if sequence < self.sequence_min.load(Ordering::Relaxed) {
            self.sequence_min.fetch_min(sequence, Ordering::Relaxed);
        }
        if kind == ValueKind::RangeDelete {
            self.tombstones.insert(sequence, key, value);
            return;
        }
        match &self.index {
            Index::Ordered(list) => list.insert(hint, sequence, kind, key, value),
            Index::Vector(vector) => vector.insert(sequence, kind, key, value),
        }
    }

    /// Shows `visit` the versions of `user_key` that a reader at `sequence_max` sees, newest first, until it breaks.
    /// Range tombstones are not looked at: see [`max_covering_tombstone`](Self::max_covering_tombstone). O(log n).
    #[inline]
    pub fn get<'a>(
        &'a self,
        user_key: &[u8],
        sequence_max: Sequence,
        mut visit: impl FnMut(Sequence, ValueKind, &'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let trailer = pack_trailer(sequence_max, ValueKind::SEEK);
        match &self.index {
            Index::Ordered(list) => {
                let mut row = list.seek(&list.target(user_key, trailer));
                while !row.is_null() && self.visit(row, user_key, &mut visit)? {
                    row = list.next(row);
                }
            }
            Index::Vector(vector) => {
                let rows = vector.rows();
                let first = vector.search(&rows, &vector.target(user_key, trailer), false);
                for entry in &rows[first..] {
                    if !self.visit(entry.row, user_key, &mut visit)? {
                        break;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Shows `visit` a row of this memtable's index if it is of `wanted_key`; otherwise gives false.
    #[inline]
    fn visit<'a>(
        &'a self,
        row: Row,
        wanted_key: &[u8],
        visit: &mut impl FnMut(Sequence, ValueKind, &'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<(), bool> {
        // SAFETY: the index gave this row, and rows live as long as the memtable, so for 'a.
        let (key, trailer, value) = unsafe { (row.internal_key(), row.trailer(), row.value()) };
        if user_key(key) != wanted_key {
            return ControlFlow::Continue(false);
        }
        if let Some(kind) = ValueKind::from_u8(trailer as u8) {
            visit(trailer >> 8, kind, value)?;
        }
        ControlFlow::Continue(true)
    }

    /// A cursor over the point rows, which keeps the memtable alive. A vector is sorted for it if need be.
    pub fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }

    /// The range tombstones, in fragments that are cut anew only after another range delete.
    pub fn range_tombstones(&self) -> Arc<FragmentedTombstones> {
        self.tombstones.fragments(&self.order)
    }

    /// Whether there are range tombstones. One relaxed load.
    #[inline]
    pub fn has_range_tombstones(&self) -> bool {
        self.tombstones.count() > 0
    }

    /// [`FragmentedTombstones::max_covering`] without taking a reference; one relaxed load if there are none.
    #[inline]
    pub fn max_covering_tombstone(&self, user_key: &[u8], sequence_max: Sequence) -> Sequence {
        self.tombstones.max_covering(&self.order, user_key, sequence_max)
    }

    /// Ends the inserting: called once no insert runs or can start. A vector is left unsorted: that is for the
    /// thread that flushes it, with [`sort`](Self::sort).
    pub fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// Whether it was sealed.
    #[inline]
    pub fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// Brings a vector into order, so that its readers needn't. For a sealed one that is final: from then on they
    /// take no lock. O(n log n) once; nothing to do for an ordered memtable.
    pub fn sort(&self) {
        if let Index::Vector(vector) = &self.index {
            if self.is_sealed() {
                vector.finish();
            } else {
                vector.rows();
            }
        }
    }

    /// The caller's name for it.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its kind.
    pub fn kind(&self) -> MemtableKind {
        match self.index {
            Index::Ordered(_) => MemtableKind::Ordered,
            Index::Vector(_) => MemtableKind::Vector,
        }
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Bytes of memory held: whole chunks, index and range tombstones. A few relaxed loads.
    #[inline]
    pub fn approximate_bytes(&self) -> usize {
        let rows = match &self.index {
            Index::Ordered(list) => list.arena.held_bytes(),
            Index::Vector(vector) => vector.arena.held_bytes() + vector.index_bytes(),
        };
        rows + self.tombstones.bytes()
    }

    /// Bytes of rows, with what the index needs for each: what was put in, rather than what is held.
    pub fn used_bytes(&self) -> usize {
        let rows = match &self.index {
            Index::Ordered(list) => list.arena.used_bytes(),
            Index::Vector(vector) => vector.arena.used_bytes() + vector.index_bytes(),
        };
        rows + self.tombstones.bytes()
    }

    #[inline]
    fn rows(&self) -> u64 {
        match &self.index {
            Index::Ordered(list) => list.len(),
            Index::Vector(vector) => vector.len(),
        }
    }

    /// Number of mutations, range deletes included.
    pub fn entries(&self) -> u64 {
        self.rows() + self.tombstones.count() as u64
    }

    /// Number of deletes of any kind among them.
    pub fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Relaxed)
    }

    /// Whether nothing was inserted, not even a range delete.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// The smallest sequence number inserted; `None` while empty.
    pub fn sequence_min(&self) -> Option<Sequence> {
        let sequence = self.sequence_min.load(Ordering::Relaxed);
        (sequence != u64::MAX).then_some(sequence)
    }

    /// The largest sequence number inserted; 0 while empty.
    pub fn sequence_max(&self) -> Sequence {
        self.sequence_max.load(Ordering::Relaxed)
    }

    /// About what it has of the user keys `[start, end)`, as a part of a sum of keys to which `besides` others belong: exact up to some
    /// dozens of rows, beyond that as much as makes the sum known within 10 to 20 %. O(log n); a vector is sorted if need be.
    pub fn approximate_count(&self, start: &[u8], end: &[u8], besides: u64) -> RangeCount {
        match &self.index {
            Index::Ordered(list) => {
                let (from, to) = (list.target(start, u64::MAX), list.target(end, u64::MAX));
                list.count_between(&from, &to, besides)
            }
            Index::Vector(vector) => {
                let rows = vector.rows();
                let from = vector.search(&rows, &vector.target(start, u64::MAX), false);
                let to = vector.search(&rows, &vector.target(end, u64::MAX), false);
                let counted = rows.get(from..to).map(|rows| RangeCount {
                    rows: rows.len() as u64,
                    keys: Vector::approximate_keys(rows),
                });
                counted.unwrap_or_default()
            }
        }
    }

    /// About how many bytes `count` of its rows take, taking all rows for equally large.
    pub fn approximate_bytes_of(&self, count: u64) -> u64 {
        let rows = self.rows().max(1);
        let bytes = u128::from(count) * self.used_bytes() as u128;
        (bytes / u128::from(rows)) as u64
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable")
            .field("id", &self.id)
            .field("kind", &self.kind())
            .field("entries", &self.entries())
            .field("approximate_bytes", &self.approximate_bytes())
            .field("sealed", &self.is_sealed())
            .finish_non_exhaustive()
    }
}
