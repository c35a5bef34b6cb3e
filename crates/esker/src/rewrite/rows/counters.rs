//! What the drop rules did, by reason.

/// Counts of rows, each input row that is not written under one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// A newer version in the same stripe hid them.
    pub hidden: u64,
    /// A range tombstone in the same stripe covered them.
    pub covered: u64,
    /// Deletes and single deletes with nothing left to hide.
    pub tombstones: u64,
    /// Single deletes and the Puts they met (two for a pair).
    pub annihilated: u64,
    /// Operands folded into a value or into another operand.
    pub folded: u64,
    /// Rows that the filter removed (each may leave a tombstone).
    pub removed: u64,
    /// Rows that the filter changed; they are written.
    pub changed: u64,
    /// Times that the merge operator failed; its operands are written as they were.
    pub merge_failures: u64,
}

impl Dropped {
    /// Input rows that are not in the output (rows that the filter turned into tombstones are).
    pub fn total(&self) -> u64 {
        self.hidden + self.covered + self.tombstones + self.annihilated + self.folded
    }

    /// Adds the counts of another part of the job.
    pub fn add(&mut self, other: &Dropped) {
        self.hidden += other.hidden;
        self.covered += other.covered;
        self.tombstones += other.tombstones;
        self.annihilated += other.annihilated;
        self.folded += other.folded;
        self.removed += other.removed;
        self.changed += other.changed;
        self.merge_failures += other.merge_failures;
    }
}
