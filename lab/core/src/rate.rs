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
    /// For a run of fewer than [`INTERVALS_ENOUGH`] intervals: seconds since its beginning, and operations a second since
    /// the point before. Points are a tenth of an interval apart, further where the sampler was late; the last is the
    /// run's end, so every run has one.
    pub curve: Vec<(f64, f64)>,
}

/// Whole intervals that show a run well enough without a finer curve.
pub const INTERVALS_ENOUGH: usize = 20;

/// Points of the finer curve in an interval.
pub const POINTS_AN_INTERVAL: u32 = 10;

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

/// Counts at the points of a [`Rates::curve`].
struct Curve {
    step: Duration,
    due: Duration,
    /// Time since the beginning and count; the first is the beginning.
    points: Vec<(Duration, u64)>,
}

impl Curve {
    fn new(step: Duration, count: u64) -> Curve {
        // Finer than the clock's slices makes no sense, and none at all would never end.
        let step = step.max(Duration::from_millis(1));
        Curve {
            step,
            due: step,
            points: vec![(Duration::ZERO, count)],
        }
    }

    fn push(&mut self, at: Duration, count: u64) {
        self.points.push((at, count));
        while self.due <= at {
            self.due += self.step;
        }
    }

    /// The rates up to the run's end, which joins the point before when that is near: a rate over next to no time says
    /// nothing.
    fn finish(mut self, end: Duration, count: u64) -> Vec<(f64, f64)> {
        if self.points.len() > 1
            && self
                .points
                .last()
                .is_some_and(|(at, _)| *at + self.step / 2 > end)
        {
            self.points.pop();
        }
        self.points.push((end, count));
        self.points
            .windows(2)
            .filter_map(|pair| {
                let [(from, before), (to, after)] = pair else {
                    return None;
                };
                let seconds = to.saturating_sub(*from).as_secs_f64();
                (seconds > 0.0).then(|| (to.as_secs_f64(), (after - before) as f64 / seconds))
            })
            .collect()
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
        ..Rates::default()
    };
    let mut last = (start, total());
    let mut curve = Curve::new(interval / POINTS_AN_INTERVAL, last.1);
    let mut due = start + interval;
    while running() {
        let now = Instant::now();
        let short = rates.rates.len() < INTERVALS_ENOUGH;
        let next = if short { due.min(start + curve.due) } else { due };
        if now < next {
            std::thread::park_timeout((next - now).min(Duration::from_millis(20)));
            continue;
        }
        let count = total();
        if short && now - start >= curve.due {
            curve.push(now - start, count);
        }
        if now < due {
            continue;
        }
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
    if rates.rates.len() < INTERVALS_ENOUGH {
        rates.curve = curve.finish(start.elapsed(), total());
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
            ..Rates::default()
        };
        assert_eq!(rates.slowest_ratio(), Some(0.5));
        assert_eq!(Rates::default().slowest_ratio(), None);
    }

    #[test]
    fn each_interval_has_a_rate() {
        let cell = Cell::default();
        let counts = std::cell::RefCell::new(Vec::new());
        let rates = sample(
            Duration::from_millis(5),
            &mut || counts.borrow().len() < 5,
            &|| {
                cell.set(cell.get() + 10);
                cell.get()
            },
            &mut |_, count| counts.borrow_mut().push(count),
        );
        assert_eq!(rates.rates.len(), 5);
        assert!(rates.rates.iter().all(|&r| r > 0.0));
        assert!(counts.borrow().is_sorted_by(|a, b| a < b), "{counts:?}");
        // The finer curve counts all of it too, the first look apart.
        assert!((sum(&rates.curve) - (cell.get() - 10) as f64).abs() < 1e-6);
    }

    /// Operations that a curve's points add up to.
    fn sum(curve: &[(f64, f64)]) -> f64 {
        let from = [0.0].into_iter().chain(curve.iter().map(|point| point.0));
        curve
            .iter()
            .zip(from)
            .map(|((to, rate), from)| (to - from) * rate)
            .sum()
    }

    #[test]
    fn a_run_shorter_than_an_interval_has_a_curve_of_all_that_it_did() {
        let (count, mut asked) = (std::cell::Cell::new(0), 0);
        let rates = sample(
            Duration::from_secs(3600),
            &mut || {
                asked += 1;
                count.set(asked * 100);
                asked < 4
            },
            &|| count.get(),
            &mut |_, _| (),
        );
        assert!(rates.rates.is_empty());
        assert_eq!(
            rates.curve.len(),
            1,
            "its average, being shorter than a tenth of an interval"
        );
        assert!((sum(&rates.curve) - 400.0).abs() < 1e-6, "{:?}", rates.curve);
    }

    #[test]
    fn a_long_run_has_no_curve() {
        let seen = std::cell::Cell::new(0);
        let rates = sample(
            Duration::from_millis(2),
            &mut || seen.get() < INTERVALS_ENOUGH,
            &|| seen.get() as u64,
            &mut |_, _| seen.set(seen.get() + 1),
        );
        assert_eq!(rates.rates.len(), INTERVALS_ENOUGH);
        assert!(rates.curve.is_empty());
    }

    #[test]
    fn points_of_a_curve_are_where_the_sampler_was() {
        let ms = Duration::from_millis;
        let mut curve = Curve::new(ms(100), 5);
        curve.push(ms(100), 15);
        // Late by more than a step: the next point is due at the next multiple.
        curve.push(ms(250), 30);
        assert_eq!(curve.due, ms(300));
        curve.push(ms(300), 31);
        // Too near to the point before, which gives way.
        let rates = curve.finish(ms(320), 37);
        assert_eq!(rates.len(), 3);
        for ((at, rate), (expected_at, expected_rate)) in
            rates.iter().zip([(0.1, 100.0), (0.25, 100.0), (0.32, 100.0)])
        {
            assert!(
                (at - expected_at).abs() < 1e-9 && (rate - expected_rate).abs() < 1e-6,
                "{rates:?}"
            );
        }
        assert!((sum(&rates) - 32.0).abs() < 1e-6);
    }
}
