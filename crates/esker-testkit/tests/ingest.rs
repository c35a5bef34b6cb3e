//! Ingested tables: newer than all before, invisible to snapshots of before, all of them there or none.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{
    AppendOperator, ColumnFamilyOptions, Db, ErrorKind, IngestOptions, Opener, ReadOptions, TableFileWriter,
    WriteBatch,
};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{CreateOptions, Env, Fs as _};
use esker_testkit::crash::{DIR, check_files, family_options, open, options};
use esker_testkit::random::Rng;
use esker_testkit::runner::scan_all;
use esker_testkit::watchdog;

const MOVED: IngestOptions = IngestOptions {
    move_files: true,
    behind: false,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn env(fs: &MemFs) -> Env {
    Env::simulated_on(fs.clone(), fs.operations())
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// A table with these puts.
fn table(fs: &MemFs, path: &str, rows: &Rows) -> PathBuf {
    let mut writer = TableFileWriter::create_on(&env(fs), path, &family_options()).unwrap();
    for (key, value) in rows {
        writer.put(key, value).unwrap();
    }
    writer.finish().unwrap();
    path.into()
}

fn rows(from: usize, to: usize, value: &str) -> Rows {
    (from..to)
        .map(|number| (key(number), value.repeat(20).into_bytes()))
        .collect()
}

fn levels(db: &Db) -> Vec<u64> {
    let text = db.property(&db.default_column_family(), "levels").unwrap();
    text.split(' ').map(|count| count.parse().unwrap()).collect()
}

fn ingest(db: &Db, paths: &[PathBuf]) -> esker::Result<esker::IngestSummary> {
    db.ingest(
        &[(db.default_column_family(), paths.to_vec())],
        &IngestOptions::default(),
    )
}

fn families(db: &Db) -> BTreeMap<u32, Rows> {
    let all = scan_all(db).unwrap().into_iter();
    all.map(|(id, rows)| (id, rows.into_iter().collect())).collect()
}

fn all(db: &Db) -> Rows {
    families(db).remove(&0).unwrap()
}

#[test]
fn a_table_comes_into_the_deepest_level_that_is_free() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let mut wanted = rows(0, 200, "first");
    let made = ingest(&db, &[table(&fs, "/1", &wanted)]).unwrap();
    assert_eq!((made.sequence, made.tables), (1, 1));
    assert_eq!(levels(&db), [0, 0, 0, 0, 0, 0, 1]);
    ingest(&db, &[table(&fs, "/2", &rows(200, 400, "second"))]).unwrap();
    wanted.extend(rows(200, 400, "second"));
    assert_eq!(levels(&db), [0, 0, 0, 0, 0, 0, 2], "beside the first");
    db.pause_background_work();
    ingest(&db, &[table(&fs, "/3", &rows(199, 201, "third"))]).unwrap();
    wanted.extend(rows(199, 201, "third"));
    assert_eq!(levels(&db), [1, 0, 0, 0, 0, 0, 2], "over both");
    assert_eq!(all(&db), wanted);
    db.resume_background_work();
    db.wait_idle().unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(all(&db), wanted);
    assert!(fs.exists(Path::new("/1")).unwrap());
}

#[test]
fn ingested_rows_are_newer_than_memtables_and_older_than_what_follows() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    for number in 0..30 {
        db.put(&key(number), b"before").unwrap();
    }
    db.delete_range(&key(10), &key(20)).unwrap();
    let before = db.snapshot();
    let seen_before = all(&db);
    let mut wanted = seen_before.clone();
    ingest(&db, &[table(&fs, "/1", &rows(5, 15, "ingested"))]).unwrap();
    wanted.extend(rows(5, 15, "ingested"));
    assert_eq!(all(&db), wanted);
    db.put(&key(7), b"after").unwrap();
    wanted.insert(key(7), b"after".to_vec());
    db.delete_range(&key(8), &key(10)).unwrap();
    wanted.remove(&key(8));
    wanted.remove(&key(9));
    let check = |db: &Db| {
        assert_eq!(all(db), wanted);
        for number in 0..31 {
            let value = db.get(&key(number)).unwrap().map(|value| value.to_vec());
            assert_eq!(value.as_ref(), wanted.get(&key(number)), "{number}");
            let then = ReadOptions {
                snapshot: Some(before.clone()),
                ..ReadOptions::default()
            };
            let value = db
                .get_with(&db.default_column_family(), &key(number), &then)
                .unwrap()
                .map(|value| value.to_vec());
            assert_eq!(
                value.as_ref(),
                seen_before.get(&key(number)),
                "{number} of before"
            );
        }
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact_range(None, None).unwrap();
    check(&db);
    db.close().unwrap();
    let db = open(&fs).unwrap();
    assert_eq!(all(&db), wanted);
}

#[test]
fn of_files_that_overlap_the_last_counts() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let paths = [
        table(&fs, "/1", &rows(0, 50, "a")),
        table(&fs, "/2", &rows(20, 70, "b")),
        table(&fs, "/3", &rows(40, 60, "c")),
    ];
    let made = ingest(&db, &paths).unwrap();
    assert_eq!(made.sequence, 3);
    let mut wanted = rows(0, 50, "a");
    wanted.extend(rows(20, 70, "b"));
    wanted.extend(rows(40, 60, "c"));
    assert_eq!(all(&db), wanted);
    db.compact_range(None, None).unwrap();
    assert_eq!(all(&db), wanted);
}

#[test]
fn deletes_ranges_and_operands_work_on_what_is_below() {
    let fs = MemFs::new();
    let settings = ColumnFamilyOptions {
        merge_operator: Some(Arc::new(AppendOperator::new(*b","))),
        ..family_options()
    };
    let db = open(&fs).unwrap();
    let lists = db.create_column_family("lists", settings.clone()).unwrap();
    for number in 0..20 {
        db.put_cf(&lists, &key(number), b"base").unwrap();
    }
    let mut writer = TableFileWriter::create_on(&env(&fs), "/1", &settings).unwrap();
    writer.delete_range(&key(10), &key(15)).unwrap();
    writer.merge(&key(1), b"more").unwrap();
    writer.delete(&key(2)).unwrap();
    // The range is deleted in the database, not in the file.
    writer.put(&key(12), b"new").unwrap();
    writer.merge(&key(13), b"alone").unwrap();
    writer.finish().unwrap();
    let files = [(lists.clone(), vec![PathBuf::from("/1")])];
    db.ingest(&files, &MOVED).unwrap();
    assert!(!fs.exists(Path::new("/1")).unwrap());
    db.merge_cf(&lists, &key(1), b"last").unwrap();
    for _ in 0..2 {
        let get = |number| {
            let value = db.get_cf(&lists, &key(number)).unwrap();
            value.map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        assert_eq!(get(0).as_deref(), Some("base"));
        assert_eq!(get(1).as_deref(), Some("base,more,last"));
        assert_eq!((get(2), get(10), get(14)), (None, None, None));
        assert_eq!(get(12).as_deref(), Some("new"));
        assert_eq!(get(13).as_deref(), Some("alone"));
        assert_eq!(get(15).as_deref(), Some("base"));
        db.compact_range_cf(&lists, None, None).unwrap();
    }
}

#[test]
fn what_can_not_be_ingested_is_refused_before_anything_changes() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    ingest(&db, &[table(&fs, "/good", &rows(0, 300, "x"))]).unwrap();
    db.put(&key(3), b"y").unwrap();
    let wanted = all(&db);
    let whole = fs.read_all(Path::new("/good")).unwrap();
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        let mut file = fs.create(Path::new("/bad"), CreateOptions::default()).unwrap();
        file.append(&bytes).unwrap();
        file.finish(true).unwrap();
        let error = ingest(&db, &["/bad".into()]).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Corruption | ErrorKind::Unsupported | ErrorKind::InvalidArgument
            ),
            "byte {at}: {error}"
        );
    }
    // Tables of a database are none that were written to be ingested.
    db.flush().unwrap();
    let own = fs
        .list(Path::new(DIR))
        .unwrap()
        .into_iter()
        .filter(|name| name.ends_with(".sst"));
    for name in own {
        let inside = Path::new(DIR).join(&name);
        assert_eq!(
            ingest(&db, std::slice::from_ref(&inside)).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
    let mut writer = TableFileWriter::create_on(&env(&fs), "/merges", &family_options()).unwrap();
    writer.merge(b"a", b"1").unwrap();
    writer.finish().unwrap();
    let error = ingest(&db, &["/merges".into()]).unwrap_err();
    assert!(error.message().contains("merge operator"), "{error}");
    for nothing in [ingest(&db, &[]), ingest(&db, &["/nowhere".into()])] {
        assert!(nothing.is_err());
    }
    assert_eq!(all(&db), wanted);
    check_files(&fs, &db).unwrap();
}

#[test]
fn where_files_can_not_be_linked_they_are_copied() {
    let fs = MemFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let machine = Env {
        fs: Arc::new(faults.clone()),
        ..env(&fs)
    };
    let db = Opener::new(options()).env(machine).open(DIR).unwrap();
    faults.add(Rule::new(Op::HardLink, Fault::Exdev));
    let wanted = rows(0, 300, "copied");
    ingest(&db, &[table(&fs, "/1", &wanted)]).unwrap();
    let left = fs.crash(CrashMode::DropUnsynced);
    assert_eq!(all(&open(&left).unwrap()), wanted);
    // An edit that can't be stored leaves the database as it was, and no file.
    faults.add(Rule::new(Op::Sync, Fault::Eio).on_path("MANIFEST"));
    assert!(ingest(&db, &[table(&fs, "/2", &rows(0, 10, "failed"))]).is_err());
    assert_eq!(all(&db), wanted);
    ingest(&db, &[table(&fs, "/3", &rows(0, 10, "again"))]).unwrap();
    let mut wanted = wanted;
    wanted.extend(rows(0, 10, "again"));
    assert_eq!(all(&db), wanted);
    db.close().unwrap();
    let db = open(&fs).unwrap();
    assert_eq!(all(&db), wanted);
    check_files(&fs, &db).unwrap();
}

/// Two families, one with values in blob files; memtables and tables that the files overlap.
fn before(fs: &MemFs) -> (Db, Vec<(esker::ColumnFamily, Vec<PathBuf>)>) {
    let db = open(fs).unwrap();
    let other = db.create_column_family("other", family_options()).unwrap();
    for number in 0..60 {
        let mut batch = WriteBatch::new();
        let value = number.to_string().repeat(200).into_bytes();
        batch.put(&key(number * 3), &value).unwrap();
        batch.put_cf(&other, &key(number * 3), &value).unwrap();
        db.write(&mut batch).unwrap();
    }
    db.wait_idle().unwrap();
    let files = vec![
        (
            db.default_column_family(),
            vec![
                table(fs, "/1", &rows(30, 60, "one")),
                table(fs, "/2", &rows(500, 560, "two")),
            ],
        ),
        (other, vec![table(fs, "/3", &rows(0, 90, "three"))]),
    ];
    (db, files)
}

#[test]
fn a_crash_at_any_write_leaves_all_tables_or_none() {
    let _alive = watchdog::watch("a_crash_at_any_write_of_an_ingestion", Duration::from_secs(300));
    let how = MOVED;
    let (mut old, mut new) = (0, 0);
    for stop in 0.. {
        let fs = MemFs::new();
        let (db, files) = before(&fs);
        let wanted_old = families(&db);
        let mut wanted_new = wanted_old.clone();
        wanted_new.get_mut(&0).unwrap().extend(rows(30, 60, "one"));
        wanted_new.get_mut(&0).unwrap().extend(rows(500, 560, "two"));
        wanted_new.get_mut(&1).unwrap().extend(rows(0, 90, "three"));
        db.sync_wal().unwrap();
        // Flushes in the background come at other places each time.
        fs.stop_after(Some(stop));
        let done = db.ingest(&files, &how).is_ok();
        let stopped = fs.is_stopped();
        for mode in [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: stop },
            CrashMode::Torn { seed: !stop },
        ] {
            let left = fs.crash(mode);
            let db = open(&left).unwrap();
            let found = families(&db);
            if found == wanted_new {
                new += 1;
            } else {
                assert!(found == wanted_old, "{stop} {mode:?}: neither all nor nothing");
                assert!(!done, "{stop} {mode:?}: it was answered");
                for path in ["/1", "/2", "/3"] {
                    assert!(
                        left.exists(Path::new(path)).unwrap(),
                        "{stop} {mode:?}: {path} is gone"
                    );
                }
                old += 1;
            }
            db.wait_idle().unwrap();
            check_files(&left, &db).unwrap();
            db.compact_range(None, None).unwrap();
            let again = families(&db);
            assert_eq!(again, found, "{stop} {mode:?}");
        }
        if !stopped {
            break;
        }
    }
    assert!(old > 20 && new >= 4, "{old} without, {new} with the tables");
}

#[test]
fn tables_come_in_one_step_beside_writers_readers_and_compactions() {
    let _alive = watchdog::watch("tables_come_in_one_step", Duration::from_secs(120));
    let fs = MemFs::new();
    let (db, _) = before(&fs);
    let other = db.column_family("other").unwrap();
    let families = [db.default_column_family(), other.clone()];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (writer, done) = (db.clone(), &done);
        // In front of the tables, and now and then a range over all that is there.
        let pair = families.clone();
        scope.spawn(move || {
            let mut rng = Rng::new(1);
            while !done.load(Ordering::Relaxed) {
                let mut batch = WriteBatch::new();
                for family in &pair {
                    batch.put_cf(family, &key(rng.below(100)), &[7; 300]).unwrap();
                }
                writer.write(&mut batch).unwrap();
            }
        });
        let (reader, pair) = (db.clone(), families.clone());
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let snapshot = reader.snapshot();
                let read = ReadOptions {
                    snapshot: Some(snapshot),
                    ..ReadOptions::default()
                };
                let mut seen = Vec::new();
                for family in &pair {
                    for number in [1000, 1049] {
                        let value = reader.get_with(family, &key(number), &read).unwrap();
                        seen.push(value.map(|value| value.to_vec()));
                    }
                }
                assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
            }
        });
        for round in 0..60 {
            let value = format!("round {round} ");
            let files: Vec<_> = families
                .iter()
                .map(|family| {
                    let path = |part: &str| format!("/{round}-{}-{part}", family.id());
                    let paths = vec![
                        table(&fs, &path("a"), &rows(1000, 1020, &value)),
                        // Over the writer's keys in every fourth round.
                        table(
                            &fs,
                            &path("b"),
                            &rows(if round % 4 == 0 { 50 } else { 1020 }, 1050, &value),
                        ),
                    ];
                    (family.clone(), paths)
                })
                .collect();
            db.ingest(&files, &MOVED).unwrap();
            if round % 10 == 9 {
                db.compact_range(None, None).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let wanted = "round 59 ".repeat(20).into_bytes();
    for _ in 0..2 {
        for family in &families {
            for number in 1000..1050 {
                let value = db.get_cf(family, &key(number)).unwrap().unwrap();
                assert!(value.to_vec() == wanted, "{number}");
            }
        }
        db.wait_idle().unwrap();
        db.compact_range(None, None).unwrap();
    }
    check_files(&fs, &db).unwrap();
}
