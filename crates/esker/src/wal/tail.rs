//! Reads a segment that another process appends to: the records that are whole by now, and later what has come since.
//!
//! Nothing is judged here. Where no whole record of the segment stands, the tail waits in front of it, whether the record is
//! being written, was cut by a crash, or is damaged: whoever follows the log learns from the manifest when it goes on elsewhere.
//! A file that becomes another segment under the tail, or that is not this one yet, gives nothing either: each fragment's
//! checksum covers the number of its segment.
//!
//! What was read is read again only where it did not suffice, so bytes of a moment ago are never taken for those of now.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::RandomFile;

use super::format::{
    FORMAT_VERSION, FRAGMENT_HEADER_BYTES, FragmentHeader, Kind, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentId, room_at,
};
use crate::error::{Error, ErrorKind, Result};

/// Bytes read at once; more than a block.
const WINDOW_BYTES: usize = 256 << 10;

/// What stands at the place that a tail has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tailed<'a> {
    /// A whole record. The next one is read after [`WalTail::pass`].
    Record(&'a [u8]),
    /// The mark that the segment was finished: the log goes on in another one.
    Finished,
    /// No whole record, by now.
    Waiting,
}

enum Found {
    /// In the window: where it starts, and its length.
    Window(usize, usize),
    Assembled,
    Finished,
    Waiting,
}

/// A place in a segment that moves on as the segment grows.
#[derive(Debug)]
pub struct WalTail {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    id: SegmentId,
    /// Where the next record stands; 0: the header was not there yet.
    offset: u64,
    /// Behind the record that was given last.
    next: u64,
    /// Bytes of the file from `window_offset` on, as they were when they were read.
    window: Vec<u8>,
    window_offset: u64,
    assembled: Vec<u8>,
}

impl WalTail {
    /// A tail of the segment `id` that stands before its first record. `path` is for messages.
    pub fn new(file: Arc<dyn RandomFile>, path: &Path, id: SegmentId) -> Self {
        Self {
            file,
            path: path.to_owned(),
            id,
            offset: 0,
            next: 0,
            window: Vec::new(),
            window_offset: 0,
            assembled: Vec::new(),
        }
    }

    /// What stands at this place now; the same record again until it is [passed](Self::pass).
    ///
    /// # Errors
    /// `Io`; `Unsupported` if the format is newer; `Corruption` if the segment belongs to another database.
    pub fn read(&mut self) -> Result<Tailed<'_>> {
        let mut is_fresh = false;
        let mut found = self.find(&mut is_fresh)?;
        if matches!(found, Found::Waiting) && !is_fresh {
            self.window.clear();
            found = self.find(&mut is_fresh)?;
        }
        Ok(match found {
            Found::Window(start, len) => {
                Tailed::Record(self.window.get(start..start + len).unwrap_or_default())
            }
            Found::Assembled => Tailed::Record(&self.assembled),
            Found::Finished => Tailed::Finished,
            Found::Waiting => Tailed::Waiting,
        })
    }

    /// Goes behind the record that was read last.
    pub fn pass(&mut self) {
        self.offset = self.next;
    }

    /// `is_fresh` is set if bytes were read from the file.
    fn find(&mut self, is_fresh: &mut bool) -> Result<Found> {
        if self.offset == 0 && !self.read_header(is_fresh)? {
            return Ok(Found::Waiting);
        }
        let mut at = self.offset;
        let mut is_first = true;
        loop {
            if room_at(at) < FRAGMENT_HEADER_BYTES {
                at += room_at(at) as u64;
            }
            let Some((kind, start, len)) = self.fragment(at, is_fresh)? else {
                return Ok(Found::Waiting);
            };
            at += (FRAGMENT_HEADER_BYTES + len) as u64;
            self.next = at;
            match (kind, is_first) {
                (Kind::Full, true) => return Ok(Found::Window(start, len)),
                (Kind::End, true) => return Ok(Found::Finished),
                (Kind::First, true) => self.assembled.clear(),
                (Kind::Middle | Kind::Last, false) => {}
                // Parts of a record are written in one go: the others were lost.
                _ => return Ok(Found::Waiting),
            }
            self.assembled.extend_from_slice(&self.window[start..start + len]);
            if kind == Kind::Last {
                return Ok(Found::Assembled);
            }
            is_first = false;
        }
    }

    /// Whether the header of this segment is there.
    fn read_header(&mut self, is_fresh: &mut bool) -> Result<bool> {
        let start = self.bring(0, SEGMENT_HEADER_BYTES, is_fresh)?;
        let Some(header) = SegmentHeader::decode(&self.window[start..]) else {
            return Ok(false);
        };
        if header.version > FORMAT_VERSION {
            let message = format!(
                "the WAL segment has format {}; this version reads up to {FORMAT_VERSION}",
                header.version
            );
            return Err(Error::new(ErrorKind::Unsupported, message).in_file(&self.path));
        }
        if header.id.db_id != self.id.db_id {
            let message = format!(
                "the WAL segment belongs to database {:016x}, not to {:016x}",
                header.id.db_id, self.id.db_id
            );
            return Err(Error::corruption(message).in_file(&self.path).at_offset(16));
        }
        if header.id.number != self.id.number {
            return Ok(false);
        }
        self.offset = SEGMENT_HEADER_BYTES as u64;
        Ok(true)
    }

    /// The whole fragment at `at`: its kind, and where its payload is in the window.
    fn fragment(&mut self, at: u64, is_fresh: &mut bool) -> Result<Option<(Kind, usize, usize)>> {
        let start = self.bring(at, FRAGMENT_HEADER_BYTES, is_fresh)?;
        let Some(header) = FragmentHeader::decode(&self.window[start..], self.id, at) else {
            return Ok(None);
        };
        let len = header.payload_len;
        let start = self.bring(at, FRAGMENT_HEADER_BYTES + len, is_fresh)? + FRAGMENT_HEADER_BYTES;
        let payload = self.window.get(start..start + len);
        Ok(payload
            .filter(|payload| header.fits(payload))
            .map(|_| (header.kind, start, len)))
    }

    /// Brings `len` bytes at `at` into the window, as far as the file has them; gives where they start in it.
    fn bring(&mut self, at: u64, len: usize, is_fresh: &mut bool) -> Result<usize> {
        let end = self.window_offset + self.window.len() as u64;
        if at < self.window_offset || at + len as u64 > end {
            self.window.resize(WINDOW_BYTES, 0);
            self.window_offset = at;
            let read = self.file.read_at(at, &mut self.window);
            self.window.truncate(*read.as_ref().unwrap_or(&0));
            read.map_err(|error| {
                Error::io("can't read the WAL segment", error)
                    .in_file(&self.path)
                    .at_offset(at)
            })?;
            *is_fresh = true;
        }
        Ok((at - self.window_offset) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::mem::MemFs;
    use esker_env::{CreateOptions, Fs, IoMode};

    use crate::wal::{Origin, WalWriter};

    const ID: SegmentId = SegmentId { db_id: 77, number: 5 };

    fn path() -> &'static Path {
        Path::new("000005.wal")
    }

    fn record(number: usize) -> Vec<u8> {
        // Some of them cross several blocks, one is larger than the window.
        let len = [0, 1, 20, 700, 40_000, 300_000][number % 6];
        vec![number as u8; len]
    }

    fn next(tail: &mut WalTail) -> Option<Vec<u8>> {
        let record = match tail.read().unwrap() {
            Tailed::Record(record) => Some(record.to_vec()),
            _ => None,
        };
        record.inspect(|_| tail.pass())
    }

    #[test]
    fn a_tail_gives_each_record_once_it_was_appended() {
        let fs = MemFs::new();
        let file = fs.create(path(), CreateOptions::default()).unwrap();
        let mut tail = WalTail::new(fs.open(path(), IoMode::Buffered).unwrap(), path(), ID);
        assert_eq!(tail.read().unwrap(), Tailed::Waiting, "not even a header");
        let mut writer = WalWriter::new(file, path(), ID, Origin::Fresh).unwrap();
        for number in 0..60 {
            assert_eq!(tail.read().unwrap(), Tailed::Waiting);
            writer.append(&record(number)).unwrap();
            assert_eq!(tail.read().unwrap(), Tailed::Record(&record(number)));
            assert_eq!(next(&mut tail), Some(record(number)), "again, until it is passed");
        }
        writer.seal().unwrap();
        assert_eq!(tail.read().unwrap(), Tailed::Finished);
    }

    /// Every byte at which a writer can be found.
    #[test]
    fn a_tail_waits_in_front_of_a_record_of_which_bytes_are_missing() {
        let fs = MemFs::new();
        let file = fs.create(path(), CreateOptions::default()).unwrap();
        let mut writer = WalWriter::new(file, path(), ID, Origin::Fresh).unwrap();
        for number in [2, 3, 4] {
            writer.append(&record(number)).unwrap();
        }
        let bytes = fs.read_all(path()).unwrap();
        let mut part = fs.create(Path::new("part"), CreateOptions::default()).unwrap();
        let mut tail = WalTail::new(fs.open(Path::new("part"), IoMode::Buffered).unwrap(), path(), ID);
        let mut given = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            // Byte by byte near the ends of records and blocks.
            let step = if at < 900 || at % 32_768 > 32_740 { 1 } else { 13 }.min(bytes.len() - at);
            part.append(&bytes[at..at + step]).unwrap();
            at += step;
            given.extend(next(&mut tail));
        }
        assert_eq!(given, [record(2), record(3), record(4)]);
    }

    /// The file becomes the next segment while a tail stands in it.
    #[test]
    fn a_tail_gives_nothing_of_another_segment_in_the_same_file() {
        let fs = MemFs::new();
        let file = fs.create(path(), CreateOptions::default()).unwrap();
        let mut writer = WalWriter::new(file, path(), ID, Origin::Fresh).unwrap();
        for _ in 0..10 {
            writer.append(&record(2)).unwrap();
        }
        let open = |id| WalTail::new(fs.open(path(), IoMode::Buffered).unwrap(), path(), id);
        let (mut tail, later) = (open(ID), SegmentId { number: 9, ..ID });
        assert!(next(&mut tail).is_some());
        let mut ahead = open(later);
        assert_eq!(ahead.read().unwrap(), Tailed::Waiting);
        writer.seal().unwrap();
        let mut file = writer.into_sealed_file().unwrap();
        file.rewind().unwrap();
        let mut writer = WalWriter::new(file, path(), later, Origin::Recycled).unwrap();
        // Over the old one's end, too.
        for _ in 0..11 {
            writer.append(&record(2)).unwrap();
        }
        // What it has read before it may still give: that was whole.
        while next(&mut tail).is_some() {}
        assert_eq!(tail.read().unwrap(), Tailed::Waiting);
        assert_eq!(next(&mut open(ID)), None);
        assert_eq!(std::iter::from_fn(|| next(&mut ahead)).count(), 11);
    }

    #[test]
    fn a_tail_refuses_a_segment_of_another_database() {
        let fs = MemFs::new();
        let file = fs.create(path(), CreateOptions::default()).unwrap();
        let other = SegmentId { db_id: 78, ..ID };
        WalWriter::new(file, path(), other, Origin::Fresh).unwrap();
        let mut tail = WalTail::new(fs.open(path(), IoMode::Buffered).unwrap(), path(), ID);
        assert_eq!(tail.read().unwrap_err().kind(), ErrorKind::Corruption);
    }
}
