//! BACKGROUND: the threads that flush and compact, when they may, and how others wait for them.

#[cfg(all(test, loom))]
mod loom;
mod progress;
mod scheduler;

pub use progress::FlushProgress;
pub use scheduler::{Lane, Scheduler, Work};
