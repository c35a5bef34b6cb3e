//! The front of a file, mapped and locked in memory: appending to it is a copy instead of a system call.
//!
//! A mapped file fails by a signal, not by an error, where a page can't be had. So a part is only mapped where none can be
//! missing later:
//! - the file system overwrites blocks in place ([`OVERWRITES_IN_PLACE`]), and the file's are allocated already, so a
//!   full device is no matter;
//! - every page is brought in, writable, before the mapping is used (`MADV_POPULATE_WRITE`, which gives an error and no
//!   signal), and is locked, so that none is read from the device again.
//!
//! What goes wrong as the kernel writes the pages later is the result of the next sync, as for any buffered write.

use std::fs::File;
use std::ptr::NonNull;

/// A writable mapping of a file's first bytes, all of them in memory.
///
/// Invariant: `start` is valid for `len` bytes until the mapping is dropped, and the file is not cut below `len` before.
#[derive(Debug)]
pub(super) struct LockedPart {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone; nothing in it is bound to a thread.
unsafe impl Send for LockedPart {}

impl LockedPart {
    /// Maps and locks the first `len` bytes, for which blocks have been allocated. `None` where that is not possible or not
    /// permitted: most often because of the limit on locked memory (`RLIMIT_MEMLOCK`).
    pub(super) fn new(file: &File, len: u64) -> Option<Self> {
        map(file, usize::try_from(len).ok()?)
    }

    /// Bytes that are mapped.
    pub(super) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Copies `data` to `offset` if all of it fits; says whether it did.
    #[inline]
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        if offset > self.len || data.len() > self.len - offset {
            return false;
        }
        // SAFETY: the range lies within the mapping, as was just checked; `data` is a safe slice elsewhere.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.start.as_ptr().add(offset), data.len());
        }
        true
    }
}

#[cfg(target_os = "linux")]
const EXT: u64 = 0xef53;
#[cfg(target_os = "linux")]
const XFS: u64 = 0x5846_5342;
#[cfg(target_os = "linux")]
const TMPFS: u64 = 0x0102_1994;

/// File systems on which overwriting an allocated block needs no new one (`statfs(2)` has the numbers). Files of ours share no
/// blocks with others, so XFS is one of them.
#[cfg(target_os = "linux")]
const OVERWRITES_IN_PLACE: [u64; 3] = [EXT, XFS, TMPFS];

#[cfg(target_os = "linux")]
fn map(file: &File, len: usize) -> Option<LockedPart> {
    use rustix::fs::fstatfs;
    use rustix::mm::{Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock_with, mmap};

    let kind = fstatfs(file).ok()?.f_type as u64;
    if len == 0 || !OVERWRITES_IN_PLACE.contains(&kind) {
        return None;
    }
    // SAFETY: a new mapping at an address of the kernel's choice overlaps no memory of the process.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            file,
            0,
        )
    };
    let part = LockedPart {
        start: NonNull::new(start.ok()?.cast())?,
        len,
    };
    let address = part.start.as_ptr().cast();
    // The lock comes first, as that is what may be refused; it brings nothing in by itself.
    // SAFETY: it concerns the mapping that was just made, and changes none of its bytes.
    unsafe { mlock_with(address, len, MlockFlags::ONFAULT) }.ok()?;
    if file.metadata().ok()?.len() < len as u64 {
        file.set_len(len as u64).ok()?;
    }
    // SAFETY: as before, and the file has bytes for all of it now.
    unsafe { madvise(address, len, Advice::LinuxPopulateWrite) }.ok()?;
    Some(part)
}

/// Nothing: what it takes is Linux's own.
#[cfg(not(target_os = "linux"))]
fn map(_file: &File, _len: usize) -> Option<LockedPart> {
    None
}

impl Drop for LockedPart {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this address and length, and nobody uses it after this value.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
