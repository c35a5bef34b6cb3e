//! Memory aligned as direct I/O demands; the only `unsafe` of this crate.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of addresses, offsets and lengths of direct I/O, in bytes: the largest logical block in use.
pub(super) const BLOCK_BYTES: usize = 4096;

/// `len` rounded down to whole blocks.
pub(super) const fn round_down(len: usize) -> usize {
    len & !(BLOCK_BYTES - 1)
}

/// `len` rounded up to whole blocks.
pub(super) const fn round_up(len: usize) -> usize {
    round_down(len + (BLOCK_BYTES - 1))
}

/// A fixed-size byte buffer that starts at a multiple of [`BLOCK_BYTES`] and is one or more blocks long.
pub(super) struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone and hands out access only through `&self` and `&mut self`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; `&AlignedBuffer` gives nothing but `&[u8]`.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A zeroed buffer of at least `len` bytes. Pages are taken from the system when they are first touched.
    pub(super) fn new(len: usize) -> Self {
        let len = round_up(len.clamp(1, isize::MAX as usize - 2 * BLOCK_BYTES));
        let layout = Self::layout(len);
        // SAFETY: the layout's size is at least one block, so it is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, len },
            None => handle_alloc_error(layout),
        }
    }

    /// The layout of a buffer of `len` bytes, `len` being what `new` rounded it to.
    fn layout(len: usize) -> Layout {
        // SAFETY: the alignment is a power of two; `new` keeps `len` two blocks below `isize::MAX`, so that
        // rounding it up to the alignment does not overflow.
        unsafe { Layout::from_size_align_unchecked(len, BLOCK_BYTES) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this same layout and is freed once, here.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `len` initialised (zeroed) bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_whole_blocks() {
        for (asked, given) in [
            (0, 4096),
            (1, 4096),
            (4096, 4096),
            (4097, 8192),
            (1 << 20, 1 << 20),
        ] {
            let mut buffer = AlignedBuffer::new(asked);
            assert_eq!(buffer.as_ptr().addr() % BLOCK_BYTES, 0);
            assert_eq!(buffer.len(), given);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer[given - 1] = 7;
            assert_eq!(buffer.last(), Some(&7));
        }
    }
}
