//! Column families as files: exported into a folder of their own, imported from there.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use esker::ImportOptions;

use crate::boundary::{answer, given, made, put, release};
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::family_options::esker_family_options;
use crate::text;

/// What an export holds, and what it cost.
#[repr(C)]
pub struct esker_exported {
    /// The last sequence number in it: it holds all writes to the family up to this one, and none after.
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

/// Brings a family, as it is now, into the new folder `path`, from which `esker_family_import` makes it a family of this or another
/// database; by links where it can, durable when it returns. What is prepared is not in it. `exported` may be null.
/// Errors: `ESKER_INVALID_ARGUMENT` (`path` exists, or the folder around it does not; the family was dropped), `ESKER_LOCKED` (somebody is
/// making the same export), `ESKER_IO`, `ESKER_NO_SPACE`; there is no `path` then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_export(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    path: *const c_char,
    exported: Option<&mut MaybeUninit<esker_exported>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let summary = db.db.export_column_family(db.family(family), path)?;
        put(
            exported,
            esker_exported {
                sequence: summary.sequence,
                tables: summary.tables,
                blob_files: summary.blob_files,
                bytes: summary.bytes,
                copied_bytes: summary.copied_bytes,
            },
        );
        Ok(())
    })
}

/// How a family is imported.
#[derive(Default)]
pub struct esker_import_options(ImportOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_import_options_create() -> Box<esker_import_options> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_import_options_free(options: Option<Box<esker_import_options>>) {
    release(options);
}

/// Whether the export is removed once its files are part of the database. Otherwise, which is the default, the database shares them:
/// they must not be changed, and may be removed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_import_options_set_move_files(
    options: Option<&mut esker_import_options>,
    move_files: bool,
) {
    if let Some(options) = options {
        options.0.move_files = move_files;
    }
}

/// Settings of the family, which are copied, in place of those that it was exported with; null: those. Key order and merge operator must be
/// the same ones; where they are of the program's own, they must be given here.
#[unsafe(no_mangle)]
pub extern "C" fn esker_import_options_set_family_options(
    options: Option<&mut esker_import_options>,
    family: Option<&esker_family_options>,
) {
    if let Some(options) = options {
        options.0.column_family = family.map(|family| family.0.clone());
    }
}

/// What was imported.
#[repr(C)]
pub struct esker_imported {
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

/// Makes what `esker_family_export` brought into the folder `path` the new family `name`: at one moment, and durable when it returns.
/// Snapshots and iterators of before see nothing of it. Options and `imported` may be null.
/// Errors: `ESKER_INVALID_ARGUMENT` (there is no export in `path`; the name is taken, empty or over-long; another key order or merge
/// operator than the rows were written with; settings out of range), `ESKER_CORRUPTION`, `ESKER_UNSUPPORTED`, `ESKER_IO`,
/// `ESKER_NO_SPACE`; database and export are then as they were.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_import(
    db: Option<&esker_db>,
    name: *const c_char,
    path: *const c_char,
    options: Option<&esker_import_options>,
    family: Option<&mut MaybeUninit<Option<Box<esker_family>>>>,
    imported: Option<&mut MaybeUninit<esker_imported>>,
) -> Option<Box<esker_error>> {
    made(family, || {
        let db = given(db, "db")?;
        // SAFETY: the contract.
        let (name, path) = unsafe { (text::string(name, "the name")?, text::path(path)?) };
        let defaults = ImportOptions::default();
        let options = options.map_or(&defaults, |options| &options.0);
        let (family, summary) = db.db.import_column_family(name, path, options)?;
        put(
            imported,
            esker_imported {
                sequence: summary.sequence,
                tables: summary.tables,
                blob_files: summary.blob_files,
                bytes: summary.bytes,
                copied_bytes: summary.copied_bytes,
            },
        );
        Ok(esker_family(family))
    })
}
