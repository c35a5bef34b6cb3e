//! The folder of a database: whether it may become one, its lock, and what in it is dead.

use std::io;
use std::path::Path;

use esker_env::{Env, FileLock};

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::version::{FileKind, VersionState};
use crate::wal::WalSegments;

/// Makes the folder if that is wanted, and takes its lock.
pub(super) fn prepare(env: &Env, dir: &Path, options: &Options) -> Result<Option<Box<dyn FileLock>>> {
    let io = |what: &str, error: io::Error| Error::io(what, error).in_file(dir);
    let exists = env
        .fs
        .exists(dir)
        .map_err(|error| io("can't look at the folder", error))?;
    if !exists {
        if !options.create_if_missing || options.read_only {
            return Err(Error::new(ErrorKind::NotFound, "there is no database").in_file(dir));
        }
        env.fs
            .create_dir_all(dir)
            .map_err(|error| io("can't create the folder", error))?;
    }
    if options.read_only {
        return Ok(None);
    }
    if !env
        .fs
        .exists(&FileKind::Current.path(dir))
        .map_err(|error| io("can't look at the folder", error))?
    {
        // Before the lock file is made: a folder of somebody else's stays as it is.
        check_is_free(env, dir)?;
        if !options.create_if_missing {
            return Err(Error::new(ErrorKind::NotFound, "there is no database in this folder").in_file(dir));
        }
    }
    let path = FileKind::Lock.path(dir);
    match env.fs.lock(&path) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::new(
            ErrorKind::Locked,
            "the database is open already, in this process or in another one",
        )
        .in_file(&path)),
        Err(error) => Err(Error::io("can't lock the database", error).in_file(&path)),
    }
}

/// Refuses to make a database among files that are not its own.
fn check_is_free(env: &Env, dir: &Path) -> Result<()> {
    let names = env
        .fs
        .list(dir)
        .map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
    for name in names {
        match FileKind::parse(&name) {
            Some(FileKind::Table(_) | FileKind::Blob(_)) => {
                return Err(
                    Error::corruption(format!("the folder holds {name}, but no CURRENT file")).in_file(dir),
                );
            }
            // What an interrupted creation leaves.
            Some(_) => {}
            None => {
                return Err(Error::invalid(format!(
                    "the folder is no database, and not empty: it holds '{name}'"
                ))
                .in_file(dir));
            }
        }
    }
    Ok(())
}

/// The highest number in any file name, so that none is used twice.
pub(super) fn highest_number(env: &Env, dir: &Path) -> Result<u64> {
    let names = env
        .fs
        .list(dir)
        .map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
    Ok(names
        .iter()
        .filter_map(|name| FileKind::parse(name)?.number())
        .max()
        .unwrap_or(0))
}

/// Removes what the manifest, which is durable by now, proves dead; WAL segments are kept to be used again.
pub(super) fn remove_dead_files(
    env: &Env,
    dir: &Path,
    state: &VersionState,
    manifest_number: u64,
    segments: &WalSegments,
    wal_number: u64,
) -> Result<()> {
    let names = env
        .fs
        .list(dir)
        .map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
    for name in names {
        let Some(kind) = FileKind::parse(&name) else {
            continue;
        };
        if matches!(kind, FileKind::Wal(_)) || !state.is_obsolete(kind, manifest_number) {
            continue;
        }
        let path = kind.path(dir);
        if let Err(error) = env.fs.remove(&path) {
            tracing::warn!(%error, path = %path.display(), "can't remove a dead file");
        }
    }
    segments.scan()?;
    segments.retire_below(wal_number)?;
    Ok(())
}
