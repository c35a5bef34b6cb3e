//! The smallest run that still fails: leaves out stretches of steps, from half of them down to single ones, as long
//! as what is left fails (Zeller, Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).

/// Shrinks `steps`, for which `fails` is true, with at most `tries` calls of it.
pub fn shrink<T: Clone>(steps: &[T], mut tries: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut steps = steps.to_vec();
    let mut stretch = steps.len().div_ceil(2);
    while stretch > 0 {
        let mut at = 0;
        while at < steps.len() {
            if tries == 0 {
                return steps;
            }
            tries -= 1;
            let end = (at + stretch).min(steps.len());
            let less: Vec<T> = [&steps[..at], &steps[end..]].concat();
            if fails(&less) {
                steps = less;
            } else {
                at = end;
            }
        }
        stretch = if stretch == 1 { 0 } else { stretch.div_ceil(2) };
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let steps: Vec<u32> = (0..100).collect();
        let fails = |steps: &[u32]| steps.contains(&17) && steps.contains(&64);
        assert_eq!(shrink(&steps, 10_000, fails), [17, 64]);
    }
}
