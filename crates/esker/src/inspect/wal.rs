//! Everything in a WAL segment, batch by batch, past damages.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use esker_env::IoMode;

use super::{Inspector, StepKind, ValueKind};
use crate::batch::RawBatch;
use crate::error::{Error, Result};
use crate::options::RecoveryMode;
use crate::version::{FileKind, manifest};
use crate::wal::{Ending, SEGMENT_HEADER_BYTES, SegmentId, WalReader, segment_id};

/// A WAL segment, open to be dumped.
#[derive(Debug)]
pub struct SegmentDump {
    reader: WalReader,
    path: PathBuf,
    id: SegmentId,
}

/// A batch of a segment, or a step of a two-phase commit with its batch.
#[derive(Debug)]
pub struct Batch {
    /// Offset of its record in the file.
    pub offset: u64,
    /// Bytes of its encoding.
    pub size_bytes: usize,
    raw: RawBatch,
    /// Sequence numbers before those of its own mutations: of the prepared ones that it commits.
    prepared_rows: u64,
}

/// A mutation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation<'a> {
    /// Its place in the database's history; 0 of one that is only prepared.
    pub sequence: u64,
    /// The id of its column family.
    pub column_family: u32,
    /// What happens to the key.
    pub kind: ValueKind,
    /// The key, or the start of the range.
    pub key: &'a [u8],
    /// The value, the operand, or the end of the range; empty for deletions.
    pub value: &'a [u8],
}

/// What was in a segment, and how its log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Batches given.
    pub batches: u64,
    /// How many of them were carried over from the segment before.
    pub carried: u64,
    /// End of the last one, as an offset.
    pub end_offset: u64,
    /// How the log ends; never `Damaged`.
    pub ending: Ending,
    /// Damaged places that were gone over.
    pub damages: u64,
    /// Bytes lost there.
    pub lost_bytes: u64,
    /// Where the first one starts.
    pub first_damage: Option<u64>,
}

impl Inspector {
    /// Opens segment `number` of the folder.
    ///
    /// # Errors
    /// As [`segment_at`](Self::segment_at).
    pub fn segment(&self, number: u64) -> Result<SegmentDump> {
        self.segment_at(&FileKind::Wal(number).path(&self.dir))
    }

    /// Opens the segment in this file, of whatever database. Which segment it is, its header says; where that is
    /// damaged, its name and the folder's manifest do.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported`, `Io`; `Corruption` if nothing says which segment it is.
    pub fn segment_at(&self, path: &Path) -> Result<SegmentDump> {
        let failed = |error| Error::io("can't read a WAL segment", error).in_file(path);
        let file = self.fs.open(path, IoMode::Buffered).map_err(failed)?;
        let mut header = [0; SEGMENT_HEADER_BYTES];
        let read = file.read_at(0, &mut header).map_err(failed)?;
        let id = segment_id(&header[..read]).or_else(|| self.id_from_name(path));
        let id = id.ok_or_else(|| {
            Error::corruption("the file does not begin as a WAL segment does")
                .in_file(path)
                .at_offset(0)
        })?;
        self.open_segment(path, id)
    }

    fn id_from_name(&self, path: &Path) -> Option<SegmentId> {
        let name = path.file_name()?.to_str()?;
        let Some(FileKind::Wal(number) | FileKind::DamagedWal(number)) = FileKind::parse(name) else {
            return None;
        };
        let state = manifest::recover(&*self.fs, &self.dir).ok()?.state;
        let db_id = state.database_id as u64;
        Some(SegmentId { db_id, number })
    }

    pub(super) fn open_segment(&self, path: &Path, id: SegmentId) -> Result<SegmentDump> {
        let file = self.fs.open(path, IoMode::Buffered);
        let file = file.map_err(|error| Error::io("can't open a WAL segment", error).in_file(path))?;
        Ok(SegmentDump {
            reader: WalReader::new(file, path, id, RecoveryMode::SkipCorrupt)?,
            path: path.to_owned(),
            id,
        })
    }
}

impl SegmentDump {
    /// The segment's number.
    pub fn number(&self) -> u64 {
        self.id.number
    }

    /// Gives every batch that can be read, until `visit` breaks, and says how the log ends. Damaged places are gone
    /// over and counted.
    ///
    /// # Errors
    /// `Io`.
    pub fn batches(mut self, mut visit: impl FnMut(&Batch) -> ControlFlow<()>) -> Result<SegmentSummary> {
        let mut carried = 0;
        // Mutations by the name under which they are prepared.
        let mut prepared: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        while let Some(record) = self.reader.next()? {
            let offset = record.offset;
            let raw = RawBatch::from_bytes(record.payload.to_vec());
            let raw = raw.map_err(|error| error.in_file(&self.path).at_offset(offset))?;
            let mut prepared_rows = 0;
            match raw.kind() {
                StepKind::Batch => {}
                StepKind::Prepare | StepKind::Carried => {
                    carried += u64::from(raw.kind() == StepKind::Carried);
                    prepared.insert(raw.name().to_vec(), u64::from(raw.count()));
                }
                StepKind::Commit | StepKind::RollBack => {
                    prepared_rows = prepared.remove(raw.name()).unwrap_or(0);
                }
            }
            let batch = Batch {
                offset,
                size_bytes: record.payload.len(),
                raw,
                prepared_rows,
            };
            if visit(&batch).is_break() {
                break;
            }
        }
        let end = self.reader.report();
        Ok(SegmentSummary {
            batches: end.records,
            carried,
            end_offset: end.end_offset,
            ending: end.ending,
            damages: end.skipped.count,
            lost_bytes: end.skipped.bytes,
            first_damage: end.skipped.first_offset,
        })
    }
}

impl Batch {
    /// What the record does with it.
    pub fn kind(&self) -> StepKind {
        self.raw.kind()
    }

    /// The name under which it is prepared, or that it resolves; empty for a plain batch.
    pub fn name(&self) -> &[u8] {
        self.raw.name()
    }

    /// The sequence number of the first mutation that it commits; of other steps, that of the next one to be committed.
    pub fn sequence(&self) -> u64 {
        self.raw.sequence()
    }

    /// Number of its mutations.
    pub fn count(&self) -> u32 {
        self.raw.count()
    }

    /// Its mutations in order; an `Err` item ends them.
    pub fn mutations(&self) -> impl Iterator<Item = Result<Mutation<'_>>> {
        let first = self.raw.sequence().saturating_add(self.prepared_rows);
        let is_committed = matches!(self.kind(), StepKind::Batch | StepKind::Commit);
        self.raw.iter().enumerate().map(move |(i, entry)| {
            let entry = entry.map_err(|error| error.at_offset(self.offset))?;
            Ok(Mutation {
                sequence: if is_committed {
                    first.saturating_add(i as u64)
                } else {
                    0
                },
                column_family: entry.family,
                kind: entry.kind,
                key: entry.key,
                value: entry.value,
            })
        })
    }
}
