//! A folder that is built beside its place and moved there when it is whole and durable.
//!
//! It is built under its name with `.unfinished` behind it, whose lock keeps two builders apart. What a crash leaves
//! there is removed by whoever builds the same folder next; under the name itself there is all of it or nothing.

use std::io;
use std::path::{Path, PathBuf};

use esker_env::{CreateOptions, Env, FileLock, IoMode};

use crate::error::{Error, ErrorKind, Result};
use crate::version::{FAMILY_FILE, FileKind};

/// Bytes that a copy reads at once.
const COPY_BYTES: usize = 1 << 20;

/// A folder in the making. Dropped before [`finish`](Self::finish), it is removed.
#[derive(Debug)]
pub(super) struct NewFolder<'a> {
    env: &'a Env,
    target: PathBuf,
    building: PathBuf,
    /// Held until the folder is in its place; the file of the lock goes there with it.
    _lock: Box<dyn FileLock>,
    /// Whether the file system of the folder can't have links of the files that come.
    links_refused: bool,
    /// Files that were linked.
    pub linked_files: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    finished: bool,
}

impl<'a> NewFolder<'a> {
    /// Begins a folder that will be `target`.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` is there already, if the folder around it is not, or if something stands in the
    /// place where it would be built; `Locked` if somebody else builds it.
    pub fn begin(env: &'a Env, target: &Path) -> Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(Error::invalid("the path of a new folder has to end in a name").in_file(target));
        };
        check_is_free(env, target)?;
        let around = folder_around(target);
        if !exists(env, around)? {
            return Err(
                Error::invalid("the folder in which the new one would be does not exist").in_file(around),
            );
        }
        let mut unfinished = name.to_owned();
        unfinished.push(".unfinished");
        let building = target.with_file_name(unfinished);
        env.fs
            .create_dir_all(&building)
            .map_err(|error| Error::io("can't create a folder", error).in_file(&building))?;
        let path = FileKind::Lock.path(&building);
        let lock = env.fs.lock(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                Error::new(ErrorKind::Locked, "somebody else is building this folder").in_file(&path)
            }
            _ => Error::io("can't lock a folder", error).in_file(&path),
        })?;
        remove_leftovers(env, &building)?;
        Ok(Self {
            env,
            target: target.to_owned(),
            building,
            _lock: lock,
            links_refused: false,
            linked_files: 0,
            copied_bytes: 0,
            finished: false,
        })
    }

    /// Where files are to be put.
    pub fn dir(&self) -> &Path {
        &self.building
    }

    /// Gives an immutable, durable file a second name in the folder; where there can't be one, copies it.
    pub fn link(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.building.join(name);
        if !self.links_refused {
            match self.env.fs.hard_link(from, &to) {
                Ok(()) => {
                    self.linked_files += 1;
                    return Ok(());
                }
                Err(error) if is_refusal(&error) => self.links_refused = true,
                Err(error) => return Err(Error::io("can't link a file", error).in_file(from)),
            }
        }
        let bytes = self
            .env
            .fs
            .file_len(from)
            .map_err(|error| Error::io("can't look at a file", error).in_file(from))?;
        self.copy(from, name, bytes)
    }

    /// Writes a file of these bytes, durably.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.building.join(name);
        let io = |error| Error::io("can't write a file", error).in_file(&path);
        let mut file = self.env.fs.create(&path, CreateOptions::default()).map_err(io)?;
        file.append(bytes).and_then(|()| file.finish(true)).map_err(io)
    }

    /// Copies the first `bytes` of a file, durably.
    pub fn copy(&mut self, from: &Path, name: &str, bytes: u64) -> Result<()> {
        copy(self.env, from, &self.building.join(name), bytes)?;
        self.copied_bytes += bytes;
        Ok(())
    }

    /// Makes the folder durable and moves it to its place.
    pub fn finish(mut self) -> Result<()> {
        let fs = &self.env.fs;
        let io = |error| Error::io("can't put a new folder into its place", error).in_file(&self.target);
        fs.sync_dir(&self.building).map_err(io)?;
        check_is_free(self.env, &self.target)?;
        fs.rename(&self.building, &self.target).map_err(io)?;
        let synced = fs.sync_dir(folder_around(&self.target)).map_err(io);
        self.finished = true;
        synced
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let removed = remove_leftovers(self.env, &self.building).and_then(|()| {
            let io = |error| Error::io("can't remove a folder", error).in_file(&self.building);
            self.env
                .fs
                .remove(&FileKind::Lock.path(&self.building))
                .map_err(io)?;
            self.env.fs.remove_dir(&self.building).map_err(io)
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "an unfinished folder stays");
        }
    }
}

/// Copies the first `bytes` of a file and syncs the copy. The name is durable when its folder is synced.
pub(super) fn copy(env: &Env, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let failed = |path: &Path, error| Error::io("can't copy a file", error).in_file(path);
    let source = env
        .fs
        .open(from, IoMode::Buffered)
        .map_err(|error| failed(from, error))?;
    let mut target = env
        .fs
        .create(to, CreateOptions::default())
        .map_err(|error| failed(to, error))?;
    let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(bytes).unwrap_or(COPY_BYTES))];
    let mut offset = 0;
    while offset < bytes {
        let take = buffer
            .len()
            .min(usize::try_from(bytes - offset).unwrap_or(buffer.len()));
        let part = &mut buffer[..take];
        source
            .read_exact_at(offset, part)
            .map_err(|error| failed(from, error))?;
        target.append(part).map_err(|error| failed(to, error))?;
        offset += take as u64;
    }
    target.finish(true).map_err(|error| failed(to, error))
}

/// Whether the error says that there can be no link, whatever the file.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::Unsupported
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TooManyLinks
    )
}

/// The folder in which `path` is.
pub(super) fn folder_around(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn exists(env: &Env, path: &Path) -> Result<bool> {
    let found = env.fs.exists(path);
    found.map_err(|error| Error::io("can't look at a folder", error).in_file(path))
}

fn check_is_free(env: &Env, target: &Path) -> Result<()> {
    if exists(env, target)? {
        return Err(Error::invalid("the folder exists already").in_file(target));
    }
    Ok(())
}

/// Removes everything but the lock, which this builder holds.
fn remove_leftovers(env: &Env, dir: &Path) -> Result<()> {
    let names = env.fs.list(dir);
    let names = names.map_err(|error| Error::io("can't list a folder", error).in_file(dir))?;
    let is_foreign = |name: &&String| FileKind::parse(name).is_none() && *name != FAMILY_FILE;
    if let Some(name) = names.iter().find(is_foreign) {
        return Err(Error::invalid(format!(
            "the folder would be built here, but it holds '{name}', which is none of the engine's files"
        ))
        .in_file(dir));
    }
    for name in names.iter().filter(|name| *name != crate::version::LOCK) {
        let path = dir.join(name);
        env.fs
            .remove(&path)
            .map_err(|error| Error::io("can't remove a file", error).in_file(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(env: &Env, path: &str, bytes: &[u8]) {
        let mut file = env.fs.create(Path::new(path), CreateOptions::default()).unwrap();
        file.append(bytes).unwrap();
        file.finish(true).unwrap();
    }

    fn machine() -> Env {
        let (env, _) = Env::simulated(1);
        env.fs.create_dir_all(Path::new("/around")).unwrap();
        put(&env, "/around/source", b"bytes of a table");
        env
    }

    #[test]
    fn a_folder_comes_whole_or_not_at_all() {
        let env = machine();
        let target = Path::new("/around/new");
        let mut folder = NewFolder::begin(&env, target).unwrap();
        folder.link(Path::new("/around/source"), "000001.sst").unwrap();
        drop(folder);
        assert_eq!(env.fs.list(Path::new("/around")).unwrap(), ["source"]);
        let mut folder = NewFolder::begin(&env, target).unwrap();
        folder.link(Path::new("/around/source"), "000001.sst").unwrap();
        folder.copy(Path::new("/around/source"), "000002.wal", 5).unwrap();
        assert_eq!((folder.linked_files, folder.copied_bytes), (1, 5));
        folder.finish().unwrap();
        assert_eq!(env.fs.read_all(&target.join("000002.wal")).unwrap(), b"bytes");
        assert!(!env.fs.exists(Path::new("/around/new.unfinished")).unwrap());
        let error = NewFolder::begin(&env, target).unwrap_err();
        assert!(error.message().contains("exists already"), "{error}");
    }

    #[test]
    fn what_is_not_the_engines_is_left_alone() {
        let env = machine();
        let target = Path::new("/around/new");
        env.fs
            .create_dir_all(Path::new("/around/new.unfinished"))
            .unwrap();
        put(&env, "/around/new.unfinished/000007.sst", b"left by a crash");
        drop(NewFolder::begin(&env, target).unwrap());
        env.fs
            .create_dir_all(Path::new("/around/new.unfinished"))
            .unwrap();
        put(&env, "/around/new.unfinished/thesis.txt", b"years of work");
        let error = NewFolder::begin(&env, target).unwrap_err();
        assert!(error.message().contains("thesis.txt"), "{error}");
        let missing = NewFolder::begin(&env, Path::new("/nowhere/new")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn two_can_not_build_one_folder() {
        let env = machine();
        let target = Path::new("/around/new");
        let first = NewFolder::begin(&env, target).unwrap();
        assert_eq!(
            NewFolder::begin(&env, target).unwrap_err().kind(),
            ErrorKind::Locked
        );
        first.finish().unwrap();
    }
}
