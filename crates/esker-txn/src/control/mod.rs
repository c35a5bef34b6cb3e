//! Concurrency control: how a transaction keeps what it has read for update and written from others' writes.
//!
//! Both kinds answer the same calls. [`Locking`] asks before: it takes a lock, so that others wait, and then looks whether
//! somebody was faster. [`Tracking`] asks behind: it notes what was touched and as of which moment, and the commit looks whether
//! anybody has written it since, while nobody else commits the same keys.
//!
//! **What makes the look at a lock grant sound:** who writes a key holds its lock (or its commit lock) until the write is
//! published. So what [`Db::changed_since`] does not see once the lock is had will not be written by anybody else before it is
//! given back. Untracked writes are outside of this, on their author's word.

mod access;
mod commit_locks;
mod locking;
mod tracking;

use std::time::Duration;

use esker::{ColumnFamily, Db, Mutation, Result, Snapshot, WriteOptions};

pub(crate) use access::Access;
pub(crate) use locking::Locking;
use tracking::Tracking;

use crate::lock::{Acquired, Interrupter, LockMode, TransactionId};
use crate::options::TransactionOptions;
use crate::write_set::WriteSet;

/// From one key on, up to another without it or to the last one, in the order of the family.
pub(crate) type KeyRange<'a> = (&'a [u8], Option<&'a [u8]>);

/// One transaction's part in concurrency control.
pub(crate) enum Control {
    Locking(Locking),
    Tracking(Tracking),
}

impl Control {
    /// For another transaction. Nothing may be protected.
    pub(crate) fn restart(&mut self, id: TransactionId, options: &TransactionOptions) {
        if let Self::Locking(locking) = self {
            locking.restart(id, options);
        }
    }

    /// Whether others' commits are waited for where something is to be protected.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Locking(_))
    }

    pub(crate) fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        if let Self::Locking(locking) = self {
            locking.timeout = timeout;
        }
    }

    /// What ends waits from other threads.
    pub(crate) fn interrupter(&mut self) -> Interrupter {
        match self {
            Self::Locking(locking) => locking.locks.interrupter(),
            // It never waits.
            Self::Tracking(_) => Interrupter::default(),
        }
    }

    /// Keeps others from writing `key` (and, exclusively, from locking it) until the transaction ends. Fails without
    /// any change; with `Conflict` where it was written after `since`.
    #[inline]
    pub(crate) fn protect_key(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        key: &[u8],
        mode: LockMode,
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        match self {
            Self::Locking(locking) => locking.lock_key(db, family, key, mode, since),
            Self::Tracking(tracking) => tracking.track_key(db, family, key, since),
        }
    }

    /// The same for all keys of a range that is not empty, those that are not there as well.
    pub(crate) fn protect_range(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        range: KeyRange<'_>,
        mode: LockMode,
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        match self {
            Self::Locking(locking) => locking.lock_range(db, family, range, mode, since),
            Self::Tracking(tracking) => tracking.track_range(db, family, range, since),
        }
    }

    /// Takes back the last change of the key's protection.
    pub(crate) fn give_back_key(&mut self, family: &ColumnFamily, key: &[u8]) {
        match self {
            Self::Locking(locking) => locking.unlock_key(family, key),
            Self::Tracking(tracking) => tracking.forget_key(family, key),
        }
    }

    /// Takes back the last change of the range's protection.
    pub(crate) fn give_back_range(&mut self, family: &ColumnFamily, range: KeyRange<'_>) {
        match self {
            Self::Locking(locking) => locking.unlock_range(family, range),
            Self::Tracking(tracking) => tracking.forget_range(family, range),
        }
    }

    /// Notes a write that asks nobody, but must not go unseen by others.
    pub(crate) fn note_untracked(&mut self, mutation: Mutation<'_>) {
        if let Self::Tracking(tracking) = self {
            tracking.note_untracked(mutation);
        }
    }

    pub(crate) fn set_save_point(&mut self) {
        match self {
            Self::Locking(locking) => locking.locks.set_savepoint(),
            Self::Tracking(tracking) => tracking.set_save_point(),
        }
    }

    pub(crate) fn roll_back_to_save_point(&mut self) {
        match self {
            Self::Locking(locking) => locking.roll_back_to_save_point(),
            Self::Tracking(tracking) => tracking.roll_back_to_save_point(),
        }
    }

    pub(crate) fn pop_save_point(&mut self) {
        match self {
            Self::Locking(locking) => {
                locking.locks.pop_savepoint();
            }
            Self::Tracking(tracking) => tracking.pop_save_point(),
        }
    }

    /// Makes the writes visible to all. What is protected stays so until [`end`](Self::end), which must come behind it: who
    /// is let in then sees them.
    pub(crate) fn commit(&mut self, db: &Db, writes: &mut WriteSet, options: &WriteOptions) -> Result<()> {
        match self {
            Self::Locking(_) if writes.is_empty() => Ok(()),
            Self::Locking(_) => writes.commit(db, options),
            Self::Tracking(tracking) => tracking.commit(db, writes, options),
        }
    }

    /// Gives the locks away, for what is prepared and has no object any more. None in the kind without locks.
    pub(crate) fn take_locks(&mut self) -> Option<Locking> {
        match self {
            Self::Locking(locking) => Some(locking.take()),
            Self::Tracking(_) => None,
        }
    }

    /// Gives everything back.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Locking(locking) => locking.end(),
            Self::Tracking(tracking) => tracking.clear(),
        }
    }

    /// How much is protected, for lists.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Locking(locking) => locking.count,
            Self::Tracking(tracking) => tracking.len(),
        }
    }
}
