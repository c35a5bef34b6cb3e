//! IMPORT: an exported column family becomes one of this database, whole or not at all.
//!
//! 1. The description is read, and every file gets a number of this database and, by a link or a copy, its name in the folder. All are
//!    opened and held against the description.
//! 2. Under the leader's token, in which no other family is made: the log is synced, and one edit makes the family with
//!    its blob files and its tables, in the levels in which they were. Then readers can find it.
//!
//! **Rows point into blob files by numbers of the database that wrote them**, and stay as they are. Within the family a
//! blob file is known by that number; another one stands in its name ([`BlobOrigin`](crate::version::BlobOrigin)). So that no file which is
//! written to the family later gets a number that its rows know already, numbers go on behind the largest of them.
//!
//! **Rows keep their sequence numbers**, which say no more than which version of a key is newer. The database's numbers go on
//! behind the largest of them. A reader of before the import would see those rows whose numbers happen to be small enough: so
//! for it the family is empty (`Family::is_unborn`). That ends with the process, as all such readers do.
//!
//! What else was thought of: docs/decisions/0010-imported-families-keep-their-numbers.md.
//!
//! A crash before the edit is durable leaves files that the next open removes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::families::{check_is_free, check_name};
use super::incoming::Brought;
use super::new_folder::folder_around;
use super::settings::{record, settings_for};
use super::write::Token;
use super::{ColumnFamily, Db};
use crate::error::{Error, Result};
use crate::key::{KeyOrder, SEQUENCE_MAX};
use crate::options::ColumnFamilyOptions;
use crate::version::{
    ColumnFamilyRecord, FAMILY_FILE, Family, FileKind, FileMeta, LOCK, Version, VersionEdit, VersionState,
    decode_family, record_of,
};

/// How a column family is imported.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The export is removed once its files are part of the database. Without it the database shares them by links (where
    /// there can be no link, it has copies): they must not be changed, and may be removed.
    pub move_files: bool,
    /// Settings of the family in place of those that it was exported with. Its key order must be the same one, its merge operator,
    /// if it had one, too.
    pub column_family: Option<ColumnFamilyOptions>,
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// The database's last sequence number behind the import.
    pub sequence: u64,
    /// Tables.
    pub tables: u64,
    /// Blob files.
    pub blob_files: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Bytes that had to be copied, as there could be no links.
    pub copied_bytes: u64,
}

impl Db {
    /// Makes what [`export_column_family`](Self::export_column_family) brought into the folder `dir` the new family `name`: at one
    /// moment, and durable when it returns. O(files): the headers, footers and indexes of all are read and checked, rows and
    /// values are not (`esker verify` does that), and nothing is written anew. Other writes wait for a sync of log and manifest.
    ///
    /// Snapshots and iterators of before see nothing of it. Sequence numbers go on behind the largest in the export, file numbers behind
    /// the largest of its blob files.
    ///
    /// Errors: `InvalidArgument` (there is no export in `dir`; the name is taken, empty or over-long; another key order or
    /// merge operator than the rows were written with, or one of the program's own that `column_family` does not bring; settings
    /// out of range), `Corruption` (naming the file), `Unsupported` (a newer version exported it), `Io`, `NoSpace`. After an
    /// error the database and the export are as they were; after a crash the family is there whole or not at all, and with
    /// `move_files` some of the export may be left.
    pub fn import_column_family(
        &self,
        name: &str,
        dir: impl AsRef<Path>,
        options: &ImportOptions,
    ) -> Result<(ColumnFamily, ImportSummary)> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        core.import(name, dir.as_ref(), options)
    }
}

/// An export, as its description has it.
struct Export {
    dir: PathBuf,
    /// With the numbers that the files have there.
    edit: VersionEdit,
    options: ColumnFamilyOptions,
}

impl Core {
    fn import(
        &self,
        name: &str,
        dir: &Path,
        options: &ImportOptions,
    ) -> Result<(ColumnFamily, ImportSummary)> {
        check_name(name)?;
        check_is_free(&self.families.load(), name)?;
        let export = self.read_export(dir, options)?;
        let (brought, edit) = self.bring_export(&export)?;
        let version = self.open_imported(&edit, &export.options)?;
        let summary = ImportSummary {
            sequence: 0,
            tables: edit.added.len() as u64,
            blob_files: edit.added_blobs.len() as u64,
            bytes: export.bytes(),
            copied_bytes: brought.copied_bytes(),
        };
        // While jobs are paused, too: a broken segment of the log is left by way of a flush.
        let requested = self.request_flush();
        let (family, sequence) = self
            .with_token(|token| self.take_family_in(token, name, edit, version, &export.options, brought))?;
        drop(requested);
        self.share_memory();
        self.update_pressure(&family);
        self.wake();
        if options.move_files {
            self.remove_export(&export);
        }
        Ok((ColumnFamily { family }, ImportSummary { sequence, ..summary }))
    }

    fn read_export(&self, dir: &Path, options: &ImportOptions) -> Result<Export> {
        let io = |error| Error::io("can't read an exported column family", error).in_file(dir);
        let path = dir.join(FAMILY_FILE);
        if !self.env.fs.exists(&path).map_err(io)? {
            return Err(Error::invalid("there is no exported column family in this folder").in_file(dir));
        }
        let bytes = self.env.fs.read_all(&path).map_err(io)?;
        let edit = decode_family(&bytes).map_err(|error| error.in_file(&path))?;
        let record = record_of(&edit)?;
        let mut options =
            settings(record, options.column_family.as_ref()).map_err(|error| error.in_file(&path))?;
        let deepest = edit.added.iter().map(|(level, _)| usize::from(*level)).max();
        options.levels = options.levels.max(deepest.map_or(0, |level| level + 1));
        options.validate()?;
        Ok(Export {
            dir: dir.to_owned(),
            edit,
            options,
        })
    }

    /// Gives the files names in the database's folder, durably; and the edit with their new numbers.
    fn bring_export(&self, export: &Export) -> Result<(Brought<'_>, VersionEdit)> {
        let mut edit = VersionEdit {
            last_sequence: export.edit.last_sequence,
            ..VersionEdit::default()
        };
        let mut brought = Brought::new(self);
        // In the order of their numbers, which tells apart what is equally new in level 0.
        let files: BTreeMap<u64, (FileKind, u64)> =
            export.files().map(|file| (number_in(&file), file)).collect();
        let mut numbers = BTreeMap::new();
        // No other import may draw numbers in between: see `OutsideFiles`.
        let first = self.new_file_numbers(files.len());
        for (number, (was, (kind, bytes))) in (first..).zip(files) {
            let from = kind.path(&export.dir);
            let found = self.env.fs.file_len(&from);
            let found = found.map_err(|error| Error::io("can't look at a file", error).in_file(&from))?;
            if found != bytes {
                let message = format!("the file has {found} bytes; it was exported with {bytes}");
                return Err(Error::corruption(message).in_file(&from));
            }
            let kind = match kind {
                FileKind::Blob(_) => FileKind::Blob(number),
                _ => FileKind::Table(number),
            };
            brought.bring(&from, kind, bytes)?;
            numbers.insert(was, number);
        }
        brought.sync()?;
        let number_of = |was: u64| {
            let number = numbers.get(&was).copied();
            number.ok_or_else(|| Error::bug("a file of an export was left out"))
        };
        for blob in &export.edit.added_blobs {
            let renamed = blob.renamed(number_of(blob.number)?, blob.origin);
            edit.added_blobs.push(Arc::new(renamed));
        }
        for (level, file) in &export.edit.added {
            let renamed = file.renamed(number_of(file.number)?, file.origin);
            edit.add(usize::from(*level), Arc::new(renamed));
        }
        Ok((brought, edit))
    }

    /// Opens every file and checks that it is what the description says of it; gives the version that they make.
    fn open_imported(&self, edit: &VersionEdit, options: &ColumnFamilyOptions) -> Result<Arc<Version>> {
        let mut state = VersionState::new(0);
        let create = Some(record("", options));
        state.apply(&VersionEdit {
            create,
            ..edit.clone()
        })?;
        let family = state.family(0);
        let family = family.ok_or_else(|| Error::bug("a family that was made is not there"))?;
        let version = family.version(options.key_order.clone(), options.levels)?;
        for (_, file) in version.files() {
            file.check(&options.key_order)?;
            let table = self.tables.get(file, &options.key_order)?;
            check_counts(file, table.properties())
                .map_err(|error| error.in_file(&FileKind::Table(file.number).path(&self.dir)))?;
        }
        for blob in version.blobs().iter() {
            let (file, reader) = (&blob.file, self.tables.blob(&blob.file)?);
            let footer = reader.footer();
            if (footer.records, footer.record_bytes) != (file.records, file.record_bytes)
                || blob.live_bytes > file.record_bytes
            {
                return Err(
                    Error::corruption("the blob file is not the one that was exported")
                        .in_file(&FileKind::Blob(file.number).path(&self.dir)),
                );
            }
        }
        Ok(Arc::new(version))
    }

    /// For the leader: makes the family, with all that it has.
    fn take_family_in(
        &self,
        token: &mut Token,
        name: &str,
        mut edit: VersionEdit,
        version: Arc<Version>,
        options: &ColumnFamilyOptions,
        brought: Brought<'_>,
    ) -> Result<(Arc<Family>, u64)> {
        self.check_open()?;
        self.health.check_writable()?;
        if token.wal_broken {
            self.leave_broken_segment(token, false)?;
        }
        check_is_free(&token.families, name)?;
        // A number that no reader has had: see `Family::is_unborn`.
        let born = token.last_sequence.saturating_add(1);
        let newest = edit.last_sequence.unwrap_or(0).max(born);
        if newest >= SEQUENCE_MAX {
            return Err(Error::invalid(
                "the export has sequence numbers behind which none is left",
            ));
        }
        // As for a write that wants to be durable: what was written before must not be lost while this stays.
        self.sync_wal(token)?;
        let pointed_as = edit.added_blobs.iter().map(|blob| blob.pointed_as() + 1).max();
        self.next_file_number
            .fetch_max(pointed_as.unwrap_or(0), Ordering::Relaxed);
        let mut manifest = self.manifest.lock();
        let (id, creation) = manifest.creation(record(name, options), token.wal_number);
        edit.column_family = id;
        edit.create = creation.create;
        edit.log_number = creation.log_number;
        edit.last_sequence = Some(newest);
        let files = brought.into_files();
        self.commit_edits(&mut manifest, vec![edit])
            .inspect_err(|_| manifest.discard(files))?;
        drop(manifest);
        let active = super::write::buffer(options, &self.arena_pool, token.wal_number);
        let family = Family::new(id, name.to_owned(), options.clone(), version, active).born_at(born);
        let family = Arc::new(family);
        token.last_sequence = newest;
        self.published.advance(newest);
        self.replace_families(token, |families| {
            families.insert(id, Arc::clone(&family));
        });
        Ok((family, newest))
    }

    /// Removes the export, the description first: what is left by an interruption is none any more.
    fn remove_export(&self, export: &Export) {
        let names = export.files().map(|(kind, _)| kind.name());
        let mut names = std::iter::once(FAMILY_FILE.to_owned()).chain(names);
        let fs = &self.env.fs;
        let removed = names
            .try_for_each(|name| fs.remove(&export.dir.join(name)))
            .and_then(|()| match fs.exists(&export.dir.join(LOCK))? {
                true => fs.remove(&export.dir.join(LOCK)),
                false => Ok(()),
            })
            .and_then(|()| fs.remove_dir(&export.dir))
            .and_then(|()| fs.sync_dir(folder_around(&export.dir)));
        if let Err(error) = removed {
            tracing::warn!(%error, path = %export.dir.display(), "some of an export stays where it was");
        }
    }
}

impl Export {
    /// Its files, with their lengths.
    fn files(&self) -> impl Iterator<Item = (FileKind, u64)> {
        let tables = self.edit.added.iter();
        let tables = tables.map(|(_, file)| (FileKind::Table(file.number), file.size_bytes));
        let blobs = self.edit.added_blobs.iter();
        tables.chain(blobs.map(|file| (FileKind::Blob(file.number), file.file_bytes)))
    }

    fn bytes(&self) -> u64 {
        self.files().map(|(_, bytes)| bytes).sum()
    }
}

fn number_in(file: &(FileKind, u64)) -> u64 {
    file.0.number().unwrap_or(0)
}

/// The settings of the family: the given ones if they fit, else those that it was exported with.
fn settings(record: &ColumnFamilyRecord, given: Option<&ColumnFamilyOptions>) -> Result<ColumnFamilyOptions> {
    let mut options = settings_for(record, given)?;
    if given.is_none() {
        options.key_order = KeyOrder::builtin(&record.comparator).unwrap_or_default();
    }
    if options.key_order.name() != record.comparator {
        return Err(Error::invalid(format!(
            "the keys are ordered by '{}', not by '{}'",
            record.comparator,
            options.key_order.name()
        )));
    }
    Ok(options)
}

/// Whether a table is the one that was exported, as far as its properties tell.
fn check_counts(file: &FileMeta, found: &crate::sstable::TableProperties) -> Result<()> {
    let shift = file.origin.map_or(0, |origin| origin.sequence_shift);
    let said = [
        file.entries,
        file.deletions,
        file.range_tombstones,
        file.sequence_min,
        file.sequence_max,
    ];
    let found = [
        found.entries,
        found.deletions,
        found.range_tombstones,
        found.sequence_min.saturating_add(shift),
        found.sequence_max.saturating_add(shift),
    ];
    if said == found {
        return Ok(());
    }
    Err(Error::corruption("the table is not the one that was exported"))
}
