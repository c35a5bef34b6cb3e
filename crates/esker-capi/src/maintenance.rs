//! What keeps a database in shape: flushes, compactions, pauses, checkpoints, tables dropped, settings changed while it is open.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use esker::{CheckpointOptions, Error};

use crate::boundary::{answer, given, put, release};
use crate::call_options::{durability, esker_durability};
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::{esker_range, esker_slice};
use crate::text;

/// Brings everything written so far, in all families, into tables, and waits for it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_flush(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| given(db, "db")?.db.flush())
}

/// Brings what was written to one family into tables, and waits for it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_flush_family(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        db.db.flush_cf(db.family(family))
    })
}

/// Merges all data of a family from `start` to `end` (inclusive; data is null: open) down to the deepest level that holds any, and
/// waits for it. Reads and writes go on meanwhile.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_compact_range(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let (start, end) = (start.get_optional()?, end.get_optional()?);
        db.db.compact_range_cf(db.family(family), start, end)
    })
}

/// Whether no flush and no compaction runs or is due. Fails with the error of the job that fails, if one does.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_is_idle(
    db: Option<&esker_db>,
    idle: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        put(idle, given(db, "db")?.db.is_idle()?);
        Ok(())
    })
}

/// Waits until no flush and no compaction runs or is due. Returns at once while background work is paused, and with the error of
/// the job that fails, if one does.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_wait_idle(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| given(db, "db")?.db.wait_idle())
}

/// Starts no more background jobs and waits for those that run; writes wait once memory is full. Calls nest.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_pause_background_work(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| {
        given(db, "db")?.db.pause_background_work();
        Ok(())
    })
}

/// Undoes one `esker_db_pause_background_work`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_resume_background_work(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| {
        given(db, "db")?.db.resume_background_work();
        Ok(())
    })
}

/// Starts the background work of a database that was opened without it (`esker_options_set_background_work`); otherwise does nothing.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_start_background_work(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| {
        given(db, "db")?.db.start_background_work();
        Ok(())
    })
}

/// Sets the durability of writes that name none. Error: `ESKER_INVALID_ARGUMENT` for `ESKER_DURABILITY_DEFAULT` or an unknown number.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_set_durability(
    db: Option<&esker_db>,
    wanted: esker_durability,
) -> Option<Box<esker_error>> {
    answer(|| {
        let wanted = durability(wanted)?;
        let wanted = wanted.ok_or_else(|| Error::invalid("the default durability must be one by itself"))?;
        given(db, "db")?.db.set_durability(wanted);
        Ok(())
    })
}

/// Sets the rate at which background work may write, in bytes a second; 0: no limit.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_set_background_bytes_per_second(
    db: Option<&esker_db>,
    rate: u64,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(db, "db")?.db.set_background_bytes_per_second(rate);
        Ok(())
    })
}

/// How a checkpoint is made.
#[derive(Default)]
pub struct esker_checkpoint_options(CheckpointOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_checkpoint_options_create() -> Box<esker_checkpoint_options> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_checkpoint_options_free(options: Option<Box<esker_checkpoint_options>>) {
    release(options);
}

/// Bytes of the log that are copied at most; where more would have to be, memtables are written into tables of the copy. 0 always
/// does that. Default: 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn esker_checkpoint_options_set_wal_bytes_max(
    options: Option<&mut esker_checkpoint_options>,
    bytes: u64,
) {
    if let Some(options) = options {
        options.0.wal_bytes_max = bytes;
    }
}

/// What a checkpoint holds, and what it cost.
#[repr(C)]
pub struct esker_checkpoint {
    /// The last sequence number in it.
    pub sequence: u64,
    /// Files that the database and the checkpoint share.
    pub linked_files: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes of tables and blob files that memtables were written to.
    pub written_bytes: u64,
}

/// Makes a copy of the database as it is now in the new folder `path`, by links where it can, durable when it returns. Options and
/// `checkpoint` may be null.
/// Errors: `ESKER_INVALID_ARGUMENT` (`path` exists, or the folder around it does not), `ESKER_LOCKED`, `ESKER_IO`, `ESKER_NO_SPACE`;
/// there is no `path` then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_checkpoint(
    db: Option<&esker_db>,
    path: *const c_char,
    options: Option<&esker_checkpoint_options>,
    checkpoint: Option<&mut MaybeUninit<esker_checkpoint>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let defaults = CheckpointOptions::default();
        let options = options.map_or(&defaults, |options| &options.0);
        let summary = db.db.checkpoint_with(path, options)?;
        put(
            checkpoint,
            esker_checkpoint {
                sequence: summary.sequence,
                linked_files: summary.linked_files,
                copied_bytes: summary.copied_bytes,
                written_bytes: summary.written_bytes,
            },
        );
        Ok(())
    })
}

/// Tables that were dropped.
#[repr(C)]
pub struct esker_deleted_files {
    /// How many.
    pub tables: u64,
    /// Bytes of them, without the values in blob files.
    pub bytes: u64,
}

/// Drops the tables of a family that lie inside one of `count` ranges with all their keys, at once and durably: no delete, as rows of
/// the ranges stay that are elsewhere, and snapshots don't hold tables back. For ranges that nobody reads any more, before a range
/// delete. `deleted` may be null.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_delete_files_in_ranges(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    ranges: *const esker_range<'_>,
    count: usize,
    deleted: Option<&mut MaybeUninit<esker_deleted_files>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        if ranges.is_null() && count > 0 {
            return Err(Error::invalid("the ranges are a null pointer"));
        }
        // SAFETY: the contract.
        let ranges = unsafe { esker_compat::bytes::array(ranges, count) };
        let ranges = ranges
            .iter()
            .map(|range| Ok((range.start.get()?, range.end.get()?)));
        let ranges = ranges.collect::<esker::Result<Vec<_>>>()?;
        let gone = db.db.delete_files_in_ranges(db.family(family), &ranges)?;
        put(
            deleted,
            esker_deleted_files {
                tables: gone.tables,
                bytes: gone.bytes,
            },
        );
        Ok(())
    })
}
