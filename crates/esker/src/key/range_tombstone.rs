//! Range tombstones, cut into fragments so that "what covers this key?" is a binary search.
//!
//! Tombstones overlap as their writers pleased:
//! ```text
//! a-------------g @3
//!      c------------------k @7
//! ```
//! Cutting them at every start and end gives *fragments*, which never overlap, each with the sequence numbers of
//! all tombstones that cover it, newest first:
//! ```text
//! a----c      @3
//!      c------g           @7 @3
//!             g-----------k @7
//! ```
//! Invariants of a [`FragmentedTombstones`]:
//! 1. Fragments are non-empty (`start < end`), sorted and disjoint: each end <= the next start.
//! 2. Each has at least one sequence number; they are distinct and strictly descending.
//! 3. Fragments that touch differ in their sequence numbers (or they would be one). So the form is canonical:
//!    two lists that delete the same things are equal, whatever tombstones they were built from.
//!
//! The order is passed to every search rather than stored, since its owner has it at hand; it must be the order
//! that the list was built with.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{KeyOrder, Sequence};

/// All versions of the keys in `[start, end)` that are older than `sequence` are gone. One with `start >= end`
/// deletes nothing. Sequence numbers start at 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeTombstone {
    /// The first user key deleted.
    pub start: Vec<u8>,
    /// The first user key past it.
    pub end: Vec<u8>,
    /// When it was written.
    pub sequence: Sequence,
}

/// A stretch of keys that all of the same tombstones cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The first user key covered.
    pub start: &'a [u8],
    /// The first user key past it.
    pub end: &'a [u8],
    /// The sequence numbers of the tombstones, strictly descending, never empty.
    pub sequences: &'a [Sequence],
}

impl Fragment<'_> {
    /// The newest tombstone that a reader at `sequence_max` sees, or 0. O(log n) in the fragment's tombstones.
    #[inline]
    pub fn newest(&self, sequence_max: Sequence) -> Sequence {
        let newer = self
            .sequences
            .partition_point(|&sequence| sequence > sequence_max);
        self.sequences.get(newer).copied().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    at: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    start: Span,
    end: Span,
    sequences: Span,
}

/// An immutable set of range tombstones in fragments (see the module's head).
#[derive(Clone, Debug, Default)]
pub struct FragmentedTombstones {
    /// Starts and ends; fragments that touch share theirs.
    keys: Vec<u8>,
    sequences: Vec<Sequence>,
    records: Vec<Record>,
}

impl PartialEq for FragmentedTombstones {
    fn eq(&self, other: &Self) -> bool {
        self.fragments().eq(other.fragments())
    }
}

impl Eq for FragmentedTombstones {}

/// A tombstone whose bytes are someone else's.
#[derive(Clone, Copy)]
struct Borrowed<'a> {
    start: &'a [u8],
    end: &'a [u8],
    sequence: Sequence,
}

impl FragmentedTombstones {
    /// Cuts tombstones into fragments. O(n log n + the fragments' sequence numbers), which is O(n²) if n
    /// tombstones overlap like the layers of an onion, and O(n) if they are disjoint.
    pub fn new(order: &KeyOrder, tombstones: impl IntoIterator<Item = RangeTombstone>) -> Self {
        let tombstones: Vec<RangeTombstone> = tombstones.into_iter().collect();
        Self::from_slice(order, &tombstones)
    }

    /// [`new`](Self::new) from a slice.
    pub fn from_slice(order: &KeyOrder, tombstones: &[RangeTombstone]) -> Self {
        let borrowed = tombstones.iter().map(|tombstone| Borrowed {
            start: &tombstone.start,
            end: &tombstone.end,
            sequence: tombstone.sequence,
        });
        Self::from_borrowed(order, borrowed.collect())
    }

    /// One list that deletes what all of `lists` delete together. O(n log n) in their fragments.
    pub fn merge<'a>(order: &KeyOrder, lists: impl IntoIterator<Item = &'a FragmentedTombstones>) -> Self {
        let tombstones = lists.into_iter().flat_map(|list| list.tombstones());
        let borrowed = tombstones.map(|(start, end, sequence)| Borrowed { start, end, sequence });
        Self::from_borrowed(order, borrowed.collect())
    }

    fn from_borrowed(order: &KeyOrder, mut by_start: Vec<Borrowed<'_>>) -> Self {
        by_start.retain(|tombstone| order.compare(tombstone.start, tombstone.end).is_lt());
        let mut list = Self::default();
        if by_start.is_empty() {
            return list;
        }
        let mut by_end = by_start.clone();
        by_start.sort_unstable_by(|a, b| order.compare(a.start, b.start));
        by_end.sort_unstable_by(|a, b| order.compare(a.end, b.end));

        // Sweep over all boundaries in order, holding the tombstones that cover the stretch behind the current one
        // (their numbers counted: a sequence number may come twice).
        let mut covering: BTreeMap<Reverse<Sequence>, usize> = BTreeMap::new();
        let mut scratch = Vec::new();
        let (mut starts, mut ends) = (by_start.iter().peekable(), by_end.iter().peekable());
        let mut boundary = by_start[0].start;
        while let Some(next_end) = ends.peek() {
            let here = match starts.peek() {
                Some(next) if order.compare(next.start, next_end.end).is_lt() => next.start,
                _ => next_end.end,
            };
            if !covering.is_empty() {
                scratch.clear();
                scratch.extend(covering.keys().map(|&Reverse(sequence)| sequence));
                list.push(boundary, here, &scratch);
            }
            boundary = here;
            while let Some(ended) = ends.next_if(|tombstone| order.compare(tombstone.end, here).is_eq()) {
                if let Entry::Occupied(mut count) = covering.entry(Reverse(ended.sequence)) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
            while let Some(begun) = starts.next_if(|tombstone| order.compare(tombstone.start, here).is_eq()) {
                *covering.entry(Reverse(begun.sequence)).or_insert(0) += 1;
            }
        }
        list
    }

    /// Adds the next fragment; one that touches the last and deletes the same lengthens that.
    fn push(&mut self, start: &[u8], end: &[u8], sequences: &[Sequence]) {
        let last = self.records.last().copied();
        let touching = last.filter(|last| self.key(last.end) == start);
        if let Some(last) = touching
            && self.sequences_of(&last) == sequences
        {
            let end = self.push_key(end);
            if let Some(last) = self.records.last_mut() {
                last.end = end;
            }
            return;
        }
        let start = match touching {
            Some(last) => last.end,
            None => self.push_key(start),
        };
        let end = self.push_key(end);
        let span = Span {
            at: self.sequences.len(),
            len: sequences.len(),
        };
        self.sequences.extend_from_slice(sequences);
        self.records.push(Record {
            start,
            end,
            sequences: span,
        });
    }

    fn push_key(&mut self, key: &[u8]) -> Span {
        let span = Span {
            at: self.keys.len(),
            len: key.len(),
        };
        self.keys.extend_from_slice(key);
        span
    }

    #[inline]
    fn key(&self, span: Span) -> &[u8] {
        &self.keys[span.at..span.at + span.len]
    }

    #[inline]
    fn sequences_of(&self, record: &Record) -> &[Sequence] {
        &self.sequences[record.sequences.at..record.sequences.at + record.sequences.len]
    }

    #[inline]
    fn view(&self, record: &Record) -> Fragment<'_> {
        Fragment {
            start: self.key(record.start),
            end: self.key(record.end),
            sequences: self.sequences_of(record),
        }
    }

    /// Whether nothing is deleted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of fragments.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.sequences.capacity() * size_of::<Sequence>()
            + self.records.capacity() * size_of::<Record>()
    }

    /// The fragments in order.
    pub fn fragments(&self) -> impl DoubleEndedIterator<Item = Fragment<'_>> + ExactSizeIterator + Clone {
        self.records.iter().map(|record| self.view(record))
    }

    /// The fragment with this index, in order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Fragment<'_>> {
        self.records.get(index).map(|record| self.view(record))
    }

    /// Every fragment once for each of its sequence numbers, as (start, end, sequence): what to write to a file.
    /// In order of start, then newest first.
    pub fn tombstones(&self) -> impl Iterator<Item = (&[u8], &[u8], Sequence)> {
        self.fragments().flat_map(|fragment| {
            let sequences = fragment.sequences.iter();
            sequences.map(move |&sequence| (fragment.start, fragment.end, sequence))
        })
    }

    /// The first key that is covered; `None` if nothing is.
    pub fn first_key(&self) -> Option<&[u8]> {
        self.records.first().map(|record| self.key(record.start))
    }

    /// The end (exclusive) of what is covered; `None` if nothing is.
    pub fn last_end(&self) -> Option<&[u8]> {
        self.records.last().map(|record| self.key(record.end))
    }

    /// The sequence numbers of the oldest and newest tombstone. O(n).
    pub fn sequence_range(&self) -> Option<(Sequence, Sequence)> {
        let oldest = self.sequences.iter().min()?;
        let newest = self.sequences.iter().max()?;
        Some((*oldest, *newest))
    }

    /// Index of the first fragment that ends past `user_key`: the one that covers it, or the one behind the gap it
    /// lies in. O(log n).
    #[inline]
    pub fn index_at_or_after(&self, order: &KeyOrder, user_key: &[u8]) -> usize {
        self.records
            .partition_point(|record| order.compare(self.key(record.end), user_key).is_le())
    }

    #[inline]
    fn index_covering(&self, order: &KeyOrder, user_key: &[u8]) -> Option<usize> {
        let index = self.index_at_or_after(order, user_key);
        let record = self.records.get(index)?;
        order
            .compare(self.key(record.start), user_key)
            .is_le()
            .then_some(index)
    }

    /// The fragment that covers `user_key`. O(log n).
    #[inline]
    pub fn fragment_covering(&self, order: &KeyOrder, user_key: &[u8]) -> Option<Fragment<'_>> {
        self.index_covering(order, user_key)
            .and_then(|index| self.get(index))
    }

    /// The newest tombstone that covers `user_key` and that a reader at `sequence_max` sees, or 0. O(log n).
    #[inline]
    pub fn max_covering(&self, order: &KeyOrder, user_key: &[u8], sequence_max: Sequence) -> Sequence {
        if self.records.is_empty() {
            return 0;
        }
        self.fragment_covering(order, user_key)
            .map_or(0, |fragment| fragment.newest(sequence_max))
    }

    /// [`max_covering`](Self::max_covering) for keys asked in ascending or descending order: `finger` (any number
    /// at first) remembers where the last one was, so that a scan pays one or two comparisons a row.
    #[inline]
    pub fn max_covering_near(
        &self,
        order: &KeyOrder,
        finger: &mut usize,
        user_key: &[u8],
        sequence_max: Sequence,
    ) -> Sequence {
        if self.records.is_empty() {
            return 0;
        }
        if !self.is_at_or_after(order, *finger, user_key) {
            *finger = self.index_at_or_after(order, user_key);
        }
        match self.get(*finger) {
            Some(fragment) if order.compare(fragment.start, user_key).is_le() => {
                fragment.newest(sequence_max)
            }
            _ => 0,
        }
    }

    /// Whether `index` is what `index_at_or_after` would give.
    #[inline]
    fn is_at_or_after(&self, order: &KeyOrder, index: usize, user_key: &[u8]) -> bool {
        let ends_past = |record: &Record| order.compare(self.key(record.end), user_key).is_gt();
        index <= self.records.len()
            && self.records.get(index).is_none_or(ends_past)
            && (index == 0 || !ends_past(&self.records[index - 1]))
    }

    /// If `user_key` is covered for a reader at `sequence_max`: the end (exclusive) of the stretch, without gap,
    /// that is. O(log n + fragments of the stretch).
    ///
    /// This says nothing about rows newer than the tombstones: see [`covered_end`](Self::covered_end).
    pub fn newest_covering_end(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        sequence_max: Sequence,
    ) -> Option<&[u8]> {
        self.covered_end(order, user_key, 0, sequence_max)
    }

    /// If `user_key` is covered by a tombstone that is newer than `newer_than` and visible at `sequence_max`: the
    /// end (exclusive) of the stretch, without gap, of which that is true. An iterator may seek a source there
    /// whose rows are all of sequence `newer_than` or older. O(log n + fragments of the stretch).
    pub fn covered_end(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        newer_than: Sequence,
        sequence_max: Sequence,
    ) -> Option<&[u8]> {
        let mut index = self.index_covering(order, user_key)?;
        let mut end = None;
        while let Some(fragment) = self.get(index)
            && fragment.newest(sequence_max) > newer_than
            && end.is_none_or(|end| fragment.start == end)
        {
            end = Some(fragment.end);
            index += 1;
        }
        end
    }

    /// As [`covered_end`](Self::covered_end), the other way: the first key of the stretch, for backward iterators
    /// (which then go to the row before it).
    pub fn covered_start(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        newer_than: Sequence,
        sequence_max: Sequence,
    ) -> Option<&[u8]> {
        let index = self.index_covering(order, user_key)?;
        let mut start = None;
        for record in self.records[..=index].iter().rev() {
            let fragment = self.view(record);
            if fragment.newest(sequence_max) <= newer_than || start.is_some_and(|start| fragment.end != start)
            {
                break;
            }
            start = Some(fragment.start);
        }
        start
    }

    /// Whether a fragment reaches into `[start, end]` (both inclusive: the bounds of a file). O(log n).
    pub fn overlaps(&self, order: &KeyOrder, start: &[u8], end: &[u8]) -> bool {
        self.get(self.index_at_or_after(order, start))
            .is_some_and(|fragment| order.compare(fragment.start, end).is_le())
    }

    /// What of it lies in `[start, end)`; `None`: no bound on that side. O(log n + what is kept).
    #[must_use]
    pub fn clip(&self, order: &KeyOrder, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        let mut clipped = Self::default();
        let first = start.map_or(0, |start| self.index_at_or_after(order, start));
        for record in &self.records[first.min(self.records.len())..] {
            let fragment = self.view(record);
            let from = match start {
                Some(start) if order.compare(start, fragment.start) == Ordering::Greater => start,
                _ => fragment.start,
            };
            let to = match end {
                Some(end) if order.compare(end, fragment.end) == Ordering::Less => end,
                _ => fragment.end,
            };
            if order.compare(from, to) != Ordering::Less {
                break;
            }
            clipped.push(from, to, fragment.sequences);
        }
        clipped
    }

    /// The same, without the tombstones that every reader from `sequence_min` on sees as replaced: of each
    /// fragment's sequence numbers <= `sequence_min`, only the newest is kept. For compactions, where
    /// `sequence_min` is the oldest snapshot.
    #[must_use]
    pub fn thinned(&self, sequence_min: Sequence) -> Self {
        let mut thin = Self::default();
        for fragment in self.fragments() {
            let newer = fragment
                .sequences
                .partition_point(|&sequence| sequence > sequence_min);
            let kept = (newer + 1).min(fragment.sequences.len());
            thin.push(fragment.start, fragment.end, &fragment.sequences[..kept]);
        }
        thin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ReverseBytewiseComparator;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn orders() -> [KeyOrder; 2] {
        [
            KeyOrder::Bytewise,
            KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        ]
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..3, 0..4)
    }

    fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
        let one = (key(), key(), 1_u64..12);
        prop::collection::vec(
            one.prop_map(|(start, end, sequence)| RangeTombstone { start, end, sequence }),
            0..8,
        )
    }

    /// All keys that the strategy gives, in order.
    fn all_keys(order: &KeyOrder) -> Vec<Vec<u8>> {
        let mut keys = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..3 {
            let to = keys.len();
            for at in from..to {
                for byte in 0..3 {
                    let mut longer = keys[at].clone();
                    longer.push(byte);
                    keys.push(longer);
                }
            }
            from = to;
        }
        keys.sort_by(|a, b| order.compare(a, b));
        keys
    }

    fn oracle(order: &KeyOrder, list: &[RangeTombstone], key: &[u8], sequence_max: Sequence) -> Sequence {
        let covers = |tombstone: &&RangeTombstone| {
            tombstone.sequence <= sequence_max
                && order.compare(&tombstone.start, key).is_le()
                && order.compare(key, &tombstone.end).is_lt()
        };
        list.iter()
            .filter(covers)
            .map(|tombstone| tombstone.sequence)
            .max()
            .unwrap_or(0)
    }

    fn check_invariants(order: &KeyOrder, list: &FragmentedTombstones) {
        let fragments: Vec<_> = list.fragments().collect();
        for fragment in &fragments {
            assert!(order.compare(fragment.start, fragment.end).is_lt());
            assert!(!fragment.sequences.is_empty());
            assert!(fragment.sequences.is_sorted_by(|a, b| a > b));
        }
        for pair in fragments.windows(2) {
            assert!(order.compare(pair[0].end, pair[1].start).is_le());
            assert!(pair[0].end != pair[1].start || pair[0].sequences != pair[1].sequences);
        }
    }

    proptest! {
        #[test]
        fn searches_agree_with_a_scan_of_the_tombstones(raw in tombstones(), sequence_max in 0_u64..13) {
            for order in orders() {
                let list = FragmentedTombstones::new(&order, raw.clone());
                check_invariants(&order, &list);
                let (mut up, mut down) = (usize::MAX, 0);
                let keys = all_keys(&order);
                for key in &keys {
                    let expected = oracle(&order, &raw, key, sequence_max);
                    prop_assert_eq!(list.max_covering(&order, key, sequence_max), expected);
                    prop_assert_eq!(list.max_covering_near(&order, &mut up, key, sequence_max), expected);
                    let covered = list.fragment_covering(&order, key);
                    prop_assert_eq!(covered.is_some(), oracle(&order, &raw, key, 99) > 0);
                }
                for key in keys.iter().rev() {
                    let expected = oracle(&order, &raw, key, sequence_max);
                    prop_assert_eq!(list.max_covering_near(&order, &mut down, key, sequence_max), expected);
                }
            }
        }

        #[test]
        fn covered_stretches_are_as_long_as_they_can_be(
            raw in tombstones(), newer_than in 0_u64..12, sequence_max in 0_u64..13
        ) {
            for order in orders() {
                let list = FragmentedTombstones::new(&order, raw.clone());
                let keys = all_keys(&order);
                let covered = |key: &[u8]| oracle(&order, &raw, key, sequence_max) > newer_than;
                for (at, key) in keys.iter().enumerate() {
                    let end = list.covered_end(&order, key, newer_than, sequence_max);
                    let start = list.covered_start(&order, key, newer_than, sequence_max);
                    prop_assert_eq!(end.is_some(), covered(key));
                    prop_assert_eq!(start.is_some(), covered(key));
                    if newer_than == 0 {
                        prop_assert_eq!(list.newest_covering_end(&order, key, sequence_max), end);
                    }
                    if let Some(end) = end {
                        // Ends are among the keys enumerated, so the next uncovered key is the end itself.
                        let expected = keys[at..].iter().find(|key| !covered(key));
                        prop_assert_eq!(Some(end), expected.map(Vec::as_slice));
                    }
                    if let Some(start) = start {
                        let uncovered = keys[..at].iter().rposition(|key| !covered(key));
                        prop_assert_eq!(start, keys[uncovered.map_or(0, |at| at + 1)].as_slice());
                    }
                }
            }
        }

        #[test]
        fn merging_and_refragmenting_keep_what_is_deleted(a in tombstones(), b in tombstones()) {
            for order in orders() {
                let lists = [a.clone(), b.clone()].map(|raw| FragmentedTombstones::new(&order, raw));
                let merged = FragmentedTombstones::merge(&order, &lists);
                check_invariants(&order, &merged);
                let both = a.iter().chain(&b).cloned();
                prop_assert_eq!(&merged, &FragmentedTombstones::new(&order, both));
                prop_assert_eq!(&FragmentedTombstones::merge(&order, [&merged]), &merged);
            }
        }

        #[test]
        fn clipping_keeps_the_inside_only(raw in tombstones(), start in key(), end in key(), sides in 0_u8..4) {
            for order in orders() {
                let list = FragmentedTombstones::new(&order, raw.clone());
                let from = (sides & 1 != 0).then_some(start.as_slice());
                let to = (sides & 2 != 0).then_some(end.as_slice());
                let clipped = list.clip(&order, from, to);
                check_invariants(&order, &clipped);
                for key in all_keys(&order) {
                    let inside = from.is_none_or(|from| order.compare(from, &key).is_le())
                        && to.is_none_or(|to| order.compare(&key, to).is_lt());
                    for sequence_max in [3, 6, 99] {
                        let expected = if inside { oracle(&order, &raw, &key, sequence_max) } else { 0 };
                        prop_assert_eq!(clipped.max_covering(&order, &key, sequence_max), expected);
                    }
                }
            }
        }

        #[test]
        fn thinning_is_invisible_from_the_oldest_snapshot_on(raw in tombstones(), sequence_min in 0_u64..13) {
            for order in orders() {
                let list = FragmentedTombstones::new(&order, raw.clone());
                let thin = list.thinned(sequence_min);
                check_invariants(&order, &thin);
                for key in all_keys(&order) {
                    for sequence_max in sequence_min..14 {
                        prop_assert_eq!(
                            thin.max_covering(&order, &key, sequence_max),
                            list.max_covering(&order, &key, sequence_max)
                        );
                    }
                }
                for fragment in thin.fragments() {
                    prop_assert!(fragment.sequences.iter().filter(|&&s| s <= sequence_min).count() <= 1);
                }
            }
        }

        #[test]
        fn overlap_is_seen_from_both_sides(raw in tombstones(), start in key(), end in key()) {
            for order in orders() {
                let list = FragmentedTombstones::new(&order, raw.clone());
                let expected = list.fragments().any(|fragment| {
                    order.compare(fragment.start, &end).is_le() && order.compare(fragment.end, &start).is_gt()
                });
                if order.compare(&start, &end).is_le() {
                    prop_assert_eq!(list.overlaps(&order, &start, &end), expected);
                }
            }
        }
    }

    #[test]
    fn the_example_of_the_head() {
        let order = KeyOrder::Bytewise;
        let tombstone = |start: &str, end: &str, sequence| RangeTombstone {
            start: start.into(),
            end: end.into(),
            sequence,
        };
        let list = FragmentedTombstones::new(&order, [tombstone("a", "g", 3), tombstone("c", "k", 7)]);
        let fragments: Vec<_> = list
            .fragments()
            .map(|fragment| (fragment.start, fragment.end, fragment.sequences))
            .collect();
        assert_eq!(
            fragments,
            [
                (&b"a"[..], &b"c"[..], &[3][..]),
                (b"c", b"g", &[7, 3]),
                (b"g", b"k", &[7]),
            ]
        );
        assert_eq!(list.first_key(), Some(&b"a"[..]));
        assert_eq!(list.last_end(), Some(&b"k"[..]));
        assert_eq!(list.sequence_range(), Some((3, 7)));
    }

    #[test]
    fn halves_of_one_tombstone_become_one_again() {
        let order = KeyOrder::Bytewise;
        let whole = FragmentedTombstones::new(
            &order,
            [RangeTombstone {
                start: b"a".to_vec(),
                end: b"z".to_vec(),
                sequence: 5,
            }],
        );
        let left = whole.clip(&order, None, Some(b"m"));
        let right = whole.clip(&order, Some(b"m"), None);
        let again = FragmentedTombstones::merge(&order, [&right, &left]);
        assert_eq!(again.len(), 1);
        assert_eq!(again, whole);
    }

    #[test]
    fn an_empty_range_deletes_nothing() {
        let order = KeyOrder::Bytewise;
        let backward = RangeTombstone {
            start: b"b".to_vec(),
            end: b"a".to_vec(),
            sequence: 1,
        };
        let empty = RangeTombstone {
            start: b"b".to_vec(),
            end: b"b".to_vec(),
            sequence: 2,
        };
        let list = FragmentedTombstones::new(&order, [backward, empty]);
        assert!(list.is_empty());
        assert_eq!(list.max_covering(&order, b"b", 9), 0);
        assert_eq!(list.newest_covering_end(&order, b"b", 9), None);
    }
}
