//! A bound on the rate at which background work writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use esker_env::Clock;

/// Bytes are asked for in portions; shorter waits than this are saved up.
const STEP_US: u64 = 1000;

/// A leaky bucket over all background threads. 0 bytes a second: no limit.
#[derive(Debug, Default)]
pub struct Throttle {
    bytes_per_second: AtomicU64,
    next_us: AtomicU64,
}

impl Throttle {
    /// A throttle at this rate.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: AtomicU64::new(bytes_per_second),
            next_us: AtomicU64::new(0),
        }
    }

    /// Changes the rate, for jobs that run too.
    pub fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
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
}
