//! What is noted for listeners, and where its figures come from.
//!
//! Rule: what changes the set of files is noted under the manifest's lock, right behind the step that puts it in force. As edits
//! take effect in the order of that lock, so are events: files created, then the end of their job; and a file can only be
//! deleted by an edit that comes later. Of a flush it is noted right before that step, and held back: who waits for a flush sees
//! the step, and must not miss the event. What changes memtables, families or the way in which writers are let in is noted under
//! the token. Nobody is called here (`background/events.rs`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Db;
use super::core::{Core, Families};
use crate::compaction::picker::{Plan, PlanKind, Reason};
use crate::error::{Error, Result};
use crate::hooks::{
    CompactionBegun, CompactionEnded, CompactionInput, CompactionReason, DataFileKind, EventFamily,
    FileCause, FileCreated, FileDeleted, FlushBegun, FlushEnded, JobOutcome, JobOutput, MemtableSealed,
    WriteStall, WriteStallChanged,
};
use crate::version::{Buffer, Family, FileKind, VersionEdit};

/// A job whose end is to be told.
#[derive(Clone, Copy)]
pub(super) struct JobWatch {
    job: u64,
    started: Duration,
}

impl JobWatch {
    /// Its number.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// When it began.
    pub fn started(&self) -> Duration {
        self.started
    }
}

impl Db {
    /// Waits until the [listeners](crate::EventListener) were told everything that happened before this call; at once where
    /// there are none. Error: `InvalidArgument` if a listener calls it.
    pub fn wait_for_listeners(&self) -> Result<()> {
        self.core().events.wait()
    }
}

pub(super) fn event_family(family: &Family) -> EventFamily {
    EventFamily {
        id: family.id,
        name: family.name.clone(),
    }
}

impl Core {
    fn watch(&self) -> JobWatch {
        JobWatch {
            job: self.events.next_job(),
            started: self.env.clock.now(),
        }
    }

    fn took(&self, watch: &JobWatch) -> Duration {
        self.env.clock.now().saturating_sub(watch.started)
    }

    /// A flush of these memtables begins.
    pub fn begin_flush(&self, family: &Family, sealed: &[Arc<Buffer>]) -> JobWatch {
        let watch = self.watch();
        self.events.note(|| FlushBegun {
            job: watch.job,
            family: event_family(family),
            memtables: sealed.len(),
            rows: sealed.iter().map(|buffer| buffer.table.entries()).sum(),
            bytes: sealed
                .iter()
                .map(|buffer| buffer.table.approximate_bytes() as u64)
                .sum(),
        });
        watch
    }

    /// The flush's result is durable and about to come into force. Under the manifest's lock.
    pub fn flush_done(&self, watch: &JobWatch, family: &Family, edit: &VersionEdit) {
        let (took, written) = (self.took(watch), output_of(edit));
        self.metrics.flushes.add(1);
        self.metrics.flush_bytes.add(written.bytes);
        self.metrics.flush_us.record(took);
        self.note_files(family, edit, FileCause::Flush(watch.job));
        self.note_flush_ended(watch, family, JobOutcome::Done, written);
    }

    /// The flush has no result: it failed, or its family is gone.
    pub fn flush_undone(&self, watch: &JobWatch, family: &Family, outcome: JobOutcome) {
        self.note_flush_ended(watch, family, outcome, JobOutput::default());
    }

    fn note_flush_ended(&self, watch: &JobWatch, family: &Family, outcome: JobOutcome, written: JobOutput) {
        self.events.note(|| FlushEnded {
            job: watch.job,
            family: event_family(family),
            outcome,
            written,
            took: self.took(watch),
        });
    }

    /// A compaction begins.
    pub fn begin_compaction(&self, family: &Family, plan: &Plan) -> JobWatch {
        let watch = self.watch();
        self.events.note(|| CompactionBegun {
            input: input_of(&watch, family, plan),
        });
        watch
    }

    /// The compaction's result is in force. Under the manifest's lock.
    pub fn compaction_done(&self, watch: &JobWatch, family: &Family, plan: &Plan, edit: &VersionEdit) {
        let mut written = JobOutput::default();
        if plan.kind == PlanKind::Move {
            self.metrics.trivial_moves.add(edit.added.len() as u64);
        } else {
            written = output_of(edit);
            self.metrics.compactions.add(1);
            match plan.reason {
                Reason::Marked => self.metrics.compactions_for_tombstones.add(1),
                Reason::Age => self.metrics.compactions_for_age.add(1),
                Reason::HiddenRows => self.metrics.compactions_for_hidden_rows.add(1),
                Reason::BlobSpace => self.metrics.compactions_for_blob_space.add(1),
                _ => {}
            }
            self.metrics.compaction_write_bytes.add(written.bytes);
            self.metrics.compaction_us.record(self.took(watch));
            self.note_files(family, edit, FileCause::Compaction(watch.job));
        }
        self.note_compaction_ended(watch, family, plan, JobOutcome::Done, written);
    }

    /// The compaction has no result: it failed, or its family is gone.
    pub fn compaction_undone(&self, watch: &JobWatch, family: &Family, plan: &Plan, outcome: JobOutcome) {
        self.note_compaction_ended(watch, family, plan, outcome, JobOutput::default());
    }

    fn note_compaction_ended(
        &self,
        watch: &JobWatch,
        family: &Family,
        plan: &Plan,
        outcome: JobOutcome,
        written: JobOutput,
    ) {
        self.events.note(|| CompactionEnded {
            input: input_of(watch, family, plan),
            outcome,
            written,
            took: self.took(watch),
        });
    }

    /// The files that an edit has brought. Under the manifest's lock.
    pub fn note_files(&self, family: &Family, edit: &VersionEdit, cause: FileCause) {
        if !self.events.is_on() {
            return;
        }
        for blob in &edit.added_blobs {
            self.events.note(|| FileCreated {
                number: blob.number,
                kind: DataFileKind::Blob,
                family: event_family(family),
                level: None,
                bytes: blob.file_bytes,
                rows: blob.records,
                cause,
            });
        }
        for (level, file) in &edit.added {
            self.events.note(|| FileCreated {
                number: file.number,
                kind: DataFileKind::Table,
                family: event_family(family),
                level: Some(usize::from(*level)),
                bytes: file.size_bytes,
                rows: file.entries,
                cause,
            });
        }
    }

    /// A dead file was removed.
    pub fn note_removed(&self, file: FileKind, bytes: u64) {
        self.metrics.files_removed.add(1);
        let (number, kind) = match file {
            FileKind::Table(number) => (number, DataFileKind::Table),
            FileKind::Blob(number) => (number, DataFileKind::Blob),
            _ => return,
        };
        self.events.note(|| FileDeleted { number, kind, bytes });
    }

    /// The family's memtable is about to be sealed. Under the token, and before a flush can find it.
    pub fn note_sealed(&self, family: &Family) {
        self.metrics.memtables_sealed.add(1);
        self.events.note(|| {
            let view = family.view();
            MemtableSealed {
                family: event_family(family),
                rows: view.active.table.entries(),
                bytes: view.active.table.approximate_bytes() as u64,
            }
        });
    }

    /// Writers wait for a flush from now on, of this family's memtables or of any. Under the token.
    pub fn stop_writers(&self, family: Option<&Family>) {
        self.set_stall(WriteStall::Stopped, || family.map(event_family));
    }

    /// Writers are let in, held back or not. Under the token.
    #[inline]
    pub fn let_writers_in(&self, held_back: bool) {
        if held_back {
            self.set_stall(WriteStall::HeldBack, || most_pressed(&self.families.load()));
        } else {
            self.set_stall(WriteStall::None, || None);
        }
    }

    #[inline]
    fn set_stall(&self, now: WriteStall, family: impl FnOnce() -> Option<EventFamily>) {
        if self.stall.load(Ordering::Relaxed) == now as u8 {
            return;
        }
        let before = self.stall();
        self.stall.store(now as u8, Ordering::Relaxed);
        self.events.note(|| WriteStallChanged {
            family: family(),
            before,
            now,
            pressure: pressure_of(&self.families.load()),
        });
    }

    /// How writers are let in.
    pub fn stall(&self) -> WriteStall {
        match self.stall.load(Ordering::Relaxed) {
            0 => WriteStall::None,
            1 => WriteStall::HeldBack,
            _ => WriteStall::Stopped,
        }
    }
}

/// The outcome of a job that failed.
pub(super) fn failed(error: &Error) -> JobOutcome {
    JobOutcome::Failed(error.clone())
}

/// The highest pressure of all families.
pub(super) fn pressure_of(families: &Families) -> f64 {
    let pressures = families.by_id.values().map(|family| family.pressure());
    pressures.fold(0.0, f64::max)
}

fn most_pressed(families: &Families) -> Option<EventFamily> {
    let family = families
        .by_id
        .values()
        .max_by(|a, b| a.pressure().total_cmp(&b.pressure()))?;
    Some(event_family(family))
}

/// What an edit brings into the database.
fn output_of(edit: &VersionEdit) -> JobOutput {
    let tables = || edit.added.iter().map(|(_, file)| file);
    let blob_bytes: u64 = edit.added_blobs.iter().map(|blob| blob.file_bytes).sum();
    JobOutput {
        tables: edit.added.len(),
        blob_files: edit.added_blobs.len(),
        rows: tables().map(|file| file.entries).sum(),
        bytes: tables().map(|file| file.size_bytes).sum::<u64>() + blob_bytes,
    }
}

fn input_of(watch: &JobWatch, family: &Family, plan: &Plan) -> CompactionInput {
    CompactionInput {
        job: watch.job,
        family: event_family(family),
        reason: match plan.reason {
            Reason::Level0Full => CompactionReason::Level0Full,
            Reason::Level0Deep => CompactionReason::Level0Deep,
            Reason::LevelFull => CompactionReason::LevelFull,
            Reason::LevelUnused => CompactionReason::LevelUnused,
            Reason::Marked => CompactionReason::Tombstones,
            Reason::Age => CompactionReason::Age,
            Reason::HiddenRows => CompactionReason::HiddenRows,
            Reason::BlobSpace => CompactionReason::BlobSpace,
            Reason::Manual | Reason::Bulk => CompactionReason::Manual,
        },
        is_move: plan.kind == PlanKind::Move,
        level_from: plan.level_in,
        level_to: plan.level_out,
        tables: plan.files().count(),
        rows: plan.files().map(|(_, file)| file.entries).sum(),
        bytes: plan.input_bytes(),
    }
}
