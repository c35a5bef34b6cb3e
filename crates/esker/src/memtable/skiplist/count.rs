//! About how much of the list lies between two keys, without a walk through all of it.

use std::cmp::Ordering::Less;

use super::{HEIGHT_MAX, LEVEL_BITS, Skiplist, Target, link};
use crate::memtable::row::Row;
use crate::sync::Ordering;

/// What is counted of a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::memtable) enum Counted {
    /// Every row.
    Rows,
    /// Every key that has rows, once.
    Keys,
}

impl Skiplist {
    /// About how many nodes lie in `[from, to)`, or how many keys, each of which may have several. Exact up to some dozens of
    /// nodes; beyond, nodes are counted on the lowest level on which few are, and so off by 10 to 20 %, and keys are the part of
    /// them that those have which were met on the way. O(log n).
    pub(in crate::memtable) fn count_between(
        &self,
        from: &Target<'_>,
        to: &Target<'_>,
        what: Counted,
    ) -> u64 {
        const NODES_MAX: u64 = 128;
        let mut before = [self.root; HEIGHT_MAX];
        self.descend(from, false, |level, node| before[level] = node);
        let mut counted = 0;
        // Of all levels: on the lower ones they lie side by side, on the higher ones apart.
        let (mut met, mut oldest) = (0_u64, 0_u64);
        for (level, &start) in before
            .iter()
            .enumerate()
            .take(self.levels.load(Ordering::Relaxed))
        {
            let (mut node, mut nodes) = (start, 0);
            while nodes < NODES_MAX {
                // SAFETY: `node` was found on this level.
                let next = Row(unsafe { link(node, level) }.next.load(Ordering::Acquire));
                if next.is_null() || self.compare(next, to) != Less {
                    break;
                }
                // Nodes that `descend` could not know yet.
                if self.compare(next, from) != Less {
                    nodes += 1;
                    oldest += u64::from(what == Counted::Keys && Self::is_oldest(next));
                }
                node = next;
            }
            met += nodes;
            counted = nodes << (LEVEL_BITS as usize * level);
            if nodes < NODES_MAX {
                break;
            }
        }
        let rows = counted.min(self.len());
        match what {
            Counted::Rows => rows,
            Counted::Keys => (u128::from(rows) * u128::from(oldest) / u128::from(met.max(1))) as u64,
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
