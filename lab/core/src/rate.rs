//! Rates over time: threads count into cells of their own, a sampler reads the sum at each interval.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One thread's count of finished operations, alone on its cache lines (128 bytes: the processor fetches pairs).
#[repr(align(128))]
#[derive(Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Sets the count; only the owning thread does.
    #[inline]
    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// The count as last set.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Operations a second in each whole interval, and how the time was cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Length of an interval, in seconds.
    pub interval_s: f64,
    /// Operations a second, one figure an interval; the last, shorter one is left out.
    pub rates: Vec<f64>,
}

impl Rates {
    /// The slowest interval's rate over the average of all; `None` without whole intervals.
    pub fn slowest_ratio(&self) -> Option<f64> {
        let sum: f64 = self.rates.iter().sum();
        if sum == 0.0 {
            return None;
        }
        let min = self.rates.iter().copied().fold(f64::MAX, f64::min);
        Some(min * self.rates.len() as f64 / sum)
    }
}

/// Samples `total` each `interval`, calling `tick` with the elapsed time and the total each time, for as long as
/// `running`, which is asked some fifty times a second (and when the thread is unparked). Blocks the thread.
pub fn sample(
    interval: Duration,
    running: &mut dyn FnMut() -> bool,
    total: &dyn Fn() -> u64,
    tick: &mut dyn FnMut(Duration, u64),
) -> Rates {
    let start = Instant::now();
    let mut rates = Rates {
        interval_s: interval.as_secs_f64(),
        rates: Vec::new(),
    };
    let mut last = (start, total());
    let mut due = start + interval;
    while running() {
        let now = Instant::now();
        if now < due {
            std::thread::park_timeout((due - now).min(Duration::from_millis(20)));
            continue;
        }
        let count = total();
        let seconds = (now - last.0).as_secs_f64();
        rates.rates.push((count - last.1) as f64 / seconds);
        tick(now - start, count);
        last = (now, count);
        due += interval;
        if due <= now {
            // The machine was too busy to wake us for a whole interval: go on from here, don't rush after it.
            due = now + interval;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_interval_over_average() {
        let rates = Rates {
            interval_s: 1.0,
            rates: vec![100.0, 50.0, 150.0],
        };
        assert_eq!(rates.slowest_ratio(), Some(0.5));
        assert_eq!(Rates::default().slowest_ratio(), None);
    }

    #[test]
    fn samples_sum_to_what_was_counted() {
        let cell = Cell::default();
        let seen = std::cell::Cell::new(0);
        let rates = sample(
            Duration::from_millis(5),
            &mut || seen.get() < 60,
            &|| {
                cell.set(cell.get() + 10);
                cell.get()
            },
            &mut |_, count| seen.set(count),
        );
        assert_eq!(seen.get(), 60);
        assert_eq!(rates.rates.len(), 5);
        assert!(rates.rates.iter().all(|&r| r > 0.0));
    }
}
