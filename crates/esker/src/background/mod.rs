//! BACKGROUND: the threads that flush and compact, and when they may.

mod scheduler;

pub use scheduler::{Lane, Scheduler, Work};
