//! Latencies: one HDR histogram a thread, merged at the end.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Two significant digits (1 %) keep a thread's counts within some 60 KB, so that 32 of them stay out of the
/// engine's way in the processor's cache.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Longest latency that is told apart, one hour; longer ones count as that.
const MAX_NS: u64 = 3_600_000_000_000;

/// Points of the latency curve, in percent.
const CURVE: [f64; 19] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99, 99.995,
    99.999, 99.9999, 100.0,
];

/// Latencies of one thread, or of many once merged.
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        // The bounds are constants that the histogram accepts; the fallback has the same precision.
        let histogram = Histogram::new_with_bounds(1, MAX_NS, SIGNIFICANT_DIGITS)
            .or_else(|_| Histogram::new(SIGNIFICANT_DIGITS))
            .unwrap_or_else(|_| unreachable!("constant bounds"));
        Latencies { histogram }
    }
}

impl Latencies {
    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.histogram.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds another thread's operations.
    pub fn merge(&mut self, other: &Latencies) {
        // Equal bounds on both sides: adding can't fail.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that `percent` of operations stay within, in microseconds; 0 when nothing was counted.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        if self.histogram.is_empty() {
            return 0.0;
        }
        self.histogram.value_at_percentile(percent) as f64 / 1e3
    }

    /// The longest, in microseconds (exact to 1 %).
    pub fn max_us(&self) -> f64 {
        self.histogram.max() as f64 / 1e3
    }

    /// The mean, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.histogram.mean() / 1e3
    }

    /// Percent and microseconds, for drawing. Percentiles that the count is too small for are left out.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let count = self.histogram.len() as f64;
        if count == 0.0 {
            return Vec::new();
        }
        CURVE
            .iter()
            .filter(|&&p| p == 100.0 || (100.0 - p) / 100.0 * count >= 1.0)
            .map(|&p| (p, self.percentile_us(p)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_percent() {
        let mut a = Latencies::default();
        let mut b = Latencies::default();
        for us in 1..=10_000u64 {
            if us % 2 == 0 { &mut a } else { &mut b }.record(Duration::from_micros(us));
        }
        a.merge(&b);
        assert_eq!(a.count(), 10_000);
        for (percent, expected) in [(50.0, 5_000.0), (99.0, 9_900.0), (100.0, 10_000.0)] {
            let got = a.percentile_us(percent);
            assert!((got / expected - 1.0).abs() < 0.011, "p{percent}: {got}");
        }
        let curve = a.curve();
        assert!(curve.windows(2).all(|w| w[0].1 <= w[1].1));
        assert_eq!(curve.last().map(|p| p.0), Some(100.0));
        assert!(
            !curve.iter().any(|p| p.0 == 99.9999),
            "10,000 operations have no such percentile"
        );
    }

    #[test]
    fn hours_are_not_lost() {
        let mut l = Latencies::default();
        l.record(Duration::from_secs(10_000));
        assert!(l.max_us() > 3.5e9);
        assert!(Latencies::default().curve().is_empty());
    }
}
