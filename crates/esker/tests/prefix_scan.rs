//! Prefix scans: what filters spare them, and that they show the same rows as without.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamilyOptions, CompactionStyle, Db, Iter, KeyOrder, Opener, Options,
    PrefixExtractor, ReadOptions, ReverseBytewiseComparator, Snapshot,
};
use esker_env::fault::{FaultFs, Op};
use esker_env::{Env, Fs};
use proptest::prelude::*;

fn open(env: &Env, family: ColumnFamilyOptions) -> Db {
    let options = Options {
        memory_budget_bytes: 4 << 20,
        default_column_family: family,
        ..Options::default()
    };
    Opener::new(options)
        .env(env.clone())
        .open(Path::new("db"))
        .unwrap()
}

fn simulated() -> (Env, FaultFs) {
    let (mut env, mem) = Env::simulated(7);
    let faults = FaultFs::new(Arc::new(mem));
    env.fs = Arc::new(faults.clone()) as Arc<dyn Fs>;
    (env, faults)
}

fn same_prefix() -> ReadOptions {
    ReadOptions {
        prefix_same: true,
        fill_cache: false,
        ..ReadOptions::default()
    }
}

#[derive(Clone, Debug)]
enum Write {
    Put(usize),
    Delete(usize),
    Merge(usize),
    DeleteRange(usize, usize),
    Flush,
    Compact(usize, usize),
    Snapshot,
}

#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(usize),
    SeekForPrev(usize),
    Next,
    Prev,
    Refresh,
}

const KEYS: usize = 90;

/// Keys of zero to four letters: some too short for a prefix, some that are the prefix of others.
fn key(i: usize) -> Vec<u8> {
    let letters = b"ab\xff";
    let mut i = i;
    let mut key = Vec::new();
    while i > 0 {
        i -= 1;
        key.push(letters[i % 3]);
        i /= 3;
    }
    key
}

fn write() -> impl Strategy<Value = Write> {
    let k = || 0..KEYS;
    prop_oneof![
        12 => k().prop_map(Write::Put),
        3 => k().prop_map(Write::Delete),
        3 => k().prop_map(Write::Merge),
        1 => (k(), k()).prop_map(|(a, b)| Write::DeleteRange(a, b)),
        4 => Just(Write::Flush),
        1 => (k(), k()).prop_map(|(a, b)| Write::Compact(a, b)),
        1 => Just(Write::Snapshot),
    ]
}

fn step() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        4 => (0..KEYS).prop_map(Move::Seek),
        4 => (0..KEYS).prop_map(Move::SeekForPrev),
        8 => Just(Move::Next),
        8 => Just(Move::Prev),
        1 => Just(Move::Refresh),
    ]
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn all_rows(db: &Db, snapshot: Option<&Snapshot>) -> Rows {
    let options = ReadOptions {
        snapshot: snapshot.cloned(),
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut iter = db.iter(options).unwrap();
    let mut rows = Rows::new();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next().unwrap();
    }
    rows
}

/// The rows of a plain scan, and the place in them where a prefix iterator stands.
struct Model<'r> {
    rows: &'r Rows,
    reverse: bool,
    extractor: PrefixExtractor,
    at: Option<usize>,
    prefix: Option<Vec<u8>>,
}

impl Model<'_> {
    fn stand(&mut self, at: Option<usize>) {
        self.at = at.filter(|&at| {
            self.rows.get(at).is_some_and(|(key, _)| {
                self.prefix.is_none() || self.extractor.prefix(key) == self.prefix.as_deref()
            })
        });
    }

    fn prefix_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.extractor.prefix(key).map(<[u8]>::to_vec)
    }

    fn before(&self, target: &[u8], inclusive: bool) -> usize {
        self.rows.partition_point(|(key, _)| {
            let order = key.as_slice().cmp(target);
            let order = if self.reverse { order.reverse() } else { order };
            order.is_lt() || (inclusive && order.is_eq())
        })
    }

    fn go(&mut self, step: &Move) {
        match step {
            Move::First | Move::Last => {
                self.prefix = None;
                let last = self.rows.len().checked_sub(1);
                self.stand(if matches!(step, Move::First) {
                    Some(0)
                } else {
                    last
                });
                self.prefix = self.at.and_then(|at| self.prefix_of(&self.rows[at].0));
            }
            Move::Seek(i) => {
                self.prefix = self.prefix_of(&key(*i));
                let at = self.before(&key(*i), false);
                self.stand(Some(at));
            }
            Move::SeekForPrev(i) => {
                self.prefix = self.prefix_of(&key(*i));
                let at = self.before(&key(*i), true);
                self.stand(at.checked_sub(1));
            }
            Move::Next => self.stand(self.at.map(|at| at + 1)),
            Move::Prev => self.stand(self.at.and_then(|at| at.checked_sub(1))),
            Move::Refresh => self.at = None,
        }
    }
}

fn go(iter: &mut Iter, step: &Move) {
    match step {
        Move::First => iter.seek_to_first(),
        Move::Last => iter.seek_to_last(),
        Move::Seek(i) => iter.seek(&key(*i)),
        Move::SeekForPrev(i) => iter.seek_for_prev(&key(*i)),
        Move::Next => iter.next(),
        Move::Prev => iter.prev(),
        Move::Refresh => iter.refresh(),
    }
    .unwrap();
}

fn extractor() -> impl Strategy<Value = PrefixExtractor> {
    (0_usize..4, any::<bool>()).prop_map(|(len, fixed)| match fixed {
        true => PrefixExtractor::Fixed(len),
        false => PrefixExtractor::Capped(len),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn filters_change_nothing_of_what_prefix_scans_show(
        writes in prop::collection::vec(write(), 0..120),
        steps in prop::collection::vec(step(), 1..60),
        extractor in extractor(), written_with in extractor(),
        reverse in prop::bool::weighted(0.2), whole_keys: bool, other_extractor: bool,
        bits in prop::sample::select(vec![0_u32, 10, 32]),
    ) {
        let (env, _) = simulated();
        let mut family = ColumnFamilyOptions {
            key_order: if reverse {
                KeyOrder::Custom(Arc::new(ReverseBytewiseComparator))
            } else {
                KeyOrder::Bytewise
            },
            merge_operator: Some(Arc::new(AppendOperator::default())),
            prefix_extractor: Some(if other_extractor { written_with } else { extractor }),
            whole_key_filter: whole_keys,
            filter_bits_per_key: bits,
            block_bytes: 512,
            compaction_style: CompactionStyle::Manual,
            ..ColumnFamilyOptions::default()
        };
        let mut db = open(&env, family.clone());
        let ordered = |a: usize, b: usize| {
            let (a, b) = (key(a), key(b));
            if (a > b) == reverse { (a, b) } else { (b, a) }
        };
        let mut snapshot = None;
        for (number, write) in writes.into_iter().enumerate() {
            match write {
                Write::Put(k) => db.put(&key(k), number.to_string().as_bytes()),
                Write::Delete(k) => db.delete(&key(k)),
                Write::Merge(k) => db.merge(&key(k), number.to_string().as_bytes()),
                Write::DeleteRange(a, b) => {
                    let (a, b) = ordered(a, b);
                    db.delete_range(&a, &b)
                }
                Write::Flush => db.flush(),
                Write::Compact(a, b) => {
                    let (a, b) = ordered(a, b);
                    db.compact_range(Some(&a), Some(&b))
                }
                Write::Snapshot => {
                    snapshot = Some(db.snapshot());
                    Ok(())
                }
            }
            .unwrap();
        }
        if other_extractor {
            // Tables keep the prefixes they were written with.
            snapshot = None;
            db.close().unwrap();
            drop(db);
            family.prefix_extractor = Some(extractor);
            db = open(&env, family);
        }
        let rows = all_rows(&db, snapshot.as_ref());
        let mut model = Model { rows: &rows, reverse, extractor, at: None, prefix: None };
        let mut iter = db.iter(ReadOptions { snapshot, ..same_prefix() }).unwrap();
        for (i, step) in steps.iter().enumerate() {
            go(&mut iter, step);
            model.go(step);
            let found = iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec()));
            prop_assert_eq!(found.as_ref(), model.at.map(|at| &rows[at]), "step {} of {:?}", i, &steps);
        }
    }
}

fn user(i: usize, row: usize) -> Vec<u8> {
    format!("user{i:04}/{row:04}").into_bytes()
}

/// Tables that all reach from the first user to the last: one in level 0 for each of 0, 1 and 2, one below for 3, which
/// hold the users that leave this number when divided by eight.
fn interleaved(family: ColumnFamilyOptions) -> (Db, FaultFs) {
    let (env, faults) = simulated();
    let db = open(&env, family);
    for table in [3, 2, 1, 0] {
        db.put(b"user", b"").unwrap();
        for i in (table..400).step_by(8) {
            for row in 0..10 {
                db.put(&user(i, row), format!("{row}").as_bytes()).unwrap();
            }
        }
        db.put(b"user9999/", b"").unwrap();
        db.flush().unwrap();
        if table == 3 {
            db.compact_range(None, None).unwrap();
        }
    }
    all_rows(&db, None);
    (db, faults)
}

fn by_user() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        prefix_extractor: Some(PrefixExtractor::Fixed(9)),
        filter_bits_per_key: 20,
        compaction_style: CompactionStyle::Manual,
        block_bytes: 512,
        ..ColumnFamilyOptions::default()
    }
}

fn counter(db: &Db, name: &str) -> u64 {
    let stats = db.stats();
    stats
        .counters
        .iter()
        .find(|(counter, _)| *counter == name)
        .unwrap()
        .1
}

/// Rows, reads of files and filter checks that paid of prefix scans over these users, both ways.
fn cost(db: &Db, faults: &FaultFs, users: impl Iterator<Item = usize>) -> (usize, u64, u64) {
    let before = (faults.calls(Op::Read), counter(db, "prefix_filter_negatives"));
    let mut rows = 0;
    for i in users {
        // One for each: an iterator that goes on has read ahead.
        let mut iter = db.iter(same_prefix()).unwrap();
        iter.seek(&user(i, 0)).unwrap();
        while iter.valid() {
            rows += 1;
            iter.next().unwrap();
        }
        iter.seek_for_prev(&user(i, 9999)).unwrap();
        while iter.valid() {
            rows += 1;
            iter.prev().unwrap();
        }
    }
    (
        rows,
        faults.calls(Op::Read) - before.0,
        counter(db, "prefix_filter_negatives") - before.1,
    )
}

#[test]
fn tables_without_the_prefix_are_not_read() {
    for whole_key_filter in [true, false] {
        let (db, faults) = interleaved(ColumnFamilyOptions {
            whole_key_filter,
            ..by_user()
        });
        // Users that no table has: 50 of them, so that false positives (one in some thousand) hardly matter.
        let absent = (5..400).step_by(8);
        let (rows, reads, spared) = cost(&db, &faults, absent.clone());
        assert_eq!(rows, 0);
        assert!(reads <= 4, "{reads} reads for nothing");
        assert!(spared >= 50 * 2 * 4 - 4, "{spared}");
        // Users of one table: its blocks, about two a user and direction.
        for table in 0..4 {
            let (rows, reads, spared) = cost(&db, &faults, (table..400).step_by(8));
            assert_eq!(rows, 50 * 2 * 10);
            assert!(reads <= 50 * 2 * 3, "{reads} reads for users of one table");
            assert!(spared >= 50 * 2 * 3 - 4, "{spared}");
        }
        let (db, faults) = interleaved(ColumnFamilyOptions {
            filter_bits_per_key: 0,
            ..by_user()
        });
        let (rows, reads, spared) = cost(&db, &faults, absent);
        assert_eq!((rows, spared), (0, 0));
        assert!(reads >= 50 * 4, "{reads}: a seek reads unless a filter spares it");
    }
}

#[test]
fn tables_whose_bounds_exclude_the_prefix_are_not_asked() {
    let (env, faults) = simulated();
    let db = open(&env, by_user());
    for i in 0..20 {
        for row in 0..10 {
            db.put(&user(2 * i, row), b"v").unwrap();
        }
        db.flush().unwrap();
        if i < 10 {
            db.compact_range(None, None).unwrap();
        }
    }
    all_rows(&db, None);
    let (rows, reads, spared) = cost(&db, &faults, (0..20).map(|i| 2 * i + 1));
    assert_eq!((rows, reads, spared), (0, 0, 0));
}

#[test]
fn what_a_range_tombstone_of_a_left_out_table_covers_stays_deleted() {
    let (env, faults) = simulated();
    let db = open(&env, by_user());
    for i in 0..40 {
        db.put(&user(i, 1), b"old").unwrap();
    }
    db.flush().unwrap();
    // A table with a tombstone over user 20 and rows of all users but it.
    db.delete_range(&user(20, 0), &user(21, 0)).unwrap();
    for i in (0..40).filter(|i| *i != 20) {
        db.put(&user(i, 2), b"new").unwrap();
    }
    db.flush().unwrap();
    all_rows(&db, None);
    let (rows, _, spared) = cost(&db, &faults, 20..21);
    assert_eq!(
        (rows, spared),
        (0, 2),
        "the newer table is left out, its tombstone is not"
    );
    assert_eq!(cost(&db, &faults, 21..22).0, 4);
}
