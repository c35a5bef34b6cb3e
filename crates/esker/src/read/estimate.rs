//! About how much a key range holds, without a look at data blocks.
//!
//! Of a sorted level only the first and the last table of the range are looked into; the others are sums that the level has.
//! So an estimate takes O(levels x log tables + tables of level 0).

use std::sync::Arc;

use super::source::memtables;
use crate::error::Result;
use crate::key::{KeyOrder, SEQUENCE_MAX, ValueKind, internal_key};
use crate::memtable::{Memtable, RangeCount};
use crate::version::{FileMeta, LevelSums, Tables, View};

/// What a range holds, about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes of memtables, tables and blob files.
    pub bytes: u64,
    entries: u64,
    deletions: u64,
}

impl Estimate {
    /// Keys: what was put less what was deleted; overwrites that no compaction has met count each time.
    pub fn keys(&self) -> u64 {
        // A delete is an entry itself, and most often takes away another one.
        self.entries.saturating_sub(self.deletions.saturating_mul(2))
    }

    fn add(&mut self, bytes: u64, entries: u64, deletions: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries = self.entries.saturating_add(entries);
        self.deletions = self.deletions.saturating_add(deletions);
    }

    fn add_sums(&mut self, sums: &LevelSums) {
        let bytes = sums.size_bytes.saturating_add(sums.blob_bytes);
        self.add(bytes, sums.entries, sums.deletions);
    }
}

/// What the user keys from `start` up to `end` (exclusive) hold, about.
pub fn estimate(view: &View, tables: &Tables, start: &[u8], end: &[u8]) -> Result<Estimate> {
    let (version, mut sum) = (&view.version, Estimate::default());
    let range = Range::new(version.order(), start, end);
    if range.order.compare(start, end).is_ge() {
        return Ok(sum);
    }
    for file in version.level(0).files() {
        if !file.ends_before(range.order, start) && range.begins_before_end(file) {
            range.add_table(&mut sum, tables, file)?;
        }
    }
    for level in version.levels().iter().skip(1) {
        let files = level.files();
        let from = level.seek(range.order, start);
        let to = files.partition_point(|file| range.begins_before_end(file));
        // Both ends may reach out of the range; what lies between does not.
        if let Some(last) = to.checked_sub(1).filter(|&last| last >= from) {
            for at in [from, last].into_iter().take(1 + usize::from(last > from)) {
                if let Some(file) = files.get(at) {
                    range.add_table(&mut sum, tables, file)?;
                }
            }
            sum.add_sums(&level.sums(&(from + 1..last.max(from + 1))));
        }
    }
    for memtable in memtables(view) {
        add_memtable(&mut sum, memtable, start, end);
    }
    Ok(sum)
}

/// Adds what a memtable has of a range; no closer than what is in the sum makes worthwhile.
fn add_memtable(sum: &mut Estimate, memtable: &Memtable, start: &[u8], end: &[u8]) {
    let (entries, deletions) = (memtable.entries().max(1), memtable.deletions());
    // Each delete takes away a key, so that what it leaves of the sum has to be known as well. Keys and bytes are both asked for.
    let bytes_of_row = memtable.approximate_bytes_of(1).max(1);
    let besides = sum
        .keys()
        .saturating_sub(2 * deletions)
        .min(sum.bytes / bytes_of_row);
    let RangeCount { rows, keys } = memtable.approximate_count(start, end, besides);
    let deletions = keys as f64 * (deletions as f64 / entries as f64);
    sum.add(memtable.approximate_bytes_of(rows), keys, deletions as u64);
}

/// User keys from one up to another, and internal keys before everything at either end.
struct Range<'a> {
    order: &'a KeyOrder,
    start: &'a [u8],
    end: &'a [u8],
    from: Vec<u8>,
    to: Vec<u8>,
}

impl<'a> Range<'a> {
    fn new(order: &'a KeyOrder, start: &'a [u8], end: &'a [u8]) -> Self {
        Self {
            order,
            start,
            end,
            from: internal_key(start, SEQUENCE_MAX, ValueKind::SEEK),
            to: internal_key(end, SEQUENCE_MAX, ValueKind::SEEK),
        }
    }

    fn begins_before_end(&self, file: &FileMeta) -> bool {
        self.order.compare(file.smallest_user_key(), self.end).is_lt()
    }

    /// Adds the part of a table that lies in the range.
    fn add_table(&self, sum: &mut Estimate, tables: &Tables, file: &Arc<FileMeta>) -> Result<()> {
        let begins_inside = self.order.compare(self.start, file.smallest_user_key()).is_le();
        let ends_inside = file.ends_before(self.order, self.end);
        if begins_inside && ends_inside {
            sum.add_sums(&LevelSums::of(file));
            return Ok(());
        }
        // An end that reaches past the table need not be looked for.
        let from = Some(self.from.as_slice()).filter(|_| !begins_inside);
        let to = Some(self.to.as_slice()).filter(|_| !ends_inside);
        let (covered, whole) = tables.with(file, self.order, |table| {
            Ok((table.approximate_bytes(from, to)?, table.properties().data_bytes))
        })?;
        let part = covered as f64 / whole.max(1) as f64;
        let of = |whole: u64| (whole as f64 * part) as u64;
        sum.add(
            covered.saturating_add(of(file.blob_bytes())),
            of(file.entries),
            of(file.deletions),
        );
        Ok(())
    }
}
