//! Slices and strings out of C's pointers.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// `len` bytes at `data`; an empty slice may come with any pointer.
///
/// # Safety
/// The crate's contract; the bytes stay as they are for `'a`.
#[inline]
pub unsafe fn slice<'a>(data: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), len) }
}

/// `count` values at `items`, such as a list of lengths.
///
/// # Safety
/// As for [`slice()`].
pub unsafe fn array<'a, T>(items: *const T, count: usize) -> &'a [T] {
    if count == 0 || items.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(items, count) }
}

/// A key that may be left open: null means none.
///
/// # Safety
/// As for [`slice()`].
pub unsafe fn bound<'a>(data: *const c_char, len: usize) -> Option<&'a [u8]> {
    if data.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { slice(data, len) })
}

/// A NUL-terminated string; null counts as the empty one.
///
/// # Safety
/// As for [`slice()`], up to the NUL.
pub unsafe fn text<'a>(string: *const c_char) -> Cow<'a, str> {
    if string.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy()
}

/// A path, which need not be UTF-8.
///
/// # Safety
/// As for [`text`].
pub unsafe fn path(string: *const c_char) -> PathBuf {
    if string.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the caller's promise.
    let string = unsafe { CStr::from_ptr(string) };
    PathBuf::from(OsStr::from_bytes(string.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_empty() {
        // SAFETY: nothing is read.
        unsafe {
            assert_eq!(slice(std::ptr::null(), 0), b"");
            assert_eq!(bound(std::ptr::null(), 0), None);
            assert_eq!(bound(c"".as_ptr(), 0), Some(&b""[..]));
            assert_eq!(text(std::ptr::null()), "");
            assert!(array::<usize>(std::ptr::null(), 0).is_empty());
        }
    }

    #[test]
    fn a_path_keeps_its_bytes() {
        // SAFETY: a string of the test.
        let path = unsafe { path(c"/a/\xff".as_ptr()) };
        assert_eq!(path.as_os_str().as_bytes(), b"/a/\xff");
    }
}
