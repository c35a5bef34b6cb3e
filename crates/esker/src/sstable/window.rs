//! A part of the file in memory, ahead of a scan: readahead for users, large aligned chunks for compactions.
//!
//! # Readahead
//! A scan shows itself by blocks that are missing from the cache and lie next to each other. From the third of them
//! on, one read fetches 16 KiB, and each next read twice as much up to 256 KiB, in the scan's direction. Blocks that
//! enter the cache are copied out of the window, so that a cached block never keeps a whole window alive.
//!
//! # Chunks
//! A compaction reads at least 1 MiB at a time. Offset, length and address are multiples of 4 KiB, so that direct
//! I/O goes straight into the buffer; blocks are ranges of the buffer and are not copied. The buffer is used again
//! if nothing of it is pinned any more.

use std::sync::Arc;

use super::block::{Block, BlockKind};
use super::file::{TableFile, read_exact};
use super::format::BlockHandle;
use super::options::{CursorOptions, Purpose};
use crate::cache::zeroed;
use crate::error::Result;
use crate::key::replace_bound;

const READAHEAD_BYTES_FIRST: usize = 16 << 10;
const READAHEAD_BYTES_MAX: usize = 256 << 10;
/// Neighbouring blocks that must miss the cache before more than them is read.
const READAHEAD_AFTER: u32 = 2;
const CHUNK_BYTES: usize = 1 << 20;
const ALIGNMENT: usize = 4 << 10;

/// Reads data blocks for one cursor.
#[derive(Debug)]
pub struct BlockSource {
    options: CursorOptions,
    buffer: Option<Arc<[u8]>>,
    /// The file's range in the buffer, and where in the buffer it begins.
    offset: u64,
    len: usize,
    at: usize,
    /// The block read last.
    last: BlockHandle,
    misses: u32,
    readahead_bytes: usize,
    /// Reads ahead don't pass this offset.
    pub limit: u64,
}

impl BlockSource {
    /// A source for a cursor with these options.
    pub fn new(options: CursorOptions) -> Self {
        Self {
            options,
            buffer: None,
            offset: 0,
            len: 0,
            at: 0,
            last: BlockHandle::default(),
            misses: 0,
            readahead_bytes: READAHEAD_BYTES_FIRST,
            limit: u64::MAX,
        }
    }

    /// Whether more than the next block may be read, and it is not known yet where to stop.
    #[inline]
    pub fn needs_limit(&self) -> bool {
        self.options.upper_bound.is_some()
            && (self.misses >= READAHEAD_AFTER || self.options.readahead_bytes > 0 || self.is_compaction())
    }

    /// Sets the user key past which nothing will be read; the limit is to be found again.
    pub fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        replace_bound(&mut self.options.upper_bound, upper_bound);
        self.limit = u64::MAX;
    }

    /// The upper bound that was given; given once.
    pub fn take_upper_bound(&mut self) -> Option<Vec<u8>> {
        self.options.upper_bound.take()
    }

    #[cfg(test)]
    pub fn window_end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// Whether it reads for a compaction.
    pub fn is_compaction(&self) -> bool {
        self.options.purpose == Purpose::Compaction
    }

    /// The data block of this handle.
    pub fn block(&mut self, table: &TableFile, handle: BlockHandle) -> Result<Block> {
        let block = if self.is_compaction() {
            self.chunked(table, handle)
        } else {
            self.buffered(table, handle)
        };
        self.last = handle;
        block
    }

    fn chunked(&mut self, table: &TableFile, handle: BlockHandle) -> Result<Block> {
        let len = table.stored_len(handle)?;
        if !self.holds(handle, len) {
            let from = handle.offset - handle.offset % ALIGNMENT as u64;
            let end = (handle.offset + len as u64).max((from + CHUNK_BYTES as u64).min(self.limit));
            self.fill(table, from, end)?;
        }
        self.parse(table, handle)
    }

    fn buffered(&mut self, table: &TableFile, handle: BlockHandle) -> Result<Block> {
        if let Some(block) = table.cached(handle, BlockKind::Data)? {
            return Ok(block);
        }
        table.metrics.cache_misses.add(1);
        let len = table.stored_len(handle)?;
        if !self.holds(handle, len) {
            let forward = self.last.end() == Some(handle.offset);
            let backward = handle.end() == Some(self.last.offset);
            if !forward && !backward {
                self.misses = 0;
                self.readahead_bytes = READAHEAD_BYTES_FIRST;
            }
            self.misses += 1;
            if self.misses <= READAHEAD_AFTER && self.options.readahead_bytes == 0 {
                let contents = table.read(handle, self.options.read.verify_checksums)?;
                return self.finish(table, handle, table.parse(handle, contents)?);
            }
            let ahead = self.next_readahead_bytes() as u64;
            let end = handle.offset + len as u64;
            let (from, end) = if backward {
                (end.saturating_sub(ahead).min(handle.offset), end)
            } else {
                (handle.offset, end.max((handle.offset + ahead).min(self.limit)))
            };
            self.fill(table, from, end)?;
        }
        if self.options.read.fill_cache {
            let at = self.at + (handle.offset - self.offset) as usize;
            let own: Option<Arc<[u8]>> = self
                .buffer
                .as_ref()
                .and_then(|buffer| buffer.get(at..at + len))
                .map(Arc::from);
            let own = own.ok_or_else(|| table.corrupt(handle.offset, "block is cut short"))?;
            let contents = table.contents(&own, 0, handle, self.options.read.verify_checksums)?;
            return self.finish(table, handle, table.parse(handle, contents)?);
        }
        self.parse(table, handle)
    }

    fn finish(&self, table: &TableFile, handle: BlockHandle, block: Block) -> Result<Block> {
        if self.options.read.fill_cache {
            table.keep(handle, BlockKind::Data, &block);
        }
        Ok(block)
    }

    fn next_readahead_bytes(&mut self) -> usize {
        if self.options.readahead_bytes > 0 {
            return self.options.readahead_bytes;
        }
        let bytes = self.readahead_bytes;
        self.readahead_bytes = (bytes * 2).min(READAHEAD_BYTES_MAX);
        bytes
    }

    fn holds(&self, handle: BlockHandle, len: usize) -> bool {
        handle.offset >= self.offset && handle.offset + len as u64 <= self.offset + self.len as u64
    }

    fn parse(&self, table: &TableFile, handle: BlockHandle) -> Result<Block> {
        let Some(buffer) = &self.buffer else {
            return Err(table.corrupt(handle.offset, "block is cut short"));
        };
        let at = self.at + (handle.offset - self.offset) as usize;
        table.parse(
            handle,
            table.contents(buffer, at, handle, self.options.read.verify_checksums)?,
        )
    }

    /// Reads `from..end` of the file, cut to the blocks that are there.
    fn fill(&mut self, table: &TableFile, from: u64, end: u64) -> Result<()> {
        let end = end.min(table.blocks_end);
        let len = end.saturating_sub(from) as usize;
        self.len = 0;
        // Room to begin at an aligned address and to read whole aligned blocks.
        let room = len.next_multiple_of(ALIGNMENT) + ALIGNMENT;
        let mut buffer = self
            .buffer
            .take()
            .filter(|buffer| buffer.len() >= room)
            .unwrap_or_default();
        if buffer.len() < room || Arc::get_mut(&mut buffer).is_none() {
            buffer = zeroed(room);
        }
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            self.at = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            if from.is_multiple_of(ALIGNMENT as u64) {
                // The last block of the file may be short; what counts is that all of the range came.
                let bytes = &mut bytes[self.at..self.at + len.next_multiple_of(ALIGNMENT)];
                let read = table.file.read_at(from, bytes);
                let read = read.map_err(|error| {
                    crate::error::Error::io("can't read table", error)
                        .in_file(&table.path)
                        .at_offset(from)
                })?;
                if read < len {
                    return Err(table.corrupt(from + read as u64, "the table ends within its blocks"));
                }
            } else {
                read_exact(
                    &*table.file,
                    &table.path,
                    from,
                    &mut bytes[self.at..self.at + len],
                )?;
            }
        }
        if self.is_compaction() {
            table.metrics.compaction_read_bytes.add(len as u64);
        }
        self.offset = from;
        self.len = len;
        self.buffer = Some(buffer);
        Ok(())
    }
}
