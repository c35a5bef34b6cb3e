//! The merging cursor against a sorted vector, in both directions and both orders.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::key::{
    FragmentedTombstones, RangeTombstone, ReverseBytewiseComparator, SEQUENCE_MAX, ValueKind, internal_key,
};
use crate::read::testing::{Row, VecCursor, keys};

#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(usize, u64),
    SeekForPrev(usize, u64),
    Next,
    Prev,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (0_usize..14, 0_u64..6).prop_map(|(key, sequence)| Move::Seek(key, sequence)),
        2 => (0_usize..14, 0_u64..6).prop_map(|(key, sequence)| Move::SeekForPrev(key, sequence)),
        10 => Just(Move::Next),
        10 => Just(Move::Prev),
    ];
    prop::collection::vec(one, 1..60)
}

fn orders() -> [KeyOrder; 2] {
    [
        KeyOrder::Bytewise,
        KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
    ]
}

/// The rows of each child: (key, sequence), the same in several children now and then.
fn children() -> impl Strategy<Value = Vec<Vec<(usize, u64)>>> {
    prop::collection::vec(prop::collection::vec((0_usize..14, 0_u64..6), 0..15), 0..9)
}

fn child(order: &KeyOrder, index: usize, rows: &[(usize, u64)]) -> Arc<Vec<Row>> {
    let keys = keys();
    let row = |&(key, sequence): &(usize, u64)| {
        (
            internal_key(&keys[key], sequence, ValueKind::Put),
            format!("child {index}").into_bytes(),
        )
    };
    let mut rows: Vec<Row> = rows.iter().map(row).collect();
    rows.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    rows.dedup();
    Arc::new(rows)
}

proptest! {
    #[test]
    fn walks_agree_with_a_sorted_vector(children in children(), moves in moves()) {
        for order in orders() {
            let lists: Vec<_> = children
                .iter()
                .enumerate()
                .map(|(index, rows)| child(&order, index, rows))
                .collect();
            let mut all: Vec<Row> = lists.iter().flat_map(|list| list.iter().cloned()).collect();
            // Stable: the earlier child comes first.
            all.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
            let cursors = lists.iter().map(|rows| VecCursor::new(&order, Arc::clone(rows)));
            let mut cursor = MergingCursor::new(order.clone(), cursors.collect());
            let mut at: Option<usize> = None;
            for step in &moves {
                let target = |key: usize, sequence| internal_key(&keys()[key], sequence, ValueKind::SEEK);
                match *step {
                    Move::First => {
                        cursor.seek_to_first().unwrap();
                        at = Some(0);
                    }
                    Move::Last => {
                        cursor.seek_to_last().unwrap();
                        at = all.len().checked_sub(1);
                    }
                    Move::Seek(key, sequence) => {
                        let target = target(key, sequence);
                        cursor.seek(&target).unwrap();
                        at = Some(all.partition_point(|row| order.compare_internal(&row.0, &target).is_lt()));
                    }
                    Move::SeekForPrev(key, sequence) => {
                        let target = target(key, sequence);
                        cursor.seek_for_prev(&target).unwrap();
                        at = all
                            .partition_point(|row| order.compare_internal(&row.0, &target).is_le())
                            .checked_sub(1);
                    }
                    Move::Next => if let Some(now) = at {
                        cursor.next().unwrap();
                        at = Some(now + 1);
                    },
                    Move::Prev => if let Some(now) = at {
                        cursor.prev().unwrap();
                        at = now.checked_sub(1);
                    },
                }
                at = at.filter(|&at| at < all.len());
                prop_assert_eq!(cursor.valid(), at.is_some());
                if let Some(at) = at {
                    prop_assert_eq!((cursor.key(), cursor.value()), (&all[at].0[..], &all[at].1[..]));
                }
            }
        }
    }

    #[test]
    fn a_childs_error_is_returned_once_and_leaves_the_cursor_usable(
        children in children(), moves in moves(), fail_at in 0_usize..12
    ) {
        let order = KeyOrder::Bytewise;
        let cursors = children.iter().enumerate().map(|(index, rows)| {
            let mut cursor = VecCursor::new(&order, child(&order, index, rows));
            cursor.fail_at_move = (index == 0).then_some(fail_at);
            cursor
        });
        let mut cursor = MergingCursor::new(order.clone(), cursors.collect());
        for step in &moves {
            let result = match step {
                Move::First | Move::Seek(..) => cursor.seek_to_first(),
                Move::Last | Move::SeekForPrev(..) => cursor.seek_to_last(),
                Move::Next if cursor.valid() => cursor.next(),
                Move::Prev if cursor.valid() => cursor.prev(),
                Move::Next | Move::Prev => Ok(()),
            };
            if result.is_err() {
                prop_assert!(!cursor.valid());
                for child in &mut cursor.children {
                    child.fail_at_move = None;
                }
                let rows: usize = cursor.children.iter().map(|child| child.moves).sum();
                prop_assert!(rows >= fail_at);
                cursor.seek_to_first().unwrap();
                let mut count = 0;
                while cursor.valid() {
                    cursor.next().unwrap();
                    count += 1;
                }
                let lists = children.iter().enumerate();
                let expected: usize = lists.map(|(index, rows)| child(&order, index, rows).len()).sum();
                prop_assert_eq!(count, expected);
                return Ok(());
            }
        }
    }
}

fn numbered(range: std::ops::Range<u32>, sequence: u64) -> Arc<Vec<Row>> {
    let row = |number: u32| {
        let key = format!("table/{number:06}");
        (internal_key(key.as_bytes(), sequence, ValueKind::Put), Vec::new())
    };
    Arc::new(range.map(row).collect())
}

#[test]
fn skipping_moves_only_sources_that_are_older_than_the_tombstone() {
    let order = KeyOrder::Bytewise;
    let tombstones = FragmentedTombstones::new(
        &order,
        [RangeTombstone {
            start: b"table/000010".to_vec(),
            end: b"table/000090".to_vec(),
            sequence: 5,
        }],
    );
    let cover = Cover {
        order: &order,
        tombstones: &tombstones,
        sequence: 9,
    };
    let cursors = [numbered(0..100, 3), numbered(50..60, 7), numbered(0..20, 5)]
        .map(|rows| VecCursor::new(&order, rows));
    let mut cursor = MergingCursor::new(order.clone(), Vec::from(cursors));
    let at = |cursor: &MergingCursor<VecCursor>| {
        let number = String::from_utf8_lossy(&user_key(cursor.key())[6..]).parse::<u32>();
        (number.unwrap(), cursor.child_index())
    };
    cursor
        .seek(&internal_key(b"table/000015", SEQUENCE_MAX, ValueKind::SEEK))
        .unwrap();
    assert!(cursor.skip_covered(&cover).unwrap());
    // The third source is as new as the tombstone, which does not delete what is as new as itself.
    assert_eq!(at(&cursor), (15, 2));
    for _ in 15..20 {
        cursor.next().unwrap();
    }
    assert_eq!(at(&cursor), (50, 1));
    for _ in 50..60 {
        cursor.next().unwrap();
    }
    assert_eq!(at(&cursor), (90, 0));
    assert!(!cursor.skip_covered(&cover).unwrap());

    cursor
        .seek_for_prev(&internal_key(b"table/000080", 0, ValueKind::Delete))
        .unwrap();
    assert!(cursor.skip_covered(&cover).unwrap());
    assert_eq!(at(&cursor), (59, 1));
    // Turning finds its place among the rows that were skipped.
    cursor.next().unwrap();
    assert_eq!(at(&cursor), (59, 0));
    cursor.next().unwrap();
    assert_eq!(at(&cursor), (60, 0));
    for expected in [(59, 0), (59, 1), (58, 0)] {
        cursor.prev().unwrap();
        assert_eq!(at(&cursor), expected);
    }
}

#[test]
fn a_shared_prefix_that_ends_costs_no_order() {
    let order = KeyOrder::Bytewise;
    let rows = |keys: &[&str]| {
        let row = |key: &&str| (internal_key(key.as_bytes(), 1, ValueKind::Put), Vec::new());
        VecCursor::new(&order, Arc::new(keys.iter().map(row).collect()))
    };
    let children = vec![
        rows(&["prefix/a1", "prefix/a3", "prefix/b", "q"]),
        rows(&["prefix/a2", "prefix/a4", "prefix/c"]),
        rows(&["prefix/a2", "r"]),
    ];
    let mut cursor = MergingCursor::new(order.clone(), children);
    let mut seen = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        seen.push(String::from_utf8(user_key(cursor.key()).to_vec()).unwrap());
        cursor.next().unwrap();
    }
    let expected = [
        "prefix/a1",
        "prefix/a2",
        "prefix/a2",
        "prefix/a3",
        "prefix/a4",
        "prefix/b",
        "prefix/c",
        "q",
        "r",
    ];
    assert_eq!(seen, expected);
}
