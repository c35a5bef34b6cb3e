//! How a merge is cut into parallel parts.

use std::cmp::Ordering;

use super::plan::Plan;
use crate::key::KeyOrder;

/// At most `parts - 1` user keys that cut a merge into parts of about equal size, ascending; part `i` holds the keys
/// from point `i - 1` (inclusive) up to point `i` (exclusive).
///
/// `anchors` say how the bytes lie: each is a user key and the bytes that its file has between its previous anchor
/// and this one. Entries of the tables' top-level indexes serve well. In any order. O(n log n).
pub fn split_points(order: &KeyOrder, mut anchors: Vec<(&[u8], u64)>, parts: usize) -> Vec<Vec<u8>> {
    anchors.sort_by(|a, b| order.compare(a.0, b.0));
    let total = anchors
        .iter()
        .fold(0_u128, |sum, anchor| sum + u128::from(anchor.1));
    let (Some(first), true) = (anchors.first().map(|anchor| anchor.0), parts > 1 && total > 0) else {
        return Vec::new();
    };
    let mut points: Vec<Vec<u8>> = Vec::with_capacity(parts - 1);
    let (mut passed, mut last) = (0_u128, first);
    for &(key, bytes) in &anchors {
        passed += u128::from(bytes);
        let due = (points.len() as u128 + 1) * total / parts as u128;
        // The last anchor ends everything: nothing would be behind it.
        if passed < due || passed == total || points.len() + 1 == parts {
            continue;
        }
        if order.compare(last, key) == Ordering::Less {
            points.push(key.to_vec());
            last = key;
        }
    }
    points
}

impl Plan {
    /// [`split_points`] by nothing but the bounds of the input files, each taken to be evenly filled between the
    /// bounds of all. Good where many files lie side by side; files that all cover the whole range need anchors
    /// from their indexes.
    pub fn split_points(&self, order: &KeyOrder, parts: usize) -> Vec<Vec<u8>> {
        let mut bounds: Vec<&[u8]> = self
            .files()
            .flat_map(|(_, file)| [file.smallest_user_key(), file.largest_user_key()])
            .collect();
        bounds.sort_by(|a, b| order.compare(a, b));
        bounds.dedup();
        let mut bytes = vec![0_u64; bounds.len()];
        for (_, file) in self.files() {
            let index_of =
                |key: &[u8]| bounds.partition_point(|bound| order.compare(bound, key) == Ordering::Less);
            let (start, end) = (
                index_of(file.smallest_user_key()),
                index_of(file.largest_user_key()),
            );
            let share = file.size_bytes / (end - start).max(1) as u64;
            let filled = if start == end {
                start..end + 1
            } else {
                start + 1..end + 1
            };
            bytes[filled]
                .iter_mut()
                .for_each(|sum| *sum = sum.saturating_add(share));
        }
        split_points(order, bounds.into_iter().zip(bytes).collect(), parts)
    }
}
