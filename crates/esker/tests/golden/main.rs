//! Databases of every released format, checked in, are opened for ever: here, with everything in them compared.
//!
//! `make golden` writes the folder of the current format (`v3/`) where it is missing: the files of a database, and
//! `expected.txt` with its rows as an oracle says them. A released folder is never written again.

mod content;
mod coverage;
mod expected;
mod later;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use content::Content;
use esker::inspect::Inspector;
use esker::{Db, ErrorKind, Iter, Mutation, Opener, Options, ReadOptions, WriteOptions};
use esker_env::{Env, Fs};
use expected::Expected;

/// The folder of the format that this code writes.
const VERSION: &str = "v3";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Names and bytes of a database's files, by name.
type Files = Vec<(String, Vec<u8>)>;

/// A golden database, written on a simulated machine.
fn written() -> (Files, Expected) {
    let (env, files) = Env::simulated(1);
    let dir = Path::new("/golden");
    let expected = Content::write(env, dir);
    let mut names = files.list(dir).expect("a folder");
    names.sort();
    let read = |name: String| {
        let bytes = files.read_all(&dir.join(&name)).expect("a file");
        (name, bytes)
    };
    (names.into_iter().map(read).collect(), expected)
}

fn put(files: &Files, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for (name, bytes) in files {
        fs::write(to.join(name), bytes).expect("a file");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a golden database") {
        let entry = entry.expect("a file");
        if entry.file_name() != "expected.txt" {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}

fn open(dir: &Path, read_only: bool) -> Db {
    let opener = Opener::new(Options {
        read_only,
        create_if_missing: false,
        memory_budget_bytes: 8 << 20,
        ..Options::default()
    });
    // Orders of the user's own are never stored; all other settings are.
    let (name, options) = content::own_order();
    opener
        .column_family(name, options)
        .open(dir)
        .expect("the golden database opens")
}

/// All rows in the direction of `step`, from where the iterator stands.
fn rows(iter: &mut Iter, step: fn(&mut Iter) -> esker::Result<()>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        step(iter).expect("a row");
    }
    rows
}

fn compare(db: &Db, expected: &Expected) {
    let mut names = db.column_family_names();
    names.sort();
    assert!(expected.names().eq(&names), "{names:?}");
    for name in expected.names() {
        let family = db.column_family(name).expect("a family");
        let mut iter = db.iter_cf(&family, ReadOptions::default()).expect("an iterator");
        iter.seek_to_first().expect("positioned");
        let forward = rows(&mut iter, Iter::next);
        iter.seek_to_last().expect("positioned");
        let mut backward = rows(&mut iter, Iter::prev);
        backward.reverse();
        assert!(forward == backward, "{name}: the two directions agree");
        let order = family.options().key_order;
        assert!(
            forward.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_lt()),
            "{name}"
        );
        expected.compare(name, &forward);
        for (key, value) in &forward {
            let got = db.get_cf(&family, key).expect("readable");
            assert_eq!(got.as_deref(), Some(value.as_slice()), "{name}");
        }
        for key in [&b""[..], b"key", b"single000", b"zzzzzzzzzz"] {
            let scanned = forward.iter().any(|(found, _)| found == key);
            let got = db.get_cf(&family, key).expect("readable");
            assert_eq!(got.is_some(), scanned, "{name}");
        }
    }
}

/// Opens a copy in every way and compares everything, before and after all of it was rewritten.
fn check(original: &Path, expected: &Expected) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let dir = dir.path().join("copy");
    copy(original, &dir);
    verify(&dir);
    {
        let db = open(&dir, true);
        compare(&db, expected);
        assert_eq!(
            db.put(b"a", b"b").expect_err("refused").kind(),
            ErrorKind::ReadOnly
        );
    }
    for entry in fs::read_dir(original).expect("a golden database") {
        let path = entry.expect("a file").path();
        if path.file_name().is_some_and(|name| name != "expected.txt") {
            let copied = dir.join(path.file_name().expect("a name"));
            assert!(
                fs::read(&path).expect("a file") == fs::read(&copied).expect("a file"),
                "reading changed {}",
                copied.display()
            );
        }
    }
    {
        let db = open(&dir, false);
        let report = db.recovery_report();
        assert!(report.batches > 0, "rows were in the WAL alone");
        assert_eq!((report.damages, report.lost_bytes), (0, 0), "{report:?}");
        compare(&db, expected);
        for name in expected.names() {
            let family = db.column_family(name).expect("a family");
            db.compact_range_cf(&family, None, None).expect("compacted");
        }
        compare(&db, expected);
    }
    {
        let db = open(&dir, false);
        compare(&db, expected);
        decide(&db);
    }
    verify(&dir);
}

/// What is prepared still is what it was: committed, it shows.
fn decide(db: &Db) {
    for prepared in db.prepared() {
        let committed = db.commit_prepared(prepared.name(), &WriteOptions::default());
        committed.expect("committed");
        for mutation in prepared.mutations() {
            let Mutation::Put { key, value, .. } = mutation else {
                panic!("{mutation:?} is prepared");
            };
            let got = db.get(key).expect("readable");
            assert_eq!(got.as_deref(), Some(value));
        }
    }
}

/// Every file is whole, and what the manifest says of it.
fn verify(dir: &Path) {
    let summary = Inspector::new(dir).verify(|file| assert!(file.damages.is_empty(), "{file:?}"));
    assert!(summary.expect("a database").files > 0);
}

/// How the records of a blob file are compressed (docs/formats/blob.md).
fn compressions(bytes: &[u8]) -> BTreeSet<u8> {
    let mut found = BTreeSet::new();
    let mut at = 32;
    while at < bytes.len() - 64 {
        let stored = bytes[at + 4..at + 8].try_into().expect("four bytes");
        found.insert(bytes[at + 8]);
        at += 9 + u32::from_le_bytes(stored) as usize;
    }
    found
}

#[test]
fn every_released_format_is_read_and_together_they_hold_all_that_the_code_knows() {
    let (files, expected) = written();
    let current = folder().join(VERSION);
    if std::env::var_os("ESKER_WRITE_GOLDEN").is_some() && !current.exists() {
        put(&files, &current);
        fs::write(current.join("expected.txt"), expected.to_text()).expect("a file");
    }
    let mut versions = 0;
    for entry in fs::read_dir(folder()).expect("the golden databases") {
        let path = entry.expect("a golden database").path();
        if path.is_dir() {
            let text = fs::read_to_string(path.join("expected.txt")).expect("expected.txt");
            check(&path, &Expected::from_text(&text));
            versions += 1;
        }
    }
    assert!(versions > 0 && current.exists(), "run `make golden`");
    coverage::check();
}

#[test]
fn what_is_written_today_is_read_and_the_same_each_time() {
    let (files, expected) = written();
    let (again, _) = written();
    let names = |files: &Files| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&files), names(&again));
    for ((name, bytes), (_, other)) in files.iter().zip(&again) {
        assert!(bytes == other, "{name} differs from run to run");
    }
    // Bit 0 of a footer's flags: the index is partitioned (docs/formats/sstable.md).
    let partitioned = |(name, bytes): &(String, Vec<u8>)| {
        name.ends_with(".sst") && bytes.len() > 128 && bytes[bytes.len() - 32] & 1 == 1
    };
    assert!(files.iter().any(partitioned), "no index is partitioned");
    let blobs = files.iter().filter(|(name, _)| name.ends_with(".blob"));
    let found: BTreeSet<u8> = blobs.flat_map(|(_, bytes)| compressions(bytes)).collect();
    assert_eq!(found, BTreeSet::from([0, 1, 2, 3, 4]), "all compressions");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let dir = dir.path().join("written");
    put(&files, &dir);
    {
        let db = open(&dir, true);
        let names: Vec<_> = db.prepared().iter().map(|batch| batch.name().to_vec()).collect();
        assert_eq!(names, [later::UNDECIDED]);
        let (name, operator) = later::GETS_OPERATOR;
        let family = db.column_family(name).expect("a family");
        assert_eq!(family.merge_operator().expect("an operator").name(), operator);
    }
    check(&dir, &expected);
}
