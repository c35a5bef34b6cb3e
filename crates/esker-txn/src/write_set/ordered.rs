//! Numbers of operations in the order of their keys: a sorted vector, cut into chunks.
//!
//! ```text
//! chunks   [ 7 2 9 ]   [ 4 11 3 8 ]   [ 5 ]
//! ```
//! Invariants:
//! 1. The chunks, one behind the other, are sorted by the keys of the operations, and no key comes twice.
//! 2. No chunk is empty, and none holds more than [`CHUNK_LEN_MAX`].
//!
//! A search costs O(log n) comparisons. An insert moves at most a chunk; one in [`CHUNK_LEN_MAX`] / 2 also the list of chunks.
//! The keys are elsewhere, so every search is told how a key compares.

use std::cmp::Ordering;

/// Operations in a chunk at most: 1 KiB, which moves in some 20 ns.
const CHUNK_LEN_MAX: usize = 256;

/// Numbers of operations (see the module's head).
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    chunks: Vec<Vec<u32>>,
    /// Empty chunks whose memory is used again.
    spare: Vec<Vec<u32>>,
}

/// Where a key is, or would be. It holds until the next insert or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    chunk: usize,
    at: usize,
}

impl Ordered {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let numbers: usize = self.chunks.iter().chain(&self.spare).map(Vec::capacity).sum();
        numbers * size_of::<u32>() + (self.chunks.capacity() + self.spare.capacity()) * size_of::<Vec<u32>>()
    }

    pub(super) fn clear(&mut self) {
        for mut chunk in self.chunks.drain(..) {
            chunk.clear();
            self.spare.push(chunk);
        }
    }

    /// Where the key is (`Ok`), or where it would be inserted (`Err`). `compare` says how an operation's key compares to it.
    #[inline]
    pub(super) fn search(&self, mut compare: impl FnMut(u32) -> Ordering) -> Result<Position, Position> {
        // Keys often come in order.
        let newest_is_last =
            |chunk: &Vec<u32>| chunk.last().map(|&last| compare(last)) == Some(Ordering::Less);
        if self.chunks.last().is_none_or(newest_is_last) {
            return Err(self.end());
        }
        let behind = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|&first| compare(first).is_le()));
        let chunk = behind.saturating_sub(1);
        let found = self.chunks.get(chunk).map_or(Err(0), |numbers| {
            numbers.binary_search_by(|&number| compare(number))
        });
        match found {
            Ok(at) => Ok(Position { chunk, at }),
            Err(at) => Err(Position { chunk, at }),
        }
    }

    /// Behind the last one: where no number is.
    fn end(&self) -> Position {
        match self.chunks.last() {
            Some(last) => Position {
                chunk: self.chunks.len() - 1,
                at: last.len(),
            },
            None => Position { chunk: 0, at: 0 },
        }
    }

    /// The number at a position; `None` behind the last one.
    #[inline]
    pub(super) fn get(&self, position: Position) -> Option<u32> {
        self.chunks.get(position.chunk)?.get(position.at).copied()
    }

    /// Replaces the number at a position.
    pub(super) fn replace(&mut self, position: Position, number: u32) {
        let chunk = self.chunks.get_mut(position.chunk);
        if let Some(slot) = chunk.and_then(|chunk| chunk.get_mut(position.at)) {
            *slot = number;
        }
    }

    /// Inserts where a search did not find the key.
    pub(super) fn insert(&mut self, position: Position, number: u32) {
        let Position { mut chunk, mut at } = position;
        let len = self.chunks.get(chunk).map_or(CHUNK_LEN_MAX, Vec::len);
        if len >= CHUNK_LEN_MAX {
            let mut next = self.spare.pop().unwrap_or_default();
            let last = chunk + 1 >= self.chunks.len();
            if let Some(full) = self.chunks.get_mut(chunk) {
                // Keys that come in order leave full chunks behind.
                let cut = if last && at == len { len } else { len / 2 };
                next.extend(full.drain(cut..));
                if at > cut || cut == len {
                    (chunk, at) = (chunk + 1, at - cut);
                    self.chunks.insert(chunk, next);
                } else {
                    self.chunks.insert(chunk + 1, next);
                }
            } else {
                self.chunks.push(next);
            }
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.insert(at.min(chunk.len()), number);
        }
    }

    /// Removes the number at a position.
    pub(super) fn remove(&mut self, position: Position) {
        let Some(chunk) = self.chunks.get_mut(position.chunk) else {
            return;
        };
        if position.at < chunk.len() {
            chunk.remove(position.at);
        }
        if chunk.is_empty() {
            let empty = self.chunks.remove(position.chunk);
            self.spare.push(empty);
        }
    }

    pub(super) fn first(&self) -> Option<Position> {
        (!self.is_empty()).then_some(Position { chunk: 0, at: 0 })
    }

    pub(super) fn last(&self) -> Option<Position> {
        self.before(self.end())
    }

    /// Where a search ended, brought to a number: the position itself, or the first one of the next chunk.
    pub(super) fn at_or_after(&self, position: Position) -> Option<Position> {
        if self.get(position).is_some() {
            return Some(position);
        }
        let next = Position {
            chunk: position.chunk + 1,
            at: 0,
        };
        self.get(next).map(|_| next)
    }

    pub(super) fn after(&self, position: Position) -> Option<Position> {
        self.at_or_after(Position {
            at: position.at + 1,
            ..position
        })
    }

    pub(super) fn before(&self, position: Position) -> Option<Position> {
        if let Some(at) = position.at.checked_sub(1) {
            return Some(Position { at, ..position });
        }
        let chunk = position.chunk.checked_sub(1)?;
        let at = self.chunks.get(chunk)?.len().checked_sub(1)?;
        Some(Position { chunk, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn search(ordered: &Ordered, number: u32) -> Result<Position, Position> {
        ordered.search(|other| other.cmp(&number))
    }

    fn all(ordered: &Ordered) -> Vec<u32> {
        let positions = std::iter::successors(ordered.first(), |&at| ordered.after(at));
        positions.map(|at| ordered.get(at).unwrap()).collect()
    }

    fn check(ordered: &Ordered, model: &BTreeSet<u32>) {
        assert!(
            ordered
                .chunks
                .iter()
                .all(|chunk| (1..=CHUNK_LEN_MAX).contains(&chunk.len()))
        );
        assert!(all(ordered).iter().eq(model));
        let backward = std::iter::successors(ordered.last(), |&at| ordered.before(at));
        assert!(
            backward
                .map(|at| ordered.get(at).unwrap())
                .eq(model.iter().rev().copied())
        );
        for number in 0..60 {
            let position = search(ordered, number * 50);
            assert_eq!(position.is_ok(), model.contains(&(number * 50)));
            let (Ok(position) | Err(position)) = position;
            let next = ordered.at_or_after(position).and_then(|at| ordered.get(at));
            assert_eq!(next, model.range(number * 50..).next().copied());
            let before = ordered.before(position).and_then(|at| ordered.get(at));
            assert_eq!(before, model.range(..number * 50).next_back().copied());
        }
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_set(
            steps in prop::collection::vec((0_u32..3000, 1_u32..400, prop_oneof![Just(1_i64), Just(-1), Just(7)], any::<bool>()), 1..30)
        ) {
            let (mut ordered, mut model) = (Ordered::default(), BTreeSet::new());
            for (from, count, stride, insert) in steps {
                for i in 0..i64::from(count) {
                    let number = (i64::from(from) + i * stride).rem_euclid(3000) as u32;
                    match (search(&ordered, number), insert) {
                        (Err(position), true) => ordered.insert(position, number),
                        (Ok(position), false) => ordered.remove(position),
                        (Ok(position), true) => ordered.replace(position, number),
                        (Err(_), false) => {}
                    }
                    if insert { model.insert(number); } else { model.remove(&number); }
                }
                check(&ordered, &model);
            }
            let held = ordered.memory_bytes();
            ordered.clear();
            check(&ordered, &BTreeSet::new());
            prop_assert!(ordered.memory_bytes() >= held);
        }
    }

    #[test]
    fn a_search_costs_the_logarithm() {
        let mut ordered = Ordered::default();
        for i in 0..100_000_u32 {
            let number = i.wrapping_mul(2_654_435_761) % 1_000_003;
            if let Err(position) = search(&ordered, number) {
                ordered.insert(position, number);
            }
        }
        for number in (0..1_000_003).step_by(997) {
            let mut comparisons = 0;
            let _ = ordered.search(|other| {
                comparisons += 1;
                other.cmp(&number)
            });
            assert!(comparisons <= 20, "{comparisons} comparisons among 100,000");
        }
    }
}
