//! How background work keeps out of the way: a bound on the rate at which it writes, and flushes first.
//!
//! A device shares itself among all that is asked of it. Compactions ask in many threads, so they get most of it, and a flush
//! by one thread gets a small part, just when writers have no memtable left to write into. So compactions do next to nothing
//! while writers are about to wait for the flush under way. They do not stop: a flush that hangs must not
//! hold up those who give its memory and its space back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker_env::Clock;

/// Bytes are asked for in portions; shorter waits than this are saved up.
const STEP_US: u64 = 1000;

/// What is left to a thread of a compaction while it gives way, in bytes a second.
const LEFT_BYTES_PER_SECOND: u64 = 20 << 20;

/// It looks this often whether it still has to.
const GIVE_WAY_STEP: Duration = Duration::from_millis(2);

/// A leaky bucket over all background threads. 0 bytes a second: no limit.
#[derive(Debug, Default)]
pub struct Throttle {
    bytes_per_second: AtomicU64,
    next_us: AtomicU64,
    /// A hint, so nothing is ordered by it.
    flush_is_urgent: AtomicBool,
}

impl Throttle {
    /// A throttle at this rate.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: AtomicU64::new(bytes_per_second),
            next_us: AtomicU64::new(0),
            flush_is_urgent: AtomicBool::new(false),
        }
    }

    /// Changes the rate, for jobs that run too.
    pub fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Notes whether writers will wait for the flush under way if it does not end soon.
    pub fn set_flush_urgent(&self, is_urgent: bool) {
        self.flush_is_urgent.store(is_urgent, Ordering::Relaxed);
    }

    /// What was noted last.
    pub fn is_flush_urgent(&self) -> bool {
        self.flush_is_urgent.load(Ordering::Relaxed)
    }

    /// Waits before a compaction's next `bytes`, for as long as a flush is urgent and a compaction may be kept waiting.
    pub fn give_way(&self, clock: &dyn Clock, bytes: u64) {
        let wait_max = Duration::from_micros(bytes.saturating_mul(1_000_000) / LEFT_BYTES_PER_SECOND);
        let mut waited = Duration::ZERO;
        while waited < wait_max && self.is_flush_urgent() {
            clock.sleep(GIVE_WAY_STEP);
            waited += GIVE_WAY_STEP;
        }
    }

    /// Waits until `bytes` more may be written.
    pub fn take(&self, clock: &dyn Clock, bytes: u64) {
        let rate = self.bytes_per_second.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let now_us = clock.now().as_micros() as u64;
        let cost_us = bytes.saturating_mul(1_000_000) / rate;
        let mut from = self.next_us.load(Ordering::Relaxed);
        let next = loop {
            let next = from.max(now_us) + cost_us;
            match self
                .next_us
                .compare_exchange_weak(from, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => break next,
                Err(current) => from = current,
            }
        };
        let wait_us = next.saturating_sub(now_us);
        if wait_us >= STEP_US {
            clock.sleep(Duration::from_micros(wait_us));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_on_the_clock() {
        let (env, _) = esker_env::Env::simulated(1);
        let throttle = Throttle::new(1 << 20);
        let start = env.clock.now();
        for _ in 0..64 {
            throttle.take(&*env.clock, 64 << 10);
        }
        let elapsed = (env.clock.now() - start).as_secs_f64();
        assert!((3.9..4.2).contains(&elapsed), "4 MiB at 1 MiB/s took {elapsed} s");
        throttle.set(0);
        let start = env.clock.now();
        throttle.take(&*env.clock, 1 << 40);
        assert!((env.clock.now() - start).as_secs_f64() < 0.1);
    }

    #[test]
    fn a_compaction_gives_way_to_an_urgent_flush_and_is_never_held_up_by_it() {
        let (env, _) = esker_env::Env::simulated(1);
        let throttle = Throttle::default();
        let waits = || {
            let start = env.clock.now();
            throttle.give_way(&*env.clock, LEFT_BYTES_PER_SECOND / 10);
            env.clock.now() - start
        };
        let tenth = Duration::from_millis(100);
        assert!(waits() < GIVE_WAY_STEP);
        throttle.set_flush_urgent(true);
        assert!((tenth..tenth + 2 * GIVE_WAY_STEP).contains(&waits()));
        throttle.set_flush_urgent(false);
        assert!(waits() < GIVE_WAY_STEP);
    }
}
