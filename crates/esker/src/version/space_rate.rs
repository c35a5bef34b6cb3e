//! The rate of writes at which as much space is won back as they use up.
//!
//! Garbage in blob files grows with the bytes that are written and shrinks with those that merges give back. How fast these
//! can, no formula says: it hangs on the device, on the processors and on what else is done. But it shows: what was written
//! and has not become more garbage was given back. So writers that make more garbage than is wanted are led to that rate:
//! ```text
//! given back = written - growth of the garbage
//! base       = given back, averaged over some seconds; from the rate of the writes on where the limit begins
//! permitted  = base * (1 - HELD * (fill - 1))       fill: garbage / (ROOM * what is wanted), averaged over seconds
//! ```
//! A fill beyond 1 holds writers below what is given back, so the garbage shrinks. Below, the base grows too: merges may be able to
//! give back more than they had to. They aim at what is wanted, which is less than the limit's 1: else the rate would fall
//! on and on, with merges that have nothing to do. A burst is let through, and what it leaves is given back behind it.

use std::time::Duration;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// Writers are held this much below what is given back where there is twice the garbage that is wanted, or more.
const HELD: f64 = 0.25;

/// Garbage at which writers are held, to what merges aim at.
const ROOM: f64 = 1.25;

/// How much the base grows in a second, for each part of what is wanted that is not there.
const PROBE: f64 = 0.02;

/// What is given back is averaged over this time, in seconds.
const BASE_FOLLOWS_AFTER: f64 = 15.0;

/// The fill is averaged over this time, in seconds: a merge gives back the space of some of them all at once.
const FILL_FOLLOWS_AFTER: f64 = 4.0;

/// So is the rate at which is written.
const WRITES_FOLLOW_AFTER: f64 = 2.0;

/// More garbage than is wanted is a burst's for so long.
const BURST: Duration = Duration::from_secs(5);

/// Who writes fewer bytes a second is at rest: what comes next is a burst again.
const AT_REST: f64 = (16 << 20) as f64;

/// Looks that follow each other faster are left out.
const LOOK_MIN: f64 = 0.1;

/// A limit that writers don't reach is doubled in this time, and gone at [`RATE_MAX`].
const FORGOTTEN_AFTER: f64 = 5.0;

/// Writers leave a limit alone if they use up less than this part of it.
const LEFT_ALONE: f64 = 0.25;

/// No limit is lower, in bytes a second; none that is higher is one.
const RATE_MIN: f64 = (1 << 20) as f64;
const RATE_MAX: f64 = (4_u64 << 30) as f64;

#[derive(Debug, Default)]
struct State {
    since: Duration,
    written_bytes: u64,
    garbage_bytes: u64,
    fill: f64,
    bytes_per_second: f64,
    /// Since when there is more than is wanted.
    over_since: Option<Duration>,
    /// What the limit follows, while there is one, in bytes a second.
    base: Option<f64>,
}

/// Garbage in the blob files of a family, and what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Garbage {
    /// Bytes that are dead, or may be.
    pub bytes: u64,
    /// Bytes that may be there without slowing anybody.
    pub wanted: u64,
}

impl Garbage {
    /// How much there is to what is wanted.
    pub fn part(&self) -> f64 {
        self.bytes as f64 / self.wanted.max(1) as f64
    }
}

/// The limit on writes for the sake of space.
#[derive(Debug, Default)]
pub struct SpaceRate {
    /// Bytes a second; 0: no limit.
    permitted: AtomicU64,
    /// The bits of an `f64`.
    fill: AtomicU64,
    state: Mutex<State>,
}

impl SpaceRate {
    /// How many bytes may be written a second, if that is limited.
    #[inline]
    pub fn permitted(&self) -> Option<u64> {
        match self.permitted.load(Ordering::Relaxed) {
            0 => None,
            rate => Some(rate),
        }
    }

    /// The limit as a pressure: 0.0 without one, else 0.5 where there is as much garbage as is wanted, up to 1.0.
    pub fn pressure(&self) -> f64 {
        let fill = f64::from_bits(self.fill.load(Ordering::Relaxed));
        self.permitted().map_or(0.0, |_| (fill / 2.0).clamp(0.01, 1.0))
    }

    /// Notes that there is so much `garbage` at `now`, when `written_bytes` had been written since the database was opened.
    pub fn look(&self, garbage: Garbage, written_bytes: u64, now: Duration) {
        let mut state = self.state.lock();
        let seconds = now.saturating_sub(state.since).as_secs_f64();
        if seconds < LOOK_MIN {
            return;
        }
        let written = written_bytes.saturating_sub(state.written_bytes) as f64;
        let given_back = written - (garbage.bytes as f64 - state.garbage_bytes as f64);
        state.fill = follow(state.fill, garbage.part() / ROOM, seconds / FILL_FOLLOWS_AFTER);
        let rate = written / seconds;
        state.bytes_per_second = follow(state.bytes_per_second, rate, seconds / WRITES_FOLLOW_AFTER);
        (state.since, state.written_bytes, state.garbage_bytes) = (now, written_bytes, garbage.bytes);
        let over = (state.fill - 1.0).clamp(-1.0, 1.0);
        let permitted = |base: f64| base * (1.0 - HELD * over);
        let is_over = over > 0.0 && state.bytes_per_second >= AT_REST;
        let over_since = state.over_since.filter(|_| is_over);
        let is_lasting = over_since.is_some_and(|since| now.saturating_sub(since) >= BURST);
        state.over_since = over_since.or(is_over.then_some(now));
        let base = match state.base {
            None if is_lasting => Some(state.bytes_per_second),
            None => None,
            Some(base) => {
                let mut base = follow(base, given_back / seconds, seconds / BASE_FOLLOWS_AFTER);
                base *= (PROBE * (-over).max(0.0) * seconds).min(1.0).exp();
                if state.bytes_per_second < LEFT_ALONE * permitted(base) {
                    base *= (seconds / FORGOTTEN_AFTER).exp2();
                }
                Some(base.max(RATE_MIN)).filter(|&base| base < RATE_MAX)
            }
        };
        state.base = base;
        self.fill.store(state.fill.to_bits(), Ordering::Relaxed);
        let permitted = base.map_or(0, |base| permitted(base).max(RATE_MIN) as u64);
        self.permitted.store(permitted, Ordering::Relaxed);
    }

    /// Forgets everything: there is no limit.
    pub fn clear(&self) {
        *self.state.lock() = State::default();
        self.permitted.store(0, Ordering::Relaxed);
    }
}

/// The average `from` after `passed` of its times at `to`.
fn follow(from: f64, to: f64, passed: f64) -> f64 {
    to + (from - to) * (-passed).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    /// A database of which `wanted` MiB may be garbage, under writers of 400 MiB/s, while merges of a second each give
    /// back 150 MiB a second. Every second's rate, and the part of `wanted` that is there, in the last `watched` of `seconds`.
    fn settle(wanted: f64, seconds: u64, watched: u64) -> (Vec<f64>, Vec<f64>) {
        let (limit, most, given_back) = (SpaceRate::default(), 400.0 * MIB, 150.0 * MIB);
        let (mut garbage, mut written, mut due) = (0.0_f64, 0.0, 0.0);
        let (mut rates, mut parts) = (Vec::new(), Vec::new());
        for tenth in 1..=seconds * 10 {
            let rate = limit.permitted().map_or(most, |rate| most.min(rate as f64)) / 10.0;
            (garbage, written, due) = (garbage + rate, written + rate, due + given_back / 10.0);
            // A merge ends every second, and has taken away what there was.
            if tenth % 10 == 0 {
                garbage = (garbage - due).max(0.0);
                due = 0.0;
            }
            if tenth % 2 == 0 {
                let garbage = Garbage {
                    bytes: garbage as u64,
                    wanted: (wanted * MIB) as u64,
                };
                limit.look(garbage, written as u64, Duration::from_millis(100 * tenth));
            }
            if tenth > (seconds - watched) * 10 {
                rates.push(rate * 10.0 / MIB);
                parts.push(garbage / (wanted * MIB));
            }
        }
        let seconds = rates.chunks(10).map(|tenths| tenths.iter().sum::<f64>() / 10.0);
        (seconds.collect(), parts)
    }

    #[test]
    fn writes_settle_at_the_rate_at_which_space_is_won_back() {
        for (wanted, seconds, watched) in [(500.0, 400, 120), (5_000.0, 900, 300), (50_000.0, 6000, 1000)] {
            let (rates, parts) = settle(wanted, seconds, watched);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (rate, part) = (mean(&rates), mean(&parts));
            assert!((135.0..155.0).contains(&rate), "{wanted} MiB: {rate} MiB/s");
            assert!(
                (0.85 * ROOM..1.2 * ROOM).contains(&part),
                "{wanted} MiB: {part} of them"
            );
            let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(slowest > 0.85 * rate, "{wanted} MiB: {slowest} of {rate}");
        }
    }

    #[test]
    fn a_burst_is_let_through() {
        let (rates, _) = settle(600.0, 20, 20);
        assert_eq!(rates[..7], [400.0; 7]);
        assert!(rates.iter().all(|rate| *rate > 180.0), "{rates:?}");
    }

    #[test]
    fn who_writes_slower_than_the_limit_loses_it() {
        let limit = SpaceRate::default();
        let at = |seconds: u64| Duration::from_secs(seconds);
        let full = Garbage {
            bytes: 300,
            wanted: 100,
        };
        assert_eq!((limit.permitted(), limit.pressure()), (None, 0.0));
        for second in 1..20 {
            limit.look(full, second * (100 << 20), at(second));
        }
        let limited = limit.permitted().unwrap();
        assert!(limited < 100 << 20, "{limited}");
        assert!(limit.pressure() > 0.9);
        let written = 19 * (100 << 20);
        for second in 20..40 {
            limit.look(full, written + (second - 19) * (1 << 20), at(second));
        }
        let later = limit.permitted();
        assert!(
            later.is_none_or(|rate| rate > 2 * limited),
            "{limited}, {later:?}"
        );
        for second in 40..200 {
            limit.look(full, written, at(second));
        }
        assert_eq!(limit.permitted(), None);
        limit.look(full, written + (1 << 30), at(201));
        limit.clear();
        assert_eq!((limit.permitted(), limit.pressure()), (None, 0.0));
    }
}
