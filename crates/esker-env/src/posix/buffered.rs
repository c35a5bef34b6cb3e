//! Files through the page cache.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::locked::LockedPart;
use super::system::{Poison, read_full_at, write_full_at};
use crate::{IoMode, RandomFile, WriteFile};

/// A file read through the page cache.
#[derive(Debug)]
pub(super) struct BufferedRandomFile(pub(super) File);

impl RandomFile for BufferedRandomFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        read_full_at(&self.0, offset, buf)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, IoMode)> {
        Some((self.0.as_fd(), IoMode::Buffered))
    }

    fn expect_random_reads(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::Random);
    }
}

/// A file appended to through the page cache, behind an optional buffer in the process. Once it was rewound, its front
/// may be locked in memory instead.
///
/// Invariant: `buffer` holds the bytes from `written` on. An append that fails leaves both as they were, so that
/// it can be tried again (a device that was full may have room by then), or be cut off by `finish`.
#[derive(Debug)]
pub(super) struct BufferedWriteFile {
    file: File,
    written: u64,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    /// The file may be longer, or own more blocks, than was appended.
    cut_at_finish: bool,
    /// Bytes at its front to lock in memory when the file is used again.
    lock_bytes: u64,
    locked: Option<LockedPart>,
    poison: Poison,
}

impl BufferedWriteFile {
    pub(super) fn new(file: File, buffer_bytes: usize, cut_at_finish: bool) -> Self {
        Self {
            file,
            written: 0,
            buffer: Vec::with_capacity(buffer_bytes),
            buffer_bytes,
            cut_at_finish,
            lock_bytes: 0,
            locked: None,
            poison: Poison::default(),
        }
    }

    /// The same with `bytes` at its front, which were allocated, to be locked in memory when it is used again.
    pub(super) fn locking(mut self, bytes: u64) -> Self {
        self.lock_bytes = bytes;
        self
    }

    fn write_out(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            let result = write_full_at(&self.file, self.written, &self.buffer);
            self.written(self.buffer.len(), result)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Counts a write that succeeded; one that failed may have left a part behind the appended length.
    pub(super) fn written(&mut self, len: usize, result: io::Result<()>) -> io::Result<()> {
        match result {
            Ok(()) => self.written += len as u64,
            Err(_) => self.cut_at_finish = true,
        }
        result
    }
}

impl WriteFile for BufferedWriteFile {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.poison.check()?;
        if self.buffer.len() + data.len() > self.buffer_bytes {
            self.write_out()?;
        }
        if self.buffer.is_empty()
            && let Some(locked) = &mut self.locked
            && locked.write(self.written, data)
        {
            self.written += data.len() as u64;
        } else if data.len() >= self.buffer_bytes {
            let result = write_full_at(&self.file, self.written, data);
            self.written(data.len(), result)?;
        } else {
            self.buffer.extend_from_slice(data);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.poison.check()?;
        self.write_out()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let result = self.file.sync_data();
        self.poison.keep(result)
    }

    fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.poison.check()?;
        self.buffer.clear();
        self.written = 0;
        self.cut_at_finish = true;
        if self.locked.is_none() && self.lock_bytes > 0 {
            self.locked = LockedPart::new(&self.file, self.lock_bytes);
        }
        Ok(())
    }

    fn locked_bytes(&self) -> u64 {
        self.locked.as_ref().map_or(0, LockedPart::len)
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        self.flush()?;
        self.locked = None;
        if self.cut_at_finish {
            self.file.set_len(self.written)?;
            self.cut_at_finish = false;
        }
        if sync {
            let result = self.file.sync_all();
            self.poison.keep(result)?;
        }
        Ok(())
    }
}
