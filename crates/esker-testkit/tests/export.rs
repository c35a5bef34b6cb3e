//! Exported and imported column families: the family of one moment, in any database, there whole or not at all.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::inspect::Inspector;
use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, Db, Durability, ErrorKind, ImportOptions, KeyOrder,
    Opener, ReadOptions, ReverseBytewiseComparator, U64AddOperator, WriteBatch, WriteOptions,
};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{CreateOptions, Env, Fs as _};
use esker_testkit::crash::{DIR, check_files, check_files_in, family_options, options};
use esker_testkit::oracle::Rows;
use esker_testkit::runner::{scan, scan_all};
use esker_testkit::watchdog;

const EXPORT: &str = "/export";
const OTHER: &str = "/other";

fn env(fs: &MemFs) -> Env {
    Env::simulated_on(fs.clone(), fs.operations())
}

fn open_at(fs: &MemFs, dir: &str) -> Db {
    Opener::new(options()).env(env(fs)).open(dir).unwrap()
}

/// As `options()` has `default`: values in blob files, operands joined.
fn blob_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        merge_operator: Some(Arc::new(AppendOperator::default())),
        ..options().default_column_family
    }
}

fn given(options: ColumnFamilyOptions) -> ImportOptions {
    ImportOptions {
        column_family: Some(options),
        ..ImportOptions::default()
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key{:04}", number * 37 % 400).into_bytes()
}

fn value(round: &str, number: u32) -> Vec<u8> {
    format!("{round} {number} ").repeat(10).into_bytes()
}

fn rows(db: &Db, family: &ColumnFamily) -> Rows {
    scan(db, family, ReadOptions::default()).unwrap()
}

fn property(db: &Db, family: &ColumnFamily, name: &str) -> String {
    let text = db.property(family, name).unwrap();
    assert!(!text.is_empty());
    text
}

/// Rows in several levels and blob files: overwritten, deleted, range-deleted and merged, some of it held by a snapshot.
fn fill(db: &Db, name: &str) -> (ColumnFamily, esker::Snapshot) {
    let family = db.create_column_family(name, blob_options()).unwrap();
    for number in 0..400 {
        db.put_cf(&family, &key(number), &value("first", number)).unwrap();
    }
    db.compact_range_cf(&family, None, None).unwrap();
    let snapshot = db.snapshot();
    for number in 0..100 {
        db.put_cf(&family, &key(number), &value("second", number))
            .unwrap();
        db.delete_cf(&family, &key(number + 100)).unwrap();
        db.merge_cf(&family, &key(number + 150), &value("operand", number))
            .unwrap();
    }
    db.delete_range_cf(&family, b"key0300", b"key0320").unwrap();
    db.flush_cf(&family).unwrap();
    db.wait_idle().unwrap();
    db.pause_background_work();
    for number in 0..20 {
        db.put_cf(&family, &key(number), &value("third", number)).unwrap();
        db.merge_cf(&family, b"key0301", b"behind the range").unwrap();
        if number % 8 == 0 {
            db.flush_cf(&family).unwrap();
        }
    }
    (family, snapshot)
}

/// A database whose file numbers and sequence numbers are those of others, too.
fn other(fs: &MemFs, writes: u32) -> Db {
    let db = open_at(fs, OTHER);
    for number in 0..writes {
        db.put(&key(number), &value("other", number)).unwrap();
    }
    db.flush().unwrap();
    db
}

fn verified(fs: &MemFs, dir: &str) {
    Inspector::with_env(dir, &env(fs))
        .verify(|report| {
            assert!(report.damages.is_empty(), "{report:?}");
        })
        .unwrap();
}

#[test]
fn a_family_comes_as_it_was_into_another_database() {
    let _alive = watchdog::watch("a_family_comes_as_it_was", Duration::from_secs(120));
    for writes in [0, 30, 3000] {
        let fs = MemFs::new();
        let db = open_at(&fs, DIR);
        let (family, held) = fill(&db, "users");
        let wanted = rows(&db, &family);
        let made = db.export_column_family(&family, EXPORT).unwrap();
        assert!(
            made.tables > 4 && made.blob_files > 3 && made.copied_bytes == 0,
            "{made:?}"
        );
        assert_eq!(made.sequence, db.last_sequence());
        let levels = property(&db, &family, "levels");
        assert!(
            levels.split(' ').filter(|count| *count != "0").count() > 1,
            "{levels}"
        );
        // What comes later is not in it.
        db.put_cf(&family, b"later", b"1").unwrap();
        drop(held);
        db.resume_background_work();
        db.compact_range_cf(&family, None, None).unwrap();
        db.close().unwrap();

        let db = other(&fs, writes);
        let mine = rows(&db, &db.default_column_family());
        db.pause_background_work();
        let (family, came) = db
            .import_column_family("came", EXPORT, &given(blob_options()))
            .unwrap();
        assert_eq!(
            (came.tables, came.blob_files, came.bytes),
            (made.tables, made.blob_files, made.bytes)
        );
        assert!(came.sequence >= made.sequence && came.sequence == db.last_sequence());
        assert_eq!(
            property(&db, &family, "levels"),
            levels,
            "every table is in its level"
        );
        assert_eq!(rows(&db, &family), wanted);
        for (key, value) in &wanted {
            assert_eq!(db.get_cf(&family, key).unwrap().unwrap(), *value);
        }
        assert_eq!(rows(&db, &db.default_column_family()), mine);
        // It is durable, and only the one family.
        let fs = fs.crash(CrashMode::DropUnsynced);
        let db = Opener::new(options())
            .env(env(&fs))
            .column_family("came", blob_options())
            .open(OTHER)
            .unwrap();
        let family = db.column_family("came").unwrap();
        assert_eq!(rows(&db, &family), wanted);
        assert_eq!(rows(&db, &db.default_column_family()), mine);
        // A table in the making is reported as one that a crash has left.
        db.wait_idle().unwrap();
        verified(&fs, OTHER);
        // New blob files beside those that came; what is dead in them is collected.
        let mut model: std::collections::BTreeMap<_, _> = wanted.into_iter().collect();
        for number in 0..300 {
            db.put_cf(&family, &key(number), &value("after", number)).unwrap();
            model.insert(key(number), value("after", number));
        }
        db.flush_cf(&family).unwrap();
        assert_eq!(rows(&db, &family), model.clone().into_iter().collect::<Rows>());
        db.compact_range_cf(&family, None, None).unwrap();
        db.wait_idle().unwrap();
        assert_eq!(rows(&db, &family), model.into_iter().collect::<Rows>());
        verified(&fs, OTHER);
        db.drop_column_family(&family).unwrap();
        drop(family);
        db.wait_idle().unwrap();
        assert_eq!(rows(&db, &db.default_column_family()), mine);
        check_files_in(OTHER, &fs, &db).unwrap();
    }
}

/// Their blob files have the same numbers in their rows, and so have those of the cache.
#[test]
fn copies_of_a_family_lie_beside_it_and_go_their_own_ways() {
    let _alive = watchdog::watch("copies_of_a_family", Duration::from_secs(120));
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let (first, held) = fill(&db, "first");
    drop(held);
    db.resume_background_work();
    db.export_column_family(&first, EXPORT).unwrap();
    let mut families = vec![first.clone()];
    for name in ["second", "third"] {
        let (family, _) = db
            .import_column_family(name, EXPORT, &given(blob_options()))
            .unwrap();
        families.push(family);
    }
    let wanted = rows(&db, &first);
    for (number, family) in (0..).zip(&families) {
        assert_eq!(rows(&db, family), wanted);
        for (key, value) in wanted.iter().take(50) {
            assert_eq!(db.get_cf(family, key).unwrap().unwrap(), *value);
            db.put_cf(family, key, &[b'a' + number; 100]).unwrap();
        }
        db.compact_range_cf(family, None, None).unwrap();
    }
    // The same place of the same number is another value by now.
    for (number, family) in (0..).zip(&families) {
        for (key, value) in &wanted {
            let found = db.get_cf(family, key).unwrap().unwrap().into_vec();
            let changed = wanted.iter().take(50).any(|(other, _)| other == key);
            assert_eq!(
                found,
                if changed {
                    vec![b'a' + number; 100]
                } else {
                    value.clone()
                }
            );
        }
    }
    db.drop_column_family(&first).unwrap();
    drop((first, families));
    // An export of what was imported, and back into a database that it has been in.
    let second = db.column_family("second").unwrap();
    let wanted = rows(&db, &second);
    db.export_column_family(&second, "/again").unwrap();
    let beside = other(&fs, 100);
    let (came, _) = beside
        .import_column_family("came", "/again", &given(blob_options()))
        .unwrap();
    beside.put_cf(&came, b"more", &[7; 500]).unwrap();
    beside.flush_cf(&came).unwrap();
    beside.export_column_family(&came, "/back").unwrap();
    let (back, _) = db
        .import_column_family("back", "/back", &given(blob_options()))
        .unwrap();
    let mut expected = wanted;
    expected.push((b"more".to_vec(), vec![7; 500]));
    expected.sort();
    assert_eq!(rows(&db, &back), expected);
    drop((second, back));
    db.wait_idle().unwrap();
    check_files(&fs, &db).unwrap();
    verified(&fs, DIR);
    db.checkpoint("/copy").unwrap();
    verified(&fs, "/copy");
}

#[test]
fn readers_of_before_see_nothing_of_it() {
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let (family, held) = fill(&db, "users");
    db.export_column_family(&family, EXPORT).unwrap();
    let before = db.snapshot();
    let (came, _) = db
        .import_column_family("came", EXPORT, &given(blob_options()))
        .unwrap();
    for snapshot in [held, before] {
        let options = ReadOptions {
            snapshot: Some(snapshot.clone()),
            ..ReadOptions::default()
        };
        assert_eq!(scan(&db, &came, options.clone()).unwrap(), []);
        assert!(!scan(&db, &family, options.clone()).unwrap().is_empty());
        assert_eq!(db.get_with(&came, &key(3), &options).unwrap(), None);
        assert_eq!(
            db.multi_get(&came, &[&key(3), &key(4)], &options).unwrap(),
            [None, None]
        );
        assert!(db.changed_since(&came, &key(3), &snapshot).unwrap());
        assert!(db.range_changed_since(&came, b"a", None, &snapshot).unwrap());
    }
    let after = db.snapshot();
    assert!(!db.changed_since(&came, &key(3), &after).unwrap());
    let options = ReadOptions {
        snapshot: Some(after.clone()),
        ..ReadOptions::default()
    };
    assert_eq!(scan(&db, &came, options).unwrap(), rows(&db, &family));
    db.put_cf(&came, &key(3), b"new").unwrap();
    assert!(db.changed_since(&came, &key(3), &after).unwrap());
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let (family, held) = fill(&db, "users");
    drop(held);
    db.export_column_family(&family, EXPORT).unwrap();
    let refused = |name: &str, dir: &str, how: &ImportOptions, kind: ErrorKind, what: &str| {
        let error = db.import_column_family(name, dir, how).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(db.column_family_names(), ["default", "users"]);
    };
    let fits = given(blob_options());
    let invalid = ErrorKind::InvalidArgument;
    refused("users", EXPORT, &fits, invalid, "exists already");
    refused("", EXPORT, &fits, invalid, "0 bytes");
    refused("came", "/nowhere", &fits, invalid, "no exported column family");
    refused("came", DIR, &fits, invalid, "no exported column family");
    let reverse = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        ..blob_options()
    };
    refused("came", EXPORT, &given(reverse), invalid, "esker.bytewise");
    let sums = ColumnFamilyOptions {
        merge_operator: Some(Arc::new(U64AddOperator)),
        ..blob_options()
    };
    refused("came", EXPORT, &given(sums), invalid, "merged by");
    let again = db.export_column_family(&family, EXPORT).unwrap_err();
    assert_eq!(again.kind(), invalid, "{again}");
    // Damage of every kind.
    let names = fs.list(Path::new(EXPORT)).unwrap();
    let of = |suffix: &str| {
        names
            .iter()
            .filter(|name| name.ends_with(suffix))
            .cloned()
            .collect::<Vec<_>>()
    };
    let path = |name: &str| Path::new(EXPORT).join(name);
    let put = |name: &str, bytes: &[u8]| {
        let mut file = fs.create(&path(name), CreateOptions::default()).unwrap();
        file.append(bytes).unwrap();
        file.finish(true).unwrap();
    };
    let (tables, blobs) = (of(".sst"), of(".blob"));
    for name in [&tables[0], &blobs[0], &"FAMILY".to_owned()] {
        let whole = fs.read_all(&path(name)).unwrap();
        fs.remove(&path(name)).unwrap();
        let kind = if name == "FAMILY" {
            invalid
        } else {
            ErrorKind::NotFound
        };
        refused("came", EXPORT, &fits, kind, "");
        let mut flipped = whole.clone();
        let last = flipped.len() - 3;
        flipped[last] ^= 1;
        put(name, &flipped);
        refused("came", EXPORT, &fits, ErrorKind::Corruption, "");
        fs.remove(&path(name)).unwrap();
        put(name, &whole[..whole.len() - 1]);
        refused("came", EXPORT, &fits, ErrorKind::Corruption, "");
        fs.remove(&path(name)).unwrap();
        put(name, &whole);
    }
    check_files(&fs, &db).unwrap();
    let (came, _) = db.import_column_family("came", EXPORT, &fits).unwrap();
    assert_eq!(rows(&db, &came), rows(&db, &family));
}

#[test]
fn stored_settings_serve_where_none_are_given() {
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let settings = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        merge_operator: Some(Arc::new(U64AddOperator)),
        levels: 9,
        ..family_options()
    };
    let family = db.create_column_family("sums", settings).unwrap();
    for number in 0..50_u64 {
        db.merge_cf(&family, &[number as u8 % 7], &number.to_le_bytes())
            .unwrap();
    }
    db.export_column_family(&family, EXPORT).unwrap();
    let (came, _) = db
        .import_column_family("came", EXPORT, &ImportOptions::default())
        .unwrap();
    assert_eq!(came.options().levels, 9);
    assert_eq!(rows(&db, &came), rows(&db, &family));
    db.merge_cf(&came, &[0], &1_u64.to_le_bytes()).unwrap();
    // One of the program's own has to be brought.
    let own = db
        .create_column_family(
            "own",
            ColumnFamilyOptions {
                merge_operator: Some(Arc::new(Last)),
                ..family_options()
            },
        )
        .unwrap();
    db.merge_cf(&own, b"a", b"1").unwrap();
    db.export_column_family(&own, "/own").unwrap();
    let error = db
        .import_column_family("owned", "/own", &ImportOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("'test.last'"), "{error}");
}

struct Last;

impl esker::MergeOperator for Last {
    fn name(&self) -> &str {
        "test.last"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        Ok(operands.last().copied().unwrap_or_default().to_vec())
    }
}

#[test]
fn an_empty_family_and_one_without_a_log_are_exported() {
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let empty = db.create_column_family("empty", family_options()).unwrap();
    let made = db.export_column_family(&empty, "/empty").unwrap();
    assert_eq!((made.tables, made.bytes), (0, 0));
    let how = ImportOptions::default();
    let (came, _) = db.import_column_family("came", "/empty", &how).unwrap();
    db.put_cf(&came, b"a", b"1").unwrap();
    let unlogged = WriteOptions::durability(Durability::None);
    db.put_cf_with(&empty, b"b", b"2", &unlogged).unwrap();
    db.export_column_family(&empty, EXPORT).unwrap();
    let fs = fs.crash(CrashMode::DropUnsynced);
    let db = open_at(&fs, DIR);
    let (second, _) = db.import_column_family("second", EXPORT, &how).unwrap();
    assert_eq!(rows(&db, &second), [(b"b".to_vec(), b"2".to_vec())]);
}

#[test]
fn files_are_copied_where_they_can_not_be_linked_and_an_export_can_be_moved_in() {
    let fs = MemFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..env(&fs)
    };
    let db = Opener::new(options()).env(env).open(DIR).unwrap();
    let (family, held) = fill(&db, "users");
    drop(held);
    let wanted = rows(&db, &family);
    faults.add(Rule::new(Op::HardLink, Fault::Exdev).sticky());
    let made = db.export_column_family(&family, EXPORT).unwrap();
    assert_eq!(made.copied_bytes, made.bytes);
    let how = ImportOptions {
        move_files: true,
        ..given(blob_options())
    };
    let (came, taken) = db.import_column_family("came", EXPORT, &how).unwrap();
    assert_eq!(taken.copied_bytes, made.bytes);
    assert!(!fs.exists(Path::new(EXPORT)).unwrap(), "it was moved");
    assert_eq!(rows(&db, &came), wanted);
    faults.clear();
    // Any other failure is one, and leaves nothing.
    faults.add(Rule::new(Op::HardLink, Fault::Enospc).nth(3));
    assert_eq!(
        db.export_column_family(&family, EXPORT).unwrap_err().kind(),
        ErrorKind::NoSpace
    );
    assert!(!fs.exists(Path::new("/export.unfinished")).unwrap());
    db.export_column_family(&family, EXPORT).unwrap();
    for nth in 1..5 {
        faults.add(Rule::new(Op::HardLink, Fault::Enospc).nth(nth));
        let error = db.import_column_family("full", EXPORT, &how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
    }
    faults.clear();
    check_files(&fs, &db).unwrap();
    // A sync of the manifest that fails leaves the database without the family, also after a crash.
    faults.add(Rule::new(Op::Sync, Fault::Eio).on_path("MANIFEST"));
    db.import_column_family("failed", EXPORT, &how).unwrap_err();
    assert!(db.column_family("failed").is_err());
    db.put(b"a", b"1").unwrap();
    let (last, _) = db.import_column_family("last", EXPORT, &how).unwrap();
    assert_eq!(rows(&db, &last), wanted);
    db.close().unwrap();
    let db = open_at(&fs, DIR);
    assert_eq!(rows(&db, &db.column_family("last").unwrap()), wanted);
    check_files(&fs, &db).unwrap();
    assert!(!fs.exists(Path::new(EXPORT)).unwrap());
}

#[test]
fn a_crash_at_any_write_of_an_export_leaves_all_of_it_or_none() {
    let _alive = watchdog::watch("a_crash_at_any_write_of_an_export", Duration::from_secs(300));
    let (mut whole, mut none) = (0, 0);
    for stop in 0.. {
        let fs = MemFs::new();
        let db = open_at(&fs, DIR);
        let (family, _held) = fill(&db, "users");
        let wanted = rows(&db, &family);
        db.sync_wal().unwrap();
        fs.stop_after(Some(stop));
        let made = db.export_column_family(&family, EXPORT);
        let stopped = fs.is_stopped();
        for mode in [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: stop },
        ] {
            let left = fs.crash(mode);
            let there = left.exists(Path::new(EXPORT)).unwrap();
            assert!(there || made.is_err(), "{stop} {mode:?}");
            let db = Opener::new(options())
                .env(env(&left))
                .column_family("users", blob_options())
                .open(DIR)
                .unwrap();
            let family = db.column_family("users").unwrap();
            assert_eq!(rows(&db, &family), wanted, "{stop} {mode:?}");
            if there {
                whole += 1;
            } else {
                none += 1;
                db.export_column_family(&family, EXPORT).unwrap();
                assert!(!left.exists(Path::new("/export.unfinished")).unwrap());
            }
            let (came, _) = db
                .import_column_family("came", EXPORT, &given(blob_options()))
                .unwrap();
            assert_eq!(rows(&db, &came), wanted, "{stop} {mode:?}");
        }
        if !stopped {
            break;
        }
    }
    assert!(whole >= 3 && none > 30, "{whole} whole, {none} none");
}

#[test]
fn a_crash_at_any_write_of_an_import_leaves_all_of_it_or_none() {
    let _alive = watchdog::watch("a_crash_at_any_write_of_an_import", Duration::from_secs(300));
    for move_files in [false, true] {
        let (mut whole, mut none) = (0, 0);
        let how = ImportOptions {
            move_files,
            ..given(blob_options())
        };
        for stop in 0.. {
            let fs = MemFs::new();
            let db = open_at(&fs, DIR);
            let (family, _held) = fill(&db, "users");
            let wanted = rows(&db, &family);
            db.export_column_family(&family, EXPORT).unwrap();
            let db = other(&fs, 40);
            let mut mine = scan_all(&db).unwrap();
            // What was not synced before is durable with the import.
            db.put(b"before", b"1").unwrap();
            fs.stop_after(Some(stop));
            let made = db.import_column_family("came", EXPORT, &how);
            let stopped = fs.is_stopped();
            for mode in [
                CrashMode::KeepAll,
                CrashMode::DropUnsynced,
                CrashMode::Torn { seed: stop },
            ] {
                let left = fs.crash(mode);
                let db = Opener::new(options()).env(env(&left)).open(OTHER).unwrap();
                let there = db.column_family_names().len() == 2;
                assert!(there || made.is_err(), "{stop} {mode:?}");
                if there {
                    whole += 1;
                    let came = db.column_family("came").unwrap();
                    assert_eq!(rows(&db, &came), wanted, "{stop} {mode:?}");
                    assert_eq!(db.get(b"before").unwrap().unwrap(), *b"1", "{stop} {mode:?}");
                    // Numbers go on behind those that rows know.
                    db.put_cf(&came, b"later", &[7; 500]).unwrap();
                    db.compact_range_cf(&came, None, None).unwrap();
                    assert_eq!(rows(&db, &came).len(), wanted.len() + 1);
                    db.drop_column_family(&came).unwrap();
                } else {
                    none += 1;
                    let (came, _) = db.import_column_family("came", EXPORT, &how).unwrap();
                    assert_eq!(rows(&db, &came), wanted, "{stop} {mode:?}");
                    db.drop_column_family(&came).unwrap();
                }
                mine.insert(0, {
                    let mut rows = mine[&0].clone();
                    rows.retain(|(key, _)| key != b"before");
                    if db.get(b"before").unwrap().is_some() {
                        rows.push((b"before".to_vec(), b"1".to_vec()));
                        rows.sort();
                    }
                    rows
                });
                assert_eq!(scan_all(&db).unwrap(), mine, "{stop} {mode:?}");
            }
            if !stopped {
                break;
            }
        }
        assert!(whole >= 3 && none > 30, "{whole} whole, {none} none");
    }
}

#[test]
fn exports_beside_writers_are_each_one_moment() {
    let _alive = watchdog::watch("exports_beside_writers", Duration::from_secs(120));
    let fs = MemFs::new();
    let db = open_at(&fs, DIR);
    let family = db.create_column_family("users", blob_options()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (writer, done, users) = (db.clone(), &done, &family);
        scope.spawn(move || {
            for number in 0_u32.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let mut batch = WriteBatch::new();
                for half in 0..2_u32 {
                    let key = [&half.to_be_bytes()[..], &(number % 300).to_be_bytes()].concat();
                    batch
                        .put_cf(users, &key, &number.to_be_bytes().repeat(50))
                        .unwrap();
                }
                writer.write(&mut batch).unwrap();
            }
        });
        for round in 0..15 {
            let dir = format!("/export{round}");
            db.export_column_family(&family, &dir).unwrap();
            let name = format!("copy{round}");
            let (came, _) = db
                .import_column_family(&name, &dir, &given(blob_options()))
                .unwrap();
            let all = rows(&db, &came);
            let (first, second) = all.split_at(all.len() / 2);
            let values =
                |rows: &[(Vec<u8>, Vec<u8>)]| rows.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
            assert_eq!(values(first), values(second), "both halves of every batch");
            db.drop_column_family(&came).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
