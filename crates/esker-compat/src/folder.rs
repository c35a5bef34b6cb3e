//! A database's folder, not opened: a database of somebody else's is recognised, families are listed, all is removed.

use std::io;
use std::path::Path;

use esker::inspect::{FileEntry, Inspector};
use esker::{Error, ErrorKind};
use esker_env::Env;

use crate::status::{Result, Status};

/// The file that makes a folder a database, in the originals and here; what is in it differs.
const CURRENT: &str = "CURRENT";

/// The file that whoever has a database open holds.
const LOCK: &str = "LOCK";

/// The folder in a database's to which a repair moves what it can't use.
const LOST: &str = "lost";

/// Refuses a folder that holds a database of LevelDB or RocksDB, and leaves it untouched.
pub fn check_not_foreign(dir: &Path) -> Result<()> {
    let foreign = match std::fs::read(dir.join(CURRENT)) {
        Ok(text) => is_foreign_current(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            files(dir)?.iter().any(|file| is_foreign_name(&name(file)))
        }
        // The engine says better what is wrong.
        Err(_) => false,
    };
    if foreign {
        return Err(Status::invalid(format_args!(
            "{}: the folder holds files of LevelDB or RocksDB; this library stands in for them over Esker, whose \
             files are its own: copy the rows with a program that opens both",
            dir.display()
        )));
    }
    Ok(())
}

/// The originals' `CURRENT` names the manifest and nothing more; Esker's has a checksum behind the name.
fn is_foreign_current(text: &[u8]) -> bool {
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    text.strip_prefix(b"MANIFEST-")
        .and_then(|rest| rest.strip_suffix(b"\n"))
        .is_some_and(number)
}

/// Files that the originals make and Esker does not.
fn is_foreign_name(name: &str) -> bool {
    let numbered = |suffix: &str| {
        name.strip_suffix(suffix)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name == "IDENTITY" || name.starts_with("OPTIONS-") || numbered(".ldb") || numbered(".log")
}

/// The files of a folder; none if it is not there.
fn files(dir: &Path) -> Result<Vec<FileEntry>> {
    match Inspector::new(dir).files() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

fn name(file: &FileEntry) -> String {
    file.path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Whether a folder holds a database, whosever it is.
pub fn is_database(dir: &Path) -> bool {
    dir.join(CURRENT).exists()
}

/// The column families of the database in `dir`, by its manifest; takes no lock.
pub fn families(dir: &Path) -> Result<Vec<String>> {
    check_not_foreign(dir)?;
    let described = Inspector::new(dir).describe()?;
    Ok(described.families.into_iter().map(|family| family.name).collect())
}

/// Removes the database in `dir` and, if nothing else is in it, the folder; see [`remove`]. A database of LevelDB or RocksDB is
/// refused.
pub fn destroy(dir: &Path) -> Result<()> {
    check_not_foreign(dir)?;
    Ok(remove(&Env::posix(), dir)?)
}

/// Removes the database in `dir`, what a repair has set aside of it and, if nothing else is in it, the folder. What is no file of a
/// database stays.
/// Where there is no database there is nothing to do.
///
/// # Errors
/// `Locked` if it is open; those of the files.
pub fn remove(env: &Env, dir: &Path) -> esker::Result<()> {
    let mut own = match Inspector::with_env(dir, env).files() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    own.retain(is_own);
    if own.is_empty() {
        return Ok(());
    }
    let failed = |path: &Path, error| Error::io("can't remove a database", error).in_file(path);
    let lock = dir.join(LOCK);
    let held = match env.fs.lock(&lock) {
        Ok(held) => held,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let message = format!("{}: already held by a process", lock.display());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        Err(error) => return Err(failed(&lock, error)),
    };
    // CURRENT first: what an interrupted removal leaves is no database any more. The lock last, while it is held: who
    // opens a database here from then on locks a file of its own.
    own.retain(|file| name(file) != LOCK);
    own.sort_by_key(|file| name(file) != CURRENT);
    for path in own.iter().map(|file| &file.path).chain([&lock]) {
        env.fs.remove(path).map_err(|error| failed(path, error))?;
    }
    drop(held);
    let lost = dir.join(LOST);
    for name in env.fs.list(&lost).unwrap_or_default() {
        if is_set_aside(&name) {
            let path = lost.join(name);
            env.fs.remove(&path).map_err(|error| failed(&path, error))?;
        }
    }
    let _ = env.fs.remove_dir(&lost);
    // With files of somebody else's in it the folder stays.
    let _ = env.fs.remove_dir(dir);
    Ok(())
}

/// Files of a database, and WAL segments that a recovery put aside.
fn is_own(file: &FileEntry) -> bool {
    file.role.is_some() || name(file).ends_with(".wal.damaged")
}

/// The name of a file of a database, or the same with a number behind it, where a repair has set several of that name aside.
fn is_set_aside(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let first = match name.rsplit_once('.') {
        Some((first, times)) if is_number(times) => first,
        _ => name,
    };
    first == CURRENT
        || first.strip_prefix("MANIFEST-").is_some_and(is_number)
        || [".sst", ".blob", ".wal", ".wal.damaged"]
            .into_iter()
            .any(|suffix| first.strip_suffix(suffix).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::{ColumnFamilyOptions, Db, Options};

    #[test]
    fn a_database_of_others_is_refused_and_left_alone() {
        for (name, text) in [
            ("CURRENT", "MANIFEST-000004\n"),
            ("000003.log", ""),
            ("OPTIONS-000007", ""),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), text).unwrap();
            std::fs::write(dir.path().join("000005.sst"), "rows").unwrap();
            for result in [
                check_not_foreign(dir.path()),
                destroy(dir.path()),
                families(dir.path()).map(drop),
            ] {
                let status = result.unwrap_err().to_string();
                assert!(status.starts_with("Invalid argument: "), "{status}");
                assert!(status.contains("RocksDB"), "{status}");
            }
            assert!(dir.path().join("000005.sst").exists(), "{name}");
        }
    }

    #[test]
    fn a_database_is_listed_and_destroyed_when_nobody_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = Db::open(&path, Options::default()).unwrap();
        db.create_column_family("more", ColumnFamilyOptions::default())
            .unwrap();
        assert_eq!(families(&path).unwrap(), ["default", "more"]);
        let status = destroy(&path).unwrap_err().to_string();
        assert!(status.starts_with("IO error: lock "), "{status}");
        db.close().unwrap();
        destroy(&path).unwrap();
        assert!(!path.exists());
        destroy(&path).unwrap();
    }

    /// The folder stayed, and no database could be made in it.
    #[test]
    fn a_repaired_database_is_destroyed_with_what_was_set_aside() {
        let around = tempfile::tempdir().unwrap();
        let dir = around.path().join("db");
        let own = dir.join(LOST).join("thesis.txt");
        for keeps_own in [false, true] {
            let db = Db::open(&dir, Options::default()).unwrap();
            db.put(b"key", b"value").unwrap();
            db.close().unwrap();
            for _ in 0..2 {
                std::fs::remove_file(dir.join(CURRENT)).unwrap();
                esker::repair(&dir, &esker::RepairOptions::default()).unwrap();
            }
            assert!(std::fs::read_dir(dir.join(LOST)).unwrap().count() > 1);
            if keeps_own {
                std::fs::write(&own, "important").unwrap();
            }
            destroy(&dir).unwrap();
            assert_eq!(dir.exists(), keeps_own);
        }
        assert_eq!(std::fs::read_dir(dir.join(LOST)).unwrap().count(), 1);
        assert!(own.exists());
    }

    #[test]
    fn files_of_the_users_own_stay() {
        let dir = tempfile::tempdir().unwrap();
        drop(Db::open(dir.path(), Options::default()).unwrap());
        std::fs::write(dir.path().join("notes"), "mine").unwrap();
        destroy(dir.path()).unwrap();
        let left: Vec<_> = files(dir.path()).unwrap().iter().map(name).collect();
        assert_eq!(left, ["notes"]);
    }
}
