//! Several reads under way at once, by io_uring: one system call hands them all to the device and waits for them.
//!
//! # Soundness
//! The kernel writes into memory while a read is under way, so every read goes into a buffer that belongs to its wave,
//! never into the caller's. The wave ends when all its reads have; if the ring fails before, ring and buffer are leaked
//! rather than freed under the kernel's hands.
//!
//! A completion that does not bring all that was asked for (an error, a short read, the end of the file) decides nothing:
//! the read is done again by `read_at`, whose answer counts.

use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use rustix::io::Errno;

use super::aligned::{AlignedBuffer, BLOCK_BYTES, round_up};
use super::pool::BufferPool;
use crate::{BatchRead, IoMode};

/// Reads that a ring has under way at most; more at a time give the device nothing more to choose from.
pub(super) const READS_MAX: usize = 64;
/// Rings that are kept while nobody uses them.
const IDLE_MAX: usize = 16;
/// Times that the kernel may be short of something before the ring is given up.
const RETRIES_MAX: usize = 1000;

/// The rings of a file system. Each serves one thread at a time.
#[derive(Debug, Default)]
pub(super) struct Rings {
    idle: Mutex<Vec<Ring>>,
    refused: AtomicBool,
}

struct Ring(IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

/// A read under way: what it takes of the file, and where that goes in the wave's buffer.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: u64,
    len: usize,
    at: usize,
    /// Where in the span the caller's bytes begin.
    skip: usize,
    /// What the kernel answered.
    result: i32,
}

/// The ring failed with reads under way; it is gone, and so is their buffer.
struct GivenUp;

impl Rings {
    /// Does the reads of a wave (at most [`READS_MAX`], of files that have a descriptor) at the same time; false, and
    /// nothing is done, where the kernel does not let us.
    pub(super) fn read(&self, wave: &mut [BatchRead<'_>], pool: &BufferPool) -> bool {
        let Some(ring) = self.ring() else { return false };
        let (mut spans, bytes) = spans(wave);
        let buffer = pool.take(bytes.next_power_of_two());
        let Ok((ring, buffer)) = ring.read(buffer, wave, &mut spans) else {
            self.refused.store(true, Ordering::Relaxed);
            return false;
        };
        // Rings of Linux 5.5 and before know no plain reads.
        if spans
            .iter()
            .all(|span| span.result == -Errno::INVAL.raw_os_error())
        {
            self.refused.store(true, Ordering::Relaxed);
        }
        for (read, span) in wave.iter_mut().zip(&spans) {
            span.finish(read, &buffer);
        }
        pool.give(buffer);
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(ring);
        }
        true
    }

    fn ring(&self) -> Option<Ring> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(ring) = self.idle.lock().pop() {
            return Some(ring);
        }
        // A container or a hardened system refuses all of them, an old kernel some: one refusal is enough.
        match IoUring::new(READS_MAX as u32) {
            Ok(ring) => Some(Ring(ring)),
            Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    #[cfg(test)]
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// What the reads take in the files and in a buffer, and how long that is. Direct ones are rounded out to whole blocks.
fn spans(wave: &[BatchRead<'_>]) -> (Vec<Span>, usize) {
    let mut bytes = 0;
    let mut spans = Vec::with_capacity(wave.len());
    for read in wave {
        let is_direct = matches!(read.file.descriptor(), Some((_, IoMode::Direct)));
        let skip = if is_direct {
            (read.offset % BLOCK_BYTES as u64) as usize
        } else {
            0
        };
        let wanted = skip + read.buf.len();
        spans.push(Span {
            offset: read.offset - skip as u64,
            len: if is_direct { round_up(wanted) } else { wanted },
            at: bytes,
            skip,
            result: 0,
        });
        bytes += round_up(wanted);
    }
    (spans, bytes)
}

impl Span {
    /// Hands the caller what the kernel read, or reads again.
    fn finish(&self, read: &mut BatchRead<'_>, buffer: &AlignedBuffer) {
        let wanted = self.skip + read.buf.len();
        if usize::try_from(self.result).is_ok_and(|count| count >= wanted) {
            read.buf
                .copy_from_slice(&buffer[self.at + self.skip..self.at + wanted]);
            read.result = Ok(read.buf.len());
        } else {
            read.run();
        }
    }
}

impl Ring {
    /// Does the reads of a wave, into `buffer`. Gives ring and buffer back once none of them is under way any more.
    fn read(
        self,
        buffer: AlignedBuffer,
        wave: &[BatchRead<'_>],
        spans: &mut [Span],
    ) -> Result<(Self, AlignedBuffer), GivenUp> {
        // Leaked on every way out but the last.
        let mut ring = ManuallyDrop::new(self);
        let mut buffer = ManuallyDrop::new(buffer);
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        let mut left = 0;
        for (i, (span, read)) in spans.iter().zip(wave).enumerate() {
            let Some((fd, _)) = read.file.descriptor() else {
                continue;
            };
            let Ok(span_len) = u32::try_from(span.len) else {
                continue;
            };
            if span.at + span.len > len {
                continue;
            }
            let to = start.wrapping_add(span.at);
            let entry = opcode::Read::new(types::Fd(fd.as_raw_fd()), to, span_len)
                .offset(span.offset)
                .build()
                .user_data(i as u64);
            // SAFETY: `to..to + span_len` lies in the buffer, as was just checked, and in no other span. The buffer is
            // freed or looked at only after all completions have come, which is the way out at the end. The file is open
            // while `wave` is borrowed, and once a read is submitted the kernel itself holds it open; what was not
            // submitted is forgotten with the ring.
            if unsafe { ring.0.submission().push(&entry) }.is_ok() {
                left += 1;
            }
        }
        let mut retries = 0;
        while left > 0 {
            match ring.0.submit_and_wait(left) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_shortage(&error) && retries < RETRIES_MAX => {
                    retries += 1;
                    std::thread::yield_now();
                }
                Err(_) => return Err(GivenUp),
            }
            for completion in ring.0.completion() {
                left = left.saturating_sub(1);
                if let Some(span) = spans.get_mut(completion.user_data() as usize) {
                    span.result = completion.result();
                }
            }
        }
        Ok((ManuallyDrop::into_inner(ring), ManuallyDrop::into_inner(buffer)))
    }
}

/// Whether the kernel may have what it lacks the next time.
fn is_shortage(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::AGAIN.raw_os_error()) || code == Some(Errno::BUSY.raw_os_error())
}
