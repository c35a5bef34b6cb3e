//! Esker: a flash-optimised LSM storage engine.
//!
//! The map of the crate, from the top row to the bottom; a module uses only modules of rows below its own:
//!
//! | row | modules |
//! |---|---|
//! | the database | `db` |
//! | its threads | `background` |
//! | its three ways to write | `commit` `flush` `compaction` |
//! | its way to read | `read` |
//! | what a reader pins | `snapshot` `version` |
//! | where data is | `memtable` `wal` `sstable` |
//! | its parts | `batch` `cache` |
//! | words | `key` `codec` `metrics` `options` `merge` `error` |
#![deny(missing_docs)]

#[doc(hidden)]
pub mod batch;
#[doc(hidden)]
pub mod codec;
#[doc(hidden)]
pub mod compaction;
mod error;
#[doc(hidden)]
pub mod key;
mod merge;
mod metrics;
mod options;
mod read;
mod snapshot;
#[doc(hidden)]
pub mod version;

pub use error::{Error, ErrorKind, Result};
pub use esker_env::IoMode;
pub use key::{BytewiseComparator, Comparator, KeyOrder, ReverseBytewiseComparator};
pub use merge::{AppendOperator, MergeOperator, U64AddOperator};
pub use options::{
    ColumnFamilyOptions, CompactionStyle, Compression, Durability, MemtableKind, Options, PrefixExtractor,
    RecoveryMode, WriteOptions,
};
pub use read::ReadOptions;
pub use snapshot::Snapshot;
