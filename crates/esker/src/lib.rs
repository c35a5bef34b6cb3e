//! Esker: a flash-optimised LSM storage engine.
//!
//! The map of the crate, from the top row to the bottom; a module uses only modules of rows below its own:
//!
//! | row | modules |
//! |---|---|
//! | the database, and its files looked at from outside | `db` `inspect` |
//! | its threads | `background` |
//! | its three ways to write | `commit` `flush` `compaction` |
//! | what flushes and compactions keep of their rows | `rewrite` |
//! | its way to read | `read` |
//! | what a reader pins | `snapshot` `version` |
//! | where data is | `memtable` `wal` `sstable` `blob` |
//! | its parts | `batch` `cache` |
//! | words | `key` `codec` `metrics` `options` `hooks` `merge` `error` |
//! | what threads meet by | `sync` |
#![deny(missing_docs)]

#[doc(hidden)]
pub mod background;
#[doc(hidden)]
pub mod batch;
#[doc(hidden)]
pub mod blob;
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod codec;
#[doc(hidden)]
pub mod commit;
#[doc(hidden)]
pub mod compaction;
mod db;
mod error;
#[doc(hidden)]
pub mod flush;
mod hooks;
pub mod inspect;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
pub mod memtable;
mod merge;
#[doc(hidden)]
pub mod metrics;
mod options;
#[doc(hidden)]
pub mod read;
#[doc(hidden)]
pub mod rewrite;
mod snapshot;
#[doc(hidden)]
pub mod sstable;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod version;
#[doc(hidden)]
pub mod wal;

pub use db::{
    CaughtUp, CheckpointOptions, CheckpointSummary, ColumnFamily, DamagedFile, Db, DeletedFiles,
    ExportSummary, FamilyStats, Follower, ImportOptions, ImportSummary, IngestOptions, IngestSummary, Iter,
    LevelStats, LostRange, ManifestState, Mutation, Opener, PROPERTIES, Prepared, RecoveryReport,
    RepairOptions, RepairReport, Stats, TableDescription, TableFileSummary, TableFileWriter, WriteBatch,
    repair, repair_on,
};
pub use error::{Error, ErrorKind, Result};
pub use esker_env::IoMode;
pub use hooks::{
    BackgroundError, BackgroundErrorOver, BackgroundTask, CheckpointMade, CompactionBegun, CompactionEnded,
    CompactionInput, CompactionReason, DataFileKind, EventFamily, EventListener, EventsLost, FamilyCreated,
    FamilyDropped, FileCause, FileCreated, FileDeleted, FlushBegun, FlushEnded, JobOutcome, JobOutput,
    MemtableSealed, Moment, SnapshotFreed, TablesDropped, TablesIngested, WriteStall, WriteStallChanged,
};
pub use hooks::{
    CollectedRow, CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision, Hooks,
    PropertyCollector, PropertyCollectorFactory, RewriteCause, RowKind,
};
pub use key::{BytewiseComparator, Comparator, KeyOrder, ReverseBytewiseComparator};
pub use merge::{AppendOperator, MergeOperator, U64AddOperator};
pub use metrics::HistogramStats;
#[doc(hidden)]
pub use options::fuzz_options_text;
pub use options::{
    Aging, ColumnFamilyOptions, CompactionStyle, Compression, Durability, MemtableKind, Options,
    PrefixExtractor, RecoveryMode, WriteOptions,
};
pub use read::{PinnedValue, ReadOptions};
pub use snapshot::Snapshot;

/// The version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The README's quick start compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
