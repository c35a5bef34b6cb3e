//! The system's clock, randomness and threads.
#![allow(
    clippy::disallowed_methods,
    reason = "this is where time and threads of the machine come in"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::{Clock, JoinHandle, Random, Spawn};

/// The monotonic clock, counted from its creation.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}

/// SipHash of a counter under keys that the system's generator gave: unpredictable, and no system call a number.
#[derive(Debug)]
pub struct SystemRandom {
    keys: RandomState,
    counter: AtomicU64,
}

impl SystemRandom {
    /// A generator with fresh keys.
    #[must_use]
    pub fn new() -> Self {
        Self {
            keys: RandomState::new(),
            counter: AtomicU64::new(0),
        }
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        self.keys.hash_one(self.counter.fetch_add(1, Ordering::Relaxed))
    }
}

/// Threads of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemThreads;

#[derive(Debug)]
struct SystemJoinHandle(thread::JoinHandle<()>);

impl JoinHandle for SystemJoinHandle {
    fn join(self: Box<Self>) -> io::Result<()> {
        self.0.join().map_err(|_| io::Error::other("the thread panicked"))
    }
}

impl Spawn for SystemThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn JoinHandle>> {
        let handle = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(SystemJoinHandle(handle)))
    }

    fn parallelism(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward() {
        let clock = SystemClock::new();
        let before = clock.now();
        clock.sleep(Duration::from_millis(1));
        assert!(clock.now() >= before + Duration::from_millis(1));
        assert!(clock.unix_seconds() > 1_700_000_000);
    }

    #[test]
    fn random_numbers_differ() {
        let (a, b) = (SystemRandom::new(), SystemRandom::new());
        let numbers: std::collections::BTreeSet<_> =
            (0..1000).flat_map(|_| [a.next_u64(), b.next_u64()]).collect();
        assert_eq!(numbers.len(), 2000);
    }

    #[test]
    fn a_panic_is_an_error_of_join() {
        let quiet = SystemThreads.spawn("quiet", Box::new(|| {})).unwrap();
        quiet.join().unwrap();
        let loud = SystemThreads
            .spawn("loud", Box::new(|| std::panic::resume_unwind(Box::new("x"))))
            .unwrap();
        loud.join().unwrap_err();
        assert!(SystemThreads.parallelism() >= 1);
    }
}
