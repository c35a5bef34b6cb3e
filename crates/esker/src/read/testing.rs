//! For tests: vectors as sources, random histories, and the naive reading of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::merging::{MergingCursor, SourceCursor};
use crate::error::{Error, Result};
use crate::key::{
    Cursor, FragmentedTombstones, KeyOrder, RangeTombstone, Sequence, ValueKind, internal_key, trailer,
};
use crate::merge::{AppendOperator, MergeOperator};

pub(crate) type Row = (Vec<u8>, Vec<u8>);

/// A cursor over rows in a vector, which counts its moves and can be made to fail.
pub(crate) struct VecCursor {
    order: KeyOrder,
    rows: Arc<Vec<Row>>,
    at: Option<usize>,
    pub(crate) moves: usize,
    pub(crate) fail_at_move: Option<usize>,
}

impl VecCursor {
    pub(crate) fn new(order: &KeyOrder, rows: Arc<Vec<Row>>) -> Self {
        assert!(rows.is_sorted_by(|a, b| order.compare_internal(&a.0, &b.0).is_lt()));
        Self {
            order: order.clone(),
            rows,
            at: None,
            moves: 0,
            fail_at_move: None,
        }
    }

    fn go(&mut self, at: Option<usize>) -> Result<()> {
        self.at = None;
        if self.fail_at_move == Some(self.moves) {
            return Err(Error::corruption("the child failed"));
        }
        self.moves += 1;
        self.at = at.filter(|&at| at < self.rows.len());
        Ok(())
    }

    fn stand(&self) -> usize {
        self.at.expect("moved or read while invalid")
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at.is_some()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.go(Some(0))
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go(self.rows.len().checked_sub(1))
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let before = |row: &Row| self.order.compare_internal(&row.0, target).is_lt();
        let at = self.rows.partition_point(before);
        self.go(Some(at))
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let upto = |row: &Row| self.order.compare_internal(&row.0, target).is_le();
        let at = self.rows.partition_point(upto);
        self.go(at.checked_sub(1))
    }
    fn next(&mut self) -> Result<()> {
        self.go(Some(self.stand() + 1))
    }
    fn prev(&mut self) -> Result<()> {
        self.go(self.stand().checked_sub(1))
    }
    fn key(&self) -> &[u8] {
        &self.rows[self.stand()].0
    }
    fn value(&self) -> &[u8] {
        &self.rows[self.stand()].1
    }
}

impl SourceCursor for VecCursor {
    fn sequence_max(&self) -> Sequence {
        self.rows
            .iter()
            .map(|row| trailer(&row.0) >> 8)
            .max()
            .unwrap_or(0)
    }
}

/// What was written; the write at index `i` has the sequence `i + 1`.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Point(ValueKind, Vec<u8>, Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
}

/// Sorted rows and tombstones: a memtable, or a level.
#[derive(Clone, Default)]
pub(crate) struct Source {
    pub(crate) rows: Arc<Vec<Row>>,
    pub(crate) tombstones: Arc<FragmentedTombstones>,
}

pub(crate) fn comma() -> Arc<dyn MergeOperator> {
    Arc::new(AppendOperator::new(*b","))
}

/// Keys that share prefixes longer than a head, extend each other, and end in extremes.
pub(crate) fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [
        &b""[..],
        b"a",
        b"a\0",
        b"ab",
        b"b",
        b"shared/prefix/1",
        b"shared/prefix/10",
        b"shared/prefix/2",
        b"shared/prefix/\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"shared/prefix/\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        b"shared/z",
        b"t",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ]
    .iter()
    .map(|key| key.to_vec())
    .collect();
    keys.sort();
    keys
}

/// Random histories in which single deletes are used as they may be: on keys of their own (every third), which are
/// put only while absent and single-deleted only while present.
pub(crate) fn history(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Write>> {
    let raw = prop::collection::vec((0_u8..20, any::<prop::sample::Index>(), 0_usize..5), len);
    raw.prop_map(|raw| {
        let keys = keys();
        let mut history = Vec::new();
        for (what, at, width) in raw {
            let at = at.index(keys.len());
            let key = keys[at].clone();
            let value = format!("v{}", history.len() + 1).into_bytes();
            let write = if what == 0 {
                let end = keys.get(at + width).cloned().unwrap_or(vec![0xff; 10]);
                Write::Range(key, end)
            } else if at % 3 == 1 {
                let present = view(&KeyOrder::Bytewise, &history, u64::MAX).contains_key(&key);
                if present {
                    Write::Point(ValueKind::SingleDelete, key, Vec::new())
                } else {
                    Write::Point(ValueKind::Put, key, value)
                }
            } else {
                match what {
                    1..=4 => Write::Point(ValueKind::Delete, key, Vec::new()),
                    5..=11 => Write::Point(ValueKind::Merge, key, value),
                    _ => Write::Point(ValueKind::Put, key, value),
                }
            };
            history.push(write);
        }
        history
    })
}

/// The range between two keys, whichever comes first.
fn span<'a>(order: &KeyOrder, a: &'a [u8], b: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if order.compare(a, b).is_le() {
        (a, b)
    } else {
        (b, a)
    }
}

/// What a reader at `sequence` sees: all writes up to it, one after the other.
pub(crate) fn view(order: &KeyOrder, history: &[Write], sequence: Sequence) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut map = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let visible = history
        .iter()
        .take(usize::try_from(sequence).unwrap_or(usize::MAX));
    for write in visible {
        match write {
            Write::Point(ValueKind::Put, key, value) => {
                map.insert(key.clone(), value.clone());
            }
            Write::Point(ValueKind::Merge, key, operand) => match map.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend_from_slice(operand);
                }
                None => {
                    map.insert(key.clone(), operand.clone());
                }
            },
            Write::Point(_, key, _) => {
                map.remove(key);
            }
            Write::Range(a, b) => {
                let (start, end) = span(order, a, b);
                map.retain(|key, _| order.compare(key, start).is_lt() || order.compare(key, end).is_ge());
            }
        }
    }
    map
}

/// The history as sources, newest first: cut at these places.
pub(crate) fn sources(order: &KeyOrder, history: &[Write], cuts: &[prop::sample::Index]) -> Vec<Source> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(history.len() + 1)).collect();
    cuts.extend([0, history.len()]);
    cuts.sort_unstable();
    let parts = cuts.windows(2).map(|range| {
        let (mut rows, mut tombstones) = (Vec::new(), Vec::new());
        for (write, sequence) in history[range[0]..range[1]].iter().zip(range[0] as Sequence + 1..) {
            match write.clone() {
                Write::Point(kind, key, value) => rows.push((internal_key(&key, sequence, kind), value)),
                Write::Range(a, b) => {
                    let (start, end) = span(order, &a, &b);
                    let (start, end) = (start.to_vec(), end.to_vec());
                    tombstones.push(RangeTombstone { start, end, sequence });
                }
            }
        }
        rows.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
        Source {
            rows: Arc::new(rows),
            tombstones: Arc::new(FragmentedTombstones::new(order, tombstones)),
        }
    });
    let mut sources: Vec<Source> = parts.collect();
    sources.reverse();
    sources
}

pub(crate) fn merged(order: &KeyOrder, sources: &[Source]) -> MergingCursor<VecCursor> {
    let cursors = sources
        .iter()
        .map(|source| VecCursor::new(order, Arc::clone(&source.rows)));
    MergingCursor::new(order.clone(), cursors.collect())
}
