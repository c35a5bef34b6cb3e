//! INGEST: tables that were made outside become part of the database, all of them at one moment or none.
//!
//! 1. Every file is read and checked, and gets a name in the folder: a link, or a copy.
//! 2. Memtables with rows in a file's range are flushed: a read stops at the newest source that has a key, so nothing
//!    older may lie above a new table.
//! 3. Under the leader's token, when this still holds (else such memtables are flushed once more, while writers wait):
//!    the tables get the next sequence numbers, and the deepest levels in which, and above which, nothing overlaps them.
//!    The log is synced; one group of edits makes them durable; each family's view is replaced; the numbers are published. So a snapshot
//!    of before sees nothing of them: its number is smaller.
//!
//! A place in a sorted level is claimed like that of a running compaction before it is taken (`Claims`): no job that is
//! picked meanwhile writes into it, and none that runs already does.
//!
//! A crash before the edits are durable leaves files that the next open removes.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::behind::CameBehind;
use super::core::Core;
use super::incoming::{self, Incoming};
use super::write::Token;
use super::{ColumnFamily, Db};
use crate::compaction::picker::RunningJob;
use crate::error::{Error, Result};
use crate::hooks::{FileCause, TablesIngested};
use crate::key::{Cursor, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, internal_key, user_key};
use crate::memtable::Memtable;
use crate::options::CompactionStyle;
use crate::version::{Family, FileMeta, Version, VersionEdit};

/// How tables are ingested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestOptions {
    /// The files are removed from where they are, once they are part of the database. Without it the database shares them
    /// by links (where there can be no link, it has copies): they must not be changed, and may be removed.
    pub move_files: bool,
    /// The rows come in behind all that is there: of a key that has a value, the row of the file is left out. Default: false.
    ///
    /// As of one moment, as for all else that is ingested: a key has a value if a [`get`](Db::get) of that moment gives one; if
    /// it was never written, or was deleted, by whatever delete and however long ago, it gets the row of the file. It makes no difference
    /// what compactions have done. Snapshots of before don't see the rows; writes of after are newer.
    ///
    /// Every row costs a look into filters and memtables, and a `get` if they don't deny its key; a file of which rows are left out is
    /// written anew without them. Where writers write into the ranges of the files all the time, they wait for this in the end. Takes
    /// a byte of memory a row. Refused (`InvalidArgument`) are files with deletes, and files that overlap.
    pub behind: bool,
}

/// What was ingested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestSummary {
    /// The sequence number of the newest row: readers see all of it from here on.
    pub sequence: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Rows that were left out, as their keys had values. Only with [`behind`](IngestOptions::behind).
    pub left_out: u64,
}

impl Db {
    /// Makes files that a [`TableFileWriter`](crate::TableFileWriter) wrote part of column families: all at one moment,
    /// newer than everything that was written before. Durable when it returns. Files of one family may overlap; of a
    /// key in several of them the last file counts, as if they had been ingested one after the other.
    ///
    /// Each file is read once, to check it; nothing of it is written, nor logged. A table comes into the deepest level in
    /// which, and above which, nothing overlaps it; else into level 0. Files that overlap others of the call come into
    /// level 0. Values stay in the tables until a compaction writes them anew: then those that are large enough move
    /// to blob files. Other writes wait for a sync of log and manifest, and for a flush if they write into the range
    /// of a file all the time. What was written before is durable with it, too.
    ///
    /// With [`behind`](IngestOptions::behind) the rows are older than all that is there instead: keys that have values keep them.
    ///
    /// Errors: `InvalidArgument` (a file of another key order, that no `TableFileWriter` wrote, or with operands for a
    /// family that has no merge operator; no file; a family twice; `behind`, with deletes or files that overlap), `Corruption`, `Io`, `NoSpace`. After an error the
    /// database is as it was; after a crash all tables are there or none.
    pub fn ingest(
        &self,
        files: &[(ColumnFamily, Vec<PathBuf>)],
        options: &IngestOptions,
    ) -> Result<IngestSummary> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        core.ingest(files, options)
    }
}

/// The tables of one family.
pub(super) struct Part {
    pub family: Arc<Family>,
    pub tables: Vec<Incoming>,
    /// Whether no two of them overlap.
    pub apart: bool,
}

impl Core {
    fn ingest(
        self: &Arc<Self>,
        files: &[(ColumnFamily, Vec<PathBuf>)],
        options: &IngestOptions,
    ) -> Result<IngestSummary> {
        let mut parts: Vec<Part> = Vec::new();
        for (family, paths) in files {
            let family = self.family(family.id())?;
            if parts.iter().any(|part| part.family.id == family.id) {
                return Err(Error::invalid("a column family is named twice").in_column_family(&family.name));
            }
            let tables = paths
                .iter()
                .map(|path| {
                    incoming::read(self, &family, path).map_err(|error| error.in_column_family(&family.name))
                })
                .collect::<Result<Vec<_>>>()?;
            let apart = lie_apart(&family.order, &tables);
            parts.push(Part {
                family,
                tables,
                apart,
            });
        }
        if parts.iter().all(|part| part.tables.is_empty()) {
            return Err(Error::invalid("there are no files to ingest"));
        }
        let came = match options.behind {
            true => self.come_in_behind(&parts)?,
            false => CameBehind {
                sequence: self.come_in(&mut parts, None, || Ok(true))?,
                parts: parts.iter().map(Part::again).collect(),
                left_out: 0,
            },
        };
        self.share_memory();
        for part in &parts {
            self.update_pressure(&part.family);
        }
        self.wake();
        if options.move_files {
            for table in parts.iter().flat_map(|part| &part.tables) {
                if let Err(error) = self.env.fs.remove(&table.path) {
                    tracing::warn!(%error, path = %table.path.display(), "an ingested file stays where it was, too");
                }
            }
        }
        let tables = || came.parts.iter().flat_map(|part| &part.tables);
        Ok(IngestSummary {
            sequence: came.sequence.unwrap_or_else(|| self.visible()),
            tables: tables().count() as u64,
            bytes: tables().map(|table| table.meta.size_bytes).sum(),
            left_out: came.left_out,
        })
    }

    /// Makes the tables part of the database, if `still` says so when no write is in progress any more; gives the newest sequence
    /// number then. What memtables hold in the ranges of the tables, or of those `around` them, is flushed before.
    pub(super) fn come_in(
        &self,
        parts: &mut [Part],
        around: Option<&[Part]>,
        still: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<Sequence>> {
        let brought = incoming::bring(self, parts.iter_mut().flat_map(|part| &mut part.tables))?;
        let parts: &[Part] = parts;
        let around = around.unwrap_or(parts);
        let overlapping = around
            .iter()
            .filter_map(|part| match part.needs_flush(self.unlogged.load(Relaxed)) {
                Ok(false) => None,
                Ok(true) => Some(Ok(Arc::clone(&part.family))),
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<Vec<_>>>()?;
        if !overlapping.is_empty() {
            self.flush_families(&overlapping)?;
        }
        // While jobs are paused too, as for every flush that is asked for by name.
        let _requested = self.request_flush();
        self.with_token(|token| {
            if !still()? {
                return Ok(None);
            }
            self.flush_overlapping(token, around)?;
            self.take_in(token, parts, brought).map(Some)
        })
    }

    /// For the leader: flushes memtables that got rows in the tables' ranges meanwhile.
    pub(super) fn flush_overlapping(&self, token: &mut Token, parts: &[Part]) -> Result<()> {
        self.check_open()?;
        self.health.check_writable()?;
        if token.wal_broken {
            self.leave_broken_segment(token, false)?;
        }
        for part in parts {
            let family = &part.family;
            if family.dropped() {
                return Err(Error::invalid("the column family was dropped").in_column_family(&family.name));
            }
            if part.needs_flush(self.unlogged.load(Relaxed))? {
                self.seal(token, family)?;
                self.wait_for_flush_if(false, || family.view().sealed.is_empty())?;
            }
        }
        Ok(())
    }

    /// For the leader: makes the tables part of the database; gives the newest sequence number.
    pub(super) fn take_in(
        &self,
        token: &mut Token,
        parts: &[Part],
        brought: incoming::Brought<'_>,
    ) -> Result<Sequence> {
        let steps = parts.iter().map(Part::sequences).max().unwrap_or(0);
        let newest = token.last_sequence.saturating_add(steps);
        if newest > SEQUENCE_MAX {
            return Err(Error::bug("sequence numbers are used up"));
        }
        // As for a write that wants to be durable: what was written before must not be lost while this stays.
        self.sync_wal(token)?;
        let mut claims = Claims::new(self);
        let mut edits = Vec::with_capacity(parts.len());
        for part in parts.iter().filter(|part| !part.tables.is_empty()) {
            let mut edit = VersionEdit::of(part.family.id);
            edit.last_sequence = Some(newest);
            for (i, table) in (0..).zip(&part.tables) {
                let step = if part.apart { 0 } else { i };
                let file = Arc::new(table.numbered(token.last_sequence + 1 + step));
                // Readers would come to them unopened; and one that can't be opened must not come in.
                self.tables.get(&file, &part.family.order)?;
                edit.add(claims.level_for(part, &file), file);
            }
            edits.push(edit);
        }
        let mut manifest = self.manifest.lock();
        let files = brought.into_files();
        self.commit_edits(&mut manifest, edits.clone())
            .inspect_err(|_| manifest.discard(files))?;
        for (part, edit) in parts.iter().filter(|part| !part.tables.is_empty()).zip(&edits) {
            part.family.install(edit, &[], &self.graveyard)?;
        }
        self.tables_ingested(parts, &edits, newest);
        drop(manifest);
        token.last_sequence = newest;
        self.published.advance(newest);
        Ok(newest)
    }
}

impl Core {
    /// The tables are part of the database. Under the manifest's lock.
    fn tables_ingested(&self, parts: &[Part], edits: &[VersionEdit], sequence: Sequence) {
        let files = || edits.iter().flat_map(|edit| &edit.added);
        let event = TablesIngested {
            tables: files().count() as u64,
            bytes: files().map(|(_, file)| file.size_bytes).sum(),
            sequence,
        };
        self.metrics.tables_ingested.add(event.tables);
        self.metrics.ingested_bytes.add(event.bytes);
        for (part, edit) in parts.iter().filter(|part| !part.tables.is_empty()).zip(edits) {
            self.note_files(&part.family, edit, FileCause::Ingestion);
        }
        self.events.note(|| event);
    }
}

impl Part {
    fn again(&self) -> Self {
        Self {
            family: Arc::clone(&self.family),
            tables: self.tables.iter().map(Incoming::again).collect(),
            apart: self.apart,
        }
    }

    /// How many sequence numbers its tables need.
    fn sequences(&self) -> u64 {
        if self.apart { 1 } else { self.tables.len() as u64 }
    }

    /// Whether memtables are to be flushed first: they have something in the range of a table, or rows that were never
    /// logged, which a crash would take although newer ones stay.
    fn needs_flush(&self, unlogged: bool) -> Result<bool> {
        let view = self.family.view();
        if unlogged && !self.tables.is_empty() {
            return Ok(!view.sealed.is_empty() || !view.active.table.is_empty());
        }
        for buffer in view.sealed.iter().chain([&view.active]) {
            for table in &self.tables {
                if overlaps(&buffer.table, &self.family.order, &table.meta)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Whether a memtable has anything in the range of a file.
fn overlaps(memtable: &Arc<Memtable>, order: &KeyOrder, file: &FileMeta) -> Result<bool> {
    let (smallest, largest) = (file.smallest_user_key(), file.largest_user_key());
    let tombstones = memtable.range_tombstones();
    let covered = tombstones.fragments().any(|fragment| {
        order.compare(fragment.start, largest).is_le() && order.compare(fragment.end, smallest).is_gt()
    });
    if covered {
        return Ok(true);
    }
    let mut cursor = memtable.cursor();
    cursor.seek(&internal_key(smallest, SEQUENCE_MAX, ValueKind::SEEK))?;
    Ok(cursor.valid() && order.compare(user_key(cursor.key()), largest).is_le())
}

fn lie_apart(order: &KeyOrder, tables: &[Incoming]) -> bool {
    let mut sorted: Vec<&FileMeta> = tables.iter().map(|table| &table.meta).collect();
    sorted.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
    sorted
        .windows(2)
        .all(|pair| order.compare(pair[0].largest_user_key(), pair[1].smallest_user_key()) == Ordering::Less)
}

/// Stretches of levels that jobs leave alone until the tables are in them.
struct Claims<'a> {
    core: &'a Core,
    claimed: Vec<(u32, RunningJob)>,
}

impl<'a> Claims<'a> {
    fn new(core: &'a Core) -> Self {
        Self {
            core,
            claimed: Vec::new(),
        }
    }

    /// The level that a table comes into.
    fn level_for(&mut self, part: &Part, file: &FileMeta) -> usize {
        let family = &part.family;
        let options = family.options();
        if !part.apart || options.compaction_style == CompactionStyle::Manual {
            return 0;
        }
        let (smallest, largest) = (file.smallest_user_key(), file.largest_user_key());
        // What a job has done is in the view before it leaves `running`, so nothing falls between the two looks.
        let mut running = self.core.running.lock();
        let version = Arc::clone(&family.view().version);
        let free = |level: usize| {
            let context = running.context(family.id);
            !context.writes_into(&family.order, level, smallest, largest)
        };
        let Some(level) = deepest_free(&version, file, free) else {
            return 0;
        };
        let claim = RunningJob {
            level_in: level,
            level_out: level,
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
        };
        running.claim(family.id, claim.clone());
        self.claimed.push((family.id, claim));
        level
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        let mut running = self.core.running.lock();
        for (family, claim) in &self.claimed {
            running.unclaim(*family, claim);
        }
        drop(running);
        // A compaction by hand may wait for the stretch.
        self.core.flushes.notify();
    }
}

/// The deepest sorted level in which, and above which, nothing overlaps the file, if there is one. Empty levels are not
/// begun, except for the last one: they are empty because the sizes of levels leave them out.
fn deepest_free(version: &Version, file: &FileMeta, free: impl Fn(usize) -> bool) -> Option<usize> {
    let (smallest, largest) = (file.smallest_user_key(), file.largest_user_key());
    let order = version.order();
    let level0 = version.level(0).files();
    if level0
        .iter()
        .any(|other| other.overlaps(order, smallest, largest))
    {
        return None;
    }
    let last = version.level_count().saturating_sub(1);
    let reached = (1..=last)
        .take_while(|&level| version.overlapping(level, smallest, largest).is_empty())
        .last()?;
    (1..=reached)
        .rev()
        .find(|&level| (level == last || !version.level(level).is_empty()) && free(level))
}
