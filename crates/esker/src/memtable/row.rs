//! A row as it lies in the arena.
//!
//! ```text
//! RowHeader { key_len u32, value_len u32 } | user key | trailer u64 LE | value
//! ```
//! `key_len` counts the trailer: key and trailer together are the internal key, handed out as one slice. The
//! skiplist puts the row's links in front of the header, growing downward; the vector has none.

use crate::key::{TRAILER_LEN, trailer, user_key};

#[repr(C, align(8))]
pub(super) struct RowHeader {
    key_len: u32,
    value_len: u32,
}

/// A pointer to a row, or null. Copying it is free; reading through it is `unsafe`.
///
/// Its pointer has the provenance of the whole allocation, so that the links in front can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row(pub(super) *mut RowHeader);

impl Row {
    pub(super) const NULL: Row = Row(std::ptr::null_mut());

    /// Bytes that a row takes.
    #[inline]
    pub(super) fn size(user_key: &[u8], value: &[u8]) -> usize {
        size_of::<RowHeader>() + user_key.len() + TRAILER_LEN + value.len()
    }

    #[inline]
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a row at `at`. Keys and values are within `KEY_LEN_MAX` and `VALUE_LEN_MAX`: batches refuse others.
    ///
    /// # Safety
    /// `at` is aligned to 8 and valid for writes of `Row::size` bytes that nobody else accesses.
    #[inline]
    pub(super) unsafe fn write(at: *mut u8, user_key: &[u8], trailer: u64, value: &[u8]) -> Row {
        debug_assert!(user_key.len() <= crate::key::KEY_LEN_MAX && value.len() <= u32::MAX as usize);
        let header = at.cast::<RowHeader>();
        let key_len = user_key.len() + TRAILER_LEN;
        // SAFETY: all writes lie within the bytes that the caller vouches for; the sources are borrowed slices and
        // can't overlap with memory that nobody else accesses.
        unsafe {
            header.write(RowHeader {
                key_len: key_len as u32,
                value_len: value.len() as u32,
            });
            let bytes = at.add(size_of::<RowHeader>());
            bytes.copy_from_nonoverlapping(user_key.as_ptr(), user_key.len());
            bytes
                .add(user_key.len())
                .copy_from_nonoverlapping(trailer.to_le_bytes().as_ptr(), TRAILER_LEN);
            bytes
                .add(key_len)
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        Row(header)
    }

    /// The internal key.
    ///
    /// # Safety
    /// The row is not null, was written before (with a happens-before edge) and lives for `'a`.
    #[inline]
    pub(super) unsafe fn internal_key<'a>(self) -> &'a [u8] {
        // SAFETY: by the caller; rows are never changed once they can be reached.
        unsafe {
            let key_len = (*self.0).key_len as usize;
            std::slice::from_raw_parts(self.0.cast::<u8>().add(size_of::<RowHeader>()), key_len)
        }
    }

    /// The user key.
    ///
    /// # Safety
    /// As for `internal_key`.
    #[inline]
    pub(super) unsafe fn user_key<'a>(self) -> &'a [u8] {
        // SAFETY: by the caller.
        user_key(unsafe { self.internal_key() })
    }

    /// The trailer.
    ///
    /// # Safety
    /// As for `internal_key`.
    #[inline]
    pub(super) unsafe fn trailer(self) -> u64 {
        // SAFETY: by the caller.
        trailer(unsafe { self.internal_key() })
    }

    /// The value.
    ///
    /// # Safety
    /// As for `internal_key`.
    #[inline]
    pub(super) unsafe fn value<'a>(self) -> &'a [u8] {
        // SAFETY: by the caller; the value lies behind the key.
        unsafe {
            let (key_len, value_len) = ((*self.0).key_len as usize, (*self.0).value_len as usize);
            let value = self.0.cast::<u8>().add(size_of::<RowHeader>() + key_len);
            std::slice::from_raw_parts(value, value_len)
        }
    }
}
