//! What can be chosen for a database of transactions, and for each of them.

use std::sync::Arc;
use std::time::Duration;

use esker::WriteOptions;

use crate::lock::LockSettings;

/// What the plain reads of a transaction see of what others commit meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each read sees what is committed when it begins. A write waits for others' writes of its key and then goes over them.
    #[default]
    ReadCommitted,
    /// All reads see one snapshot, and nothing can be locked or written that others have written since: snapshot isolation.
    /// Where all that a transaction relies on was read for update or locked as a range, it is serialisable.
    RepeatableRead,
}

/// When a transaction under [`Isolation::RepeatableRead`] takes its snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapshotTime {
    /// With the first read, or when the first lock was granted: that one is never in conflict with anything.
    #[default]
    FirstOperation,
    /// When it begins.
    Begin,
}

/// Settings of a transaction.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// What its reads see. [`Isolation::ReadCommitted`].
    pub isolation: Isolation,
    /// When its snapshot is taken, if its isolation has one. [`SnapshotTime::FirstOperation`].
    pub snapshot: SnapshotTime,
    /// How long it waits for a lock; `None`: as [`LockSettings::timeout`] says. Zero does not wait at all.
    pub lock_timeout: Option<Duration>,
    /// Whether a request that closes a circle of waiters is refused at once; else all in the circle wait for their time limits.
    /// True.
    pub deadlock_detection: bool,
    /// What lists of transactions show it as. The name under which it is prepared is another matter:
    /// [`set_name`](crate::Transaction::set_name).
    pub label: Option<Arc<str>>,
    /// How it is prepared, committed, or rolled back once it is prepared;
    /// [`set_write_options`](crate::Transaction::set_write_options) changes it in between.
    pub write: WriteOptions,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            snapshot: SnapshotTime::default(),
            lock_timeout: None,
            deadlock_detection: true,
            label: None,
            write: WriteOptions::default(),
        }
    }
}

impl TransactionOptions {
    /// With this isolation.
    pub fn isolation(isolation: Isolation) -> Self {
        Self {
            isolation,
            ..Self::default()
        }
    }
}

/// Settings of a [`TransactionDb`](crate::TransactionDb) or an [`OptimisticDb`](crate::OptimisticDb).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionSettings {
    /// The lock table; its `timeout` is that of transactions that say nothing else. An `OptimisticDb` has none.
    pub locks: LockSettings,
    /// How much one transaction may write, as [`WriteSet::size_bytes`](crate::WriteSet::size_bytes) counts it. It is kept in
    /// memory until the transaction ends, and once more in the memtables when it is committed. 1 GiB.
    pub max_write_set_bytes: usize,
}

impl Default for TransactionSettings {
    fn default() -> Self {
        Self {
            locks: LockSettings::default(),
            max_write_set_bytes: 1 << 30,
        }
    }
}
