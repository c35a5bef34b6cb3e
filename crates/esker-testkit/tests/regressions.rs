//! One test for each bug that was found, named by what must hold.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::path::Path;

use esker::{ColumnFamilyOptions, Db, Durability, Opener, Options, ReadOptions, WriteOptions};
use esker_env::Env;
use esker_env::mem::CrashMode;
use esker_testkit::crash::{DIR, check_files, family_options, options};

fn open(env: &Env) -> Db {
    Opener::new(Options::default())
        .env(env.clone())
        .open(Path::new("/db"))
        .expect("the database opens")
}

#[test]
fn an_iterator_that_turns_does_not_meet_rows_written_since() {
    let (env, _) = Env::simulated(1);
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.put(b"c", b"1").unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_for_prev(b"d").unwrap();
    assert_eq!(iter.key(), b"c");
    // Between the row that the iterator looked at last and the one that it shows.
    db.put(b"b", b"2").unwrap();
    iter.next().unwrap();
    assert!(!iter.valid(), "{:?}", iter.key());
}

#[test]
fn files_that_only_an_iterator_held_go_when_it_goes() {
    let (env, fs) = Env::simulated(1);
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    db.put(b"a", b"2").unwrap();
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(iter.value(), b"1");
    drop(iter);
    check_files(&fs, &db).unwrap();
}

#[test]
fn segments_of_a_dropped_family_do_not_end_recovery() {
    let (env, fs) = Env::simulated(1);
    let roomy = ColumnFamilyOptions {
        memtable_bytes: 4 << 20,
        ..family_options()
    };
    let settings = Options {
        memory_budget_bytes: 64 << 20,
        wal_memory_bytes: 8 * options().wal_segment_bytes,
        default_column_family: roomy.clone(),
        ..options()
    };
    let open = |env: Env| {
        Opener::new(settings.clone())
            .env(env)
            .open(Path::new(DIR))
            .unwrap()
    };
    let db = open(env);
    let gone = db.create_column_family("gone", roomy.clone()).unwrap();
    // Enough for several segments, none of which is synced.
    for _ in 0..10 {
        db.put_cf(&gone, b"key", &[7; 100_000]).unwrap();
    }
    db.drop_column_family(&gone).unwrap();
    for _ in 0..3 {
        db.put(b"key", &[8; 100_000]).unwrap();
    }
    let synced = WriteOptions::durability(Durability::Sync);
    db.put_with(b"synced", b"1", &synced).unwrap();
    for seed in 0..20 {
        for mode in [CrashMode::DropUnsynced, CrashMode::Torn { seed }] {
            let db = open(Env::simulated_on(fs.crash(mode), 1));
            assert_eq!(db.get(b"synced").unwrap().as_deref(), Some(&b"1"[..]), "{mode:?}");
        }
    }
}
