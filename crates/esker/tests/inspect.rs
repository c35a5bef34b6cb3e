//! Verification finds every flipped byte that matters, and nothing in a whole database.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use esker::blob::BlobWriter;
use esker::codec::checksum;
use esker::inspect::{BlobPointer, FileRole, Inspector};
use esker::{
    ColumnFamilyOptions, Compression, Db, ErrorKind, IngestOptions, Options, TableFileWriter, WriteBatch,
    WriteOptions,
};
use esker_env::{CreateOptions, Env};

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

/// Two blob files, the values of which are live, and garbage in the first.
fn sample_with_blobs(dir: &Path) {
    let db = Db::open(dir, Options::default()).unwrap();
    for (key, len) in [("a", 512), ("b", 700), ("c", 511), ("d", 600)] {
        db.put(key.as_bytes(), &vec![key.as_bytes()[0]; len]).unwrap();
    }
    db.flush().unwrap();
    db.put(b"b", &[b'B'; 800]).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
}

/// What is wrong with the one file that is damaged.
fn damage(dir: &Path) -> (PathBuf, String) {
    let mut found = Vec::new();
    let report = |file: &esker::inspect::FileReport| {
        found.extend(
            file.damages
                .iter()
                .map(|error| (file.path.clone(), error.to_string())),
        );
    };
    Inspector::new(dir).verify(report).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
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

#[test]
fn every_byte_of_a_blob_file_matters() {
    let dir = tempfile::tempdir().unwrap();
    sample_with_blobs(dir.path());
    assert!(damaged(dir.path()).is_empty());
    let blobs = files(dir.path(), FileRole::Blob);
    assert_eq!(blobs.len(), 2);
    let len = std::fs::metadata(&blobs[0]).unwrap().len() as usize;
    flip_each(dir.path(), &blobs[0], 0..len);
    assert!(damaged(dir.path()).is_empty());
}

#[test]
fn the_manifest_says_which_blob_files_there_are_and_what_is_live() {
    let dir = tempfile::tempdir().unwrap();
    sample_with_blobs(dir.path());
    let inspector = Inspector::new(dir.path());
    let family = inspector.describe().unwrap().families.remove(0);
    let [first, second] = &family.blobs[..] else {
        panic!("{:?}", family.blobs)
    };
    let record = |len: u64| len + 9;
    assert_eq!((first.blob.records, first.live_records), (3, 3));
    assert_eq!(first.blob.record_bytes, record(512) + record(700) + record(600));
    assert_eq!((second.blob.records, second.live_bytes), (1, record(800)));
    for used in &family.blobs {
        let on_disk = std::fs::metadata(&used.blob.path).unwrap().len();
        assert_eq!(
            (used.blob.size_bytes, used.blob.record_bytes + 96),
            (on_disk, on_disk)
        );
    }
    let mut refs: Vec<_> = family
        .tables
        .iter()
        .flat_map(|table| table.blobs.clone())
        .collect();
    refs.sort_by_key(|part| part.file);
    let live = |part: &esker::inspect::BlobRef| (part.file, part.records, part.bytes);
    let used = |used: &esker::inspect::BlobUseInfo| (used.blob.number, used.live_records, used.live_bytes);
    assert!(refs.iter().map(live).eq(family.blobs.iter().map(used)));
    let mut added = Vec::new();
    inspector.edits(|edit| added.extend(edit.added_blobs)).unwrap();
    assert!(
        added.contains(&first.blob) && added.contains(&second.blob),
        "{added:?}"
    );
}

#[test]
fn blob_files_that_are_missing_cut_or_another_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    sample_with_blobs(dir.path());
    let blobs = files(dir.path(), FileRole::Blob);
    let (first, other) = (&blobs[0], &blobs[1]);
    let whole = std::fs::read(first).unwrap();

    std::fs::remove_file(first).unwrap();
    let (path, what) = damage(dir.path());
    assert_eq!(&path, first);
    assert!(what.contains("missing; the manifest needs it"), "{what}");

    for len in [0, 31, 95, whole.len() - 1] {
        std::fs::write(first, &whole[..len]).unwrap();
        assert_eq!(&damage(dir.path()).0, first, "{len}");
    }
    std::fs::copy(other, first).unwrap();
    let (path, what) = damage(dir.path());
    assert!(path == *first && what.contains("is number"), "{what}");

    // Whole in itself, but not what the manifest says.
    std::fs::remove_file(first).unwrap();
    let id = Inspector::new(dir.path()).describe().unwrap().database_id as u64;
    let number: u64 = first.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let file = Env::posix().fs.create(first, CreateOptions::default()).unwrap();
    let mut writer = BlobWriter::new(file, first, id, number, Compression::None).unwrap();
    // As long as the real one, in fewer records.
    let values = whole.len() - 96 - 2 * 9;
    writer.add(&vec![1; values / 2]).unwrap();
    writer.add(&vec![2; values - values / 2]).unwrap();
    assert_eq!(writer.finish(false).unwrap().file_bytes, whole.len() as u64);
    let (path, what) = damage(dir.path());
    assert!(
        path == *first && what.contains("records: the blob file has 2, the manifest says 3"),
        "{what}"
    );
}

#[test]
fn blob_files_that_the_manifest_does_not_name_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    sample_with_blobs(dir.path());
    let blob = files(dir.path(), FileRole::Blob).remove(0);
    let whole = std::fs::read(&blob).unwrap();
    let unlisted = dir.path().join("900000.blob");
    let verdict = || {
        let mut note = None;
        let summary = Inspector::new(dir.path())
            .verify(|file| {
                if file.path == unlisted {
                    note = Some((file.note.clone().unwrap(), file.damages.len()));
                }
            })
            .unwrap();
        (note.unwrap(), summary.damaged)
    };
    std::fs::write(&unlisted, &whole).unwrap();
    let ((note, damages), all) = verdict();
    assert!(note.starts_with("not part of the database:"), "{note}");
    assert_eq!((damages, all), (0, 0));
    std::fs::write(&unlisted, &whole[..whole.len() / 2]).unwrap();
    let ((note, damages), all) = verdict();
    assert!(note.contains("not whole"), "{note}");
    assert_eq!((damages, all), (0, 0));

    // Without a manifest each file is judged by itself.
    std::fs::write(dir.path().join("CURRENT"), "nothing").unwrap();
    let ((note, damages), _) = verdict();
    assert_eq!((note.as_str(), damages), ("judged without the manifest", 1));
    std::fs::write(&unlisted, &whole).unwrap();
    assert_eq!(verdict().0.1, 0);
}

/// Rows `0`, `a`, `b` and `d`, the values of which lie in one blob file, in one table that is not compressed; gives both files
/// and the pointers.
fn sample_of_pointers(dir: &Path) -> (PathBuf, PathBuf, Vec<BlobPointer>) {
    let options = Options {
        default_column_family: ColumnFamilyOptions {
            compression_per_level: vec![Compression::None],
            blob_compression: Compression::None,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Db::open(dir, options).unwrap();
    for (key, len) in [("0", 512), ("a", 512), ("b", 700), ("d", 600)] {
        db.put(key.as_bytes(), &vec![key.as_bytes()[0]; len]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let table = files(dir, FileRole::Table).remove(0);
    let mut pointers = Vec::new();
    let dump = Inspector::new(dir).table_at(&table).unwrap();
    dump.entries(|entry| {
        pointers.push(BlobPointer::decode(entry.value).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    (table, files(dir, FileRole::Blob).remove(0), pointers)
}

/// Has rows of a table point elsewhere, with a checksum that fits: each pointer becomes another of the same length.
fn redirect(dir: &Path, table: &Path, changes: &[(BlobPointer, BlobPointer)]) {
    let data_bytes = Inspector::new(dir)
        .table_at(table)
        .unwrap()
        .properties()
        .data_bytes as usize;
    let mut bytes = std::fs::read(table).unwrap();
    let encoded = |pointer: &BlobPointer| {
        let mut bytes = Vec::new();
        pointer.encode_into(&mut bytes);
        bytes
    };
    // Behind the header, the table's one block; a byte of compression and a checksum behind it.
    let block = 24..24 + data_bytes - 4;
    let before = bytes[block.clone()].to_vec();
    for (from, to) in changes {
        let (from, to) = (encoded(from), encoded(to));
        assert_eq!(from.len(), to.len());
        let at = before.windows(from.len()).position(|part| part == from).unwrap();
        bytes[24 + at..24 + at + to.len()].copy_from_slice(&to);
    }
    // What the checksum depends on besides is the same.
    let change = checksum(&[&before]) ^ checksum(&[&bytes[block.clone()]]);
    let stored = block.end..block.end + 4;
    let crc = u32::from_le_bytes(bytes[stored.clone()].try_into().unwrap());
    bytes[stored].copy_from_slice(&(crc ^ change).to_le_bytes());
    std::fs::write(table, bytes).unwrap();
}

/// Their counts and bytes may be right all the same.
#[test]
fn pointers_that_miss_their_records_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (table, blob, pointers) = sample_of_pointers(dir.path());
    assert!(damaged(dir.path()).is_empty());
    let whole = std::fs::read(&table).unwrap();
    let [_, a, b, d] = pointers[..] else {
        panic!("{pointers:?}");
    };
    let moved = |pointer: BlobPointer, by: u64| BlobPointer {
        offset: pointer.offset + by,
        ..pointer
    };
    let shorter = BlobPointer {
        bytes: b.bytes - 1,
        ..b
    };
    let cases = [
        (vec![(b, moved(b, 1))], "key 'b'", "where no record begins"),
        (vec![(d, moved(b, 3))], "key 'd'", "where no record begins"),
        (vec![(b, shorter)], "key 'b'", "to a record which has 709 bytes"),
        (vec![(b, a)], "key 'b'", "another key's"),
        (vec![(a, b), (b, a)], "key 'b'", "another key's"),
        (vec![(b, d), (d, b)], "key 'd'", "another key's"),
    ];
    for (changes, key, what) in &cases {
        redirect(dir.path(), &table, changes);
        let (path, message) = damage(dir.path());
        assert_eq!(path, table);
        assert!(message.contains(key) && message.contains(what), "{message}");
        std::fs::write(&table, &whole).unwrap();
    }
    // Where a blob file is damaged nobody knows where its records begin; a table is not blamed for it.
    let mut bytes = std::fs::read(&blob).unwrap();
    bytes[a.offset as usize + 20] ^= 1;
    std::fs::write(&blob, bytes).unwrap();
    assert_eq!(damaged(dir.path()), [blob]);
}

/// A database with everything that a file can have: two families, small blocks and index partitions, blob files, range
/// tombstones, an ingested table, a prepared batch, and rows in the log.
fn sample_of_all(dir: &Path) {
    let small = |blob_value_bytes_min| ColumnFamilyOptions {
        block_bytes: 512,
        blob_value_bytes_min,
        ..ColumnFamilyOptions::default()
    };
    let options = Options {
        default_column_family: small(300),
        ..Options::default()
    };
    let db = Db::open(dir, options).unwrap();
    let other = db.create_column_family("other", small(0)).unwrap();
    for i in 0..30_u32 {
        let key = format!("key{i:04}").into_bytes();
        db.put(
            &key,
            &vec![b'a' + (i % 26) as u8; if i % 10 == 0 { 400 } else { 30 }],
        )
        .unwrap();
        db.put_cf(&other, &key, b"of the other").unwrap();
    }
    db.delete_range(b"key0005", b"key0008").unwrap();
    db.flush().unwrap();
    let outside = dir.with_extension("ingested");
    let mut writer = TableFileWriter::create(&outside, &small(0)).unwrap();
    writer.put(b"ingested", b"row").unwrap();
    writer.finish().unwrap();
    db.ingest(
        &[(other, vec![outside.clone()])],
        &IngestOptions {
            move_files: true,
            ..IngestOptions::default()
        },
    )
    .unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"prepared", b"row").unwrap();
    db.prepare(b"name", &mut batch, &WriteOptions::default()).unwrap();
    for i in 0..5_u32 {
        db.put(format!("log{i:04}").as_bytes(), b"in the log").unwrap();
    }
    db.close().unwrap();
}

/// What verification says of each file: whether it is damaged, and the note.
fn verdicts(dir: &Path) -> esker::Result<BTreeMap<PathBuf, (bool, Option<String>)>> {
    let mut verdicts = BTreeMap::new();
    Inspector::new(dir).verify(|file| {
        let verdict = (!file.damages.is_empty(), file.note.clone());
        verdicts.insert(file.path.clone(), verdict);
    })?;
    Ok(verdicts)
}

/// Every byte of every file: where a flipped one is no damage, it is in a list that says why.
#[test]
fn every_byte_of_every_file_is_checked_or_known_not_to_matter() {
    let around = tempfile::tempdir().unwrap();
    let dir = around.path().join("db");
    sample_of_all(&dir);
    let whole = verdicts(&dir).unwrap();
    assert!(whole.values().all(|(damaged, _)| !damaged), "{whole:?}");
    let mut last_edit = 0;
    Inspector::new(&dir)
        .edits(|edit| last_edit = edit.offset)
        .unwrap();
    let listed = Inspector::new(&dir).files().unwrap();
    let names: Vec<_> = listed.iter().map(|file| file.role).collect();
    for role in [FileRole::Manifest, FileRole::Table, FileRole::Blob, FileRole::Wal] {
        assert!(names.contains(&Some(role)), "{names:?}");
    }
    let mut flipped = 0;
    for file in listed.iter().filter(|file| file.size_bytes > 0) {
        let bytes = std::fs::read(&file.path).unwrap();
        let is_current = file.path.ends_with("CURRENT");
        let role = file.role.unwrap();
        let mut last_batch = 0;
        if role == FileRole::Wal {
            let segment = Inspector::new(&dir).segment_at(&file.path).unwrap();
            segment
                .batches(|batch| {
                    last_batch = batch.offset;
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
        }
        let step = match role {
            // Behind its records a segment is zeros.
            FileRole::Wal if bytes.len() > 64 << 10 => bytes.len() / 500,
            // Every byte of one table and one blob file is flipped by other tests.
            FileRole::Table | FileRole::Blob => 5,
            _ => 1,
        };
        let ends = |at: &usize| *at < 64 || bytes.len() - at < 150 || (role == FileRole::Wal && *at < 1000);
        let all = (0..bytes.len()).filter(|at| at % step == 0 || ends(at));
        for at in all {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&file.path, &bad).unwrap();
            flipped += 1;
            let what = format!("byte {at} of {}", file.path.display());
            let found = match verdicts(&dir) {
                Ok(found) => found,
                Err(error) => {
                    // The version of the manifest's format is judged before its checksum: it may be a newer one.
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}: {error}");
                    assert!(
                        role == FileRole::Manifest && !is_current && (8..12).contains(&at),
                        "{what}"
                    );
                    continue;
                }
            };
            let (damaged, note) = &found[&file.path];
            if *damaged {
                continue;
            }
            let before = &whole[&file.path].1;
            match role {
                // The last record may have been cut by a crash: nobody was told that it is durable. A note says so.
                FileRole::Manifest => assert!(at as u64 >= last_edit && note != before, "{what}: {note:?}"),
                // The same; and what is none of the zeros that follow may be the front of another one.
                FileRole::Wal if at as u64 >= last_batch => assert_ne!(note, before, "{what}"),
                _ => panic!("{what} is not checked"),
            }
        }
        std::fs::write(&file.path, &bytes).unwrap();
    }
    assert!(flipped > 3000, "{flipped}");
    assert_eq!(verdicts(&dir).unwrap(), whole);
}
