//! Reads that are started before somebody needs what they bring.

use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::{BatchRead, RandomFile};

/// What direct I/O wants offset, length and address to be multiples of.
const ALIGNMENT: usize = 4 << 10;

/// A range of a file, rounded out to whole blocks, and where it goes.
#[derive(Debug)]
struct Range {
    file: Arc<dyn RandomFile>,
    offset: u64,
    len: usize,
    at: usize,
    result: io::Result<usize>,
}

/// Ranges of files that are read together into one buffer, which is used again for the next ones.
#[derive(Debug, Default)]
pub struct AheadBatch {
    ranges: Vec<Range>,
    /// Bytes of all ranges.
    bytes: usize,
    buffer: Vec<u8>,
    /// Where in the buffer the first range begins, so that its address is aligned.
    base: usize,
}

impl AheadBatch {
    /// Forgets its ranges and keeps its buffer.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds `offset..offset + len` of a file, which must not be empty; gives the number that it has here. What is read is rounded
    /// out to whole blocks of 4 KiB.
    pub fn add(&mut self, file: Arc<dyn RandomFile>, offset: u64, len: usize) -> usize {
        let skip = (offset % ALIGNMENT as u64) as usize;
        let len = (skip + len).next_multiple_of(ALIGNMENT);
        self.ranges.push(Range {
            file,
            offset: offset - skip as u64,
            len,
            at: self.bytes,
            result: Ok(0),
        });
        self.bytes += len;
        self.ranges.len() - 1
    }

    /// Does all reads, by a call of `read_many`.
    pub fn run(&mut self, read_many: impl FnOnce(&mut [BatchRead<'_>])) {
        let room = self.bytes + ALIGNMENT;
        if self.buffer.len() < room {
            // Let go first, so that there are never two.
            self.buffer = Vec::new();
            self.buffer = vec![0; room];
        }
        self.base = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let mut rest = &mut self.buffer[self.base..];
        let mut reads = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            let (buf, later) = rest.split_at_mut(range.len);
            rest = later;
            reads.push(BatchRead::new(&*range.file, range.offset, buf));
        }
        read_many(&mut reads);
        let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
        for (range, result) in self.ranges.iter_mut().zip(results) {
            range.result = result;
        }
    }

    /// `offset..offset + len` of the file, out of a range that was read; `None` where that did not bring it.
    #[inline]
    pub fn get(&self, number: usize, offset: u64, len: usize) -> Option<&[u8]> {
        let range = self.ranges.get(number)?;
        let read = *range.result.as_ref().ok()?;
        let skip = usize::try_from(offset.checked_sub(range.offset)?).ok()?;
        if skip.checked_add(len)? > read {
            return None;
        }
        let at = self.base + range.at + skip;
        self.buffer.get(at..at + len)
    }
}

#[derive(Debug)]
enum State {
    /// Nobody reads yet.
    Waiting(AheadBatch),
    UnderWay,
    Done(AheadBatch),
    /// Nobody wants it any more.
    Left,
}

/// What who reads and who waits share.
#[derive(Debug)]
pub(crate) struct Started {
    state: Mutex<State>,
    done: Condvar,
}

impl Started {
    /// The batch, if nobody has begun to read it.
    pub(crate) fn begin(&self) -> Option<AheadBatch> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::UnderWay) {
            State::Waiting(batch) => Some(batch),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Gives back a batch that [`begin`](Self::begin) gave, read.
    pub(crate) fn complete(&self, batch: AheadBatch) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Left) {
            *state = State::Done(batch);
            // Under the lock, which the waiter needs to go on.
            self.done.notify_one();
        }
    }
}

/// A batch whose reads were started. When it is dropped, reads that nobody has begun are not done.
#[derive(Debug)]
pub struct ReadAhead(Arc<Started>);

impl ReadAhead {
    /// For a batch that is still to be read.
    pub(crate) fn waiting(batch: AheadBatch) -> (Self, Arc<Started>) {
        Self::in_state(State::Waiting(batch))
    }

    /// For a batch that was read already.
    pub fn done(batch: AheadBatch) -> Self {
        Self::in_state(State::Done(batch)).0
    }

    fn in_state(state: State) -> (Self, Arc<Started>) {
        let started = Arc::new(Started {
            state: Mutex::new(state),
            done: Condvar::new(),
        });
        (Self(Arc::clone(&started)), started)
    }

    /// Waits for the reads, and gives the batch. What nobody has begun yet is read here, by `read_many`.
    pub fn wait(self, read_many: impl FnOnce(&mut [BatchRead<'_>])) -> AheadBatch {
        if let Some(mut batch) = self.0.begin() {
            batch.run(read_many);
            return batch;
        }
        let mut state = self.0.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Left) {
                State::Done(batch) => return batch,
                // Only `drop` and this leave it.
                State::Left => return AheadBatch::default(),
                other => *state = other,
            }
            self.0.done.wait(&mut state);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        *self.0.state.lock() = State::Left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Numbers(usize);

    impl RandomFile for Numbers {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
            let len = self.0.saturating_sub(offset as usize).min(buf.len());
            for (i, byte) in buf[..len].iter_mut().enumerate() {
                *byte = ((offset as usize + i) % 251) as u8;
            }
            Ok(len)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.0 as u64)
        }
    }

    fn one_by_one(reads: &mut [BatchRead<'_>]) {
        for read in reads {
            assert!(read.buf.as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert!(read.offset.is_multiple_of(ALIGNMENT as u64));
            read.run();
        }
    }

    fn check(batch: &AheadBatch, number: usize, offset: u64, len: usize) {
        let expected: Vec<u8> = (offset..offset + len as u64).map(|i| (i % 251) as u8).collect();
        assert_eq!(batch.get(number, offset, len).unwrap(), expected);
    }

    fn wanted() -> AheadBatch {
        let file: Arc<dyn RandomFile> = Arc::new(Numbers(20_000));
        let mut batch = AheadBatch::default();
        assert_eq!(batch.add(Arc::clone(&file), 5000, 3000), 0);
        assert_eq!(batch.add(Arc::clone(&file), 0, 1), 1);
        assert_eq!(batch.add(file, 19_000, 1000), 2);
        batch
    }

    #[test]
    fn ranges_come_from_their_places_and_nothing_else_does() {
        let mut batch = wanted();
        for _ in 0..2 {
            batch.run(one_by_one);
            check(&batch, 0, 5000, 3000);
            check(&batch, 0, 4096, 4096);
            check(&batch, 1, 0, 4096);
            check(&batch, 2, 19_000, 1000);
        }
        for (number, offset, len) in [
            (0, 4095, 1),
            (0, 8192, 1),
            (1, 1, 4096),
            (2, 19_001, 1000),
            (3, 0, 1),
        ] {
            assert!(
                batch.get(number, offset, len).is_none(),
                "{len} at {offset} of {number}"
            );
        }
        batch.clear();
        assert!(batch.is_empty() && batch.get(0, 5000, 1).is_none());
    }

    #[test]
    fn what_nobody_has_begun_is_read_by_who_waits() {
        let (ahead, started) = ReadAhead::waiting(wanted());
        let batch = ahead.wait(one_by_one);
        check(&batch, 0, 5000, 3000);
        assert!(started.begin().is_none());
    }

    #[test]
    fn what_nobody_wants_any_more_is_not_begun() {
        let (ahead, started) = ReadAhead::waiting(wanted());
        drop(ahead);
        assert!(started.begin().is_none());
    }

    #[test]
    fn who_waits_gets_what_another_thread_reads() {
        for left in [false, true] {
            let (ahead, started) = ReadAhead::waiting(wanted());
            let mut batch = started.begin().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    batch.run(one_by_one);
                    started.complete(batch);
                });
                if left {
                    drop(ahead);
                } else {
                    check(&ahead.wait(|_| unreachable!()), 2, 19_000, 1000);
                }
            });
        }
    }
}
