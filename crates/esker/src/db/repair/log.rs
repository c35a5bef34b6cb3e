//! The log, read before it is replayed: which segments can be, whose rows are in them, and what is lost.

use std::collections::BTreeSet;
use std::path::Path;

use esker_env::{Env, IoMode};

use crate::batch::{RawBatch, StepKind};
use crate::error::{Error, Result};
use crate::options::RecoveryMode;
use crate::version::FileKind;
use crate::wal::{Ending, SegmentId, WalReader};

/// What a segment holds.
pub(super) struct Segment {
    pub number: u64,
    /// Batches, without those carried over from the segment before.
    pub batches: u64,
    /// Damaged places, batches that can't be decoded among them.
    pub damages: u64,
    pub lost_bytes: u64,
    /// Whether its last record says that it is the last.
    pub finished: bool,
    /// Whether it ends in a record that is not whole.
    pub torn: bool,
    /// Ids of families with rows in it.
    pub families: BTreeSet<u32>,
    /// Names that it prepares, and names that it resolves, in their order.
    pub steps: Vec<(StepKind, Vec<u8>)>,
}

/// Reads a segment to its end, past damages.
///
/// # Errors
/// What makes all of it useless: it can't be opened or read, or is one of another database.
pub(super) fn read(env: &Env, dir: &Path, db_id: u64, number: u64) -> Result<Segment> {
    let path = FileKind::Wal(number).path(dir);
    let file = env.fs.open(&path, IoMode::Buffered);
    let file = file.map_err(|error| Error::io("can't open a WAL segment", error).in_file(&path))?;
    let id = SegmentId { db_id, number };
    let mut reader = WalReader::new(file, &path, id, RecoveryMode::SkipCorrupt)?;
    let mut segment = Segment {
        number,
        batches: 0,
        damages: 0,
        lost_bytes: 0,
        finished: false,
        torn: false,
        families: BTreeSet::new(),
        steps: Vec::new(),
    };
    while let Some(record) = reader.next()? {
        let batch = RawBatch::from_bytes(record.payload.to_vec());
        match batch.and_then(|batch| segment.note(&batch)) {
            Ok(()) => {}
            Err(_) => segment.damages += 1,
        }
    }
    let end = reader.report();
    segment.torn = end.ending == Ending::Torn;
    segment.finished = end.ending == Ending::Finished;
    segment.damages += end.skipped.count;
    segment.lost_bytes = end.skipped.bytes;
    Ok(segment)
}

impl Segment {
    fn note(&mut self, batch: &RawBatch) -> Result<()> {
        let mut families = BTreeSet::new();
        for entry in batch.iter() {
            families.insert(entry?.family);
        }
        self.families.append(&mut families);
        self.batches += u64::from(batch.kind() != StepKind::Carried);
        if batch.kind() != StepKind::Batch {
            self.steps.push((batch.kind(), batch.name().to_vec()));
        }
        Ok(())
    }
}

/// The names that are prepared after all segments, in the order of their numbers.
pub(super) fn prepared<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<Vec<u8>> {
    let mut names = BTreeSet::new();
    for (kind, name) in segments.flat_map(|segment| &segment.steps) {
        match kind {
            StepKind::Prepare | StepKind::Carried => names.insert(name.clone()),
            StepKind::Commit | StepKind::RollBack => names.remove(name),
            StepKind::Batch => false,
        };
    }
    names.into_iter().collect()
}
