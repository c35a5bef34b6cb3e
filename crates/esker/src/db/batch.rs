//! The write batch as users build it.

use super::ColumnFamily;
use crate::batch::{DEFAULT_COLUMN_FAMILY, RawBatch};
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

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.raw.clear();
    }

    /// Adds all mutations of `other` behind its own.
    pub fn append(&mut self, other: &WriteBatch) -> Result<()> {
        self.raw.append(&other.raw)
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
