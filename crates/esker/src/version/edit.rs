//! The difference between two states of the database.

use std::sync::Arc;

use super::blobs::BlobFile;
use super::file::FileMeta;
use super::levels::Version;
use crate::key::Sequence;

/// What the manifest stores about a column family when it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnFamilyRecord {
    /// Its name.
    pub name: String,
    /// The name of its key order; opening with another is refused.
    pub comparator: String,
    /// The name of its merge operator, if it has one.
    pub merge_operator: Option<String>,
    /// Its options as text, in the words of whoever stored them.
    pub options: String,
}

/// A change of the database's state: to numbers that all share, and to one column family.
///
/// Several edits are stored as one atomic group where a change concerns several families.
#[derive(Clone, Debug, Default)]
pub struct VersionEdit {
    /// The database's id; in snapshots.
    pub database_id: Option<u128>,
    /// Every file made from now on has at least this number.
    pub next_file_number: Option<u64>,
    /// No write up to the state stored here has a larger sequence number.
    pub last_sequence: Option<Sequence>,
    /// Every family made from now on has at least this id; ids are never used twice.
    pub next_column_family: Option<u32>,
    /// The column family that all fields below concern.
    pub column_family: u32,
    /// The family is made.
    pub create: Option<ColumnFamilyRecord>,
    /// The family is dropped, with all its tables.
    pub drop: bool,
    /// WAL segments with smaller numbers hold nothing that the family still needs.
    pub log_number: Option<u64>,
    /// The family's options are now these.
    pub options: Option<String>,
    /// The family's merge operator now has this name (`Some("")`: none).
    pub merge_operator: Option<String>,
    /// Blob files that come. They leave with the last table that refers to them.
    pub added_blobs: Vec<Arc<BlobFile>>,
    /// Tables that leave: level and number.
    pub removed: Vec<(u8, u64)>,
    /// Tables that come, with their levels. A table that moves is removed and added in one edit.
    pub added: Vec<(u8, Arc<FileMeta>)>,
}

impl VersionEdit {
    /// An edit of this column family.
    pub fn of(column_family: u32) -> Self {
        Self {
            column_family,
            ..Self::default()
        }
    }

    /// Lets a table leave.
    pub fn remove(&mut self, level: usize, number: u64) {
        self.removed.push((level_byte(level), number));
    }

    /// The tables of `version`, which the edit is applied to, that are in none afterwards: removed, and not moved.
    pub fn left_for_good<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = &'a Arc<FileMeta>> {
        let moved = |number| self.added.iter().any(|(_, file)| file.number == number);
        self.removed
            .iter()
            .filter(move |(_, number)| !moved(*number))
            .filter_map(|&(level, number)| {
                let level = version.levels().get(usize::from(level))?;
                level.files().iter().find(|file| file.number == number)
            })
    }

    /// Lets a table come.
    pub fn add(&mut self, level: usize, file: Arc<FileMeta>) {
        self.added.push((level_byte(level), file));
    }
}

/// A level beyond what a byte holds is refused later, as every level that can't be.
fn level_byte(level: usize) -> u8 {
    u8::try_from(level).unwrap_or(u8::MAX)
}
