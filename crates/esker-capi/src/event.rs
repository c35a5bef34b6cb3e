//! What listeners are told: each event as C has it.

use crate::error::esker_error;
use crate::slice::esker_slice;

/// In the place of a number that stands for a word: one that this version of the header has no name for.
pub const ESKER_UNNAMED: u32 = 0xffff_ffff;

/// When an event happened.
#[repr(C)]
pub struct esker_moment {
    /// Events of the database are numbered from 1 on, in the order in which they happened; lost ones have their numbers, too.
    pub number: u64,
    /// On a clock that never goes back, in microseconds: for the time between two events.
    pub monotonic_us: u64,
    /// Seconds since 1970 UTC.
    pub unix_seconds: u64,
}

/// The column family that an event is about.
#[repr(C)]
pub struct esker_event_family<'a> {
    /// Its number, which is never used again.
    pub id: u32,
    /// Its name.
    pub name: esker_slice<'a>,
}

/// What became of a job.
pub type esker_job_outcome = u32;
/// Its result is in force.
pub const ESKER_JOB_DONE: esker_job_outcome = 0;
/// The family was dropped meanwhile: its result was thrown away.
pub const ESKER_JOB_FAMILY_DROPPED: esker_job_outcome = 1;
/// It failed; nothing changed, and it is tried again later.
pub const ESKER_JOB_FAILED: esker_job_outcome = 2;

/// Why a compaction runs.
pub type esker_compaction_reason = u32;
/// Level 0 has too many files or bytes.
pub const ESKER_LEVEL0_FULL: esker_compaction_reason = 0;
/// Level 0 is deep and can't go down now: its newest files are made into one.
pub const ESKER_LEVEL0_DEEP: esker_compaction_reason = 1;
/// The level is larger than its target.
pub const ESKER_LEVEL_FULL: esker_compaction_reason = 2;
/// The level is above the base level and should be empty.
pub const ESKER_LEVEL_UNUSED: esker_compaction_reason = 3;
/// A table has many tombstones.
pub const ESKER_TOMBSTONES: esker_compaction_reason = 4;
/// A table is older than tables of the family may be.
pub const ESKER_AGE: esker_compaction_reason = 5;
/// Blob files have too much dead space.
pub const ESKER_BLOB_SPACE: esker_compaction_reason = 6;
/// `esker_db_compact_range`.
pub const ESKER_MANUAL: esker_compaction_reason = 7;
/// Iterators step over what is hidden in level 0 or by it again and again.
pub const ESKER_HIDDEN_ROWS: esker_compaction_reason = 8;

/// What a file is.
pub type esker_file_kind = u32;
/// A table.
pub const ESKER_TABLE_FILE: esker_file_kind = 0;
/// A blob file: values.
pub const ESKER_BLOB_FILE: esker_file_kind = 1;

/// How a file came into the database.
pub type esker_file_cause = u32;
/// A flush wrote it.
pub const ESKER_BY_FLUSH: esker_file_cause = 0;
/// A compaction wrote it.
pub const ESKER_BY_COMPACTION: esker_file_cause = 1;
/// It was ingested.
pub const ESKER_BY_INGESTION: esker_file_cause = 2;
/// The opening of the database wrote it, from the log.
pub const ESKER_BY_RECOVERY: esker_file_cause = 3;

/// How writers are let in.
pub type esker_write_stall = u32;
/// They don't wait.
pub const ESKER_STALL_NONE: esker_write_stall = 0;
/// They are held back to a rate, because compactions are behind.
pub const ESKER_STALL_HELD_BACK: esker_write_stall = 1;
/// They wait for a flush: memory is full, or the log could not be written.
pub const ESKER_STALL_STOPPED: esker_write_stall = 2;

/// What works in the background, or for all writers.
pub type esker_background_task = u32;
/// Flushes.
pub const ESKER_TASK_FLUSH: esker_background_task = 0;
/// Compactions.
pub const ESKER_TASK_COMPACTION: esker_background_task = 1;
/// The log or the manifest; what fails there ends writing for good.
pub const ESKER_TASK_LOG: esker_background_task = 2;

/// What a job wrote.
#[repr(C)]
pub struct esker_job_output {
    /// Tables.
    pub tables: u64,
    /// Blob files.
    pub blob_files: u64,
    /// Rows in the tables.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// A flush begins.
#[repr(C)]
pub struct esker_flush_begun<'a> {
    /// The job's number, which no other job of this opening of the database has.
    pub job: u64,
    /// The family.
    pub family: esker_event_family<'a>,
    /// Memtables that become one table.
    pub memtables: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of memory that they take.
    pub bytes: u64,
}

/// A flush has ended.
#[repr(C)]
pub struct esker_flush_ended<'a> {
    /// The job's number.
    pub job: u64,
    /// The family.
    pub family: esker_event_family<'a>,
    /// What became of it.
    pub outcome: esker_job_outcome,
    /// Why it failed; null if it did not. Not to be freed.
    pub error: Option<&'a esker_error>,
    /// What it wrote; nothing if it failed.
    pub written: esker_job_output,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// What a compaction is to do.
#[repr(C)]
pub struct esker_compaction_input<'a> {
    /// The job's number.
    pub job: u64,
    /// The family.
    pub family: esker_event_family<'a>,
    /// Why.
    pub reason: esker_compaction_reason,
    /// Whether the tables only change their level, and nothing is written.
    pub is_move: bool,
    /// The level that gives.
    pub level_from: usize,
    /// The level that takes.
    pub level_to: usize,
    /// Tables that take part, those of the level that takes included.
    pub tables: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A compaction begins.
#[repr(C)]
pub struct esker_compaction_begun<'a> {
    /// What it is to do.
    pub input: esker_compaction_input<'a>,
}

/// A compaction has ended.
#[repr(C)]
pub struct esker_compaction_ended<'a> {
    /// What it was to do.
    pub input: esker_compaction_input<'a>,
    /// What became of it.
    pub outcome: esker_job_outcome,
    /// Why it failed; null if it did not. Not to be freed.
    pub error: Option<&'a esker_error>,
    /// What it wrote; nothing if it failed or moved its tables.
    pub written: esker_job_output,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// A file is in force.
#[repr(C)]
pub struct esker_file_created<'a> {
    /// The number in its name.
    pub number: u64,
    /// What it is.
    pub kind: esker_file_kind,
    /// The family.
    pub family: esker_event_family<'a>,
    /// The level of a table; `SIZE_MAX` for a blob file.
    pub level: usize,
    /// Its length.
    pub bytes: u64,
    /// Rows of a table, values in a blob file.
    pub rows: u64,
    /// How it came.
    pub cause: esker_file_cause,
    /// The number of the job that wrote it; 0 if none did.
    pub job: u64,
}

/// A file was removed: nobody needed it any more, nor read it.
#[repr(C)]
pub struct esker_file_deleted {
    /// The number in its name.
    pub number: u64,
    /// What it was.
    pub kind: esker_file_kind,
    /// Its length.
    pub bytes: u64,
}

/// A memtable takes no more rows and waits for its flush.
#[repr(C)]
pub struct esker_memtable_sealed<'a> {
    /// The family.
    pub family: esker_event_family<'a>,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of memory that it takes.
    pub bytes: u64,
}

/// Writers are let in otherwise than before. A write notices it, so that without writes nothing changes.
#[repr(C)]
pub struct esker_write_stall_changed<'a> {
    /// The family whose debt holds writers back, or whose memtables they wait for; its name has no data where it is the memory of
    /// all, or the log, or that there is none any more.
    pub family: esker_event_family<'a>,
    /// As it was.
    pub before: esker_write_stall,
    /// As it is.
    pub now: esker_write_stall,
    /// The highest pressure of all families, 0 to 1, beyond which writers are held to a tenth of the rate.
    pub pressure: f64,
}

/// Background work or the log has failed.
#[repr(C)]
pub struct esker_background_error<'a> {
    /// What failed.
    pub task: esker_background_task,
    /// Why. Not to be freed.
    pub error: &'a esker_error,
    /// Whether the database takes no more writes because of it; else it is tried again.
    pub is_final: bool,
}

/// What had failed works again.
#[repr(C)]
pub struct esker_background_error_over {
    /// What had failed.
    pub task: esker_background_task,
}

/// Tables were ingested; each was told as a file created.
#[repr(C)]
pub struct esker_tables_ingested {
    /// Tables, over all families of the call.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// The last sequence number that their rows got.
    pub sequence: u64,
}

/// Whole tables of key ranges were dropped.
#[repr(C)]
pub struct esker_tables_dropped<'a> {
    /// The family.
    pub family: esker_event_family<'a>,
    /// Tables.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A checkpoint is complete and durable.
#[repr(C)]
pub struct esker_checkpoint_made<'a> {
    /// Its folder.
    pub path: esker_slice<'a>,
    /// It holds all writes up to this sequence number.
    pub sequence: u64,
    /// Files that the database and the checkpoint share.
    pub linked_files: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes of tables and blob files that memtables were written to.
    pub written_bytes: u64,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// A column family was created.
#[repr(C)]
pub struct esker_family_created<'a> {
    /// The family.
    pub family: esker_event_family<'a>,
}

/// A column family was dropped.
#[repr(C)]
pub struct esker_family_dropped<'a> {
    /// The family.
    pub family: esker_event_family<'a>,
}

/// A snapshot, and all that shared it, is gone. Those of iterators are not told.
#[repr(C)]
pub struct esker_snapshot_freed {
    /// What it saw.
    pub sequence: u64,
    /// Whether there is another one, iterators' included.
    pub is_any_left: bool,
    /// What the oldest that is left sees, if there is one.
    pub oldest_left: u64,
}

/// Events were not told, because listeners were too slow.
#[repr(C)]
pub struct esker_events_lost {
    /// How many.
    pub count: u64,
}
