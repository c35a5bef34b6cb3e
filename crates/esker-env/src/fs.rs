//! File system traits.
//!
//! The contract every implementation keeps:
//! - A file's bytes are durable only after [`WriteFile::sync`] returned `Ok`; its name is durable only after
//!   [`Fs::sync_dir`] on its folder did. A crash may keep any part of what was not made durable, in any order.
//! - A failed `sync` leaves the file poisoned: the caller must not assume anything about what is on disk.
//! - All methods may be called from any thread.

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{AheadBatch, ReadAhead};

/// How a file's bytes travel between the process and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IoMode {
    /// Through the page cache.
    #[default]
    Buffered,
    /// Past the page cache (`O_DIRECT`), with aligned buffers that the implementation owns. Falls back to
    /// buffered where the file system refuses direct I/O.
    Direct,
}

/// How to create a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Buffered or direct.
    pub mode: IoMode,
    /// Reserve this many bytes on the device up front (0: none). The visible length stays what was appended
    /// once the file is finished.
    pub preallocate_bytes: u64,
    /// When the file is used again ([`WriteFile::rewind`]), keep what was preallocated of it in memory, locked, so that
    /// appending there costs no system call. Buffered files only, and only where it is possible and permitted:
    /// [`WriteFile::locked_bytes`] tells.
    pub lock_in_memory: bool,
    /// Buffer this many bytes before a system call is made (0: the implementation's choice; for buffered
    /// files 0 means that every append is handed to the system at once).
    pub buffer_bytes: usize,
}

/// A file that is read at offsets.
pub trait RandomFile: Send + Sync + Debug {
    /// Reads at `offset` until `buf` is full or the file ends; gives the number of bytes read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reads exactly `buf.len()` bytes or fails with `UnexpectedEof`.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.read_at(offset, buf)? == buf.len() {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "file ends before the requested range",
            ))
        }
    }
    /// The descriptor by which the operating system reads the file, and how, for [`Fs::read_many`]; `None` for files
    /// that have none, or whose reads must all come through [`read_at`](Self::read_at).
    fn descriptor(&self) -> Option<(BorrowedFd<'_>, IoMode)> {
        None
    }
    /// Says that reads come in no order, and name all that is wanted: the operating system should read nothing beside it. A hint.
    fn expect_random_reads(&self) {}
}

/// Whether somebody waits for a batch of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoPriority {
    /// A caller of the database does: they go first.
    Foreground,
    /// A flush or a compaction does, or a scan that will come to it: they let others' small reads go first.
    Background,
}

/// One of the reads that [`Fs::read_many`] does together.
#[derive(Debug)]
pub struct BatchRead<'a> {
    /// The file, of the file system that is asked.
    pub file: &'a dyn RandomFile,
    /// Where to read.
    pub offset: u64,
    /// Where to read to.
    pub buf: &'a mut [u8],
    /// What [`RandomFile::read_at`] gives for it: 0 bytes until it was done.
    pub result: io::Result<usize>,
}

impl<'a> BatchRead<'a> {
    /// A read that is still to be done.
    pub fn new(file: &'a dyn RandomFile, offset: u64, buf: &'a mut [u8]) -> Self {
        Self {
            file,
            offset,
            buf,
            result: Ok(0),
        }
    }

    /// Does it.
    pub fn run(&mut self) {
        self.result = self.file.read_at(self.offset, self.buf);
    }
}

/// A file that is written from its front to its end.
pub trait WriteFile: Send + Debug {
    /// Appends all of `data`. After an error the file's content past the last successful `sync` is undefined.
    fn append(&mut self, data: &[u8]) -> io::Result<()>;
    /// Hands everything buffered in the process to the system (it then survives the process, not the machine).
    /// For direct files, whole blocks only: the unaligned tail stays buffered until `sync` or `finish`.
    fn flush(&mut self) -> io::Result<()>;
    /// `flush`, then waits until the data is on the device (`fdatasync`).
    fn sync(&mut self) -> io::Result<()>;
    /// Bytes appended so far (for a rewound file: since then).
    fn len(&self) -> u64;
    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Starts over at the front of the file. It keeps its blocks on the device, and its stale bytes until they are
    /// overwritten or `finish` cuts them off. What is buffered in the process is dropped. An error means that the file can't
    /// be used again; by default it is `Unsupported`.
    fn rewind(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Bytes of the file that are locked in memory.
    fn locked_bytes(&self) -> u64 {
        0
    }
    /// Flushes, cuts the file to its appended length where it was preallocated or rewound, and syncs it when
    /// `sync` is true. The file can't be written afterwards.
    fn finish(&mut self, sync: bool) -> io::Result<()>;
}

/// An exclusive lock on a file, held until it is dropped.
pub trait FileLock: Send + Sync + Debug {}

/// A file system.
pub trait Fs: Send + Sync + Debug {
    /// Creates a folder and its parents; succeeds if it is there already.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// The names (not paths) in a folder, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Whether a file or folder exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// A file's length in bytes.
    fn file_len(&self, path: &Path) -> io::Result<u64>;
    /// Opens a file for reading at offsets.
    fn open(&self, path: &Path, mode: IoMode) -> io::Result<Arc<dyn RandomFile>>;
    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &Path, options: CreateOptions) -> io::Result<Box<dyn WriteFile>>;
    /// The one name of a folder that is reached by several, where it can be found out.
    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        Ok(dir.to_owned())
    }

    /// Renames a file, replacing the target atomically, or a folder, whose target must not be there (an empty folder may
    /// be replaced). Files that are open stay so.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes the bytes of a file durable that others wrote, or an earlier process.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Makes a second name for a file.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes an exclusive lock on a file, creating it if need be; fails with `WouldBlock` when it is taken.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;
    /// Bytes that can still be written on the device below `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;
    /// Does all these reads, of any files of this file system, and keeps several under way where that is faster. Each
    /// gets a result of its own, the same as [`RandomFile::read_at`] would give: one that fails spoils no other.
    fn read_many(&self, reads: &mut [BatchRead<'_>], _: IoPriority) {
        for read in reads {
            read.run();
        }
    }

    /// Starts the reads of a batch, and returns before they are done where there is a way to. Each ends as one of
    /// [`read_many`](Self::read_many) in the background would.
    fn read_ahead(&self, mut batch: AheadBatch) -> ReadAhead {
        batch.run(|reads| self.read_many(reads, IoPriority::Background));
        ReadAhead::done(batch)
    }

    /// The whole of a (small) file.
    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, IoMode::Buffered)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
        file.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }
}
