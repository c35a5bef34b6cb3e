//! Strings and paths out of C's pointers.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use esker::{Error, Result};
use esker_compat::bytes;

/// A string that must be there, in UTF-8.
///
/// # Safety
/// The contract: null, or a string with a NUL behind it that stays as it is for `'a`.
pub unsafe fn string<'a>(string: *const c_char, what: &str) -> Result<&'a str> {
    if string.is_null() {
        return Err(Error::invalid(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller's promise.
    let string = unsafe { CStr::from_ptr(string) };
    string
        .to_str()
        .map_err(|error| Error::invalid(format!("{what} is not in UTF-8")).caused_by(error))
}

/// A path that must be there. It need not be UTF-8.
///
/// # Safety
/// As for [`string()`].
pub unsafe fn path(path: *const c_char) -> Result<PathBuf> {
    if path.is_null() {
        return Err(Error::invalid("the path is a null pointer"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { bytes::path(path) })
}
