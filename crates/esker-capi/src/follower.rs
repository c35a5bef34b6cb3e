//! Followers: a database that another process writes, read without its lock.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use esker::Error;

use crate::boundary::{answer, given, made, put};
use crate::database::{Layer, esker_db};
use crate::error::esker_error;
use crate::options::esker_options;
use crate::text;

/// Opens the database in the folder `path` to be read while another process writes it: without its lock, and without a change to its
/// folder. What it shows, of all families, is the database as it was at one moment for the writer, and stays the same until
/// `esker_db_catch_up`. Snapshots keep their moment over that, iterators the one of their making. Handles of families move on with it.
/// Writes, and all that would change files, fail with `ESKER_READ_ONLY`. It has no transactions, and no listeners are told of it.
///
/// Families that the options name and that do not exist may come later. Rows that were written with `ESKER_NO_LOG` are shown once the
/// writer has flushed them. A read that comes to a table which the writer has removed meanwhile fails with `ESKER_RETRY`, and succeeds
/// after the next catch-up; the first 512 files (or `open_files_max`, if that is less) are kept open against that.
/// Errors: those of `esker_db_open` for a database that is opened read-only, and of `esker_db_catch_up`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_follow(
    path: *const c_char,
    options: Option<&esker_options>,
    db: Option<&mut MaybeUninit<Option<Box<esker_db>>>>,
) -> Option<Box<esker_error>> {
    made(db, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let options = options.cloned().unwrap_or_default();
        let follower = options.opener().follow(path)?;
        let db = follower.db().clone();
        Ok(esker_db {
            default: db.default_column_family(),
            layer: Layer::Following(Box::new(follower)),
            clock: options.env().clock,
            db,
        })
    })
}

/// What a catch-up came to.
#[repr(C)]
pub struct esker_caught_up {
    /// The last sequence number that is seen now.
    pub sequence: u64,
    /// Batches of the log that were read.
    pub batches: u64,
    /// Groups of changes of the set of files that were read.
    pub edit_groups: u64,
}

/// Moves a follower on to a moment that holds all that was committed before the call, except for what was written without the log.
/// Reads that are under way are not disturbed. `caught_up` may be null.
/// Errors: `ESKER_INVALID_ARGUMENT` if `db` is no follower, a family has come whose key order or merge operator the options did not name,
/// or another database is in the folder; `ESKER_RETRY` if the writer flushes faster than its log can be read; `ESKER_NOT_FOUND`,
/// `ESKER_CORRUPTION`, `ESKER_UNSUPPORTED` and `ESKER_IO` as of an opening. What is shown then stays as it was.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_catch_up(
    db: Option<&esker_db>,
    caught_up: Option<&mut MaybeUninit<esker_caught_up>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let Layer::Following(follower) = &given(db, "db")?.layer else {
            return Err(Error::invalid(
                "the database was not opened as a follower; esker_db_follow does that",
            ));
        };
        let caught = follower.catch_up()?;
        put(
            caught_up,
            esker_caught_up {
                sequence: caught.sequence,
                batches: caught.batches,
                edit_groups: caught.edit_groups,
            },
        );
        Ok(())
    })
}
