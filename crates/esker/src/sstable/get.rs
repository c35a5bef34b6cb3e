//! Point reads: filter, index, block, versions.

use std::ops::{ControlFlow, Deref};

use super::block::{Block, BlockKind};
use super::options::TableReadOptions;
use super::table::Table;
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::key::{Sequence, TRAILER_LEN, ValueKind, pack_trailer};

/// A value in a block that is held for the time of a visit; [`pin`](Self::pin) keeps it longer.
#[derive(Clone, Copy, Debug)]
pub struct ValueRef<'a> {
    block: &'a Block,
    entry: usize,
    bytes: &'a [u8],
}

impl ValueRef<'_> {
    /// Keeps the value's block alive with the value. Copies nothing; counts one reference.
    #[inline]
    pub fn pin(&self) -> SharedBytes {
        self.block.pin_value(self.entry)
    }
}

impl Deref for ValueRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Table {
    /// Calls `visit` with the versions of `key` that are not newer than `sequence_max`, newest first, until it
    /// breaks. Gives `Break` if it did, `Continue` if there was none left. Range tombstones are the caller's matter.
    ///
    /// O(log entries); at most one read if index and filter are in memory and the versions lie in one block, and
    /// none for most keys that are not there.
    pub fn get(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
        mut visit: impl FnMut(Sequence, ValueKind, ValueRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if !self.filter_allows(key, sequence_max, options) {
            self.file.metrics.filter_negatives.add(1);
            return Ok(ControlFlow::Continue(()));
        }
        let target = pack_trailer(sequence_max, ValueKind::SEEK);
        let mut scratch = Vec::new();
        let mut ordinal = self.leaf_of(key, target, &mut scratch);
        if ordinal >= self.leaf_count() {
            return Ok(self.passed_by_mistake());
        }
        let mut leaf = self.index_leaf(ordinal, options)?;
        let mut at = leaf.search(&self.order, key, target, &mut scratch).index;
        let mut is_first = true;
        loop {
            if at >= leaf.len() {
                ordinal += 1;
                if ordinal >= self.leaf_count() {
                    return Ok(ControlFlow::Continue(()));
                }
                leaf = self.index_leaf(ordinal, options)?;
                at = 0;
                continue;
            }
            let handle = self.handle(&leaf, at)?;
            let block = self.file.block(handle, BlockKind::Data, options)?;
            let mut entry = 0;
            if is_first {
                let found = block.search(&self.order, key, target, &mut scratch);
                entry = found.index;
                if !found.in_prefix || entry >= block.len() || !block.has_user_key(entry, key) {
                    return Ok(self.passed_by_mistake());
                }
                is_first = false;
            } else if !key.starts_with(block.prefix()) {
                return Ok(ControlFlow::Continue(()));
            }
            while entry < block.len() {
                if !block.has_user_key(entry, key) {
                    return Ok(ControlFlow::Continue(()));
                }
                let Some((sequence, kind)) = version(&block, entry) else {
                    return Err(self.file.corrupt(handle.offset, "an entry of unknown kind"));
                };
                let value = ValueRef {
                    block: &block,
                    entry,
                    bytes: block.value(entry),
                };
                if visit(sequence, kind, value).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                entry += 1;
            }
            // The block ended with a version of the key: more may follow in the next.
            at += 1;
        }
    }

    #[cold]
    fn passed_by_mistake(&self) -> ControlFlow<()> {
        if self.filter.is_some() {
            self.file.metrics.filter_false_positives.add(1);
        }
        ControlFlow::Continue(())
    }
}

/// Sequence and kind of an entry; `None` if the kind is unknown.
#[inline]
fn version(block: &Block, entry: usize) -> Option<(Sequence, ValueKind)> {
    let trailer = block.key_suffix(entry).last_chunk::<TRAILER_LEN>()?;
    let trailer = u64::from_le_bytes(*trailer);
    Some((trailer >> 8, ValueKind::from_u8(trailer as u8)?))
}
