//! READ 1: point reads and iterators over one pinned view.

mod options;

pub use options::ReadOptions;
