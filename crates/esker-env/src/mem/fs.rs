//! A file system in memory, under a lock.
//!
//! A name is durable only after `sync_dir`, a file's bytes only after `sync`; folders are durable at once. What an
//! open file refers to is its file, not its name, as on POSIX: it survives a rename and a removal.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::crash::CrashMode;
use super::files::{Handle, MemLock, MemRandomFile, MemWriteFile};
use super::inode::Inode;
use super::names::FileId;
use super::world::World;
use crate::{CreateOptions, FileLock, Fs, IoMode, RandomFile, WriteFile};

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

    pub(super) fn lock_world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    fn handle(&self, world: &mut World, file: FileId) -> Handle {
        Handle::new(self.clone(), world, file)
    }

    fn writer(
        &self,
        world: &mut World,
        file: FileId,
        options: CreateOptions,
    ) -> io::Result<Box<dyn WriteFile>> {
        let reserve = usize::try_from(options.preallocate_bytes).map_err(io::Error::other)?;
        world.change(file, reserve, |inode| inode.reserved = reserve)?;
        let handle = self.handle(world, file);
        Ok(Box::new(MemWriteFile::new(handle, options)))
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
        self.writer(&mut world, file, options)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lock_world().rename(&tidy(from), &tidy(to))
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

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.lock_world().remove_folder(&tidy(dir))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        let file = world.file(&tidy(path))?;
        world.operate()?;
        world.change(file, 0, Inode::sync)
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
        world.folder_renames.sync_dir(&dir);
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
