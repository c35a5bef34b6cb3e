//! Event listeners: a program is told what flushes, compactions and callers have done to the database.
//!
//! - **Thread.** All listeners of a database are called by one thread of its own, `esker-events`, one call after the other, in
//!   the order in which they were given. The engine notes an event where it happens and goes on; it never waits for a listener.
//! - **Locks.** The thread holds none. A listener may call everything, also `close`, and also what waits for flushes and
//!   compactions. Only [`Db::wait_for_listeners`](crate::Db::wait_for_listeners) is refused there, as it would wait for itself.
//! - **Order.** Events are numbered as they happen, over the whole database, and told in that order ([`Moment`]). So for each
//!   job: begun, the files created, ended. A file is created before it is deleted, and deleted after the job ended that replaced
//!   it. A memtable is sealed before the flush begins that takes it. A family is created before anything happens to it; after
//!   it was dropped, jobs that ran end ([`JobOutcome::FamilyDropped`]), files are deleted, and nothing else.
//! - **What is told** has taken effect: when `file_created` is called the file is in force, and durable unless
//!   `sync_files` is off. By then the database may be further on.
//! - **Panics** of a listener are caught and counted (`listener_panics`); it is called for the next event all the same.
//! - **Limit.** 65,536 events may wait while listeners are busy with as many of before. What happens beyond is not told; then
//!   [`events_lost`](EventListener::events_lost) says how much, at its place in the order, and the counter `events_lost` counts it.
//! - **End.** `close`, or the last handle's going, tells what is left and lets the listeners go. So a listener may hold a
//!   `Db` of its own; but that keeps the database open until somebody calls `close`.
//!
//! A database without listeners has no such thread, and no event of it is made. One that was opened read-only has no events.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;

/// Events that may wait to be told.
pub(crate) const EVENTS_WAITING_MAX: usize = 65_536;

/// When an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moment {
    /// Events of the database are numbered from 1 on, in the order in which they happened; lost ones have their numbers, too.
    pub number: u64,
    /// On the clock that never goes back: for the time between two events.
    pub monotonic: Duration,
    /// Seconds since 1970-01-01 UTC.
    pub unix_seconds: u64,
}

/// The column family that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventFamily {
    /// Its number, which is never used again.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// What became of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JobOutcome {
    /// Its result is in force.
    Done,
    /// The family was dropped meanwhile: its result was thrown away.
    FamilyDropped,
    /// It failed; nothing changed, and it is tried again later.
    Failed(Error),
}

/// Why a compaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactionReason {
    /// Level 0 has too many files or bytes.
    Level0Full,
    /// Level 0 is deep and can't go down now: its newest files are made into one.
    Level0Deep,
    /// The level is larger than its target.
    LevelFull,
    /// The level is above the base level and should be empty.
    LevelUnused,
    /// A table has many tombstones.
    Tombstones,
    /// A table is older than tables of the family may be.
    Age,
    /// Iterators step over what is hidden in level 0 or by it again and again.
    HiddenRows,
    /// Blob files have too much dead space.
    BlobSpace,
    /// [`compact_range`](crate::Db::compact_range).
    Manual,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataFileKind {
    /// An SSTable.
    Table,
    /// A blob file.
    Blob,
}

/// How a file came into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileCause {
    /// The flush of this number wrote it.
    Flush(u64),
    /// The compaction of this number wrote it.
    Compaction(u64),
    /// It was ingested.
    Ingestion,
    /// The opening of the database wrote it, from the log.
    Recovery,
}

/// How writers are let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WriteStall {
    /// They don't wait.
    #[default]
    None,
    /// They are held back to a rate, because compactions are behind.
    HeldBack,
    /// They wait for a flush: memory is full, or the log could not be written.
    Stopped,
}

/// What works in the background, or for all writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackgroundTask {
    /// Flushes.
    Flush,
    /// Compactions.
    Compaction,
    /// The log or the manifest; what fails there ends writing for good.
    Log,
}

/// A flush begins. Its number is that of the job; numbers are never used twice while the database is open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlushBegun {
    /// The job's number.
    pub job: u64,
    /// The family.
    pub family: EventFamily,
    /// Memtables that become one table.
    pub memtables: usize,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of memory that they take.
    pub bytes: u64,
}

/// A flush has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlushEnded {
    /// The job's number.
    pub job: u64,
    /// The family.
    pub family: EventFamily,
    /// What became of it.
    pub outcome: JobOutcome,
    /// What it wrote; nothing if it failed.
    pub written: JobOutput,
    /// How long it took.
    pub took: Duration,
}

/// What a job wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobOutput {
    /// Tables.
    pub tables: usize,
    /// Blob files.
    pub blob_files: usize,
    /// Rows in the tables.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// What a compaction is to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionInput {
    /// The job's number.
    pub job: u64,
    /// The family.
    pub family: EventFamily,
    /// Why.
    pub reason: CompactionReason,
    /// Whether the tables only change their level, and nothing is written.
    pub is_move: bool,
    /// The level that gives.
    pub level_from: usize,
    /// The level that takes.
    pub level_to: usize,
    /// Tables that take part, those of the level that takes included.
    pub tables: usize,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A compaction begins.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionBegun {
    /// What it is to do.
    pub input: CompactionInput,
}

/// A compaction has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionEnded {
    /// What it was to do.
    pub input: CompactionInput,
    /// What became of it.
    pub outcome: JobOutcome,
    /// What it wrote; nothing if it failed or moved its tables.
    pub written: JobOutput,
    /// How long it took.
    pub took: Duration,
}

/// A file is in force.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileCreated {
    /// The number in its name.
    pub number: u64,
    /// What it is.
    pub kind: DataFileKind,
    /// The family.
    pub family: EventFamily,
    /// The level of a table; `None` for blob files.
    pub level: Option<usize>,
    /// Its length.
    pub bytes: u64,
    /// Rows of a table, values in a blob file.
    pub rows: u64,
    /// How it came.
    pub cause: FileCause,
}

/// A file was removed: nobody needed it any more, nor read it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileDeleted {
    /// The number in its name.
    pub number: u64,
    /// What it was.
    pub kind: DataFileKind,
    /// Its length.
    pub bytes: u64,
}

/// A memtable takes no more rows and waits for its flush.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemtableSealed {
    /// The family.
    pub family: EventFamily,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of memory that it takes.
    pub bytes: u64,
}

/// Writers are let in otherwise than before. A write notices it, so that without writes nothing changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteStallChanged {
    /// The family whose debt holds writers back, or whose memtables they wait for; `None`: the memory of all, or the log, or
    /// that there is none any more.
    pub family: Option<EventFamily>,
    /// As it was.
    pub before: WriteStall,
    /// As it is.
    pub now: WriteStall,
    /// The highest pressure of all families, 0 to 1, beyond which writers are held to a tenth of the rate.
    pub pressure: f64,
}

/// Background work or the log has failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackgroundError {
    /// What failed.
    pub task: BackgroundTask,
    /// Why.
    pub error: Error,
    /// Whether the database takes no more writes because of it; else it is tried again.
    pub is_final: bool,
}

/// What had failed works again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BackgroundErrorOver {
    /// What had failed.
    pub task: BackgroundTask,
}

/// Tables were ingested; each was told as a file created.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TablesIngested {
    /// Tables, over all families of the call.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// The last sequence number that their rows got.
    pub sequence: u64,
}

/// Whole tables of key ranges were dropped ([`delete_files_in_ranges`](crate::Db::delete_files_in_ranges)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TablesDropped {
    /// The family.
    pub family: EventFamily,
    /// Tables.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A checkpoint is complete and durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckpointMade {
    /// Its folder.
    pub dir: PathBuf,
    /// It holds all writes up to this sequence number.
    pub sequence: u64,
    /// Files that the database and the checkpoint share.
    pub linked_files: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes of tables and blob files that memtables were written to.
    pub written_bytes: u64,
    /// How long it took.
    pub took: Duration,
}

/// A column family was created.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyCreated {
    /// The family.
    pub family: EventFamily,
}

/// A column family was dropped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyDropped {
    /// The family.
    pub family: EventFamily,
}

/// The last clone of a [`Snapshot`](crate::Snapshot) is gone. Those of iterators are not told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SnapshotFreed {
    /// What it saw.
    pub sequence: u64,
    /// What the oldest that is left sees, iterators' included; `None`: there is none.
    pub oldest_left: Option<u64>,
}

/// Events were not told, because listeners were too slow.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventsLost {
    /// How many.
    pub count: u64,
}
