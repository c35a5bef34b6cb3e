//! Zipf's distribution: rank `r` of a few is chosen with a weight of `1 / r^exponent`.

use crate::data::mix;

/// Choices below some number, the first the most frequent. Made of a table, so for numbers that fit in memory: O(n) to make,
/// O(log n) a choice.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The share of all choices that are this one or one before.
    up_to: Vec<f64>,
}

impl Zipf {
    /// Choices below `n` (one at least). YCSB's exponent is 0.99; 0 is uniform.
    pub fn new(n: usize, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=n.max(1))
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|weight| *weight /= sum);
        Zipf { up_to }
    }

    /// The `i`-th choice of the stream `seed`, computable without the ones before it.
    #[inline]
    pub fn pick(&self, seed: u64, i: u64) -> u64 {
        let at = mix(seed ^ mix(i)) as f64 / 2f64.powi(64);
        let rank = self.up_to.partition_point(|&share| share <= at);
        rank.min(self.up_to.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_ranks() {
        let zipf = Zipf::new(100, 0.99);
        let mut counts = [0u32; 100];
        for i in 0..200_000 {
            counts[zipf.pick(5, i) as usize] += 1;
        }
        let weights: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1, 2, 10, 100] {
            let expected = 200_000.0 * f64::from(rank).powf(-0.99) / weights;
            let found = f64::from(counts[rank as usize - 1]);
            // Six standard deviations.
            assert!(
                (found - expected).abs() < 6.0 * expected.sqrt(),
                "{rank}: {found} {expected}"
            );
        }
        assert!(counts.iter().all(|&count| count > 0));
    }

    #[test]
    fn the_ends_are_choices_too() {
        assert!((0..1_000).all(|i| Zipf::new(1, 0.99).pick(1, i) == 0));
        assert!((0..1_000).all(|i| Zipf::new(0, 0.99).pick(1, i) == 0));
        let mut seen = [false; 3];
        (0..1_000).for_each(|i| seen[Zipf::new(3, 0.0).pick(1, i) as usize] = true);
        assert_eq!(seen, [true; 3]);
    }
}
