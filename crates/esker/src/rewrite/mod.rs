//! WRITE 6: what flushes and compactions share: which rows survive, and the SSTables they are written into.

mod outputs;
pub mod rows;
mod throttle;

pub use outputs::{OutputContext, Outputs};
pub use rows::{CompactionRows as Rows, Decision, Dropped, Filter, Rules, carried_tombstones};
pub use throttle::Throttle;
