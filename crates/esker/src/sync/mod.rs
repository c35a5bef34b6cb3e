//! What threads meet by: atomics, locks, wake-ups, cells of an `Arc`; the machine's, or loom's when it explores.
//!
//! A structure that a loom model explores takes these from here. In a normal build the names are those of `std`,
//! `parking_lot` and `arc_swap` themselves, and cost nothing. Under `--cfg loom` every operation on one of them is a
//! point at which another thread may go on, and loom tries them all. The counts of `std`'s `Arc` and its `OnceLock` are
//! taken for granted. What is built on them can't be used outside of a model then: `scripts/loom.sh` runs models only.

#[cfg(loom)]
mod explored;

pub use std::sync::atomic::Ordering;

pub use arc_swap::Guard;

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

#[cfg(not(loom))]
pub use arc_swap::{ArcSwap, ArcSwapOption};
#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub use ::loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

#[cfg(loom)]
pub use explored::{ArcSwap, ArcSwapOption, Condvar, Mutex, MutexGuard};
