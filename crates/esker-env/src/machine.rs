//! Clock, randomness and threads, and the [`Env`] that bundles them with a file system.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
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

/// A task that a thread takes.
type Slot<'a> = Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>;

/// Threads.
pub trait Spawn: Send + Sync + Debug {
    /// Starts a named thread.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn JoinHandle>>;
    /// Runs all tasks, at the same time where that is possible, and returns when every one has ended. A task that
    /// panics is over; the others go on.
    fn run_all<'a>(&self, name: &str, tasks: Vec<Box<dyn FnOnce() + Send + 'a>>) {
        let take = |slot: &Slot<'a>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let slots: Vec<Slot<'a>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
        std::thread::scope(|scope| {
            for slot in &slots {
                let run = move || {
                    if let Some(task) = take(slot) {
                        task();
                    }
                };
                // Where no thread can be had, the task runs here.
                if std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn_scoped(scope, run)
                    .is_err()
                {
                    run();
                }
            }
        });
    }

    /// Lets another thread that is ready have the calling thread's processor, if there is one.
    fn yield_now(&self) {
        std::thread::yield_now();
    }

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
