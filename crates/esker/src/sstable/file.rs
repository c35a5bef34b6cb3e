//! Reads the blocks of one table: from its file, or through the block cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::RandomFile;

use super::block::{Block, BlockKind};
use super::filter::is_filter;
use super::format::{BLOCK_TRAILER_LEN, BlockHandle, check_block};
use super::options::TableReadOptions;
use crate::cache::{BlockCache, BlockKey, CachedBlock, SharedBytes, zeroed};
use crate::codec::decompress;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::options::Compression;

/// A table's file with all that reading its blocks takes.
#[derive(Debug)]
pub struct TableFile {
    pub file: Arc<dyn RandomFile>,
    pub path: PathBuf,
    pub number: u64,
    /// From the footer; salts the checksums.
    pub file_id: u64,
    /// No block reaches past this offset.
    pub blocks_end: u64,
    pub cache: Arc<BlockCache>,
    pub metrics: Arc<Metrics>,
}

impl TableFile {
    /// A corruption at `offset` of this file.
    #[cold]
    pub fn corrupt(&self, offset: u64, what: &str) -> Error {
        Error::corruption(what).at_offset(offset).in_file(&self.path)
    }

    /// The length of a block with its trailer, after its handle was checked against the file's length.
    #[inline]
    pub fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        handle
            .end()
            .filter(|&end| end <= self.blocks_end)
            .and_then(|_| usize::try_from(handle.size).ok())
            .map(|size| size + BLOCK_TRAILER_LEN)
            .ok_or_else(|| self.corrupt(handle.offset, "a block handle points out of the table"))
    }

    /// The contents of a block, from the file.
    pub fn read(&self, handle: BlockHandle, verify: bool) -> Result<SharedBytes> {
        let len = self.stored_len(handle)?;
        let mut buffer = zeroed(len);
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            read_exact(&*self.file, &self.path, handle.offset, bytes)?;
        }
        self.contents(&buffer, 0, handle, verify)
    }

    /// The contents of the block that was read to `buffer[at..]`, without a copy unless it is compressed.
    pub fn contents(
        &self,
        buffer: &Arc<[u8]>,
        at: usize,
        handle: BlockHandle,
        verify: bool,
    ) -> Result<SharedBytes> {
        let size = handle.size as usize;
        let cut = || self.corrupt(handle.offset, "block is cut short");
        let stored = buffer.get(at..at + size + BLOCK_TRAILER_LEN).ok_or_else(cut)?;
        let kind = check_block(stored, verify, self.file_id, handle.offset)
            .map_err(|error| error.in_file(&self.path))?;
        match kind {
            Compression::None => SharedBytes::from_range(Arc::clone(buffer), at..at + size).ok_or_else(cut),
            kind => decompress(kind, &stored[..size])
                .map(SharedBytes::new)
                .ok_or_else(|| self.corrupt(handle.offset, "block can't be decompressed")),
        }
    }

    /// Makes a sorted block of a block's contents.
    pub fn parse(&self, handle: BlockHandle, contents: SharedBytes) -> Result<Block> {
        Block::parse(contents).ok_or_else(|| self.corrupt(handle.offset, "block is malformed"))
    }

    /// The cached block of this handle and kind.
    #[inline]
    pub fn cached(&self, handle: BlockHandle, kind: BlockKind) -> Result<Option<Block>> {
        let Some(cached) = self.cache.get(self.key(handle)) else {
            return Ok(None);
        };
        self.metrics.cache_hits.add(1);
        match Block::from_cached(cached, kind) {
            Some(block) => Ok(Some(block)),
            None => Err(self.corrupt(handle.offset, "a block handle points to a block of another kind")),
        }
    }

    /// A sorted block, through the cache.
    #[inline]
    pub fn block(&self, handle: BlockHandle, kind: BlockKind, options: TableReadOptions) -> Result<Block> {
        match self.cached(handle, kind)? {
            Some(block) => Ok(block),
            None => self.load(handle, kind, options),
        }
    }

    fn load(&self, handle: BlockHandle, kind: BlockKind, options: TableReadOptions) -> Result<Block> {
        self.metrics.cache_misses.add(1);
        let contents = self.read(handle, options.verify_checksums)?;
        let block = self.parse(handle, contents)?;
        if options.fill_cache {
            self.keep(handle, kind, &block);
        }
        Ok(block)
    }

    /// Puts a block into the cache.
    pub fn keep(&self, handle: BlockHandle, kind: BlockKind, block: &Block) {
        self.cache.insert(self.key(handle), block.to_cached(kind));
    }

    /// A filter, through the cache.
    pub fn filter(&self, handle: BlockHandle, options: TableReadOptions) -> Result<SharedBytes> {
        if let Some(cached) = self.cache.get(self.key(handle)) {
            self.metrics.cache_hits.add(1);
            if cached.words[0] == BlockKind::Filter as u32 {
                return Ok(cached.bytes);
            }
            return Err(self.corrupt(handle.offset, "a block handle points to a block of another kind"));
        }
        self.metrics.cache_misses.add(1);
        let bytes = self.read_filter(handle, options.verify_checksums)?;
        if options.fill_cache {
            self.keep_filter(handle, &bytes);
        }
        Ok(bytes)
    }

    /// Puts a filter into the cache.
    pub fn keep_filter(&self, handle: BlockHandle, bytes: &SharedBytes) {
        self.cache.insert(self.key(handle), cached_filter(bytes.clone()));
    }

    /// Whether the cache has the block; not counted as a use.
    #[inline]
    pub fn is_cached(&self, handle: BlockHandle) -> bool {
        self.cache.contains(self.key(handle))
    }

    /// Takes the block out of the cache, if it is there.
    pub fn take_out(&self, handle: BlockHandle) -> Option<CachedBlock> {
        self.cache.remove(self.key(handle))
    }

    /// A filter, from the file.
    pub fn read_filter(&self, handle: BlockHandle, verify: bool) -> Result<SharedBytes> {
        let bytes = self.read(handle, verify)?;
        if is_filter(&bytes) {
            Ok(bytes)
        } else {
            Err(self.corrupt(handle.offset, "filter is malformed"))
        }
    }

    #[inline]
    fn key(&self, handle: BlockHandle) -> BlockKey {
        BlockKey {
            table: self.number,
            offset: handle.offset,
        }
    }
}

/// The form in which the block cache keeps a filter.
pub fn cached_filter(bytes: SharedBytes) -> CachedBlock {
    CachedBlock {
        bytes,
        words: [BlockKind::Filter as u32, 0, 0, 0],
    }
}

/// Reads exactly `bytes.len()` bytes; a file that ends before is corrupt.
pub fn read_exact(file: &dyn RandomFile, path: &Path, offset: u64, bytes: &mut [u8]) -> Result<()> {
    file.read_exact_at(offset, bytes).map_err(|error| {
        Error::io("can't read table", error)
            .in_file(path)
            .at_offset(offset)
    })
}
