//! Files appended to past the page cache.
//!
//! Appended bytes gather in an aligned buffer. A full buffer leaves as one write that is kept under way while the
//! next buffer fills. What a `flush`, `sync` or `finish` finds is written by the caller's own thread:
//!
//! 1. Whole blocks are written and leave the buffer.
//! 2. The tail, less than a block, is written padded with zeros by `sync` and `finish` and *stays* in the buffer,
//!    so that the block is written again, whole, when more was appended.
//! 3. The padding makes the file too long. A plain file is cut at once. A preallocated or rewound one is cut by
//!    `finish` only: cutting it earlier would give its blocks beyond back to the file system.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::aligned::{AlignedBuffer, BLOCK_BYTES, round_down};
use super::in_flight::{UnderWay, Writers, write_in_turn};
use super::pool::BufferPool;
use super::system::{Poison, write_full_at};
use crate::WriteFile;

/// Size of a buffer where the caller names none, in bytes.
pub(super) const DIRECT_BUFFER_BYTES: usize = 1 << 20;

/// Writes of one file under way at most. Two overlap the device with the caller; the device itself is as fast
/// with one of 1 MiB at a time as with more.
const UNDER_WAY_MAX: usize = 2;

/// A file appended to with `O_DIRECT`.
///
/// Invariants: `base` is a multiple of the block size; everything before it was written or is under way;
/// `buffer[..filled]` are the bytes from `base` on. Any error is final.
#[derive(Debug)]
pub(super) struct DirectWriteFile {
    file: Arc<File>,
    /// `None` only while a full buffer is being exchanged for an empty one.
    buffer: Option<AlignedBuffer>,
    buffer_bytes: usize,
    filled: usize,
    base: u64,
    /// The file may be longer, or own more blocks, than was appended.
    cut_at_finish: bool,
    /// Length at the last successful sync.
    synced_len: Option<u64>,
    under_way: Arc<UnderWay>,
    pool: Arc<BufferPool>,
    writers: Arc<Writers>,
    poison: Poison,
}

impl DirectWriteFile {
    pub(super) fn new(
        file: File,
        buffer_bytes: usize,
        cut_at_finish: bool,
        pool: Arc<BufferPool>,
        writers: Arc<Writers>,
    ) -> Self {
        let buffer_bytes = if buffer_bytes == 0 {
            DIRECT_BUFFER_BYTES
        } else {
            buffer_bytes
        };
        Self {
            file: Arc::new(file),
            buffer: None,
            buffer_bytes,
            filled: 0,
            base: 0,
            cut_at_finish,
            synced_len: None,
            under_way: Arc::new(UnderWay::default()),
            pool,
            writers,
            poison: Poison::default(),
        }
    }

    fn gather(&mut self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let mut buffer = match self.buffer.take() {
                Some(buffer) => buffer,
                None => self.empty_buffer()?,
            };
            let take = data.len().min(buffer.len() - self.filled);
            let (now, later) = data.split_at(take);
            buffer[self.filled..self.filled + take].copy_from_slice(now);
            self.filled += take;
            data = later;
            if self.filled < buffer.len() {
                self.buffer = Some(buffer);
            } else {
                let len = buffer.len() as u64;
                self.writers.write(&self.file, buffer, self.base, &self.under_way);
                self.base += len;
                self.filled = 0;
            }
        }
        Ok(())
    }

    /// Waits while too many writes are under way, so that the new buffer is one of those that came back.
    fn empty_buffer(&self) -> io::Result<AlignedBuffer> {
        let spare = self.under_way.wait_until(UNDER_WAY_MAX)?;
        Ok(spare.unwrap_or_else(|| self.pool.take(self.buffer_bytes)))
    }

    /// Waits for what is under way, then writes the buffer's whole blocks.
    fn write_blocks(&mut self) -> io::Result<()> {
        if let Some(spare) = self.under_way.wait_until(0)? {
            self.pool.give(spare);
        }
        let whole = round_down(self.filled);
        if let Some(buffer) = &mut self.buffer
            && whole > 0
        {
            write_in_turn(self.writers.traffic(), &self.file, self.base, &buffer[..whole])?;
            buffer.copy_within(whole..self.filled, 0);
            self.base += whole as u64;
            self.filled -= whole;
        }
        Ok(())
    }

    /// Writes the tail, padded; it stays in the buffer.
    fn write_tail(&mut self) -> io::Result<()> {
        if let Some(buffer) = &mut self.buffer
            && self.filled > 0
        {
            buffer[self.filled..BLOCK_BYTES].fill(0);
            write_full_at(&self.file, self.base, &buffer[..BLOCK_BYTES])?;
        }
        Ok(())
    }

    fn write_and_sync(&mut self) -> io::Result<()> {
        self.write_blocks()?;
        self.write_tail()?;
        if self.filled > 0 && !self.cut_at_finish {
            self.file.set_len(self.len())?;
        }
        self.file.sync_data()
    }

    fn write_and_cut(&mut self, sync: bool) -> io::Result<()> {
        self.write_blocks()?;
        self.write_tail()?;
        if self.filled > 0 || self.cut_at_finish {
            self.file.set_len(self.len())?;
            self.cut_at_finish = false;
        }
        if sync { self.file.sync_all() } else { Ok(()) }
    }
}

impl WriteFile for DirectWriteFile {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.poison.check()?;
        let result = self.gather(data);
        self.poison.keep(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.poison.check()?;
        let result = self.write_blocks();
        self.poison.keep(result)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.poison.check()?;
        if self.synced_len == Some(self.len()) {
            return Ok(());
        }
        let result = self.write_and_sync();
        self.poison.keep(result)?;
        self.synced_len = Some(self.len());
        Ok(())
    }

    fn len(&self) -> u64 {
        self.base + self.filled as u64
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.poison.check()?;
        if let Some(spare) = self.under_way.wait_until(0)? {
            self.pool.give(spare);
        }
        (self.base, self.filled, self.synced_len) = (0, 0, None);
        self.cut_at_finish = true;
        Ok(())
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        self.poison.check()?;
        let result = self.write_and_cut(sync);
        self.poison.keep(result)
    }
}

impl Drop for DirectWriteFile {
    /// No write may reach the file later: it may be removed or reused by then.
    fn drop(&mut self) {
        // An error here concerns a file that was given up; one that matters was seen by `finish`.
        while let Ok(Some(spare)) = self.under_way.wait_until(0) {
            self.pool.give(spare);
        }
        let left = self.under_way.take_spare();
        for buffer in left.into_iter().chain(self.buffer.take()) {
            self.pool.give(buffer);
        }
    }
}
