//! An open table.
//!
//! Opening reads the last 64 KiB of the file, which hold all that opening needs of most tables: footer, properties,
//! range tombstones and the top of index and filter. Partitions of index and filter stay with the table where they
//! are small; else they come and go through the block cache like data.
//!
//! A filter that is damaged or missing only costs speed: the table then answers without it, and a warning and
//! [`Table::verify`] name the damage.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::block::{Block, BlockKind};
use super::file::{TableFile, read_exact};
use super::filter::{filter_hash, filter_may_contain};
use super::format::{BlockHandle, FOOTER_LEN, Footer, HEADER_LEN, check_header};
use super::options::{TableOpenOptions, TableReadOptions};
use super::properties::TableProperties;
use super::tombstones::{RawRangeTombstone, decode_tombstones};
use crate::cache::{BlockCache, SharedBytes, zeroed};
use crate::error::{Error, Result};
use crate::key::{KeyOrder, SEQUENCE_MAX, ValueKind, pack_trailer, trailer, user_key};
use crate::metrics::Metrics;
use crate::options::PrefixExtractor;

/// What is read from the file's end at once.
const TAIL_BYTES: u64 = 64 << 10;

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
    prefix_extractor: Option<PrefixExtractor>,
    range_tombstones: Vec<RawRangeTombstone>,
    properties: TableProperties,
    memory_bytes: usize,
}

#[derive(Debug)]
pub(super) struct Filter {
    pub(super) index: Block,
    pub(super) pinned: Vec<SharedBytes>,
    pub(super) whole_keys: bool,
    /// The extractor of the filter's prefixes, if it is the one that the column family uses now.
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
    /// Opens a table. `number` names it in the cache; it is unique in the database for ever.
    ///
    /// # Errors
    /// `Corruption` with file and offset; `Unsupported` for a newer format; `InvalidArgument` if the table was
    /// written under another order of keys or by another database; and what the file says.
    pub fn open(
        file: Arc<dyn RandomFile>,
        path: &Path,
        number: u64,
        order: KeyOrder,
        cache: Arc<BlockCache>,
        metrics: Arc<Metrics>,
        options: &TableOpenOptions,
    ) -> Result<Self> {
        let len = file
            .len()
            .map_err(|error| Error::io("can't read table", error).in_file(path))?;
        let (tail_offset, tail) = read_tail(&*file, path, len)?;
        let footer_at = tail.len().saturating_sub(FOOTER_LEN);
        let footer = Footer::decode(&tail[footer_at..]).map_err(|error| {
            error
                .in_file(path)
                .at_offset(len.saturating_sub(FOOTER_LEN as u64))
        })?;
        if tail_offset == 0 {
            check_header(&tail[..HEADER_LEN.min(footer_at)])
                .map_err(|error| error.in_file(path).at_offset(0))?;
        }
        if options.database_id.is_some_and(|id| id != footer.database_id) {
            return Err(Error::invalid("the table belongs to another database").in_file(path));
        }
        let file = TableFile {
            file,
            path: path.to_owned(),
            number,
            file_id: footer.file_id,
            blocks_end: len - FOOTER_LEN as u64,
            cache,
            metrics,
        };
        let tail = Tail {
            file: &file,
            offset: tail_offset,
            bytes: tail,
        };
        let properties = TableProperties::decode(&tail.read(footer.properties)?)
            .ok_or_else(|| file.corrupt(footer.properties.offset, "properties are malformed"))?;
        if properties.comparator != order.name() {
            return Err(Error::invalid(format!(
                "the table is ordered by '{}', not by '{}'",
                properties.comparator,
                order.name()
            ))
            .in_file(path));
        }
        let range_tombstones = if footer.range_tombstones.is_none() {
            Vec::new()
        } else {
            decode_tombstones(&tail.read(footer.range_tombstones)?).ok_or_else(|| {
                file.corrupt(footer.range_tombstones.offset, "range tombstones are malformed")
            })?
        };
        let index = tail.block(footer.index)?;
        let index_pinned = if footer.index_partitioned {
            read_partitions(&tail, &index, options.index_pinned_bytes_max)?
                .into_iter()
                .map(|(handle, contents)| file.parse(handle, contents))
                .collect::<Result<Vec<_>>>()?
        } else {
            Vec::new()
        };
        let filter = open_filter(&tail, &footer, &properties, options).unwrap_or_else(|error| {
            tracing::warn!(%error, "reading a table without its filter");
            None
        });
        drop(tail);
        let mut table = Self {
            file,
            order,
            footer,
            index,
            index_pinned,
            filter,
            prefix_extractor: options.prefix_extractor,
            range_tombstones,
            properties,
            memory_bytes: 0,
        };
        table.memory_bytes = table.count_memory();
        Ok(table)
    }

    /// The table's number.
    pub fn number(&self) -> u64 {
        self.file.number
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

    /// Its range tombstones, in the order in which they were added; they may overlap.
    pub fn raw_range_tombstones(&self) -> &[RawRangeTombstone] {
        &self.range_tombstones
    }

    /// Bytes that the table itself holds in memory: index and filter as far as they are pinned, range tombstones.
    /// Blocks in the cache are not counted.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The prefix extractor under which the table was opened.
    pub fn prefix_extractor(&self) -> Option<PrefixExtractor> {
        self.prefix_extractor
    }

    /// Whether a version of this key may be among the point entries. False is certain; true may cost a read to
    /// find out. O(1), no read if the filter is in memory.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter_allows(key, SEQUENCE_MAX, TableReadOptions::default())
    }

    /// Whether a key with this prefix may be among the point entries. False is certain. Always true unless the table
    /// was written with the prefix extractor under which it was opened, and `prefix` is a whole prefix of that.
    pub fn may_contain_prefix(&self, prefix: &[u8]) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        let is_whole = match filter.prefixes {
            Some(PrefixExtractor::Fixed(len)) => prefix.len() == len,
            // A shorter one is a whole prefix of the key that it is itself, but also begins longer keys.
            Some(PrefixExtractor::Capped(len)) => prefix.len() == len,
            None => false,
        };
        // Keys of one prefix follow each other only in the order of bytes; else each partition would be asked.
        if !is_whole || !(self.order.is_bytewise() || filter.index.len() == 1) {
            return true;
        }
        let target = pack_trailer(SEQUENCE_MAX, ValueKind::SEEK);
        self.filter_has(
            filter,
            prefix,
            target,
            filter_hash(prefix),
            TableReadOptions::default(),
        )
    }

    /// About where in the file `internal_key` is or would be, in bytes.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        let (key, trailer) = (user_key(internal_key), trailer(internal_key));
        let mut scratch = Vec::new();
        let ordinal = self.leaf_of(key, trailer, &mut scratch);
        if ordinal >= self.leaf_count() {
            return Ok(self.data_end());
        }
        let leaf = self.index_leaf(ordinal, TableReadOptions::default())?;
        let at = leaf.search(&self.order, key, trailer, &mut scratch).index;
        if at >= leaf.len() {
            return Ok(self.data_end());
        }
        Ok(self.handle(&leaf, at)?.offset)
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

    fn count_memory(&self) -> usize {
        let filter = self.filter.as_ref();
        let blocks = self.index_pinned.iter().chain([&self.index]);
        let tombstones = self.range_tombstones.iter();
        size_of::<Self>()
            + blocks.map(Block::byte_len).sum::<usize>()
            + filter.map_or(0, |filter| {
                filter.index.byte_len() + filter.pinned.iter().map(|bits| bits.len()).sum::<usize>()
            })
            + tombstones
                .map(|(start, end, _)| start.len() + end.len() + size_of::<RawRangeTombstone>())
                .sum::<usize>()
    }
}

/// The end of the file that was read at once.
struct Tail<'a> {
    file: &'a TableFile,
    offset: u64,
    bytes: Vec<u8>,
}

impl Tail<'_> {
    /// The contents of a block, out of the tail or else from the file; in memory of its own.
    fn read(&self, handle: BlockHandle) -> Result<SharedBytes> {
        let len = self.file.stored_len(handle)?;
        let inside = handle
            .offset
            .checked_sub(self.offset)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| self.bytes.get(at..at.checked_add(len)?));
        match inside {
            Some(stored) => self.file.contents(&Arc::from(stored), 0, handle, true),
            None => self.file.read(handle, true),
        }
    }

    fn block(&self, handle: BlockHandle) -> Result<Block> {
        self.file.parse(handle, self.read(handle)?)
    }
}

fn read_tail(file: &dyn RandomFile, path: &Path, len: u64) -> Result<(u64, Vec<u8>)> {
    if len < (HEADER_LEN + FOOTER_LEN) as u64 {
        let error = Error::corruption(format!("a file of {len} bytes is too short to be an SSTable"));
        return Err(error.in_file(path));
    }
    let offset = len.saturating_sub(TAIL_BYTES);
    let mut tail = vec![0; (len - offset) as usize];
    read_exact(file, path, offset, &mut tail)?;
    Ok((offset, tail))
}

/// The partitions that `index` leads to, in one read, if they take at most `bytes_max`; else none.
fn read_partitions(
    tail: &Tail<'_>,
    index: &Block,
    bytes_max: u64,
) -> Result<Vec<(BlockHandle, SharedBytes)>> {
    let file = tail.file;
    let handles = (0..index.len())
        .map(|i| BlockHandle::parse(index.value(i)))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| file.corrupt(file.blocks_end, "an index entry is malformed"))?;
    let total: u64 = handles
        .iter()
        .fold(0, |sum, handle| sum.saturating_add(handle.size));
    if total > bytes_max {
        return Ok(Vec::new());
    }
    let contiguous = handles
        .windows(2)
        .all(|pair| pair[0].end() == Some(pair[1].offset));
    let (Some(first), Some(end)) = (handles.first(), handles.last().and_then(BlockHandle::end)) else {
        return Ok(Vec::new());
    };
    if !contiguous || first.offset >= tail.offset || end > file.blocks_end {
        return handles
            .iter()
            .map(|&handle| Ok((handle, tail.read(handle)?)))
            .collect();
    }
    let mut buffer = zeroed((end - first.offset) as usize);
    if let Some(bytes) = Arc::get_mut(&mut buffer) {
        read_exact(&*file.file, &file.path, first.offset, bytes)?;
    }
    handles
        .iter()
        .map(|&handle| {
            let at = (handle.offset - first.offset) as usize;
            Ok((handle, file.contents(&buffer, at, handle, true)?))
        })
        .collect()
}

fn open_filter(
    tail: &Tail<'_>,
    footer: &Footer,
    properties: &TableProperties,
    options: &TableOpenOptions,
) -> Result<Option<Filter>> {
    let prefixes = properties
        .prefix_extractor
        .filter(|extractor| options.prefix_extractor == Some(*extractor));
    if footer.filter.is_none() || !(properties.whole_key_filter || prefixes.is_some()) {
        return Ok(None);
    }
    let index = tail.block(footer.filter)?;
    let pinned = read_partitions(tail, &index, options.filter_pinned_bytes_max)?
        .into_iter()
        .map(|(handle, bits)| {
            if super::filter::is_filter(&bits) {
                Ok(bits)
            } else {
                Err(tail.file.corrupt(handle.offset, "filter is malformed"))
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Filter {
        index,
        pinned,
        whole_keys: properties.whole_key_filter,
        prefixes,
    }))
}
