//! Where a writer of ascending keys was last, so that its next insert starts there.

use super::row::Row;
use super::skiplist::HEIGHT_MAX;

/// Where the last insert of a writer went: ascending inserts start there and cost O(1).
///
/// One hint serves any number of memtables, one after the other; on another memtable it starts afresh.
#[derive(Debug)]
pub struct InsertHint {
    /// The list that `before` belongs to; 0: none. Numbers are never used twice.
    pub(super) owner: u64,
    /// Whether the last insert found its place from here.
    pub(super) streak: bool,
    /// For each level a node before the last insert's place (or that insert itself), from right to left.
    pub(super) before: [Row; HEIGHT_MAX],
}

impl Default for InsertHint {
    fn default() -> Self {
        Self {
            owner: 0,
            streak: false,
            before: [Row::NULL; HEIGHT_MAX],
        }
    }
}

// SAFETY: the pointers are followed only by the list whose number the hint carries, while that list is borrowed,
// and nodes may be read from every thread.
unsafe impl Send for InsertHint {}
// SAFETY: as above; a shared hint gives no access to them at all.
unsafe impl Sync for InsertHint {}
