//! Recovery: replays the WAL into memtables, and flushes those into level 0.
//!
//! What is replayed becomes part of the database by one manifest edit, written after all of it is in SSTables; a
//! crash before that leaves orphaned tables, which the next open removes, and the WAL as it was.
//!
//! Which records count: a family's rows in segments below its log number are in SSTables already and are skipped.
//! The rows of a prepared batch count as rows of the segment in which it was committed; that segment holds the batch, too
//! (`log.rs`).
//!
//! Replay stops at the first damage (`PointInTime`), refuses it (`Absolute`) or goes on behind it (`SkipCorrupt`).
//! A torn end behind which nothing was logged is no damage: it was never acknowledged as durable. Segments with damage are
//! kept aside (`kept_aside.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use esker_env::{Env, IoMode};

use super::core::RecoveryReport;
use super::prepared::PreparedSet;
use crate::batch::{RawBatch, StepKind, is_carried};
use crate::error::{Error, ErrorKind, Result};
use crate::flush;
use crate::key::Sequence;
use crate::memtable::{Memtable, MemtableArenaPool};
use crate::metrics::Metrics;
use crate::options::{ColumnFamilyOptions, MemtableKind, Options, RecoveryMode};
use crate::rewrite::{OutputContext, Throttle, Written};
use crate::sstable::TableFamily;
use crate::version::{ColumnFamilyState, FileKind, VersionState};
use crate::wal::{Ending, SEGMENT_HEADER_BYTES, SegmentId, WalReader};

/// What recovery needs.
pub(super) struct Context<'a> {
    pub env: &'a Env,
    pub dir: &'a Path,
    pub database_id: u64,
    pub options: &'a Options,
    pub state: &'a VersionState,
    pub families: &'a BTreeMap<u32, ColumnFamilyOptions>,
    pub arena_pool: &'a Arc<MemtableArenaPool>,
    pub next_file_number: AtomicU64,
    pub metrics: &'a Arc<Metrics>,
    /// Segments that are not even looked at: a repair knows that they can't be read.
    pub left_out: &'a BTreeSet<u64>,
}

/// What recovery gives.
#[derive(Default)]
pub(super) struct Recovered {
    pub last_sequence: Sequence,
    /// New files of level 0 by family, oldest first.
    pub files: BTreeMap<u32, Written>,
    /// What was prepared and not resolved.
    pub prepared: PreparedSet,
    /// Rows that stay in memory: only when opened read-only.
    pub memtables: BTreeMap<u32, Arc<Memtable>>,
    pub report: RecoveryReport,
    /// Segments to keep aside once the manifest does not need them any more.
    pub aside: Vec<u64>,
}

/// Replays all segments that any family still needs.
pub(super) fn replay(context: &Context<'_>) -> Result<Recovered> {
    let mut replay = Replay {
        context,
        recovered: Recovered::default(),
    };
    let segments = replay.segments()?;
    for (i, &number) in segments.iter().enumerate() {
        let later = &segments[i + 1..];
        let stop = match replay.segment(number)? {
            After::GoOn => false,
            After::Stop => true,
            // Where writing ended, a torn end is no damage.
            After::Unfinished if replay.any_record(later)? => true,
            // Nothing was logged behind it. What a later segment carried over is here, unless the power cut that took it
            // took writes from before it was prepared, too.
            After::Unfinished => break,
        };
        if stop {
            // What lies behind is not part of the database any more, but kept for whoever wants to look.
            tracing::error!(
                number,
                later = later.len(),
                "replay ends at a damaged WAL segment"
            );
            if context.options.recovery_mode == RecoveryMode::Absolute {
                let path = FileKind::Wal(number).path(context.dir);
                return Err(
                    Error::corruption("the WAL goes on behind a segment whose end is missing").in_file(&path),
                );
            }
            replay.recovered.report.damages = replay.recovered.report.damages.max(1);
            replay.recovered.aside.push(number);
            for &number in later {
                if replay.holds_anything(number)? {
                    replay.recovered.aside.push(number);
                }
            }
            break;
        }
    }
    if !context.options.read_only {
        for family in replay.recovered.memtables.keys().copied().collect::<Vec<_>>() {
            replay.flush(family)?;
        }
    }
    context
        .metrics
        .recovery_lost_bytes
        .add(replay.recovered.report.lost_bytes);
    context
        .metrics
        .recovery_skipped
        .add(replay.recovered.report.damages);
    Ok(replay.recovered)
}

#[derive(PartialEq, Eq)]
enum After {
    GoOn,
    Stop,
    /// It was not finished: the end of the log, if nothing was logged after it; else records between are missing.
    Unfinished,
}

struct Replay<'a> {
    context: &'a Context<'a>,
    recovered: Recovered,
}

impl Replay<'_> {
    /// Numbers of the segments to replay, oldest first.
    fn segments(&self) -> Result<Vec<u64>> {
        let dir = self.context.dir;
        let names = self.context.env.fs.list(dir);
        let names = names.map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
        let oldest = self.context.state.log_number_min().unwrap_or(0);
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Wal(number))
                    if number >= oldest && !self.context.left_out.contains(&number) =>
                {
                    Some(number)
                }
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn segment(&mut self, number: u64) -> Result<After> {
        let path = FileKind::Wal(number).path(self.context.dir);
        let mode = self.context.options.recovery_mode;
        let mut reader = self.reader(number)?;
        while let Some(record) = reader.next()? {
            match self.apply(record.payload.to_vec(), number) {
                Ok(()) => self.recovered.report.batches += u64::from(!is_carried(record.payload)),
                Err(error) if error.kind() != ErrorKind::Corruption || mode == RecoveryMode::Absolute => {
                    return Err(error.in_file(&path));
                }
                Err(error) => {
                    // Its checksum is right, so it was written like this.
                    tracing::error!(%error, path = %path.display(), "a batch in the WAL can't be decoded");
                    self.recovered.report.damages += 1;
                    if mode == RecoveryMode::PointInTime {
                        return Ok(After::Stop);
                    }
                }
            }
        }
        let end = reader.report();
        let damages = end.skipped.count + u64::from(end.ending == Ending::Damaged);
        if damages > 0 {
            let lost_bytes = end.skipped.bytes + end.unusable_bytes;
            self.recovered.report.damages += damages;
            self.recovered.report.lost_bytes += lost_bytes;
            tracing::error!(path = %path.display(), damages, lost_bytes, "a WAL segment is damaged");
        }
        match (mode, end.ending) {
            (_, Ending::Finished) if damages == 0 => Ok(After::GoOn),
            (RecoveryMode::PointInTime, Ending::Damaged) => Ok(After::Stop),
            (RecoveryMode::SkipCorrupt, _) if damages > 0 => {
                self.recovered.aside.push(number);
                Ok(After::GoOn)
            }
            (RecoveryMode::SkipCorrupt, _) => Ok(After::GoOn),
            _ => Ok(After::Unfinished),
        }
    }

    /// Whether any of these segments holds a record that is not carried over from the one before.
    fn any_record(&self, segments: &[u64]) -> Result<bool> {
        for &number in segments {
            let mut reader = self.reader(number)?;
            while let Some(record) = reader.next()? {
                if !is_carried(record.payload) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether there is anything in a segment to look at: an opening that did not come to its end leaves empty ones.
    fn holds_anything(&self, number: u64) -> Result<bool> {
        let mut reader = self.reader(number)?;
        if reader.next()?.is_some() {
            return Ok(true);
        }
        let end = reader.report();
        Ok(match end.ending {
            Ending::Damaged => true,
            // More than a header, or than a part of one.
            Ending::Torn => end.end_offset + end.unusable_bytes > SEGMENT_HEADER_BYTES as u64,
            Ending::Clean | Ending::Finished | Ending::NotStarted => false,
        })
    }

    fn reader(&self, number: u64) -> Result<WalReader> {
        let context = self.context;
        let path = FileKind::Wal(number).path(context.dir);
        let file = context.env.fs.open(&path, IoMode::Buffered);
        let file = file.map_err(|error| Error::io("can't open a WAL segment", error).in_file(&path))?;
        let id = SegmentId {
            db_id: context.database_id,
            number,
        };
        WalReader::new(file, &path, id, context.options.recovery_mode)
    }

    fn apply(&mut self, bytes: Vec<u8>, segment: u64) -> Result<()> {
        let batch = RawBatch::from_bytes(bytes)?;
        // Checked as a whole first: a batch is applied whole or not at all.
        for entry in batch.iter() {
            entry?;
        }
        let sequence = batch.sequence();
        let mut rows = 0;
        match batch.kind() {
            StepKind::Batch => rows = self.insert(sequence, &batch, segment)?,
            StepKind::Prepare | StepKind::Carried => self.recovered.prepared.add(batch),
            StepKind::Commit => {
                let prepared = self.recovered.prepared.resolve(&batch)?;
                rows = self.insert(sequence, &prepared, segment)?;
                rows += self.insert(sequence.saturating_add(rows), &batch, segment)?;
            }
            StepKind::RollBack => drop(self.recovered.prepared.resolve(&batch)?),
        }
        let last = sequence.saturating_add(rows).saturating_sub(1);
        self.recovered.last_sequence = self.recovered.last_sequence.max(last);
        if !self.context.options.read_only {
            self.flush_full()?;
        }
        Ok(())
    }

    /// Inserts a batch whose first row is `sequence`; gives the number of its rows.
    fn insert(&mut self, mut sequence: Sequence, batch: &RawBatch, segment: u64) -> Result<u64> {
        for entry in batch.iter() {
            let entry = entry?;
            let needed = self
                .context
                .state
                .family(entry.family)
                .is_some_and(|family| segment >= family.log_number);
            if needed {
                self.memtable(entry.family)?
                    .insert(sequence, entry.kind, entry.key, entry.value);
            }
            sequence += 1;
        }
        Ok(u64::from(batch.count()))
    }

    fn memtable(&mut self, family: u32) -> Result<&Arc<Memtable>> {
        let context = self.context;
        let options = settings(context, family)?;
        Ok(self.recovered.memtables.entry(family).or_insert_with(|| {
            // Rows may be read at once, so never the vector.
            let budget_bytes = options.memtable_bytes as usize;
            Memtable::new(
                MemtableKind::Ordered,
                options.key_order.clone(),
                0,
                budget_bytes,
                context.arena_pool,
            )
        }))
    }

    /// Flushes memtables that are full, so that replay needs no more memory than writing did.
    fn flush_full(&mut self) -> Result<()> {
        let mut full = Vec::new();
        for (&family, table) in &self.recovered.memtables {
            if table.approximate_bytes() as u64 >= settings(self.context, family)?.memtable_bytes {
                full.push(family);
            }
        }
        full.into_iter().try_for_each(|family| self.flush(family))
    }

    fn flush(&mut self, family: u32) -> Result<()> {
        let Some(table) = self.recovered.memtables.remove(&family) else {
            return Ok(());
        };
        let context = self.context;
        table.seal();
        let throttle = Throttle::default();
        let output = OutputContext {
            env: context.env,
            dir: context.dir,
            database_id: context.database_id,
            family: table_family(context.state, family),
            options: settings(context, family)?,
            level: 0,
            io: context.options.background_io,
            sync: context.options.sync_files,
            next_file_number: &context.next_file_number,
            throttle: &throttle,
            blobs: None,
            cache: None,
            metrics: context.metrics,
        };
        let written = flush::run(&[table], Vec::new(), &output, false)?;
        self.recovered.files.entry(family).or_default().append(written);
        Ok(())
    }
}

/// What tables say of the family: of the log no more than was known before.
fn table_family(state: &VersionState, id: u32) -> TableFamily {
    let family = state.family(id);
    TableFamily {
        id,
        name: family.map_or(String::new(), |family| family.record.name.clone()),
        log_number: family.map_or(0, |family| family.log_number),
        outside: family.map(ColumnFamilyState::outside_files).unwrap_or_default(),
    }
}

fn settings<'a>(context: &Context<'a>, family: u32) -> Result<&'a ColumnFamilyOptions> {
    context
        .families
        .get(&family)
        .ok_or_else(|| Error::bug(format!("column family {family} has no settings during recovery")))
}
