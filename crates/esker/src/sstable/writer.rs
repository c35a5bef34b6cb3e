//! Writes a table from front to end.
//!
//! A value is copied once here: from the caller into the output buffer, at the place where its block is being built.
//! Everything else about a row is small: its key is kept until the block is complete, its hash goes to the filter's
//! list. Finished blocks leave in writes of some 64 KiB, a size that stays in the processor's cache until the file
//! has taken it.

use std::path::{Path, PathBuf};

use esker_env::WriteFile;

use super::block::{BlockBuilder, BlockKind};
use super::collectors::Collectors;
use super::filter_builder::FilterBuilder;
use super::format::{BLOCK_TRAILER_LEN, BlockHandle, FOOTER_LEN, Footer, encode_header, seal_block};
use super::index::{IndexBuilder, Partition, separator, successor};
use super::options::TableOptions;
use super::properties::TableProperties;
use super::tombstones::{RawRangeTombstone, encode_tombstones};
use super::warm::Warmer;
use crate::codec::Compressor;
use crate::error::{Error, Result};
use crate::key::{KEY_LEN_MAX, SEQUENCE_MAX, Sequence, VALUE_LEN_MAX, ValueKind, internal_key, parse_key};
use crate::options::Compression;

/// Bytes that are collected before they are handed to the file.
const OUT_BYTES: usize = 64 << 10;

/// Writes a table. After an error nothing more can be written; the caller removes the file.
#[derive(Debug)]
pub struct TableWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    options: TableOptions,
    /// Bytes not handed to the file yet: finished blocks, then the values of the block that is being built.
    out: Vec<u8>,
    /// Where `out` begins in the file.
    out_offset: u64,
    /// Where the block that is being built begins in `out`.
    block_start: usize,
    block: BlockBuilder,
    compressor: Compressor,
    index: IndexBuilder,
    filter: Option<FilterBuilder>,
    warmer: Option<Warmer>,
    collectors: Collectors,
    tombstones: Vec<RawRangeTombstone>,
    properties: TableProperties,
    smallest: Vec<u8>,
    /// The last key of the last finished block.
    last_key: Vec<u8>,
    separator: Vec<u8>,
    failed: bool,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct TableSummary {
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// The smallest internal key. A range tombstone counts as `(start, its sequence, RangeDelete)`.
    pub smallest: Vec<u8>,
    /// The largest internal key. A range tombstone counts as `(end, SEQUENCE_MAX, RangeDelete)`, which sorts before every
    /// entry that `end` itself could have: with that trailer the bound is exclusive.
    pub largest: Vec<u8>,
    /// Counts and sizes.
    pub properties: TableProperties,
}

impl TableWriter {
    /// Begins a table in an empty file.
    pub fn new(file: Box<dyn WriteFile>, path: &Path, options: TableOptions) -> Self {
        let bytewise = options.order.is_bytewise();
        let mut out = Vec::with_capacity(OUT_BYTES + options.block_bytes.min(1 << 20) + 4096);
        out.extend_from_slice(&encode_header(options.database_id));
        Self {
            file,
            path: path.to_owned(),
            block_start: out.len(),
            out,
            out_offset: 0,
            block: BlockBuilder::new(),
            compressor: Compressor::new(options.compression),
            index: IndexBuilder::new(options.index_partition_bytes, bytewise),
            filter: FilterBuilder::new(&options),
            warmer: None,
            collectors: Collectors::new(&options.hooks),
            tombstones: Vec::new(),
            properties: TableProperties {
                sequence_min: u64::MAX,
                comparator: options.order.name().to_owned(),
                prefix_extractor: options.prefix_extractor,
                whole_key_filter: options.whole_key_filter,
                creation_unix_seconds: options.creation_unix_seconds,
                write_times: options.write_times.clone(),
                family: options.family.clone(),
                ..TableProperties::default()
            },
            smallest: Vec::new(),
            last_key: Vec::new(),
            separator: Vec::new(),
            failed: false,
            options,
        }
    }

    /// Has hot blocks enter the block cache as they are written.
    #[must_use]
    pub fn with_warmer(mut self, warmer: Option<Warmer>) -> Self {
        self.warmer = warmer;
        self
    }

    /// Says how hot the entry added last is; entries of which nothing is said are neither hot nor cold.
    #[inline]
    pub fn add_heat(&mut self, heat: i64) {
        if let Some(warmer) = &mut self.warmer {
            warmer.add_heat(heat);
        }
    }

    /// Adds an entry behind the last.
    ///
    /// # Errors
    /// `Bug` if it is not behind the last or not an internal key of a point entry; `InvalidArgument` if key or value
    /// is too long; and what the file says.
    #[inline]
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let Some(parsed) = parse_key(internal_key).filter(|key| key.kind != ValueKind::RangeDelete) else {
            return Err(self.fail(Error::bug("added to a table what is no point entry")));
        };
        if parsed.user_key.len() > KEY_LEN_MAX || value.len() as u64 > VALUE_LEN_MAX {
            return Err(self.fail(Error::invalid(format!(
                "a key of {} and a value of {} bytes; at most {KEY_LEN_MAX} and {VALUE_LEN_MAX}",
                parsed.user_key.len(),
                value.len()
            ))));
        }
        if self.block.is_empty() {
            self.check_first(internal_key)?;
        } else {
            let last = self.block.last_key();
            if !self.options.order.compare_internal(last, internal_key).is_lt() {
                return Err(self.out_of_order());
            }
            if self.is_block_full(internal_key.len() + value.len()) {
                self.finish_block(Some(internal_key))?;
            }
        }
        if let Some(filter) = &mut self.filter {
            filter.add(parsed.user_key);
        }
        let properties = &mut self.properties;
        properties.entries += 1;
        properties.raw_key_bytes += internal_key.len() as u64;
        properties.raw_value_bytes += value.len() as u64;
        properties.sequence_min = properties.sequence_min.min(parsed.sequence);
        properties.sequence_max = properties.sequence_max.max(parsed.sequence);
        match parsed.kind {
            ValueKind::Delete | ValueKind::SingleDelete => properties.deletions += 1,
            ValueKind::Merge => properties.merges += 1,
            _ => {}
        }
        if !self.collectors.is_empty() {
            self.collectors
                .add(parsed.user_key, parsed.kind, value, parsed.sequence);
        }
        self.block.add(&mut self.out, internal_key, value);
        Ok(())
    }

    /// Adds a range tombstone over user keys from `start` up to `end` (exclusive). In any order; an empty range is
    /// not stored.
    pub fn add_range_tombstone(&mut self, start: &[u8], end: &[u8], sequence: Sequence) {
        if self.options.order.compare(start, end).is_ge() {
            return;
        }
        self.properties.range_tombstones += 1;
        self.properties.sequence_min = self.properties.sequence_min.min(sequence);
        self.properties.sequence_max = self.properties.sequence_max.max(sequence);
        self.tombstones.push((start.to_vec(), end.to_vec(), sequence));
    }

    /// Stores a property of the user's own.
    pub fn add_user_property(&mut self, name: &[u8], value: &[u8]) {
        self.properties.user.insert(name.to_vec(), value.to_vec());
    }

    /// About what the file would take if it were finished now, in bytes.
    pub fn estimated_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterBuilder::byte_len);
        let keys = self.block.byte_len();
        self.out_offset + (self.block_start + keys + self.index.byte_len() + filter + FOOTER_LEN) as u64
    }

    /// Point entries so far.
    pub fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.properties.entries == 0 && self.tombstones.is_empty()
    }

    /// Writes what is left, and syncs the file if `sync`.
    pub fn finish(mut self, sync: bool) -> Result<TableSummary> {
        if self.failed {
            return Err(Error::bug("finished a table whose writing failed").in_file(&self.path));
        }
        let mut largest = Vec::new();
        if !self.block.is_empty() {
            self.finish_block(None)?;
            largest.clone_from(&self.last_key);
        }
        if self.properties.sequence_min > self.properties.sequence_max {
            self.properties.sequence_min = 0;
        }
        let mut footer = Footer {
            database_id: self.options.database_id,
            file_id: self.options.file_number,
            ..Footer::default()
        };
        footer.filter = self.write_filter()?;
        (footer.index, footer.index_partitioned) = self.write_index()?;
        footer.range_tombstones = self.write_tombstones(&mut largest)?;
        self.collect();
        let mut encoded = Vec::new();
        self.properties.encode(&mut encoded);
        footer.properties = self.write_block(&encoded)?;
        self.out.extend_from_slice(&footer.encode());
        self.write_out()?;
        self.file.finish(sync).map_err(|error| self.io(error))?;
        Ok(TableSummary {
            file_bytes: self.out_offset,
            smallest: self.smallest,
            largest,
            properties: self.properties,
        })
    }

    /// Gives up. The caller removes the file.
    pub fn abandon(self) {}

    /// Whether the block is complete before an entry of `next` bytes. A block may grow past its size by one entry,
    /// unless it is three quarters full already or the entry is large enough for a block of its own: a block just
    /// past 4 KiB takes 5 KiB of an allocator's memory.
    #[inline]
    fn is_block_full(&self, next: usize) -> bool {
        let (size, full) = (self.block.byte_len(), self.options.block_bytes);
        size >= full || (size + next > full && (size >= full - full / 4 || next >= full))
    }

    /// Has the collectors say what they know, once they have seen the range tombstones.
    fn collect(&mut self) {
        if !self.collectors.is_empty() {
            for (start, end, sequence) in &self.tombstones {
                self.collectors.add(start, ValueKind::RangeDelete, end, *sequence);
            }
            self.collectors.finish(&mut self.properties.user);
        }
    }

    fn check_first(&mut self, internal_key: &[u8]) -> Result<()> {
        if self.failed {
            return Err(Error::bug("added to a table whose writing failed").in_file(&self.path));
        }
        if self.properties.entries == 0 {
            self.smallest = internal_key.to_vec();
        } else if !self
            .options
            .order
            .compare_internal(&self.last_key, internal_key)
            .is_lt()
        {
            return Err(self.out_of_order());
        }
        Ok(())
    }

    #[cold]
    fn out_of_order(&mut self) -> Error {
        self.fail(Error::bug("an entry was added to a table out of order"))
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.failed = true;
        // An empty block sends every later `add` to `check_first`, which refuses it.
        self.block.clear();
        error.in_file(&self.path)
    }

    fn io(&self, error: std::io::Error) -> Error {
        Error::io("can't write table", error).in_file(&self.path)
    }

    /// Completes the data block; `next` is the first key of the one after it.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let order = &self.options.order;
        let last = self.block.last_key();
        match next {
            Some(next) => separator(order, last, next, &mut self.separator),
            None => successor(order, last, &mut self.separator),
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(last);
        self.block.finish(&mut self.out, order.is_bytewise());
        if let Some(warmer) = &mut self.warmer {
            let offset = self.out_offset + self.block_start as u64;
            warmer.end_block(offset, &self.out[self.block_start..]);
        }
        let handle = self.seal_out(true);
        self.properties.data_blocks += 1;
        self.properties.data_bytes += handle.size + BLOCK_TRAILER_LEN as u64;
        self.index.add(&self.separator, handle);
        if let Some(filter) = &mut self.filter {
            filter.end_block(&self.separator, next);
        }
        if self.out.len() >= OUT_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    /// Makes `out[block_start..]` a stored block.
    fn seal_out(&mut self, compressible: bool) -> BlockHandle {
        let offset = self.out_offset + self.block_start as u64;
        let mut kind = Compression::None;
        if compressible && let Some((stored, used)) = self.compressor.compress(&self.out[self.block_start..])
        {
            kind = used;
            self.out.truncate(self.block_start);
            self.out.extend_from_slice(stored);
        }
        let size = (self.out.len() - self.block_start) as u64;
        seal_block(
            &mut self.out,
            self.block_start,
            kind,
            self.options.file_number,
            offset,
        );
        self.block_start = self.out.len();
        BlockHandle { offset, size }
    }

    /// Stores `contents` as a block of its own, uncompressed.
    fn write_block(&mut self, contents: &[u8]) -> Result<BlockHandle> {
        self.out.extend_from_slice(contents);
        let handle = self.seal_out(false);
        if self.out.len() >= OUT_BYTES {
            self.write_out()?;
        }
        Ok(handle)
    }

    fn write_out(&mut self) -> Result<()> {
        if let Err(error) = self.file.append(&self.out) {
            let error = self.io(error);
            return Err(self.fail(error));
        }
        self.out_offset += self.out.len() as u64;
        self.out.clear();
        self.block_start = 0;
        Ok(())
    }

    fn write_partitions(
        &mut self,
        kind: BlockKind,
        bytes: &[u8],
        partitions: &[Partition],
    ) -> Result<(IndexBuilder, u64)> {
        let warmer = self.warmer.take();
        let warms = warmer
            .as_ref()
            .filter(|warmer| warmer.wants_partitions(kind, bytes.len()));
        let mut top = IndexBuilder::new(usize::MAX, self.options.order.is_bytewise());
        let (mut start, mut stored) = (0, 0);
        for partition in partitions {
            let contents = &bytes[start..partition.end];
            let handle = self.write_block(contents)?;
            if let Some(warmer) = warms {
                warmer.keep(handle.offset, kind, contents);
            }
            top.add(&partition.separator, handle);
            stored += handle.size + BLOCK_TRAILER_LEN as u64;
            start = partition.end;
        }
        self.warmer = warmer;
        Ok((top, stored))
    }

    fn write_filter(&mut self) -> Result<BlockHandle> {
        let Some(filter) = self.filter.take().filter(|filter| !filter.partitions.is_empty()) else {
            return Ok(BlockHandle::default());
        };
        let (top, stored) = self.write_partitions(BlockKind::Filter, &filter.bytes, &filter.partitions)?;
        let handle = self.write_block(&top.finish().0)?;
        self.properties.filter_bytes = stored + handle.size + BLOCK_TRAILER_LEN as u64;
        Ok(handle)
    }

    fn write_index(&mut self) -> Result<(BlockHandle, bool)> {
        let empty = IndexBuilder::new(usize::MAX, true);
        let (bytes, partitions) = std::mem::replace(&mut self.index, empty).finish();
        if partitions.len() == 1 {
            let handle = self.write_block(&bytes)?;
            self.properties.index_bytes = handle.size + BLOCK_TRAILER_LEN as u64;
            return Ok((handle, false));
        }
        let (top, stored) = self.write_partitions(BlockKind::Index, &bytes, &partitions)?;
        let handle = self.write_block(&top.finish().0)?;
        self.properties.index_bytes = stored + handle.size + BLOCK_TRAILER_LEN as u64;
        Ok((handle, true))
    }

    /// Writes the range tombstones and widens the table's bounds by them.
    fn write_tombstones(&mut self, largest: &mut Vec<u8>) -> Result<BlockHandle> {
        if self.tombstones.is_empty() {
            return Ok(BlockHandle::default());
        }
        let order = &self.options.order;
        for (start, end, sequence) in &self.tombstones {
            let first = internal_key(start, *sequence, ValueKind::RangeDelete);
            if self.smallest.is_empty() || order.compare_internal(&first, &self.smallest).is_lt() {
                self.smallest = first;
            }
            let last = internal_key(end, SEQUENCE_MAX, ValueKind::RangeDelete);
            if largest.is_empty() || order.compare_internal(&last, largest).is_gt() {
                *largest = last;
            }
        }
        let mut encoded = Vec::new();
        encode_tombstones(&self.tombstones, &mut encoded);
        self.write_block(&encoded)
    }
}
