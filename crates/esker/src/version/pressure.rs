//! How much a family's debt asks for slower writes, smoothed over time.
//!
//! Debt changes in steps: a merge that runs for a second takes all files out of level 0 at its end. Writes that followed
//! each step would go from full speed to almost nothing and back with every merge. What they follow is the average over a
//! few merges, as long as the debt stays within its bounds.

use std::time::Duration;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// What writers are held to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hold {
    /// The debt's pressure, averaged: 0 is none.
    pub pressure: f64,
    /// The most that space permits, if that is limited (`space_rate.rs`).
    pub bytes_per_second: Option<u64>,
}

impl Hold {
    /// Whether it holds nobody.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.pressure <= 0.0 && self.bytes_per_second.is_none()
    }

    /// What holds writers that are held to both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let lowest = self.bytes_per_second.into_iter().chain(other.bytes_per_second);
        Self {
            pressure: self.pressure.max(other.pressure),
            bytes_per_second: lowest.min(),
        }
    }
}

/// The average reaches two thirds of a step after this time.
const FOLLOWS_AFTER: Duration = Duration::from_secs(3);

/// Debt is out of bounds when its pressure is at 1.0. From then on the smoothed one follows at this distance.
const BEHIND_MAX: f64 = 0.25;

#[derive(Debug, Default)]
struct State {
    average: f64,
    /// The pressure that was set last, and when.
    last: f64,
    since: Duration,
}

/// The pressure of one family.
#[derive(Debug, Default)]
pub struct Pressure {
    /// The bits of an `f64`.
    smooth: AtomicU64,
    state: Mutex<State>,
}

impl Pressure {
    /// From 0 (none) to 1.
    #[inline]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.smooth.load(Ordering::Relaxed))
    }

    /// Notes that the pressure is `pressure` from `now` on. More than 1.0 is a debt beyond all bounds.
    pub fn set(&self, pressure: f64, now: Duration) {
        let mut state = self.state.lock();
        let for_seconds = now.saturating_sub(state.since).as_secs_f64();
        let kept = (-for_seconds / FOLLOWS_AFTER.as_secs_f64()).exp();
        state.average = state.last + (state.average - state.last) * kept;
        (state.last, state.since) = (pressure, now);
        let smooth = state.average.max(pressure - BEHIND_MAX).clamp(0.0, 1.0);
        // Little debt for some time is no debt.
        let smooth = if smooth < 0.001 { 0.0 } else { smooth };
        self.smooth.store(smooth.to_bits(), Ordering::Relaxed);
    }

    /// Forgets everything: there is no pressure.
    pub fn clear(&self) {
        *self.state.lock() = State::default();
        self.smooth.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_averaged_over_seconds() {
        let pressure = Pressure::default();
        let at = |ms: u64| Duration::from_millis(ms);
        let (mut lowest, mut highest) = (1.0_f64, 0.0_f64);
        for i in 0..100 {
            // Half a second each of none and nearly all.
            pressure.set(if i % 2 == 0 { 0.0 } else { 0.9 }, at(i * 500));
            if i > 40 {
                lowest = lowest.min(pressure.get());
                highest = highest.max(pressure.get());
            }
        }
        assert!(0.35 < lowest && highest < 0.66, "{lowest} to {highest}");
    }

    #[test]
    fn debt_beyond_its_bounds_is_followed_at_once() {
        let pressure = Pressure::default();
        pressure.set(0.0, Duration::from_secs(10));
        pressure.set(1.0, Duration::from_secs(10));
        assert_eq!(pressure.get(), 0.75);
        pressure.set(2.0, Duration::from_secs(10));
        assert_eq!(pressure.get(), 1.0);
        pressure.set(0.0, Duration::from_secs(11));
        assert!((0.3..0.9).contains(&pressure.get()), "the second counts");
        pressure.set(0.0, Duration::from_secs(60));
        assert_eq!(pressure.get(), 0.0);
        pressure.set(0.9, Duration::from_secs(61));
        pressure.clear();
        assert_eq!(pressure.get(), 0.0);
    }
}
