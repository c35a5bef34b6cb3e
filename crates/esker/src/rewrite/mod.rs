//! WRITE 6: what flushes and compactions share: which rows survive, and the SSTables and blob files
//! they are written into.

mod blob_output;
mod moves;
mod outputs;
pub mod rows;
mod throttle;
mod tombstone_window;
mod values;

pub use outputs::{OutputContext, Outputs, RowSource, Written};
pub use rows::{CompactionRows as Rows, Dropped, Expired, Fetch, RowFilter, Rules, carried_tombstones};
pub use throttle::Throttle;
pub use values::{BlobInputs, fetch};
