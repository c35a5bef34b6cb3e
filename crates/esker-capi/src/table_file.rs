//! Tables that are written outside of a database, and how they become part of it.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use esker::{ColumnFamily, ColumnFamilyOptions, Error, IngestOptions, TableFileWriter};

use crate::boundary::{Guarded, answer, given, made, put, release};
use crate::database::esker_db;
use crate::environment::{esker_env, machine};
use crate::error::esker_error;
use crate::family::esker_family;
use crate::family_options::esker_family_options;
use crate::slice::esker_slice;
use crate::text;

/// Writes a table, row by row in ascending order of keys. For one thread at a time.
pub struct esker_table_writer(Guarded<Option<TableFileWriter>>);

impl esker_table_writer {
    fn change(
        writer: Option<&mut Self>,
        work: impl FnOnce(&mut TableFileWriter) -> esker::Result<()>,
    ) -> Option<Box<esker_error>> {
        answer(|| {
            given(writer, "the writer")?.0.change(|writer| {
                let writer = writer.as_mut();
                work(writer.ok_or_else(|| Error::invalid("the table was finished already"))?)
            })
        })
    }
}

/// Begins a table in the new file `path`. Of the options (null: the defaults) the key order must be that of the family which will
/// ingest the table; those of blocks, filters and compression say how it is written. env: null for the real machine.
/// Errors: `ESKER_INVALID_ARGUMENT` if the file exists or an option is out of range; `ESKER_IO`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_table_writer_create(
    env: Option<&esker_env>,
    path: *const c_char,
    options: Option<&esker_family_options>,
    writer: Option<&mut MaybeUninit<Option<Box<esker_table_writer>>>>,
) -> Option<Box<esker_error>> {
    made(writer, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let defaults = ColumnFamilyOptions::default();
        let options = options.map_or(&defaults, |options| &options.0);
        let writer = TableFileWriter::create_on(&machine(env), path, options)?;
        Ok(esker_table_writer(Guarded::new(Some(writer))))
    })
}

/// Frees a writer. A table that was not finished is removed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_free(writer: Option<Box<esker_table_writer>>) {
    release(writer);
}

/// Sets `key`, which must come behind all keys before it. Errors: `ESKER_INVALID_ARGUMENT` if it does not, or key or value is too
/// long: nothing was written then; `ESKER_IO`, after which nothing more can be.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_put(
    writer: Option<&mut esker_table_writer>,
    key: esker_slice<'_>,
    value: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    esker_table_writer::change(writer, |writer| writer.put(key.get()?, value.get()?))
}

/// Removes `key` from the database. As `esker_table_writer_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_delete(
    writer: Option<&mut esker_table_writer>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    esker_table_writer::change(writer, |writer| writer.delete(key.get()?))
}

/// Applies `operand` to what the database has of `key`. As `esker_table_writer_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_merge(
    writer: Option<&mut esker_table_writer>,
    key: esker_slice<'_>,
    operand: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    esker_table_writer::change(writer, |writer| writer.merge(key.get()?, operand.get()?))
}

/// Removes all keys from `start` up to `end` (exclusive) that the database has; not those of this table. In any order.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_delete_range(
    writer: Option<&mut esker_table_writer>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    esker_table_writer::change(writer, |writer| writer.delete_range(start.get()?, end.get()?))
}

/// About what the file would take if it were finished now, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_estimated_bytes(writer: Option<&esker_table_writer>) -> u64 {
    let writer = writer.and_then(|writer| writer.0.get().as_ref());
    writer.map_or(0, TableFileWriter::estimated_bytes)
}

/// What is in a table file.
#[repr(C)]
pub struct esker_table_file {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Puts, deletes and merges.
    pub entries: u64,
    /// Deletions of ranges.
    pub range_deletions: u64,
}

/// Completes the file and makes it durable; the writer can only be freed then, also after an error, which removes the file. `table`
/// may be null. Error: `ESKER_INVALID_ARGUMENT` if nothing was written to it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_table_writer_finish(
    writer: Option<&mut esker_table_writer>,
    table: Option<&mut MaybeUninit<esker_table_file>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let writer = given(writer, "the writer")?
            .0
            .change(|writer| Ok(writer.take()))?;
        let writer = writer.ok_or_else(|| Error::invalid("the table was finished already"))?;
        let summary = writer.finish()?;
        put(
            table,
            esker_table_file {
                file_bytes: summary.file_bytes,
                entries: summary.entries,
                range_deletions: summary.range_deletions,
            },
        );
        Ok(())
    })
}

/// Tables to ingest, for one or several families.
#[derive(Default)]
pub struct esker_ingestion {
    files: Vec<(ColumnFamily, Vec<PathBuf>)>,
    options: IngestOptions,
}

/// One without tables.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ingestion_create() -> Box<esker_ingestion> {
    Box::default()
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ingestion_free(ingestion: Option<Box<esker_ingestion>>) {
    release(ingestion);
}

/// Adds a table for a family of the database. Of a key in several of a family's tables the last one counts.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_ingestion_add(
    ingestion: Option<&mut esker_ingestion>,
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    path: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        let ingestion = given(ingestion, "the ingestion")?;
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let family = given(db, "db")?.family(family);
        match ingestion
            .files
            .iter_mut()
            .find(|(known, _)| known.id() == family.id())
        {
            Some((_, paths)) => paths.push(path),
            None => ingestion.files.push((family.clone(), vec![path])),
        }
        Ok(())
    })
}

/// Whether the files are removed from where they are, once they are part of the database. Otherwise, which is the default, the
/// database shares them: they must not be changed, and may be removed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ingestion_set_move_files(ingestion: Option<&mut esker_ingestion>, move_files: bool) {
    if let Some(ingestion) = ingestion {
        ingestion.options.move_files = move_files;
    }
}

/// Whether the rows come in behind all that is there: of a key that has a value the row of the file is left out. As of one moment; what
/// compactions have done makes no difference. Default: no. A row costs a look into filters and memtables, and a read if they don't
/// deny its key. Refused (`ESKER_INVALID_ARGUMENT`, by `esker_db_ingest`) are files with deletes, and files that overlap.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ingestion_set_behind(ingestion: Option<&mut esker_ingestion>, behind: bool) {
    if let Some(ingestion) = ingestion {
        ingestion.options.behind = behind;
    }
}

/// What was ingested.
#[repr(C)]
pub struct esker_ingested {
    /// The sequence number of the newest row.
    pub sequence: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Rows that were left out, as their keys had values; only behind what is there.
    pub left_out: u64,
}

/// Makes the tables part of the database, all or none, newer than everything that was written before (or, with
/// `esker_ingestion_set_behind`, older than all that is there), durable when it returns.
/// `ingested` may be null.
/// Errors: `ESKER_INVALID_ARGUMENT` (a file of another key order, that no table writer wrote, or with operands for a family that has
/// no merge operator; no file), `ESKER_CORRUPTION`, `ESKER_IO`, `ESKER_NO_SPACE`; the database is then as it was.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_ingest(
    db: Option<&esker_db>,
    ingestion: Option<&esker_ingestion>,
    ingested: Option<&mut MaybeUninit<esker_ingested>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, ingestion) = (given(db, "db")?, given(ingestion, "the ingestion")?);
        let summary = db.db.ingest(&ingestion.files, &ingestion.options)?;
        put(
            ingested,
            esker_ingested {
                sequence: summary.sequence,
                tables: summary.tables,
                bytes: summary.bytes,
                left_out: summary.left_out,
            },
        );
        Ok(())
    })
}
