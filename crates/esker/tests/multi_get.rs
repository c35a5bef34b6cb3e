//! Multi-get against get: the same answers, in fewer reads, and an error where a get has one.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamilyOptions, CompactionStyle, Compression, Db, ErrorKind, KeyOrder, MemtableKind,
    Opener, Options, PrefixExtractor, ReadOptions, ReverseBytewiseComparator,
};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::{Env, Fs};
use proptest::prelude::*;

fn open(family: ColumnFamilyOptions) -> (Db, FaultFs) {
    let (env, faults) = simulated();
    (open_in(&env, family), faults)
}

fn simulated() -> (Env, FaultFs) {
    let (mut env, mem) = Env::simulated(7);
    let faults = FaultFs::new(Arc::new(mem));
    env.fs = Arc::new(faults.clone()) as Arc<dyn Fs>;
    (env, faults)
}

fn open_in(env: &Env, family: ColumnFamilyOptions) -> Db {
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: family,
        ..Options::default()
    };
    Opener::new(options)
        .env(env.clone())
        .open(Path::new("db"))
        .unwrap()
}

fn multi_get(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> esker::Result<Vec<Option<Vec<u8>>>> {
    let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let values = db.multi_get(&db.default_column_family(), &slices, options)?;
    Ok(values
        .into_iter()
        .map(|value| value.map(|value| value.into_vec()))
        .collect())
}

fn gets(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> Vec<Option<Vec<u8>>> {
    let family = db.default_column_family();
    let get = |key: &Vec<u8>| {
        db.get_with(&family, key, options)
            .unwrap()
            .map(|value| value.into_vec())
    };
    keys.iter().map(get).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize),
    Delete(usize),
    Merge(usize),
    DeleteRange(usize, usize),
    Flush,
    Compact(usize, usize),
    Snapshot,
    Read(Vec<usize>, prop::sample::Index),
}

const KEYS: usize = 120;

/// Keys of which some extend each other, some share a long prefix.
fn key(i: usize) -> Vec<u8> {
    match i % 4 {
        0 => format!("{:03}", i / 4),
        1 => format!("{:03}\0", i / 4),
        2 => format!("a long prefix that all of them share/{i:05}"),
        _ => format!("{:02}{}", i / 12, "x".repeat(i % 12)),
    }
    .into_bytes()
}

fn step() -> impl Strategy<Value = Step> {
    let k = || 0..KEYS;
    prop_oneof![
        12 => (k(), 0..300_usize).prop_map(|(k, len)| Step::Put(k, len)),
        3 => k().prop_map(Step::Delete),
        6 => k().prop_map(Step::Merge),
        1 => (k(), k()).prop_map(|(a, b)| Step::DeleteRange(a, b)),
        2 => Just(Step::Flush),
        1 => (k(), k()).prop_map(|(a, b)| Step::Compact(a, b)),
        1 => Just(Step::Snapshot),
        2 => (prop::collection::vec(0..KEYS + 8, 0..60), any::<prop::sample::Index>())
            .prop_map(|(keys, snapshot)| Step::Read(keys, snapshot)),
    ]
}

fn family(reverse: bool, bits: u32, vector: bool, compressed: bool, blobs: bool) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        blob_value_bytes_min: if blobs { 60 } else { 0 },
        blob_compression: if compressed {
            Compression::Lz4
        } else {
            Compression::None
        },
        key_order: if reverse {
            KeyOrder::Custom(Arc::new(ReverseBytewiseComparator))
        } else {
            KeyOrder::Bytewise
        },
        merge_operator: Some(Arc::new(AppendOperator::new(","))),
        memtable_kind: if vector {
            MemtableKind::Vector
        } else {
            MemtableKind::Ordered
        },
        filter_bits_per_key: bits,
        prefix_extractor: (bits == 2).then_some(PrefixExtractor::Fixed(2)),
        whole_key_filter: bits != 2,
        block_bytes: 512,
        compression_per_level: vec![if compressed {
            Compression::Lz4
        } else {
            Compression::None
        }],
        compaction_style: CompactionStyle::Manual,
        file_bytes: 16 << 10,
        ..ColumnFamilyOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn multi_get_gives_what_gets_give(
        steps in prop::collection::vec(step(), 0..250),
        reverse: bool, vector: bool, compressed: bool, blobs: bool, fill_cache: bool,
        bits in prop::sample::select(vec![0_u32, 2, 10]),
    ) {
        let (db, _) = open(family(reverse, bits, vector, compressed, blobs));
        let mut snapshots = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(k, len) => db.put(&key(k), format!("{number}-{}", "v".repeat(len)).as_bytes()).unwrap(),
                Step::Delete(k) => db.delete(&key(k)).unwrap(),
                Step::Merge(k) => db.merge(&key(k), number.to_string().as_bytes()).unwrap(),
                Step::DeleteRange(a, b) => {
                    let (mut a, mut b) = (key(a), key(b));
                    if (a > b) != reverse {
                        std::mem::swap(&mut a, &mut b);
                    }
                    db.delete_range(&a, &b).unwrap();
                }
                Step::Flush => db.flush().unwrap(),
                Step::Compact(a, b) => {
                    let (mut a, mut b) = (key(a), key(b));
                    if (a > b) != reverse {
                        std::mem::swap(&mut a, &mut b);
                    }
                    db.compact_range(Some(&a), Some(&b)).unwrap();
                }
                Step::Snapshot => snapshots.push(db.snapshot()),
                Step::Read(keys, snapshot) => {
                    let keys: Vec<Vec<u8>> = keys.into_iter().map(key).collect();
                    let snapshot = snapshot.index(snapshots.len() + 1);
                    let options = ReadOptions {
                        snapshot: snapshots.get(snapshot).cloned(),
                        fill_cache,
                        ..ReadOptions::default()
                    };
                    prop_assert_eq!(multi_get(&db, &keys, &options).unwrap(), gets(&db, &keys, &options));
                }
            }
        }
    }
}

fn row(i: usize) -> Vec<u8> {
    format!("row{i:05}").into_bytes()
}

/// Rows in blocks of eight or so, in four files of two levels, with nothing in memory but indexes and filters.
fn cold(rows: usize) -> (Db, FaultFs) {
    let (db, faults) = open(ColumnFamilyOptions {
        block_bytes: 1024,
        compression_per_level: vec![Compression::None],
        compaction_style: CompactionStyle::Manual,
        file_bytes: 32 << 10,
        ..ColumnFamilyOptions::default()
    });
    for quarter in 0..4 {
        for i in quarter * rows / 4..(quarter + 1) * rows / 4 {
            db.put(&row(i), &[b'v'; 100]).unwrap();
        }
        db.flush().unwrap();
        if quarter < 2 {
            db.compact_range(None, None).unwrap();
        }
    }
    // Opens the tables.
    let all: Vec<Vec<u8>> = (0..rows).map(row).collect();
    let values = multi_get(&db, &all, &uncached()).unwrap();
    assert!(values.iter().all(Option::is_some));
    (db, faults)
}

fn uncached() -> ReadOptions {
    ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    }
}

/// Batches and reads that `body` makes.
fn counted(faults: &FaultFs, body: impl FnOnce()) -> (u64, u64) {
    let before = (faults.calls(Op::ReadMany), faults.calls(Op::Read));
    body();
    (
        faults.calls(Op::ReadMany) - before.0,
        faults.calls(Op::Read) - before.1,
    )
}

#[test]
fn keys_of_one_block_cost_one_read() {
    let (db, faults) = cold(1000);
    // The same key, its neighbours and one that is not there.
    let keys = [row(600), row(601), row(600), row(599), b"row00600x".to_vec()];
    let (batches, reads) = counted(&faults, || {
        let values = multi_get(&db, &keys, &uncached()).unwrap();
        assert_eq!(values.iter().flatten().count(), 4);
    });
    // They may lie on both sides of a border; then the two blocks are one request.
    assert_eq!((batches, reads), (1, 1));
    let one_by_one = counted(&faults, || drop(gets(&db, &keys, &uncached())));
    assert_eq!(one_by_one, (0, 4));
}

#[test]
fn blocks_of_all_files_are_asked_for_in_one_batch() {
    let (db, faults) = cold(1000);
    let family = db.default_column_family();
    assert_eq!(db.property(&family, "files").unwrap(), "4");
    // Far enough from each other to be requests of their own, in any order.
    let keys: Vec<Vec<u8>> = (0..10).map(|i| row(i * 7 % 10 * 100)).collect();
    let cost = counted(&faults, || {
        assert!(
            multi_get(&db, &keys, &uncached())
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
    });
    assert_eq!(cost, (1, 10));
    let cost = counted(&faults, || {
        assert!(
            multi_get(&db, &keys, &ReadOptions::default())
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
        assert!(
            multi_get(&db, &keys, &uncached())
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
    });
    assert_eq!(cost, (1, 10), "the second time they come from the cache");
}

#[test]
fn neighbouring_blocks_are_one_request_and_long_runs_several() {
    let (db, faults) = cold(4000);
    let keys: Vec<Vec<u8>> = (1000..1080).map(row).collect();
    let (batches, reads) = counted(&faults, || {
        assert!(
            multi_get(&db, &keys, &uncached())
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
    });
    // Ten blocks, in one file or two.
    assert!(batches == 1 && reads <= 2, "{batches} batches of {reads} reads");
    let cached_before = db.stats().cache_bytes;
    multi_get(&db, &keys, &ReadOptions::default()).unwrap();
    let cached = db.stats().cache_bytes - cached_before;
    assert!(
        cached < 12 * 1500,
        "{cached} bytes for ten blocks: they keep their neighbours"
    );
}

#[test]
fn a_fault_in_one_read_is_an_error_with_its_place() {
    let (db, faults) = cold(1000);
    let keys: Vec<Vec<u8>> = (0..10).map(|i| row(i * 100)).collect();
    let mut offsets = BTreeSet::new();
    for nth in 1..=10 {
        for (fault, kind) in [
            (Fault::Eio, ErrorKind::Io),
            (Fault::ShortRead, ErrorKind::Corruption),
            (Fault::CorruptRead { bit: 999 }, ErrorKind::Corruption),
        ] {
            faults.add(Rule::new(Op::Read, fault).nth(nth).on_path(".sst"));
            let error = multi_get(&db, &keys, &uncached()).unwrap_err();
            assert_eq!(error.kind(), kind, "{fault:?} {nth}: {error:?}");
            assert_eq!(error.column_family(), Some("default"));
            assert!(
                error
                    .file()
                    .is_some_and(|file| file.extension().is_some_and(|part| part == "sst"))
            );
            offsets.insert((error.file().unwrap().to_owned(), error.offset().unwrap()));
            assert!(
                multi_get(&db, &keys, &uncached())
                    .unwrap()
                    .iter()
                    .all(Option::is_some)
            );
        }
    }
    assert_eq!(offsets.len(), 10, "each read names its own block");
    faults.add(Rule::new(Op::ReadMany, Fault::Eio));
    assert_eq!(
        multi_get(&db, &keys, &uncached()).unwrap_err().kind(),
        ErrorKind::Io
    );
}

#[test]
fn what_cannot_be_read_beside_the_wanted_blocks_does_no_harm() {
    let (db, faults) = cold(1000);
    // Two blocks with one in between: a request over all three, which fails, then each by itself.
    let keys = [row(500), row(518)];
    assert_eq!(
        counted(&faults, || drop(multi_get(&db, &keys, &uncached()).unwrap())),
        (1, 1)
    );
    faults.add(Rule::new(Op::Read, Fault::Eio));
    let cost = counted(&faults, || {
        let values = multi_get(&db, &keys, &uncached()).unwrap();
        assert!(values.iter().all(Option::is_some));
    });
    assert_eq!(cost, (1, 3));
}

#[test]
fn checksums_are_verified_unless_told_not_to() {
    let (db, faults) = cold(1000);
    let keys = [row(100), row(900)];
    let unverified = ReadOptions {
        verify_checksums: false,
        ..uncached()
    };
    // A bit in the middle of a value.
    let flip = || Rule::new(Op::Read, Fault::CorruptRead { bit: 8 * 50 }).on_path(".sst");
    faults.add(flip());
    assert_eq!(
        multi_get(&db, &keys, &uncached()).unwrap_err().kind(),
        ErrorKind::Corruption
    );
    faults.add(flip());
    let values = multi_get(&db, &keys, &unverified).unwrap();
    assert!(values.iter().all(Option::is_some));
}

/// Filters of more than half a MiB don't stay with their table.
#[test]
fn parts_of_large_filters_are_read_together_as_well() {
    let (env, faults) = simulated();
    let family = ColumnFamilyOptions {
        filter_bits_per_key: 32,
        compaction_style: CompactionStyle::Manual,
        ..ColumnFamilyOptions::default()
    };
    let db = open_in(&env, family.clone());
    let mut batch = esker::WriteBatch::new();
    for i in 0..150_000_usize {
        batch.put(&row(i), b"v").unwrap();
        if batch.len() == 1000 {
            db.write(&mut batch).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    // With an empty cache.
    let db = open_in(&env, family);
    let absent = [b"row00000x".to_vec()];
    multi_get(&db, &absent, &ReadOptions::default()).unwrap();
    // Rows of each filter, and rows that filters keep away.
    let keys: Vec<Vec<u8>> = (0..30)
        .flat_map(|i| [row(i * 5000 + 7), [row(i * 5000 + 7), b"x".to_vec()].concat()])
        .collect();
    let cost = counted(&faults, || {
        let values = multi_get(&db, &keys, &ReadOptions::default()).unwrap();
        assert_eq!(values.iter().flatten().count(), 30);
    });
    // Some 20 parts of the filter, of which four are a request, and 30 blocks.
    assert_eq!(cost.0, 2, "one batch of parts, one of blocks");
    assert!((32..40).contains(&cost.1), "{} reads", cost.1);
    let again = counted(&faults, || {
        drop(multi_get(&db, &keys, &ReadOptions::default()).unwrap())
    });
    assert_eq!(again, (0, 0));
}

fn value(i: usize) -> Vec<u8> {
    format!("{i:04}").into_bytes().repeat(250)
}

/// Rows whose values of 1,000 bytes lie in two blob files, with no block and no value in memory.
fn cold_values(rows: usize) -> (Db, FaultFs) {
    let (env, faults) = simulated();
    let family = ColumnFamilyOptions {
        compaction_style: CompactionStyle::Manual,
        ..ColumnFamilyOptions::default()
    };
    let db = open_in(&env, family.clone());
    for half in 0..2 {
        for i in half * rows / 2..(half + 1) * rows / 2 {
            db.put(&row(i), &value(i)).unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(db.stats().blob_files, 2);
    db.close().unwrap();
    drop(db);
    // With an empty cache: flushes put the blocks of pointers there.
    let db = open_in(&env, family);
    // Opens tables and blob files.
    check_values(&db, &[0, rows - 1], &uncached());
    (db, faults)
}

fn check_values(db: &Db, rows: &[usize], options: &ReadOptions) {
    let keys: Vec<Vec<u8>> = rows.iter().map(|&i| row(i)).collect();
    let values = multi_get(db, &keys, options).unwrap();
    for (&i, found) in rows.iter().zip(values) {
        assert_eq!(found, Some(value(i)), "row {i}");
    }
}

#[test]
fn values_in_blob_files_are_asked_for_in_one_batch() {
    let (db, faults) = cold_values(1000);
    // Of both files, in any order, and one of them twice. The few blocks of a table are neighbours.
    let rows = [900, 100, 300, 100, 700, 500];
    let cost = counted(&faults, || check_values(&db, &rows, &uncached()));
    assert_eq!(cost, (2, 2 + 5), "blocks of both tables, then five values");
    let one_by_one = counted(&faults, || {
        let keys: Vec<_> = rows.iter().map(|&i| row(i)).collect();
        gets(&db, &keys, &uncached());
    });
    assert_eq!(one_by_one, (0, 12));
    let cost = counted(&faults, || check_values(&db, &rows, &ReadOptions::default()));
    assert_eq!(cost, (2, 2 + 5));
    // Blocks and values come from the cache, for gets as well.
    let again = counted(&faults, || {
        check_values(&db, &rows, &ReadOptions::default());
        assert_eq!(db.get(&row(700)).unwrap().unwrap(), value(700));
    });
    assert_eq!(again, (0, 0));
    // Those that are missing are one batch, beside those that are there.
    let cost = counted(&faults, || {
        check_values(&db, &[100, 110, 300, 310], &ReadOptions::default())
    });
    assert_eq!(cost, (1, 2), "two values: their blocks are in the cache");
}

#[test]
fn neighbouring_values_are_one_request_and_are_kept_apart() {
    let (db, faults) = cold_values(1000);
    let rows: Vec<usize> = (200..240).collect();
    // Brings the blocks.
    multi_get(&db, &[row(199), row(220), row(240)], &ReadOptions::default()).unwrap();
    let cost = counted(&faults, || check_values(&db, &rows, &uncached()));
    assert_eq!(cost, (1, 1));
    let before = db.stats().cache_bytes;
    check_values(&db, &rows, &ReadOptions::default());
    let cached = db.stats().cache_bytes - before;
    // All but the one that is there already.
    assert!(
        (39 * 1000..40 * 1500).contains(&cached),
        "{cached} bytes for 39 values: they keep their neighbours"
    );
    // Some 100 KiB are one request, 400 are several.
    let (batches, reads) = counted(&faults, || {
        check_values(&db, &(0..400).collect::<Vec<_>>(), &uncached())
    });
    assert!(batches > 1 && reads < 20, "{batches} batches of {reads} reads");
}

#[test]
fn a_fault_in_the_read_of_a_value_is_an_error_with_its_place() {
    let (db, faults) = cold_values(1000);
    let rows: Vec<usize> = (0..10).map(|i| i * 100).collect();
    let keys: Vec<Vec<u8>> = rows.iter().map(|&i| row(i)).collect();
    let mut places = BTreeSet::new();
    for nth in 1..=10 {
        for (fault, kind) in [
            (Fault::Eio, ErrorKind::Io),
            (Fault::ShortRead, ErrorKind::Corruption),
            (Fault::CorruptRead { bit: 999 }, ErrorKind::Corruption),
        ] {
            faults.add(Rule::new(Op::Read, fault).nth(nth).on_path(".blob"));
            let error = multi_get(&db, &keys, &uncached()).unwrap_err();
            assert_eq!(error.kind(), kind, "{fault:?} {nth}: {error:?}");
            assert_eq!(error.column_family(), Some("default"));
            places.insert((error.file().unwrap().to_owned(), error.offset().unwrap()));
            check_values(&db, &rows, &uncached());
        }
    }
    assert_eq!(places.len(), 10, "each read names its own value: {places:?}");
    // Neighbours of one that can't be read together are read by themselves.
    faults.add(Rule::new(Op::Read, Fault::Eio).on_path(".blob"));
    let cost = counted(&faults, || check_values(&db, &[500, 501, 502], &uncached()));
    assert_eq!(cost, (2, 5), "a block; a run of three values, then each of them");
    let flip = || Rule::new(Op::Read, Fault::CorruptRead { bit: 8 * 50 }).on_path(".blob");
    faults.add(flip());
    let unverified = ReadOptions {
        verify_checksums: false,
        ..uncached()
    };
    let values = multi_get(&db, &keys, &unverified).unwrap();
    let wrong = rows
        .iter()
        .zip(values)
        .filter(|(i, found)| *found != Some(value(**i)));
    assert_eq!(wrong.count(), 1, "nobody asked for the checksum");
}

#[test]
fn merges_on_values_in_blob_files_are_folded() {
    let family = |operator: bool| ColumnFamilyOptions {
        merge_operator: operator.then(|| Arc::new(AppendOperator::new(",")) as Arc<dyn esker::MergeOperator>),
        compaction_style: CompactionStyle::Manual,
        ..ColumnFamilyOptions::default()
    };
    let (db, faults) = open(family(true));
    for i in 0..100 {
        db.put(&row(i), &value(i)).unwrap();
    }
    db.flush().unwrap();
    for i in (0..100).step_by(10) {
        db.merge(&row(i), b"more").unwrap();
    }
    let keys: Vec<Vec<u8>> = (0..100).map(row).collect();
    let expected = gets(&db, &keys, &uncached());
    assert!(expected[10].as_ref().unwrap().ends_with(b",more"));
    let cost = counted(&faults, || {
        assert_eq!(multi_get(&db, &keys, &uncached()).unwrap(), expected);
    });
    assert_eq!(
        cost.0, 1,
        "a batch of values; their blocks are in memory since the flush"
    );
}
