//! BACKGROUND: compaction.

pub mod rows;
