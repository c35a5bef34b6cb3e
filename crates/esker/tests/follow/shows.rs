//! What a follower shows, one kind of write after the other.

use esker::{Durability, ErrorKind, IngestOptions, WriteBatch, WriteOptions};

use super::*;

#[test]
fn a_follower_shows_what_was_there_when_it_caught_up() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    db.put(b"a", b"1").unwrap();
    let follower = follow(&fs);
    let reader = follower.db();
    assert_eq!(get(reader, b"a").unwrap(), b"1");
    for round in 2..200_u64 {
        let before = all(reader).unwrap();
        let large = vec![round as u8; (round % 9 * 100) as usize];
        db.put(b"a", &round.to_le_bytes()).unwrap();
        db.put(&(round % 50).to_be_bytes(), &large).unwrap();
        db.merge(b"merged", &[round as u8]).unwrap();
        match round % 20 {
            3 => db
                .delete_range(&3_u64.to_be_bytes(), &9_u64.to_be_bytes())
                .unwrap(),
            7 => db.flush().unwrap(),
            13 => db.compact_range(None, None).unwrap(),
            17 => db.delete(&(round % 50).to_be_bytes()).unwrap(),
            _ => {}
        }
        assert_eq!(all(reader).unwrap(), before, "the moment stays");
        let caught = follower.catch_up().unwrap();
        assert_eq!(caught.sequence, db.last_sequence());
        assert_eq!(reader.last_sequence(), caught.sequence);
        assert!(all(reader).unwrap() == all(&db).unwrap());
        let keys: Vec<Vec<u8>> = (0..50_u64).map(|key| key.to_be_bytes().to_vec()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let many = |db: &Db| {
            let values = db.multi_get(&db.default_column_family(), &keys, &ReadOptions::default());
            let values = values.unwrap().into_iter();
            values
                .map(|value| value.map(|value| value.to_vec()))
                .collect::<Vec<_>>()
        };
        assert_eq!(many(reader), many(&db));
    }
    let again = follower.catch_up().unwrap();
    assert_eq!((again.batches, again.edit_groups), (0, 0));
}

/// Compactions of the writer drop what they see.
#[test]
fn snapshots_and_iterators_keep_their_moment_over_catch_ups() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let value = vec![7; 1000];
    db.put(b"key", &value).unwrap();
    db.put(b"other", b"1").unwrap();
    db.flush().unwrap();
    let follower = follow(&fs);
    let reader = follower.db();
    let snapshot = reader.snapshot();
    let mut iter = reader.iter(ReadOptions::default()).unwrap();
    for round in 0..5 {
        db.put(b"key", &[round]).unwrap();
        db.delete(b"other").unwrap();
        db.compact_range(None, None).unwrap();
        follower.catch_up().unwrap();
        assert_eq!(
            (get(reader, b"key").unwrap(), get(reader, b"other")),
            (vec![round], None)
        );
        let options = ReadOptions {
            snapshot: Some(snapshot.clone()),
            ..ReadOptions::default()
        };
        let family = reader.default_column_family();
        let old = reader.get_with(&family, b"key", &options).unwrap().unwrap();
        assert_eq!(*old, *value);
        assert_eq!(rows_with(reader, &family, options).unwrap().len(), 2);
        iter.seek_to_last().unwrap();
        assert_eq!(iter.key(), b"other");
    }
    iter.refresh().unwrap();
    iter.seek_to_last().unwrap();
    assert_eq!(iter.key(), b"key");
}

#[test]
fn families_come_and_go() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let follower = follow(&fs);
    let reader = follower.db();
    let old = reader.snapshot();
    let second = db.create_column_family("second", family_options()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"first").unwrap();
    batch.put_cf(&second, b"key", b"second").unwrap();
    db.write(&mut batch).unwrap();
    assert_eq!(
        reader.column_family("second").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    follower.catch_up().unwrap();
    let handle = reader.column_family("second").unwrap();
    assert_eq!(*reader.get_cf(&handle, b"key").unwrap().unwrap(), *b"second");
    assert_eq!(get(reader, b"key").unwrap(), b"first");
    let options = ReadOptions {
        snapshot: Some(old),
        ..ReadOptions::default()
    };
    let error = reader.get_with(&handle, b"key", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    db.drop_column_family(&second).unwrap();
    db.put(b"key", b"alone").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(reader.column_family_names(), ["default"]);
    assert_eq!(*reader.get_cf(&handle, b"key").unwrap().unwrap(), *b"second");
    assert_eq!(get(reader, b"key").unwrap(), b"alone");
    // A name may come again; the handle stays with the one that it was made for.
    let third = db.create_column_family("second", family_options()).unwrap();
    db.put_cf(&third, b"key", b"third").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(*reader.get_cf(&handle, b"key").unwrap().unwrap(), *b"second");
    let handle = reader.column_family("second").unwrap();
    assert_eq!(*reader.get_cf(&handle, b"key").unwrap().unwrap(), *b"third");
}

#[test]
fn what_is_prepared_shows_with_its_commit() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let follower = follow(&fs);
    let reader = follower.db();
    let default = WriteOptions::default();
    let mut batch = WriteBatch::new();
    for name in [b"kept", b"lost"] {
        batch.put(name, b"value").unwrap();
        db.prepare(name, &mut batch, &default).unwrap();
    }
    follower.catch_up().unwrap();
    let names = |db: &Db| {
        db.prepared()
            .iter()
            .map(|batch| batch.name().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(reader), [b"kept", b"lost"]);
    // Carried from segment to segment, while the follower looks and while it does not.
    for round in 0..6_u8 {
        db.put(&[round], &[round; 300]).unwrap();
        db.flush().unwrap();
        if round % 3 == 0 {
            follower.catch_up().unwrap();
            assert_eq!((get(reader, b"kept"), get(reader, b"lost")), (None, None));
            assert_eq!(names(reader).len(), 2);
        }
    }
    db.commit_prepared(b"kept", &default).unwrap();
    db.roll_back_prepared(b"lost", &default).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(get(reader, b"kept").unwrap(), b"value");
    assert_eq!(get(reader, b"lost"), None);
    assert_eq!(reader.prepared().len(), 0);
    let error = reader.commit_prepared(b"kept", &default).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

#[test]
fn what_is_ingested_shows_and_what_lies_behind_it_comes_after() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let follower = follow(&fs);
    for round in 0..10_u8 {
        db.put(b"key", &[round, 0]).unwrap();
        ingest(&fs, &db, round);
        follower.catch_up().unwrap();
        assert_eq!(get(follower.db(), b"key").unwrap(), [round, 1]);
        db.put(b"key", &[round, 2]).unwrap();
        follower.catch_up().unwrap();
        assert_eq!(get(follower.db(), b"key").unwrap(), [round, 2]);
    }
}

/// A table with `key` in it.
pub fn ingest(fs: &Arc<dyn Fs>, db: &Db, round: u8) {
    let env = Env {
        fs: Arc::clone(fs),
        ..Env::simulated(1).0
    };
    let path = format!("/{round}.table");
    let mut writer = esker::TableFileWriter::create_on(&env, &path, &family_options()).unwrap();
    writer.put(b"key", &[round, 1]).unwrap();
    writer.finish().unwrap();
    let files = [(db.default_column_family(), vec![path.into()])];
    db.ingest(&files, &IngestOptions::default()).unwrap();
}

/// Nothing on the device changes, whatever is called.
#[test]
fn a_follower_changes_nothing() {
    let (mem, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    for key in 0..100_u8 {
        db.put(&[key], &[key; 500]).unwrap();
    }
    db.wait_idle().unwrap();
    let before = mem.operations();
    let follower = follow(&fs);
    let reader = follower.db();
    let family = reader.default_column_family();
    let refused = [
        reader.put(b"a", b"b").map(drop),
        reader.delete_range(b"a", b"b"),
        reader.flush(),
        reader.compact_range(None, None),
        reader.create_column_family("new", family_options()).map(drop),
        reader.drop_column_family(&family),
        reader.checkpoint("/copy").map(drop),
        reader.delete_files_in_ranges(&family, &[(b"a", b"b")]).map(drop),
        reader
            .ingest(&[(family.clone(), vec![])], &IngestOptions::default())
            .map(drop),
        reader.prepare(b"name", &mut WriteBatch::new(), &WriteOptions::default()),
        reader.set_family_options(&family, &[("block_bytes", "512")]),
    ];
    for (at, result) in refused.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnly, "call {at}");
    }
    let snapshot = reader.snapshot();
    let error = reader.changed_since(&family, b"a", &snapshot).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = reader
        .range_changed_since(&family, b"a", None, &snapshot)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    reader.wait_idle().unwrap();
    reader.sync_wal().unwrap();
    for name in esker::PROPERTIES {
        reader.property(&family, name).unwrap();
    }
    follower.catch_up().unwrap();
    assert!(all(reader).unwrap() == all(&db).unwrap());
    reader.close().unwrap();
    assert_eq!(follower.catch_up().unwrap_err().kind(), ErrorKind::Closed);
    drop(follower);
    assert_eq!(mem.operations(), before);
}

/// The writer's process ends in the middle of things, several times, and another one takes its place.
#[test]
fn a_follower_survives_its_writers() {
    let (mem, fs) = machine();
    let follower = {
        opener(&fs, options()).open(DIR).unwrap().close().unwrap();
        follow(&fs)
    };
    let mut written = 0_u64;
    for life in 0..12_u64 {
        let db = opener(&fs, options()).open(DIR).unwrap();
        assert!(follower.catch_up().is_ok());
        assert!(all(follower.db()).unwrap() == all(&db).unwrap(), "life {life}");
        mem.stop_after(Some(20 + life * 7));
        let mut key = written;
        // The last one is in the log or not.
        while db.put(&key.to_be_bytes(), &[1; 200]).is_ok() {
            key += 1;
            if key.is_multiple_of(8) {
                follower.catch_up().unwrap();
                let found = all(follower.db()).unwrap()["default"].len() as u64;
                assert_eq!(found, key, "life {life}");
            }
        }
        written = key;
        drop(db);
        mem.stop_after(None);
        follower.catch_up().unwrap();
        let found = all(follower.db()).unwrap()["default"].len() as u64;
        assert!(
            found == written || found == written + 1,
            "life {life}: {found} of {written}"
        );
        written = found;
    }
    assert!(written > 100);
}

/// The log of what it saw last was used again many times.
#[test]
fn a_follower_that_slept_for_long_goes_on() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let follower = follow(&fs);
    for round in 0..10_u64 {
        for key in 0..400_u64 {
            db.put(&(key * 7 % 400).to_be_bytes(), &[round as u8; 300])
                .unwrap();
        }
        assert!(follower.catch_up().unwrap().sequence == db.last_sequence());
        assert!(all(follower.db()).unwrap() == all(&db).unwrap());
        db.wait_idle().unwrap();
        follower.catch_up().unwrap();
        let bytes = follower.db().stats().memtable_bytes;
        assert!(
            bytes < 100 << 10,
            "rows that are in tables are still in memory: {bytes} bytes"
        );
    }
}

#[test]
fn what_is_not_logged_shows_with_its_flush() {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    let follower = follow(&fs);
    db.put_with(b"unlogged", b"1", &WriteOptions::durability(Durability::None))
        .unwrap();
    db.put(b"logged", b"1").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(get(follower.db(), b"unlogged"), None);
    assert_eq!(get(follower.db(), b"logged").unwrap(), b"1");
    db.flush().unwrap();
    follower.catch_up().unwrap();
    assert_eq!(get(follower.db(), b"unlogged").unwrap(), b"1");
}

/// More tables than may be open: those that were closed again may be gone when they are needed.
#[test]
fn a_file_that_is_gone_says_to_catch_up() {
    let (_, fs) = machine();
    let manual = Options {
        default_column_family: ColumnFamilyOptions {
            compaction_style: esker::CompactionStyle::Manual,
            ..family_options()
        },
        ..options()
    };
    let db = opener(&fs, manual).open(DIR).unwrap();
    for key in 0..40_u8 {
        // Not one of the tables can be moved as it is.
        db.put(b"in each", &[key]).unwrap();
        db.put(&[key], &[key; 100]).unwrap();
        db.flush().unwrap();
    }
    let few = Options {
        open_files_max: 16,
        ..options()
    };
    let follower = opener(&fs, few).follow(DIR).unwrap();
    let before = all(&db).unwrap();
    db.compact_range(None, None).unwrap();
    db.put(b"later", b"1").unwrap();
    let error = all(follower.db()).map(|rows| rows.len()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    assert!(
        error.kind().is_retryable() && error.message().contains("catch up"),
        "{error}"
    );
    follower.catch_up().unwrap();
    assert!(all(follower.db()).unwrap() == all(&db).unwrap());
    assert!(all(&db).unwrap() != before);
    // Where all may be open, none is missed.
    let follower = follow(&fs);
    let moment = all(&db).unwrap();
    for key in 0..40_u8 {
        db.put(&[key], b"new").unwrap();
    }
    db.compact_range(None, None).unwrap();
    assert!(all(follower.db()).unwrap() == moment);
}

#[test]
fn another_database_in_the_folder_is_refused() {
    let (_, fs) = machine();
    opener(&fs, options()).open(DIR).unwrap().close().unwrap();
    let follower = follow(&fs);
    for name in fs.list(DIR.as_ref()).unwrap() {
        fs.remove(&std::path::Path::new(DIR).join(name)).unwrap();
    }
    assert_eq!(follower.catch_up().unwrap_err().kind(), ErrorKind::NotFound);
    let env = Env {
        fs: Arc::clone(&fs),
        ..Env::simulated(2).0
    };
    let db = Opener::new(options()).env(env).open(DIR).unwrap();
    db.put(b"a", b"1").unwrap();
    let error = follower.catch_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let missing = opener(&fs, options()).follow("/nowhere").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}
