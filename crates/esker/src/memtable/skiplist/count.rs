//! About how much of the list lies between two keys, without a walk through all of it.

use std::cmp::Ordering::Less;

use super::{HEIGHT_MAX, LEVEL_BITS, Skiplist, Target, link};
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

impl Skiplist {
    /// About how many nodes lie in `[from, to)`, and how many keys, each of which may have several. Exact up to some dozens of
    /// nodes; beyond, counted on the highest level on which some dozens are, and so off by 10 to 20 %. O(log n), and few moves:
    /// statements are planned by it.
    pub(in crate::memtable) fn count_between(&self, from: &Target<'_>, to: &Target<'_>) -> RangeCount {
        const NODES_ENOUGH: u64 = 48;
        let mut before = [self.root; HEIGHT_MAX];
        self.descend(from, false, |level, node| before[level] = node);
        let levels = self.levels.load(Ordering::Relaxed).min(HEIGHT_MAX);
        for (level, &start) in before.iter().enumerate().take(levels).rev() {
            let (nodes, oldest) = self.count_on(level, start, from, to);
            if nodes >= NODES_ENOUGH || level == 0 {
                let rows = (nodes << (LEVEL_BITS as usize * level)).min(self.len());
                let keys = u128::from(rows) * u128::from(oldest) / u128::from(nodes.max(1));
                return RangeCount {
                    rows,
                    keys: keys as u64,
                };
            }
        }
        RangeCount::default()
    }

    /// Nodes of `[from, to)` on a level, behind `start`, and how many of them are the oldest rows of their keys.
    fn count_on(&self, level: usize, start: Row, from: &Target<'_>, to: &Target<'_>) -> (u64, u64) {
        let (mut node, mut nodes, mut oldest) = (start, 0, 0);
        loop {
            // SAFETY: `node` was found on this level.
            let link = unsafe { link(node, level) };
            let head = link.head.load(Ordering::Acquire);
            let next = Row(link.next.load(Ordering::Acquire));
            let is_behind =
                head > to.head || head == to.head && (next.is_null() || self.compare(next, to) != Less);
            if is_behind || next.is_null() {
                return (nodes, oldest);
            }
            // Nodes before the first one are those that `descend` could not know yet.
            if nodes > 0 || self.compare(next, from) != Less {
                nodes += 1;
                oldest += u64::from(Self::is_oldest(next));
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
