//! The file system of the operating system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::buffered::{BufferedRandomFile, BufferedWriteFile};
use super::direct_read::DirectRandomFile;
use super::direct_write::{DIRECT_BUFFER_BYTES, DirectWriteFile};
use super::lock;
use super::read_ahead::{AheadReaders, Means};
#[cfg(test)]
use super::read_many::Readers;
use super::system::{open_direct, preallocate};
use crate::{
    AheadBatch, BatchRead, CreateOptions, FileLock, Fs, IoMode, IoPriority, RandomFile, ReadAhead, WriteFile,
};

/// The file system of the operating system. Its files share aligned buffers, and the threads that write them and read ahead.
#[derive(Debug, Default)]
pub struct PosixFs {
    means: Means,
    ahead: AheadReaders,
}

impl PosixFs {
    /// The file system, without idle buffers yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[cfg(test)]
    pub(super) fn traffic(&self) -> &super::traffic::Traffic {
        self.means.writers.traffic()
    }

    #[cfg(test)]
    pub(super) fn readers(&self) -> &Readers {
        &self.means.readers
    }

    fn open_for_writing(
        &self,
        how: &OpenOptions,
        path: &Path,
        options: CreateOptions,
    ) -> io::Result<Box<dyn WriteFile>> {
        let direct = match options.mode {
            IoMode::Direct => open_direct(how, path)?,
            IoMode::Buffered => None,
        };
        let (file, is_direct) = match direct {
            Some(file) => (file, true),
            None => (how.open(path)?, false),
        };
        let allocated = options.preallocate_bytes > 0 && preallocate(&file, options.preallocate_bytes)?;
        let cut_at_finish = options.preallocate_bytes > 0;
        Ok(if is_direct {
            Box::new(DirectWriteFile::new(
                file,
                options.buffer_bytes,
                cut_at_finish,
                Arc::clone(&self.means.pool),
                Arc::clone(&self.means.writers),
            ))
        } else {
            // A caller of direct files counts on large writes, also where the file system refuses direct ones.
            let buffer_bytes = match (options.mode, options.buffer_bytes) {
                (IoMode::Direct, 0) => DIRECT_BUFFER_BYTES,
                (_, bytes) => bytes,
            };
            let lock_bytes = if options.lock_in_memory && allocated {
                options.preallocate_bytes
            } else {
                0
            };
            Box::new(BufferedWriteFile::new(file, buffer_bytes, cut_at_finish).locking(lock_bytes))
        })
    }
}

impl Fs for PosixFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is none of ours: the engine writes ASCII names only.
        fs::read_dir(dir)?
            .filter_map(|entry| {
                entry
                    .map(|entry| entry.file_name().into_string().ok())
                    .transpose()
            })
            .collect()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn open(&self, path: &Path, mode: IoMode) -> io::Result<Arc<dyn RandomFile>> {
        let mut how = OpenOptions::new();
        how.read(true);
        if mode == IoMode::Direct
            && let Some(file) = open_direct(&how, path)?
        {
            let traffic = Arc::clone(self.means.writers.traffic());
            return Ok(Arc::new(DirectRandomFile { file, traffic }));
        }
        Ok(Arc::new(BufferedRandomFile(how.open(path)?)))
    }

    fn create(&self, path: &Path, options: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        let mut how = OpenOptions::new();
        // A file that is written into a mapping has to be open for reading too.
        how.read(options.lock_in_memory)
            .write(true)
            .create(true)
            .truncate(true);
        self.open_for_writing(&how, path, options)
    }

    fn canonical(&self, dir: &Path) -> io::Result<PathBuf> {
        // The parent of a bare name.
        fs::canonicalize(if dir.as_os_str().is_empty() {
            Path::new(".")
        } else {
            dir
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::lock(path)?))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn read_many(&self, reads: &mut [BatchRead<'_>], priority: IoPriority) {
        self.means
            .readers
            .read_many(reads, &self.means.pool, self.means.writers.traffic(), priority);
    }

    fn read_ahead(&self, batch: AheadBatch) -> ReadAhead {
        self.ahead.start(batch, self.means.clone())
    }
}
