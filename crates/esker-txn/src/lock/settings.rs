//! What can be chosen about locks.

use std::time::Duration;

use esker::{Error, Result};

/// Shards that there may be.
const SHARDS_MAX: usize = 1 << 12;

/// Settings of a [`LockManager`](super::LockManager).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSettings {
    /// Parts of the lock table with a mutex each: a power of two, 4096 at most. More let more threads lock at the same time;
    /// a range lock takes all of them. 64.
    pub shards: usize,
    /// Locks that all transactions together may hold or wait for. One takes about 130 bytes, and its key where that
    /// is longer than 22 bytes. 4 Mi.
    pub max_locks: usize,
    /// How long a request waits that says nothing else. [`Duration::MAX`] is without end. 1 s.
    pub timeout: Duration,
    /// How many that come later take a free key while the thread wakes up whose turn it is, if nobody who waits for that key holds other
    /// locks; behind them it is handed the lock as it sleeps. 0 keeps to the order of arrival, and the key to nobody meanwhile. 16.
    pub overtakes: usize,
    /// Transactions in the longest circle of waiters that is looked for; members of longer ones wait for their time limit.
    /// 0 looks for none. 64.
    pub deadlock_depth: usize,
    /// How many of the last deadlocks are kept for [`LockManager::deadlocks`](super::LockManager::deadlocks). 16.
    pub deadlocks_kept: usize,
}

impl Default for LockSettings {
    fn default() -> Self {
        Self {
            shards: 64,
            max_locks: 4 << 20,
            timeout: Duration::from_secs(1),
            overtakes: 16,
            deadlock_depth: 64,
            deadlocks_kept: 16,
        }
    }
}

impl LockSettings {
    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<()> {
        if !self.shards.is_power_of_two() || self.shards > SHARDS_MAX {
            return Err(Error::invalid(format!(
                "{} shards of the lock table: it must be a power of two, {SHARDS_MAX} at most",
                self.shards
            )));
        }
        Ok(())
    }
}
