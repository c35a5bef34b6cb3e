//! The one shape of all iterators inside the engine.

use crate::error::Result;

/// A cursor over internal keys in their order. Used as a bound of generics and by enum dispatch, never as a trait
/// object on a hot path.
///
/// A cursor is *invalid* before its first positioning, past either end, and after an error. `key` and `value` may
/// be called only while it is valid, and what they give lives until the cursor moves.
pub trait Cursor {
    /// Whether it stands on an entry.
    fn valid(&self) -> bool;
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry >= the internal key `target`.
    fn seek(&mut self, target: &[u8]) -> Result<()>;
    /// Moves to the last entry <= the internal key `target`.
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()>;
    /// Moves to the next entry. Only while valid.
    fn next(&mut self) -> Result<()>;
    /// Moves to the previous entry. Only while valid.
    fn prev(&mut self) -> Result<()>;
    /// The internal key it stands on.
    fn key(&self) -> &[u8];
    /// The value it stands on.
    fn value(&self) -> &[u8];
}
