//! Ordered reads of a table, both ways.
//!
//! # Invariants
//! - While `valid`: `block` is the block of the index's current handle, `entry < block.len()`, and `key[..key_len]` is
//!   the key of that entry, whose first `prefix_len` bytes are the block's prefix.
//! - A move allocates nothing within a block: it copies the key's suffix behind the prefix. Values are slices of the
//!   block.
//! - After an error the cursor is invalid; any seek makes it usable again, so that one damaged block does not hide
//!   the rest of the table.

use std::sync::Arc;

use super::block::Block;
use super::format::BlockHandle;
use super::options::{CursorOptions, TableReadOptions};
use super::table::Table;
use super::window::BlockSource;
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::key::{Cursor, KeyOrder, SEQUENCE_MAX, TRAILER_LEN, ValueKind, pack_trailer, trailer, user_key};

/// Suffixes up to this length are copied in one piece.
const SHORT: usize = 32;

/// A cursor over the point entries of a table, which it keeps open.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<Table>,
    source: BlockSource,
    index: IndexCursor,
    block: Block,
    entry: usize,
    valid: bool,
    /// Whether the block cache had the block, if that was asked.
    cached: bool,
    /// The key, then room: 32 bytes behind the prefix at least, so that short suffixes are copied without a call.
    key: Vec<u8>,
    key_len: usize,
    prefix_len: usize,
    scratch: Vec<u8>,
}

impl Table {
    /// A cursor over the point entries; invalid until it is positioned.
    pub fn cursor(self: &Arc<Self>, options: CursorOptions) -> TableCursor {
        TableCursor {
            index: IndexCursor::new(&options),
            source: BlockSource::new(options),
            table: Arc::clone(self),
            block: Block::default(),
            entry: 0,
            valid: false,
            cached: false,
            key: Vec::new(),
            key_len: 0,
            prefix_len: 0,
            scratch: Vec::new(),
        }
    }
}

impl TableCursor {
    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Leaves the row it stands on, if any; what it has read stays for the next positioning.
    pub fn invalidate(&mut self) {
        self.valid = false;
    }

    /// Whether the block cache had the block of the row it stands on, when the cursor came to that block. Asked for
    /// compactions only, and not counted as a use.
    #[inline]
    pub fn is_cached(&self) -> bool {
        self.cached
    }

    /// The value it stands on, kept alive by itself. Only while valid. Copies nothing.
    pub fn pin_value(&self) -> SharedBytes {
        self.block.pin_value(self.entry)
    }

    /// Sets the user key past which nothing will be read, so that readahead stops there.
    pub fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        self.source.set_upper_bound(upper_bound);
    }

    /// Finds the place in the file that reading ahead does not pass.
    fn find_limit(&mut self, upper_bound: &[u8]) -> Result<()> {
        let (mut index, target) = (self.index.fresh(), pack_trailer(SEQUENCE_MAX, ValueKind::SEEK));
        index.seek(&self.table, upper_bound, target, &mut self.scratch)?;
        let handle = index.handle(&self.table)?;
        self.source.limit = handle.and_then(|handle| handle.end()).unwrap_or(u64::MAX);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn window_end(&self) -> u64 {
        self.source.window_end()
    }

    /// Reads the block of the index's current handle; false if there is none.
    fn load(&mut self) -> Result<bool> {
        self.valid = false;
        let Some(handle) = self.index.handle(&self.table)? else {
            return Ok(false);
        };
        if self.source.needs_limit()
            && let Some(key) = self.source.take_upper_bound()
        {
            self.find_limit(&key)?;
        }
        // A compaction's buffer can be used again only when no block holds it.
        if self.source.is_compaction() {
            self.block = Block::default();
            self.cached = self.table.file.is_cached(handle);
        }
        self.block = self.source.block(&self.table.file, handle)?;
        if self.block.is_empty() {
            return Err(self.table.file.corrupt(handle.offset, "a data block is empty"));
        }
        self.key.clear();
        self.key.extend_from_slice(self.block.prefix());
        self.prefix_len = self.key.len();
        self.key.resize(self.prefix_len + SHORT, 0);
        Ok(true)
    }

    /// Stands on an entry of the current block.
    #[inline]
    fn stand(&mut self, entry: usize) {
        self.entry = entry;
        self.valid = true;
        if let Some((chunk, len)) = self.block.key_suffix_short(entry)
            && let Some(room) = self.key[self.prefix_len..].first_chunk_mut::<SHORT>()
        {
            *room = *chunk;
            self.key_len = self.prefix_len + len;
        } else {
            self.copy_long_key(entry);
        }
        if self.table.sequence_shift > 0 {
            self.shift_sequence();
        }
    }

    /// Gives the key the number that the table got when it was ingested.
    #[cold]
    fn shift_sequence(&mut self) {
        if let Some(stored) = self.key[..self.key_len].last_chunk_mut::<TRAILER_LEN>() {
            let trailer = u64::from_le_bytes(*stored).wrapping_add(self.table.sequence_shift << 8);
            *stored = trailer.to_le_bytes();
        }
    }

    fn copy_long_key(&mut self, entry: usize) {
        self.key.truncate(self.prefix_len);
        self.key.extend_from_slice(self.block.key_suffix(entry));
        self.key_len = self.key.len();
        self.key.resize(self.key_len.max(self.prefix_len + SHORT), 0);
    }

    fn first_of_block(&mut self) -> Result<()> {
        if self.load()? {
            self.stand(0);
        }
        Ok(())
    }

    fn last_of_block(&mut self) -> Result<()> {
        if self.load()? {
            self.stand(self.block.len() - 1);
        }
        Ok(())
    }

    #[cold]
    fn next_block(&mut self) -> Result<()> {
        self.valid = false;
        self.index.next(&self.table)?;
        self.first_of_block()
    }

    #[cold]
    fn prev_block(&mut self) -> Result<()> {
        self.valid = false;
        self.index.prev(&self.table)?;
        self.last_of_block()
    }

    /// The first entry >= target in the current block, if it is certain without the index that it is the first of
    /// the table: some entry of the block is less and some is not.
    fn seek_in_block(&mut self, key: &[u8], trailer: u64) -> Option<usize> {
        if !self.valid {
            return None;
        }
        let found = self
            .block
            .search(&self.table.order, key, trailer, &mut self.scratch);
        (0 < found.index && found.index < self.block.len()).then_some(found.index)
    }

    /// Whether the index's separator of the current block is >= the current key.
    pub(super) fn index_covers_current(&self, separator: &mut Vec<u8>) -> bool {
        separator.clear();
        self.index.leaf.append_key(self.index.entry, separator);
        self.table.order.compare_internal(self.key(), separator).is_le()
    }

    fn is_at(&self, entry: usize, key: &[u8], trailer: u64) -> bool {
        let suffix = self.block.key_suffix(entry);
        key.starts_with(self.block.prefix())
            && self.block.has_user_key(entry, key)
            && suffix.last_chunk::<TRAILER_LEN>() == Some(&trailer.to_le_bytes())
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.valid = false;
        self.index.first(&self.table)?;
        self.first_of_block()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.valid = false;
        self.index.last(&self.table)?;
        self.last_of_block()
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let (key, trailer) = (user_key(target), self.table.stored_trailer(trailer(target)));
        if let Some(entry) = self.seek_in_block(key, trailer) {
            self.stand(entry);
            return Ok(());
        }
        self.valid = false;
        self.index.seek(&self.table, key, trailer, &mut self.scratch)?;
        if !self.load()? {
            return Ok(());
        }
        let found = self
            .block
            .search(&self.table.order, key, trailer, &mut self.scratch);
        if found.index < self.block.len() {
            self.stand(found.index);
            Ok(())
        } else {
            // The target lies between the block's last key and its separator.
            self.next_block()
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let (key, trailer) = (user_key(target), self.table.stored_trailer(trailer(target)));
        let mut entry = self.seek_in_block(key, trailer);
        if entry.is_none() {
            self.valid = false;
            self.index.seek(&self.table, key, trailer, &mut self.scratch)?;
            if !self.load()? {
                return self.seek_to_last();
            }
            let found = self
                .block
                .search(&self.table.order, key, trailer, &mut self.scratch);
            entry = Some(found.index);
        }
        let entry = entry.unwrap_or(0);
        if entry < self.block.len() && self.is_at(entry, key, trailer) {
            self.stand(entry);
        } else if entry > 0 {
            self.stand(entry - 1);
        } else {
            return self.prev_block();
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        let entry = self.entry + 1;
        if entry < self.block.len() {
            self.stand(entry);
            Ok(())
        } else {
            self.next_block()
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        if self.entry > 0 {
            self.stand(self.entry - 1);
            Ok(())
        } else {
            self.prev_block()
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key[..self.key_len]
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.block.value(self.entry)
    }
}

/// Walks the handles of data blocks, across the partitions of the index.
#[derive(Debug)]
struct IndexCursor {
    options: TableReadOptions,
    /// The index block it is in, once one was read.
    leaf: Block,
    /// Number of that partition; past the last: at the end.
    ordinal: usize,
    /// The entry in the partition; may be past its last for a moment, never when a method returns.
    entry: usize,
    on_entry: bool,
}

impl IndexCursor {
    fn new(options: &CursorOptions) -> Self {
        let mut read = options.read;
        read.fill_cache &= options.purpose != super::options::Purpose::Compaction;
        Self {
            options: read,
            leaf: Block::default(),
            ordinal: usize::MAX,
            entry: 0,
            on_entry: false,
        }
    }

    fn fresh(&self) -> Self {
        Self {
            leaf: Block::default(),
            ordinal: usize::MAX,
            entry: 0,
            on_entry: false,
            options: self.options,
        }
    }

    fn handle(&self, table: &Table) -> Result<Option<BlockHandle>> {
        if self.on_entry {
            table.handle(&self.leaf, self.entry).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Goes into a partition; false if there is no such.
    fn enter(&mut self, table: &Table, ordinal: usize) -> Result<bool> {
        self.on_entry = false;
        if ordinal >= table.leaf_count() {
            return Ok(false);
        }
        if self.ordinal != ordinal {
            self.ordinal = usize::MAX;
            self.leaf = table.index_leaf(ordinal, self.options)?.into_block();
            self.ordinal = ordinal;
        }
        Ok(true)
    }

    fn first(&mut self, table: &Table) -> Result<()> {
        if self.enter(table, 0)? {
            self.entry = 0;
            self.on_entry = !self.leaf.is_empty();
        }
        Ok(())
    }

    fn last(&mut self, table: &Table) -> Result<()> {
        if self.enter(table, table.leaf_count().wrapping_sub(1))? {
            self.stand_last();
        }
        Ok(())
    }

    fn stand_last(&mut self) {
        let len = self.leaf.len();
        self.entry = len.saturating_sub(1);
        self.on_entry = len > 0;
    }

    fn seek(&mut self, table: &Table, key: &[u8], trailer: u64, scratch: &mut Vec<u8>) -> Result<()> {
        let order: &KeyOrder = &table.order;
        let ordinal = table.leaf_of(key, trailer, scratch);
        if self.enter(table, ordinal)? {
            self.entry = self.leaf.search(order, key, trailer, scratch).index;
            self.on_entry = self.entry < self.leaf.len();
            if !self.on_entry {
                return self.skip_to(table, ordinal + 1);
            }
        }
        Ok(())
    }

    fn skip_to(&mut self, table: &Table, ordinal: usize) -> Result<()> {
        if self.enter(table, ordinal)? {
            self.entry = 0;
            self.on_entry = !self.leaf.is_empty();
        }
        Ok(())
    }

    fn next(&mut self, table: &Table) -> Result<()> {
        if !self.on_entry {
            return Ok(());
        }
        if self.entry + 1 < self.leaf.len() {
            self.entry += 1;
            return Ok(());
        }
        self.skip_to(table, self.ordinal + 1)
    }

    fn prev(&mut self, table: &Table) -> Result<()> {
        if !self.on_entry {
            return Ok(());
        }
        if self.entry > 0 {
            self.entry -= 1;
            return Ok(());
        }
        self.on_entry = false;
        if self.ordinal > 0 && self.enter(table, self.ordinal - 1)? {
            self.stand_last();
        }
        Ok(())
    }
}
