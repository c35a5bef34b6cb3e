//! Gives the records of a segment back, and says how its log ends.
//!
//! The reader goes from fragment to fragment. Where none of this segment stands, it looks for one further on, at
//! every byte (a fragment's header has its own checksum, so that this is quick and sure):
//! - There is one: bytes *before it* were damaged or never arrived. `PointInTime` stops, `Absolute` fails,
//!   `SkipCorrupt` goes on there.
//! - There is none: the log ends here. If what stands here was part of a record, that record is *torn*. Zeros, and
//!   in a recycled file anything, are a clean end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::RandomFile;

use super::format::{
    FORMAT_VERSION, FRAGMENT_HEADER_BYTES, FragmentHeader, Kind, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentId, find_header, room_at,
};
use super::source::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::options::RecoveryMode;

/// A record and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What was appended.
    pub payload: &'a [u8],
    /// Offset of its first fragment.
    pub offset: u64,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was finished: nothing was to follow.
    Finished,
    /// It stops between two records: all that was appended, or all but the last records, of which not a byte that
    /// could be told arrived.
    Clean,
    /// Its last record is not whole and nothing of this segment follows, as a crash leaves it.
    Torn,
    /// The file holds nothing of this segment: it was renamed for it, but its header was not written any more.
    NotStarted,
    /// Records of this segment follow behind bytes that are not what was written (`PointInTime` only).
    Damaged,
}

/// What `SkipCorrupt` went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Skipped {
    /// Damaged places.
    pub count: u64,
    /// Bytes lost there, with the parts of records that were cut by the damage.
    pub bytes: u64,
    /// Where the first one starts.
    pub first_offset: Option<u64>,
}

/// What was read, and how the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// How the log ends.
    pub ending: Ending,
    /// Records given.
    pub records: u64,
    /// End of the last record given (or of the header).
    pub end_offset: u64,
    /// Bytes from there to the end of the file, zeros and stale bytes included.
    pub unusable_bytes: u64,
    /// What was skipped.
    pub skipped: Skipped,
}

/// What stands at an offset.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// A fragment, its payload's place in the window, and where the next one is.
    Fragment(Kind, usize, usize, u64),
    /// A fragment's header whose payload is not what was written, and where the next fragment is.
    BadPayload(u64),
    /// Nothing of this segment.
    Nothing,
}

/// Where the record to be given is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Window(usize, usize),
    Assembled,
}

/// The reader of one segment.
#[derive(Debug)]
pub struct WalReader {
    source: Source,
    path: PathBuf,
    id: SegmentId,
    mode: RecoveryMode,
    recycled: bool,
    /// Where the next fragment is.
    offset: u64,
    /// Start of the record whose first parts are in `assembled`.
    record_start: Option<u64>,
    assembled: Vec<u8>,
    /// Behind a damage: parts of records without their first part belong to it.
    is_behind_damage: bool,
    /// How reading ended, once it has.
    ending: Option<Result<Ending>>,
    records: u64,
    end_offset: u64,
    skipped: Skipped,
}

impl WalReader {
    /// Opens a segment. `path` is for messages; `id` is what its name promises.
    ///
    /// # Errors
    /// `Io` if it can't be read; `Unsupported` if its format is newer; `Corruption` if it belongs to another
    /// database, or in mode `Absolute` if its header is damaged.
    pub fn new(file: Arc<dyn RandomFile>, path: &Path, id: SegmentId, mode: RecoveryMode) -> Result<Self> {
        let source = Source::new(file).map_err(|error| unreadable(error, path, 0))?;
        let mut reader = Self {
            source,
            path: path.to_owned(),
            id,
            mode,
            recycled: false,
            offset: SEGMENT_HEADER_BYTES as u64,
            record_start: None,
            assembled: Vec::new(),
            is_behind_damage: false,
            ending: None,
            records: 0,
            end_offset: 0,
            skipped: Skipped::default(),
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// The next record; `None` at the end of the log, about which [`Self::report`] says more. The payload is valid
    /// until the next call. An error is given again by every later call.
    #[allow(clippy::should_implement_trait, reason = "an iterator can't lend")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.advance() {
            Err(error) => {
                self.ending = Some(Err(error.clone()));
                Err(error)
            }
            Ok(None) => Ok(None),
            Ok(Some((place, offset))) => {
                self.records += 1;
                self.end_offset = self.offset;
                let payload = match place {
                    Place::Window(start, len) => self.source.window(start, len),
                    Place::Assembled => &self.assembled,
                };
                Ok(Some(Record { payload, offset }))
            }
        }
    }

    /// What was read so far, and how the log ends; complete once `next` gave `None` (`Clean` before).
    pub fn report(&self) -> Report {
        let ending = match &self.ending {
            Some(Ok(ending)) => *ending,
            Some(Err(_)) => Ending::Damaged,
            None => Ending::Clean,
        };
        Report {
            ending,
            records: self.records,
            end_offset: self.end_offset,
            unusable_bytes: self.source.len().saturating_sub(self.end_offset),
            skipped: self.skipped,
        }
    }

    fn read_header(&mut self) -> Result<()> {
        let (path, id) = (&self.path, self.id);
        let (_, bytes) = self
            .source
            .block_from(0)
            .map_err(|error| unreadable(error, path, 0))?;
        let Some(header) = SegmentHeader::decode(bytes) else {
            return self.damaged_header();
        };
        if header.version > FORMAT_VERSION {
            let message = format!(
                "the WAL segment has format {}; this version reads up to {FORMAT_VERSION}",
                header.version
            );
            return Err(Error::new(ErrorKind::Unsupported, message).in_file(path));
        }
        if header.id.db_id != id.db_id {
            let message = format!(
                "the WAL segment belongs to database {:016x}, not to {:016x}",
                header.id.db_id, id.db_id
            );
            return Err(Error::corruption(message).in_file(path).at_offset(16));
        }
        if header.id.number != id.number {
            self.ending = Some(Ok(Ending::NotStarted));
            return Ok(());
        }
        self.recycled = header.recycled;
        self.end_offset = SEGMENT_HEADER_BYTES as u64;
        Ok(())
    }

    /// A header that is none: not written yet, torn, or damaged. Fragments name their segment by themselves, so
    /// that they are still to be told.
    fn damaged_header(&mut self) -> Result<()> {
        let is_zero = |reader: &mut Self| {
            let zero = reader.source.is_zero_from(0);
            zero.map_err(|error| unreadable(error, &reader.path, 0))
        };
        match self.find_from(SEGMENT_HEADER_BYTES as u64)? {
            Some(next) => self.lose(0, next),
            None if is_zero(self)? => {
                self.ending = Some(Ok(Ending::NotStarted));
                Ok(())
            }
            None if self.mode == RecoveryMode::Absolute => Err(self.damage(0)),
            None => {
                self.ending = Some(Ok(Ending::Torn));
                Ok(())
            }
        }
    }

    /// Goes on to the end of the next record.
    fn advance(&mut self) -> Result<Option<(Place, u64)>> {
        loop {
            match &self.ending {
                None => {}
                Some(Ok(_)) => return Ok(None),
                Some(Err(error)) => return Err(error.clone()),
            }
            if room_at(self.offset) < FRAGMENT_HEADER_BYTES {
                self.offset += room_at(self.offset) as u64;
            }
            let at = self.offset;
            let (kind, start, len, next) = match self.parse(at)? {
                Found::Fragment(kind, start, len, next) => (kind, start, len, next),
                Found::BadPayload(next) => {
                    self.bad(at, next, true)?;
                    continue;
                }
                Found::Nothing => {
                    self.bad(at, at, false)?;
                    continue;
                }
            };
            match (kind, self.record_start) {
                // A record's parts are written in one go: what follows a first part and is none of its others
                // says that those were lost.
                (Kind::Full | Kind::First | Kind::End, Some(record_start)) => self.lose(record_start, at)?,
                (Kind::Full, None) => {
                    self.offset = next;
                    self.is_behind_damage = false;
                    return Ok(Some((Place::Window(start, len), at)));
                }
                (Kind::First, None) => {
                    self.offset = next;
                    self.is_behind_damage = false;
                    self.record_start = Some(at);
                    self.assembled.clear();
                    self.assembled.extend_from_slice(self.source.window(start, len));
                }
                (Kind::Middle | Kind::Last, Some(record_start)) => {
                    self.offset = next;
                    self.assembled.extend_from_slice(self.source.window(start, len));
                    if kind == Kind::Last {
                        self.record_start = None;
                        return Ok(Some((Place::Assembled, record_start)));
                    }
                }
                (Kind::Middle | Kind::Last, None) if self.is_behind_damage => {
                    self.offset = next;
                    self.skipped.bytes += next - at;
                }
                (Kind::Middle | Kind::Last, None) => self.lose(at, next)?,
                (Kind::End, None) => {
                    self.end_offset = next;
                    self.ending = Some(Ok(Ending::Finished));
                }
            }
        }
    }

    /// What stands at `offset`.
    fn parse(&mut self, offset: u64) -> Result<Found> {
        let id = self.id;
        let (start, bytes) = match self.source.block_from(offset) {
            Ok(found) => found,
            Err(error) => return Err(unreadable(error, &self.path, offset)),
        };
        let Some(header) = FragmentHeader::decode(bytes, id, offset) else {
            return Ok(Found::Nothing);
        };
        let end = FRAGMENT_HEADER_BYTES + header.payload_len;
        let next = offset + end as u64;
        Ok(match bytes.get(FRAGMENT_HEADER_BYTES..end) {
            Some(payload) if header.fits(payload) => {
                let payload_start = start + FRAGMENT_HEADER_BYTES;
                Found::Fragment(header.kind, payload_start, header.payload_len, next)
            }
            _ => Found::BadPayload(next),
        })
    }

    /// The first whole fragment of this segment at `offset` or behind.
    fn find_from(&mut self, mut offset: u64) -> Result<Option<u64>> {
        while offset < self.source.len() {
            match self.parse(offset)? {
                Found::Fragment(..) => return Ok(Some(offset)),
                Found::BadPayload(next) => offset = next,
                Found::Nothing => {
                    let id = self.id;
                    let (_, bytes) = match self.source.block_from(offset) {
                        Ok(found) => found,
                        Err(error) => return Err(unreadable(error, &self.path, offset)),
                    };
                    let found = find_header(bytes, id, offset);
                    offset += found.unwrap_or(bytes.len().max(1)) as u64;
                }
            }
        }
        Ok(None)
    }

    /// There is no whole fragment at `at`. `is_ours`: part of one is there, up to `next`.
    fn bad(&mut self, at: u64, next: u64, is_ours: bool) -> Result<()> {
        let start = self.record_start.unwrap_or(at);
        if let Some(found) = self.find_from(next)? {
            return self.lose(start, found);
        }
        let is_torn = if is_ours || self.record_start.is_some() {
            true
        } else if self.recycled {
            false
        } else {
            let zero = self.source.is_zero_from(at);
            !zero.map_err(|error| unreadable(error, &self.path, at))?
        };
        if is_torn && self.mode == RecoveryMode::Absolute {
            return Err(
                Error::corruption("the WAL segment ends in a record that is not whole")
                    .in_file(&self.path)
                    .at_offset(start),
            );
        }
        self.ending = Some(Ok(if is_torn { Ending::Torn } else { Ending::Clean }));
        Ok(())
    }

    /// The bytes from `start` to `next` are lost, and something of this segment stands behind them.
    fn lose(&mut self, start: u64, next: u64) -> Result<()> {
        match self.mode {
            RecoveryMode::Absolute => return Err(self.damage(start)),
            RecoveryMode::PointInTime => self.ending = Some(Ok(Ending::Damaged)),
            RecoveryMode::SkipCorrupt => {
                self.skipped.count += 1;
                self.skipped.bytes += next - start;
                self.skipped.first_offset.get_or_insert(start);
                self.record_start = None;
                self.is_behind_damage = true;
                self.offset = next;
            }
        }
        Ok(())
    }

    #[cold]
    fn damage(&self, offset: u64) -> Error {
        Error::corruption("the WAL segment holds bytes that are not what was written")
            .in_file(&self.path)
            .at_offset(offset)
    }
}

#[cold]
fn unreadable(error: std::io::Error, path: &Path, offset: u64) -> Error {
    Error::io("can't read the WAL segment", error)
        .in_file(path)
        .at_offset(offset)
}
