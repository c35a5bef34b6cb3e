//! What a reader sees against a `BTreeMap` of all versions, by point reads and in every direction of a scan.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::key::{RangeTombstone, ReverseBytewiseComparator, internal_key};
use crate::read::point::{PointLookup, PointValue, Step};
use crate::read::testing::{Row, Source, VecCursor, comma, history, keys, merged, sources, view};

#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(usize),
    SeekForPrev(usize),
    Next,
    Prev,
    Narrow(Option<usize>, Option<usize>),
}

fn bounds() -> impl Strategy<Value = (Option<usize>, Option<usize>)> {
    (prop::option::of(0_usize..14), prop::option::of(0_usize..14))
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (0_usize..14).prop_map(Move::Seek),
        2 => (0_usize..14).prop_map(Move::SeekForPrev),
        8 => Just(Move::Next),
        8 => Just(Move::Prev),
        1 => bounds().prop_map(|(lower, upper)| Move::Narrow(lower, upper)),
    ];
    prop::collection::vec(one, 1..60)
}

fn orders() -> [KeyOrder; 2] {
    [
        KeyOrder::Bytewise,
        KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
    ]
}

fn open(order: &KeyOrder, sources: &[Source], view: View) -> VisibleCursor<VecCursor> {
    let tombstones: Vec<_> = sources
        .iter()
        .map(|source| Arc::clone(&source.tombstones))
        .collect();
    VisibleCursor::new(merged(order, sources), &tombstones, view)
}

fn read_point(order: &KeyOrder, sources: &[Source], key: &[u8], sequence: Sequence) -> Option<Vec<u8>> {
    let mut lookup = PointLookup::new();
    'sources: for source in sources {
        lookup.cover(source.tombstones.max_covering(order, key, sequence));
        for (internal_key, value) in source.rows.iter() {
            let row = parse_key(internal_key).unwrap();
            if row.user_key == key
                && row.sequence <= sequence
                && lookup.push(row.sequence, row.kind, || value.as_slice()).unwrap() == Step::Done
            {
                break 'sources;
            }
        }
        if lookup.source_done() == Step::Done {
            break;
        }
    }
    lookup
        .finish(key, Some(&*comma()), |_| panic!("there are no blob files"))
        .unwrap()
        .map(|value| match value {
            PointValue::Pinned(value) | PointValue::Blob(value) => value.to_vec(),
            PointValue::Merged(value) => value,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn walks_agree_with_the_naive_reading(
        history in history(0..160),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        moves in moves(),
        at in any::<prop::sample::Index>(),
        bounds in bounds(),
        prefix_same in prop::option::of(prop_oneof![
            (0_usize..9).prop_map(PrefixExtractor::Fixed),
            (0_usize..9).prop_map(PrefixExtractor::Capped),
        ]),
    ) {
        for order in orders() {
            let sequence = at.index(history.len() + 1) as Sequence;
            let bound = |bound: Option<usize>| bound.map(|bound| keys()[bound].clone());
            let mut all: Vec<Row> = view(&order, &history, sequence).into_iter().collect();
            all.sort_by(|a, b| order.compare(&a.0, &b.0));
            let rows_within = |lower: Option<usize>, upper: Option<usize>| {
                let (lower, upper) = (bound(lower), bound(upper));
                let mut rows = all.clone();
                rows.retain(|(key, _)| {
                    lower.as_ref().is_none_or(|lower| order.compare(key, lower).is_ge())
                        && upper.as_ref().is_none_or(|upper| order.compare(key, upper).is_lt())
                });
                rows
            };
            let mut rows = rows_within(bounds.0, bounds.1);
            let mut cursor = open(&order, &sources(&order, &history, &cuts), View {
                order: order.clone(),
                sequence,
                merge_operator: Some(comma()),
                lower_bound: bound(bounds.0),
                upper_bound: bound(bounds.1),
                prefix_same,
                fetch: None,
            });
            let mut at: Option<usize> = None;
            let mut prefix: Option<Vec<u8>> = None;
            for step in &moves {
                let prefix_of = |key: &[u8]| Some(prefix_same?.prefix(key)?.to_vec());
                let prefix_at = |at: Option<usize>| prefix_of(&rows.get(at?)?.0);
                match *step {
                    Move::First => {
                        cursor.seek_to_first().unwrap();
                        at = Some(0);
                        prefix = prefix_at(at);
                    }
                    Move::Last => {
                        cursor.seek_to_last().unwrap();
                        at = rows.len().checked_sub(1);
                        prefix = prefix_at(at);
                    }
                    Move::Seek(key) => {
                        let key = &keys()[key];
                        cursor.seek(key).unwrap();
                        at = Some(rows.partition_point(|row| order.compare(&row.0, key).is_lt()));
                        prefix = prefix_of(key);
                    }
                    Move::SeekForPrev(key) => {
                        let key = &keys()[key];
                        cursor.seek_for_prev(key).unwrap();
                        at = rows.partition_point(|row| order.compare(&row.0, key).is_le()).checked_sub(1);
                        prefix = prefix_of(key);
                    }
                    Move::Narrow(lower, upper) => {
                        cursor.set_bounds(bound(lower).as_deref(), bound(upper).as_deref());
                        rows = rows_within(lower, upper);
                        at = None;
                    }
                    Move::Next => {
                        cursor.next().unwrap();
                        at = at.map(|at| at + 1);
                    }
                    Move::Prev => {
                        cursor.prev().unwrap();
                        at = at.and_then(|at| at.checked_sub(1));
                    }
                }
                let shown = |&at: &usize| rows.get(at).is_some_and(|row| {
                    prefix.is_none() || prefix_of(&row.0) == prefix
                });
                at = at.filter(shown);
                prop_assert_eq!(cursor.valid(), at.is_some(), "{:?}", step);
                if let Some(at) = at {
                    prop_assert_eq!((cursor.key(), cursor.value()), (&rows[at].0[..], &rows[at].1[..]));
                    prop_assert_eq!(cursor.kind(), ValueKind::Put);
                }
            }
        }
    }

    #[test]
    fn point_reads_agree_with_the_naive_reading_at_every_sequence(
        history in history(0..100),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        for order in orders() {
            let sources = sources(&order, &history, &cuts);
            for sequence in 0..=history.len() as Sequence {
                let expected: BTreeMap<_, _> = view(&order, &history, sequence);
                for key in keys() {
                    prop_assert_eq!(&read_point(&order, &sources, &key, sequence), &expected.get(&key).cloned());
                }
            }
        }
    }
}

fn source(rows: &[(&str, Sequence, ValueKind, &str)], tombstones: &[(&str, &str, Sequence)]) -> Source {
    let order = KeyOrder::Bytewise;
    let row = |&(key, sequence, kind, value): &(&str, Sequence, ValueKind, &str)| {
        (
            internal_key(key.as_bytes(), sequence, kind),
            value.as_bytes().to_vec(),
        )
    };
    let tombstone = |&(start, end, sequence): &(&str, &str, Sequence)| RangeTombstone {
        start: start.into(),
        end: end.into(),
        sequence,
    };
    Source {
        rows: Arc::new(rows.iter().map(row).collect()),
        tombstones: Arc::new(FragmentedTombstones::new(
            &order,
            tombstones.iter().map(tombstone),
        )),
    }
}

fn at(sequence: Sequence) -> View {
    View {
        sequence,
        merge_operator: Some(comma()),
        ..View::default()
    }
}

fn show(cursor: &mut VisibleCursor<VecCursor>) -> String {
    let mut shown = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        shown.push(format!(
            "{}={}",
            String::from_utf8_lossy(cursor.key()),
            String::from_utf8_lossy(cursor.value())
        ));
        cursor.next().unwrap();
    }
    let mut reversed = Vec::new();
    cursor.seek_to_last().unwrap();
    while cursor.valid() {
        reversed.push(format!(
            "{}={}",
            String::from_utf8_lossy(cursor.key()),
            String::from_utf8_lossy(cursor.value())
        ));
        cursor.prev().unwrap();
    }
    reversed.reverse();
    assert_eq!(shown, reversed, "the same both ways");
    shown.join(" ")
}

#[test]
fn the_example_of_the_head() {
    use ValueKind::{Delete, Merge, Put};
    let rows = source(
        &[
            ("a", 9, Put, "a9"),
            ("a", 4, Put, "a4"),
            ("b", 7, Delete, ""),
            ("b", 3, Put, "b3"),
            ("c", 8, Merge, "c8"),
            ("c", 5, Put, "c5"),
            ("d", 6, Put, "d6"),
        ],
        &[("d", "f", 7)],
    );
    let show_at = |sequence| {
        show(&mut open(
            &KeyOrder::Bytewise,
            std::slice::from_ref(&rows),
            at(sequence),
        ))
    };
    assert_eq!(show_at(8), "a=a4 c=c5,c8");
    assert_eq!(show_at(9), "a=a9 c=c5,c8");
    assert_eq!(show_at(6), "a=a4 b=b3 c=c5 d=d6");
    assert_eq!(show_at(2), "");
}

#[test]
fn a_merge_without_an_operator_is_refused_both_ways() {
    let rows = [source(&[("a", 2, ValueKind::Merge, "x")], &[])];
    let mut cursor = open(
        &KeyOrder::Bytewise,
        &rows,
        View {
            merge_operator: None,
            ..at(5)
        },
    );
    assert_eq!(
        cursor.seek_to_first().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert!(!cursor.valid());
    assert_eq!(
        cursor.seek_to_last().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert!(!cursor.valid());
}

#[test]
fn a_pointer_into_a_blob_file_is_shown_as_one() {
    let rows = [source(&[("a", 2, ValueKind::BlobPointer, "p")], &[])];
    let mut cursor = open(&KeyOrder::Bytewise, &rows, at(5));
    cursor.seek_to_first().unwrap();
    assert_eq!(
        (cursor.kind(), cursor.value()),
        (ValueKind::BlobPointer, &b"p"[..])
    );
    cursor.seek_to_last().unwrap();
    assert_eq!(
        (cursor.kind(), cursor.value()),
        (ValueKind::BlobPointer, &b"p"[..])
    );
}

#[test]
fn rows_that_can_not_be_are_corruption_not_a_panic() {
    for key in [
        b"short".to_vec(),
        vec![0xff; 9],
        internal_key(b"a", 1, ValueKind::RangeDelete),
    ] {
        let rows = Source {
            rows: Arc::new(vec![(key, Vec::new())]),
            ..Source::default()
        };
        let mut cursor = open(&KeyOrder::Bytewise, &[rows], at(SEQUENCE_MAX));
        assert_eq!(cursor.seek_to_first().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(cursor.seek_to_last().unwrap_err().kind(), ErrorKind::Corruption);
    }
}

fn moves_of(cursor: &VisibleCursor<VecCursor>) -> usize {
    cursor.inner().children().iter().map(|child| child.moves).sum()
}

#[test]
fn a_key_with_many_versions_costs_a_seek_not_a_walk() {
    let mut rows: Vec<Row> = (1..=10_000)
        .rev()
        .map(|sequence| {
            (
                internal_key(b"hot", sequence, ValueKind::Put),
                sequence.to_string().into_bytes(),
            )
        })
        .collect();
    rows.push((internal_key(b"next", 1, ValueKind::Put), b"n".to_vec()));
    let source = Source {
        rows: Arc::new(rows),
        ..Source::default()
    };
    for sequence in [10_000, 5_000, 1] {
        let mut cursor = open(&KeyOrder::Bytewise, std::slice::from_ref(&source), at(sequence));
        assert_eq!(show(&mut cursor), format!("hot={sequence} next=n"));
        assert!(moves_of(&cursor) < 80, "{} moves", moves_of(&cursor));
    }
}

#[test]
fn a_deleted_range_costs_by_the_range_not_by_its_rows() {
    let row = |number: u32| {
        let key = format!("{number:06}");
        (internal_key(key.as_bytes(), 1, ValueKind::Put), b"old".to_vec())
    };
    let old = Source {
        rows: Arc::new((0..100_000).map(row).collect()),
        ..Source::default()
    };
    let new = source(
        &[("050000", 9, ValueKind::Put, "new")],
        &[
            ("000001", "030000", 5),
            ("030000", "060000", 6),
            ("060000", "099999", 7),
        ],
    );
    let mut cursor = open(&KeyOrder::Bytewise, &[new, old], at(9));
    assert_eq!(show(&mut cursor), "000000=old 050000=new 099999=old");
    assert!(moves_of(&cursor) < 150, "{} moves", moves_of(&cursor));
}
