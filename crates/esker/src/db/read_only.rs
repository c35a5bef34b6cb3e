//! Opening without a lock, beside a process that writes.
//!
//! The files change under such an opening: between the look at the manifest and the look at the log a flush can
//! move rows from the one to the other, and a compaction removes tables and blob files that are to be opened. So an
//! opening counts only if
//! 1. the manifest of after it still needs the same segments: then none that was to be replayed was gone, and what
//!    was replayed lies on top of exactly the tables that the first look found. If it has changed otherwise, no more is shown
//!    than had been published when it changed first: a family that was created then, or an ingestion, belongs before what was
//!    logged behind it (`follow.rs` says more);
//! 2. the tables are open, and the blob files that they point into: a removed file can be read for as long as it is. Up to
//!    [`PINNED_FILES_MAX`] are opened ahead; those of larger databases are opened when they are read, and a read then
//!    fails with `NotFound` if the other process has removed its file meanwhile.

use std::path::Path;
use std::sync::Arc;

use esker_env::Env;

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::version::manifest::Next;

/// How often it is tried. Each failure takes a flush or a compaction that ends within a few milliseconds.
const ATTEMPTS: usize = 10;

/// Tables and blob files that are opened at once, well below the usual limit of 1,024 files for a process.
const PINNED_FILES_MAX: usize = 256;

/// Calls `open` until what it gives belongs together.
pub(super) fn open_settled(env: &Env, dir: &Path, open: impl Fn() -> Result<Arc<Core>>) -> Result<Arc<Core>> {
    let mut last: Option<Error> = None;
    for _ in 0..ATTEMPTS {
        let error = match open().and_then(|core| settled(env, dir, &core).map(|()| core)) {
            Ok(core) => return Ok(core),
            Err(error) => error,
        };
        // What comes twice in the same words is no race.
        let is_race = matches!(
            error.kind(),
            ErrorKind::Retry | ErrorKind::NotFound | ErrorKind::Corruption
        );
        let is_repeated = error.kind() != ErrorKind::Retry
            && last
                .as_ref()
                .is_some_and(|last| last.to_string() == error.to_string());
        if !is_race || is_repeated {
            return Err(error);
        }
        last = Some(error);
    }
    Err(last.unwrap_or_else(|| Error::bug("opened read-only without an attempt")))
}

fn settled(env: &Env, dir: &Path, core: &Core) -> Result<()> {
    open_files(core)?;
    let manifest = core.manifest.lock();
    let Some(place) = &manifest.place else {
        return Err(Error::bug("opened read-only without a manifest"));
    };
    match place.next(&*env.fs, dir)? {
        None => Ok(()),
        Some(Next::Groups(next, changes))
            if next.state().log_number_min() == place.state().log_number_min() =>
        {
            let sequence = core.visible();
            let published = changes.first_sequence.unwrap_or(sequence);
            core.published.advance(sequence.min(published));
            Ok(())
        }
        Some(_) => Err(Error::new(
            ErrorKind::Retry,
            "the process that has the database open flushes faster than it can be opened read-only",
        )),
    }
}

/// Opens files of each family, as many as are pinned: its tables, then its blob files.
fn open_files(core: &Core) -> Result<()> {
    let mut left = PINNED_FILES_MAX.min(core.options.open_files_max);
    for family in core.families.load().by_id.values() {
        let version = &family.view().version;
        let tables = version
            .files()
            .map(|(_, file)| core.tables.get(file, &family.order).map(drop));
        let blobs = version
            .blobs()
            .iter()
            .map(|blob| core.tables.blob(&blob.file).map(drop));
        for opened in tables.chain(blobs).take(left) {
            match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
                // Damage is found when the file is read.
                _ => left -= 1,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::options::{ColumnFamilyOptions, Options};
    use std::sync::atomic::{AtomicBool, Ordering};

    use parking_lot::Mutex;

    fn options(read_only: bool) -> Options {
        Options {
            read_only,
            memory_budget_bytes: 4 << 20,
            wal_segment_bytes: 64 << 10,
            default_column_family: ColumnFamilyOptions {
                memtable_bytes: 16 << 10,
                file_bytes: 16 << 10,
                level_base_bytes: 64 << 10,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        }
    }

    /// What `Db::open` would hold, without the handle that closes it.
    fn opened(dir: &Path) -> Result<Arc<Core>> {
        let db = Db::open(dir, options(true))?;
        let core = Arc::clone(db.core());
        std::mem::forget(db);
        Ok(core)
    }

    #[test]
    fn an_opening_is_repeated_if_a_flush_came_between() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), options(false)).unwrap();
        db.put(b"a", b"old").unwrap();
        let calls = std::cell::Cell::new(0);
        let core = open_settled(&Env::posix(), dir.path(), || {
            calls.set(calls.get() + 1);
            let core = opened(dir.path())?;
            if calls.get() < 3 {
                db.put(b"a", b"new")?;
                db.flush()?;
                // Else what the flush removes behind its result comes between the next opening's calls.
                db.wait_idle()?;
            }
            Ok(core)
        });
        assert_eq!(calls.get(), 3);
        let view = core.unwrap().families.load().default.view_owned();
        assert_eq!(view.version.file_count(), 2, "what the last opening found");
    }

    /// A database of one row, whose value lies in a blob file.
    fn with_blob_file(dir: &Path) -> (Db, Vec<u8>) {
        let db = Db::open(dir, options(false)).unwrap();
        let value = vec![7; 1000];
        db.put(b"a", &value).unwrap();
        db.flush().unwrap();
        assert_eq!(db.stats().blob_files, 1);
        (db, value)
    }

    /// The blob files in `dir`.
    fn blob_files(dir: &Path) -> Vec<std::path::PathBuf> {
        let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "blob"))
            .collect()
    }

    /// Only tables were opened ahead.
    #[test]
    fn values_in_blob_files_can_be_read_after_the_writer_has_removed_them() {
        let dir = tempfile::tempdir().unwrap();
        let (db, value) = with_blob_file(dir.path());
        let reader = Db::open(dir.path(), options(true)).unwrap();
        let before = blob_files(dir.path());
        db.put(b"a", b"small").unwrap();
        db.compact_range(None, None).unwrap();
        // A thread that looked for work may have held the old file for a moment.
        db.wait_idle().unwrap();
        assert_eq!((before.len(), blob_files(dir.path()).len()), (1, 0));
        assert_eq!(reader.get(b"a").unwrap().unwrap(), value);
    }

    #[test]
    fn an_opening_is_repeated_if_a_blob_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (_db, _) = with_blob_file(dir.path());
        let path = blob_files(dir.path()).remove(0);
        let aside = dir.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        let calls = std::cell::Cell::new(0);
        let opened = open_settled(&Env::posix(), dir.path(), || {
            calls.set(calls.get() + 1);
            if calls.get() == 2 {
                std::fs::rename(&aside, &path).unwrap();
            }
            opened(dir.path())
        });
        assert!(opened.is_ok());
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn an_error_that_comes_twice_is_no_race() {
        let calls = std::cell::Cell::new(0);
        let damage = open_settled(&Env::posix(), Path::new("x"), || {
            calls.set(calls.get() + 1);
            Err(Error::corruption("the same each time"))
        });
        assert_eq!(
            (damage.err().unwrap().kind(), calls.get()),
            (ErrorKind::Corruption, 2)
        );
    }

    /// Ends the writer also when the reader's assertions fail.
    struct StopAtEnd<'a>(&'a AtomicBool);

    impl Drop for StopAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// The writer counts up in each of the keys in turn, so the values of any moment differ by one at most.
    #[test]
    fn what_is_opened_beside_a_writer_is_one_moment_of_the_database() {
        const KEYS: u64 = 50;
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), options(false)).unwrap();
        let filler = [7; 100];
        let put = |round: u64, key: u64| {
            let value = [&round.to_le_bytes()[..], &filler].concat();
            db.put(&key.to_be_bytes(), &value).unwrap();
        };
        (0..KEYS).for_each(|key| put(0, key));
        let (stop, may_write) = (AtomicBool::new(false), Mutex::new(()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1.. {
                    let _may_write = may_write.lock();
                    for key in 0..KEYS {
                        put(round, key);
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let _stop_at_end = StopAtEnd(&stop);
            for _ in 0..40 {
                let reader = match Db::open(dir.path(), options(true)) {
                    Ok(reader) => reader,
                    // A writer that does nothing but flush can win for long: then it stands still for once.
                    Err(error) if error.kind() == ErrorKind::Retry => {
                        let _still = may_write.lock();
                        db.wait_idle().unwrap();
                        Db::open(dir.path(), options(true)).unwrap()
                    }
                    Err(error) => panic!("{error:?}"),
                };
                let rounds: Vec<u64> = (0..KEYS)
                    .map(|key| {
                        let value = reader.get(&key.to_be_bytes()).unwrap().unwrap();
                        u64::from_le_bytes(value[..8].try_into().unwrap())
                    })
                    .collect();
                let (first, last) = (rounds[0], rounds[KEYS as usize - 1]);
                assert!(rounds.is_sorted_by(|a, b| a >= b), "{rounds:?}");
                assert!(first - last <= 1, "{rounds:?}");
            }
        });
    }
}
