//! The write batch as users build it.

use super::ColumnFamily;
use crate::batch::{DEFAULT_COLUMN_FAMILY, Entry, Mark, RawBatch};
use crate::error::Result;
use crate::key::ValueKind;

/// Mutations, of one or several column families, that become visible and durable together or not at all; written with
/// [`Durability::None`](crate::Durability::None), durable together in each family only.
///
/// Limits: a key of 64 KiB, a value of 4 GiB - 1, a batch of 4 GiB. What passes one is refused with an error that
/// names it, and leaves the batch as it was.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub(super) raw: RawBatch,
    save_points: Vec<Mark>,
}

/// A mutation of a batch, with the id of its column family (0: `default`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the fields are the arguments of the method that adds the mutation"
)]
pub enum Mutation<'a> {
    /// [`WriteBatch::put`].
    Put {
        family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// [`WriteBatch::delete`].
    Delete { family: u32, key: &'a [u8] },
    /// [`WriteBatch::single_delete`].
    SingleDelete { family: u32, key: &'a [u8] },
    /// [`WriteBatch::delete_range`].
    DeleteRange {
        family: u32,
        start: &'a [u8],
        end: &'a [u8],
    },
    /// [`WriteBatch::merge`].
    Merge {
        family: u32,
        key: &'a [u8],
        operand: &'a [u8],
    },
}

impl<'a> Mutation<'a> {
    pub(super) fn of(entry: Entry<'a>) -> Option<Self> {
        let Entry {
            family,
            kind,
            key,
            value,
        } = entry;
        Some(match kind {
            ValueKind::Put => Self::Put { family, key, value },
            ValueKind::Delete => Self::Delete { family, key },
            ValueKind::SingleDelete => Self::SingleDelete { family, key },
            ValueKind::RangeDelete => Self::DeleteRange {
                family,
                start: key,
                end: value,
            },
            ValueKind::Merge => Self::Merge {
                family,
                key,
                operand: value,
            },
            // Flushes make these, users don't.
            ValueKind::BlobPointer => return None,
        })
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of mutations.
    pub fn len(&self) -> usize {
        self.raw.count() as usize
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Size of its encoding, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.raw.as_bytes().len()
    }

    /// Empties it, save points included, and keeps its memory.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.save_points.clear();
    }

    /// Adds all mutations of `other` behind its own.
    pub fn append(&mut self, other: &WriteBatch) -> Result<()> {
        self.raw.append(&other.raw)
    }

    /// What it holds, in order.
    pub fn mutations(&self) -> impl Iterator<Item = Mutation<'_>> {
        // A batch holds nothing that `push` did not put there, so every entry is well-formed.
        self.raw.iter().flatten().filter_map(Mutation::of)
    }

    /// The mutation that begins at `offset` of the encoding: what [`size_bytes`](Self::size_bytes) was before it was added. O(1).
    /// At any other offset there is none, or one that nobody added.
    #[inline]
    pub fn mutation_at(&self, offset: usize) -> Option<Mutation<'_>> {
        self.raw.entry_at(offset).and_then(Mutation::of)
    }

    /// Adds a mutation, such as one that [`mutations`](Self::mutations) of another batch gave.
    pub fn push(&mut self, mutation: Mutation<'_>) -> Result<()> {
        let (family, kind, key, value) = match mutation {
            Mutation::Put { family, key, value } => (family, ValueKind::Put, key, value),
            Mutation::Delete { family, key } => (family, ValueKind::Delete, key, &[][..]),
            Mutation::SingleDelete { family, key } => (family, ValueKind::SingleDelete, key, &[][..]),
            Mutation::DeleteRange { family, start, end } => (family, ValueKind::RangeDelete, start, end),
            Mutation::Merge { family, key, operand } => (family, ValueKind::Merge, key, operand),
        };
        self.raw.push(family, kind, key, value)
    }

    /// Remembers where it ends now, on top of earlier save points.
    pub fn set_save_point(&mut self) {
        self.save_points.push(self.raw.mark());
    }

    /// Takes back all that was added since the last save point, and forgets that one. False if there is none.
    pub fn roll_back_to_save_point(&mut self) -> bool {
        let Some(mark) = self.save_points.pop() else {
            return false;
        };
        self.raw.roll_back_to(mark);
        true
    }

    /// Forgets the last save point. False if there is none.
    pub fn pop_save_point(&mut self) -> bool {
        self.save_points.pop().is_some()
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.raw.push(DEFAULT_COLUMN_FAMILY, ValueKind::Put, key, value)
    }

    /// Sets `key` to `value` in a column family.
    pub fn put_cf(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        self.raw.push(family.id(), ValueKind::Put, key, value)
    }

    /// Removes `key`.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.raw.push(DEFAULT_COLUMN_FAMILY, ValueKind::Delete, key, &[])
    }

    /// Removes `key` from a column family.
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.raw.push(family.id(), ValueKind::Delete, key, &[])
    }

    /// Removes `key`; cheaper than [`delete`](Self::delete), as put and single delete vanish when they meet. Only for
    /// keys that are put and single-deleted in turns: never overwritten, deleted or merged since they were new or
    /// last range-deleted. With any other history the result is undefined between the older values and none.
    pub fn single_delete(&mut self, key: &[u8]) -> Result<()> {
        self.raw
            .push(DEFAULT_COLUMN_FAMILY, ValueKind::SingleDelete, key, &[])
    }

    /// [`single_delete`](Self::single_delete) in a column family.
    pub fn single_delete_cf(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.raw.push(family.id(), ValueKind::SingleDelete, key, &[])
    }

    /// Removes all keys from `start` up to `end` (exclusive), at the cost of one entry. An empty range is nothing.
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        self.raw
            .push(DEFAULT_COLUMN_FAMILY, ValueKind::RangeDelete, start, end)
    }

    /// [`delete_range`](Self::delete_range) in a column family.
    pub fn delete_range_cf(&mut self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        self.raw.push(family.id(), ValueKind::RangeDelete, start, end)
    }

    /// Applies the merge operator's `operand` to `key`.
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.raw
            .push(DEFAULT_COLUMN_FAMILY, ValueKind::Merge, key, operand)
    }

    /// [`merge`](Self::merge) in a column family.
    pub fn merge_cf(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        self.raw.push(family.id(), ValueKind::Merge, key, operand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_found_where_the_batch_ended_before_it() {
        let mut batch = WriteBatch::new();
        let mut offsets = Vec::new();
        for (key, value) in [(&b"a"[..], &b"1"[..]), (b"", b""), (b"c", &[7; 300])] {
            offsets.push(batch.size_bytes());
            batch.put(key, value).unwrap();
            offsets.push(batch.size_bytes());
            batch.delete_range(key, value).unwrap();
        }
        let found = offsets.iter().filter_map(|&offset| batch.mutation_at(offset));
        assert!(found.eq(batch.mutations()));
        assert_eq!(batch.mutation_at(batch.size_bytes()), None);
        assert_eq!(batch.mutation_at(usize::MAX), None);
    }

    #[test]
    fn mutations_come_back_in_order_and_can_be_taken_back() {
        let mut batch = WriteBatch::new();
        batch.set_save_point();
        batch.put(b"a", b"1").unwrap();
        batch.merge(b"b", b"2").unwrap();
        batch.set_save_point();
        batch.delete(b"c").unwrap();
        batch.single_delete(b"d").unwrap();
        batch.delete_range(b"e", b"f").unwrap();
        let family = 0;
        let first = [
            Mutation::Put {
                family,
                key: b"a",
                value: b"1",
            },
            Mutation::Merge {
                family,
                key: b"b",
                operand: b"2",
            },
        ];
        let rest = [
            Mutation::Delete { family, key: b"c" },
            Mutation::SingleDelete { family, key: b"d" },
            Mutation::DeleteRange {
                family,
                start: b"e",
                end: b"f",
            },
        ];
        assert!(batch.mutations().eq(first.into_iter().chain(rest)));
        let mut copy = WriteBatch::new();
        for mutation in batch.mutations() {
            copy.push(mutation).unwrap();
        }
        assert_eq!(copy.raw, batch.raw);
        assert!(batch.roll_back_to_save_point());
        assert!(batch.mutations().eq(first));
        batch.delete(b"c").unwrap();
        assert_eq!(batch.mutations().last(), Some(rest[0]));
        assert!(batch.roll_back_to_save_point());
        assert!(batch.is_empty() && batch.mutations().next().is_none());
        assert!(!batch.roll_back_to_save_point() && !batch.pop_save_point());
        batch.set_save_point();
        batch.clear();
        assert!(!batch.pop_save_point());
    }
}
