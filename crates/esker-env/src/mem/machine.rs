//! A clock that moves only when it is asked, and randomness that a seed determines.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::rng::{STEP, mix};
use crate::{Clock, Random};

/// What the clock moves by each time it is read, in nanoseconds.
const TICK_NANOS: u64 = 1_000;
/// The clock's zero in seconds since 1970: 2020-01-01.
const EPOCH_SECONDS: u64 = 1_577_836_800;

/// A logical clock: reading it moves it by a microsecond, sleeping moves it by what was slept, without blocking.
#[derive(Debug, Default)]
pub struct LogicalClock {
    nanos: AtomicU64,
}

impl LogicalClock {
    /// Moves the clock.
    pub fn advance(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX >> 1);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for LogicalClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.fetch_add(TICK_NANOS, Ordering::Relaxed))
    }

    fn unix_seconds(&self) -> u64 {
        EPOCH_SECONDS + self.nanos.load(Ordering::Relaxed) / 1_000_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

/// Random numbers that a seed determines (as far as the order of calls is determined).
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: AtomicU64::new(seed),
        }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        mix(self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_by_ticks_and_sleeps() {
        let clock = LogicalClock::default();
        assert_eq!(clock.now(), Duration::ZERO);
        assert_eq!(clock.now(), Duration::from_micros(1));
        let before = clock.unix_seconds();
        clock.sleep(Duration::from_secs(60));
        assert_eq!(clock.now(), Duration::from_secs(60) + Duration::from_micros(2));
        assert_eq!(clock.unix_seconds(), before + 60);
    }

    #[test]
    fn a_seed_gives_its_numbers_again() {
        let take = |seed| {
            let random = SeededRandom::new(seed);
            [random.next_u64(), random.next_u64(), random.next_u64()]
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
        // The published first value of SplitMix64 for seed 0.
        assert_eq!(take(0)[0], 0xe220_a839_7b1d_cdaf);
    }
}
