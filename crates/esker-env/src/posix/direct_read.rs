//! Files read past the page cache.
//!
//! The device wants address, offset and length aligned. A read that is aligned already goes straight into the
//! caller's buffer; any other goes through a buffer of the thread, rounded out to whole blocks.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::aligned::{AlignedBuffer, BLOCK_BYTES, round_up};
use super::system::read_full_at;
use super::traffic::Traffic;
use crate::{IoMode, RandomFile};

/// The thread's buffer starts with this many bytes …
const BOUNCE_BYTES_MIN: usize = 64 << 10;
/// … and doubles up to this; a longer read is done in pieces of it.
const BOUNCE_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static BOUNCE: RefCell<Option<AlignedBuffer>> = const { RefCell::new(None) };
}

/// A file read with `O_DIRECT`.
#[derive(Debug)]
pub(super) struct DirectRandomFile {
    pub(super) file: File,
    pub(super) traffic: Arc<Traffic>,
}

impl RandomFile for DirectRandomFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let block = BLOCK_BYTES as u64;
        if buf.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
            && offset.is_multiple_of(block)
            && buf.len().is_multiple_of(BLOCK_BYTES)
        {
            return self.read_aligned(offset, buf);
        }
        BOUNCE.with_borrow_mut(|slot| {
            let mut done = 0;
            while done < buf.len() {
                let at = offset + done as u64;
                let skip = (at % block) as usize;
                let want = round_up(skip + (buf.len() - done).min(BOUNCE_BYTES_MAX - skip));
                let bounce = at_least(slot, want);
                let got = self.read_aligned(at - skip as u64, &mut bounce[..want])?;
                let take = got.saturating_sub(skip).min(buf.len() - done);
                buf[done..done + take].copy_from_slice(&bounce[skip..skip + take]);
                done += take;
                if got < want {
                    break;
                }
            }
            Ok(done)
        })
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, IoMode)> {
        Some((self.file.as_fd(), IoMode::Direct))
    }
}

impl DirectRandomFile {
    /// Reads blocks; a small read at once, a large one in pieces while there are small ones.
    fn read_aligned(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len();
        self.traffic.read(len, || {
            let mut done = 0;
            self.traffic.transfer(len, |from, to| {
                let got = self.read_blocks(offset + from as u64, &mut buf[from..to])?;
                done += got;
                Ok::<bool, io::Error>(got == to - from)
            })?;
            Ok(done)
        })
    }

    /// Reads blocks. The system gives a part of a block only where the file ends, and would refuse to go on from
    /// there, so that such a read is the last.
    fn read_blocks(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match std::os::unix::fs::FileExt::read_at(&self.file, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => {
                    done += n;
                    if !n.is_multiple_of(BLOCK_BYTES) {
                        // Also after a short read inside the file: the rest must start at a block again.
                        return self.read_rest(offset, done, buf);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// After a read that ended inside a block: done if the file ends there, else that block is read again.
    fn read_rest(&self, offset: u64, done: usize, buf: &mut [u8]) -> io::Result<usize> {
        if offset + done as u64 >= self.len()? {
            return Ok(done);
        }
        let whole = super::aligned::round_down(done);
        let rest = read_full_at(&self.file, offset + whole as u64, &mut buf[whole..])?;
        Ok(whole + rest)
    }
}

/// The thread's buffer, grown to `len` bytes.
fn at_least(slot: &mut Option<AlignedBuffer>, len: usize) -> &mut AlignedBuffer {
    if slot.as_ref().is_some_and(|buffer| buffer.len() < len) {
        *slot = None;
    }
    slot.get_or_insert_with(|| AlignedBuffer::new(len.next_power_of_two().max(BOUNCE_BYTES_MIN)))
}
