//! The few system calls under every file: whole reads and writes, preallocation, direct opens.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Reads at `offset` until `buf` is full or the file ends; gives the bytes read.
pub(super) fn read_full_at(file: &File, mut offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `data` at `offset`.
pub(super) fn write_full_at(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match file.write_at(data, offset) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(n) => {
                data = &data[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reserves blocks for the first `bytes` of the file without changing its length; says whether it did. A file system that
/// can't reserve is left to allocate as it goes.
#[cfg(target_os = "linux")]
pub(super) fn preallocate(file: &File, bytes: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    loop {
        match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nothing: only Linux can reserve blocks without changing the length.
#[cfg(not(target_os = "linux"))]
pub(super) fn preallocate(_file: &File, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// Opens for direct I/O; `None` where the file system refuses it.
#[cfg(target_os = "linux")]
pub(super) fn open_direct(options: &OpenOptions, path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = options.clone();
    match options.custom_flags(OFlags::DIRECT.bits() as i32).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Only Linux has `O_DIRECT`.
#[cfg(not(target_os = "linux"))]
pub(super) fn open_direct(_options: &OpenOptions, _path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// What a failed sync leaves behind: every later call on the file gives the same error, because the kernel has
/// marked the lost pages clean and a second sync would report success.
#[derive(Debug, Default)]
pub(super) struct Poison(Option<(Option<i32>, io::ErrorKind)>);

impl Poison {
    /// The first error, if there was one.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.0 {
            None => Ok(()),
            Some((Some(code), _)) => Err(io::Error::from_raw_os_error(code)),
            Some((None, kind)) => Err(io::Error::from(kind)),
        }
    }

    /// Passes `result` on, remembering its error.
    pub(super) fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.0.get_or_insert((error.raw_os_error(), error.kind()));
        }
        result
    }
}
