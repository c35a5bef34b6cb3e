//! Errors: their kind, which says what to do next, and their text.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;

use esker::{Error, ErrorKind};
use esker_txn::lock::Deadlock;

use crate::boundary::{put, release};
use crate::locks::esker_deadlocks;
use crate::slice::esker_slice;

/// What the caller can do about an error.
pub type esker_error_kind = u32;
/// No error: the kind of a null pointer.
pub const ESKER_OK: esker_error_kind = 0;
/// Fix the argument.
pub const ESKER_INVALID_ARGUMENT: esker_error_kind = 1;
/// The database, the column family or what it should hold is not there. Absent keys are no error.
pub const ESKER_NOT_FOUND: esker_error_kind = 2;
/// The folder is in use by another process, or holds something else.
pub const ESKER_LOCKED: esker_error_kind = 3;
/// Stored bytes are not what was written: restore the file or repair the database.
pub const ESKER_CORRUPTION: esker_error_kind = 4;
/// The file has a newer format than this version reads: upgrade.
pub const ESKER_UNSUPPORTED: esker_error_kind = 5;
/// The device failed.
pub const ESKER_IO: esker_error_kind = 6;
/// The device is full: free space, writes resume by themselves.
pub const ESKER_NO_SPACE: esker_error_kind = 7;
/// The database no longer takes writes (a failed sync, or opened read-only); reads go on.
pub const ESKER_READ_ONLY: esker_error_kind = 8;
/// Try again: the call lost against concurrent work or a time limit.
pub const ESKER_RETRY: esker_error_kind = 9;
/// Another transaction wrote what this one has read or wants to write: roll it back, run it again.
pub const ESKER_CONFLICT: esker_error_kind = 10;
/// Transactions waited for each other in a circle and this one was chosen to give way: roll it back, run it again.
pub const ESKER_DEADLOCK: esker_error_kind = 11;
/// A lock did not come free in the time given: try again, or roll back and run the transaction again.
pub const ESKER_TIMED_OUT: esker_error_kind = 12;
/// There are as many locks as may be: end transactions, lock less in each, or raise the limit.
pub const ESKER_LOCK_LIMIT: esker_error_kind = 13;
/// The database was closed.
pub const ESKER_CLOSED: esker_error_kind = 14;
/// A defect in the library: report it.
pub const ESKER_BUG: esker_error_kind = 15;
/// A kind that this version of the header has no name for.
pub const ESKER_OTHER: esker_error_kind = 16;
/// The transaction writes more than one may: commit and go on in another one, or raise the limit.
pub const ESKER_WRITE_LIMIT: esker_error_kind = 17;
/// Somebody has interrupted the wait for a lock: roll back, or try again.
pub const ESKER_INTERRUPTED: esker_error_kind = 18;

fn number(kind: ErrorKind) -> esker_error_kind {
    match kind {
        ErrorKind::InvalidArgument => ESKER_INVALID_ARGUMENT,
        ErrorKind::NotFound => ESKER_NOT_FOUND,
        ErrorKind::Locked => ESKER_LOCKED,
        ErrorKind::Corruption => ESKER_CORRUPTION,
        ErrorKind::Unsupported => ESKER_UNSUPPORTED,
        ErrorKind::Io => ESKER_IO,
        ErrorKind::NoSpace => ESKER_NO_SPACE,
        ErrorKind::ReadOnly => ESKER_READ_ONLY,
        ErrorKind::Retry => ESKER_RETRY,
        ErrorKind::Conflict => ESKER_CONFLICT,
        ErrorKind::Deadlock => ESKER_DEADLOCK,
        ErrorKind::TimedOut => ESKER_TIMED_OUT,
        ErrorKind::LockLimit => ESKER_LOCK_LIMIT,
        ErrorKind::WriteLimit => ESKER_WRITE_LIMIT,
        ErrorKind::Interrupted => ESKER_INTERRUPTED,
        ErrorKind::Closed => ESKER_CLOSED,
        ErrorKind::Bug => ESKER_BUG,
        _ => ESKER_OTHER,
    }
}

/// An error. Null is success. Whoever gets one frees it.
pub struct esker_error {
    error: Error,
    message: CString,
}

impl esker_error {
    #[cold]
    pub fn new(error: Error) -> Box<Self> {
        let text = error.to_string().replace('\0', "\u{fffd}");
        let message = CString::new(text).unwrap_or_default();
        Box::new(Self { error, message })
    }
}

/// Frees an error; null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_free(error: Option<Box<esker_error>>) {
    release(error);
}

/// What to do about it; `ESKER_OK` for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_get_kind(error: Option<&esker_error>) -> esker_error_kind {
    error.map_or(ESKER_OK, |error| number(error.error.kind()))
}

/// Whether the same work may succeed when it is tried again and nothing was changed: a call for `ESKER_RETRY`, a transaction from
/// its start for `ESKER_CONFLICT`, `ESKER_DEADLOCK`, `ESKER_TIMED_OUT` and `ESKER_LOCK_LIMIT`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_is_retryable(error: Option<&esker_error>) -> bool {
    error.is_some_and(|error| error.error.kind().is_retryable())
}

/// What went wrong, where and why, in a line; empty for null. Stays until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_message(error: Option<&esker_error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The file concerned, as bytes of its path; none if no file is. Stays until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_file(error: Option<&esker_error>) -> esker_slice<'_> {
    let file = error.and_then(|error| error.error.file());
    esker_slice::optional(file.map(|file| file.as_os_str().as_encoded_bytes()))
}

/// Whether it concerns a place in that file; `offset` is set to it then.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_offset(
    error: Option<&esker_error>,
    offset: Option<&mut MaybeUninit<u64>>,
) -> bool {
    let at = error.and_then(|error| error.error.offset());
    put(offset, at.unwrap_or(0));
    at.is_some()
}

/// The name of the column family concerned; none if no one is. Stays until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_family(error: Option<&esker_error>) -> esker_slice<'_> {
    let family = error.and_then(|error| error.error.column_family());
    esker_slice::optional(family.map(str::as_bytes))
}

/// Of an error of kind `ESKER_DEADLOCK`, who waited for whom: a list of one; null for other errors. To be freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_error_deadlock(error: Option<&esker_error>) -> Option<Box<esker_deadlocks>> {
    let source = std::error::Error::source(&error?.error)?;
    let deadlock = source.downcast_ref::<Deadlock>()?;
    let found = vec![Arc::new(deadlock.clone())];
    Some(Box::new(esker_deadlocks::new(found, None)))
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
