//! Verification finds every flipped byte that matters, and nothing in a whole database.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use esker::inspect::{FileRole, Inspector};
use esker::{Db, ErrorKind, Options};

/// Tables, a manifest with several groups, and a log with rows.
fn sample(dir: &Path) {
    let db = Db::open(dir, Options::default()).unwrap();
    for round in 0..2 {
        for i in 0..40_u32 {
            db.put(
                format!("key{i:04}").as_bytes(),
                format!("value {round}").as_bytes(),
            )
            .unwrap();
        }
        db.delete_range(b"key0010", b"key0020").unwrap();
        db.flush().unwrap();
    }
    for i in 0..10_u32 {
        db.put(format!("log{i:04}").as_bytes(), b"in the log").unwrap();
    }
    db.close().unwrap();
}

fn damaged(dir: &Path) -> Vec<PathBuf> {
    let mut damaged = Vec::new();
    let summary = Inspector::new(dir)
        .verify(|file| {
            if !file.damages.is_empty() {
                damaged.push(file.path.clone());
            }
        })
        .unwrap();
    assert_eq!(summary.damaged, damaged.len() as u64);
    damaged
}

fn files(dir: &Path, role: FileRole) -> Vec<PathBuf> {
    let files = Inspector::new(dir).files().unwrap().into_iter();
    let files: Vec<_> = files
        .filter(|file| file.role == Some(role) && file.size_bytes > 0)
        .map(|file| file.path)
        .collect();
    assert!(!files.is_empty(), "{role:?}");
    files
}

/// Flips one bit in each byte of `range` in turn; the file must be named each time.
fn flip_each(dir: &Path, path: &Path, range: impl IntoIterator<Item = usize>) {
    let whole = std::fs::read(path).unwrap();
    for at in range {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(path, &bytes).unwrap();
        assert_eq!(damaged(dir), [path], "byte {at} of {}", path.display());
    }
    std::fs::write(path, &whole).unwrap();
}

#[test]
fn every_byte_of_a_table_matters() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    assert!(damaged(dir.path()).is_empty());
    let table = files(dir.path(), FileRole::Table).remove(0);
    let len = std::fs::metadata(&table).unwrap().len() as usize;
    flip_each(dir.path(), &table, 0..len);
    assert!(damaged(dir.path()).is_empty());
}

#[test]
fn every_byte_before_the_last_record_of_log_and_manifest_matters() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let log = files(dir.path(), FileRole::Wal).pop().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let find = |text: &[u8]| bytes.windows(text.len()).position(|part| part == text).unwrap();
    // The last record may be torn: a crash leaves that, and nobody was told that it is durable.
    flip_each(dir.path(), &log, 64..find(b"log0008"));

    let mut last = 0;
    Inspector::new(dir.path())
        .edits(|edit| last = edit.offset)
        .unwrap();
    let manifest = Inspector::new(dir.path()).describe().unwrap().manifest;
    // Bytes 8 to 11 are the format's version: another one is refused before it is judged.
    flip_each(dir.path(), &manifest, (0..8).chain(12..last as usize));
    let whole = std::fs::read(&manifest).unwrap();
    let mut newer = whole.clone();
    newer[8] = 99;
    std::fs::write(&manifest, newer).unwrap();
    let error = Inspector::new(dir.path()).verify(|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    std::fs::write(&manifest, whole).unwrap();
    let current = dir.path().join("CURRENT");
    let len = std::fs::metadata(&current).unwrap().len() as usize;
    flip_each(dir.path(), &current, 0..len);
}

#[test]
fn a_dump_gives_every_version_and_every_batch() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let inspector = Inspector::new(dir.path());
    let info = inspector.describe().unwrap();
    let mut rows = 0;
    for table in &info.families[0].tables {
        let dump = inspector.table(table.number).unwrap();
        dump.entries(|entry| {
            assert!((table.sequence_min..=table.sequence_max).contains(&entry.sequence));
            rows += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let tombstones: Vec<_> = dump.range_tombstones().map(|t| (t.start, t.end)).collect();
        assert_eq!(tombstones, [(&b"key0010"[..], &b"key0020"[..])]);
    }
    // Two flushes of 40 rows, of which the range tombstone behind them took ten each.
    assert_eq!(rows, 60);
    let log = files(dir.path(), FileRole::Wal).pop().unwrap();
    let mut keys = Vec::new();
    let segment = inspector.segment_at(&log).unwrap();
    let summary = segment
        .batches(|batch| {
            keys.extend(batch.mutations().map(|mutation| mutation.unwrap().key.to_vec()));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((keys.len() as u64, summary.damages), (summary.batches, 0));
    assert_eq!(keys[keys.len() - 1], b"log0009");
}
