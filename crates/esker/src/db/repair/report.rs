//! What a repair is told, and what it says it did.

use std::path::PathBuf;

use crate::error::Error;
use crate::key::KeyOrder;
pub use crate::sstable::LostStretch as LostRange;

/// How a database is repaired.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    /// Only look, and say what would be done: nothing is changed, and no lock is taken.
    pub dry_run: bool,
    /// Orders of keys of the application's own, which its column families have by name.
    pub key_orders: Vec<KeyOrder>,
}

/// What was left of the manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestState {
    /// All of it: its tables are the database's, each in its level, and no others are.
    Whole,
    /// A part: what it says to be dropped is, and all other tables count.
    Damaged,
    /// Nothing: all tables count, in the column families that they name.
    #[default]
    Lost,
}

impl ManifestState {
    /// `whole`, `damaged` or `lost`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Damaged => "damaged",
            Self::Lost => "lost",
        }
    }
}

/// A file of which something is lost, or that had to be written anew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedFile {
    /// Its path before the repair.
    pub path: PathBuf,
    /// The name of its column family, if it has one that is known.
    pub column_family: Option<String>,
    /// What is wrong with it: the first damage that was found.
    pub damage: Error,
    /// Rows that were read from it and are kept.
    pub rows_kept: u64,
    /// Rows that are gone; `None`: nobody knows how many there were.
    pub rows_lost: Option<u64>,
    /// Rows among those kept whose value was in a blob file and is gone: their keys are deleted now.
    pub values_lost: u64,
    /// Stored bytes that can't be read.
    pub lost_bytes: u64,
    /// The stretches of keys in which rows are lost. Keys there may be missing, or show what they were before.
    pub lost_ranges: Vec<LostRange>,
    /// Whether deletions of ranges are lost, or may be: keys that they had deleted may be back.
    pub range_deletions_lost: bool,
}

impl DamagedFile {
    pub(super) fn new(path: PathBuf, damage: Error) -> Self {
        Self {
            damage: damage.in_file(&path),
            path,
            column_family: None,
            rows_kept: 0,
            rows_lost: None,
            values_lost: 0,
            lost_bytes: 0,
            lost_ranges: Vec::new(),
            range_deletions_lost: false,
        }
    }

    /// Whether anything of its content is gone.
    pub fn is_loss(&self) -> bool {
        self.rows_lost != Some(0)
            || self.values_lost > 0
            || !self.lost_ranges.is_empty()
            || self.range_deletions_lost
    }
}

/// What a repair found and did; of a dry run: what it would do.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// What was left of the manifest.
    pub manifest: ManifestState,
    /// What is wrong with it, and with `CURRENT`.
    pub manifest_damages: Vec<Error>,
    /// The names of the column families that the database has now.
    pub families: Vec<String>,
    /// Tables that stay as they are.
    pub tables_kept: u64,
    /// Tables that were written: what could be read of damaged ones, the log's rows, and merged ones where no manifest said
    /// which are older. 0 in a dry run.
    pub tables_written: u64,
    /// Tables and blob files of which something is lost, or that had to be written anew.
    pub damaged: Vec<DamagedFile>,
    /// Tables that were ingested, and of which nothing that is left says when: they count as the oldest.
    pub unplaced: Vec<PathBuf>,
    /// The column families that were imported and never written to, and of which only the lost manifest knew the name: they have the
    /// name with which they were exported. What was written to one and is still in the log is in a family `family-N`, under the id
    /// that it had.
    pub imported: Vec<String>,
    /// Batches of the log that are in tables now.
    pub log_batches: u64,
    /// Damaged places in the log that were gone over.
    pub log_damages: u64,
    /// Bytes of the log that could not be used there.
    pub log_lost_bytes: u64,
    /// Whether the first segment that the manifest needs is not there: it is lost, or the database is a checkpoint that was
    /// never opened.
    pub log_begins_late: bool,
    /// Whether the log ends in a batch that is not whole: as a crash leaves it, or as one that was cut later.
    pub log_is_torn: bool,
    /// The names under which batches are still prepared, to be committed or rolled back.
    pub prepared: Vec<Vec<u8>>,
    /// Files that are in the folder `lost` now, by their paths before: damaged ones, and those that are no part of the
    /// database.
    pub set_aside: Vec<PathBuf>,
}

impl RepairReport {
    /// Whether nothing was lost as far as anybody can know.
    pub fn is_lossless(&self) -> bool {
        self.log_damages == 0
            && !self.log_begins_late
            && self.unplaced.is_empty()
            && !self.damaged.iter().any(DamagedFile::is_loss)
    }
}
