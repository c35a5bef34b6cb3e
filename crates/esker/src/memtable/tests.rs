//! Both kinds and both orders against a `BTreeMap`, and readers among writers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::key::{Cursor, ReverseBytewiseComparator, SEQUENCE_MAX, internal_key, parse_key};

const KINDS: [MemtableKind; 2] = [MemtableKind::Ordered, MemtableKind::Vector];

fn orders() -> [KeyOrder; 2] {
    [
        KeyOrder::Bytewise,
        KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 200 },
        failure_persistence: None,
        ..Default::default()
    }
}

fn pool() -> Arc<MemtableArenaPool> {
    MemtableArenaPool::new(1 << 20)
}

/// Few distinct keys, so that versions, equal heads and prefixes of one another are common.
fn key() -> impl Strategy<Value = Vec<u8>> {
    (
        0_usize..3,
        prop::collection::vec(prop_oneof![Just(0_u8), Just(7), Just(255)], 0..4),
    )
        .prop_map(|(pad, tail)| [vec![1; 4 * pad], tail].concat())
}

fn value_kind() -> impl Strategy<Value = ValueKind> {
    prop_oneof![
        3 => Just(ValueKind::Put),
        1 => Just(ValueKind::Delete),
        1 => Just(ValueKind::Merge),
        1 => Just(ValueKind::SingleDelete),
    ]
}

type Rows = Vec<(Vec<u8>, ValueKind, Vec<u8>)>;

fn rows() -> impl Strategy<Value = Rows> {
    let value = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..20),
        // Around the length from which values lie apart from their rows.
        1 => prop::collection::vec(any::<u8>(), row::APART_MIN - 2..row::APART_MIN + 2),
        1 => prop::collection::vec(any::<u8>(), if cfg!(miri) { 200..202 } else { 600..2000 }),
    ];
    let len = if cfg!(miri) { 0..25 } else { 0..120_usize };
    prop::collection::vec((key(), value_kind(), value), len)
}

/// The oracle: internal keys in order, with their values.
fn oracle(order: &KeyOrder, rows: &Rows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = rows
        .iter()
        .zip(1..)
        .map(|((key, kind, value), sequence)| (internal_key(key, sequence, *kind), value.clone()))
        .collect();
    all.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    all
}

fn filled(kind: MemtableKind, order: &KeyOrder, rows: &Rows, prefix: &[u8], hinted: bool) -> Arc<Memtable> {
    let memtable = Memtable::with_prefix(kind, order.clone(), 1, 64 << 10, &pool(), prefix);
    let mut hint = InsertHint::default();
    for ((key, kind, value), sequence) in rows.iter().zip(1..) {
        if hinted {
            memtable.insert_with(&mut hint, sequence, *kind, key, value);
        } else {
            memtable.insert(sequence, *kind, key, value);
        }
        // Snapshots in the middle of a vector's life.
        if sequence % 37 == 0 {
            memtable.sort();
        }
    }
    memtable
}

fn at(cursor: &MemtableCursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor
        .valid()
        .then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cursors_walk_as_the_oracle_does(
        rows in rows(),
        targets in prop::collection::vec((key(), 0_u64..130), if cfg!(miri) { 0..3 } else { 0..10 }),
        prefix in 0_usize..6,
        hinted: bool,
    ) {
        for (kind, order) in KINDS.into_iter().flat_map(|kind| orders().map(|order| (kind, order))) {
            let expected = oracle(&order, &rows);
            let memtable = filled(kind, &order, &rows, &[1; 6][..prefix], hinted);
            let mut cursor = memtable.cursor();
            prop_assert!(!cursor.valid());

            cursor.seek_to_first().unwrap();
            for entry in &expected {
                assert_eq!(at(&cursor).as_ref(), Some(entry));
                cursor.next().unwrap();
            }
            assert_eq!(at(&cursor), None);

            cursor.seek_to_last().unwrap();
            for entry in expected.iter().rev() {
                assert_eq!(at(&cursor).as_ref(), Some(entry));
                cursor.prev().unwrap();
            }
            assert_eq!(at(&cursor), None);

            for (key, sequence) in &targets {
                for value_kind in [ValueKind::SEEK, ValueKind::Put, ValueKind::Delete] {
                    let target = internal_key(key, *sequence, value_kind);
                    let less = |entry: &&(Vec<u8>, Vec<u8>)| order.compare_internal(&entry.0, &target).is_lt();
                    cursor.seek(&target).unwrap();
                    let from = expected.iter().position(|entry| !less(&entry));
                    assert_eq!(at(&cursor).as_ref(), from.map(|from| &expected[from]));
                    if let Some(from) = from {
                        cursor.prev().unwrap();
                        assert_eq!(at(&cursor).as_ref(), from.checked_sub(1).map(|from| &expected[from]));
                    }
                    cursor.seek_for_prev(&target).unwrap();
                    let to = expected
                        .iter()
                        .rposition(|entry| order.compare_internal(&entry.0, &target).is_le());
                    assert_eq!(at(&cursor).as_ref(), to.map(|to| &expected[to]));
                    if let Some(to) = to {
                        cursor.next().unwrap();
                        assert_eq!(at(&cursor).as_ref(), expected.get(to + 1));
                    }
                }
            }
        }
    }

    #[test]
    fn get_shows_the_versions_that_a_reader_sees(rows in rows(), sequence_max in 0_u64..130, hinted: bool) {
        for (kind, order) in KINDS.into_iter().flat_map(|kind| orders().map(|order| (kind, order))) {
            let memtable = filled(kind, &order, &rows, &[1], hinted);
            let mut versions: BTreeMap<&[u8], Vec<_>> = BTreeMap::new();
            for ((key, kind, value), sequence) in rows.iter().zip(1_u64..) {
                let of_key = versions.entry(key).or_default();
                if sequence <= sequence_max {
                    of_key.insert(0, (sequence, *kind, value.as_slice()));
                }
            }
            versions.insert(b"absent", Vec::new());
            for (key, expected) in versions {
                let mut seen = Vec::new();
                let flow = memtable.get(key, sequence_max, |sequence, kind, value| {
                    seen.push((sequence, kind, value));
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(flow, ControlFlow::Continue(()));
                prop_assert_eq!(&seen, &expected);
                seen.clear();
                let flow = memtable.get(key, sequence_max, |sequence, kind, value| {
                    seen.push((sequence, kind, value));
                    ControlFlow::Break(())
                });
                prop_assert_eq!(flow.is_break(), !expected.is_empty());
                prop_assert_eq!(&seen[..], &expected[..expected.len().min(1)]);
            }
        }
    }

    #[test]
    fn counters_count(rows in rows()) {
        for kind in KINDS {
            let memtable = filled(kind, &KeyOrder::Bytewise, &rows, &[], true);
            let deletes = |row: &&(Vec<u8>, ValueKind, Vec<u8>)| {
                matches!(row.1, ValueKind::Delete | ValueKind::SingleDelete)
            };
            prop_assert_eq!(memtable.entries(), rows.len() as u64);
            prop_assert_eq!(memtable.deletions(), rows.iter().filter(deletes).count() as u64);
            prop_assert_eq!(memtable.is_empty(), rows.is_empty());
            prop_assert_eq!(memtable.sequence_min(), (!rows.is_empty()).then_some(1));
            prop_assert_eq!(memtable.sequence_max(), rows.len() as u64);
            let bytes: usize = rows.iter().map(|row| row.0.len() + row.2.len()).sum();
            prop_assert!(memtable.used_bytes() >= bytes);
            prop_assert!(memtable.approximate_bytes() >= memtable.used_bytes());
        }
    }
}

#[test]
fn size_estimates_are_close() {
    let count: u64 = if cfg!(miri) { 150 } else { 20_000 };
    for kind in KINDS {
        let memtable = Memtable::new(kind, KeyOrder::Bytewise, 1, 1 << 20, &pool());
        for i in 0..count {
            // A permutation: every key once, in no order.
            let key = (i * 7919 % count).to_be_bytes();
            memtable.insert(i + 1, ValueKind::Put, &key, &[0; 20]);
        }
        let estimate = |from: u64, to: u64| {
            memtable
                .approximate_count(&from.to_be_bytes(), &to.to_be_bytes(), 0)
                .keys
        };
        assert_eq!(estimate(5, 55), 50, "small ranges are exact");
        assert_eq!(estimate(55, 5), 0);
        for (from, to) in [(0, count), (count / 4, count / 2), (0, count / 10)] {
            let (exact, estimate) = ((to - from) as f64, estimate(from, to) as f64);
            assert!((estimate / exact - 1.0).abs() < 0.3, "{estimate} for {exact}");
        }
        let bytes = memtable.approximate_bytes_of(estimate(0, count));
        let used = memtable.used_bytes() as f64;
        assert!((bytes as f64 / used - 1.0).abs() < 0.3, "{bytes} of {used}");
    }
}

/// Beside a large sum, a part of it is counted from few rows, and the sum is known no less closely.
#[test]
fn a_part_of_a_sum_is_counted_as_closely_as_the_sum_needs() {
    const COUNT: u64 = if cfg!(miri) { 150 } else { 20_000 };
    let memtable = Memtable::new(MemtableKind::Ordered, KeyOrder::Bytewise, 1, 1 << 20, &pool());
    for i in 0..COUNT {
        let key = (i * 7919 % COUNT).to_be_bytes();
        memtable.insert(i + 1, ValueKind::Put, &key, &[0; 20]);
    }
    let ranges = [
        (0, COUNT),
        (COUNT / 4, COUNT / 2),
        (70, 90),
        (COUNT - 1, COUNT),
        (COUNT, 2 * COUNT),
    ];
    for (from, to) in ranges {
        let exact = to.min(COUNT) - from.min(COUNT);
        for besides in [0, 10, 1000, COUNT / 2, COUNT, 10 * COUNT, 1000 * COUNT] {
            let found = memtable.approximate_count(&from.to_be_bytes(), &to.to_be_bytes(), besides);
            assert_eq!(found.rows, found.keys, "each key has a row");
            // Two standard errors; of few rows, those of the sum that was found, which is what it knows.
            let part = if cfg!(miri) { exact.max(found.keys) } else { exact };
            let slack = (part + besides) * 3 / 10;
            assert!(
                found.keys.abs_diff(exact) <= slack,
                "{found:?} of {exact}, {besides} besides"
            );
        }
    }
    if !cfg!(miri) {
        let coarse = memtable.approximate_count(&[0; 8], &[9; 8], 1000 * COUNT);
        assert_eq!(
            coarse.rows % 1024,
            0,
            "{coarse:?}: counted from the rows of a high level"
        );
    }
}

#[test]
fn range_deletes_go_to_the_tombstones() {
    for kind in KINDS {
        let memtable = Memtable::new(kind, KeyOrder::Bytewise, 1, 64 << 10, &pool());
        assert!(memtable.range_tombstones().is_empty() && !memtable.has_range_tombstones());
        memtable.insert(5, ValueKind::RangeDelete, b"b", b"m");
        assert!(!memtable.is_empty() && memtable.has_range_tombstones());
        assert_eq!((memtable.entries(), memtable.deletions()), (1, 1));
        assert_eq!((memtable.sequence_min(), memtable.sequence_max()), (Some(5), 5));
        let first = memtable.range_tombstones();
        assert!(Arc::ptr_eq(&first, &memtable.range_tombstones()), "cached");
        memtable.insert(9, ValueKind::RangeDelete, b"k", b"z");
        assert_eq!(memtable.max_covering_tombstone(b"l", SEQUENCE_MAX), 9);
        assert_eq!(memtable.max_covering_tombstone(b"l", 8), 5);
        assert_eq!(memtable.max_covering_tombstone(b"a", 8), 0);
        assert_eq!(memtable.range_tombstones().len(), 3);
        assert_eq!(first.len(), 1, "what was handed out does not change");
        let mut cursor = memtable.cursor();
        cursor.seek_to_first().unwrap();
        assert!(!cursor.valid(), "no point row");
    }
}

#[test]
fn a_hint_outlives_its_memtable_and_serves_the_next() {
    let pool = pool();
    let mut hint = InsertHint::default();
    for round in 0..4 {
        let memtable = Memtable::new(MemtableKind::Ordered, KeyOrder::Bytewise, round, 16 << 10, &pool);
        for i in 0..20_u8 {
            memtable.insert_with(&mut hint, u64::from(i) + 1, ValueKind::Put, &[i], &[]);
        }
        let mut cursor = memtable.cursor();
        cursor.seek_to_first().unwrap();
        for i in 0..20_u8 {
            assert_eq!(parse_key(cursor.key()).unwrap().user_key, [i]);
            cursor.next().unwrap();
        }
    }
}

#[test]
fn hinted_inserts_may_jump_anywhere() {
    let memtable = Memtable::new(MemtableKind::Ordered, KeyOrder::Bytewise, 1, 64 << 10, &pool());
    let mut hints = [InsertHint::default(), InsertHint::default()];
    let count = if cfg!(miri) { 60 } else { 5000_u32 };
    let mut expected = BTreeMap::new();
    for i in 0..count {
        // Runs of ascending keys that start all over the place, by two writers in turn.
        let key = ((i / 16).wrapping_mul(2_654_435_761) >> 12 << 8) + i % 16;
        let sequence = u64::from(i) + 1;
        expected.insert((key, u64::MAX - sequence), sequence);
        memtable.insert_with(
            &mut hints[(i / 3 % 2) as usize],
            sequence,
            ValueKind::Put,
            &key.to_be_bytes(),
            &[],
        );
    }
    let mut cursor = memtable.cursor();
    cursor.seek_to_first().unwrap();
    for (&(key, _), &sequence) in &expected {
        assert_eq!(
            cursor.key(),
            internal_key(&key.to_be_bytes(), sequence, ValueKind::Put)
        );
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
}

#[test]
fn a_successor_skips_what_its_predecessors_keys_begin_with() {
    for kind in KINDS {
        let memtable = Memtable::new(kind, KeyOrder::Bytewise, 1, 64 << 10, &pool());
        for i in 0..50_u64 {
            memtable.insert(
                i + 1,
                ValueKind::Put,
                format!("table/{:010}", i * 31 % 50).as_bytes(),
                b"",
            );
        }
        let next = memtable.successor(2, 64 << 10);
        assert_eq!((next.kind(), next.id()), (kind, 2));
        for (i, key) in ["table/0000000007", "table/0000000003", "a", "z", "table/"]
            .iter()
            .enumerate()
        {
            next.insert(i as u64 + 1, ValueKind::Put, key.as_bytes(), b"");
        }
        let mut cursor = next.cursor();
        cursor.seek_to_first().unwrap();
        let mut seen = Vec::new();
        while cursor.valid() {
            seen.push(user_key(cursor.key()).to_vec());
            cursor.next().unwrap();
        }
        assert_eq!(
            seen,
            [
                &b"a"[..],
                b"table/",
                b"table/0000000003",
                b"table/0000000007",
                b"z"
            ]
        );
    }
}

#[test]
fn a_vector_snapshot_stays_as_it_was() {
    let memtable = Memtable::new(MemtableKind::Vector, KeyOrder::Bytewise, 1, 64 << 10, &pool());
    memtable.insert(1, ValueKind::Put, b"b", b"1");
    let mut before = memtable.cursor();
    memtable.insert(2, ValueKind::Put, b"a", b"2");
    memtable.seal();
    memtable.sort();
    let mut after = memtable.cursor();
    before.seek_to_first().unwrap();
    assert_eq!(before.value(), b"1");
    after.seek_to_first().unwrap();
    assert_eq!(after.value(), b"2");
    after.next().unwrap();
    assert_eq!(after.value(), b"1");
}

/// Writers insert rows whose value names their key, publish how far they are, and readers check at all times that what
/// was published is there, whole and in order.
fn stress(kind: MemtableKind, order: KeyOrder, per_writer: u64) {
    const WRITERS: u64 = 3;
    let memtable = Memtable::new(kind, order.clone(), 1, 1 << 20, &pool());
    let published: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let key_of = |writer: u64, i: u64| {
        // Ascending runs that interleave with the other writers' keys, and jumps.
        let spread = if i % 64 < 32 {
            i
        } else {
            i.wrapping_mul(0x9e37_79b9) % 100_000
        };
        (spread * WRITERS + writer).to_be_bytes()
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (memtable, published) = (&memtable, &published);
            scope.spawn(move || {
                let mut hint = InsertHint::default();
                for i in 0..per_writer {
                    let (key, sequence) = (key_of(writer, i), i * WRITERS + writer + 1);
                    memtable.insert_with(&mut hint, sequence, ValueKind::Put, &key, &key);
                    published[writer as usize].store(i + 1, Ordering::Release);
                }
            });
        }
        for reader in 0..2 {
            let (memtable, published, order) = (&memtable, &published, &order);
            scope.spawn(move || {
                let mut turn = reader;
                loop {
                    let seen: Vec<u64> = published
                        .iter()
                        .map(|count| count.load(Ordering::Acquire))
                        .collect();
                    for (writer, &count) in (0..).zip(&seen) {
                        if count == 0 {
                            continue;
                        }
                        let i = turn % count;
                        let (key, sequence) = (key_of(writer, i), i * WRITERS + writer + 1);
                        let mut found = false;
                        let _ = memtable.get(&key, sequence, |at, _, value| {
                            assert_eq!(value, key);
                            found |= at == sequence;
                            ControlFlow::Continue(())
                        });
                        assert!(found, "what was published is found");
                    }
                    if turn % 16 == 0 {
                        let mut cursor = memtable.cursor();
                        let (mut last, mut rows) = (Vec::new(), 0_u64);
                        cursor.seek_to_first().expect("never fails");
                        while cursor.valid() {
                            let key = cursor.key();
                            assert!(last.is_empty() || order.compare_internal(&last, key).is_lt());
                            assert_eq!(user_key(key), cursor.value());
                            last = key.to_vec();
                            rows += 1;
                            cursor.next().expect("never fails");
                        }
                        assert!(
                            rows >= seen.iter().sum::<u64>(),
                            "a scan misses nothing that was published"
                        );
                    }
                    if seen.iter().all(|&count| count == per_writer) {
                        break;
                    }
                    turn += 7;
                }
            });
        }
    });
    assert_eq!(memtable.entries(), WRITERS * per_writer);
}

#[test]
fn readers_among_writers_see_all_that_was_published() {
    stress(
        MemtableKind::Ordered,
        KeyOrder::Bytewise,
        if cfg!(miri) { 40 } else { 20_000 },
    );
}

#[test]
fn readers_among_writers_under_a_custom_order() {
    let order = KeyOrder::Custom(Arc::new(ReverseBytewiseComparator));
    stress(MemtableKind::Ordered, order, if cfg!(miri) { 20 } else { 5_000 });
}

#[test]
fn readers_among_writers_of_a_vector() {
    stress(
        MemtableKind::Vector,
        KeyOrder::Bytewise,
        if cfg!(miri) { 20 } else { 500 },
    );
}
