//! Small statistics over lists of figures.

/// The median; `None` of nothing. The mean of the middle two when there is an even number.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Half the distance between the largest and smallest, as a share of the median: "plus or minus".
pub fn spread(values: &[f64]) -> Option<f64> {
    let median = median(values)?;
    let max = values.iter().copied().fold(f64::MIN, f64::max);
    let min = values.iter().copied().fold(f64::MAX, f64::min);
    (median != 0.0).then(|| (max - min) / 2.0 / median)
}

/// The rate that `percent` of intervals reach or exceed: with 99 the slow end, as the reports' tables put it.
pub fn rate_percentile(rates: &[f64], percent: f64) -> Option<f64> {
    if rates.is_empty() {
        return None;
    }
    let mut sorted = rates.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len()) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(spread(&[90.0, 100.0, 110.0]), Some(0.1));
    }

    #[test]
    fn the_99th_percentile_of_rates_is_the_slow_end() {
        let rates: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(rate_percentile(&rates, 50.0), Some(51.0));
        assert_eq!(rate_percentile(&rates, 99.0), Some(2.0));
        assert_eq!(rate_percentile(&rates, 100.0), Some(1.0));
    }
}
