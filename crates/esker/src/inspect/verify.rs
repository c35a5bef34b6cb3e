//! Reads every byte of every file that the database needs and checks all that can be checked.
//!
//! One damage does not hide the next: every file has its own verdict. Beside a process that has the database open,
//! files come and go; a finding counts only if the manifest of after it still needs the file, and in a WAL segment,
//! which is appended to meanwhile, only if it is found again at the same place.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use esker_env::IoMode;

use super::pointers::{FamilyRecords, PointerCount};
use super::{FamilyInfo, FileEntry, Inspector, TableInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::key::KeyOrder;
use crate::version::{FileKind, VersionState, manifest};
use crate::wal::{Ending, SegmentId};

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileRole {
    /// `CURRENT` or a manifest.
    Manifest,
    /// An SSTable.
    Table,
    /// A blob file.
    Blob,
    /// A segment of the write-ahead log.
    Wal,
    /// A segment that a recovery kept aside, as it found damage.
    DamagedWal,
    /// A lock, or a file that was never finished.
    Other,
}

impl FileRole {
    pub(super) fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Current | FileKind::Manifest(_) => Self::Manifest,
            FileKind::Table(_) => Self::Table,
            FileKind::Blob(_) => Self::Blob,
            FileKind::Wal(_) => Self::Wal,
            FileKind::DamagedWal(_) => Self::DamagedWal,
            _ => Self::Other,
        }
    }

    /// `manifest`, `sst`, `blob`, `wal`, `wal.damaged` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Table => "sst",
            Self::Blob => "blob",
            Self::Wal => "wal",
            Self::DamagedWal => "wal.damaged",
            Self::Other => "other",
        }
    }
}

/// The verdict on a file: whole if it has no damages.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// What it is for.
    pub role: FileRole,
    /// Bytes read.
    pub size_bytes: u64,
    /// Entries, values, batches or groups of edits found in it.
    pub records: u64,
    /// What is special about it without being a damage.
    pub note: Option<String>,
    /// What is wrong with it, with offsets where they are known.
    pub damages: Vec<Error>,
}

/// What all verdicts add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifySummary {
    /// Files read.
    pub files: u64,
    /// Bytes of them.
    pub size_bytes: u64,
    /// Files with damages.
    pub damaged: u64,
}

/// The note on a whole file that no manifest names.
pub(super) const UNLISTED: &str = "not part of the database: left by a crash or just being made";

/// What is wrong with a file that is not there.
pub(super) fn missing() -> Error {
    Error::corruption("the file is missing; the manifest needs it")
}

impl FileReport {
    pub(super) fn new(path: &Path, role: FileRole) -> Self {
        Self {
            path: path.to_owned(),
            role,
            size_bytes: 0,
            records: 0,
            note: None,
            damages: Vec::new(),
        }
    }

    pub(super) fn damaged(mut self, error: Error) -> Self {
        self.damages.push(error.in_file(&self.path));
        self
    }

    pub(super) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl Inspector {
    /// Reads and checks the manifest, every SSTable, every blob file and every WAL segment: checksums, structure, order,
    /// counts, that each file is what the manifest says it is, and that each row whose value lies in a blob file points to a
    /// record of it. Calls `report` for each file as soon as it is judged; goes on past damages, also past that of the manifest.
    /// O(bytes of the database); holds one block or value at a time, and 2 or 3 bytes for each value in the blob files of one
    /// column family.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` or `Unsupported` if this is no database that can be judged; `Io` if the folder
    /// can't be listed. Damages are no errors but reports.
    pub fn verify(&self, mut report: impl FnMut(&FileReport)) -> Result<VerifySummary> {
        let mut summary = VerifySummary::default();
        let mut report = |file: FileReport| {
            summary.files += 1;
            summary.size_bytes += file.size_bytes;
            summary.damaged += u64::from(!file.damages.is_empty());
            report(&file);
        };
        let state = self.verify_manifest(&mut report)?;
        let files = self.files()?;
        match &state {
            Some(state) => {
                for family in self.describe_state(state) {
                    let mut records = FamilyRecords::new();
                    for used in &family.blobs {
                        let (file, found) = self.verify_blob(state, &family, used);
                        records.insert(used.blob.pointed_as, found);
                        report(file);
                    }
                    for table in &family.tables {
                        report(self.verify_listed(state, &family, table, &records));
                    }
                }
                for file in of_role(&files, FileRole::Table) {
                    let is_listed = state
                        .families()
                        .any(|family| family.file_numbers().any(|number| Some(number) == file.number));
                    if !is_listed {
                        report(self.verify_unlisted(file).noted(UNLISTED));
                    }
                }
                for file in of_role(&files, FileRole::Blob) {
                    let number = file.number.unwrap_or(0);
                    if state.families().all(|family| !family.blobs().holds(number)) {
                        report(self.verify_blob_unlisted(file));
                    }
                }
                self.verify_log(state, &files, &mut report);
            }
            None => {
                for file in of_role(&files, FileRole::Table) {
                    report(self.verify_unlisted(file).noted("judged without the manifest"));
                }
                for file in of_role(&files, FileRole::Blob) {
                    report(self.verify_blob_alone(file));
                }
                for file in of_role(&files, FileRole::Wal) {
                    report(self.verify_segment_alone(file));
                }
            }
        }
        for file in of_role(&files, FileRole::DamagedWal) {
            // The damage is known; a database without it is whole.
            report(FileReport::new(&file.path, FileRole::DamagedWal).noted(
                "not part of the database: kept aside by a recovery that found damage; `esker dump wal` reads it",
            ));
        }
        Ok(summary)
    }

    fn verify_manifest(&self, report: &mut impl FnMut(FileReport)) -> Result<Option<VersionState>> {
        let recovered = match manifest::recover(&*self.fs, &self.dir) {
            Ok(recovered) => recovered,
            Err(error) if error.kind() == ErrorKind::Corruption || error.kind() == ErrorKind::Io => {
                let path = error
                    .file()
                    .map_or_else(|| FileKind::Current.path(&self.dir), Path::to_owned);
                report(FileReport::new(&path, FileRole::Manifest).damaged(error));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let current = FileKind::Current.path(&self.dir);
        let mut file = FileReport::new(&current, FileRole::Manifest);
        file.size_bytes = self.fs.file_len(&current).unwrap_or(0);
        report(file);
        let path = FileKind::Manifest(recovered.manifest_number).path(&self.dir);
        let mut file = FileReport::new(&path, FileRole::Manifest);
        file.size_bytes = self.fs.file_len(&path).unwrap_or(0);
        file.records = recovered.groups;
        if let Some(tail) = recovered.torn_tail {
            let (offset, bytes) = (tail.offset, tail.len_bytes);
            file.note = Some(format!(
                "its last {bytes} bytes, at offset {offset}, are an edit that was never finished"
            ));
        }
        for family in recovered.state.families() {
            let Some(order) = self.order_named(&family.record.comparator) else {
                continue;
            };
            if let Err(error) = family.version(order, crate::version::LEVELS_MAX) {
                file = file.damaged(error);
            }
        }
        report(file);
        Ok(Some(recovered.state))
    }

    /// The verdict on a table that the manifest names.
    fn verify_listed(
        &self,
        state: &VersionState,
        family: &FamilyInfo,
        table: &TableInfo,
        records: &FamilyRecords,
    ) -> FileReport {
        let mut file = FileReport::new(&table.path, FileRole::Table);
        let Some(order) = self.order_named(&family.key_order) else {
            let order = &family.key_order;
            return file.noted(format!(
                "not read: its keys are ordered by '{order}', which only its application has and can give"
            ));
        };
        let checked = self.check_table(
            &table.path,
            order.clone(),
            Some(
                table
                    .origin
                    .map_or(state.database_id as u64, |origin| origin.database_id),
            ),
            records,
            &mut file,
        );
        let checked = checked.and_then(|(dump, pointers)| {
            check_against(table, &order, &dump)?;
            pointers.check_against(&table.blobs, &family.blobs)
        });
        match checked {
            Ok(()) => file,
            Err(_) if !self.still_needs(table.number) => file.noted("removed by a compaction meanwhile"),
            Err(error) if error.kind() == ErrorKind::NotFound => file.damaged(missing()),
            Err(error) => file.damaged(error.in_column_family(&family.name)),
        }
    }

    /// The verdict on a table that no manifest names.
    fn verify_unlisted(&self, entry: &FileEntry) -> FileReport {
        let mut file = FileReport::new(&entry.path, FileRole::Table);
        let dump = self.table_at(&entry.path);
        let checked = dump.and_then(|dump| {
            let order = dump.table().order().clone();
            self.check_table(&entry.path, order, None, &FamilyRecords::new(), &mut file)
                .map(drop)
        });
        match checked {
            Ok(_) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => file,
            Err(error) => file.damaged(error),
        }
    }

    fn check_table<'a>(
        &self,
        path: &Path,
        order: KeyOrder,
        database_id: Option<u64>,
        records: &'a FamilyRecords,
        file: &mut FileReport,
    ) -> Result<(super::TableDump, PointerCount<'a>)> {
        let dump = self.open_table(path, order, database_id)?;
        file.size_bytes = dump.size_bytes();
        file.records = dump.properties().entries + dump.properties().range_tombstones;
        let mut pointers = PointerCount::new(records);
        dump.table()
            .verify_rows(|key, value| pointers.row(key.kind, key.user_key, value))?;
        Ok((dump, pointers))
    }

    /// Whether the manifest of now names the table.
    fn still_needs(&self, table: u64) -> bool {
        manifest::recover(&*self.fs, &self.dir).map_or(true, |now| {
            now.state
                .families()
                .any(|family| family.file_numbers().any(|number| number == table))
        })
    }

    fn verify_log(&self, state: &VersionState, files: &[FileEntry], report: &mut impl FnMut(FileReport)) {
        let oldest = state.log_number_min().unwrap_or(0);
        if oldest > 0 && !of_role(files, FileRole::Wal).any(|entry| entry.number == Some(oldest)) {
            let file = FileReport::new(&FileKind::Wal(oldest).path(&self.dir), FileRole::Wal);
            if !self.is_released(oldest) {
                report(file.noted(
                    "not there: lost with what it held, or the database is a checkpoint that was never opened",
                ));
            }
        }
        // A segment that was not finished, if what follows holds no records it was the end of the log.
        let mut unfinished: Option<FileReport> = None;
        for entry in of_role(files, FileRole::Wal) {
            let number = entry.number.unwrap_or(0);
            let file = FileReport::new(&entry.path, FileRole::Wal);
            if number < oldest {
                report(file.noted("not needed any more; kept to be used again"));
                continue;
            }
            let id = SegmentId {
                db_id: state.database_id as u64,
                number,
            };
            let (mut file, ending, carried) = self.check_segment(entry, id);
            if !file.damages.is_empty() && self.is_released(number) {
                file.damages.clear();
                file.note = Some("not needed any more since it was looked at".to_owned());
            }
            if let Some(before) = unfinished.take_if(|_| file.records > carried) {
                let torn =
                    Error::corruption("records are missing at its end: the next segment goes on behind them");
                report(if self.is_released(number) {
                    before
                } else {
                    before.damaged(torn)
                });
            }
            let ends_log = matches!(ending, Some(Ending::Clean | Ending::Torn | Ending::NotStarted));
            if ends_log && unfinished.is_none() {
                unfinished = Some(file);
            } else {
                report(file);
            }
        }
        if let Some(file) = unfinished {
            report(file);
        }
    }

    /// Whether the database does not need the segment any more.
    fn is_released(&self, segment: u64) -> bool {
        manifest::recover(&*self.fs, &self.dir)
            .is_ok_and(|now| now.state.log_number_min().is_some_and(|oldest| segment < oldest))
    }

    fn verify_segment_alone(&self, entry: &FileEntry) -> FileReport {
        let file = FileReport::new(&entry.path, FileRole::Wal);
        let header = self.fs.open(&entry.path, IoMode::Buffered).and_then(|file| {
            let mut bytes = vec![0; crate::wal::SEGMENT_HEADER_BYTES];
            let read = file.read_at(0, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        });
        match header.map(|bytes| crate::wal::segment_id(&bytes)) {
            Ok(Some(id)) => self
                .check_segment(entry, id)
                .0
                .noted("judged without the manifest"),
            Ok(None) => file.noted("not judged: neither header nor manifest say which segment it is"),
            Err(error) => file.damaged(Error::io("can't read a WAL segment", error)),
        }
    }

    /// Reads a segment, and once more if it seems damaged. Says, too, how many of its records were carried over from the one
    /// before.
    fn check_segment(&self, entry: &FileEntry, id: SegmentId) -> (FileReport, Option<Ending>, u64) {
        let (file, ending, place, carried) = self.read_segment(entry, id);
        if file.damages.is_empty() {
            return (file, ending, carried);
        }
        let (again, ending, again_at, carried) = self.read_segment(entry, id);
        // What was being written while it was read is whole by now.
        if again_at == place {
            (again, ending, carried)
        } else {
            (self.read_segment(entry, id).0, ending, carried)
        }
    }

    fn read_segment(
        &self,
        entry: &FileEntry,
        id: SegmentId,
    ) -> (FileReport, Option<Ending>, Option<u64>, u64) {
        let mut file = FileReport::new(&entry.path, FileRole::Wal);
        let segment = match self.open_segment(&entry.path, id) {
            Ok(segment) => segment,
            Err(error) => return (file.damaged(error), None, None, 0),
        };
        file.size_bytes = entry.size_bytes;
        let mut bad_batch = None;
        let read = segment.batches(|batch| {
            let broken = batch.mutations().find_map(Result::err);
            bad_batch = bad_batch.take().or(broken);
            ControlFlow::Continue(())
        });
        let summary = match read {
            Ok(summary) => summary,
            Err(error) => return (file.damaged(error), None, None, 0),
        };
        file.records = summary.batches;
        file.note = match summary.ending {
            Ending::Finished | Ending::Clean | Ending::Damaged => None,
            Ending::Torn => {
                let offset = summary.end_offset;
                Some(format!(
                    "ends in a batch that was never finished, at offset {offset}"
                ))
            }
            Ending::NotStarted => Some("not written to yet".to_owned()),
        };
        let mut place = None;
        if let Some(error) = bad_batch {
            place = error.offset();
            file = file.damaged(error);
        }
        if summary.damages > 0 {
            place = summary.first_damage;
            let (places, bytes) = (summary.damages, summary.lost_bytes);
            let error = Error::corruption(format!(
                "bytes are not what was written: {places} places, {bytes} bytes lost, the first"
            ));
            file = file.damaged(error.at_offset(summary.first_damage.unwrap_or(0)));
        }
        (file, Some(summary.ending), place, summary.carried)
    }
}

fn of_role(files: &[FileEntry], role: FileRole) -> impl Iterator<Item = &FileEntry> {
    files.iter().filter(move |file| file.role == Some(role))
}

/// Whether a table is what the manifest says of it.
fn check_against(table: &TableInfo, order: &KeyOrder, dump: &super::TableDump) -> Result<()> {
    let found = dump.properties();
    let shift = table.origin.map_or(0, |origin| origin.sequence_shift);
    let said = [
        ("bytes", table.size_bytes, dump.size_bytes()),
        ("entries", table.entries, found.entries),
        ("deletions", table.deletions, found.deletions),
        ("range tombstones", table.range_tombstones, found.range_tombstones),
        (
            "oldest sequence number",
            table.sequence_min,
            found.sequence_min.saturating_add(shift),
        ),
        (
            "newest sequence number",
            table.sequence_max,
            found.sequence_max.saturating_add(shift),
        ),
    ];
    for (what, said, found) in said {
        if said != found {
            return Err(Error::corruption(format!(
                "{what}: the table has {found}, the manifest says {said}"
            )));
        }
    }
    let Some((first, last)) = dump.table().user_key_bounds()? else {
        return Ok(());
    };
    let is_outside =
        order.compare(&first, &table.smallest).is_lt() || order.compare(&last, &table.largest).is_gt();
    if is_outside || (table.largest_is_exclusive && last == table.largest) {
        return Err(Error::corruption(
            "the table has keys outside of the range that the manifest says",
        ));
    }
    Ok(())
}
