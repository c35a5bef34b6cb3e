//! Two-phase commit from end to end, on the real file system: what is prepared is there again, however long it takes.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::ops::ControlFlow;
use std::path::Path;

use esker::inspect::{Inspector, StepKind};
use esker::{
    ColumnFamilyOptions, Db, Durability, ErrorKind, Mutation, Options, RecoveryMode, WriteBatch, WriteOptions,
};

const SEGMENT_BYTES: u64 = 64 << 10;

fn options() -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        wal_segment_bytes: SEGMENT_BYTES,
        wal_bytes_max: 4 * SEGMENT_BYTES,
        default_column_family: ColumnFamilyOptions {
            memtable_bytes: 32 << 10,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    }
}

fn sync() -> WriteOptions {
    WriteOptions::durability(Durability::Sync)
}

fn batch(key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value).unwrap();
    batch
}

fn prepare(db: &Db, name: &[u8], key: &[u8], value: &[u8]) {
    let mut batch = batch(key, value);
    db.prepare(name, &mut batch, &sync()).unwrap();
    assert!(batch.is_empty());
}

fn names(db: &Db) -> Vec<Vec<u8>> {
    db.prepared()
        .iter()
        .map(|prepared| prepared.name().to_vec())
        .collect()
}

fn segments(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".wal")).count()
}

#[test]
fn what_is_prepared_is_invisible_until_it_is_committed_and_then_newest() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    prepare(&db, b"a", b"key", b"prepared first");
    prepare(&db, b"b", b"other", b"rolled back");
    assert_eq!(db.last_sequence(), 0);
    assert_eq!(db.get(b"key").unwrap(), None);
    db.put(b"key", b"written meanwhile").unwrap();
    let mut more = batch(b"key", b"at commit time");
    more.put(b"more", b"of it").unwrap();
    db.commit_prepared_with(b"a", &mut more, &sync()).unwrap();
    db.roll_back_prepared(b"b", &sync()).unwrap();
    assert!(more.is_empty() && db.prepared().is_empty());
    assert_eq!(db.last_sequence(), 4);
    for round in 0..3 {
        let db = if round == 0 {
            db.clone()
        } else {
            db.close().unwrap();
            Db::open(dir.path(), options()).unwrap()
        };
        assert_eq!(db.get(b"key").unwrap().unwrap(), b"at commit time");
        assert_eq!(db.get(b"more").unwrap().unwrap(), b"of it");
        assert_eq!(db.get(b"other").unwrap(), None);
        assert_eq!((db.last_sequence(), db.prepared().len()), (4, 0));
        if round > 0 {
            db.close().unwrap();
        }
    }
}

#[test]
fn steps_that_can_not_be_taken_say_why_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let small = Options {
        memtables_bytes_max: 1000,
        ..options()
    };
    let db = Db::open(dir.path(), small).unwrap();
    let kind = |result: esker::Result<()>| result.unwrap_err().kind();
    prepare(&db, b"a", b"key", &[7; 600]);
    let mut again = batch(b"key", &[8; 600]);
    let before = again.size_bytes();
    assert_eq!(
        kind(db.prepare(b"a", &mut again, &sync())),
        ErrorKind::InvalidArgument
    );
    assert_eq!(kind(db.prepare(b"b", &mut again, &sync())), ErrorKind::Retry);
    for name in [&b""[..], &[1; 4097]] {
        assert_eq!(
            kind(db.prepare(name, &mut again, &sync())),
            ErrorKind::InvalidArgument
        );
    }
    let unlogged = WriteOptions::durability(Durability::None);
    let error = db.prepare(b"c", &mut again, &unlogged).unwrap_err();
    assert!(error.message().contains("Durability::None"), "{error}");
    assert_eq!(
        kind(db.commit_prepared(b"a", &unlogged)),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        kind(db.commit_prepared_with(b"x", &mut again, &sync())),
        ErrorKind::NotFound
    );
    assert_eq!(kind(db.roll_back_prepared(b"x", &sync())), ErrorKind::NotFound);
    assert_eq!((again.size_bytes(), again.len()), (before, 1));
    assert_eq!(names(&db), [b"a"]);
    db.write(&mut again).unwrap();
    db.commit_prepared(b"a", &sync()).unwrap();
    assert_eq!(kind(db.commit_prepared(b"a", &sync())), ErrorKind::NotFound);
    assert_eq!(db.get(b"key").unwrap().unwrap(), [7; 600]);
    // The name is free, and one batch alone may pass the limit.
    prepare(&db, b"a", b"key", &[9; 2000]);
}

#[test]
fn a_batch_that_stays_prepared_holds_no_log_back() {
    for wal_memory_bytes in [0, 4 * SEGMENT_BYTES] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            wal_memory_bytes,
            ..options()
        };
        let db = Db::open(dir.path(), options.clone()).unwrap();
        prepare(&db, b"long", b"key", b"of long ago");
        prepare(&db, b"short", b"gone", b"1");
        for i in 0..4000_u32 {
            if i == 2000 {
                db.roll_back_prepared(b"short", &WriteOptions::default()).unwrap();
            }
            db.put(&i.to_be_bytes(), &[7; 500]).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let kept = segments(dir.path());
        assert!(kept <= 8, "{kept} segments of 2 MB of log");
        drop(db);
        let db = Db::open(dir.path(), options).unwrap();
        assert!(db.recovery_report().batches < 500, "{:?}", db.recovery_report());
        let prepared = db.prepared();
        assert_eq!(prepared.len(), 1);
        let wanted = Mutation::Put {
            family: 0,
            key: b"key",
            value: b"of long ago",
        };
        assert!(prepared[0].mutations().eq([wanted]));
        assert_eq!(db.prepared_named(b"long").unwrap().len(), 1);
        db.commit_prepared(b"long", &sync()).unwrap();
        assert_eq!(db.get(b"key").unwrap().unwrap(), b"of long ago");
    }
}

/// No memtable is ever flushed here, so nothing else would let segments go.
#[test]
fn a_log_of_nothing_but_steps_is_shortened() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    for i in 0..4000_u32 {
        let mut batch = batch(b"key", &[7; 500]);
        db.prepare(&i.to_be_bytes(), &mut batch, &WriteOptions::default())
            .unwrap();
        db.roll_back_prepared(&i.to_be_bytes(), &WriteOptions::default())
            .unwrap();
    }
    let kept = segments(dir.path());
    assert!(kept <= 12, "{kept} segments of 2 MB of log");
    assert_eq!(db.last_sequence(), 0);
}

#[test]
fn of_a_family_that_was_dropped_nothing_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let gone = db
        .create_column_family("gone", ColumnFamilyOptions::default())
        .unwrap();
    for name in [b"a", b"b"] {
        let mut batch = WriteBatch::new();
        batch.put_cf(&gone, b"key", b"1").unwrap();
        batch.put(name, b"2").unwrap();
        db.prepare(name, &mut batch, &sync()).unwrap();
    }
    db.drop_column_family(&gone).unwrap();
    db.commit_prepared(b"a", &sync()).unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    db.commit_prepared(b"b", &sync()).unwrap();
    assert_eq!(db.last_sequence(), 4);
    for name in [b"a", b"b"] {
        assert_eq!(db.get(name).unwrap().unwrap(), b"2");
    }
}

#[test]
fn a_checkpoint_and_a_reader_beside_it_have_what_is_prepared() {
    for wal_bytes_max in [0, 1 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let (home, copy) = (dir.path().join("db"), dir.path().join("copy"));
        let db = Db::open(&home, options()).unwrap();
        let checkpoint = esker::CheckpointOptions { wal_bytes_max };
        prepare(&db, b"a", b"key", b"1");
        for i in 0..300_u32 {
            db.put(&i.to_be_bytes(), &[7; 500]).unwrap();
        }
        prepare(&db, b"b", b"key", b"2");
        db.checkpoint_with(&copy, &checkpoint).unwrap();
        db.commit_prepared(b"a", &sync()).unwrap();
        let read_only = Options {
            read_only: true,
            ..options()
        };
        let reader = Db::open(&home, read_only).unwrap();
        assert_eq!(names(&reader), [b"b"]);
        assert_eq!(reader.get(b"key").unwrap().unwrap(), b"1");
        let refused = reader.commit_prepared(b"b", &sync()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
        let copied = Db::open(&copy, options()).unwrap();
        assert_eq!(copied.recovery_report().damages, 0);
        assert_eq!(names(&copied), [b"a", b"b"]);
        assert_eq!(copied.get(b"key").unwrap(), None);
        assert_eq!(copied.get(&299_u32.to_be_bytes()).unwrap().unwrap(), [7; 500]);
        copied.commit_prepared(b"b", &sync()).unwrap();
        assert_eq!(copied.get(b"key").unwrap().unwrap(), b"2");
    }
}

#[test]
fn steps_of_many_threads_share_syncs_and_each_has_one_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..50_u8 {
                    let name = [thread, i];
                    prepare(db, &name, &name, &[i; 300]);
                    match i % 3 {
                        0 => db.commit_prepared(&name, &sync()).unwrap(),
                        1 => db.roll_back_prepared(&name, &sync()).unwrap(),
                        _ => {}
                    }
                }
            });
        }
        // The same name at once: one of them gets it.
        let taken = |db: Db| move || db.prepare(b"one", &mut batch(b"one", b"1"), &sync()).is_ok();
        let threads = [scope.spawn(taken(db.clone())), scope.spawn(taken(db.clone()))];
        let won = threads.map(|thread| thread.join().unwrap());
        assert!(won[0] != won[1], "{won:?}");
    });
    for round in 0..2 {
        assert_eq!(db.prepared().len(), 8 * 16 + 1, "{round}");
        for thread in 0..8_u8 {
            for i in 0..50_u8 {
                let found = db.get(&[thread, i]).unwrap();
                assert_eq!(found.is_some(), i % 3 == 0, "{thread} {i}");
                assert_eq!(db.prepared_named(&[thread, i]).is_some(), i % 3 == 2);
            }
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.prepared().len(), 8 * 16 + 1);
}

/// A mark whose prepare record is gone is what no engine writes.
#[test]
fn a_mark_without_what_it_commits_is_damage_by_the_rules_of_the_mode() {
    let wanted = [
        (RecoveryMode::PointInTime, Some((1, None))),
        (RecoveryMode::SkipCorrupt, Some((2, Some(&b"3"[..])))),
        (RecoveryMode::Absolute, None),
    ];
    for (recovery_mode, wanted) in wanted {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), options()).unwrap();
        let mut large = batch(b"first", b"1");
        large.put(b"x", b"the middle of it").unwrap();
        db.prepare(b"a", &mut large, &sync()).unwrap();
        db.put(b"second", b"2").unwrap();
        db.commit_prepared(b"a", &sync()).unwrap();
        db.put(b"third", b"3").unwrap();
        db.close().unwrap();
        let log = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "wal"))
            .unwrap();
        let mut bytes = std::fs::read(&log).unwrap();
        let at = bytes.windows(10).position(|part| part == b"the middle").unwrap();
        bytes[at] ^= 1;
        std::fs::write(&log, bytes).unwrap();
        let options = Options {
            recovery_mode,
            ..options()
        };
        match (Db::open(dir.path(), options), wanted) {
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
            (Ok(db), Some((damages, third))) => {
                assert_eq!(db.recovery_report().damages, damages, "{recovery_mode:?}");
                assert_eq!(db.get(b"third").unwrap().as_deref(), third);
                assert_eq!(db.get(b"first").unwrap(), None);
                assert!(db.prepared().is_empty());
            }
            (opened, _) => panic!("{recovery_mode:?}: {opened:?}"),
        }
    }
}

#[test]
fn the_inspector_shows_steps_and_finds_nothing_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    prepare(&db, b"a", b"key", b"1");
    db.put(b"other", b"2").unwrap();
    db.flush().unwrap();
    prepare(&db, b"b", b"gone", b"3");
    db.commit_prepared_with(b"a", &mut batch(b"more", b"4"), &sync())
        .unwrap();
    db.roll_back_prepared(b"b", &sync()).unwrap();
    db.close().unwrap();
    let inspector = Inspector::new(dir.path());
    inspector
        .verify(|file| assert!(file.damages.is_empty(), "{file:?}"))
        .unwrap();
    let log = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "wal"))
        .max()
        .unwrap();
    let mut found = Vec::new();
    let summary = inspector
        .segment_at(&log)
        .unwrap()
        .batches(|batch| {
            let sequences: Vec<u64> = batch.mutations().map(|entry| entry.unwrap().sequence).collect();
            found.push((batch.kind(), batch.name().to_vec(), sequences));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((summary.batches, summary.carried), (4, 1));
    assert_eq!(
        found,
        [
            (StepKind::Carried, b"a".to_vec(), vec![0]),
            (StepKind::Prepare, b"b".to_vec(), vec![0]),
            (StepKind::Commit, b"a".to_vec(), vec![3]),
            (StepKind::RollBack, b"b".to_vec(), vec![]),
        ]
    );
}
