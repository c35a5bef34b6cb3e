//! Tables dropped with a key range: at once, all of them or none, and nothing older comes to light.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{Db, ErrorKind, Opener, ReadOptions, WriteBatch};
use esker_env::Env;
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_testkit::crash::{DIR, check_files, open, options};
use esker_testkit::oracle::Rows;
use esker_testkit::runner::scan;
use esker_testkit::watchdog;

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Rows with values in blob files, in several tables of the last level.
fn filled(fs: &MemFs, rows: usize) -> Db {
    let db = open(fs).unwrap();
    for number in 0..rows {
        db.put(&key(number), &number.to_string().repeat(40).into_bytes())
            .unwrap();
    }
    db.compact_range(None, None).unwrap();
    db
}

fn all(db: &Db) -> Rows {
    scan(db, &db.default_column_family(), ReadOptions::default()).unwrap()
}

fn property(db: &Db, name: &str) -> u64 {
    let text = db.property(&db.default_column_family(), name).unwrap();
    text.parse().unwrap()
}

fn drop_tables(db: &Db, from: usize, to: usize) -> esker::Result<esker::DeletedFiles> {
    db.delete_files_in_ranges(&db.default_column_family(), &[(&key(from), &key(to))])
}

#[test]
fn an_index_is_dropped_and_its_space_is_back_at_once() {
    let fs = MemFs::new();
    let db = filled(&fs, 3000);
    db.pause_background_work();
    let (tables, blob_bytes) = (property(&db, "files"), property(&db, "blob-bytes"));
    assert!(tables > 4, "{tables}");
    let before = property(&db, "table-bytes");
    let deleted = drop_tables(&db, 500, 3000).unwrap();
    assert!(
        deleted.tables > 2 && deleted.bytes > before / 2,
        "{deleted:?} of {before}"
    );
    assert_eq!(property(&db, "files"), tables - deleted.tables);
    assert_eq!(property(&db, "table-bytes"), before - deleted.bytes);
    assert!(property(&db, "blob-live-bytes") < blob_bytes / 2);
    check_files(&fs, &db).unwrap();
    let left = all(&db);
    assert!(left.len() >= 500 && left.len() < 1500, "{}", left.len());
    let mut rest = WriteBatch::new();
    rest.delete_range(&key(500), &key(3000)).unwrap();
    db.write(&mut rest).unwrap();
    let kept = |db: &Db| all(db).into_iter().map(|(key, _)| key).eq((0..500).map(key));
    assert!(kept(&db));
    let left = property(&db, "files");
    assert_eq!(drop_tables(&db, 0, 3000).unwrap().tables, left);
    assert_eq!(property(&db, "files"), 0);
    db.resume_background_work();
}

#[test]
fn a_blob_file_goes_with_the_last_table_that_points_into_it() {
    let fs = MemFs::new();
    let db = filled(&fs, 1000);
    assert!(property(&db, "blob-files") > 0);
    let iter = {
        let mut iter = db
            .iter_cf(&db.default_column_family(), ReadOptions::default())
            .unwrap();
        iter.seek_to_first().unwrap();
        iter
    };
    drop_tables(&db, 0, 1000).unwrap();
    assert_eq!((property(&db, "files"), property(&db, "blob-files")), (0, 0));
    assert!(all(&db).is_empty());
    let mut iter = iter;
    for number in 0..1000 {
        assert_eq!(iter.key(), key(number), "who reads goes on");
        assert_eq!(iter.value(), number.to_string().repeat(40).as_bytes());
        iter.next().unwrap();
    }
    drop(iter);
    check_files(&fs, &db).unwrap();
    db.close().unwrap();
    assert!(all(&open(&fs).unwrap()).is_empty());
}

#[test]
fn what_was_deleted_or_replaced_does_not_come_back() {
    let fs = MemFs::new();
    let db = filled(&fs, 300);
    db.pause_background_work();
    for number in 100..200 {
        match number % 2 {
            0 => db.delete(&key(number)).unwrap(),
            _ => db.put(&key(number), b"new").unwrap(),
        }
    }
    db.flush().unwrap();
    let wanted = all(&db);
    // The newer table lies inside, the older ones reach out.
    assert_eq!(drop_tables(&db, 100, 200).unwrap().tables, 0);
    assert_eq!(all(&db), wanted);
    db.put(&key(150), b"in memory").unwrap();
    let deleted = drop_tables(&db, 0, 300).unwrap();
    assert_eq!(property(&db, "files"), 0, "{deleted:?}");
    assert_eq!(all(&db), [(key(150), b"in memory".to_vec())]);
    db.resume_background_work();
}

#[test]
fn a_failure_leaves_the_database_as_it_was() {
    let fs = MemFs::new();
    filled(&fs, 500).close().unwrap();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let machine = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(fs.clone(), 1)
    };
    let db = Opener::new(options()).env(machine).open(DIR).unwrap();
    let wanted = all(&db);
    faults.add(Rule::new(Op::Sync, Fault::Eio).on_path("MANIFEST"));
    assert_eq!(drop_tables(&db, 0, 500).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(all(&db), wanted);
    db.compact_range(None, None).unwrap();
    assert_eq!(all(&db), wanted, "no table stayed marked");
    assert!(drop_tables(&db, 0, 500).unwrap().tables > 0);
    assert!(all(&db).is_empty());
    db.close().unwrap();
    assert_eq!(drop_tables(&db, 0, 500).unwrap_err().kind(), ErrorKind::Closed);
    let db = open(&fs).unwrap();
    assert!(all(&db).is_empty());
    check_files(&fs, &db).unwrap();
}

#[test]
fn a_crash_at_any_write_leaves_all_tables_or_none() {
    let _alive = watchdog::watch("a_crash_at_any_write_of_dropped_tables", Duration::from_secs(200));
    let (mut old, mut new) = (0, 0);
    for stop in 0.. {
        let fs = MemFs::new();
        let db = filled(&fs, 2400);
        db.wait_idle().unwrap();
        db.pause_background_work();
        for number in 1250..1260 {
            db.put(&key(number), b"newer").unwrap();
        }
        db.flush().unwrap();
        let before = all(&db);
        db.sync_wal().unwrap();
        fs.stop_after(Some(stop));
        let deleted = drop_tables(&db, 100, 2300);
        let done = deleted.is_ok();
        assert!(deleted.is_err() || deleted.unwrap().tables > 1);
        let stopped = fs.is_stopped();
        let after = (done && !stopped).then(|| all(&db));
        for mode in [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: stop },
            CrashMode::Torn { seed: !stop },
        ] {
            let left = fs.crash(mode);
            let db = open(&left).unwrap();
            let found = all(&db);
            if found == before {
                assert!(!done, "{stop} {mode:?}: it was answered");
                old += 1;
            } else {
                assert!(
                    found.len() < before.len() && found.len() >= 200,
                    "{stop} {mode:?}"
                );
                assert!(after.as_ref().is_none_or(|after| *after == found));
                new += 1;
            }
            db.wait_idle().unwrap();
            check_files(&left, &db).unwrap();
            db.compact_range(None, None).unwrap();
            assert_eq!(all(&db), found, "{stop} {mode:?}");
        }
        if !stopped {
            break;
        }
    }
    assert!(old >= 4 && new >= 4, "{old} with, {new} without the tables");
}

#[test]
fn ranges_are_dropped_beside_writers_compactions_and_readers() {
    let _alive = watchdog::watch("ranges_are_dropped_beside_others", Duration::from_secs(120));
    let fs = MemFs::new();
    // Many rows, so that whichever way compactions cut them, some tables hold nothing but rows of the tenant: one that
    // reaches beyond the range, and all that lies above it, would stay for ever.
    let db = filled(&fs, 3000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (writer, compactor, done) = (db.clone(), db.clone(), &done);
        scope.spawn(move || {
            let mut round = 0_usize;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                // The rows that stay, and the tenant that comes and goes.
                writer.put(&key(round * 7 % 400), &[7; 300]).unwrap();
                writer.put(&key(400 + round % 2600), &[8; 300]).unwrap();
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                compactor.compact_range(Some(&key(300)), None).unwrap();
            }
        });
        // As long as it takes to meet a table that can go and that no compaction reads.
        let (mut tables, mut rounds) = (0, 0);
        while rounds < 60 || tables == 0 {
            rounds += 1;
            tables += drop_tables(&db, 400, 3000).unwrap().tables;
            for number in (0..400).step_by(37) {
                assert!(
                    db.get(&key(number)).unwrap().is_some(),
                    "{number} is not in the range"
                );
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    db.wait_idle().unwrap();
    let mut rest = WriteBatch::new();
    rest.delete_range(&key(400), &key(3000)).unwrap();
    db.write(&mut rest).unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(all(&db).len(), 400);
    check_files(&fs, &db).unwrap();
}
