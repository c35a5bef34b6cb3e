//! Nanoseconds per row of merging, of what users see, and of what compactions write.
//!
//! `cargo bench -p esker --bench merge`. 16-byte keys, 100-byte values, k children of equal size that interleave at
//! random; children are cursors over vectors, so the figures are those of the merge itself.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use esker::Result;
use esker::key::{Cursor, KeyOrder, SEQUENCE_MAX, TRAILER_LEN, ValueKind, append_internal_key};
use esker::read::merging::{MergingCursor, SourceCursor};
use esker::read::visible::{View, VisibleCursor};
use esker::rewrite::rows::{CompactionRows, Rules};

const ROWS: usize = 1 << 17;
/// The best of so many short runs: other work on the machine disturbs only some.
const RUNS: usize = 25;
const KEY_LEN: usize = 16 + TRAILER_LEN;
const VALUE_LEN: usize = 100;

/// Rows of fixed width, back to back.
struct Rows {
    keys: Vec<u8>,
    values: Vec<u8>,
    len: usize,
}

struct FixedCursor {
    rows: Arc<Rows>,
    at: usize,
}

impl Cursor for FixedCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.at < self.rows.len
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.rows.len.wrapping_sub(1);
        Ok(())
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let (mut low, mut high) = (0, self.rows.len);
        while low < high {
            self.at = (low + high) / 2;
            if KeyOrder::Bytewise.compare_internal(self.key(), target).is_lt() {
                low = self.at + 1;
            } else {
                high = self.at;
            }
        }
        self.at = low;
        Ok(())
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.seek(target)?;
        if !self.valid() || self.key() != target {
            self.at = self.at.wrapping_sub(1);
        }
        Ok(())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.at = self.at.wrapping_sub(1);
        Ok(())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        &self.rows.keys[self.at * KEY_LEN..(self.at + 1) * KEY_LEN]
    }
    #[inline]
    fn value(&self) -> &[u8] {
        &self.rows.values[self.at * VALUE_LEN..(self.at + 1) * VALUE_LEN]
    }
}

impl SourceCursor for FixedCursor {}

/// How keys are made of random numbers.
type KeyShape = fn(u64) -> [u8; 16];

/// The number first: heads tell most keys apart.
fn number_first(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// A prefix of a head's length before it.
fn prefix_first(number: u64) -> [u8; 16] {
    let mut key = *b"user\0\0\0\x01........";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn children(k: usize, shape: KeyShape) -> Vec<Arc<Rows>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let child = |_| {
        let len = ROWS / k;
        let mut numbers: Vec<u64> = (0..len).map(|_| random()).collect();
        numbers.sort_unstable();
        let mut keys = Vec::with_capacity(len * KEY_LEN);
        for number in numbers {
            append_internal_key(&mut keys, &shape(number), 7, ValueKind::Put);
        }
        Arc::new(Rows {
            keys,
            values: vec![7; len * VALUE_LEN],
            len,
        })
    };
    (0..k).map(child).collect()
}

fn merging(children: &[Arc<Rows>]) -> MergingCursor<FixedCursor> {
    let cursor = |rows: &Arc<Rows>| FixedCursor {
        rows: Arc::clone(rows),
        at: usize::MAX,
    };
    MergingCursor::new(KeyOrder::Bytewise, children.iter().map(cursor).collect())
}

/// The best run, in nanoseconds per row.
fn best(mut run: impl FnMut() -> usize) -> f64 {
    let mut best = Duration::MAX;
    let mut rows = 0;
    for _ in 0..RUNS {
        #[allow(clippy::disallowed_methods)] // A bench reads the clock.
        let start = std::time::Instant::now();
        rows = run();
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / rows as f64
}

fn up(children: &[Arc<Rows>]) -> Result<usize> {
    let mut cursor = merging(children);
    let mut rows = 0;
    cursor.seek_to_first()?;
    while cursor.valid() {
        black_box(cursor.key());
        rows += 1;
        cursor.next()?;
    }
    Ok(rows)
}

fn down(children: &[Arc<Rows>]) -> Result<usize> {
    let mut cursor = merging(children);
    let mut rows = 0;
    cursor.seek_to_last()?;
    while cursor.valid() {
        black_box(cursor.key());
        rows += 1;
        cursor.prev()?;
    }
    Ok(rows)
}

fn view() -> View {
    View {
        sequence: SEQUENCE_MAX,
        ..View::default()
    }
}

fn visible_up(children: &[Arc<Rows>]) -> Result<usize> {
    let mut cursor = VisibleCursor::new(merging(children), &[], view());
    let mut rows = 0;
    cursor.seek_to_first()?;
    while cursor.valid() {
        black_box((cursor.key(), cursor.value()));
        rows += 1;
        cursor.next()?;
    }
    Ok(rows)
}

fn visible_down(children: &[Arc<Rows>]) -> Result<usize> {
    let mut cursor = VisibleCursor::new(merging(children), &[], view());
    let mut rows = 0;
    cursor.seek_to_last()?;
    while cursor.valid() {
        black_box((cursor.key(), cursor.value()));
        rows += 1;
        cursor.prev()?;
    }
    Ok(rows)
}

fn compacted(children: &[Arc<Rows>]) -> Result<usize> {
    let mut input = merging(children);
    input.seek_to_first()?;
    let rules = Rules {
        bottommost: true,
        ..Rules::default()
    };
    let mut output = CompactionRows::new(input, |_: &[u8]| true, rules);
    let mut rows = 0;
    while output.advance()? {
        black_box((output.key(), output.value()));
        rows += 1;
    }
    Ok(rows)
}

fn main() -> Result<()> {
    let shapes: [(&str, KeyShape); 2] = [("number first", number_first), ("prefix first", prefix_first)];
    println!("ns/row     k  merge up  merge down  visible up  visible down  compaction");
    for (name, shape) in shapes {
        println!("{name}");
        for k in [1, 2, 4, 10, 32] {
            let children = children(k, shape);
            let time = |run: fn(&[Arc<Rows>]) -> Result<usize>| best(|| run(&children).unwrap_or(0));
            println!(
                "{k:12} {:9.1} {:11.1} {:11.1} {:13.1} {:11.1}",
                time(up),
                time(down),
                time(visible_up),
                time(visible_down),
                time(compacted),
            );
        }
    }
    Ok(())
}
