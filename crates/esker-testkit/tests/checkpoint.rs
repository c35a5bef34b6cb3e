//! Checkpoints: each is the database at one moment, whatever happens beside it; an interrupted one is none.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{CheckpointOptions, Db, Durability, ErrorKind, Opener, WriteBatch, WriteOptions};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{Env, Fs as _};
use esker_testkit::crash::{DIR, family_options, open, options};
use esker_testkit::runner::scan_all;
use esker_testkit::watchdog;

const COPY: &str = "/copy";

fn open_at(fs: &MemFs, dir: &str) -> esker::Result<Db> {
    let env = Env::simulated_on(fs.clone(), fs.operations());
    let mut options = options();
    options.create_if_missing = false;
    Opener::new(options).env(env).open(Path::new(dir))
}

/// A batch over both families, so that a torn one shows. Values of `default` lie in blob files.
fn write(db: &Db, number: u32, durability: Durability) {
    let other = db.column_family("other").unwrap();
    let key = format!("key{:04}", number * 37 % 60).into_bytes();
    let mut batch = WriteBatch::new();
    batch
        .put(&key, number.to_string().repeat(100).as_bytes())
        .unwrap();
    batch
        .put_cf(&other, &key, number.to_string().repeat(100).as_bytes())
        .unwrap();
    batch.put(b"last", &number.to_le_bytes()).unwrap();
    batch.put_cf(&other, b"last", &number.to_le_bytes()).unwrap();
    db.write_with(&mut batch, &WriteOptions::durability(durability))
        .unwrap();
}

/// Tables, blob files, sealed and active memtables in two families.
fn filled(fs: &MemFs) -> Db {
    let db = open(fs).unwrap();
    db.create_column_family("other", family_options()).unwrap();
    for number in 0..120 {
        write(&db, number, Durability::Buffered);
    }
    db.wait_idle().unwrap();
    db
}

#[test]
fn a_checkpoint_is_the_database_of_its_moment_and_goes_its_own_way() {
    for wal_bytes_max in [u64::MAX, 0] {
        let fs = MemFs::new();
        let db = filled(&fs);
        let wanted = scan_all(&db).unwrap();
        let sequence = db.last_sequence();
        // Else a flush may be faster, and what it has written is linked.
        db.pause_background_work();
        let made = db
            .checkpoint_with(COPY, &CheckpointOptions { wal_bytes_max })
            .unwrap();
        db.resume_background_work();
        assert_eq!(made.sequence, sequence);
        assert!(made.linked_files > 2, "{made:?}");
        assert_eq!(made.copied_bytes == 0, wal_bytes_max == 0, "{made:?}");
        assert_eq!(made.written_bytes > 0, wal_bytes_max == 0, "{made:?}");
        let again = db.checkpoint(COPY).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::InvalidArgument, "{again}");
        for number in 200..400 {
            write(&db, number, Durability::Buffered);
        }
        db.compact_range(None, None).unwrap();
        // Nothing of it was synced by a write.
        let fs = fs.crash(CrashMode::DropUnsynced);
        let copy = open_at(&fs, COPY).unwrap();
        assert_eq!(copy.recovery_report().damages, 0);
        assert_eq!(copy.last_sequence(), sequence);
        assert_eq!(scan_all(&copy).unwrap(), wanted);
        write(&copy, 500, Durability::Sync);
        copy.compact_range(None, None).unwrap();
        copy.close().unwrap();
        let copy = open_at(&fs, COPY).unwrap();
        assert_eq!(copy.get(b"last").unwrap().unwrap(), 500_u32.to_le_bytes());
    }
}

#[test]
fn rows_that_were_never_logged_are_in_a_checkpoint() {
    let fs = MemFs::new();
    let db = filled(&fs);
    for number in 0..20 {
        write(&db, 1000 + number, Durability::None);
        write(&db, 2000 + number, Durability::Buffered);
    }
    // Else a flush may take all of them before the checkpoint comes: the last two lie in memtables for sure.
    db.wait_idle().unwrap();
    db.pause_background_work();
    write(&db, 3000, Durability::None);
    write(&db, 3001, Durability::Buffered);
    let wanted = scan_all(&db).unwrap();
    let made = db.checkpoint(COPY).unwrap();
    db.resume_background_work();
    assert!(made.written_bytes > 0, "{made:?}");
    let copy = open_at(&fs.crash(CrashMode::DropUnsynced), COPY).unwrap();
    assert_eq!(scan_all(&copy).unwrap(), wanted);
    // Nothing was taken from the database itself.
    assert_eq!(scan_all(&db).unwrap(), wanted);
}

/// Each would take what is preallocated for a segment, until the memtable is full.
#[test]
fn checkpoints_every_moment_end_no_segments_and_flush_nothing() {
    let fs = MemFs::new();
    let db = filled(&fs);
    let count = |suffix: &str| {
        let names = fs.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.ends_with(suffix)).count()
    };
    let before = (count(".wal"), count(".sst"));
    for number in 0..10 {
        db.put(b"last", &[number]).unwrap();
        db.checkpoint(format!("/copy{number}")).unwrap();
    }
    assert_eq!((count(".wal"), count(".sst")), before);
    for number in 0..10 {
        let copy = open_at(&fs.crash(CrashMode::KeepAll), &format!("/copy{number}")).unwrap();
        assert_eq!(copy.get(b"last").unwrap().unwrap(), [number]);
    }
}

#[test]
fn where_files_can_not_be_linked_they_are_copied() {
    let fs = MemFs::new();
    filled(&fs).close().unwrap();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(fs.clone(), 1)
    };
    let db = Opener::new(options()).env(env).open(DIR).unwrap();
    let wanted = scan_all(&db).unwrap();
    faults.add(Rule::new(Op::HardLink, Fault::Exdev));
    let made = db.checkpoint(COPY).unwrap();
    assert_eq!(made.linked_files, 0);
    assert!(made.copied_bytes > 1000);
    let copy = open_at(&fs.crash(CrashMode::DropUnsynced), COPY).unwrap();
    assert_eq!(scan_all(&copy).unwrap(), wanted);
    // Any other failure is one, and leaves nothing.
    faults.add(Rule::new(Op::HardLink, Fault::Enospc));
    assert_eq!(db.checkpoint("/full").unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(!fs.exists(Path::new("/full")).unwrap());
    assert!(!fs.exists(Path::new("/full.unfinished")).unwrap());
}

#[test]
fn a_crash_at_any_write_of_a_checkpoint_leaves_all_of_it_or_none() {
    let _alive = watchdog::watch("a_crash_at_any_write_of_a_checkpoint", Duration::from_secs(300));
    for wal_bytes_max in [u64::MAX, 0] {
        let how = CheckpointOptions { wal_bytes_max };
        let (mut whole, mut none) = (0, 0);
        for stop in 0.. {
            let fs = MemFs::new();
            let db = filled(&fs);
            let wanted = scan_all(&db).unwrap();
            db.sync_wal().unwrap();
            fs.stop_after(Some(stop));
            let made = db.checkpoint_with(COPY, &how);
            let stopped = fs.is_stopped();
            for mode in [
                CrashMode::KeepAll,
                CrashMode::DropUnsynced,
                CrashMode::Torn { seed: stop },
                CrashMode::Torn { seed: !stop },
            ] {
                let left = fs.crash(mode);
                let there = left.exists(Path::new(COPY)).unwrap();
                assert!(there || made.is_err(), "{stop} {mode:?}");
                if there {
                    whole += 1;
                    let copy = open_at(&left, COPY).unwrap();
                    assert_eq!(scan_all(&copy).unwrap(), wanted, "{stop} {mode:?}");
                    assert_eq!(copy.recovery_report().damages, 0);
                } else {
                    none += 1;
                }
                let db = open_at(&left, DIR).unwrap();
                assert_eq!(scan_all(&db).unwrap(), wanted, "{stop} {mode:?}");
                if !there {
                    db.checkpoint_with(COPY, &how).unwrap();
                    assert!(!left.exists(Path::new("/copy.unfinished")).unwrap());
                    assert_eq!(scan_all(&open_at(&left, COPY).unwrap()).unwrap(), wanted);
                }
            }
            if !stopped {
                break;
            }
        }
        assert!(whole >= 4 && none > 40, "{whole} whole, {none} none");
    }
}

#[test]
fn checkpoints_beside_writers_and_compactions_are_each_one_moment() {
    let _alive = watchdog::watch("checkpoints_beside_writers", Duration::from_secs(120));
    let fs = MemFs::new();
    let db = filled(&fs);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (writer, done) = (db.clone(), &done);
        scope.spawn(move || {
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let durability = match number % 3000 {
                    2900.. => Durability::Sync,
                    _ => Durability::Buffered,
                };
                write(&writer, number, durability);
            }
        });
        for round in 0..25_u64 {
            let dir = format!("/copy{round}");
            let wal_bytes_max = if round % 3 == 0 { 0 } else { u64::MAX };
            let before = db.last_sequence();
            let made = db
                .checkpoint_with(&dir, &CheckpointOptions { wal_bytes_max })
                .unwrap();
            assert!((before..=db.last_sequence()).contains(&made.sequence));
            let copy = open_at(&fs.crash(CrashMode::DropUnsynced), &dir).unwrap();
            assert_eq!(copy.last_sequence(), made.sequence);
            assert_eq!(copy.recovery_report().damages, 0);
            let all = scan_all(&copy).unwrap();
            assert_eq!(all[&0], all[&1], "both families are of one moment");
        }
        done.store(true, Ordering::Relaxed);
    });
}
