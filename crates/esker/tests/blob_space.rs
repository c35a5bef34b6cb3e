//! Blob files stay as small as `blob_space_percent` says, whatever is overwritten, none stays that nothing needs, and no
//! more are open than `open_files_max` says.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use esker::inspect::Inspector;
use esker::{ColumnFamilyOptions, Compression, Db, Opener, Options, ReadOptions};
use esker_env::Env;

const DIR: &str = "/db";
const ROWS: u32 = 2000;
const MEMTABLE_BYTES: u64 = 64 << 10;
const LEVEL0_FILES: u64 = 4;
const SPACE_PERCENT: u64 = 150;
const OPEN_FILES_MAX: usize = 16;

/// A database whose tables fit in one level besides level 0, or else in two.
fn open(env: &Env, blob_compression: Compression, one_level: bool) -> Db {
    let options = Options {
        memory_budget_bytes: 8 << 20,
        wal_segment_bytes: 256 << 10,
        open_files_max: OPEN_FILES_MAX,
        // A thread alone never finds level 0 taken, and so never merges its files into large ones.
        compaction_threads: if one_level { 1 } else { 2 },
        default_column_family: ColumnFamilyOptions {
            memtable_bytes: MEMTABLE_BYTES,
            // So that no file of level 0 holds more than one of them.
            memtables_max: 2,
            file_bytes: 16 << 10,
            level_base_bytes: if one_level { 1 << 20 } else { 64 << 10 },
            level0_compaction_trigger: LEVEL0_FILES as usize,
            blob_space_percent: SPACE_PERCENT as u32,
            blob_compression,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    Opener::new(options).env(env.clone()).open(DIR).unwrap()
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Of 700 to 1,300 bytes, half of which can be compressed away.
fn value(i: u32, round: u32) -> Vec<u8> {
    let mut state = u64::from(i) << 32 | u64::from(round);
    let mut value = vec![i as u8; 350 + (i % 7) as usize * 50];
    for _ in 0..value.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value.push((state >> 56) as u8);
    }
    value
}

/// What must hold of the blob files of a database that is idle. Gives their bytes.
fn check_space(db: &Db, env: &Env, what: &str) -> u64 {
    let info = Inspector::with_env(DIR, env).describe().unwrap();
    let blobs = &info.families[0].blobs;
    let (mut bytes, mut referred) = (0, 0);
    for used in blobs {
        assert!(used.live_records > 0, "{what}: nothing needs {used:?}");
        bytes += used.blob.size_bytes;
        referred += used.live_bytes;
    }
    assert_eq!(db.stats().blob_files, blobs.len(), "{what}");
    // What is dead in as many bytes as two memtables hold is left in peace, however little is live.
    let allowed = (referred / 100 * SPACE_PERCENT).max(referred + 2 * MEMTABLE_BYTES);
    assert!(
        bytes <= allowed,
        "{what}: {bytes} bytes for {referred} that tables refer to"
    );
    bytes
}

/// Closes the database; then the folder holds its blob files and no others.
fn close(db: Db, env: &Env) {
    let files = db.stats().blob_files;
    db.close().unwrap();
    let names = env.fs.list(Path::new(DIR)).unwrap();
    let there = names.iter().filter(|name| name.ends_with(".blob")).count();
    assert_eq!(there, files);
}

fn overwrite_uniformly(compression: Compression, one_level: bool) {
    let env = Env::simulated(5).0;
    let mut rounds = vec![0; ROWS as usize];
    let mut random = 1_u64;
    // Each value has a header of 9 bytes.
    let row_bytes: u64 = (0..ROWS).map(|i| value(i, 0).len() as u64 + 9).sum();
    for pass in 0..=6 {
        let db = open(&env, compression, one_level);
        for j in 0..ROWS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let i = if pass == 0 {
                j
            } else {
                (random >> 33) as u32 % ROWS
            };
            rounds[i as usize] = pass;
            db.put(&key(i), &value(i, pass)).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let bytes = check_space(&db, &env, &format!("pass {pass}"));
        if one_level {
            // Beside the rows, tables of level 0 refer to what they overwrite, until they are compacted.
            let in_level0 = LEVEL0_FILES * MEMTABLE_BYTES;
            let allowed = (row_bytes + in_level0) / 100 * SPACE_PERCENT;
            assert!(
                bytes <= allowed,
                "pass {pass}: {bytes} bytes for rows of {row_bytes}"
            );
        }
        let mut rows = db.iter(ReadOptions::default()).unwrap();
        rows.seek_to_first().unwrap();
        for (i, &round) in (0..).zip(&rounds) {
            assert_eq!((rows.key(), rows.value()), (&key(i)[..], &value(i, round)[..]));
            assert_eq!(db.get(&key(i)).unwrap().unwrap(), value(i, round));
            rows.next().unwrap();
        }
        assert!(!rows.valid());
        drop(rows);
        let stats = db.stats();
        let open = stats.open_tables + stats.open_blob_files;
        assert!(open <= OPEN_FILES_MAX, "{open} are open");
        assert!(pass > 0 || stats.blob_files > OPEN_FILES_MAX);
        close(db, &env);
    }
    let db = open(&env, compression, one_level);
    (0..ROWS).for_each(|i| db.delete(&key(i)).unwrap());
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.stats().blob_files, 0);
    close(db, &env);
}

#[test]
fn overwritten_values_give_their_space_back() {
    overwrite_uniformly(Compression::None, true);
}

#[test]
fn overwritten_values_of_several_levels_give_their_space_back() {
    overwrite_uniformly(Compression::None, false);
}

/// Some of them are stored in less than the length from which on values leave the tables.
#[test]
fn overwritten_values_that_compress_give_their_space_back() {
    overwrite_uniformly(Compression::Lz4, true);
}
