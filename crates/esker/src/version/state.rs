//! What all edits so far add up to, for all column families.
//!
//! The live set of versions and recovery apply the same edits to the same struct, so that a state that can be
//! reached can also be recovered, and is checked by the same rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::blobs::BlobSet;
use super::edit::{ColumnFamilyRecord, VersionEdit};
use super::file::FileMeta;
use super::levels::Version;
use super::{LEVELS_MAX, names::FileKind};
use crate::error::{Error, Result};
use crate::key::{KeyOrder, SEQUENCE_MAX, Sequence};
use crate::sstable::OutsideFiles;

/// Tables in one record of a snapshot: about 128 KiB with keys of 40 bytes.
const SNAPSHOT_CHUNK: usize = 1024;

/// One column family.
#[derive(Clone, Debug)]
pub struct ColumnFamilyState {
    /// Its id, never used twice.
    pub id: u32,
    /// Name, key order, merge operator and options.
    pub record: ColumnFamilyRecord,
    /// WAL segments with smaller numbers hold nothing that it still needs.
    pub log_number: u64,
    /// Its tables by number, with their levels.
    files: BTreeMap<u64, (u8, Arc<FileMeta>)>,
    blobs: BlobSet,
}

impl ColumnFamilyState {
    /// Its tables, level by level, as far down as there are any; in no particular order within a level.
    pub fn levels(&self) -> Vec<Vec<Arc<FileMeta>>> {
        let mut levels: Vec<Vec<Arc<FileMeta>>> = Vec::new();
        for (level, file) in self.files.values() {
            let level = usize::from(*level);
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            levels[level].push(Arc::clone(file));
        }
        levels
    }

    /// Its version. `order` must be the one whose name is stored; see [`check_order`](Self::check_order).
    ///
    /// # Errors
    /// `Corruption` that names the tables at fault.
    pub fn version(&self, order: KeyOrder, levels: usize) -> Result<Version> {
        let version = Version::with_blobs(order, levels, self.levels(), &self.blobs);
        version.map_err(|error| error.in_column_family(&self.record.name))
    }

    /// Refuses an order of keys other than the one that the family was made with.
    ///
    /// # Errors
    /// `InvalidArgument` that gives both names.
    pub fn check_order(&self, order: &KeyOrder) -> Result<()> {
        if self.record.comparator == order.name() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the keys are ordered by '{}', not by '{}'",
            self.record.comparator,
            order.name()
        ))
        .in_column_family(&self.record.name))
    }

    /// The numbers of its tables.
    pub fn file_numbers(&self) -> impl Iterator<Item = u64> {
        self.files.keys().copied()
    }

    /// Its files that were ingested, or imported with it, by number. O(files).
    pub fn outside_files(&self) -> Vec<OutsideFiles> {
        let tables = self.files.iter().filter_map(|(&number, (_, file))| {
            let origin = file.origin?;
            Some((number, origin.database_id, origin.sequence_shift))
        });
        let blobs = self.blobs.iter().filter_map(|blob| {
            let origin = blob.file.origin?;
            Some((blob.file.number, origin.database_id, 0))
        });
        let mut all: Vec<_> = tables.chain(blobs).collect();
        all.sort_unstable();
        let mut parts: Vec<OutsideFiles> = Vec::new();
        for (number, database_id, sequence_shift) in all {
            match parts.last_mut() {
                // Those of one call have neighbouring numbers; between them there may be files that are gone, and no others.
                Some(part) if (part.database_id, part.sequence_shift) == (database_id, sequence_shift) => {
                    part.last = number;
                }
                _ => parts.push(OutsideFiles {
                    first: number,
                    last: number,
                    database_id,
                    sequence_shift,
                }),
            }
        }
        parts
    }

    /// Its blob files.
    pub fn blobs(&self) -> &BlobSet {
        &self.blobs
    }

    /// Number of its tables.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(number) = edit.log_number {
            self.log_number = self.log_number.max(number);
        }
        if let Some(options) = &edit.options {
            self.record.options.clone_from(options);
        }
        if let Some(name) = &edit.merge_operator {
            self.record.merge_operator = Some(name.clone()).filter(|name| !name.is_empty());
        }
        for blob in &edit.added_blobs {
            self.blobs.add(Arc::clone(blob))?;
        }
        // Before the removals: a table that moves must not take its blob files away.
        for (_, file) in &edit.added {
            self.blobs.add_refs(file)?;
        }
        for &(level, number) in &edit.removed {
            match self.files.remove(&number) {
                Some((at, file)) if at == level => self.blobs.remove_refs(&file),
                _ => {
                    return Err(Error::corruption(format!(
                        "table {number} is to be removed from level {level}, where it is not"
                    )));
                }
            }
        }
        for (level, file) in &edit.added {
            if usize::from(*level) >= LEVELS_MAX {
                return Err(Error::corruption(format!(
                    "table {} is to be added to level {level}, which can't be",
                    file.number
                )));
            }
            if let Some((at, _)) = self.files.insert(file.number, (*level, Arc::clone(file))) {
                return Err(Error::corruption(format!(
                    "table {} is to be added to level {level}, but is in level {at} already",
                    file.number
                )));
            }
        }
        Ok(())
    }
}

/// The state of a whole database.
#[derive(Clone, Debug, Default)]
pub struct VersionState {
    /// The database's id, drawn when it is made.
    pub database_id: u128,
    /// No file has this number or a larger one.
    pub next_file_number: u64,
    /// No write in a table has a larger sequence number; writes in the WAL may.
    pub last_sequence: Sequence,
    /// No column family, dropped ones included, has this id or a larger one.
    pub next_column_family: u32,
    families: BTreeMap<u32, ColumnFamilyState>,
}

impl VersionState {
    /// The state of a new database, without column families.
    pub fn new(database_id: u128) -> Self {
        Self {
            database_id,
            next_file_number: 1,
            ..Self::default()
        }
    }

    /// The column families by id.
    pub fn families(&self) -> impl Iterator<Item = &ColumnFamilyState> {
        self.families.values()
    }

    /// The column family with this id.
    pub fn family(&self, id: u32) -> Option<&ColumnFamilyState> {
        self.families.get(&id)
    }

    /// The column family of this name.
    pub fn family_named(&self, name: &str) -> Option<&ColumnFamilyState> {
        self.families.values().find(|family| family.record.name == name)
    }

    /// The oldest WAL segment that some family needs; `None` without families.
    pub fn log_number_min(&self) -> Option<u64> {
        self.families.values().map(|family| family.log_number).min()
    }

    /// Applies one edit. After an error the state is not to be used any more (apply to a clone, or stop).
    ///
    /// # Errors
    /// `Corruption` that names the family or table which does not fit.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        if edit.database_id.is_some_and(|id| id != self.database_id) {
            return Err(Error::corruption("an edit belongs to another database"));
        }
        let id = edit.column_family;
        if let Some(record) = &edit.create {
            self.create(id, record)?;
        }
        // Numbers only grow: groups may be stored in another order than their numbers were drawn.
        self.next_file_number = self.next_file_number.max(edit.next_file_number.unwrap_or(0));
        self.next_column_family = self.next_column_family.max(edit.next_column_family.unwrap_or(0));
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        for blob in &edit.added_blobs {
            let largest = blob.number.max(blob.pointed_as());
            self.next_file_number = self.next_file_number.max(largest.saturating_add(1));
        }
        for (_, file) in &edit.added {
            self.next_file_number = self.next_file_number.max(file.number.saturating_add(1));
        }
        if self.last_sequence > SEQUENCE_MAX {
            return Err(Error::corruption("an edit has an impossible sequence number"));
        }
        let concerns_family = edit.drop
            || edit.log_number.is_some()
            || edit.options.is_some()
            || edit.merge_operator.is_some()
            || !edit.removed.is_empty()
            || !edit.added.is_empty()
            || !edit.added_blobs.is_empty();
        if concerns_family {
            let family = self
                .families
                .get_mut(&id)
                .ok_or_else(|| Error::corruption(format!("there is no column family with id {id}")))?;
            family
                .apply(edit)
                .map_err(|error| error.in_column_family(&family.record.name))?;
        }
        if edit.drop {
            self.families.remove(&id);
        }
        Ok(())
    }

    fn create(&mut self, id: u32, record: &ColumnFamilyRecord) -> Result<()> {
        if self.families.contains_key(&id) {
            return Err(
                Error::corruption(format!("column family {id} is made twice")).in_column_family(&record.name)
            );
        }
        if self.family_named(&record.name).is_some() {
            return Err(Error::corruption("two column families have one name").in_column_family(&record.name));
        }
        self.next_column_family = self.next_column_family.max(id.saturating_add(1));
        let family = ColumnFamilyState {
            id,
            record: record.clone(),
            log_number: 0,
            files: BTreeMap::new(),
            blobs: BlobSet::default(),
        };
        self.families.insert(id, family);
        Ok(())
    }

    /// Edits that lead from [`VersionState::new`] of the same id to this state, each of bounded size.
    pub fn snapshot_edits(&self) -> Vec<VersionEdit> {
        let mut edits = vec![VersionEdit {
            database_id: Some(self.database_id),
            next_file_number: Some(self.next_file_number),
            last_sequence: Some(self.last_sequence),
            next_column_family: Some(self.next_column_family),
            ..VersionEdit::default()
        }];
        for family in self.families.values() {
            edits.push(VersionEdit {
                create: Some(family.record.clone()),
                log_number: Some(family.log_number),
                ..VersionEdit::of(family.id)
            });
            let blobs: Vec<_> = family.blobs.iter().map(|blob| Arc::clone(&blob.file)).collect();
            edits.extend(blobs.chunks(SNAPSHOT_CHUNK).map(|chunk| VersionEdit {
                added_blobs: chunk.to_vec(),
                ..VersionEdit::of(family.id)
            }));
            let files: Vec<_> = family.files.values().cloned().collect();
            edits.extend(files.chunks(SNAPSHOT_CHUNK).map(|chunk| VersionEdit {
                added: chunk.to_vec(),
                ..VersionEdit::of(family.id)
            }));
        }
        edits
    }

    /// Whether a file in the folder may be removed: no version in this state holds it, no family needs it, and no
    /// file of its number is still to be made. `manifest` is the live manifest's number.
    ///
    /// Only right while nothing runs (at open): a running job's outputs are not in the state yet.
    pub fn is_obsolete(&self, file: FileKind, manifest: u64) -> bool {
        match file {
            FileKind::Table(number) => !self.families.values().any(|f| f.files.contains_key(&number)),
            FileKind::Wal(number) => self.log_number_min().is_some_and(|min| number < min),
            FileKind::Manifest(number) => number != manifest,
            FileKind::Temp(_) | FileKind::CurrentTemp => true,
            FileKind::Blob(number) => !self.families.values().any(|f| f.blobs.holds(number)),
            // What is damaged is for somebody to look at: see `db/kept_aside.rs`.
            FileKind::DamagedWal(_) | FileKind::Current | FileKind::Lock => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{ValueKind, internal_key};
    use crate::version::{BlobFile, BlobRef};

    fn file(number: u64) -> Arc<FileMeta> {
        Arc::new(FileMeta {
            number,
            smallest: internal_key(&number.to_be_bytes(), 1, ValueKind::Put),
            largest: internal_key(&number.to_be_bytes(), 1, ValueKind::Put),
            // The last of them points into two blob files.
            blobs: [7, 9]
                .map(|file| BlobRef {
                    file,
                    records: 1,
                    bytes: 900,
                })
                .into_iter()
                .filter(|_| number == 9 + 3 * SNAPSHOT_CHUNK as u64)
                .collect(),
            ..FileMeta::default()
        })
    }

    fn create(id: u32, name: &str) -> VersionEdit {
        VersionEdit {
            create: Some(ColumnFamilyRecord {
                name: name.to_owned(),
                comparator: "esker.bytewise".to_owned(),
                ..ColumnFamilyRecord::default()
            }),
            ..VersionEdit::of(id)
        }
    }

    fn state() -> VersionState {
        let mut state = VersionState::new(77);
        for edit in [create(0, "default"), create(1, "users"), create(2, "gone")] {
            state.apply(&edit).expect("new family");
        }
        let files = (10..10 + 3 * SNAPSHOT_CHUNK as u64)
            .map(|n| ((n % 3) as u8, file(n)))
            .collect();
        let edits = [
            VersionEdit {
                added: files,
                added_blobs: [7, 9].map(|n| Arc::new(BlobFile::new(n, 2000, 2, 1900))).to_vec(),
                log_number: Some(9),
                last_sequence: Some(500),
                ..VersionEdit::of(1)
            },
            VersionEdit {
                drop: true,
                ..VersionEdit::of(2)
            },
            VersionEdit {
                options: Some("a=1".to_owned()),
                log_number: Some(4),
                ..VersionEdit::of(0)
            },
        ];
        for edit in &edits {
            state.apply(edit).expect("valid");
        }
        state
    }

    fn describe(state: &VersionState) -> String {
        format!("{state:?}")
    }

    #[test]
    fn a_snapshot_leads_to_the_same_state() {
        let state = state();
        let mut again = VersionState::new(77);
        let edits = state.snapshot_edits();
        assert!(edits.len() > 5 && edits.iter().all(|edit| edit.added.len() <= SNAPSHOT_CHUNK));
        for edit in edits {
            again.apply(&edit).expect("own snapshot");
        }
        assert_eq!(describe(&state), describe(&again));
        assert_eq!(
            again.next_column_family, 3,
            "the dropped family's id is not used again"
        );
        assert_eq!(again.next_file_number, 10 + 3 * SNAPSHOT_CHUNK as u64);
        assert_eq!(again.log_number_min(), Some(4));
    }

    #[test]
    fn numbers_never_go_back() {
        let mut state = state();
        let before = (state.next_file_number, state.last_sequence);
        let edit = VersionEdit {
            next_file_number: Some(2),
            last_sequence: Some(3),
            log_number: Some(1),
            ..VersionEdit::of(1)
        };
        state.apply(&edit).expect("valid");
        assert_eq!((state.next_file_number, state.last_sequence), before);
        assert_eq!(state.family(1).map(|family| family.log_number), Some(9));
    }

    #[test]
    fn an_edit_that_does_not_fit_is_refused() {
        let bad = [
            create(1, "again"),
            create(7, "users"),
            VersionEdit {
                drop: true,
                ..VersionEdit::of(2)
            },
            VersionEdit {
                removed: vec![(1, 12)],
                ..VersionEdit::of(1)
            },
            VersionEdit {
                removed: vec![(1, 5)],
                ..VersionEdit::of(1)
            },
            VersionEdit {
                added: vec![(1, file(12))],
                ..VersionEdit::of(1)
            },
            VersionEdit {
                added: vec![(16, file(99_999))],
                ..VersionEdit::of(1)
            },
            VersionEdit {
                database_id: Some(78),
                ..VersionEdit::default()
            },
            VersionEdit {
                last_sequence: Some(SEQUENCE_MAX + 1),
                ..VersionEdit::default()
            },
        ];
        for edit in bad {
            let error = state().apply(&edit).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corruption, "{edit:?}");
        }
    }

    #[test]
    fn only_what_the_state_proves_dead_is_obsolete() {
        let state = state();
        let cases = [
            (FileKind::Table(10), false),
            (FileKind::Table(9), true),
            (FileKind::Wal(3), true),
            (FileKind::Wal(4), false),
            (FileKind::Manifest(5), false),
            (FileKind::Manifest(4), true),
            (FileKind::Temp(1), true),
            (FileKind::CurrentTemp, true),
            (FileKind::Current, false),
            (FileKind::Lock, false),
            (FileKind::Blob(7), false),
            (FileKind::Blob(8), true),
            (FileKind::DamagedWal(1), false),
        ];
        for (kind, expected) in cases {
            assert_eq!(state.is_obsolete(kind, 5), expected, "{kind:?}");
        }
        assert!(
            !VersionState::new(1).is_obsolete(FileKind::Wal(1), 1),
            "without families nothing is proved"
        );
    }
}
