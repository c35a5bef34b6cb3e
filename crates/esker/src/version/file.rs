//! What a version knows about one SSTable.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::blobs::BlobRef;
use super::names::FileKind;
use super::slot::{Graveyard, TableSlot};
use crate::error::{Error, Result};
use crate::key::{
    KEY_LEN_MAX, KeyOrder, SEQUENCE_MAX, Sequence, TRAILER_LEN, ValueKind, pack_trailer, trailer, user_key,
};
use crate::sstable::TableSummary;

/// How to read a table that was not written by this database: it was ingested, or imported with its column family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The database id in its header.
    pub database_id: u64,
    /// What is added to the sequence numbers in it. All that is said of it elsewhere is with the sum.
    pub sequence_shift: Sequence,
}

/// An SSTable: where it lies in the key space and in history. Immutable but for the two flags of compaction, and
/// shared by all versions that hold it; a move to another level keeps the very same object.
#[derive(Debug, Default)]
pub struct FileMeta {
    /// The number in its name.
    pub number: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Its smallest internal key; range tombstones count by their start.
    pub smallest: Vec<u8>,
    /// Its largest internal key. Where a range tombstone reaches furthest it is [`exclusive_bound`] of the
    /// tombstone's end: the file then holds nothing at that user key.
    pub largest: Vec<u8>,
    /// The oldest sequence number in it.
    pub sequence_min: Sequence,
    /// The newest sequence number in it.
    pub sequence_max: Sequence,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub deletions: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// When it was written, in seconds since 1970-01-01 UTC.
    pub created_unix_seconds: u64,
    /// Keys and values in bytes, before prefixes are shared and blocks compressed.
    pub raw_bytes: u64,
    /// What its rows point to, by blob file, ascending.
    pub blobs: Vec<BlobRef>,
    /// Where it comes from, if it was not written for this database.
    pub origin: Option<Origin>,
    /// Whether it should be compacted although its level is not too large (age, many tombstones).
    pub marked: AtomicBool,
    /// Whether a running job reads it or has moved it.
    pub being_compacted: AtomicBool,
    /// Its open table.
    pub table: TableSlot,
}

/// The internal key that sorts before everything stored at `end`: the largest key of a file whose furthest reach
/// is a range tombstone up to `end` (exclusive).
pub fn exclusive_bound(end: &[u8]) -> Vec<u8> {
    crate::key::internal_key(end, SEQUENCE_MAX, ValueKind::RangeDelete)
}

impl FileMeta {
    /// What the writer of table `number` says of it.
    pub fn from_summary(number: u64, summary: TableSummary) -> Self {
        let properties = summary.properties;
        Self {
            number,
            size_bytes: summary.file_bytes,
            smallest: summary.smallest,
            largest: summary.largest,
            sequence_min: properties.sequence_min,
            sequence_max: properties.sequence_max,
            entries: properties.entries,
            deletions: properties.deletions,
            range_tombstones: properties.range_tombstones,
            created_unix_seconds: properties.creation_unix_seconds,
            raw_bytes: properties.raw_key_bytes + properties.raw_value_bytes,
            ..Self::default()
        }
    }

    /// The same table under another number, and read as `origin` says.
    pub fn renamed(&self, number: u64, origin: Option<Origin>) -> Self {
        Self {
            number,
            size_bytes: self.size_bytes,
            smallest: self.smallest.clone(),
            largest: self.largest.clone(),
            sequence_min: self.sequence_min,
            sequence_max: self.sequence_max,
            entries: self.entries,
            deletions: self.deletions,
            range_tombstones: self.range_tombstones,
            created_unix_seconds: self.created_unix_seconds,
            raw_bytes: self.raw_bytes,
            blobs: self.blobs.clone(),
            origin,
            marked: AtomicBool::new(self.is_marked()),
            ..Self::default()
        }
    }

    /// The smallest user key.
    #[inline]
    pub fn smallest_user_key(&self) -> &[u8] {
        user_key(&self.smallest)
    }

    /// The largest user key; not in the file itself if [`largest_is_exclusive`](Self::largest_is_exclusive).
    #[inline]
    pub fn largest_user_key(&self) -> &[u8] {
        user_key(&self.largest)
    }

    /// Whether the file ends before its largest user key.
    #[inline]
    pub fn largest_is_exclusive(&self) -> bool {
        trailer(&self.largest) == pack_trailer(SEQUENCE_MAX, ValueKind::RangeDelete)
    }

    /// Whether the whole file lies before `key`.
    #[inline]
    pub fn ends_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match order.compare(self.largest_user_key(), key) {
            Ordering::Less => true,
            Ordering::Equal => self.largest_is_exclusive(),
            Ordering::Greater => false,
        }
    }

    /// Whether the whole file lies after `key`.
    #[inline]
    pub fn starts_after(&self, order: &KeyOrder, key: &[u8]) -> bool {
        order.compare(self.smallest_user_key(), key) == Ordering::Greater
    }

    /// Whether the file's range reaches into `smallest..=largest` (user keys).
    #[inline]
    pub fn overlaps(&self, order: &KeyOrder, smallest: &[u8], largest: &[u8]) -> bool {
        !self.ends_before(order, smallest) && !self.starts_after(order, largest)
    }

    /// Whether both ranges hold a user key in common.
    pub fn overlaps_file(&self, order: &KeyOrder, other: &FileMeta) -> bool {
        !self.ends_before(order, other.smallest_user_key())
            && !other.ends_before(order, self.smallest_user_key())
    }

    /// Whether a compaction could drop entries of this file for their own sake.
    pub fn has_tombstones(&self) -> bool {
        self.deletions > 0 || self.range_tombstones > 0
    }

    /// Bytes of the records that its rows point to.
    pub fn blob_bytes(&self) -> u64 {
        self.blobs
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Whether a running job has it.
    #[inline]
    pub fn is_being_compacted(&self) -> bool {
        self.being_compacted.load(Relaxed)
    }

    /// Whether it was marked for compaction.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.marked.load(Relaxed)
    }

    /// As [`Slot::mark_obsolete`](super::Slot::mark_obsolete).
    pub fn mark_obsolete(&self, graveyard: &Arc<Graveyard>) {
        let file = FileKind::Table(self.number);
        self.table.mark_obsolete(graveyard, file, self.size_bytes);
    }

    /// Checks what must hold for every file, whatever level it is in.
    ///
    /// # Errors
    /// `Corruption` that names the file.
    pub fn check(&self, order: &KeyOrder) -> Result<()> {
        let whole = |key: &[u8]| (TRAILER_LEN..=KEY_LEN_MAX + TRAILER_LEN).contains(&key.len());
        if !whole(&self.smallest) || !whole(&self.largest) {
            return Err(self.damaged("has a bound that is no internal key"));
        }
        if order.compare_internal(&self.smallest, &self.largest) == Ordering::Greater {
            return Err(self.damaged("ends before it starts"));
        }
        if self.sequence_min > self.sequence_max || self.sequence_max > SEQUENCE_MAX {
            return Err(self.damaged("has an impossible range of sequence numbers"));
        }
        if self.number == 0 {
            return Err(self.damaged("has a number that no file can have"));
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(format!("table {} {what}", self.number))
    }

    /// Whether all that is stored of the two files is equal (flags and the open table are not).
    pub fn same_stored(&self, other: &FileMeta) -> bool {
        let fields = |f: &FileMeta| {
            [
                f.number,
                f.size_bytes,
                f.sequence_min,
                f.sequence_max,
                f.entries,
                f.deletions,
                f.range_tombstones,
                f.created_unix_seconds,
                f.raw_bytes,
                u64::from(f.is_marked()),
            ]
        };
        fields(self) == fields(other)
            && self.smallest == other.smallest
            && self.largest == other.largest
            && self.blobs == other.blobs
            && self.origin == other.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::internal_key;

    fn file(smallest: &[u8], largest: Vec<u8>) -> FileMeta {
        FileMeta {
            number: 1,
            smallest: internal_key(smallest, 5, ValueKind::Put),
            largest,
            ..FileMeta::default()
        }
    }

    #[test]
    fn a_range_tombstones_end_is_not_in_the_file() {
        let order = KeyOrder::Bytewise;
        let open = file(b"a", exclusive_bound(b"m"));
        let closed = file(b"a", internal_key(b"m", 3, ValueKind::Put));
        assert!(open.ends_before(&order, b"m") && !closed.ends_before(&order, b"m"));
        assert!(!open.overlaps(&order, b"m", b"z") && closed.overlaps(&order, b"m", b"z"));
        assert!(open.overlaps(&order, b"l", b"m"));
        let next = file(b"m", internal_key(b"z", 3, ValueKind::Put));
        assert!(!open.overlaps_file(&order, &next) && closed.overlaps_file(&order, &next));
        assert!(!next.overlaps_file(&order, &open) && next.overlaps_file(&order, &closed));
    }

    #[test]
    fn impossible_files_are_refused_by_name() {
        let order = KeyOrder::Bytewise;
        let good = || file(b"b", internal_key(b"c", 3, ValueKind::Put));
        good().check(&order).expect("a good file");
        let bad = [
            FileMeta {
                smallest: b"short".to_vec(),
                ..good()
            },
            FileMeta {
                largest: internal_key(b"a", 3, ValueKind::Put),
                ..good()
            },
            FileMeta {
                sequence_min: 2,
                sequence_max: 1,
                ..good()
            },
            FileMeta {
                sequence_max: SEQUENCE_MAX + 1,
                ..good()
            },
        ];
        for file in bad {
            let error = file.check(&order).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corruption);
            assert!(error.message().contains("table 1 "), "{error}");
        }
    }
}
