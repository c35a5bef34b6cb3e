//! Looks into a database's files without opening the database: what the manifest says, every entry of a table or of
//! a WAL segment, and whether every byte is still what was written.
//!
//! Nothing here takes the lock or changes a file, so it works beside a process that has the database open; files
//! that such a process removes meanwhile are told apart from files that are missing.
//!
//! | file | what it does |
//! |---|---|
//! | `blobs` | what [`Inspector::verify`] says of blob files |
//! | `manifest` | [`Inspector::describe`], [`Inspector::edits`]: families and their tables, and how they came about |
//! | `pointers` | whether rows of tables point to values that can be theirs |
//! | `table` | [`TableDump`]: properties and entries of an SSTable |
//! | `wal` | [`SegmentDump`]: batches of a WAL segment |
//! | `verify` | [`Inspector::verify`]: reads and checks everything |

mod blobs;
mod manifest;
mod pointers;
mod table;
mod verify;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::{Env, Fs};

use crate::error::{Error, Result};
use crate::key::KeyOrder;
use crate::merge::MergeOperator;
use crate::version::FileKind as Kind;

pub use crate::batch::StepKind;
pub use crate::blob::BlobPointer;
pub use crate::key::ValueKind;
pub use crate::sstable::TableProperties;
pub use crate::version::BlobRef;
pub use crate::wal::Ending;
pub use manifest::{BlobInfo, BlobUseInfo, DatabaseInfo, EditInfo, FamilyInfo, Origin, TableInfo};
pub use table::{Entry, TableDump, Tombstone};
pub use verify::{FileReport, FileRole, VerifySummary};
pub use wal::{Batch, Mutation, SegmentDump, SegmentSummary};

/// A file of a database's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path.
    pub path: PathBuf,
    /// What it is, by its name; `None`: no file of a database.
    pub role: Option<FileRole>,
    /// The number in its name, if the name has one.
    pub number: Option<u64>,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// The folder that is looked into.
#[derive(Clone, Debug)]
pub struct Inspector {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// Those of the program's own.
    key_orders: Vec<KeyOrder>,
}

impl Inspector {
    /// Of the folder `dir`. Reads nothing yet.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self::with_env(dir, &Env::posix())
    }

    /// On this machine instead of the real one.
    pub fn with_env(dir: impl AsRef<Path>, env: &Env) -> Self {
        Self {
            fs: Arc::clone(&env.fs),
            dir: dir.as_ref().to_owned(),
            key_orders: Vec::new(),
        }
    }

    /// Adds an order of keys of the program's own, which column families have by its name: without it their tables are not read.
    #[must_use]
    pub fn with_key_order(mut self, order: KeyOrder) -> Self {
        self.key_orders.push(order);
        self
    }

    /// The order that has this name, if it is built in or was given.
    fn order_named(&self, name: &str) -> Option<KeyOrder> {
        let given = self.key_orders.iter().find(|order| order.name() == name);
        given.cloned().or_else(|| builtin_key_order(name))
    }

    /// The files of the folder, by name. A file that is removed meanwhile is left out.
    pub fn files(&self) -> Result<Vec<FileEntry>> {
        let names = self.fs.list(&self.dir);
        let mut names =
            names.map_err(|error| Error::io("can't list the folder", error).in_file(&self.dir))?;
        names.sort_unstable();
        let entry = |name: String| {
            let path = self.dir.join(&name);
            let kind = Kind::parse(&name);
            Some(FileEntry {
                size_bytes: self.fs.file_len(&path).ok()?,
                path,
                role: kind.map(FileRole::of),
                number: kind.and_then(Kind::number),
            })
        };
        Ok(names.into_iter().filter_map(entry).collect())
    }
}

/// The order of keys that the engine itself has under this name; `None` for an order of the user's own.
pub fn builtin_key_order(name: &str) -> Option<KeyOrder> {
    KeyOrder::builtin(name)
}

/// The merge operator that the engine itself has under this name, with all that the name says of it; `None` for one of
/// the user's own.
pub fn builtin_merge_operator(name: &str) -> Option<Arc<dyn MergeOperator>> {
    crate::merge::builtin_operator(name)
}

/// The word for a kind of entry: `put`, `delete`, `single-delete`, `merge`, `range-delete` or `blob-pointer`.
pub fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Delete => "delete",
        ValueKind::Put => "put",
        ValueKind::Merge => "merge",
        ValueKind::SingleDelete => "single-delete",
        ValueKind::RangeDelete => "range-delete",
        ValueKind::BlobPointer => "blob-pointer",
    }
}
