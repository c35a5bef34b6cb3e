//! A file system in memory, under a lock.
//!
//! A name is durable only after `sync_dir`, a file's bytes only after `sync`; folders are durable at once. What an
//! open file refers to is its file, not its name, as on POSIX: it survives a rename and a removal.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::crash::CrashMode;
use super::inode::Inode;
use super::names::{FileId, Names};
use super::rng::Rng;
use crate::{CreateOptions, FileLock, Fs, IoMode, RandomFile, WriteFile};

/// What direct files write in whole multiples of, in bytes.
const BLOCK_BYTES: usize = 4096;
/// What direct files buffer where the caller names nothing, in bytes.
const DIRECT_BUFFER_BYTES: usize = 1 << 20;

/// The state of a file system.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, Inode>,
    pub(super) folders: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    pub(super) next_file: FileId,
    /// Open handles a file, so that a file without a name lives as long as it is open.
    open: BTreeMap<FileId, usize>,
    operations: u64,
    stop_at: Option<u64>,
    capacity_bytes: Option<u64>,
    /// Bytes charged for files that have a name.
    used_bytes: u64,
}

impl World {
    /// Counts a mutating call, or refuses it when the machine has stopped.
    fn operate(&mut self) -> io::Result<()> {
        if self.stop_at.is_some_and(|stop| self.operations >= stop) {
            return Err(io::Error::other("the simulated machine has stopped"));
        }
        self.operations += 1;
        Ok(())
    }

    fn file(&self, path: &Path) -> io::Result<FileId> {
        self.names.get(path).ok_or_else(|| Errno::NOENT.into())
    }

    fn inode(&self, file: FileId) -> io::Result<&Inode> {
        self.files.get(&file).ok_or_else(|| Errno::STALE.into())
    }

    /// Changes a file if what it takes afterwards fits on the device; `takes` is a bound on that, in bytes.
    fn change(&mut self, file: FileId, takes: usize, change: impl FnOnce(&mut Inode)) -> io::Result<()> {
        let capacity = self.capacity_bytes;
        let Some(inode) = self.files.get_mut(&file) else {
            return Err(Errno::STALE.into());
        };
        let before = inode.charged() as u64;
        let grown = (takes as u64).saturating_sub(before);
        if grown > 0 && capacity.is_some_and(|capacity| self.used_bytes + grown > capacity) {
            return Err(Errno::NOSPC.into());
        }
        change(inode);
        if inode.names > 0 {
            self.used_bytes = self.used_bytes + inode.charged() as u64 - before;
        }
        Ok(())
    }

    fn folder_of(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if self.folder_exists(parent) => Ok(()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn folder_exists(&self, dir: &Path) -> bool {
        dir.as_os_str().is_empty() || dir == Path::new("/") || self.folders.contains(dir)
    }

    fn named(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            if inode.names == 0 {
                self.used_bytes += inode.charged() as u64;
            }
            inode.names += 1;
        }
    }

    /// The counterpart of `named`; call it once the name is gone.
    fn unnamed(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            inode.names -= 1;
            if inode.names == 0 {
                self.used_bytes -= inode.charged() as u64;
            }
        }
    }

    /// Forgets the files that neither a name, a crash nor a handle can bring back.
    fn forget_unreachable(&mut self) {
        let reachable = self.names.reachable();
        let open = &self.open;
        self.files
            .retain(|file, _| reachable.contains(file) || open.contains_key(file));
    }

    /// A world of what a crash left: no handle, no lock, no limit.
    pub(super) fn restored(
        names: Names,
        files: BTreeMap<FileId, Inode>,
        folders: BTreeSet<PathBuf>,
        next_file: FileId,
    ) -> Self {
        let mut world = World {
            names,
            files,
            folders,
            next_file,
            ..World::default()
        };
        for inode in world.files.values_mut() {
            inode.names = 0;
        }
        let ids: Vec<FileId> = world.names.current().values().copied().collect();
        for file in ids {
            world.named(file);
        }
        world.forget_unreachable();
        world
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<FileId> {
        let file = self.file(from)?;
        self.folder_of(to)?;
        self.operate()?;
        let replaced = self.names.get(to);
        // Two names of one file: POSIX leaves both.
        if replaced != Some(file) {
            self.names.rename(from, to, file);
            if let Some(replaced) = replaced {
                self.unnamed(replaced);
            }
        }
        Ok(file)
    }
}

/// A file system in memory that can crash. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemFs {
    world: Arc<Mutex<World>>,
}

impl MemFs {
    /// An empty file system.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The file system as it is after a crash. Handles opened before keep referring to the old one.
    #[must_use]
    pub fn crash(&self, mode: CrashMode) -> MemFs {
        MemFs {
            world: Arc::new(Mutex::new(self.world.lock().after(mode))),
        }
    }

    /// Mutating calls so far: creations, renames, removals, links, locks, syncs, and appends that reached the
    /// system. A failed call counts if it got as far as changing something.
    pub fn operations(&self) -> u64 {
        self.world.lock().operations
    }

    /// Lets `n` more mutating calls succeed and fails all later ones; `None` lifts that. The first append that is
    /// stopped may be written in part.
    pub fn stop_after(&self, n: Option<u64>) {
        let mut world = self.world.lock();
        world.stop_at = n.map(|n| world.operations.saturating_add(n));
    }

    /// Whether a limit set by `stop_after` was reached.
    pub fn is_stopped(&self) -> bool {
        let world = self.world.lock();
        world.stop_at.is_some_and(|stop| world.operations >= stop)
    }

    /// The size of the device in bytes; beyond it writes fail with `StorageFull`. `None`: no limit.
    pub fn set_capacity_bytes(&self, capacity: Option<u64>) {
        self.world.lock().capacity_bytes = capacity;
    }

    /// Bytes that files with a name take, reservations included.
    pub fn used_bytes(&self) -> u64 {
        self.world.lock().used_bytes
    }

    fn lock_world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    fn handle(&self, world: &mut World, file: FileId) -> Handle {
        *world.open.entry(file).or_default() += 1;
        Handle {
            fs: self.clone(),
            file,
        }
    }

    fn writer(
        &self,
        world: &mut World,
        file: FileId,
        options: CreateOptions,
        reused: bool,
    ) -> io::Result<Box<dyn WriteFile>> {
        let reserve = usize::try_from(options.preallocate_bytes).map_err(io::Error::other)?;
        world.change(file, reserve, |inode| inode.reserved = reserve)?;
        let buffer_bytes = match (options.mode, options.buffer_bytes) {
            (IoMode::Direct, 0) => DIRECT_BUFFER_BYTES,
            (IoMode::Direct, bytes) => bytes.next_multiple_of(BLOCK_BYTES),
            (IoMode::Buffered, bytes) => bytes,
        };
        Ok(Box::new(MemWriteFile {
            handle: self.handle(world, file),
            written: 0,
            buffer: Vec::new(),
            buffer_bytes,
            direct: options.mode == IoMode::Direct,
            cut_at_finish: reused || reserve > 0,
        }))
    }
}

/// `path` in one spelling.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

impl Fs for MemFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let dir = tidy(dir);
        let mut world = self.lock_world();
        if !world.folder_exists(&dir) {
            world.operate()?;
            for folder in dir.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
                world.folders.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = tidy(dir);
        let world = self.lock_world();
        if !world.folder_exists(&dir) {
            return Err(Errno::NOENT.into());
        }
        let paths = world.names.current().keys().chain(&world.folders);
        Ok(paths
            .filter(|path| path.parent() == Some(&dir))
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = tidy(path);
        let world = self.lock_world();
        Ok(world.names.get(&path).is_some() || world.folder_exists(&path))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        let world = self.lock_world();
        let file = world.file(&tidy(path))?;
        Ok(world.inode(file)?.bytes().len() as u64)
    }

    fn open(&self, path: &Path, _mode: IoMode) -> io::Result<Arc<dyn RandomFile>> {
        let mut world = self.lock_world();
        let file = world.file(&tidy(path))?;
        Ok(Arc::new(MemRandomFile(self.handle(&mut world, file))))
    }

    fn create(&self, path: &Path, options: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        let path = tidy(path);
        let mut world = self.lock_world();
        world.folder_of(&path)?;
        world.operate()?;
        let file = if let Some(file) = world.names.get(&path) {
            world.change(file, 0, |inode| inode.set_len(0))?;
            file
        } else {
            let file = world.next_file;
            world.next_file += 1;
            world.files.insert(file, Inode::default());
            world.names.link(&path, file);
            world.named(file);
            file
        };
        self.writer(&mut world, file, options, false)
    }

    fn reuse(&self, old: &Path, new: &Path, options: CreateOptions) -> io::Result<Box<dyn WriteFile>> {
        let mut world = self.lock_world();
        let file = world.rename(&tidy(old), &tidy(new))?;
        self.writer(&mut world, file, options, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lock_world().rename(&tidy(from), &tidy(to)).map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = tidy(path);
        let mut world = self.lock_world();
        let file = world.file(&path)?;
        world.operate()?;
        world.names.unlink(&path);
        world.unnamed(file);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let to = tidy(to);
        let mut world = self.lock_world();
        let file = world.file(&tidy(from))?;
        world.folder_of(&to)?;
        if world.names.get(&to).is_some() {
            return Err(Errno::EXIST.into());
        }
        world.operate()?;
        world.names.link(&to, file);
        world.named(file);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = tidy(dir);
        let mut world = self.lock_world();
        if !world.folder_exists(&dir) {
            return Err(Errno::NOENT.into());
        }
        world.operate()?;
        world.names.sync_dir(&dir);
        world.forget_unreachable();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let path = tidy(path);
        if self.lock_world().locked.contains(&path) {
            return Err(Errno::WOULDBLOCK.into());
        }
        if !self.exists(&path)? {
            self.create(&path, CreateOptions::default())?;
        }
        let mut world = self.lock_world();
        if !world.locked.insert(path.clone()) {
            return Err(Errno::WOULDBLOCK.into());
        }
        Ok(Box::new(MemLock {
            fs: self.clone(),
            path,
        }))
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let world = self.lock_world();
        let capacity = world.capacity_bytes.unwrap_or(u64::MAX >> 1);
        Ok(capacity.saturating_sub(world.used_bytes))
    }
}

#[derive(Debug)]
struct MemLock {
    fs: MemFs,
    path: PathBuf,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.fs.lock_world().locked.remove(&self.path);
    }
}

/// Keeps a file alive while it is open.
#[derive(Debug)]
struct Handle {
    fs: MemFs,
    file: FileId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut world = self.fs.lock_world();
        let Some(count) = world.open.get_mut(&self.file) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            world.open.remove(&self.file);
            let nameless = world.files.get(&self.file).is_some_and(|inode| inode.names == 0);
            if nameless {
                world.forget_unreachable();
            }
        }
    }
}

#[derive(Debug)]
struct MemRandomFile(Handle);

impl RandomFile for MemRandomFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let world = self.0.fs.lock_world();
        let bytes = world.inode(self.0.file)?.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buf.len().min(bytes.len() - start);
        buf[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        let world = self.0.fs.lock_world();
        Ok(world.inode(self.0.file)?.bytes().len() as u64)
    }
}

/// Buffers as the real files do: a buffered one hands on all it has, a direct one whole blocks, and its tail only
/// with `sync` and `finish`, padded while the file is longer than its appended length anyway.
#[derive(Debug)]
struct MemWriteFile {
    handle: Handle,
    written: usize,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    direct: bool,
    cut_at_finish: bool,
}

impl MemWriteFile {
    /// Hands `data` to the system at `offset`.
    fn write(&self, offset: usize, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut world = self.handle.fs.lock_world();
        let file = self.handle.file;
        let end = offset + data.len();
        match world.operate() {
            Ok(()) => world.change(file, end, |inode| inode.write(offset, data)),
            Err(error) => {
                // Only the first call after the stop finds the count where the stop left it.
                if world.stop_at == Some(world.operations) {
                    world.operations += 1;
                    let cut = Rng(world.operations).below(data.len() + 1);
                    world.change(file, offset + cut, |inode| inode.write(offset, &data[..cut]))?;
                }
                Err(error)
            }
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let whole = if self.direct {
            self.buffer.len() / BLOCK_BYTES * BLOCK_BYTES
        } else {
            self.buffer.len()
        };
        self.write(self.written, &self.buffer[..whole])?;
        self.written += whole;
        self.buffer.drain(..whole);
        Ok(())
    }

    /// A direct file's tail; it stays in the buffer.
    fn write_tail(&self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut tail = self.buffer.clone();
        if self.cut_at_finish {
            tail.resize(tail.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        self.write(self.written, &tail)
    }
}

impl WriteFile for MemWriteFile {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if !self.direct && self.buffer.len() + data.len() > self.buffer_bytes {
            self.write_out()?;
            if data.len() >= self.buffer_bytes {
                self.write(self.written, data)?;
                self.written += data.len();
                return Ok(());
            }
        }
        self.buffer.extend_from_slice(data);
        if self.direct && self.buffer.len() >= self.buffer_bytes {
            self.write_out()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.write_tail()?;
        let mut world = self.handle.fs.lock_world();
        world.operate()?;
        world.change(self.handle.file, 0, Inode::sync)
    }

    fn len(&self) -> u64 {
        (self.written + self.buffer.len()) as u64
    }

    fn finish(&mut self, sync: bool) -> io::Result<()> {
        self.write_out()?;
        self.write_tail()?;
        let len = self.written + self.buffer.len();
        let mut world = self.handle.fs.lock_world();
        world.operate()?;
        world.change(self.handle.file, 0, |inode| {
            inode.reserved = 0;
            inode.set_len(len);
            if sync {
                inode.sync();
            }
        })
    }
}
