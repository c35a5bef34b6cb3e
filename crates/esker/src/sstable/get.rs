//! Point reads: filter, index, block, versions.

use std::ops::{ControlFlow, Deref};

use super::batch::Part;
use super::block::{Block, BlockKind};
use super::format::BlockHandle;
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

/// Where in a table the versions of a key begin, if there are any: what filter and index say before the block is read.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The index block, and the entry in it.
    leaf: usize,
    entry: usize,
    handle: BlockHandle,
}

impl Place {
    /// The data block.
    #[inline]
    pub fn handle(&self) -> BlockHandle {
        self.handle
    }
}

impl Table {
    /// Calls `visit` with the versions of `key` that are not newer than `sequence_max`, newest first, until it
    /// breaks. Gives `Break` if it did, `Continue` if there was none left. Range tombstones are the caller's matter.
    ///
    /// O(log entries); at most one read if index and filter are in memory and the versions lie in one block, and
    /// none for most keys that are not there.
    #[inline]
    pub fn get(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
        visit: impl FnMut(Sequence, ValueKind, ValueRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let Some(place) = self.place(key, sequence_max, options)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let block = self.file.block(place.handle, BlockKind::Data, options)?;
        self.visit(key, sequence_max, options, &place, &block, visit)
    }

    /// The first half of a [`get`](Self::get): where the versions of `key` begin, or `None` if there are none. Reads no data
    /// block; filter and index go through the block cache where they don't stay in memory.
    #[inline]
    pub fn place(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
    ) -> Result<Option<Place>> {
        let sequence_max = self.stored_sequence(sequence_max);
        if !self.filter_allows(key, sequence_max, options) {
            self.file.metrics.filter_negatives.add(1);
            return Ok(None);
        }
        let target = pack_trailer(sequence_max, ValueKind::SEEK);
        let mut scratch = Vec::new();
        let leaf = self.leaf_of(key, target, &mut scratch);
        if leaf >= self.leaf_count() {
            self.note_false_positive();
            return Ok(None);
        }
        let index = self.index_leaf(leaf, options)?;
        let entry = index.search(&self.order, key, target, &mut scratch).index;
        if entry >= index.len() {
            return self.place_from(leaf + 1, 0, options);
        }
        let handle = self.handle(&index, entry)?;
        Ok(Some(Place { leaf, entry, handle }))
    }

    /// The first part of filter or index that [`place`](Self::place) would have to read for this key.
    #[inline]
    pub fn missing_part(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
    ) -> Option<Part> {
        let filter_goes = self
            .filter
            .as_ref()
            .is_some_and(|filter| filter.pinned.is_empty());
        let index_goes = self.footer.index_partitioned && self.index_pinned.is_empty();
        if filter_goes || index_goes {
            self.find_missing_part(key, sequence_max, options)
        } else {
            None
        }
    }

    fn find_missing_part(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
    ) -> Option<Part> {
        let sequence_max = self.stored_sequence(sequence_max);
        let target = pack_trailer(sequence_max, ValueKind::SEEK);
        let mut scratch = Vec::new();
        // A damaged handle is for `place` to report.
        let missing = |index: &Block, ordinal: usize, kind: BlockKind| {
            let handle = self.handle(index, ordinal).ok()?;
            (!self.file.is_cached(handle)).then_some(Part { handle, kind })
        };
        if let Some(filter) = self.filter.as_ref().filter(|filter| filter.pinned.is_empty()) {
            let ordinal = filter.index.search(&self.order, key, target, &mut scratch).index;
            if ordinal < filter.index.len()
                && let Some(part) = missing(&filter.index, ordinal, BlockKind::Filter)
            {
                return Some(part);
            }
        }
        if !self.footer.index_partitioned
            || !self.index_pinned.is_empty()
            || !self.filter_allows(key, sequence_max, options)
        {
            return None;
        }
        let leaf = self.leaf_of(key, target, &mut scratch);
        if leaf >= self.leaf_count() {
            return None;
        }
        missing(&self.index, leaf, BlockKind::Index)
    }

    /// The place of an entry of the index, which may be the first of a leaf behind.
    fn place_from(
        &self,
        mut leaf: usize,
        mut entry: usize,
        options: TableReadOptions,
    ) -> Result<Option<Place>> {
        while leaf < self.leaf_count() {
            let index = self.index_leaf(leaf, options)?;
            if entry < index.len() {
                let handle = self.handle(&index, entry)?;
                return Ok(Some(Place { leaf, entry, handle }));
            }
            (leaf, entry) = (leaf + 1, 0);
        }
        Ok(None)
    }

    /// The second half of a [`get`](Self::get), in the block of `place`. Reads more blocks only if the versions reach into
    /// them.
    #[inline]
    pub fn visit(
        &self,
        key: &[u8],
        sequence_max: Sequence,
        options: TableReadOptions,
        place: &Place,
        block: &Block,
        mut visit: impl FnMut(Sequence, ValueKind, ValueRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let target = pack_trailer(self.stored_sequence(sequence_max), ValueKind::SEEK);
        let found = block.search(&self.order, key, target, &mut Vec::new());
        if !found.in_prefix || found.index >= block.len() || !block.has_user_key(found.index, key) {
            self.note_false_positive();
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(flow) = self.visit_block(key, place.handle, block, found.index, &mut visit)? {
            return Ok(flow);
        }
        // The block ended with a version of the key: more may follow in the next.
        let mut place = *place;
        loop {
            match self.place_from(place.leaf, place.entry + 1, options)? {
                Some(next) => place = next,
                None => return Ok(ControlFlow::Continue(())),
            }
            let block = self.file.block(place.handle, BlockKind::Data, options)?;
            if !key.starts_with(block.prefix()) {
                return Ok(ControlFlow::Continue(()));
            }
            if let Some(flow) = self.visit_block(key, place.handle, &block, 0, &mut visit)? {
                return Ok(flow);
            }
        }
    }

    /// Visits the versions of `key`, which begins with the block's prefix, from `entry` on; `None` if the block ends with
    /// one.
    #[inline]
    fn visit_block(
        &self,
        key: &[u8],
        handle: BlockHandle,
        block: &Block,
        mut entry: usize,
        visit: &mut impl FnMut(Sequence, ValueKind, ValueRef<'_>) -> ControlFlow<()>,
    ) -> Result<Option<ControlFlow<()>>> {
        while entry < block.len() {
            if !block.has_user_key(entry, key) {
                return Ok(Some(ControlFlow::Continue(())));
            }
            let Some((sequence, kind)) = version(block, entry) else {
                return Err(self.file.corrupt(handle.offset, "an entry of unknown kind"));
            };
            let value = ValueRef {
                block,
                entry,
                bytes: block.value(entry),
            };
            if visit(sequence.wrapping_add(self.sequence_shift), kind, value).is_break() {
                return Ok(Some(ControlFlow::Break(())));
            }
            entry += 1;
        }
        Ok(None)
    }

    /// The number by which is stored what a reader at `sequence` sees. The numbers of a table with a shift begin at 1, so
    /// that 0 sees nothing of it.
    #[inline]
    fn stored_sequence(&self, sequence: Sequence) -> Sequence {
        sequence.saturating_sub(self.sequence_shift)
    }

    #[cold]
    fn note_false_positive(&self) {
        if self.filter.is_some() {
            self.file.metrics.filter_false_positives.add(1);
        }
    }
}

/// Sequence and kind of an entry; `None` if the kind is unknown.
#[inline]
fn version(block: &Block, entry: usize) -> Option<(Sequence, ValueKind)> {
    let trailer = block.key_suffix(entry).last_chunk::<TRAILER_LEN>()?;
    let trailer = u64::from_le_bytes(*trailer);
    Some((trailer >> 8, ValueKind::from_u8(trailer as u8)?))
}
