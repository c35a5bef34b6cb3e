//! CHECKPOINT: a copy of the database at one point in time, in a folder of its own, while everything goes on.
//!
//! 1. No WAL segment is retired from here on (`WalSegments::hold`), so that those which the views of step 2 need are
//!    still there in step 3.
//! 2. Under the leader's token, so that no write is in progress: the views of all families are pinned, and the length of
//!    the WAL is noted. Their tables and the WAL up to there hold the database as of the last sequence number, and none of
//!    it changes or vanishes any more: what is appended later lies behind. This is all that a writer may wait for. No
//!    segment is ended: each takes the room that was preallocated for it until its memtables are flushed.
//! 3. The part of the WAL that some pinned memtable needs is copied; or, where that is too much or part of the memtables
//!    was never logged, the memtables were sealed in step 2 and are written into tables of the copy, and only the last
//!    segment is copied, if batches are prepared: it begins with them. Tables and blob files
//!    are linked, as they never change; a WAL segment may be overwritten when it is used again, so it is not.
//! 4. A manifest is written that says what the views hold. A family's log number is the oldest segment of its memtables,
//!    so that recovery of the copy finds in the WAL exactly the rows that its tables lack.
//! 5. The folder is synced and gets its name.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Db;
use super::core::Core;
use super::jobs::new_files;
use super::manual::RequestedFlush;
use super::new_folder::NewFolder;
use super::settings::record;
use super::write::{Token, oldest_wal};
use crate::error::Result;
use crate::flush;
use crate::hooks::CheckpointMade;
use crate::key::Sequence;
use crate::memtable::Memtable;
use crate::options::ColumnFamilyOptions;
use crate::rewrite::{OutputContext, Written};
use crate::version::manifest::ManifestWriter;
use crate::version::{Family, FileKind, VersionEdit, VersionState, View};

/// How a checkpoint is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Bytes of the write-ahead log that are copied at most. Where more would have to be, what memtables hold is written
    /// into tables of the copy instead; 0 always does that. The last segment is copied in any case while batches are
    /// [prepared](crate::Db::prepare), as they are nowhere else. Default: 64 MiB.
    pub wal_bytes_max: u64,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self {
            wal_bytes_max: 64 << 20,
        }
    }
}

/// What a checkpoint holds, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointSummary {
    /// The last sequence number in it: it holds all writes up to this one, and none after.
    pub sequence: u64,
    /// Files that the database and the checkpoint share.
    pub linked_files: u64,
    /// Bytes that were copied: the log, and all files where there could be no links.
    pub copied_bytes: u64,
    /// Bytes of tables and blob files that memtables were written to.
    pub written_bytes: u64,
}

impl Db {
    /// Makes a copy of the database as it is now in a new folder: [`checkpoint_with`](Self::checkpoint_with), with the
    /// default options.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<CheckpointSummary> {
        self.checkpoint_with(dir, &CheckpointOptions::default())
    }

    /// Makes a copy of the database, of all column families at one point in time, in the new folder `dir`. The copy is a
    /// database of its own, durable when this returns, with every write that was answered before, whatever its
    /// [durability](crate::Durability). It is cheap on the same file system: tables and blob files are linked, and
    /// memtables need no flush; elsewhere all files are copied. Reads, writes and compactions go on; a writer waits for
    /// the start of a log segment at most, where memtables are to be written. O(files + bytes of log). The copy keeps the
    /// database's id, by which files know theirs; both can be open at the same time.
    ///
    /// Rows written with [`Durability::None`](crate::Durability::None) are in no log, so after such a write memtables are
    /// written into tables of the copy, as if the log were too long.
    ///
    /// Errors: `InvalidArgument` (`dir` exists, or the folder around it does not), `Locked` (somebody is making the same
    /// checkpoint), `Io`, `NoSpace`. After an error, or a crash, there is no `dir`; what a crash leaves under
    /// `dir` with `.unfinished` behind the name is removed by the next attempt, and may be removed by hand.
    pub fn checkpoint_with(
        &self,
        dir: impl AsRef<Path>,
        options: &CheckpointOptions,
    ) -> Result<CheckpointSummary> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        let started = core.env.clock.now();
        let result = core.checkpoint(dir.as_ref(), options);
        if let Ok(made) = &result {
            core.metrics.checkpoints.add(1);
            core.events.note(|| CheckpointMade {
                dir: dir.as_ref().to_owned(),
                sequence: made.sequence,
                linked_files: made.linked_files,
                copied_bytes: made.copied_bytes,
                written_bytes: made.written_bytes,
                took: core.env.clock.now().saturating_sub(started),
            });
        }
        // What was held meanwhile.
        core.release_wal();
        core.bury_dead_files();
        result
    }
}

/// A family as the copy will have it.
pub(super) struct Pinned {
    pub family: Arc<Family>,
    pub view: Arc<View>,
    pub options: Arc<ColumnFamilyOptions>,
}

impl Pinned {
    pub fn new(family: &Arc<Family>) -> Self {
        Self {
            view: family.view_owned(),
            options: Arc::clone(&family.options()),
            family: Arc::clone(family),
        }
    }
}

/// The moment that is copied.
struct Point {
    sequence: Sequence,
    families: Vec<Pinned>,
    /// The segment that was written to.
    wal_number: u64,
    /// Whether memtables are sealed and are to be written into tables, so that no segment is needed for their rows.
    without_wal: bool,
    /// Segments that are needed, and how many of their bytes.
    segments: Vec<(u64, u64)>,
}

impl Core {
    fn checkpoint(&self, dir: &Path, options: &CheckpointOptions) -> Result<CheckpointSummary> {
        let mut folder = NewFolder::begin(&self.env, dir)?;
        let hold = self.wal.hold();
        // Who holds the token may wait for a flush, and a broken segment is left by way of one.
        let requested = self.request_flush();
        let point = self.with_token(|token| self.pin_point(token, options, requested))?;
        for &(number, bytes) in &point.segments {
            folder.copy(&self.wal.path(number), &FileKind::Wal(number).name(), bytes)?;
        }
        drop(hold);
        let mut state = VersionState::new(self.manifest.lock().state.database_id);
        let mut written_bytes = 0;
        for pinned in &point.families {
            let written = if point.without_wal {
                self.write_memtables(pinned, folder.dir())?
            } else {
                Written::default()
            };
            written_bytes += written.bytes();
            let mut edit = point.edit(pinned);
            for file in new_files(&edit) {
                folder.link(&file.path(&self.dir), &file.name())?;
            }
            written.add_to(&mut edit, 0);
            state.apply(&edit)?;
        }
        state.next_column_family = state
            .next_column_family
            .max(self.manifest.lock().state.next_column_family);
        let number = self.new_file_number();
        state.next_file_number = state.next_file_number.max(number + 1);
        ManifestWriter::create(Arc::clone(&self.env.fs), folder.dir(), number, &state)?;
        let summary = CheckpointSummary {
            sequence: point.sequence,
            linked_files: folder.linked_files,
            copied_bytes: folder.copied_bytes,
            written_bytes,
        };
        folder.finish()?;
        Ok(summary)
    }

    fn pin_point(
        &self,
        token: &mut Token,
        options: &CheckpointOptions,
        requested: RequestedFlush<'_>,
    ) -> Result<Point> {
        self.check_open()?;
        if token.wal_broken {
            self.leave_broken_segment(token, false)?;
        }
        // While somebody pauses background work nothing that is sealed from here on is flushed.
        drop(requested);
        let mut point = self.point(token, false);
        let wal_bytes: u64 = point.segments.iter().map(|(_, bytes)| bytes).sum();
        if wal_bytes > options.wal_bytes_max || self.unlogged.load(Ordering::Relaxed) {
            for family in token.families.by_id.values().cloned().collect::<Vec<_>>() {
                self.seal(token, &family)?;
            }
            point = self.point(token, true);
        }
        Ok(point)
    }

    fn point(&self, token: &Token, without_wal: bool) -> Point {
        let families: Vec<Pinned> = token.families.by_id.values().map(Pinned::new).collect();
        let mut oldest = match without_wal {
            true => None,
            false => families
                .iter()
                .filter_map(|pinned| oldest_wal(&pinned.view))
                .min(),
        };
        // All that is prepared is in the last segment.
        if self.prepared.lock().is_logged() {
            oldest = oldest.or(Some(token.wal_number));
        }
        let mut segments = self.wal.live();
        segments.retain(|&(number, _)| oldest.is_some_and(|oldest| number >= oldest));
        if let Some((number, bytes)) = segments.last_mut()
            && let Some(wal) = token.wal.as_ref().filter(|wal| wal.id().number == *number)
        {
            *bytes = wal.len();
        }
        Point {
            sequence: token.last_sequence,
            families,
            wal_number: token.wal_number,
            without_wal,
            segments,
        }
    }

    /// Writes what a family's sealed memtables hold into files of level 0 in `dir`. The active one is empty, or holds rows
    /// of later.
    pub(super) fn write_memtables(&self, pinned: &Pinned, dir: &Path) -> Result<Written> {
        let sealed = pinned.view.sealed.iter();
        let tables: Vec<Arc<Memtable>> = sealed.map(|buffer| Arc::clone(&buffer.table)).collect();
        if tables.is_empty() {
            return Ok(Written::default());
        }
        let output = OutputContext {
            dir,
            sync: true,
            cache: None,
            ..self.output_context(&pinned.family, &pinned.options, 0, None)
        };
        // The copy has no snapshots.
        flush::run(&tables, Vec::new(), &output, false)
    }
}

impl Point {
    /// Makes the family in the manifest of the copy.
    fn edit(&self, pinned: &Pinned) -> VersionEdit {
        let mut edit = VersionEdit::of(pinned.family.id);
        edit.create = Some(record(&pinned.family.name, &pinned.options));
        edit.last_sequence = Some(self.sequence);
        let needed = if self.without_wal {
            None
        } else {
            oldest_wal(&pinned.view)
        };
        edit.log_number = Some(needed.unwrap_or(self.wal_number));
        let version = &pinned.view.version;
        edit.added_blobs = version
            .blobs()
            .iter()
            .map(|blob| Arc::clone(&blob.file))
            .collect();
        for (level, file) in version.files() {
            edit.add(level, Arc::clone(file));
        }
        edit
    }
}
