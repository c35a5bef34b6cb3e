//! Admission: how fast writes are let in, as a smooth function of the debt that background work has.
//!
//! The idea: as debt grows, the permitted write rate falls from "unlimited" through the measured rate at which debt
//! is paid, so that the system settles where both are equal, instead of running freely into a stop.
//! ```text
//! permitted / drain rate
//!   2 |\
//!     |  \            pressure 0: no limit at all
//!   1 |----\--- the equilibrium, near half pressure
//!     |      \
//! 0.1 |        \_____ pressure 1 and beyond
//!     +---------------
//!      0      0.5    1
//! ```
//! The pressure is an average over some seconds (`version/pressure.rs`), as debt comes and goes with each job.
//!
//! Only memory is a hard bound: a writer that finds all memtables of a family waiting for their flush waits too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::version::Hold;

/// What background work still owes for one column family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Debt {
    /// Files in level 0; those that are being compacted count half, as on average half of the work is done.
    pub level0_files: f64,
    /// Files at which level 0 is compacted.
    pub level0_trigger: f64,
    /// Files at which writes are held to half of the drain rate, and to a tenth if it lasts.
    pub level0_files_max: usize,
    /// Bytes that compactions have still to write to bring every level to its target and level 0 down; must not jump
    /// when level 0 becomes due.
    pub compaction_bytes: u64,
    /// Debt in bytes from which on it counts.
    pub compaction_bytes_soft: u64,
}

impl Debt {
    /// 0 (none) to 1 (as much as there may be), and up to 2 beyond.
    pub fn pressure(&self) -> f64 {
        let span = (self.level0_files_max as f64 - self.level0_trigger).max(1.0);
        let files = (self.level0_files - self.level0_trigger) / span;
        let soft = self.compaction_bytes_soft.max(1) as f64;
        let bytes = (self.compaction_bytes as f64 - soft) / (3.0 * soft);
        files.max(bytes).clamp(0.0, 2.0)
    }
}

/// Writers are made to wait in steps of at least this length; shorter waits are saved up.
const STEP: Duration = Duration::from_micros(500);

/// No single write waits longer than this for admission, so that a change of the drain rate is noticed.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Assumed drain rate before one was measured, in bytes a second.
const DRAIN_START: u64 = 64 << 20;

/// No single drain counts for more than this, in bytes a second: a move takes no time, and must not let writers outrun the
/// merges that come after it.
const SAMPLE_MAX: u64 = 1 << 30;

/// The controller of one database. `delay` is for the leader alone; the drain rate is told by compaction threads.
#[derive(Debug)]
pub struct Admission {
    drain_bytes_per_second: AtomicU64,
    last_drain_us: AtomicU64,
    /// Whether level 0 was due again as the last drain ended.
    due_again: AtomicBool,
    /// Moment from which on the next byte is permitted, in microseconds.
    next_us: AtomicU64,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            drain_bytes_per_second: AtomicU64::new(DRAIN_START),
            last_drain_us: AtomicU64::new(0),
            due_again: AtomicBool::new(false),
            next_us: AtomicU64::new(0),
        }
    }
}

impl Admission {
    /// Notes that a compaction that ran from `started` to `now` took `bytes` out of level 0, which is due again already
    /// if `due`: it waits for the next one then, and the time until that begins is part of what that takes. Time in
    /// which level 0 fills is not, or slow writes would make the rate low, and the rate the writes slower still.
    pub fn record_drain(&self, bytes: u64, started: Duration, now: Duration, due: bool) {
        let now_us = now.as_micros() as u64;
        let pressed = self.due_again.swap(due, Ordering::Relaxed);
        let previous_us = self.last_drain_us.swap(now_us, Ordering::Relaxed);
        let started_us = started.as_micros() as u64;
        let since_us = if pressed && previous_us > 0 {
            previous_us.min(started_us)
        } else {
            started_us
        };
        let elapsed_us = now_us.saturating_sub(since_us).max(1);
        let sample = (bytes.saturating_mul(1_000_000) / elapsed_us).min(SAMPLE_MAX);
        let old = self.drain_bytes_per_second.load(Ordering::Relaxed);
        // One part in four: a few compactions decide, a single odd one does not.
        self.drain_bytes_per_second
            .store((old * 3 + sample) / 4, Ordering::Relaxed);
    }

    /// The measured drain rate.
    pub fn drain_bytes_per_second(&self) -> u64 {
        self.drain_bytes_per_second.load(Ordering::Relaxed)
    }

    /// How long the leader waits before it admits `bytes`.
    pub fn delay(&self, now: Duration, bytes: usize, hold: Hold) -> Duration {
        if hold.is_none() {
            return Duration::ZERO;
        }
        let mut permitted = f64::INFINITY;
        if hold.pressure > 0.0 {
            let drain = self.drain_bytes_per_second().max(1 << 20) as f64;
            permitted = drain * (2.0 * (1.0 - hold.pressure)).max(0.1);
        }
        if let Some(most) = hold.bytes_per_second {
            permitted = permitted.min(most as f64);
        }
        let cost_us = bytes as f64 * 1e6 / permitted;
        let now_us = now.as_micros() as u64;
        // Unused permission is not saved up beyond one step.
        let from = self
            .next_us
            .load(Ordering::Relaxed)
            .max(now_us.saturating_sub(STEP.as_micros() as u64));
        let next = from + cost_us as u64;
        self.next_us.store(next, Ordering::Relaxed);
        let wait = Duration::from_micros(next.saturating_sub(now_us));
        if wait < STEP {
            Duration::ZERO
        } else {
            wait.min(WAIT_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debt(level0_files: f64) -> Debt {
        Debt {
            level0_files,
            level0_trigger: 4.0,
            level0_files_max: 20,
            compaction_bytes: 0,
            compaction_bytes_soft: 1,
        }
    }

    #[test]
    fn no_debt_no_delay() {
        let admission = Admission::default();
        assert_eq!(debt(4.0).pressure(), 0.0);
        for i in 0..1000 {
            assert_eq!(
                admission.delay(Duration::from_micros(i), 1 << 20, Hold::default()),
                Duration::ZERO
            );
        }
    }

    #[test]
    fn pressure_rises_without_a_jump() {
        let mut previous = 0.0;
        for files in 4..=30 {
            let pressure = debt(f64::from(files)).pressure();
            assert!(
                pressure >= previous && pressure - previous < 0.1,
                "{files}: {previous} -> {pressure}"
            );
            previous = pressure;
        }
        assert_eq!(debt(20.0).pressure(), 1.0);
        assert_eq!(debt(100.0).pressure(), 2.0);
    }

    #[test]
    fn time_in_which_level0_fills_says_nothing_of_the_drain() {
        let admission = Admission::default();
        let at = Duration::from_secs;
        for i in 0..20 {
            // A second's work every ten seconds, after which level 0 is not due.
            admission.record_drain(100 << 20, at(10 * i + 9), at(10 * i + 10), false);
        }
        assert!(admission.drain_bytes_per_second() > 99 << 20);
        for i in 20..60 {
            // It is due each time, and waits for nine seconds.
            admission.record_drain(100 << 20, at(10 * i + 9), at(10 * i + 10), true);
        }
        assert!(admission.drain_bytes_per_second() < 11 << 20);
        for i in 600..620 {
            admission.record_drain(100 << 30, at(i), at(i), false);
        }
        assert!(admission.drain_bytes_per_second() <= SAMPLE_MAX, "moves");
    }

    /// Writers as fast as they can against a drain of 100 MB/s: the admitted rate settles at the drain rate.
    #[test]
    fn the_rate_settles_at_the_drain_rate() {
        let admission = Admission::default();
        let (drain, file) = (100e6, 32e6);
        let (mut now, mut written, mut level0) = (0.0_f64, 0.0_f64, 0.0_f64);
        let mut rates = Vec::new();
        let (mut second, mut second_bytes) = (1.0, 0.0);
        while now < 60.0 {
            let hold = Hold {
                pressure: debt(level0 / file).pressure(),
                bytes_per_second: None,
            };
            let wait = admission
                .delay(Duration::from_secs_f64(now), 800, hold)
                .as_secs_f64();
            let step = wait + 2e-6;
            now += step;
            written += 800.0;
            second_bytes += 800.0;
            level0 += 800.0;
            let drained = (drain * step).min(level0);
            level0 -= drained;
            if now > second {
                admission.record_drain(
                    100_000_000,
                    Duration::from_secs_f64(second - 1.0),
                    Duration::from_secs_f64(second),
                    false,
                );
                rates.push(second_bytes);
                second += 1.0;
                second_bytes = 0.0;
            }
        }
        let steady = &rates[20..];
        let lowest = steady.iter().copied().fold(f64::INFINITY, f64::min);
        let average = steady.iter().sum::<f64>() / steady.len() as f64;
        assert!((0.85..1.15).contains(&(average / drain)), "average {average}");
        assert!(lowest > 0.8 * average, "lowest {lowest}, average {average}");
        assert!(written > 0.0);
    }
}
