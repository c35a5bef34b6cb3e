//! Which range tombstones a job writes.

use super::rules::stripe_of;
use crate::key::{FragmentedTombstones, KeyOrder, RangeTombstone, Sequence};

/// The tombstones of `tombstones` (those of all inputs) that the output must hold.
///
/// Of each fragment and stripe only the newest counts, for the reason that holds for rows. A bottommost job drops
/// those of stripe 0: all rows of stripe 0 that they cover are dropped by the same job, and nothing older exists.
/// `snapshots` ascend. O(n log n) in the fragments' sequence numbers.
pub fn carried_tombstones(
    order: &KeyOrder,
    tombstones: &FragmentedTombstones,
    snapshots: &[Sequence],
    bottommost: bool,
) -> FragmentedTombstones {
    let mut carried = Vec::new();
    for fragment in tombstones.fragments() {
        let mut newer_stripe = None;
        for &sequence in fragment.sequences {
            let stripe = stripe_of(snapshots, sequence);
            if newer_stripe == Some(stripe) || (bottommost && stripe == 0) {
                continue;
            }
            newer_stripe = Some(stripe);
            carried.push(RangeTombstone {
                start: fragment.start.to_vec(),
                end: fragment.end.to_vec(),
                sequence,
            });
        }
    }
    FragmentedTombstones::new(order, carried)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &[(&str, &str, Sequence)]) -> FragmentedTombstones {
        FragmentedTombstones::new(
            &KeyOrder::Bytewise,
            parts.iter().map(|&(start, end, sequence)| RangeTombstone {
                start: start.into(),
                end: end.into(),
                sequence,
            }),
        )
    }

    #[test]
    fn one_tombstone_for_each_stripe_is_enough() {
        let all = list(&[("a", "m", 2), ("a", "m", 3), ("a", "m", 6), ("g", "z", 9)]);
        let carried = carried_tombstones(&KeyOrder::Bytewise, &all, &[4, 7], false);
        assert_eq!(carried, list(&[("a", "m", 3), ("a", "m", 6), ("g", "z", 9)]));
    }

    #[test]
    fn the_bottom_drops_what_no_snapshot_can_tell_from_nothing() {
        let all = list(&[("a", "m", 2), ("a", "m", 6)]);
        let carried = |snapshots: &[Sequence]| carried_tombstones(&KeyOrder::Bytewise, &all, snapshots, true);
        assert!(carried(&[]).is_empty());
        assert_eq!(carried(&[4]), list(&[("a", "m", 6)]));
        assert_eq!(carried(&[1, 4]), all);
    }
}
