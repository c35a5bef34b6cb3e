//! Events of the engine made into those that C has.

use esker::{
    BackgroundError, BackgroundErrorOver, BackgroundTask, CheckpointMade, CompactionBegun, CompactionEnded,
    CompactionInput, CompactionReason, DataFileKind, EventFamily, EventsLost, FamilyCreated, FamilyDropped,
    FileCause, FileCreated, FileDeleted, FlushBegun, FlushEnded, JobOutcome, JobOutput, MemtableSealed,
    Moment, SnapshotFreed, TablesDropped, TablesIngested, WriteStall, WriteStallChanged,
};

use crate::boundary::micros;
use crate::error::esker_error;
use crate::event::*;
use crate::slice::esker_slice;

impl esker_moment {
    pub fn new(moment: &Moment) -> Self {
        Self {
            number: moment.number,
            monotonic_us: micros(moment.monotonic),
            unix_seconds: moment.unix_seconds,
        }
    }
}

/// An event of the engine that C is shown.
pub trait Shown {
    /// As C has it.
    type AsC<'a>;

    /// Shows it; what is shown stays for the call.
    fn show(&self, see: impl FnOnce(&Self::AsC<'_>));
}

fn family(family: &EventFamily) -> esker_event_family<'_> {
    esker_event_family {
        id: family.id,
        name: esker_slice::new(family.name.as_bytes()),
    }
}

fn file_kind(kind: DataFileKind) -> esker_file_kind {
    match kind {
        DataFileKind::Table => ESKER_TABLE_FILE,
        DataFileKind::Blob => ESKER_BLOB_FILE,
        _ => ESKER_UNNAMED,
    }
}

/// The number of a way in which writers are let in.
pub fn write_stall(stall: WriteStall) -> esker_write_stall {
    match stall {
        WriteStall::None => ESKER_STALL_NONE,
        WriteStall::HeldBack => ESKER_STALL_HELD_BACK,
        WriteStall::Stopped => ESKER_STALL_STOPPED,
        _ => ESKER_UNNAMED,
    }
}

fn task(task: BackgroundTask) -> esker_background_task {
    match task {
        BackgroundTask::Flush => ESKER_TASK_FLUSH,
        BackgroundTask::Compaction => ESKER_TASK_COMPACTION,
        BackgroundTask::Log => ESKER_TASK_LOG,
        _ => ESKER_UNNAMED,
    }
}

fn outcome(outcome: &JobOutcome) -> (esker_job_outcome, Option<Box<esker_error>>) {
    match outcome {
        JobOutcome::Done => (ESKER_JOB_DONE, None),
        JobOutcome::FamilyDropped => (ESKER_JOB_FAMILY_DROPPED, None),
        JobOutcome::Failed(error) => (ESKER_JOB_FAILED, Some(esker_error::new(error.clone()))),
        _ => (ESKER_UNNAMED, None),
    }
}

fn output(written: &JobOutput) -> esker_job_output {
    esker_job_output {
        tables: written.tables as u64,
        blob_files: written.blob_files as u64,
        rows: written.rows,
        bytes: written.bytes,
    }
}

fn input(input: &CompactionInput) -> esker_compaction_input<'_> {
    esker_compaction_input {
        job: input.job,
        family: family(&input.family),
        reason: match input.reason {
            CompactionReason::Level0Full => ESKER_LEVEL0_FULL,
            CompactionReason::Level0Deep => ESKER_LEVEL0_DEEP,
            CompactionReason::LevelFull => ESKER_LEVEL_FULL,
            CompactionReason::LevelUnused => ESKER_LEVEL_UNUSED,
            CompactionReason::Tombstones => ESKER_TOMBSTONES,
            CompactionReason::Age => ESKER_AGE,
            CompactionReason::HiddenRows => ESKER_HIDDEN_ROWS,
            CompactionReason::BlobSpace => ESKER_BLOB_SPACE,
            CompactionReason::Manual => ESKER_MANUAL,
            _ => ESKER_UNNAMED,
        },
        is_move: input.is_move,
        level_from: input.level_from,
        level_to: input.level_to,
        tables: input.tables as u64,
        rows: input.rows,
        bytes: input.bytes,
    }
}

impl Shown for FlushBegun {
    type AsC<'a> = esker_flush_begun<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_flush_begun {
            job: self.job,
            family: family(&self.family),
            memtables: self.memtables as u64,
            rows: self.rows,
            bytes: self.bytes,
        });
    }
}

impl Shown for FlushEnded {
    type AsC<'a> = esker_flush_ended<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        let (outcome, error) = outcome(&self.outcome);
        see(&esker_flush_ended {
            job: self.job,
            family: family(&self.family),
            outcome,
            error: error.as_deref(),
            written: output(&self.written),
            took_us: micros(self.took),
        });
    }
}

impl Shown for CompactionBegun {
    type AsC<'a> = esker_compaction_begun<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_compaction_begun {
            input: input(&self.input),
        });
    }
}

impl Shown for CompactionEnded {
    type AsC<'a> = esker_compaction_ended<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        let (outcome, error) = outcome(&self.outcome);
        see(&esker_compaction_ended {
            input: input(&self.input),
            outcome,
            error: error.as_deref(),
            written: output(&self.written),
            took_us: micros(self.took),
        });
    }
}

impl Shown for FileCreated {
    type AsC<'a> = esker_file_created<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        let (cause, job) = match self.cause {
            FileCause::Flush(job) => (ESKER_BY_FLUSH, job),
            FileCause::Compaction(job) => (ESKER_BY_COMPACTION, job),
            FileCause::Ingestion => (ESKER_BY_INGESTION, 0),
            FileCause::Recovery => (ESKER_BY_RECOVERY, 0),
            _ => (ESKER_UNNAMED, 0),
        };
        see(&esker_file_created {
            number: self.number,
            kind: file_kind(self.kind),
            family: family(&self.family),
            level: self.level.unwrap_or(usize::MAX),
            bytes: self.bytes,
            rows: self.rows,
            cause,
            job,
        });
    }
}

impl Shown for FileDeleted {
    type AsC<'a> = esker_file_deleted;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_file_deleted {
            number: self.number,
            kind: file_kind(self.kind),
            bytes: self.bytes,
        });
    }
}

impl Shown for MemtableSealed {
    type AsC<'a> = esker_memtable_sealed<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_memtable_sealed {
            family: family(&self.family),
            rows: self.rows,
            bytes: self.bytes,
        });
    }
}

impl Shown for WriteStallChanged {
    type AsC<'a> = esker_write_stall_changed<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        let nobody = esker_event_family {
            id: 0,
            name: esker_slice::NONE,
        };
        see(&esker_write_stall_changed {
            family: self.family.as_ref().map_or(nobody, family),
            before: write_stall(self.before),
            now: write_stall(self.now),
            pressure: self.pressure,
        });
    }
}

impl Shown for BackgroundError {
    type AsC<'a> = esker_background_error<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_background_error {
            task: task(self.task),
            error: &esker_error::new(self.error.clone()),
            is_final: self.is_final,
        });
    }
}

impl Shown for BackgroundErrorOver {
    type AsC<'a> = esker_background_error_over;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_background_error_over {
            task: task(self.task),
        });
    }
}

impl Shown for TablesIngested {
    type AsC<'a> = esker_tables_ingested;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_tables_ingested {
            tables: self.tables,
            bytes: self.bytes,
            sequence: self.sequence,
        });
    }
}

impl Shown for TablesDropped {
    type AsC<'a> = esker_tables_dropped<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_tables_dropped {
            family: family(&self.family),
            tables: self.tables,
            bytes: self.bytes,
        });
    }
}

impl Shown for CheckpointMade {
    type AsC<'a> = esker_checkpoint_made<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_checkpoint_made {
            path: esker_slice::new(self.dir.as_os_str().as_encoded_bytes()),
            sequence: self.sequence,
            linked_files: self.linked_files,
            copied_bytes: self.copied_bytes,
            written_bytes: self.written_bytes,
            took_us: micros(self.took),
        });
    }
}

impl Shown for FamilyCreated {
    type AsC<'a> = esker_family_created<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_family_created {
            family: family(&self.family),
        });
    }
}

impl Shown for FamilyDropped {
    type AsC<'a> = esker_family_dropped<'a>;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_family_dropped {
            family: family(&self.family),
        });
    }
}

impl Shown for SnapshotFreed {
    type AsC<'a> = esker_snapshot_freed;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_snapshot_freed {
            sequence: self.sequence,
            is_any_left: self.oldest_left.is_some(),
            oldest_left: self.oldest_left.unwrap_or(0),
        });
    }
}

impl Shown for EventsLost {
    type AsC<'a> = esker_events_lost;

    fn show(&self, see: impl FnOnce(&Self::AsC<'_>)) {
        see(&esker_events_lost { count: self.count });
    }
}
