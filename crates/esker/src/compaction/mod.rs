//! BACKGROUND: compaction. [`picker`] decides what to do, from nothing but a version and settings; [`run`] does it.

mod job;
pub mod picker;

pub use job::{Job, run};
