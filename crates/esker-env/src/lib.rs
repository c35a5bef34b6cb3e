//! The one seam between the engine and the machine.
//!
//! Everything the engine wants from its surroundings — files, time, randomness and threads — goes through an
//! [`Env`], so that a test can own the machine: [`mem`] forgets what was never synced, [`fault`] fails the n-th
//! call of a kind, [`posix`] is the real thing.
#![deny(missing_docs)]

mod ahead;
pub mod fault;
mod fs;
mod machine;
pub mod mem;
pub mod posix;
mod ranges;

pub use ahead::{AheadBatch, ReadAhead};
pub use fs::{BatchRead, CreateOptions, FileLock, Fs, IoMode, IoPriority, RandomFile, WriteFile};
pub use machine::{Clock, Env, JoinHandle, Random, Spawn};
pub use ranges::{BACKGROUND_GAP_BYTES_MAX, ReadRange, WantedRange, read_ranges};
