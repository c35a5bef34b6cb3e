//! Small reads go before large transfers.
//!
//! A device works through what it was given in about the order in which it came. Somebody who reads a block waits behind
//! every MiB that a flush or a compaction has under way, and with many readers the device serves transfers of MiBs for
//! most of its time. So while there are small reads under way, large direct transfers go in pieces, one piece at a time
//! over all files. Each side then has its turn: a piece is done in about the time of some dozens of small reads. Where nobody
//! reads, transfers are whole, and as many as there are.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::ReentrantMutex;

/// Reads of up to this many bytes go first.
const SMALL_BYTES: usize = 64 << 10;

/// The pieces of a large transfer, in bytes.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// Who uses the device: the direct reads and writes of one file system.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Small reads under way. A hint, so nothing is ordered by it.
    reads: AtomicUsize,
    /// Held by the transfer whose piece is under way; more than once where a piece is a batch of reads of which one has to
    /// be read again.
    turn: ReentrantMutex<()>,
}

impl Traffic {
    /// Runs a read of `bytes` bytes, which is counted for as long as it takes if it is small.
    #[inline]
    pub(super) fn read<R>(&self, bytes: usize, read: impl FnOnce() -> R) -> R {
        if bytes > SMALL_BYTES {
            return read();
        }
        self.read_small(read)
    }

    /// Runs what is a small read, or a batch of them, however many bytes they have together.
    #[inline]
    pub(super) fn read_small<R>(&self, read: impl FnOnce() -> R) -> R {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let result = read();
        self.reads.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Whether there are small reads under way.
    #[inline]
    pub(super) fn has_small_reads(&self) -> bool {
        self.reads.load(Ordering::Relaxed) > 0
    }

    /// Runs what is a piece of a large transfer, once no other piece is under way.
    pub(super) fn in_turn<R>(&self, piece: impl FnOnce() -> R) -> R {
        let _turn = self.turn.lock();
        piece()
    }

    /// Calls `transfer(from, to)` for the ranges of a transfer of `bytes` bytes, in order, until one ends it by an error or
    /// `Ok(false)`.
    pub(super) fn transfer<E>(
        &self,
        bytes: usize,
        mut transfer: impl FnMut(usize, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut done = 0;
        while done < bytes {
            let next;
            let goes_on = if bytes - done <= SMALL_BYTES || !self.has_small_reads() {
                next = bytes;
                transfer(done, next)?
            } else {
                next = bytes.min(done + PIECE_BYTES);
                self.in_turn(|| transfer(done, next))?
            };
            if !goes_on {
                break;
            }
            done = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(traffic: &Traffic, bytes: usize) -> Vec<(usize, usize)> {
        let mut ranges = Vec::new();
        let all: Result<(), ()> = traffic.transfer(bytes, |from, to| {
            ranges.push((from, to));
            Ok(true)
        });
        all.unwrap();
        ranges
    }

    #[test]
    fn a_transfer_is_whole_unless_somebody_reads_a_little() {
        let traffic = Traffic::default();
        assert_eq!(ranges(&traffic, 1 << 20), [(0, 1 << 20)]);
        assert!(ranges(&traffic, 0).is_empty());
        traffic.read(4096, || {
            let pieces = ranges(&traffic, 300 << 10);
            assert_eq!(
                pieces,
                [(0, 128 << 10), (128 << 10, 256 << 10), (256 << 10, 300 << 10)]
            );
            assert_eq!(ranges(&traffic, 64 << 10), [(0, 64 << 10)], "as small as a read");
        });
        traffic.read_small(|| assert_eq!(ranges(&traffic, 256 << 10).len(), 2));
        traffic.read(1 << 20, || {
            assert_eq!(
                ranges(&traffic, 1 << 20),
                [(0, 1 << 20)],
                "large reads don't count"
            );
        });
        assert_eq!(ranges(&traffic, 1 << 20), [(0, 1 << 20)]);
    }

    #[test]
    fn a_transfer_ends_where_it_is_told_to() {
        let traffic = Traffic::default();
        traffic.read(1, || {
            let mut calls = 0;
            let failed = traffic.transfer(1 << 20, |_, _| {
                calls += 1;
                if calls == 2 { Err("full") } else { Ok(true) }
            });
            assert_eq!((failed, calls), (Err("full"), 2));
            let ended: Result<(), ()> = traffic.transfer(1 << 20, |_, _| {
                calls += 1;
                Ok(false)
            });
            assert_eq!((ended, calls), (Ok(()), 3));
        });
    }
}
