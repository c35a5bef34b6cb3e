//! An open table: what it is asked.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::block::{Block, BlockKind};
use super::file::TableFile;
use super::filter::{filter_hash, filter_may_contain};
use super::format::{BlockHandle, Footer, HEADER_LEN};
use super::options::TableReadOptions;
use super::prefix::SamePrefix;
use super::properties::TableProperties;
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::key::{
    FragmentedTombstones, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, pack_trailer, trailer, user_key,
};
use crate::options::PrefixExtractor;

/// An immutable table, open for reading. All methods may be called from any thread.
#[derive(Debug)]
pub struct Table {
    pub(super) file: TableFile,
    pub(super) order: KeyOrder,
    pub(super) footer: Footer,
    pub(super) index: Block,
    /// Index partitions that stay in memory, in order; empty: none do (or the index has one level).
    pub(super) index_pinned: Vec<Block>,
    pub(super) filter: Option<Filter>,
    pub(super) range_tombstones: Arc<FragmentedTombstones>,
    /// How many the file holds; overlapping ones make other numbers of fragments.
    pub(super) range_tombstones_stored: u64,
    /// What is added to stored sequence numbers: the table was made by [`TableFileWriter`](crate::TableFileWriter), and took
    /// its number when it was ingested.
    pub(super) sequence_shift: Sequence,
    pub(super) properties: TableProperties,
    pub(super) memory_bytes: usize,
}

#[derive(Debug)]
pub(super) struct Filter {
    pub(super) index: Block,
    pub(super) pinned: Vec<SharedBytes>,
    pub(super) whole_keys: bool,
    /// The extractor of the filter's prefixes, whichever the column family uses now.
    pub(super) prefixes: Option<PrefixExtractor>,
}

/// An index block: the table's own, or one that the cache gave.
#[derive(Debug)]
pub(super) enum Leaf<'a> {
    Held(&'a Block),
    Own(Block),
}

impl Leaf<'_> {
    pub(super) fn into_block(self) -> Block {
        match self {
            Self::Held(block) => block.clone(),
            Self::Own(block) => block,
        }
    }
}

impl Deref for Leaf<'_> {
    type Target = Block;

    #[inline]
    fn deref(&self) -> &Block {
        match self {
            Self::Held(block) => block,
            Self::Own(block) => block,
        }
    }
}

/// A place where a table can be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPoint {
    /// A user key; the table has keys on both sides of it, or equal to it.
    pub user_key: Vec<u8>,
    /// Stored bytes of entries before it, about.
    pub bytes_before: u64,
}

impl Table {
    /// The table's number.
    pub fn number(&self) -> u64 {
        self.file.number
    }

    /// The id of the database that wrote it.
    pub fn database_id(&self) -> u64 {
        self.footer.database_id
    }

    /// The table's path.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// Its range tombstones.
    pub fn range_tombstones(&self) -> &Arc<FragmentedTombstones> {
        &self.range_tombstones
    }

    /// Bytes that the table itself holds in memory: index and filter as far as they are pinned, range tombstones.
    /// Blocks in the cache are not counted.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Whether a version of this key may be among the point entries. False is certain; true may cost a read to
    /// find out. O(1), no read if the filter is in memory.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter_allows(key, SEQUENCE_MAX, TableReadOptions::default())
    }

    /// Whether one of these keys may be among the point entries. False is certain. Always true unless the filter knows a
    /// prefix that all of them have, and the order is that of bytes: in others they may be anywhere. O(1), no read if
    /// the filter is in memory.
    pub fn may_contain_prefix(&self, keys: &SamePrefix<'_>, options: TableReadOptions) -> bool {
        let Some(filter) = self.filter.as_ref().filter(|_| self.order.is_bytewise()) else {
            return true;
        };
        let Some(prefix) = filter.prefixes.and_then(|extractor| keys.under(extractor)) else {
            return true;
        };
        // The partition of the first of them there can be has the prefix, even if they begin in the one behind it.
        let target = pack_trailer(SEQUENCE_MAX, ValueKind::SEEK);
        let passes = self.filter_has(filter, keys.first(), target, filter_hash(prefix), options);
        if !passes {
            self.file.metrics.prefix_filter_negatives.add(1);
        }
        passes
    }

    /// About how many bytes of data lie from one internal key up to another (none: from the beginning, to the end).
    pub fn approximate_bytes(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<u64> {
        // Ends that are near each other have their leaf in common.
        let mut leaf = None;
        let start = match from {
            Some(key) => self.offset_of(key, &mut leaf)?,
            None => HEADER_LEN as u64,
        };
        let end = match to {
            Some(key) => self.offset_of(key, &mut leaf)?,
            None => self.data_end(),
        };
        Ok(end.saturating_sub(start))
    }

    /// About where an internal key is: in the middle of the block that it belongs to. `held` is the leaf of the index looked into last, with
    /// its number.
    fn offset_of<'a>(&'a self, internal_key: &[u8], held: &mut Option<(usize, Leaf<'a>)>) -> Result<u64> {
        let (key, trailer) = (user_key(internal_key), self.stored_trailer(trailer(internal_key)));
        let mut scratch = Vec::new();
        let ordinal = self.leaf_of(key, trailer, &mut scratch);
        if ordinal >= self.leaf_count() {
            return Ok(self.data_end());
        }
        if held.as_ref().is_none_or(|(number, _)| *number != ordinal) {
            *held = Some((ordinal, self.index_leaf(ordinal, TableReadOptions::default())?));
        }
        let Some((_, leaf)) = held else {
            return Ok(self.data_end());
        };
        let at = leaf.search(&self.order, key, trailer, &mut scratch).index;
        if at >= leaf.len() {
            return Ok(self.data_end());
        }
        let block = self.handle(leaf, at)?;
        Ok(block.offset.saturating_add(block.size / 2))
    }

    /// User keys, ascending, that cut the table into up to `parts` parts of about the same size. Reads no data.
    pub fn key_ranges(&self, parts: usize) -> Result<Vec<SplitPoint>> {
        let data_end = self.data_end();
        let part = (data_end / parts.max(1) as u64).max(1);
        let mut points: Vec<SplitPoint> = Vec::new();
        let mut key = Vec::new();
        let leaves = self.leaf_count();
        for ordinal in 0..leaves {
            let leaf = self.index_leaf(ordinal, TableReadOptions::default())?;
            for i in 0..leaf.len() {
                let end = self.handle(&leaf, i)?.end().unwrap_or(data_end);
                let is_last = ordinal + 1 == leaves && i + 1 == leaf.len();
                if is_last || points.len() + 1 >= parts || end < part * (points.len() as u64 + 1) {
                    continue;
                }
                key.clear();
                leaf.append_key(i, &mut key);
                let key = user_key(&key);
                if points.last().is_none_or(|last| last.user_key != key) {
                    points.push(SplitPoint {
                        user_key: key.to_vec(),
                        bytes_before: end,
                    });
                }
            }
        }
        Ok(points)
    }

    /// The trailer by which the place of one with shifted numbers is found. Numbers below the shift become 0, which is
    /// older than all that is stored where there is a shift.
    #[inline]
    pub(super) fn stored_trailer(&self, trailer: u64) -> u64 {
        trailer.saturating_sub(self.sequence_shift << 8)
    }

    /// The first byte after the data blocks.
    pub(super) fn data_end(&self) -> u64 {
        HEADER_LEN as u64 + self.properties.data_bytes
    }

    /// Leaves of the index.
    pub(super) fn leaf_count(&self) -> usize {
        if self.footer.index_partitioned {
            self.index.len()
        } else {
            1
        }
    }

    /// Index block number `ordinal`, without counting a reference where the table holds it.
    #[inline]
    pub(super) fn index_leaf(&self, ordinal: usize, options: TableReadOptions) -> Result<Leaf<'_>> {
        if !self.footer.index_partitioned {
            return Ok(Leaf::Held(&self.index));
        }
        if let Some(block) = self.index_pinned.get(ordinal) {
            return Ok(Leaf::Held(block));
        }
        let handle = self.handle(&self.index, ordinal)?;
        self.file.block(handle, BlockKind::Index, options).map(Leaf::Own)
    }

    /// The number of the index block that covers this internal key; [`leaf_count`](Self::leaf_count) or more if the
    /// key is past the last.
    #[inline]
    pub(super) fn leaf_of(&self, key: &[u8], trailer: u64, scratch: &mut Vec<u8>) -> usize {
        if self.footer.index_partitioned {
            self.index.search(&self.order, key, trailer, scratch).index
        } else {
            0
        }
    }

    /// The handle in entry `i` of an index block.
    #[inline]
    pub(super) fn handle(&self, index: &Block, i: usize) -> Result<BlockHandle> {
        BlockHandle::parse(index.value(i)).ok_or_else(|| {
            self.file
                .corrupt(self.footer.index.offset, "an index entry is malformed")
        })
    }

    /// Whether the filter lets this key pass.
    #[inline]
    pub(super) fn filter_allows(&self, key: &[u8], sequence_max: u64, options: TableReadOptions) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        let target = pack_trailer(sequence_max, ValueKind::SEEK);
        if filter.whole_keys {
            return self.filter_has(filter, key, target, filter_hash(key), options);
        }
        match filter.prefixes.and_then(|extractor| extractor.prefix(key)) {
            Some(prefix) => self.filter_has(filter, key, target, filter_hash(prefix), options),
            None => true,
        }
    }

    #[inline]
    fn filter_has(
        &self,
        filter: &Filter,
        key: &[u8],
        trailer: u64,
        hash: u64,
        options: TableReadOptions,
    ) -> bool {
        let ordinal = if filter.index.len() == 1 {
            // What is past the last separator is in no block either; the one filter answers that as well.
            0
        } else {
            let mut scratch = Vec::new();
            filter.index.search(&self.order, key, trailer, &mut scratch).index
        };
        if ordinal >= filter.index.len() {
            return false;
        }
        if let Some(bits) = filter.pinned.get(ordinal) {
            return filter_may_contain(bits, hash);
        }
        let bits = self
            .handle(&filter.index, ordinal)
            .and_then(|handle| self.file.filter(handle, options));
        match bits {
            Ok(bits) => filter_may_contain(&bits, hash),
            Err(error) => {
                tracing::warn!(%error, "reading a table without its filter");
                true
            }
        }
    }

    pub(super) fn count_memory(&self) -> usize {
        let filter = self.filter.as_ref();
        let blocks = self.index_pinned.iter().chain([&self.index]);
        size_of::<Self>()
            + blocks.map(Block::byte_len).sum::<usize>()
            + filter.map_or(0, |filter| {
                filter.index.byte_len() + filter.pinned.iter().map(|bits| bits.len()).sum::<usize>()
            })
            + self.range_tombstones.memory_bytes()
    }
}
