//! How blocks enter the block cache when a job writes them, and leave it when their table is dead.
//!
//! # Why
//! A compaction moves rows into blocks that no reader has met. Where rows were in memory before, readers would bring them
//! back one device read at a time, after every compaction. And the blocks from which they came stay in the cache until
//! others drive them out, although nobody can ask for them any more.
//!
//! # How
//! Who writes a table says of each row how *hot* it is: something above zero if readers will want the row in memory,
//! something below if not. When a block is complete the sum over its rows decides: from zero on, the block enters the
//! cache, just as a reader would have put it there, and as one that was used. In a table with hot blocks, the partitions
//! of index and filter that an open table doesn't hold by itself enter too: whoever reads a block has asked them first.
//!
//! # Invariants
//! - A block enters before its table is part of a version, under a number that no other file of the database ever has. So
//!   nobody finds it before the table is installed, and if that never comes nobody does at all.
//! - Nothing is allocated for a block that doesn't enter.

use std::sync::Arc;

use super::block::{Block, BlockKind};
use super::file::cached_filter;
use super::format::BlockHandle;
use super::options::TableOpenOptions;
use super::table::Table;
use crate::cache::{BlockCache, BlockKey, SharedBytes};
use crate::metrics::Metrics;

/// Puts the hot blocks of a table that is being written into the cache.
#[derive(Debug)]
pub struct Warmer {
    cache: Arc<BlockCache>,
    metrics: Arc<Metrics>,
    table: u64,
    /// Sum over the rows of the block that is being built.
    heat: i64,
    has_hot_blocks: bool,
}

impl Warmer {
    /// For the table of this number.
    pub fn new(cache: Arc<BlockCache>, metrics: Arc<Metrics>, table: u64) -> Self {
        Self {
            cache,
            metrics,
            table,
            heat: 0,
            has_hot_blocks: false,
        }
    }

    /// Adds the heat of a row to that of the block it is in.
    #[inline]
    pub fn add_heat(&mut self, heat: i64) {
        self.heat += heat;
    }

    /// A data block is complete, not compressed yet.
    pub fn end_block(&mut self, offset: u64, contents: &[u8]) {
        if std::mem::take(&mut self.heat) >= 0 {
            self.has_hot_blocks = true;
            self.keep(offset, BlockKind::Data, contents);
        }
    }

    /// Whether partitions of index or filter of so many bytes in all should enter.
    pub fn wants_partitions(&self, kind: BlockKind, bytes: usize) -> bool {
        let open = TableOpenOptions::default();
        let pinned_bytes_max = match kind {
            BlockKind::Filter => open.filter_pinned_bytes_max,
            BlockKind::Data | BlockKind::Index => open.index_pinned_bytes_max,
        };
        self.has_hot_blocks && bytes as u64 > pinned_bytes_max
    }

    /// Puts a block into the cache.
    pub fn keep(&self, offset: u64, kind: BlockKind, contents: &[u8]) {
        let bytes = SharedBytes::from(contents);
        let cached = match kind {
            BlockKind::Filter => cached_filter(bytes),
            // What a reader could not take apart is for a reader to find and to name.
            BlockKind::Data | BlockKind::Index => match Block::parse(bytes) {
                Some(block) => block.to_cached(kind),
                None => return,
            },
        };
        let table = self.table;
        self.cache.insert_used(BlockKey { table, offset }, cached);
        self.metrics.blocks_warmed.add(1);
    }
}

impl Table {
    /// Takes the table's blocks out of the cache: nobody will ask for them any more. Who holds one keeps it. Reads
    /// nothing, so the blocks of an index partition that is in memory neither with the table nor in the cache stay, until
    /// others drive them out. O(blocks).
    pub fn leave_cache(&self) {
        if !self.footer.index_partitioned {
            self.take_out(&self.index);
        } else if !self.index_pinned.is_empty() {
            self.index_pinned.iter().for_each(|leaf| self.take_out(leaf));
        } else {
            for handle in self.handles(&self.index) {
                let leaf = self.file.take_out(handle);
                if let Some(leaf) = leaf.and_then(|leaf| Block::from_cached(leaf, BlockKind::Index)) {
                    self.take_out(&leaf);
                }
            }
        }
        if let Some(filter) = self.filter.as_ref().filter(|filter| filter.pinned.is_empty()) {
            self.take_out(&filter.index);
        }
    }

    /// Takes out what an index block leads to.
    fn take_out(&self, index: &Block) {
        for handle in self.handles(index) {
            self.file.take_out(handle);
        }
    }

    fn handles<'a>(&self, index: &'a Block) -> impl Iterator<Item = BlockHandle> + 'a {
        (0..index.len()).filter_map(|i| BlockHandle::parse(index.value(i)))
    }
}

#[cfg(test)]
mod tests;
