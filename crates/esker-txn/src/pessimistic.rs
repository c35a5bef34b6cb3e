//! A database whose transactions take locks.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use esker::{ColumnFamily, Db, Mutation, Opener, Result, WriteBatch, WriteOptions};
use esker_env::{Clock, Env};

use crate::control::Access;
use crate::handle::{Handle, plain_writes};
use crate::lock::{Deadlock, HeldLock, LockManager, WaitingRequest};
use crate::names::PreparedTransaction;
use crate::options::{TransactionOptions, TransactionSettings};
use crate::running::RunningTransaction;
use crate::transaction::Transaction;

/// A database whose transactions lock what they write and read for update, so that others wait for them. Clones share it.
///
/// What is prepared in the database has its locks again before this is handed out: those of all that it would write, exclusive;
/// what it had only read for update is free. See [`prepared`](Self::prepared).
///
/// What is written without a transaction takes exclusive locks too, for the length of the write and with the time limit of the
/// settings: it waits for transactions, and may fail as they do, with `TimedOut`, `Deadlock` or `LockLimit`.
#[derive(Clone)]
pub struct TransactionDb {
    handle: Arc<Handle>,
}

plain_writes!(TransactionDb);

impl TransactionDb {
    /// Opens a database for transactions.
    ///
    /// # Errors
    /// Those of [`Opener::open`], and of [`new`](Self::new).
    pub fn open(opener: Opener, path: impl AsRef<Path>, settings: &TransactionSettings) -> Result<Self> {
        Self::new(opener.open(path)?, settings)
    }

    /// Transactions over a database that is open. All writes must go through one `TransactionDb` and its clones from now on.
    ///
    /// # Errors
    /// `InvalidArgument` for lock settings that make no sense; `LockLimit` if what is prepared takes more locks than
    /// [`max_locks`](crate::LockSettings::max_locks) allows.
    pub fn new(db: Db, settings: &TransactionSettings) -> Result<Self> {
        Self::with_clock(db, settings, Env::posix().clock)
    }

    /// [`new`](Self::new) with a clock of the caller's, for time limits and ages. If it does not go with the machine's, whoever
    /// moves it calls [`notice_time`](Self::notice_time).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(db: Db, settings: &TransactionSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        let access = Access::with_locks(&settings.locks, Arc::clone(&clock))?;
        Ok(Self {
            handle: Handle::new(db, access, settings, clock)?,
        })
    }

    /// The transactions that are prepared and neither committed nor rolled back, by name: behind an opening, what a coordinator has to
    /// decide. O(prepared transactions).
    pub fn prepared(&self) -> Vec<PreparedTransaction> {
        self.handle.prepared()
    }

    /// The prepared transaction of this name, if no other object has it: one that an opening has found, or whose object was
    /// dropped or restarted. It can be committed and rolled back, with
    /// [`set_write_options`](Transaction::set_write_options) before, and nothing else; dropped, it stays prepared. O(log n).
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name; `Retry` if another object has it; `InvalidArgument` if it was prepared by
    /// [`Db::prepare`], past this handle.
    pub fn prepared_transaction(&self, name: &[u8]) -> Result<Transaction> {
        self.handle.prepared_transaction(name)
    }

    fn manager(&self) -> Option<&LockManager> {
        self.handle.access.locks()
    }

    /// All locks that are held; see [`LockManager::held`].
    pub fn locks(&self) -> Vec<HeldLock> {
        self.manager().map(LockManager::held).unwrap_or_default()
    }

    /// All requests that wait for a lock, in the order in which they came, and for whom.
    pub fn waiting(&self) -> Vec<WaitingRequest> {
        self.manager().map(LockManager::waiting).unwrap_or_default()
    }

    /// The last deadlocks, as many as the settings keep, the oldest first.
    pub fn deadlocks(&self) -> Vec<Arc<Deadlock>> {
        self.manager().map(LockManager::deadlocks).unwrap_or_default()
    }

    /// Lets all who wait look at the clock again; see [`with_clock`](Self::with_clock).
    pub fn notice_time(&self) {
        if let Some(manager) = self.manager() {
            manager.notice_time();
        }
    }
}
