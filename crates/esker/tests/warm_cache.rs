//! What jobs put into the block cache and take out of it: as seen by gets that find their blocks there, or don't.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use esker::{ColumnFamilyOptions, CompactionStyle, Compression, Db, Opener, Options, ReadOptions};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::{Env, Fs};

const ROWS: u32 = 20_000;

/// A database that flushes and compacts when it is told to.
fn family() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        compaction_style: CompactionStyle::Manual,
        // Values stay where they are.
        blob_space_percent: 10_000,
        // Some files, so that a level is more than one.
        file_bytes: 256 << 10,
        ..ColumnFamilyOptions::default()
    }
}

fn open_in(env: &Env, family: ColumnFamilyOptions) -> Db {
    let options = Options {
        memory_budget_bytes: 128 << 20,
        default_column_family: family,
        ..Options::default()
    };
    Opener::new(options)
        .env(env.clone())
        .open(Path::new("db"))
        .unwrap()
}

fn simulated() -> (Env, FaultFs) {
    let (mut env, mem) = Env::simulated(3);
    let faults = FaultFs::new(Arc::new(mem));
    env.fs = Arc::new(faults.clone()) as Arc<dyn Fs>;
    (env, faults)
}

fn open(family: ColumnFamilyOptions) -> Db {
    open_in(&simulated().0, family)
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

fn value(i: u32, round: u32, len: usize) -> Vec<u8> {
    let mut value = format!("{i}@{round}").into_bytes();
    value.resize(len, b'.');
    value
}

fn write(db: &Db, rows: impl Iterator<Item = u32>, round: u32, len: usize) {
    for i in rows {
        db.put(&key(i), &value(i, round, len)).unwrap();
    }
    db.flush().unwrap();
}

/// Two tables that overlap all over: rows of round 0, and newer ones of round 1 for every second key.
fn write_two_rounds(db: &Db, len: usize) {
    write(db, 0..ROWS, 0, len);
    write(db, (0..ROWS).step_by(2), 1, len);
}

fn check(db: &Db, rows: Range<u32>, len: usize) {
    for i in rows {
        let round = u32::from(i % 2 == 0);
        assert_eq!(db.get(&key(i)).unwrap().unwrap(), value(i, round, len), "row {i}");
    }
}

fn counter(db: &Db, name: &str) -> u64 {
    let counters = db.stats().counters;
    counters.iter().find(|(counter, _)| *counter == name).unwrap().1
}

fn warmed(db: &Db) -> u64 {
    counter(db, "blocks_warmed")
}

/// Blocks and values that gets of these rows had to read from files.
fn misses(db: &Db, rows: Range<u32>, len: usize) -> u64 {
    let before = counter(db, "cache_misses");
    check(db, rows, len);
    counter(db, "cache_misses") - before
}

fn cache_bytes(db: &Db) -> u64 {
    db.stats().cache_bytes
}

/// Bytes in the cache when they are as expected. A thread that looked for work may hold a dead table a moment longer.
fn settled_cache_bytes(db: &Db, expected: impl Fn(u64) -> bool) -> u64 {
    for _ in 0..10_000 {
        db.wait_idle().unwrap();
        if expected(cache_bytes(db)) {
            break;
        }
        std::thread::yield_now();
    }
    cache_bytes(db)
}

#[test]
fn a_tree_that_is_in_memory_stays_there_through_a_compaction() {
    for (len, compression) in [
        (60, Compression::None),
        (60, Compression::Lz4),
        (600, Compression::None),
    ] {
        let db = open(ColumnFamilyOptions {
            compression_per_level: vec![compression],
            ..family()
        });
        write_two_rounds(&db, len);
        assert!(misses(&db, 0..ROWS, len) > 0);
        assert_eq!(misses(&db, 0..ROWS, len), 0, "all of it fits");
        for _ in 0..2 {
            let before = (warmed(&db), counter(&db, "cache_hits"));
            db.compact_range(None, None).unwrap();
            let files = db.property(&db.default_column_family(), "files").unwrap();
            assert!(warmed(&db) > before.0 && files.parse::<u32>().unwrap() > 1);
            assert_eq!(counter(&db, "cache_hits"), before.1, "a job's look is no hit");
            assert_eq!(
                misses(&db, 0..ROWS, len),
                0,
                "values of {len} bytes, {compression:?}"
            );
            // One more table, of rows that are there already.
            write(&db, (0..ROWS).step_by(2), 1, len);
            misses(&db, 0..ROWS, len);
        }
    }
}

#[test]
fn a_compaction_with_a_cold_cache_puts_nothing_into_it() {
    let (env, _) = simulated();
    let db = open_in(&env, family());
    write_two_rounds(&db, 60);
    db.close().unwrap();
    let db = open_in(&env, family());
    assert_eq!(cache_bytes(&db), 0);
    db.compact_range(None, None).unwrap();
    assert_eq!((warmed(&db), cache_bytes(&db)), (0, 0));
    assert!(misses(&db, 0..ROWS, 60) > 100);
}

#[test]
fn only_the_part_that_is_in_memory_inherits() {
    let (env, _) = simulated();
    let db = open_in(&env, family());
    write_two_rounds(&db, 60);
    db.close().unwrap();
    let db = open_in(&env, family());
    assert!(misses(&db, 0..ROWS / 2, 60) > 100);
    db.compact_range(None, None).unwrap();
    let cold_from = misses(&db, 0..ROWS / 2 - 200, 60);
    assert_eq!(cold_from, 0);
    let (blocks, cold) = (warmed(&db), misses(&db, ROWS / 2 + 200..ROWS, 60));
    assert!(cold > blocks * 9 / 10, "{cold} cold blocks, {blocks} warm ones");
}

/// Were blocks counted instead of rows, each block of new rows would warm the one it goes to, and that one others later.
#[test]
fn a_few_hot_rows_among_cold_ones_warm_nothing() {
    let (env, _) = simulated();
    let db = open_in(&env, family());
    write(&db, 0..ROWS, 0, 600);
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = open_in(&env, family());
    write(&db, (0..ROWS).step_by(50), 1, 600);
    let of_flush = warmed(&db);
    assert!(of_flush > 0);
    db.compact_range(None, None).unwrap();
    assert_eq!(warmed(&db), of_flush);
    let left = settled_cache_bytes(&db, |bytes| bytes == 0);
    assert_eq!(left, 0, "the flushed table's blocks left with it");
}

#[test]
fn blocks_of_dead_tables_leave_once_nobody_reads_the_tables() {
    let db = open(family());
    write_two_rounds(&db, 60);
    misses(&db, 0..ROWS, 60);
    let full = cache_bytes(&db);
    assert!(full > 1 << 20, "{full}");
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    db.compact_range(None, None).unwrap();
    let both = cache_bytes(&db);
    assert!(both > full, "the iterator's tables are alive");
    let mut rows = 0;
    while iter.valid() {
        rows += 1;
        iter.next().unwrap();
    }
    assert_eq!(rows, ROWS);
    drop(iter);
    let new = settled_cache_bytes(&db, |bytes| bytes < full);
    assert!(new < full && new > full / 2, "{full}, {both}, {new}");
    assert_eq!(misses(&db, 0..ROWS, 60), 0);
    db.delete_range(&key(0), &key(ROWS)).unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(settled_cache_bytes(&db, |bytes| bytes == 0), 0);
    assert!(db.get(&key(7)).unwrap().is_none());
}

#[test]
fn a_dropped_family_takes_its_blocks_along() {
    let db = open(family());
    write_two_rounds(&db, 60);
    misses(&db, 0..ROWS, 60);
    let before = cache_bytes(&db);
    let other = db.create_column_family("other", family()).unwrap();
    for i in 0..ROWS {
        db.put_cf(&other, &key(i), &value(i, 0, 60)).unwrap();
    }
    db.flush_cf(&other).unwrap();
    for i in 0..ROWS {
        assert!(db.get_cf(&other, &key(i)).unwrap().is_some());
    }
    assert!(cache_bytes(&db) > before);
    db.drop_column_family(&other).unwrap();
    drop(other);
    assert_eq!(settled_cache_bytes(&db, |bytes| bytes == before), before);
}

#[test]
fn a_flush_warms_pointers_and_not_values() {
    // Its keys are as long as its values.
    let long_key = |i: u32| [vec![b'k'; 600], key(i)].concat();
    let (inline, separated) = (open(family()), open(family()));
    write(&inline, 0..ROWS, 1, 500);
    assert_eq!((warmed(&inline), cache_bytes(&inline)), (0, 0));
    write(&separated, 0..ROWS, 1, 600);
    let blocks = warmed(&separated);
    assert!(blocks > 0 && cache_bytes(&separated) < 2 << 20);
    // Every second row is deleted, which takes no more room than a pointer.
    for i in (0..ROWS).step_by(2) {
        separated.delete(&key(i)).unwrap();
    }
    separated.flush().unwrap();
    assert_eq!(warmed(&separated), blocks, "deletes alone have no values");
    let before = counter(&separated, "cache_misses");
    for i in 0..ROWS {
        let found = separated.get(&key(i)).unwrap();
        assert_eq!(found.is_some(), i % 2 == 1);
    }
    let read = counter(&separated, "cache_misses") - before;
    let values = u64::from(ROWS / 2);
    // The table of deletes is cold: some 600 blocks of it at most are read besides the values.
    assert!(read >= values && read < values + 600, "{read}");
    for i in 0..1000 {
        inline.put(&long_key(i), &value(i, 0, 600)).unwrap();
    }
    inline.flush().unwrap();
    assert_eq!(warmed(&inline), 0, "half of every row stays in the table");
}

/// Rows of `keys` are read, written again and flushed; how many blocks that put into the cache.
fn warmed_by_rewrite(db: &Db, keys: impl Iterator<Item = u32> + Clone, reads: bool) -> u64 {
    let before = warmed(db);
    for i in keys.clone().filter(|_| reads) {
        assert!(db.get(&key(i)).unwrap().is_some());
    }
    write(db, keys, 1, 60);
    warmed(db) - before
}

#[test]
fn a_flush_warms_rows_that_are_read_as_often_as_written_while_there_is_room() {
    let db = open(family());
    write(&db, 0..ROWS, 0, 60);
    let even = (0..ROWS).step_by(2);
    assert!(warmed_by_rewrite(&db, even.clone(), true) > 0);
    // The old rows come in once; those that were rewritten are there.
    check(&db, 0..ROWS, 60);
    assert_eq!(misses(&db, 0..ROWS, 60), 0);
    // What was read before the last flush is no reason for another one.
    db.put(&key(0), &value(0, 1, 60)).unwrap();
    db.flush().unwrap();
    assert_eq!(warmed_by_rewrite(&db, even.clone(), false), 0, "nobody reads");
    // Of 12 MB of rows a third at most fits.
    let db = Opener::new(Options {
        memory_budget_bytes: 4 << 20,
        memtables_bytes_max: 1 << 20,
        default_column_family: family(),
        ..Options::default()
    })
    .env(simulated().0)
    .open(Path::new("small"))
    .unwrap();
    write(&db, 0..ROWS, 0, 600);
    for i in 0..ROWS {
        assert!(db.get(&key(i)).unwrap().is_some());
    }
    let full = cache_bytes(&db);
    assert_eq!(
        warmed_by_rewrite(&db, 0..2_000, true),
        0,
        "no room: {full} bytes are held"
    );
}

/// A job that fails leaves nothing in the cache, and its numbers to no other file.
#[test]
fn after_a_failed_compaction_the_next_is_read_right() {
    for nth in [1, 3, 5] {
        let (env, faults) = simulated();
        let db = open_in(&env, family());
        write_two_rounds(&db, 60);
        misses(&db, 0..ROWS, 60);
        let before = (warmed(&db), cache_bytes(&db));
        faults.add(Rule::new(Op::Append, Fault::Eio).on_path(".sst").nth(nth));
        db.compact_range(None, None).unwrap_err();
        let of_failed = warmed(&db);
        assert!(of_failed > before.0);
        assert_eq!(cache_bytes(&db), before.1, "nothing is left of it");
        check(&db, 0..ROWS, 60);
        // Another first row, so that every block of the next attempt holds other rows than before.
        db.put(b"first", &[1; 300]).unwrap();
        db.compact_range(None, None).unwrap();
        assert!(warmed(&db) > of_failed);
        assert_eq!(misses(&db, 0..ROWS, 60), 0);
        assert_eq!(db.get(b"first").unwrap().unwrap(), [1; 300]);
    }
}
