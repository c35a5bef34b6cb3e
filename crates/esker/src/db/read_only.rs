//! Opening without a lock, beside a process that writes.
//!
//! The files change under such an opening: between the look at the manifest and the look at the log a flush can
//! move rows from the one to the other, and a compaction removes tables that are to be opened. So an opening counts
//! only if
//! 1. the manifest of after it still needs the same segments: then none that was to be replayed was gone, and what
//!    was replayed lies on top of exactly the tables that the first look found;
//! 2. the tables are open: a removed file can be read for as long as it is. Up to [`PINNED_TABLES_MAX`] are opened
//!    ahead; those of larger databases are opened when they are read, and a read then fails with `NotFound` if the
//!    other process has removed its table meanwhile.

use std::path::Path;
use std::sync::Arc;

use esker_env::Env;

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::version::manifest;

/// How often it is tried. Each failure takes a flush or a compaction that ends within a few milliseconds.
const ATTEMPTS: usize = 10;

/// Tables that are opened at once, well below the usual limit of 1,024 files for a process.
const PINNED_TABLES_MAX: usize = 256;

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
    let mut left = PINNED_TABLES_MAX.min(core.options.open_files_max);
    for family in core.families.load().by_id.values() {
        let view = family.view();
        for (_, file) in view.version.files().take(left) {
            match core.tables.get(file, &family.order) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
                // Damage is found when the table is read.
                _ => left -= 1,
            }
        }
    }
    let oldest = core.manifest.lock().state.log_number_min();
    if manifest::recover(&*env.fs, dir)?.state.log_number_min() == oldest {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::Retry,
            "the process that has the database open flushes faster than it can be opened read-only",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::options::{ColumnFamilyOptions, Options};
    use std::sync::atomic::{AtomicBool, Ordering};

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
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1.. {
                    for key in 0..KEYS {
                        put(round, key);
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let _stop_at_end = StopAtEnd(&stop);
            let mut opened = 0;
            for _ in 0..40 {
                let reader = match Db::open(dir.path(), options(true)) {
                    Ok(reader) => reader,
                    // A writer that does nothing but flush can win for long.
                    Err(error) if error.kind() == ErrorKind::Retry => continue,
                    Err(error) => panic!("{error:?}"),
                };
                opened += 1;
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
            assert!(opened > 0);
        });
    }
}
