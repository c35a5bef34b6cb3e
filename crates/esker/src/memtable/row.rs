//! A row as it lies in the arena.
//!
//! ```text
//! RowHeader { key_len u32, value_len u32 } | user key | trailer u64 LE | value, or a pointer to it
//! ```
//! `key_len` counts the trailer: key and trailer together are the internal key, handed out as one slice. The
//! skiplist puts the row's links in front of the header, growing downward; the vector has none.
//!
//! Values of [`APART_MIN`] bytes or more lie in chunks of their own, so that searches, which read only links and keys,
//! find those within few pages and cache lines; the row ends with a pointer instead (8 bytes, not aligned).

use super::arena::Arena;
use super::prefetch::prefetch;
use crate::key::{TRAILER_LEN, trailer, user_key};

/// Bytes from which a value lies apart from its row (see `docs/decisions/0002-memtable.md`).
pub(super) const APART_MIN: usize = 128;

const CACHE_LINE_BYTES: usize = 64;
/// Bytes that are worth asking for ahead; of longer values the processor sees itself that they are read in order.
const PREFETCH_BYTES_MAX: usize = 1024;

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

    #[inline]
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a row into the arena, with `front` bytes (a multiple of 8) in front of it that are left to the caller.
    /// Keys and values are within `KEY_LEN_MAX` and `VALUE_LEN_MAX`: batches refuse others.
    #[inline]
    pub(super) fn new(arena: &Arena, front: usize, user_key: &[u8], trailer: u64, value: &[u8]) -> Row {
        debug_assert!(front.is_multiple_of(align_of::<RowHeader>()));
        debug_assert!(user_key.len() <= crate::key::KEY_LEN_MAX && value.len() <= u32::MAX as usize);
        let key_len = user_key.len() + TRAILER_LEN;
        let apart = value.len() >= APART_MIN;
        let tail = if apart {
            size_of::<*const u8>()
        } else {
            value.len()
        };
        let at = arena
            .alloc(front + size_of::<RowHeader>() + key_len + tail)
            .as_ptr();
        // SAFETY: the arena gave memory to us alone, aligned to 8 as `front` keeps it: `front` bytes, and as many as
        // header, key and tail take; and as many as the value takes, if that lies apart. The sources are borrowed
        // slices and can't overlap with it.
        unsafe {
            let header = at.add(front).cast::<RowHeader>();
            header.write(RowHeader {
                key_len: key_len as u32,
                value_len: value.len() as u32,
            });
            let key = header.add(1).cast::<u8>();
            key.copy_from_nonoverlapping(user_key.as_ptr(), user_key.len());
            key.add(user_key.len())
                .copy_from_nonoverlapping(trailer.to_le_bytes().as_ptr(), TRAILER_LEN);
            let mut value_at = key.add(key_len);
            if apart {
                let elsewhere = arena.alloc_value(value.len()).as_ptr();
                value_at.cast::<*const u8>().write_unaligned(elsewhere);
                value_at = elsewhere;
            }
            value_at.copy_from_nonoverlapping(value.as_ptr(), value.len());
            if apart {
                // The next value likely is as long, and goes there.
                prefetch_bytes(value_at.wrapping_add(value.len()), value.len() + CACHE_LINE_BYTES);
            }
            Row(header)
        }
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
        // SAFETY: by the caller; the value lies behind the key or, if it is long, where the pointer there leads, in
        // the same arena; both were written before the row could be reached.
        unsafe {
            let (key_len, value_len) = ((*self.0).key_len as usize, (*self.0).value_len as usize);
            let mut value = self.0.add(1).cast::<u8>().add(key_len).cast_const();
            if value_len >= APART_MIN {
                value = value.cast::<*const u8>().read_unaligned();
            }
            std::slice::from_raw_parts(value, value_len)
        }
    }

    /// Asks for the first bytes of a value that lies apart. (Others are in or near the row's own cache line.)
    ///
    /// # Safety
    /// As for `internal_key`.
    #[inline]
    pub(super) unsafe fn prefetch_value(self) {
        // SAFETY: by the caller.
        let value = unsafe { self.value::<'_>() };
        if value.len() >= APART_MIN {
            prefetch_bytes(value.as_ptr(), value.len());
        }
    }
}

/// Asks for the cache lines of so many bytes, of the first `PREFETCH_BYTES_MAX` at most, wherever they are.
#[inline]
fn prefetch_bytes(at: *const u8, bytes: usize) {
    for offset in (0..bytes.min(PREFETCH_BYTES_MAX)).step_by(CACHE_LINE_BYTES) {
        prefetch(at.wrapping_add(offset));
    }
}
