//! How long something took, counted in buckets: times of microseconds to minutes at the cost of two relaxed additions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a histogram: the first ends at 16 microseconds, each other at four times as much as the one before; the last one
/// has no end.
pub const BUCKETS: usize = 13;

const FIRST_BITS: u32 = 4;
const BITS_A_BUCKET: u32 = 2;

/// Counts how long something took.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// What a histogram has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramStats {
    /// How often something took as long as its bucket says, the shortest first.
    pub counts: [u64; BUCKETS],
    /// All times together, in microseconds.
    pub sum_us: u64,
}

impl Histogram {
    /// Counts one that took so long.
    pub fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The counts of now. Read one by one, so that one that is counted meanwhile may be in some and not in others.
    pub fn stats(&self) -> HistogramStats {
        let mut stats = HistogramStats {
            sum_us: self.sum_us.load(Ordering::Relaxed),
            ..HistogramStats::default()
        };
        for (count, live) in stats.counts.iter_mut().zip(&self.counts) {
            *count = live.load(Ordering::Relaxed);
        }
        stats
    }
}

impl HistogramStats {
    /// Where a bucket ends (inclusive), in microseconds; `None`: it has no end.
    pub fn end_us(bucket: usize) -> Option<u64> {
        (bucket + 1 < BUCKETS).then(|| 1 << (FIRST_BITS + BITS_A_BUCKET * bucket as u32))
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long one took on average, in microseconds; 0 if there was none.
    pub fn average_us(&self) -> u64 {
        self.sum_us.checked_div(self.count()).unwrap_or(0)
    }

    /// The end of the bucket of the longest one, in microseconds: none took longer. `None` if there was none, or that bucket
    /// has no end.
    pub fn longest_us(&self) -> Option<u64> {
        Self::end_us(self.counts.iter().rposition(|count| *count > 0)?)
    }
}

fn bucket_of(us: u64) -> usize {
    // The bits of what comes before: the end itself belongs to the bucket.
    let bits = u64::BITS - us.saturating_sub(1).leading_zeros();
    let bucket = bits.saturating_sub(FIRST_BITS).div_ceil(BITS_A_BUCKET);
    (bucket as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_bucket_that_ends_next() {
        let ends: Vec<u64> = (0..BUCKETS).filter_map(HistogramStats::end_us).collect();
        assert_eq!(
            (ends[0], ends[1], ends[11]),
            (16, 64, 1 << 26),
            "up to 67 seconds"
        );
        for us in (0..70).chain(ends.iter().flat_map(|end| [end - 1, *end, end + 1])) {
            let expected = ends.iter().position(|end| us <= *end).unwrap_or(BUCKETS - 1);
            assert_eq!(bucket_of(us), expected, "{us}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn counts_and_times_add_up() {
        let histogram = Histogram::default();
        assert_eq!(histogram.stats().average_us(), 0);
        assert_eq!(histogram.stats().longest_us(), None);
        for us in [1, 16, 17, 1000] {
            histogram.record(Duration::from_micros(us));
        }
        let stats = histogram.stats();
        assert_eq!((stats.count(), stats.sum_us, stats.average_us()), (4, 1034, 258));
        assert_eq!((stats.counts[0], stats.counts[1], stats.counts[3]), (2, 1, 1));
        assert_eq!(stats.longest_us(), Some(1024));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.stats().longest_us(), None);
    }
}
