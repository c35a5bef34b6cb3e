//! When rows were written, told by their sequence numbers.
//!
//! A *fact* is a pair `(s, t)`: every write with a number up to `s` was made at `t` or before. Facts are about the whole
//! database, so those of several tables may be put together, and any of them may be left out: then rows only seem
//! younger. A flush adds a fact about the newest row of its memtables; compactions hand facts on.

use crate::codec::{put_varint, take_varint};
use crate::key::Sequence;

/// Facts within the age limit that are kept, at most.
const SPANS: u64 = 32;

/// Facts, ascending in both parts: none implies another. Times in seconds since 1970 UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteTimes {
    facts: Vec<(Sequence, u64)>,
}

impl WriteTimes {
    /// Facts in any order. O(n log n).
    pub fn new(facts: impl IntoIterator<Item = (Sequence, u64)>) -> Self {
        let mut all: Vec<_> = facts.into_iter().collect();
        all.sort_unstable_by_key(|&(sequence, time)| (std::cmp::Reverse(sequence), time));
        let mut facts: Vec<(Sequence, u64)> = Vec::new();
        for fact in all {
            if facts.last().is_none_or(|newer| fact.1 < newer.1) {
                facts.push(fact);
            }
        }
        facts.reverse();
        Self { facts }
    }

    /// All facts of several tables.
    pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(parts.into_iter().flat_map(|part| part.facts.iter().copied()))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// The newest number that is known to have been written at `time` or before; 0 if nothing is.
    pub fn written_until(&self, time: u64) -> Sequence {
        let count = self.facts.partition_point(|&(_, at)| at <= time);
        let last = count.checked_sub(1).and_then(|last| self.facts.get(last));
        last.map_or(0, |&(sequence, _)| sequence)
    }

    /// What is worth keeping of it where rows expire that are older than `limit` seconds: one fact for all that have
    /// expired, and for each 32nd part of the limit.
    #[must_use]
    pub fn thinned(&self, now: u64, limit: u64) -> Self {
        let expired = now.saturating_sub(limit);
        let span = (limit / SPANS).max(1);
        let bucket = |time: u64| {
            if time <= expired { None } else { Some(time / span) }
        };
        let same = |a: &(Sequence, u64), b: &(Sequence, u64)| bucket(a.1) == bucket(b.1);
        let facts = self
            .facts
            .chunk_by(same)
            .filter_map(|group| group.last().copied());
        Self {
            facts: facts.collect(),
        }
    }

    /// Appends pairs of varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for &(sequence, time) in &self.facts {
            put_varint(out, sequence);
            put_varint(out, time);
        }
    }

    /// All of the input; `None` if it is no list of pairs.
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let mut facts = Vec::new();
        while !input.is_empty() {
            facts.push((take_varint(&mut input)?, take_varint(&mut input)?));
        }
        Some(Self::new(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_stronger_fact_says_is_left_out() {
        let times = WriteTimes::new([(10, 500), (5, 500), (7, 600), (20, 700), (20, 900), (3, 100)]);
        assert_eq!(times.facts, [(3, 100), (10, 500), (20, 700)]);
        let until = [(99, 0), (100, 3), (499, 3), (500, 10), (10_000, 20)];
        for (time, sequence) in until {
            assert_eq!(times.written_until(time), sequence, "{time}");
        }
        assert_eq!(WriteTimes::default().written_until(u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn no_row_ever_seems_older_than_it_is(
            gaps in proptest::collection::vec((1..50_u64, 0..500_u64), 1..200),
            limit in 1..20_000_u64,
            now in 0..60_000_u64,
        ) {
            // Flushes one after the other.
            let mut flushes = Vec::new();
            let (mut sequence, mut time) = (0, 0);
            for (rows, seconds) in gaps {
                (sequence, time) = (sequence + rows, time + seconds);
                flushes.push((sequence, time));
            }
            let (even, odd): (Vec<_>, Vec<_>) = flushes.iter().partition(|flush| flush.0 % 2 == 0);
            let parts = [WriteTimes::new(even), WriteTimes::new(odd).thinned(now, limit)];
            let merged = WriteTimes::merge(&parts);
            let thin = merged.thinned(now, limit);
            prop_assert!(thin.facts.len() as u64 <= time / (limit / SPANS).max(1) + 2);
            for at in [0, now.saturating_sub(limit), now, time, u64::MAX] {
                let true_until = flushes.iter().filter(|flush| flush.1 <= at).map(|flush| flush.0).max();
                prop_assert!(thin.written_until(at) <= true_until.unwrap_or(0));
            }
            let expired = now.saturating_sub(limit);
            prop_assert_eq!(thin.written_until(expired), merged.written_until(expired));
            let mut bytes = Vec::new();
            thin.encode(&mut bytes);
            prop_assert_eq!(WriteTimes::decode(&bytes), Some(thin));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            if let Some(times) = WriteTimes::decode(&bytes) {
                prop_assert!(times.facts.is_sorted());
            }
        }
    }
}
