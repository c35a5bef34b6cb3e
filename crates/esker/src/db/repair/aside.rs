//! The folder `lost`, to which files go that are no part of the repaired database. None is ever removed.
//!
//! A file gets its second name there, durably, before the new manifest counts, and loses its first name after: whenever a
//! crash comes, there is at least one. Where there can't be second names, and of WAL segments, whose files are
//! written again for others, the folder gets a copy.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use esker_env::Env;

use crate::db::new_folder::{copy, is_refusal};
use crate::error::{Error, ErrorKind, Result};
use crate::version::FileKind;

/// The name of the folder.
pub(super) const LOST: &str = "lost";

/// Gives the files names in the folder.
pub(super) fn keep(env: &Env, dir: &Path, files: &BTreeSet<FileKind>) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let lost = dir.join(LOST);
    let failed = |error: io::Error| Error::io("can't set a file aside", error);
    env.fs
        .create_dir_all(&lost)
        .map_err(|error| failed(error).in_file(&lost))?;
    for &file in files {
        let path = file.path(dir);
        let place = |error: Error| error.in_file(&path);
        if !env.fs.exists(&path).map_err(|error| place(failed(error)))? {
            continue;
        }
        let bytes = env.fs.file_len(&path).map_err(|error| place(failed(error)))?;
        let is_unique = file.number().is_some() && !matches!(file, FileKind::Wal(_));
        let mut name = lost.join(file.name());
        let exists = |name: &Path| env.fs.exists(name).map_err(|error| place(failed(error)));
        if is_unique {
            // A repair that was cut short has put it there.
            if exists(&name)? && env.fs.file_len(&name).map_err(|error| place(failed(error)))? == bytes {
                continue;
            }
        }
        let mut times = 0_u32;
        while exists(&name)? {
            times += 1;
            name = lost.join(format!("{}.{times}", file.name()));
        }
        if matches!(file, FileKind::Wal(_)) {
            match copy_whole(env, &path, &name, bytes) {
                // It can't be read: what there is of it gets a second name after all.
                Err(error) if error.kind() == ErrorKind::Io => {}
                copied => {
                    copied?;
                    continue;
                }
            }
        }
        match env.fs.hard_link(&path, &name) {
            Ok(()) => env.fs.sync_file(&name).map_err(|error| place(failed(error)))?,
            Err(error) if is_refusal(&error) => copy_whole(env, &path, &name, bytes)?,
            Err(error) => return Err(place(failed(error))),
        }
    }
    env.fs
        .sync_dir(&lost)
        .and_then(|()| env.fs.sync_dir(dir))
        .map_err(|error| failed(error).in_file(&lost))
}

/// A copy that is there as a whole or not at all, so that no part of one is taken for it.
fn copy_whole(env: &Env, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    copy(env, from, &part, bytes)?;
    env.fs
        .rename(&part, to)
        .map_err(|error| Error::io("can't set a file aside", error).in_file(from))
}

/// Takes the first names of the files away.
pub(super) fn let_go(env: &Env, dir: &Path, files: &BTreeSet<FileKind>) -> Result<()> {
    for file in files.iter().filter(|&&file| file != FileKind::Current) {
        let path = file.path(dir);
        match env.fs.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("can't set a file aside", error).in_file(&path));
            }
            _ => {}
        }
    }
    let synced = env.fs.sync_dir(dir);
    synced.map_err(|error| Error::io("can't sync the folder", error).in_file(dir))
}
