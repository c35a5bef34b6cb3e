//! The folder of a database: whether it may become one, its lock, and what in it is dead.

use std::io;
use std::path::Path;

use esker_env::{Env, FileLock, IoMode};

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::version::{FileKind, VersionState};
use crate::wal::{FRAGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, WalSegments};

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
    lock(env, dir).map(Some)
}

/// Takes the lock of the folder.
///
/// # Errors
/// `Locked` if somebody has it; `Io`.
pub(super) fn lock(env: &Env, dir: &Path) -> Result<Box<dyn FileLock>> {
    let path = FileKind::Lock.path(dir);
    match env.fs.lock(&path) {
        Ok(lock) => Ok(lock),
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
            Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::DamagedWal(_)) => {
                return Err(without_current(dir, &name));
            }
            // A creation makes a segment before it makes CURRENT, but writes to it only afterwards.
            Some(kind @ FileKind::Wal(_)) if holds_records(env, &kind.path(dir))? => {
                return Err(without_current(dir, &name));
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

fn without_current(dir: &Path, name: &str) -> Error {
    Error::corruption(format!(
        "the folder holds a database's data ({name}), but no CURRENT: restore it, or repair the database"
    ))
    .in_file(dir)
}

/// Whether anything stands behind the header of a WAL segment.
fn holds_records(env: &Env, path: &Path) -> Result<bool> {
    let io = |error| Error::io("can't read a WAL segment", error).in_file(path);
    let file = env.fs.open(path, IoMode::Buffered).map_err(io)?;
    let mut first = [0; FRAGMENT_HEADER_BYTES];
    file.read_at(SEGMENT_HEADER_BYTES as u64, &mut first)
        .map_err(io)?;
    Ok(first.iter().any(|&byte| byte != 0))
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
    segments.clear_away(segments.retire_below(wal_number))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Db, Opener};

    #[test]
    fn a_database_that_lost_its_current_is_not_replaced_by_a_new_one() {
        let (env, _) = Env::simulated(1);
        let dir = Path::new("/db");
        let open = || Opener::new(Options::default()).env(env.clone()).open(dir);
        let close = |db: Db| db.close().unwrap();
        close(open().unwrap());
        env.fs.remove(&FileKind::Current.path(dir)).unwrap();
        // Nothing was written to it: that is how a creation that was cut short looks.
        let db = open().unwrap();
        db.put(b"key", b"value").unwrap();
        close(db);
        env.fs.remove(&FileKind::Current.path(dir)).unwrap();
        let error = open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.message().contains(".wal"), "{error}");
    }
}
