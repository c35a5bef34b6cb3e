//! The engines that the lab runs, behind one trait.
//!
//! - [`esker`]: the engine of this repository
//! - [`null`]: does nothing, which measures the harness
//! - [`memory`]: an ordered map, for the lab's own tests
//! - [`rocksdb`], [`leveldb`]: the peers, through their C interfaces, out of libraries found at run time
//!
//! [`registry`] lists them by name. Another engine is one more module with an `Engine` and one more line there.

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

mod capi;
mod common;
mod dylib;
pub mod esker;
pub mod leveldb;
pub mod memory;
pub mod null;
pub mod registry;
pub mod rocksdb;

pub use registry::{Libraries, Registry};
