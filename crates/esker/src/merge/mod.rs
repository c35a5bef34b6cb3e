//! Merge operators: read-modify-write without the read.
//!
//! A merge stores an operand; readers and compactions fold the operands, oldest first, into the value below them.

mod builtin;

pub use builtin::{AppendOperator, U64AddOperator, builtin_operator};

use crate::error::Result;

/// Folds operands into values. Must be deterministic, and independent of how operands are grouped.
pub trait MergeOperator: Send + Sync {
    /// The name stored with the column family. Another name is another operator: a family whose operands were merged
    /// by one is not opened with another, so whatever changes the result belongs into it.
    fn name(&self) -> &str;
    /// The value after applying `operands` (oldest first) to `base` (`None`: the key was absent or deleted).
    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>>;
    /// One operand that has the effect of `operands` (oldest first) one after the other, if there is one.
    /// The default has none; compaction then keeps them apart until it meets the base.
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}
