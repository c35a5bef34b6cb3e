//! Versions: which tables make up each column family, now and after a crash.
//!
//! ```text
//! FileMeta      one table: its key range, its place in history               file.rs
//! Level         the tables of one level, searchable by key                   level.rs
//! BlobSet       the blob files, and what tables refer to in each           blobs.rs
//! Version       all levels of one column family; immutable                   levels.rs
//! VersionEdit   the difference between two versions, as bytes                edit.rs, edit_codec.rs
//! VersionState  what all edits so far add up to, for all column families     state.rs
//! manifest      the edits on disk: a snapshot, then one record for each      manifest/
//!               atomic group of edits; CURRENT names the live one
//! ```
//! Readers pin a [`Version`] and never see it change. Writers make an edit, have the manifest store it, and only
//! then install the version that it leads to. The format is specified in `docs/formats/manifest.md`.

mod blobs;
mod edit;
mod edit_codec;
mod family;
mod family_file;
mod file;
mod hidden;
mod level;
mod levels;
#[cfg(all(test, loom))]
mod loom;
pub mod manifest;
mod names;
mod pressure;
mod slot;
mod space_rate;
mod state;
mod tables;
mod values;

pub use blobs::{BlobFile, BlobOrigin, BlobRef, BlobSet, BlobUse};
pub use edit::{ColumnFamilyRecord, VersionEdit};
pub use edit_codec::{EDIT_TAGS, TABLE_TAGS, fuzz_edit};
pub use family::{Buffer, Family, View};
pub use family_file::{FAMILY_FILE, decode_family, encode_family, fuzz_family, record_of};
pub use file::{FileMeta, Origin, exclusive_bound};
pub use level::{Level, LevelSums};
pub use levels::Version;
pub use names::{CURRENT, CURRENT_TEMP, FileKind, LOCK};
pub use pressure::Hold;
pub use slot::{BlobSlot, Dead, Graveyard, Slot, TableSlot};
pub use space_rate::Garbage;
pub use state::{ColumnFamilyState, VersionState};
pub use tables::Tables;

/// Levels that a column family can have at most.
pub const LEVELS_MAX: usize = 16;
