//! What the live manifest says: families and their tables, and the edits that led there.

use std::path::PathBuf;

use super::Inspector;
use crate::error::Result;
pub use crate::version::Origin;
use crate::version::manifest::{self, RecordKind};
use crate::version::{BlobFile, BlobRef, ColumnFamilyState, FileKind, FileMeta, VersionEdit, VersionState};

/// A database as its manifest describes it. What is only in the WAL is not counted.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// Its id.
    pub database_id: u128,
    /// The live manifest.
    pub manifest: PathBuf,
    /// Atomic groups of edits in it, behind its snapshot.
    pub manifest_groups: u64,
    /// Offset and bytes of a last record that a crash cut.
    pub torn_tail: Option<(u64, u64)>,
    /// The next file gets this number or a larger one.
    pub next_file_number: u64,
    /// No row in a table has a larger sequence number.
    pub last_sequence: u64,
    /// The column families by id.
    pub families: Vec<FamilyInfo>,
}

/// A column family as the manifest describes it.
#[derive(Clone, Debug)]
pub struct FamilyInfo {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The name of its key order.
    pub key_order: String,
    /// The name of its merge operator.
    pub merge_operator: Option<String>,
    /// Its settings as stored, `name=value;name=value`.
    pub options: String,
    /// WAL segments with smaller numbers hold nothing that it needs.
    pub log_number: u64,
    /// Its tables by level and, within a level, by number.
    pub tables: Vec<TableInfo>,
    /// The blob files that its tables refer to, by number.
    pub blobs: Vec<BlobUseInfo>,
}

/// A blob file as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    /// The number in its name.
    pub number: u64,
    /// The number by which rows point to it: another one if it was imported.
    pub pointed_as: u64,
    /// The database id in its header, if it was imported.
    pub origin_database_id: Option<u64>,
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Records in it: one a value.
    pub records: u64,
    /// Bytes of all records, with their headers.
    pub record_bytes: u64,
}

/// A blob file and what tables refer to in it; the rest is garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobUseInfo {
    /// The file.
    pub blob: BlobInfo,
    /// Rows of tables that point into it.
    pub live_records: u64,
    /// Bytes of the records that they point to.
    pub live_bytes: u64,
}

/// An SSTable as the manifest describes it.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its level.
    pub level: usize,
    /// The number in its name.
    pub number: u64,
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// The smallest user key.
    pub smallest: Vec<u8>,
    /// The largest user key.
    pub largest: Vec<u8>,
    /// Whether the table ends before `largest` (a range tombstone's end).
    pub largest_is_exclusive: bool,
    /// The oldest sequence number in it.
    pub sequence_min: u64,
    /// The newest sequence number in it.
    pub sequence_max: u64,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub deletions: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// When its data was first written to a table, in seconds since 1970-01-01 UTC.
    pub created_unix_seconds: u64,
    /// What its rows point to, by blob file.
    pub blobs: Vec<BlobRef>,
    /// Where it comes from, if it was ingested.
    pub origin: Option<Origin>,
}

/// An edit of the manifest.
#[derive(Clone, Debug)]
pub struct EditInfo {
    /// Offset of its record in the file; edits of one record take effect together.
    pub offset: u64,
    /// Whether it is a part of the snapshot that the manifest begins with.
    pub in_snapshot: bool,
    /// The id of the column family that it concerns.
    pub column_family: u32,
    /// The family is made, with this name.
    pub create: Option<String>,
    /// The family is dropped.
    pub drop: bool,
    /// Older WAL segments are not needed any more.
    pub log_number: Option<u64>,
    /// The family's settings are now these.
    pub options: Option<String>,
    /// The state's last sequence number.
    pub last_sequence: Option<u64>,
    /// Blob files that come; they leave with the last table that refers to them.
    pub added_blobs: Vec<BlobInfo>,
    /// Tables that leave: level and number.
    pub removed: Vec<(usize, u64)>,
    /// Tables that come.
    pub added: Vec<TableInfo>,
}

impl Inspector {
    /// What the live manifest says.
    ///
    /// # Errors
    /// `NotFound`: there is no database. `InvalidArgument`: the folder holds something else. `Unsupported`: it was
    /// written by a newer version. `Corruption`, with file and offset.
    pub fn describe(&self) -> Result<DatabaseInfo> {
        let recovered = manifest::recover(&*self.fs, &self.dir)?;
        let state = recovered.state;
        Ok(DatabaseInfo {
            database_id: state.database_id,
            manifest: FileKind::Manifest(recovered.manifest_number).path(&self.dir),
            manifest_groups: recovered.groups,
            torn_tail: recovered.torn_tail.map(|tail| (tail.offset, tail.len_bytes)),
            next_file_number: state.next_file_number,
            last_sequence: state.last_sequence,
            families: self.describe_state(&state),
        })
    }

    pub(super) fn describe_state(&self, state: &VersionState) -> Vec<FamilyInfo> {
        state.families().map(|family| self.family(family)).collect()
    }

    /// Gives every edit of the live manifest in order. Edits in front of a damage are given before its error.
    pub fn edits(&self, mut visit: impl FnMut(EditInfo)) -> Result<()> {
        manifest::visit(&*self.fs, &self.dir, &mut |offset, kind, edit| {
            visit(self.edit(offset, kind, edit));
        })
    }

    fn edit(&self, offset: u64, kind: RecordKind, edit: &VersionEdit) -> EditInfo {
        let added = edit.added.iter();
        EditInfo {
            offset,
            in_snapshot: kind != RecordKind::Group,
            column_family: edit.column_family,
            create: edit.create.as_ref().map(|record| record.name.clone()),
            drop: edit.drop,
            log_number: edit.log_number,
            options: edit.options.clone(),
            last_sequence: edit.last_sequence,
            added_blobs: edit.added_blobs.iter().map(|blob| self.blob_info(blob)).collect(),
            removed: edit
                .removed
                .iter()
                .map(|&(level, number)| (usize::from(level), number))
                .collect(),
            added: added
                .map(|(level, file)| self.table_info(usize::from(*level), file))
                .collect(),
        }
    }

    fn family(&self, family: &ColumnFamilyState) -> FamilyInfo {
        let record = &family.record;
        let mut tables = Vec::with_capacity(family.file_count());
        for (level, files) in family.levels().iter().enumerate() {
            tables.extend(files.iter().map(|file| self.table_info(level, file)));
        }
        tables.sort_by_key(|table| (table.level, table.number));
        let blobs = family.blobs().iter().map(|used| BlobUseInfo {
            blob: self.blob_info(&used.file),
            live_records: used.live_records,
            live_bytes: used.live_bytes,
        });
        FamilyInfo {
            id: family.id,
            name: record.name.clone(),
            key_order: record.comparator.clone(),
            merge_operator: record.merge_operator.clone(),
            options: record.options.clone(),
            log_number: family.log_number,
            tables,
            blobs: blobs.collect(),
        }
    }

    fn blob_info(&self, blob: &BlobFile) -> BlobInfo {
        BlobInfo {
            number: blob.number,
            pointed_as: blob.pointed_as(),
            origin_database_id: blob.origin.map(|origin| origin.database_id),
            path: FileKind::Blob(blob.number).path(&self.dir),
            size_bytes: blob.file_bytes,
            records: blob.records,
            record_bytes: blob.record_bytes,
        }
    }

    fn table_info(&self, level: usize, file: &FileMeta) -> TableInfo {
        TableInfo {
            level,
            number: file.number,
            path: FileKind::Table(file.number).path(&self.dir),
            size_bytes: file.size_bytes,
            smallest: file.smallest_user_key().to_vec(),
            largest: file.largest_user_key().to_vec(),
            largest_is_exclusive: file.largest_is_exclusive(),
            sequence_min: file.sequence_min,
            sequence_max: file.sequence_max,
            entries: file.entries,
            deletions: file.deletions,
            range_tombstones: file.range_tombstones,
            created_unix_seconds: file.created_unix_seconds,
            blobs: file.blobs.clone(),
            origin: file.origin,
        }
    }
}
