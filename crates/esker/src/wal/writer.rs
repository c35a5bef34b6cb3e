//! Appends records to a segment, with one system call an append and no allocation once its buffer has grown.

use std::io;
use std::path::{Path, PathBuf};

use esker_env::WriteFile;

use super::format::{
    FORMAT_VERSION, FRAGMENT_HEADER_BYTES, Kind, SegmentHeader, SegmentId, put_fragment, room_at,
};
use crate::error::{Error, ErrorKind, Result};

/// Framed bytes that are handed on at once; a longer append takes several calls.
const CHUNK_BYTES: usize = 1 << 20;

/// Where the file of a segment comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was created for this segment: what follows the log is zeros or a torn record.
    Fresh,
    /// It held another segment before: what follows the log may be anything.
    Recycled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Its end is marked; it may still be synced.
    Sealed,
    /// The file may hold any part of the last append.
    AppendFailed,
    /// Finished, or a sync failed.
    Done,
}

/// The writer of one segment.
///
/// Invariant: while `Open`, `offset` is the length of the file. Any error is final: were the place of a failed append
/// written again, shorter, a record behind it that was refused could come back to life. The log goes on in another
/// segment; `finish` tidies this one.
#[derive(Debug)]
pub struct WalWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    id: SegmentId,
    offset: u64,
    records: u64,
    /// Bytes of header and carried records.
    carried_end: u64,
    framed: Vec<u8>,
    state: State,
}

impl WalWriter {
    /// Starts a segment in an empty or reused file: writes its header. `path` is for messages.
    pub fn new(file: Box<dyn WriteFile>, path: &Path, id: SegmentId, origin: Origin) -> Result<Self> {
        let mut writer = Self {
            file,
            path: path.to_owned(),
            id,
            offset: 0,
            records: 0,
            carried_end: 0,
            framed: Vec::new(),
            state: State::Open,
        };
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            id,
            recycled: origin == Origin::Recycled,
        };
        writer.framed.extend_from_slice(&header.encode());
        writer.hand_on()?;
        Ok(writer)
    }

    /// Appends one record; gives the bytes that the segment grew by.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<u64> {
        self.append_group(&[payload])
    }

    /// Appends several records, in order, with one system call (for up to a MiB); gives the bytes that the segment
    /// grew by. A crash may take any of the last ones.
    pub fn append_group(&mut self, payloads: &[&[u8]]) -> Result<u64> {
        self.check()?;
        let before = self.offset;
        self.framed.clear();
        for payload in payloads {
            self.frame(payload)?;
        }
        self.hand_on()?;
        self.records += payloads.len() as u64;
        Ok(self.offset - before)
    }

    /// Appends the records that are carried over from the segment before, and waits until they are on the device. They
    /// don't count as records of this segment.
    pub fn carry(&mut self, payloads: &[&[u8]]) -> Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        self.append_group(payloads)?;
        self.records = 0;
        self.carried_end = self.offset;
        self.sync()
    }

    /// Bytes that were carried over from the segment before.
    pub fn carried_bytes(&self) -> u64 {
        self.carried_end
    }

    /// Hands on what the file buffers in the process.
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if let Err(error) = self.file.flush() {
            self.state = State::AppendFailed;
            return Err(self.failure("flush", error));
        }
        Ok(())
    }

    /// Marks the end of the log, so that recovery can tell a log that goes on in the next segment from one whose last
    /// records were lost. Nothing can be appended any more; `sync` can still be called.
    pub fn seal(&mut self) -> Result<()> {
        self.check()?;
        self.mark_end()?;
        self.flush()?;
        self.state = State::Sealed;
        Ok(())
    }

    /// Waits until all that was appended is on the device. An error is final.
    pub fn sync(&mut self) -> Result<()> {
        if self.state != State::Sealed {
            self.check()?;
        }
        let result = self.file.sync();
        if result.is_err() {
            self.state = State::Done;
        }
        result.map_err(|error| self.failure("sync", error))
    }

    /// Marks the end of the log, cuts the file there, and waits for the device if `sync`. The writer is done.
    /// After an append that failed, this cuts off what the file may hold of it and sets no mark, so that it needs
    /// no room on a device that is full.
    pub fn finish(&mut self, sync: bool) -> Result<()> {
        if self.state == State::AppendFailed {
            return self.cut(sync);
        }
        self.check()?;
        self.mark_end()?;
        self.cut(sync)
    }

    fn mark_end(&mut self) -> Result<()> {
        self.framed.clear();
        self.pad_block();
        let offset = self.next_offset();
        put_fragment(&mut self.framed, self.id, offset, Kind::End, &[]);
        self.hand_on()
    }

    /// Hands on what the file buffers and cuts the file where the log ends, which gives back what was preallocated
    /// beyond. Sets no mark and waits for nothing: what a power cut takes of it afterwards was never called durable, and
    /// has to read as a torn end, not as damage before an end that was marked. The writer is done.
    pub fn close(&mut self) -> Result<()> {
        if !matches!(self.state, State::Sealed | State::AppendFailed) {
            self.check()?;
        }
        self.cut(false)
    }

    fn cut(&mut self, sync: bool) -> Result<()> {
        self.state = State::Done;
        let result = self.file.finish(sync);
        result.map_err(|error| self.failure("finish", error))
    }

    /// The file of a sealed segment, to be used again; `None` where a part of it may be missing.
    pub fn into_sealed_file(self) -> Option<Box<dyn WriteFile>> {
        (self.state == State::Sealed).then_some(self.file)
    }

    /// Length of the segment in bytes, its header included.
    pub fn len(&self) -> u64 {
        self.offset
    }

    /// Whether the segment holds no record of its own yet.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Records appended so far, without those that were carried over.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Which segment this is.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// Where the segment is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The offset that the next framed byte will have.
    fn next_offset(&self) -> u64 {
        self.offset + self.framed.len() as u64
    }

    /// Zeros up to the next block if this one is too full for a fragment.
    fn pad_block(&mut self) {
        let room = room_at(self.next_offset());
        if room < FRAGMENT_HEADER_BYTES {
            self.framed.resize(self.framed.len() + room, 0);
        }
    }

    fn frame(&mut self, payload: &[u8]) -> Result<()> {
        let mut rest = payload;
        let mut is_first = true;
        loop {
            if self.framed.len() >= CHUNK_BYTES {
                self.hand_on()?;
                self.framed.clear();
            }
            self.pad_block();
            let offset = self.next_offset();
            let take = rest.len().min(room_at(offset) - FRAGMENT_HEADER_BYTES);
            let (now, later) = rest.split_at(take);
            let kind = match (is_first, later.is_empty()) {
                (true, true) => Kind::Full,
                (true, false) => Kind::First,
                (false, false) => Kind::Middle,
                (false, true) => Kind::Last,
            };
            put_fragment(&mut self.framed, self.id, offset, kind, now);
            if later.is_empty() {
                return Ok(());
            }
            rest = later;
            is_first = false;
        }
    }

    /// Gives the framed bytes to the file.
    fn hand_on(&mut self) -> Result<()> {
        if let Err(error) = self.file.append(&self.framed) {
            self.state = State::AppendFailed;
            return Err(self.failure("append to", error));
        }
        self.offset += self.framed.len() as u64;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.state != State::Open {
            let message = "the WAL segment failed or was finished before and takes no more writes";
            return Err(Error::new(ErrorKind::ReadOnly, message).in_file(&self.path));
        }
        Ok(())
    }

    #[cold]
    fn failure(&self, what: &str, error: io::Error) -> Error {
        Error::io(format!("can't {what} the WAL segment"), error)
            .in_file(&self.path)
            .at_offset(self.offset)
    }
}
