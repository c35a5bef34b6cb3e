//! A database whose transactions take no locks and find out at their commit whether others were faster.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use esker::{ColumnFamily, Db, Mutation, Opener, Result, WriteBatch, WriteOptions};
use esker_env::{Clock, Env};

use crate::control::Access;
use crate::handle::{Handle, plain_writes};
use crate::options::{TransactionOptions, TransactionSettings};
use crate::running::RunningTransaction;
use crate::transaction::Transaction;

/// A database whose transactions wait for nobody: for transactions that hardly ever meet. Clones share it.
///
/// They have the calls of a [`TransactionDb`](crate::TransactionDb)'s. Where these lock, keys and ranges are noted; the
/// commit fails with `Conflict` if any was written by others since, under `ReadCommitted` since the first call for the key, under
/// `RepeatableRead` since the snapshot. Modes, time limits and detection of deadlocks have no meaning.
///
/// They can't be prepared for a two-phase commit: from the prepare on nothing may come between, which takes locks.
///
/// What is written without a transaction succeeds, and transactions that have touched the key fail. A commit with a range
/// locks all others out for as long as it lasts.
#[derive(Clone)]
pub struct OptimisticDb {
    handle: Arc<Handle>,
}

plain_writes!(OptimisticDb);

impl OptimisticDb {
    /// Opens a database for transactions.
    ///
    /// # Errors
    /// Those of [`Opener::open`], and of [`new`](Self::new).
    pub fn open(opener: Opener, path: impl AsRef<Path>, settings: &TransactionSettings) -> Result<Self> {
        Self::new(opener.open(path)?, settings)
    }

    /// Transactions over a database that is open. All writes must go through one `OptimisticDb` and its clones from now on.
    ///
    /// # Errors
    /// `InvalidArgument` if a transaction is prepared in the database, as nothing would keep others from writing what it wrote.
    pub fn new(db: Db, settings: &TransactionSettings) -> Result<Self> {
        Self::with_clock(db, settings, Env::posix().clock)
    }

    /// [`new`](Self::new) with a clock of the caller's, for ages.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(db: Db, settings: &TransactionSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            handle: Handle::new(db, Access::without_locks(), settings, clock)?,
        })
    }
}
