//! Waiting for what flushes and compactions change: memory that is free again, rows that are in tables, an end.
//!
//! Changes are counted. Who waits reads the count, looks at what it waits for, and sleeps only while the count is still
//! the one that it has read: a change between look and sleep is not lost. It looks under no lock of this mechanism.

use crate::sync::{Condvar, Mutex};

/// Lets threads wait until background work has changed something.
#[derive(Default)]
pub struct FlushProgress {
    changed: Condvar,
    generation: Mutex<u64>,
}

impl FlushProgress {
    /// Something about flushes changed.
    pub fn notify(&self) {
        *self.generation.lock() += 1;
        self.changed.notify_all();
    }

    /// Changes so far.
    pub fn generation(&self) -> u64 {
        *self.generation.lock()
    }

    /// Waits for a change after the one numbered `seen`.
    pub fn wait_past(&self, seen: u64) {
        let mut generation = self.generation.lock();
        while *generation == seen {
            self.changed.wait(&mut generation);
        }
    }

    /// Waits until `done` gives an answer; asks again after each change.
    pub fn wait<R>(&self, mut done: impl FnMut() -> Option<R>) -> R {
        loop {
            let seen = self.generation();
            if let Some(answer) = done() {
                return answer;
            }
            self.wait_past(seen);
        }
    }
}
