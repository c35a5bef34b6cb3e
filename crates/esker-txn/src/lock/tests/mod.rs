//! What locks do: scenarios, a model of everything that needs no waiting, and many threads.

mod deadlocks;
mod model;
mod points;
mod ranges;
mod stress;
mod waiting;

use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use esker::{KeyOrder, Result};
use esker_env::Env;

use super::LockMode::{Exclusive, Shared};
use super::{Acquired, LockManager, LockMode, LockSettings, TransactionId, TransactionLocks};

/// Longer than any test, by whichever clock.
const LONG: Option<Duration> = Some(Duration::from_secs(3600));
const NOT_AT_ALL: Option<Duration> = Some(Duration::ZERO);

/// A manager on a simulated machine.
fn manager(settings: LockSettings) -> (Arc<LockManager>, Env) {
    let env = Env::simulated(1).0;
    let manager = LockManager::new(settings, Arc::clone(&env.clock)).expect("settings that make sense");
    (Arc::new(manager), env)
}

/// A transaction of a test: its locks go when it does.
struct Txn {
    manager: Arc<LockManager>,
    locks: TransactionLocks,
}

impl Txn {
    fn new(manager: &Arc<LockManager>, id: u64) -> Self {
        Self {
            manager: Arc::clone(manager),
            locks: TransactionLocks::new(TransactionId(id)),
        }
    }

    fn lock(&mut self, key: &str, mode: LockMode) -> Result<Acquired> {
        self.manager
            .acquire(&mut self.locks, 0, key.as_bytes(), mode, LONG)
    }

    fn try_lock(&mut self, key: &str, mode: LockMode) -> Result<Acquired> {
        self.manager
            .acquire(&mut self.locks, 0, key.as_bytes(), mode, NOT_AT_ALL)
    }

    fn lock_range(&mut self, start: &str, end: Option<&str>, mode: LockMode) -> Result<Acquired> {
        self.range(start, end, mode, LONG)
    }

    fn try_range(&mut self, start: &str, end: Option<&str>, mode: LockMode) -> Result<Acquired> {
        self.range(start, end, mode, NOT_AT_ALL)
    }

    fn range(
        &mut self,
        start: &str,
        end: Option<&str>,
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<Acquired> {
        let range = (start.as_bytes(), end.map(str::as_bytes));
        self.manager
            .acquire_range(&mut self.locks, 0, &KeyOrder::Bytewise, range, mode, timeout)
    }

    fn undo(&mut self, key: &str) -> Option<Acquired> {
        self.manager.release_one(&mut self.locks, 0, key.as_bytes())
    }

    fn end(&mut self) {
        self.manager.release_all(&mut self.locks);
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs `body` on a thread of its own and comes back when it waits as the `count`-th in the queue.
fn until_waiting<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    manager: &LockManager,
    count: usize,
    body: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let handle = scope.spawn(body);
    while manager.waiting().len() < count {
        assert!(!handle.is_finished(), "it did not wait");
        std::thread::yield_now();
    }
    handle
}

/// Who waits for whom.
fn waits(manager: &LockManager) -> Vec<(u64, Vec<u64>)> {
    let number = |txn: &TransactionId| txn.0;
    let listed = manager.waiting().into_iter().map(|waiting| {
        (
            waiting.transaction.0,
            waiting.waits_for.iter().map(number).collect(),
        )
    });
    listed.collect()
}
