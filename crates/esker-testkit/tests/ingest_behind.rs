//! Tables ingested behind what is there: keys that have values keep them, whatever happened to the tree before.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use esker::{
    AppendOperator, ColumnFamilyOptions, Db, Durability, ErrorKind, IngestOptions, IngestSummary,
    ReadOptions, TableFileWriter, WriteOptions,
};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{Env, Fs as _};
use esker_testkit::crash::{DIR, check_files, family_options, open};
use esker_testkit::runner::{scan, scan_all};
use esker_testkit::watchdog;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const BEHIND: IngestOptions = IngestOptions {
    move_files: false,
    behind: true,
};

fn env(fs: &MemFs) -> Env {
    Env::simulated_on(fs.clone(), fs.operations())
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn value(what: &str) -> Vec<u8> {
    what.repeat(20).into_bytes()
}

fn table(fs: &MemFs, path: &str, numbers: impl Iterator<Item = usize>, what: &str) -> PathBuf {
    let mut writer = TableFileWriter::create_on(&env(fs), path, &family_options()).unwrap();
    for number in numbers {
        writer.put(&key(number), &value(what)).unwrap();
    }
    writer.finish().unwrap();
    path.into()
}

fn ingest(db: &Db, path: &Path) -> esker::Result<IngestSummary> {
    db.ingest(&[(db.default_column_family(), vec![path.to_owned()])], &BEHIND)
}

fn all(db: &Db) -> Rows {
    let family = db.default_column_family();
    let rows = scan(db, &family, ReadOptions::default()).unwrap();
    rows.into_iter().collect()
}

/// Puts 0 to 300, deletes some of them one by one and some as a range.
fn fill(db: &Db) -> Rows {
    let mut wanted = Rows::new();
    for number in 0..300 {
        db.put(&key(number), &value("old ")).unwrap();
        wanted.insert(key(number), value("old "));
    }
    for number in 50..80 {
        db.delete(&key(number)).unwrap();
        wanted.remove(&key(number));
    }
    db.delete_range(&key(100), &key(150)).unwrap();
    wanted.retain(|at, _| *at < key(100) || *at >= key(150));
    wanted
}

/// A delete whose tombstone compactions have removed, and one whose tombstone is there, are the same.
#[test]
fn what_has_a_value_keeps_it_and_what_was_deleted_has_none() {
    for compacted in [false, true] {
        let fs = MemFs::new();
        let db = open(&fs).unwrap();
        let mut wanted = fill(&db);
        if compacted {
            db.compact_range(None, None).unwrap();
        }
        let before = db.snapshot();
        let path = table(&fs, "/1", 0..400, "new ");
        let made = ingest(&db, &path).unwrap();
        assert_eq!((made.tables, made.left_out), (1, wanted.len() as u64));
        assert_eq!(made.sequence, db.last_sequence());
        let old = wanted.clone();
        for number in 0..400 {
            wanted.entry(key(number)).or_insert_with(|| value("new "));
        }
        assert_eq!(
            wanted.values().filter(|found| **found == value("new ")).count(),
            180
        );
        let snapshot = ReadOptions {
            snapshot: Some(before),
            ..ReadOptions::default()
        };
        for _ in 0..2 {
            assert_eq!(all(&db), wanted, "compacted before: {compacted}");
            let seen = scan(&db, &db.default_column_family(), snapshot.clone()).unwrap();
            assert_eq!(seen.into_iter().collect::<Rows>(), old);
            db.compact_range(None, None).unwrap();
        }
        drop(snapshot);
        // Writes of after are newer, and once more nothing is left to come in.
        db.put(&key(60), b"later").unwrap();
        db.delete(&key(61)).unwrap();
        wanted.insert(key(60), b"later".to_vec());
        let made = ingest(&db, &path).unwrap();
        assert_eq!((made.tables, made.left_out), (1, 399), "61 alone");
        assert_eq!(all(&db), wanted);
        let made = ingest(&db, &path).unwrap();
        assert_eq!((made.tables, made.bytes, made.left_out), (0, 0, 400));
        db.wait_idle().unwrap();
        check_files(&fs, &db).unwrap();
        let db = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
        assert_eq!(all(&db), wanted);
    }
}

/// It is not written anew.
#[test]
fn a_table_of_new_keys_comes_in_as_it_is() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    for number in 0..300 {
        db.put(&key(2 * number), &value("old ")).unwrap();
    }
    db.flush().unwrap();
    let path = table(&fs, "/1", (0..300).map(|number| 2 * number + 1), "new ");
    let made = ingest(&db, &path).unwrap();
    assert_eq!((made.tables, made.left_out), (1, 0));
    assert_eq!(made.bytes, fs.file_len(&path).unwrap());
    assert_eq!(all(&db).len(), 600);
    let moved = IngestOptions {
        move_files: true,
        ..BEHIND
    };
    let families = [(db.default_column_family(), vec![path.clone()])];
    assert_eq!(db.ingest(&families, &moved).unwrap().left_out, 300);
    assert!(
        !fs.exists(&path).unwrap(),
        "moved, also where nothing of it was wanted"
    );
}

#[test]
fn what_can_not_come_in_behind_is_refused() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut deletes = TableFileWriter::create_on(&env(&fs), "/1", &family_options()).unwrap();
    deletes.delete(b"a").unwrap();
    deletes.finish().unwrap();
    let mut ranges = TableFileWriter::create_on(&env(&fs), "/2", &family_options()).unwrap();
    ranges.put(b"b", b"2").unwrap();
    ranges.delete_range(b"a", b"z").unwrap();
    ranges.finish().unwrap();
    for path in ["/1", "/2"] {
        let error = ingest(&db, Path::new(path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("deletes"), "{error}");
    }
    let overlapping = vec![table(&fs, "/3", 0..10, "new "), table(&fs, "/4", 9..20, "new ")];
    let error = db
        .ingest(&[(db.default_column_family(), overlapping)], &BEHIND)
        .unwrap_err();
    assert!(error.message().contains("overlap"), "{error}");
    assert_eq!(all(&db).len(), 1);
    check_files(&fs, &db).unwrap();
}

#[test]
fn operands_are_values_of_keys_that_have_them_and_rows_without_a_log_count() {
    let fs = MemFs::new();
    let settings = ColumnFamilyOptions {
        merge_operator: Some(Arc::new(AppendOperator::default())),
        ..family_options()
    };
    let db = open(&fs).unwrap();
    let lists = db.create_column_family("lists", settings.clone()).unwrap();
    let unlogged = WriteOptions::durability(Durability::None);
    db.merge_cf_with(&lists, b"a", b"old", &unlogged).unwrap();
    db.put_cf_with(&lists, b"b", b"old", &unlogged).unwrap();
    let mut writer = TableFileWriter::create_on(&env(&fs), "/1", &settings).unwrap();
    writer.put(b"a", b"new").unwrap();
    writer.merge(b"b", b"new").unwrap();
    writer.merge(b"c", b"new").unwrap();
    writer.finish().unwrap();
    let made = db.ingest(&[(lists.clone(), vec!["/1".into()])], &BEHIND).unwrap();
    assert_eq!(made.left_out, 2);
    db.merge_cf(&lists, b"c", b"last").unwrap();
    db.sync_wal().unwrap();
    let db = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
    let rows = scan(&db, &db.column_family("lists").unwrap(), ReadOptions::default()).unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|(_, value)| value.escape_ascii().to_string())
        .collect();
    assert_eq!(rows, ["old", "old", "newlast"]);
}

/// The file is gone, so what it was left out for must not be.
#[test]
fn what_rows_are_left_out_for_is_durable() {
    let moved = IngestOptions {
        move_files: true,
        ..BEHIND
    };
    for durability in [Durability::Buffered, Durability::None] {
        for new in [0, 1] {
            let fs = MemFs::new();
            let db = open(&fs).unwrap();
            let other = db.create_column_family("other", family_options()).unwrap();
            let how = WriteOptions::durability(durability);
            db.put_with(&key(0), b"old", &how).unwrap();
            db.put_cf_with(&other, &key(0), b"old", &how).unwrap();
            let files = [
                (db.default_column_family(), vec![table(&fs, "/1", 0..1, "new ")]),
                (other, vec![table(&fs, "/2", 0..1 + new, "new ")]),
            ];
            let made = db.ingest(&files, &moved).unwrap();
            assert_eq!((made.tables, made.left_out), (new as u64, 2));
            let db = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
            let found = scan_all(&db).unwrap();
            assert_eq!(found[&0], [(key(0), b"old".to_vec())], "{durability:?} {new}");
            assert_eq!(found[&1][0], (key(0), b"old".to_vec()), "{durability:?} {new}");
            assert_eq!(found[&1].len(), 1 + new);
        }
    }
}

#[test]
fn a_crash_at_any_write_leaves_all_of_the_rest_or_nothing() {
    let _alive = watchdog::watch("a_crash_at_any_write_behind", Duration::from_secs(300));
    let (mut old, mut new) = (0, 0);
    for stop in 0.. {
        let fs = MemFs::new();
        let db = open(&fs).unwrap();
        let before = fill(&db);
        let path = table(&fs, "/1", 0..400, "new ");
        let mut after = before.clone();
        for number in 0..400 {
            after.entry(key(number)).or_insert_with(|| value("new "));
        }
        db.wait_idle().unwrap();
        db.sync_wal().unwrap();
        fs.stop_after(Some(stop));
        let done = ingest(&db, &path).is_ok();
        let stopped = fs.is_stopped();
        for mode in [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: stop },
        ] {
            let left = fs.crash(mode);
            let db = open(&left).unwrap();
            let found = all(&db);
            if found == after {
                new += 1;
            } else {
                assert!(found == before && !done, "{stop} {mode:?}");
                old += 1;
            }
            db.wait_idle().unwrap();
            check_files(&left, &db).unwrap();
            ingest(&db, &path).unwrap();
            assert!(all(&db) == after, "{stop} {mode:?}");
        }
        if !stopped {
            break;
        }
    }
    assert!(old > 20 && new >= 3, "{old} without it, {new} with it");
}

/// Writers change the very keys that come in, all the time: what they wrote last stands, and what they deleted either got its row
/// behind the delete, or was deleted after it came.
#[test]
fn writers_beside_it_lose_nothing() {
    let _alive = watchdog::watch("writers_beside_it_lose_nothing", Duration::from_secs(120));
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let path = table(&fs, "/1", 0..400, "new ");
    let (done, written) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        let (writer, done, written) = (db.clone(), &done, &written);
        let last = scope.spawn(move || {
            let mut last = BTreeMap::new();
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let at = number * 7 % 200;
                writer
                    .put(&key(at), format!("writer {number}").as_bytes())
                    .unwrap();
                last.insert(key(at), format!("writer {number}").into_bytes());
                written.fetch_add(1, Ordering::Relaxed);
            }
            last
        });
        for _ in 0..8 {
            let seen = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < seen + 20 {
                std::thread::yield_now();
            }
            made.push(ingest(&db, &path).unwrap());
        }
        done.store(true, Ordering::Relaxed);
        let last = last.join().unwrap();
        let found = all(&db);
        for number in 0..400 {
            let wanted = last.get(&key(number)).cloned().unwrap_or_else(|| value("new "));
            assert_eq!(found[&key(number)], wanted, "{number}");
        }
    });
    assert_eq!(made[0].tables, 1);
    assert!(
        made[1..]
            .iter()
            .all(|made| (made.tables, made.left_out) == (0, 400)),
        "{made:?}"
    );
    db.wait_idle().unwrap();
    check_files(&fs, &db).unwrap();
    assert!(
        !fs.list(Path::new(DIR))
            .unwrap()
            .iter()
            .any(|name| name.ends_with(".tmp"))
    );
    assert_eq!(scan_all(&db).unwrap().len(), 1);
}
