//! The database: opens, recovers, closes, and wires the parts together.
//!
//! - [`open`](Db::open) → `folder.rs` (what is in it, its lock), `open.rs` (manifest, parts, threads), `settings.rs`,
//!   `recover.rs` (WAL replay), `kept_aside.rs` (what it found damaged), `read_only.rs` (beside a process that writes)
//! - the same again and again, as the other process goes on → `follow.rs`, `follow_log.rs` (its log), `moment.rs` (what readers see)
//! - a write → `write.rs` (what the commit pipeline does here), `log.rs` (the segments of the log)
//! - a two-phase commit → `two_phase.rs`, of what `prepared.rs` holds
//! - a read → `read.rs`, `iterator.rs`
//! - background work → `jobs.rs` (which job, and what its result means), `running.rs` (which run)
//! - column families → `families.rs`; flush, compaction and pauses by hand → `manual.rs`
//! - whole tables of a key range, dropped at once → `delete_files.rs`
//! - a copy of all of it → `checkpoint.rs`, in a folder that `new_folder.rs` builds
//! - what is left of a damaged one → `repair/`
//! - one family as files → `export.rs`, and from them → `import.rs`
//! - tables that were made outside → `table_file.rs`, and become part of it → `ingest.rs`, behind what is there → `behind.rs`
//! - what listeners are told → `events.rs`
//! - what is told about it → `properties.rs`, `stats.rs`, for Prometheus `metrics_text.rs`, of its tables → `table_description.rs`; settings that change while it is open → `tune.rs`

mod batch;
mod behind;
mod checkpoint;
mod core;
mod delete_files;
mod edits;
mod events;
mod export;
mod families;
mod folder;
mod follow;
mod follow_log;
mod handle;
mod health;
mod hidden;
mod import;
mod incoming;
mod ingest;
mod iterator;
mod jobs;
mod kept_aside;
mod log;
mod manual;
mod metrics_text;
mod moment;
mod new_folder;
mod open;
mod prepared;
mod properties;
mod read;
mod read_only;
mod recover;
mod repair;
mod running;
mod settings;
mod stats;
mod table_description;
mod table_file;
mod tune;
mod two_phase;
mod write;

pub use self::batch::{Mutation, WriteBatch};
pub use self::core::RecoveryReport;
pub use checkpoint::{CheckpointOptions, CheckpointSummary};
pub use delete_files::DeletedFiles;
pub use export::ExportSummary;
pub use families::ColumnFamily;
pub use follow::{CaughtUp, Follower};
pub use handle::Db;
pub use import::{ImportOptions, ImportSummary};
pub use ingest::{IngestOptions, IngestSummary};
pub use iterator::Iter;
pub use open::Opener;
pub use properties::PROPERTIES;
pub use repair::{DamagedFile, LostRange, ManifestState, RepairOptions, RepairReport, repair, repair_on};
pub use stats::{FamilyStats, LevelStats, Stats};
pub use table_description::TableDescription;
pub use table_file::{TableFileSummary, TableFileWriter};
pub use two_phase::Prepared;
