//! A part of one blob file in memory.

use super::reader::BlobReader;
use crate::error::Result;

/// What direct I/O wants offset, length and address to be multiples of.
const ALIGNMENT: usize = 4 << 10;

/// Buffers that are more than this many times larger than needed are let go.
const OVERSIZE: usize = 4;

/// A part of one blob file in memory. Read in whole aligned blocks, so that direct I/O goes straight into the buffer.
///
/// Invariant: `at + len <= buffer.len()`.
#[derive(Debug, Default)]
pub(super) struct Window {
    buffer: Vec<u8>,
    /// Where in the buffer the window begins, and what of the file it is.
    at: usize,
    start: u64,
    len: usize,
}

impl Window {
    /// Whether all of `from..end` is here.
    #[inline]
    pub(super) fn holds(&self, from: u64, end: u64) -> bool {
        from >= self.start && end <= self.start + self.len as u64
    }

    /// `from..end` of the file; `None` if it is not here.
    #[inline]
    pub(super) fn get(&self, from: u64, end: u64) -> Option<&[u8]> {
        if !self.holds(from, end) {
            return None;
        }
        let at = self.at + (from - self.start) as usize;
        self.buffer.get(at..at + end.checked_sub(from)? as usize)
    }

    /// Bytes that the buffer takes.
    #[inline]
    pub(super) fn memory_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes of a buffer for a window of `bytes`, wherever it begins: blocks may be cut at both ends, and the buffer
    /// begins where the allocator likes.
    pub(super) fn room(bytes: usize) -> usize {
        bytes.saturating_add(3 * ALIGNMENT)
    }

    /// The longest window that [`room`](Self::room) puts into a buffer of `room` bytes.
    pub(super) fn bytes_for(room: usize) -> usize {
        room.saturating_sub(3 * ALIGNMENT)
    }

    /// Holds nothing any more, and takes no memory.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Reads `from..end`, which must begin in front of the footer and is cut there, rounded out to whole blocks. Gives the
    /// bytes read.
    pub(super) fn fill(&mut self, reader: &BlobReader, from: u64, end: u64) -> Result<usize> {
        let block = ALIGNMENT as u64;
        let start = from - from % block;
        let end = end.min(reader.records_end());
        let least = end.saturating_sub(start) as usize;
        let read = least.next_multiple_of(ALIGNMENT);
        let room = read + ALIGNMENT;
        self.len = 0;
        if self.buffer.len() < room || self.buffer.len() / OVERSIZE > room {
            // Let go first, so that there are never two.
            self.buffer = Vec::new();
            self.buffer = vec![0; room];
        }
        self.at = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        // The file's last block may be short; what counts is that the records came.
        reader.read_least(start, &mut self.buffer[self.at..self.at + read], least)?;
        self.start = start;
        self.len = least;
        Ok(least)
    }

    /// Reads exactly `from..end`, which must lie in front of the footer.
    pub(super) fn fill_exact(&mut self, reader: &BlobReader, from: u64, end: u64) -> Result<usize> {
        let len = end.saturating_sub(from) as usize;
        self.len = 0;
        if self.buffer.len() < len || self.buffer.len() / OVERSIZE > len.max(ALIGNMENT) {
            self.buffer = Vec::new();
            self.buffer = vec![0; len.next_multiple_of(ALIGNMENT)];
        }
        self.at = 0;
        reader.read_exact(from, &mut self.buffer[..len])?;
        self.start = from;
        self.len = len;
        Ok(len)
    }
}
