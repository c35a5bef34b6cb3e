//! A database without background work: nothing moves until somebody asks for it, and no write waits for what never comes.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{ColumnFamilyOptions, Db, Durability, ErrorKind, Opener, Options, WriteOptions};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{Env, Fs as _};
use esker_testkit::crash::{DIR, options};
use esker_testkit::runner::scan_all;
use esker_testkit::watchdog;

fn open_off(fs: &MemFs) -> Db {
    let env = Env::simulated_on(fs.clone(), fs.operations());
    Opener::new(options())
        .env(env)
        .background_work_off()
        .open(DIR)
        .unwrap()
}

fn levels(db: &Db) -> String {
    db.property(&db.default_column_family(), "levels").unwrap()
}

fn tables(fs: &MemFs) -> usize {
    let names = fs.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

/// Puts rows from `first` on until one is refused; the number of that one.
fn fill(db: &Db, first: u32) -> u32 {
    for number in first..first + 10_000 {
        match db.put(&number.to_be_bytes(), &[7; 500]) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
                assert!(error.message().contains("without background work"), "{error}");
                return number;
            }
        }
    }
    panic!("memory has no end");
}

#[test]
fn nothing_moves_until_it_is_asked_for() {
    let _alive = watchdog::watch("nothing_moves", Duration::from_secs(60));
    let fs = MemFs::new();
    let db = open_off(&fs);
    let mut next = 0;
    for round in 0..7 {
        let before = tables(&fs);
        let refused = fill(&db, next);
        assert!(refused > next, "a flush makes room");
        assert_eq!(
            db.get(&refused.to_be_bytes()).unwrap(),
            None,
            "nothing of it was written"
        );
        assert_eq!(db.last_sequence(), u64::from(refused));
        assert_eq!(tables(&fs), before);
        // It does not wait for what never comes, either.
        db.wait_idle().unwrap();
        db.flush().unwrap();
        assert!(tables(&fs) > before && tables(&fs) > round);
        assert_eq!(
            levels(&db),
            format!("{} 0 0 0 0 0 0", tables(&fs)),
            "the trigger was reached long ago"
        );
        next = refused;
    }
    assert!(!db.is_idle().unwrap(), "a compaction is due");
    let (before, count) = (scan_all(&db).unwrap(), tables(&fs));
    db.pause_background_work();
    db.start_background_work();
    assert_eq!(tables(&fs), count, "it is paused");
    db.resume_background_work();
    db.wait_idle().unwrap();
    assert!(
        levels(&db).starts_with("0 ") || levels(&db).starts_with("1 "),
        "{}",
        levels(&db)
    );
    assert_eq!(scan_all(&db).unwrap(), before);
    // From here on it is a database like any other.
    for number in 0..2000_u32 {
        db.put(&number.to_be_bytes(), &[8; 500]).unwrap();
    }
    db.start_background_work();
    db.close().unwrap();
}

/// A refused write let the next 256 KiB pass without a look at the memory of all memtables.
#[test]
fn refused_writes_take_no_memory() {
    let _alive = watchdog::watch("refused_writes_take_no_memory", Duration::from_secs(60));
    let fs = MemFs::new();
    let large = ColumnFamilyOptions {
        memtable_bytes: 4 << 20,
        ..ColumnFamilyOptions::default()
    };
    let db = Opener::new(Options {
        default_column_family: large,
        ..options()
    })
    .env(Env::simulated_on(fs.clone(), 1))
    .background_work_off()
    .open(DIR)
    .unwrap();
    let refused = fill(&db, 0);
    for _ in 0..3000 {
        let error = db.put(&refused.to_be_bytes(), &[7; 500]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    }
    assert_eq!(db.last_sequence(), u64::from(refused));
    db.flush().unwrap();
    assert!(fill(&db, refused) > refused);
}

#[test]
fn what_was_written_survives_a_crash_and_a_close() {
    let _alive = watchdog::watch("what_was_written_survives", Duration::from_secs(60));
    let fs = MemFs::new();
    let db = open_off(&fs);
    fill(&db, 0);
    db.sync_wal().unwrap();
    let wanted = scan_all(&db).unwrap();
    let fs = fs.crash(CrashMode::DropUnsynced);
    let db = open_off(&fs);
    assert_eq!(scan_all(&db).unwrap(), wanted);
    // Rows without a log are flushed by closing, as always.
    db.flush().unwrap();
    db.put_with(b"unlogged", b"1", &WriteOptions::durability(Durability::None))
        .unwrap();
    let wanted = scan_all(&db).unwrap();
    db.close().unwrap();
    let db = open_off(&fs.crash(CrashMode::DropUnsynced));
    assert_eq!(scan_all(&db).unwrap(), wanted);
    // What is asked for by name is done.
    db.compact_range(None, None).unwrap();
    db.checkpoint("/copy").unwrap();
    assert_eq!(scan_all(&db).unwrap(), wanted);
}

/// After a failed append, writes go on only when all memtables were flushed.
#[test]
fn a_broken_log_does_not_hang_writes() {
    let _alive = watchdog::watch("a_broken_log_does_not_hang_writes", Duration::from_secs(60));
    let fs = MemFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(fs, 1)
    };
    let db = Opener::new(options())
        .env(env)
        .background_work_off()
        .open(DIR)
        .unwrap();
    db.put(b"a", b"1").unwrap();
    faults.add(Rule::new(Op::Append, Fault::Enospc).on_path(".wal"));
    assert!(db.put(b"b", b"2").is_err());
    faults.clear();
    assert_eq!(db.put(b"b", b"3").unwrap_err().kind(), ErrorKind::Retry);
    assert_eq!(db.sync_wal().unwrap_err().kind(), ErrorKind::Retry);
    // What is asked for by name does not hang, either.
    db.checkpoint("/copy").unwrap();
    db.put(b"b", b"4").unwrap();
    assert_eq!(db.get(b"b").unwrap().unwrap(), *b"4");
    assert_eq!(db.get(b"a").unwrap().unwrap(), *b"1");
}

/// A writer that waits for more than a flush that was asked for brings learns that no more comes.
#[test]
fn writers_and_flushes_beside_each_other_always_go_on() {
    let _alive = watchdog::watch("writers_and_flushes", Duration::from_secs(120));
    let fs = MemFs::new();
    let db = open_off(&fs);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u32)
            .map(|thread| {
                let db = db.clone();
                scope.spawn(move || {
                    for number in 0..400_u32 {
                        let key = [thread.to_be_bytes(), number.to_be_bytes()].concat();
                        while let Err(error) = db.put(&key, &[7; 500]) {
                            assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (flusher, done) = (db.clone(), &done);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                flusher.flush().unwrap();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(scan_all(&db).unwrap()[&0].len(), 1200);
    assert!(tables(&fs) > 3);
}
