//! Exclusive locks on files.
//!
//! `flock` keeps other processes out. Within the process a set of locked paths does, because on some file
//! systems (NFS) `flock` is a record lock, which a process always gets from itself.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::FileLock;

static LOCKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A path's place in the process-wide set; leaves it when dropped.
#[derive(Debug)]
struct Claim(PathBuf);

impl Drop for Claim {
    fn drop(&mut self) {
        LOCKED.lock().remove(&self.0);
    }
}

/// A lock held. Fields drop in order: the file's lock goes before the process's.
#[derive(Debug)]
pub(super) struct PosixLock {
    _file: File,
    _claim: Claim,
}

impl FileLock for PosixLock {}

/// Locks `path`, creating it if need be.
pub(super) fn lock(path: &Path) -> io::Result<PosixLock> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.canonicalize()?,
        _ => Path::new(".").canonicalize()?,
    };
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let canonical = folder.join(name);
    if !LOCKED.lock().insert(canonical.clone()) {
        return Err(io::Error::from(io::ErrorKind::WouldBlock));
    }
    let claim = Claim(canonical);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(PosixLock {
            _file: file,
            _claim: claim,
        }),
        Err(TryLockError::WouldBlock) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
