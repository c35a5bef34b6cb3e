//! Answers in memory of C's allocator: the caller frees them, by `leveldb_free`, `rocksdb_free` or `free` itself.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{c_char, c_void};

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(data: *mut c_void);
}

/// Memory for `len` bytes, never null. Without memory the process ends, as it does in the originals.
fn allocate(len: usize) -> *mut u8 {
    // SAFETY: any length is allowed; one byte at least, so that null always means failure.
    let data = unsafe { malloc(len.max(1)) };
    if data.is_null() {
        handle_alloc_error(Layout::from_size_align(len, 1).unwrap_or(Layout::new::<u8>()));
    }
    data.cast()
}

/// A copy of `bytes`.
#[inline]
pub fn copy(bytes: &[u8]) -> *mut c_char {
    let data = allocate(bytes.len());
    // SAFETY: `data` was just allocated for this many bytes, so the two don't overlap.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    data.cast()
}

/// A copy of `text` with a NUL behind it; it ends where the text itself has one.
pub fn copy_text(text: &str) -> *mut c_char {
    let bytes = text.as_bytes();
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let data = allocate(len + 1);
    // SAFETY: `data` was just allocated for the bytes and the NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, len);
        data.add(len).write(0);
    }
    data.cast()
}

/// An array of `items`, such as a list of names.
pub fn copy_array<T: Copy>(items: &[T]) -> *mut T {
    let data = allocate(size_of_val(items)).cast::<T>();
    // SAFETY: `data` was just allocated for these items; malloc aligns for every plain type.
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), data, items.len()) };
    data
}

/// Frees what `malloc` gave; null is nothing.
///
/// # Safety
/// `data` is null, or came from `malloc` (of this module or the caller's) and was not freed.
pub unsafe fn release(data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { free(data) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    #[test]
    fn copies_are_the_callers() {
        // SAFETY: each allocation is read within its length and freed once.
        unsafe {
            let empty = copy(b"");
            assert!(!empty.is_null());
            release(empty.cast());
            let data = copy(b"a\0b");
            assert_eq!(bytes::slice(data, 3), b"a\0b");
            release(data.cast());
            let cut = copy_text("ab\0c");
            assert_eq!(bytes::text(cut), "ab");
            release(cut.cast());
            let numbers = copy_array(&[7_usize, 8]);
            assert_eq!(bytes::array(numbers, 2), [7, 8]);
            release(numbers.cast());
        }
    }
}
