//! Large reads under the reader: a window of whole blocks that moves over the file.

use std::io;
use std::sync::Arc;

use esker_env::RandomFile;

use super::format::BLOCK_BYTES;

/// Bytes read at once.
const WINDOW_BYTES: usize = 8 * BLOCK_BYTES;

/// A segment's bytes. Its length is what the file had when it was opened.
#[derive(Debug)]
pub(super) struct Source {
    file: Arc<dyn RandomFile>,
    len: u64,
    window: Vec<u8>,
    /// Offset of the window, a multiple of its size; `u64::MAX` before the first read.
    window_offset: u64,
}

impl Source {
    pub(super) fn new(file: Arc<dyn RandomFile>) -> io::Result<Self> {
        Ok(Self {
            len: file.len()?,
            file,
            window: Vec::new(),
            window_offset: u64::MAX,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Brings the block of `offset` into the window and gives the window's bytes from `offset` to the end of that
    /// block, or of the file; and where they start in the window.
    pub(super) fn block_from(&mut self, offset: u64) -> io::Result<(usize, &[u8])> {
        let window_offset = offset - offset % WINDOW_BYTES as u64;
        if window_offset != self.window_offset {
            self.window_offset = u64::MAX;
            let want = self.len.saturating_sub(window_offset).min(WINDOW_BYTES as u64) as usize;
            self.window.resize(want, 0);
            self.file.read_exact_at(window_offset, &mut self.window)?;
            self.window_offset = window_offset;
        }
        let start = ((offset - window_offset) as usize).min(self.window.len());
        let block_end = (start / BLOCK_BYTES + 1) * BLOCK_BYTES;
        Ok((start, &self.window[start..block_end.min(self.window.len())]))
    }

    /// Bytes of the window, by where they start in it.
    pub(super) fn window(&self, start: usize, len: usize) -> &[u8] {
        self.window.get(start..start + len).unwrap_or_default()
    }

    /// Whether there is nothing but zeros from `offset` on.
    pub(super) fn is_zero_from(&mut self, mut offset: u64) -> io::Result<bool> {
        while offset < self.len {
            let (_, bytes) = self.block_from(offset)?;
            if bytes.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            offset += bytes.len() as u64;
        }
        Ok(true)
    }
}
