//! Bytes between C and Rust: a pointer with a length.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use esker::{Error, Result};
use esker_compat::bytes;

/// Bytes that somebody else owns. As an argument they are read during the call only; null with length 0 is empty, or means
/// "none" where a function says so. Where a function gives one, it says how long the bytes stay.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_slice<'a> {
    /// The first byte.
    data: *const u8,
    /// How many there are.
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> esker_slice<'a> {
    /// No bytes at all: different from empty ones.
    pub const NONE: Self = Self {
        data: ptr::null(),
        len: 0,
        bytes: PhantomData,
    };

    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            len: bytes.len(),
            bytes: PhantomData,
        }
    }

    #[inline]
    pub fn optional(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::NONE, Self::new)
    }

    /// The bytes. Error: `InvalidArgument` for a length without data.
    #[inline]
    pub fn get(self) -> Result<&'a [u8]> {
        if self.data.is_null() && self.len != 0 || self.len > isize::MAX as usize {
            return Err(bad_slice(self.len));
        }
        // SAFETY: who makes a slice has that many bytes at `data` for `'a`: `new` by its argument's type, C by the contract.
        Ok(unsafe { bytes::slice(self.data.cast(), self.len) })
    }

    /// The bytes, or none for a null pointer.
    pub fn get_optional(self) -> Result<Option<&'a [u8]>> {
        let bytes = self.get()?;
        Ok((!self.data.is_null()).then_some(bytes))
    }
}

#[cold]
fn bad_slice(len: usize) -> Error {
    Error::invalid(format!("a slice of {len} bytes without data"))
}

/// The slices that stand at `items`.
///
/// # Safety
/// The contract: `count` slices are readable there for `'a`, or `items` is null.
pub unsafe fn slices<'a>(items: *const esker_slice<'a>, count: usize) -> Result<Vec<&'a [u8]>> {
    if items.is_null() && count != 0 {
        return Err(bad_slice(count));
    }
    // SAFETY: the caller's promise.
    let items = unsafe { bytes::array(items, count) };
    items.iter().map(|item| item.get()).collect()
}

/// The bytes of a string, without its NUL; none for null. They are the string's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_slice_of<'a>(string: *const c_char) -> esker_slice<'a> {
    if string.is_null() {
        return esker_slice::NONE;
    }
    // SAFETY: the contract.
    esker_slice::new(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// A row that an iterator stands on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_row<'a> {
    /// Its key; data is null if there is no row.
    pub key: esker_slice<'a>,
    /// Its value.
    pub value: esker_slice<'a>,
}

/// A key range.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_range<'a> {
    /// The first key.
    pub start: esker_slice<'a>,
    /// The first key behind it.
    pub end: esker_slice<'a>,
}

/// A name and its value: a setting, a property.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_pair<'a> {
    /// The name.
    pub name: esker_slice<'a>,
    /// The value.
    pub value: esker_slice<'a>,
}
