//! BACKGROUND: the threads that flush and compact, when they may, and how others wait for them.

mod events;
#[cfg(all(test, loom))]
mod loom;
mod progress;
mod scheduler;

pub use events::Events;
pub use progress::FlushProgress;
pub use scheduler::{FlushRequest, Lane, Scheduler, Work};
