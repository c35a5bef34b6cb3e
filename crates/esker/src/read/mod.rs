//! READ 1: point reads and iterators over one pinned view.

mod ahead;
mod blob_scan;
mod changes;
mod estimate;
pub mod key_ends;
mod level;
pub mod merging;
mod multi;
pub mod operands;
mod options;
pub mod point;
mod prefix;
mod row_scan;
mod source;
mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod visible;

pub use changes::{key_changed_since, range_changed_since};
pub use estimate::{Estimate, estimate};
pub use level::LevelCursor;
pub use merging::{MergingCursor, SourceCursor};
pub use multi::multi_get_from_view;
pub use options::ReadOptions;
pub use row_scan::RowScan;
pub use source::{AnySource, PinnedValue, cursor_over_view, get_from_view, may_exist};
pub use visible::VisibleCursor;
