//! A merge operator that joins by commas.

use std::ffi::{c_char, c_int, c_uchar};

use super::target::Ptr;

pub type FullMerge = unsafe extern "C" fn(
    Ptr,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
pub type PartialMerge = unsafe extern "C" fn(
    Ptr,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// Existing value and operands, joined by commas.
///
/// # Safety
/// Lists of `count` entries.
unsafe fn joined(
    existing: Option<&[u8]>,
    operands: *const *const c_char,
    lens: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_len: *mut usize,
) -> *mut c_char {
    // SAFETY: the caller's promise; the result goes back to `delete_value`.
    unsafe {
        let mut parts: Vec<&[u8]> = existing.into_iter().collect();
        for i in 0..count as usize {
            parts.push(match *lens.add(i) {
                0 => &[],
                len => std::slice::from_raw_parts((*operands.add(i)).cast(), len),
            });
        }
        let value = parts.join(&b","[..]).into_boxed_slice();
        *success = 1;
        *new_len = value.len();
        Box::into_raw(value).cast()
    }
}

pub unsafe extern "C" fn full_merge(
    _: Ptr,
    _: *const c_char,
    _: usize,
    existing: *const c_char,
    existing_len: usize,
    operands: *const *const c_char,
    lens: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_len: *mut usize,
) -> *mut c_char {
    // SAFETY: the header's contract; a null value means that there was none.
    unsafe {
        let existing = (!existing.is_null()).then(|| match existing_len {
            0 => &[],
            len => std::slice::from_raw_parts(existing.cast(), len),
        });
        joined(existing, operands, lens, count, success, new_len)
    }
}

pub unsafe extern "C" fn partial_merge(
    _: Ptr,
    _: *const c_char,
    _: usize,
    operands: *const *const c_char,
    lens: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_len: *mut usize,
) -> *mut c_char {
    // SAFETY: the header's contract.
    unsafe { joined(None, operands, lens, count, success, new_len) }
}

pub unsafe extern "C" fn delete_value(_: Ptr, value: *const c_char, len: usize) {
    // SAFETY: what `joined` made, once.
    drop(unsafe {
        Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            value.cast_mut().cast::<u8>(),
            len,
        ))
    });
}

pub unsafe extern "C" fn nothing(_: Ptr) {}

pub unsafe extern "C" fn operator_name(_: Ptr) -> *const c_char {
    c"test.joined".as_ptr()
}
