//! READ 1: point reads and iterators over one pinned view.

pub mod key_ends;
pub mod merging;
pub mod operands;
mod options;
pub mod point;
#[cfg(test)]
pub(crate) mod testing;
pub mod visible;

pub use options::ReadOptions;
