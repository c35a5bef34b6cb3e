//! Clock, randomness and threads, and the [`Env`] that bundles them with a file system.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::Fs;

/// Time.
pub trait Clock: Send + Sync + Debug {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;
    /// Seconds since 1970-01-01 UTC.
    fn unix_seconds(&self) -> u64;
    /// Blocks the calling thread for about `duration`.
    fn sleep(&self, duration: Duration);
}

/// Randomness.
pub trait Random: Send + Sync + Debug {
    /// 64 unpredictable bits.
    fn next_u64(&self) -> u64;
}

/// A started thread.
pub trait JoinHandle: Send + Debug {
    /// Waits for the thread to end; `Err` if it panicked.
    fn join(self: Box<Self>) -> io::Result<()>;
}

/// Threads.
pub trait Spawn: Send + Sync + Debug {
    /// Starts a named thread.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn JoinHandle>>;
    /// Processors that this process may use.
    fn parallelism(&self) -> usize;
}

/// The machine as the engine sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Files.
    pub fs: Arc<dyn Fs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Threads.
    pub spawn: Arc<dyn Spawn>,
}
