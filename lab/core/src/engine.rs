//! The trait that every engine is run through.
//!
//! Three levels, as engines have them: an [`Engine`] is a product (one a name), a [`Database`] is an open
//! folder, shared by threads, and a [`Session`] is one thread's way to work on it, which may keep buffers and
//! handles. The workloads know nothing else, so every engine runs under exactly the same code. A call crosses one
//! virtual call (some 2 ns), which the `null` engine measures.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::transaction::{Control, TransactionSession};
use crate::{Error, Result};

/// What a write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// No write-ahead log: lost with the process until flushed. An engine that can't leave its log out
    /// (LevelDB) writes it.
    None,
    /// In the log, which survives the process but not the machine.
    Buffered,
    /// On the device before the answer.
    Sync,
}

/// Where a scan starts, and which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// At the first key, ascending.
    First,
    /// At the last key, descending.
    Last,
    /// At this key or the next after it, ascending.
    At(&'a [u8]),
}

/// What the database is about to be used for, in the words of the report: each has the report's own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Keys in random order into a database that does not compact until asked (an unsorted memtable where there
    /// is one).
    BulkRandom,
    /// Keys in ascending order.
    BulkSequential,
    /// Random writes over existing data.
    Write,
    /// Random reads; nothing or little is written.
    Read,
    /// Reads beside writes.
    Mixed,
}

/// Compression of the stored data, the same for every engine in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None anywhere.
    None,
    /// As the published report: zlib from level 2 on in the write tests, none in the read tests.
    Report,
    /// LZ4 everywhere.
    Lz4,
    /// Zstandard everywhere.
    Zstd,
    /// Zlib everywhere.
    Zlib,
}

impl Compression {
    /// Every choice.
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Report,
        Compression::Lz4,
        Compression::Zstd,
        Compression::Zlib,
    ];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Report => "report",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
            Compression::Zlib => "zlib",
        }
    }

    /// What `profile` gets, with `Report` resolved: the choice for upper levels (0 and 1) and for the rest.
    pub fn levels(self, profile: Profile) -> (Compression, Compression) {
        match (self, profile) {
            (Compression::Report, Profile::Read | Profile::Mixed) => (Compression::None, Compression::None),
            (Compression::Report, _) => (Compression::None, Compression::Zlib),
            (other, _) => (other, other),
        }
    }
}

/// How to open a database: the same for all engines, each makes the best of it.
#[derive(Clone, Debug)]
pub struct OpenSettings {
    /// What it will be used for.
    pub profile: Profile,
    /// Memory that the whole process may use, page cache included. Engines size their caches and write buffers
    /// to it.
    pub memory_bytes: u64,
    /// Processors there are.
    pub cpus: usize,
    /// Size of data blocks that the report's test asks for, in bytes before compression.
    pub block_bytes: usize,
    /// Compression.
    pub compression: Compression,
    /// The rows that it will hold.
    pub dataset: Dataset,
    /// Merges will be written: the last operand wins.
    pub merge_operator: bool,
    /// Transactions will be run, in the way of the variant; without, a variant that has them opens the same database plainly.
    pub transactions: bool,
}

/// One way to set an engine up.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name, as in `rocksdb:direct`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Whether it runs when only the engine is named.
    pub default: bool,
    /// The transactions that it is for; `None`: it is for reads and writes without any.
    pub control: Option<Control>,
}

/// A product: something that opens databases.
pub trait Engine: Send + Sync {
    /// Its name on the command line and in results.
    fn name(&self) -> &'static str;

    /// The ways it can be set up, the default ones first.
    fn variants(&self) -> &'static [Variant];

    /// The version that would run, or why it can't and how to get it.
    fn version(&self) -> Result<String>;

    /// Whether what was written can be read back. Only the `null` engine says no.
    fn keeps_data(&self) -> bool {
        true
    }

    /// Opens (or creates) the database in `dir`, an existing folder.
    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>>;
}

/// An open database, shared by threads.
pub trait Database: Send + Sync {
    /// A session for the calling thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// A session for the transactions of the calling thread, on a database that was opened for them.
    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        Err(Error::unsupported("this engine has no transactions"))
    }

    /// Syncs of the log for each write (a commit is one) since the database was opened, where the engine tells.
    fn syncs_per_write(&self) -> Option<f64> {
        None
    }

    /// Writes what is in memory into files and returns when that is done.
    fn flush(&self) -> Result<()>;

    /// Merges everything into one sorted order and returns when that is done.
    fn compact_all(&self) -> Result<()>;

    /// Pays what a bulk load has left to do. An engine that compacts while it loads has nothing to do here.
    fn merge_bulk_load(&self) -> Result<()> {
        self.compact_all()
    }

    /// No flush or compaction runs or is due, without waiting for it. The harness polls this and the process's own
    /// writes.
    fn is_idle(&self) -> Result<bool>;

    /// What the engine says about itself, for people.
    fn stats(&self) -> String;

    /// The settings that were applied, as name and value, for the report.
    fn applied(&self) -> Vec<(String, String)>;

    /// Closes the database; an error that closing finds is returned, not swallowed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's way to work on a [`Database`].
pub trait Session {
    /// Writes a row.
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Writes rows as one atomic batch.
    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()>;

    /// Reads a row: calls `found` with its value and returns true, or returns false.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Deletes a row, which may not exist.
    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()>;

    /// Merges `operand` into a row; the last operand is the row's value.
    fn merge(&mut self, key: &[u8], operand: &[u8], durability: Durability) -> Result<()> {
        let _ = (key, operand, durability);
        Err(Error::unsupported("this engine has no merge operation"))
    }

    /// Visits rows in order from `start`, through one new iterator, until `row` returns false or the rows end.
    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;
}
