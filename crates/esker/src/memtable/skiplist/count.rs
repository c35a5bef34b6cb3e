//! About how much of the list lies between two keys, without a walk through all of it.

use std::cmp::Ordering::Less;

use super::{LEVEL_BITS, Skiplist, Target, link};
use crate::memtable::row::Row;
use crate::sync::Ordering;

/// What a memtable has of a range of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeCount {
    /// Rows.
    pub rows: u64,
    /// Keys that have rows, each once.
    pub keys: u64,
}

/// What a level has of a range.
struct OnLevel {
    /// The last node before it, as far as that is known.
    before: Row,
    nodes: u64,
    /// How many of them are the oldest rows of their keys.
    oldest: u64,
}

impl Skiplist {
    /// About how many nodes lie in `[from, to)`, and how many keys, each of which may have several; as a part of a sum to which
    /// `besides` others belong. Exact up to some dozens of nodes; beyond, counted on the highest level whose nodes are enough to know the
    /// sum within some 15 %. O(log n), and few moves: statements are planned by it.
    pub(in crate::memtable) fn count_between(
        &self,
        from: &Target<'_>,
        to: &Target<'_>,
        besides: u64,
    ) -> RangeCount {
        let (mut level, mut start) = (self.levels.load(Ordering::Relaxed), self.root);
        loop {
            level -= 1;
            let found = self.count_on(level, start, from, to);
            let rows = found.nodes << (LEVEL_BITS as usize * level);
            if level == 0 || is_enough(found.nodes, rows, level, besides) {
                let rows = rows.min(self.len());
                let keys = u128::from(rows) * u128::from(found.oldest) / u128::from(found.nodes.max(1));
                return RangeCount {
                    rows,
                    keys: keys as u64,
                };
            }
            start = found.before;
        }
    }

    /// Counts on a level from `start` on, which is before the range.
    fn count_on(&self, level: usize, start: Row, from: &Target<'_>, to: &Target<'_>) -> OnLevel {
        let (mut node, mut found) = (
            start,
            OnLevel {
                before: start,
                nodes: 0,
                oldest: 0,
            },
        );
        loop {
            // SAFETY: `start` was found on a level above, or is the root, and `node` on this one.
            let link = unsafe { link(node, level) };
            let head = link.head.load(Ordering::Acquire);
            let next = Row(link.next.load(Ordering::Acquire));
            let is_behind = |to: &Target<'_>| head == to.head && self.compare(next, to) != Less;
            if next.is_null() || head > to.head || is_behind(to) {
                return found;
            }
            if found.nodes == 0 && (head < from.head || self.compare(next, from) == Less) {
                found.before = next;
            } else {
                found.nodes += 1;
                found.oldest += u64::from(Self::is_oldest(next));
            }
            node = next;
        }
    }

    /// Whether no older row of the same key follows: of each key there is one such row, on whichever levels it is.
    fn is_oldest(node: Row) -> bool {
        // SAFETY: `node` was found in the list, and so is what follows it.
        unsafe {
            let next = Row(link(node, 0).next.load(Ordering::Acquire));
            next.is_null() || next.user_key() != node.user_key()
        }
    }
}

/// Whether `rows`, of which this level has so many nodes, and with them `besides`, are known well enough. A row is on a level by
/// chance, each for itself: the standard error is the root of the nodes, times the rows that each stands for.
fn is_enough(nodes: u64, rows: u64, level: usize, besides: u64) -> bool {
    /// Enough where nothing is besides: a seventh of the sum.
    const NODES_ENOUGH: f64 = 48.0;
    let rows_of_node = (1_u64 << (LEVEL_BITS as usize * level)) as f64;
    let sum = rows as f64 + besides as f64;
    nodes.max(1) as f64 * rows_of_node * rows_of_node * NODES_ENOUGH <= sum * sum
}
