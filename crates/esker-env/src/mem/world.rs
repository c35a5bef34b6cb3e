//! The state of the simulated file system: names, files, what is open, and the limits.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::folders::{FolderRenames, move_folders};
use super::inode::Inode;
use super::names::{FileId, Names};

/// The state of a file system.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, Inode>,
    pub(super) folders: BTreeSet<PathBuf>,
    pub(super) folder_renames: FolderRenames,
    pub(super) locked: BTreeSet<PathBuf>,
    pub(super) next_file: FileId,
    /// Open handles a file, so that a file without a name lives as long as it is open.
    pub(super) open: BTreeMap<FileId, usize>,
    pub(super) operations: u64,
    pub(super) stop_at: Option<u64>,
    pub(super) capacity_bytes: Option<u64>,
    /// Bytes charged for files that have a name.
    pub(super) used_bytes: u64,
}

impl World {
    /// Counts a mutating call, or refuses it when the machine has stopped.
    pub(super) fn operate(&mut self) -> io::Result<()> {
        if self.stop_at.is_some_and(|stop| self.operations >= stop) {
            return Err(io::Error::other("the simulated machine has stopped"));
        }
        self.operations += 1;
        Ok(())
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<FileId> {
        self.names.get(path).ok_or_else(|| Errno::NOENT.into())
    }

    pub(super) fn inode(&self, file: FileId) -> io::Result<&Inode> {
        self.files.get(&file).ok_or_else(|| Errno::STALE.into())
    }

    /// Changes a file if what it takes afterwards fits on the device; `takes` is a bound on that, in bytes.
    pub(super) fn change(
        &mut self,
        file: FileId,
        takes: usize,
        change: impl FnOnce(&mut Inode),
    ) -> io::Result<()> {
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

    pub(super) fn folder_of(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if self.folder_exists(parent) => Ok(()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn folder_exists(&self, dir: &Path) -> bool {
        dir.as_os_str().is_empty() || dir == Path::new("/") || self.folders.contains(dir)
    }

    pub(super) fn named(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            if inode.names == 0 {
                self.used_bytes += inode.charged() as u64;
            }
            inode.names += 1;
        }
    }

    /// The counterpart of `named`; call it once the name is gone.
    pub(super) fn unnamed(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            inode.names -= 1;
            if inode.names == 0 {
                self.used_bytes -= inode.charged() as u64;
            }
        }
    }

    /// Forgets the files that neither a name, a crash nor a handle can bring back.
    pub(super) fn forget_unreachable(&mut self) {
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
        folder_renames: FolderRenames,
        next_file: FileId,
    ) -> Self {
        let mut world = World {
            names,
            files,
            folders,
            folder_renames,
            next_file,
            ..World::default()
        };
        for inode in world.files.values_mut() {
            inode.names = 0;
        }
        // A file whose removal was lost keeps its folder.
        for path in world.names.current().keys() {
            let above = path
                .ancestors()
                .skip(1)
                .filter(|folder| !folder.as_os_str().is_empty());
            world.folders.extend(above.map(Path::to_owned));
        }
        let ids: Vec<FileId> = world.names.current().values().copied().collect();
        for file in ids {
            world.named(file);
        }
        world.forget_unreachable();
        world
    }

    pub(super) fn rename_folder(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.folder_of(to)?;
        if self.names.get(to).is_some() || self.folder_exists(to) {
            return Err(Errno::EXIST.into());
        }
        if to.starts_with(from) {
            return Err(Errno::INVAL.into());
        }
        self.operate()?;
        self.names.move_folder(from, to);
        move_folders(&mut self.folders, from, to);
        self.folder_renames.push(from, to);
        Ok(())
    }

    pub(super) fn remove_folder(&mut self, dir: &Path) -> io::Result<()> {
        if !self.folders.contains(dir) {
            return Err(Errno::NOENT.into());
        }
        let mut paths = self.names.current().keys().chain(&self.folders);
        if paths.any(|path| path.parent() == Some(dir)) {
            return Err(Errno::NOTEMPTY.into());
        }
        self.operate()?;
        self.folders.remove(dir);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if self.folders.contains(from) {
            return self.rename_folder(from, to);
        }
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
        Ok(())
    }
}
