//! Scans over values in blob files: what they show, whichever way they go, and what they read for it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker::{
    ColumnFamilyOptions, CompactionStyle, Compression, Db, ErrorKind, Iter, Opener, Options, PrefixExtractor,
    ReadOptions,
};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::{Env, Fs};
use proptest::prelude::*;

const VALUE_BYTES: usize = 600;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(i: u32) -> Vec<u8> {
    format!("{:03}/{i:06}", i / 100).into_bytes()
}

/// Every seventh value is short, and stays in its table.
fn value(i: u32, round: u32) -> Vec<u8> {
    let mut value = format!("{i}@{round}").into_bytes();
    value.resize(if i % 7 == 3 { 40 } else { VALUE_BYTES }, b'.');
    value
}

/// A database of `rows` rows and what is in it. Each round, in a blob file of its own, rewrites other rows, and deletes one in
/// fifty, so that neighbours lie in different files with dead values between them.
fn database(rows: u32, rounds: u32, compression: Compression, memory_bytes: u64) -> (Db, FaultFs, Rows) {
    let (mut env, mem) = Env::simulated(7);
    let faults = FaultFs::new(Arc::new(mem));
    env.fs = Arc::new(faults.clone()) as Arc<dyn Fs>;
    let options = Options {
        memory_budget_bytes: memory_bytes,
        default_column_family: ColumnFamilyOptions {
            compaction_style: CompactionStyle::Manual,
            blob_compression: compression,
            prefix_extractor: Some(PrefixExtractor::Fixed(3)),
            blob_space_percent: 10_000,
            memtable_bytes: 4 << 20,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(env).open(Path::new("db")).unwrap();
    let mut content = Rows::new();
    for round in 0..rounds {
        for i in 0..rows {
            let dice = (i ^ (round << 9)).wrapping_mul(2_654_435_761) >> 16;
            if round > 0 && dice % 3 != 0 {
                continue;
            }
            if round > 0 && dice % 50 == 0 {
                db.delete(&key(i)).unwrap();
                content.remove(&key(i));
            } else {
                db.put(&key(i), &value(i, round)).unwrap();
                content.insert(key(i), value(i, round));
            }
        }
        db.flush().unwrap();
    }
    db.compact_range(None, None).unwrap();
    (db, faults, content)
}

fn plain(rows: u32, rounds: u32) -> (Db, FaultFs, Rows) {
    database(rows, rounds, Compression::None, 64 << 20)
}

fn not_cached() -> ReadOptions {
    ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    }
}

fn row(iter: &Iter) -> Option<(&[u8], &[u8])> {
    iter.valid().then(|| (iter.key(), iter.value()))
}

fn as_slices<'a>((key, value): (&'a Vec<u8>, &'a Vec<u8>)) -> (&'a [u8], &'a [u8]) {
    (key, value)
}

/// The rows of the scan from here on are those.
fn check_forward<'a>(iter: &mut Iter, expected: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) {
    for row_expected in expected {
        assert_eq!(row(iter).unwrap(), as_slices(row_expected));
        iter.next().unwrap();
    }
    assert!(!iter.valid());
}

#[test]
fn all_rows_are_shown_in_either_direction() {
    for compression in [Compression::None, Compression::Lz4] {
        for memory_bytes in [20 << 20, 128 << 20] {
            let (db, _, rows) = database(12_000, 5, compression, memory_bytes);
            for options in [ReadOptions::default(), not_cached(), ReadOptions::default()] {
                let mut iter = db.iter(options.clone()).unwrap();
                iter.seek_to_first().unwrap();
                check_forward(&mut iter, rows.iter());
                iter.seek_to_last().unwrap();
                for expected in rows.iter().rev() {
                    assert_eq!(row(&iter).unwrap(), as_slices(expected));
                    iter.prev().unwrap();
                }
                assert!(!iter.valid());
                iter.prev().unwrap();
                iter.next().unwrap();
                assert_eq!((iter.key(), iter.value()), (&b""[..], &b""[..]));
            }
        }
    }
}

#[test]
fn bounds_and_prefixes_end_a_scan_that_reads_ahead() {
    let (db, _, rows) = plain(6_000, 4);
    let (lower, upper) = (key(1_234), key(4_321));
    let mut iter = db
        .iter(ReadOptions {
            lower_bound: Some(lower.clone()),
            upper_bound: Some(upper.clone()),
            ..not_cached()
        })
        .unwrap();
    iter.seek_to_first().unwrap();
    check_forward(&mut iter, rows.range(lower..upper));
    let mut iter = db
        .iter(ReadOptions {
            prefix_same: true,
            ..not_cached()
        })
        .unwrap();
    iter.seek(b"007/").unwrap();
    check_forward(&mut iter, rows.range(key(700)..key(800)));
    // Unrestricted, as the key has no prefix; turning back must not restrict it.
    iter.seek(b"0").unwrap();
    let mut expected: Vec<_> = rows.iter().take(150).collect();
    for row_expected in &expected {
        assert_eq!(row(&iter).unwrap(), as_slices(*row_expected));
        iter.next().unwrap();
    }
    expected.reverse();
    for row_expected in expected {
        iter.prev().unwrap();
        assert_eq!(row(&iter).unwrap(), as_slices(row_expected));
    }
}

#[derive(Clone, Debug)]
enum Move {
    Next(usize),
    Prev(usize),
    Seek(u32),
    SeekForPrev(u32),
    First,
    Last,
    Narrow(Option<u32>, Option<u32>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let steps = || prop_oneof![1..5_usize, 10..40_usize, 300..1200_usize];
    let one = prop_oneof![
        4 => steps().prop_map(Move::Next),
        4 => steps().prop_map(Move::Prev),
        1 => (0..2_100_u32).prop_map(Move::Seek),
        1 => (0..2_100_u32).prop_map(Move::SeekForPrev),
        1 => Just(Move::First),
        1 => Just(Move::Last),
        1 => (prop::option::of(0..2_100_u32), prop::option::of(0..2_100_u32))
            .prop_map(|(lower, upper)| Move::Narrow(lower, upper)),
    ];
    prop::collection::vec(one, 1..25)
}

fn walk(db: &Db, rows: &Rows, moves: &[Move], options: ReadOptions) {
    let (lower, upper) = (options.lower_bound.clone(), options.upper_bound.clone());
    let all: Vec<_> = rows
        .iter()
        .filter(|(k, _)| lower.as_ref().is_none_or(|lower| *k >= lower))
        .filter(|(k, _)| upper.as_ref().is_none_or(|upper| *k < upper))
        .collect();
    let mut shown = all.clone();
    let mut iter = db.iter(options).unwrap();
    let mut at: Option<usize> = None;
    let check = |iter: &Iter, shown: &[(&Vec<u8>, &Vec<u8>)], at: Option<usize>| {
        assert_eq!(row(iter), at.map(|at| as_slices(shown[at])));
    };
    for one in moves {
        match *one {
            Move::Next(steps) => {
                for _ in 0..steps {
                    iter.next().unwrap();
                    at = at.map(|at| at + 1).filter(|&at| at < shown.len());
                    check(&iter, &shown, at);
                }
            }
            Move::Prev(steps) => {
                for _ in 0..steps {
                    iter.prev().unwrap();
                    at = at.and_then(|at| at.checked_sub(1));
                    check(&iter, &shown, at);
                }
            }
            Move::Seek(i) => {
                iter.seek(&key(i)).unwrap();
                at = Some(shown.partition_point(|(k, _)| **k < key(i))).filter(|&at| at < shown.len());
            }
            Move::SeekForPrev(i) => {
                iter.seek_for_prev(&key(i)).unwrap();
                at = shown.partition_point(|(k, _)| **k <= key(i)).checked_sub(1);
            }
            Move::First => {
                iter.seek_to_first().unwrap();
                at = (!shown.is_empty()).then_some(0);
            }
            Move::Last => {
                iter.seek_to_last().unwrap();
                at = shown.len().checked_sub(1);
            }
            Move::Narrow(lower, upper) => {
                let (lower, upper) = (lower.map(key), upper.map(key));
                iter.set_bounds(lower.as_deref(), upper.as_deref());
                shown.clone_from(&all);
                shown.retain(|(k, _)| {
                    lower.as_ref().is_none_or(|lower| *k >= lower)
                        && upper.as_ref().is_none_or(|upper| *k < upper)
                });
                at = None;
            }
        }
        check(&iter, &shown, at);
    }
}

#[test]
fn any_walk_shows_what_the_database_holds() {
    let (db, _, rows) = plain(2_000, 5);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        source_file: Some(file!()),
        ..ProptestConfig::with_cases(48)
    });
    runner
        .run(
            &(moves(), any::<bool>(), any::<bool>(), any::<bool>()),
            |(moves, told, cached, bounded)| {
                let options = ReadOptions {
                    lower_bound: bounded.then(|| key(200)),
                    upper_bound: bounded.then(|| key(1_900)),
                    readahead_bytes: if told { 100_000 } else { 0 },
                    fill_cache: cached,
                    ..ReadOptions::default()
                };
                walk(&db, &rows, &moves, options);
                Ok(())
            },
        )
        .unwrap();
}

/// What a scan of `rows` rows reads: batches, and single reads, those in batches included.
fn reads_of(db: &Db, faults: &FaultFs, rows: usize, options: ReadOptions) -> (u64, u64) {
    let count = || (faults.calls(Op::ReadMany), faults.calls(Op::Read));
    let before = count();
    let mut iter = db.iter(options).unwrap();
    iter.seek_to_first().unwrap();
    for _ in 1..rows {
        iter.next().unwrap();
    }
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_long_scan_reads_many_values_at_a_time_and_a_short_one_nothing_in_vain() {
    let (db, faults, rows) = plain(20_000, 6);
    let (batches, reads) = reads_of(&db, &faults, rows.len(), not_cached());
    assert!(batches >= 5, "{batches} batches");
    assert!(
        reads < rows.len() as u64 / 20,
        "{reads} reads of {} rows",
        rows.len()
    );
    let (batches, reads) = reads_of(&db, &faults, 12, not_cached());
    assert_eq!(batches, 0);
    assert!(reads < 20, "{reads} reads of 12 rows");
    let told = ReadOptions {
        readahead_bytes: 64 << 10,
        ..not_cached()
    };
    assert!(reads_of(&db, &faults, 12, told).0 > 0);
}

#[test]
fn nothing_is_read_ahead_past_a_bound() {
    let (db, faults, rows) = plain(20_000, 6);
    // Files are opened, which is reading too.
    reads_of(&db, &faults, rows.len(), not_cached());
    for bounded in [5, 15, 40, 100] {
        let options = ReadOptions {
            upper_bound: rows.keys().nth(bounded).cloned(),
            readahead_bytes: 1 << 20,
            ..not_cached()
        };
        let (_, reads) = reads_of(&db, &faults, bounded, options);
        assert!(reads <= bounded as u64 + 10, "{reads} reads of {bounded} rows");
    }
}

/// It read as far as the bound that it was opened with.
#[test]
fn nothing_is_read_ahead_past_a_bound_that_was_set_later() {
    let (db, faults, rows) = plain(20_000, 6);
    reads_of(&db, &faults, rows.len(), not_cached());
    let mut iter = db
        .iter(ReadOptions {
            readahead_bytes: 1 << 20,
            ..not_cached()
        })
        .unwrap();
    for from in [0, 3_000, 9_000] {
        for len in [5, 40, 100] {
            let keys: Vec<_> = rows.keys().skip(from).take(len + 1).collect();
            iter.set_bounds(Some(keys[0]), Some(keys[len]));
            let before = faults.calls(Op::Read);
            iter.seek_to_first().unwrap();
            check_forward(&mut iter, rows.range(keys[0].clone()..keys[len].clone()));
            iter.seek_to_last().unwrap();
            for expected in rows.range(keys[0].clone()..keys[len].clone()).rev() {
                assert_eq!(row(&iter).unwrap(), as_slices(expected));
                iter.prev().unwrap();
            }
            assert!(!iter.valid());
            let reads = faults.calls(Op::Read) - before;
            assert!(reads <= 2 * len as u64 + 20, "{reads} reads of twice {len} rows");
        }
    }
    iter.set_bounds(None, None);
    iter.seek_to_first().unwrap();
    check_forward(&mut iter, rows.iter());
}

#[test]
fn values_that_a_batch_did_not_bring_are_read_alone() {
    let (db, faults, rows) = plain(5_000, 4);
    faults.add(Rule::new(Op::ReadMany, Fault::Eio).nth(2).sticky());
    let mut iter = db.iter(not_cached()).unwrap();
    iter.seek_to_first().unwrap();
    check_forward(&mut iter, rows.iter());
}

#[test]
fn an_error_comes_with_its_row_and_ends_the_scan() {
    let (db, faults, rows) = plain(5_000, 4);
    let mut iter = db.iter(not_cached()).unwrap();
    iter.seek_to_first().unwrap();
    for expected in rows.iter().take(1_000) {
        assert_eq!(row(&iter).unwrap(), as_slices(expected));
        iter.next().unwrap();
    }
    faults.add(Rule::new(Op::Read, Fault::Eio).on_path(".blob").sticky());
    let mut shown = rows.iter().skip(1_000);
    let error = loop {
        assert_eq!(row(&iter).unwrap(), as_slices(shown.next().unwrap()));
        if let Err(error) = iter.next() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(!iter.valid());
    iter.next().unwrap();
    assert!(!iter.valid());
    faults.clear();
    let (from, _) = shown.next().unwrap();
    iter.seek(from).unwrap();
    check_forward(&mut iter, rows.range(from.clone()..));
}

#[test]
fn a_second_scan_of_what_fits_reads_nothing() {
    let (db, faults, rows) = plain(5_000, 4);
    assert!(reads_of(&db, &faults, rows.len(), ReadOptions::default()).1 > 0);
    assert_eq!(reads_of(&db, &faults, rows.len(), ReadOptions::default()), (0, 0));
}

#[test]
fn what_a_scan_sets_aside_is_given_back() {
    let (db, _, rows) = plain(12_000, 4);
    let capacity = |db: &Db| db.stats().cache_capacity_bytes;
    let before = capacity(&db);
    let mut iters: Vec<Iter> = (0..8).map(|_| db.iter(not_cached()).unwrap()).collect();
    for iter in &mut iters {
        iter.seek_to_first().unwrap();
        for _ in 0..rows.len() / 2 {
            iter.next().unwrap();
        }
    }
    assert!(capacity(&db) < before, "{} of {before}", capacity(&db));
    assert!(capacity(&db) >= before / 10 * 8, "{} of {before}", capacity(&db));
    drop(iters);
    assert!(capacity(&db) > before / 100 * 95, "{} of {before}", capacity(&db));
}
