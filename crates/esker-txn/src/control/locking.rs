//! Control by locks: they are taken before a key is written or read for update, and held until the transaction has ended.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use esker::{ColumnFamily, Db, Error, ErrorKind, Mutation, Prepared, Result, Snapshot};

use super::KeyRange;
use crate::lock::{
    Acquired, LockManager, LockMode, TransactionId, TransactionLocks, range_conflict, write_conflict,
};
use crate::options::TransactionOptions;

/// A transaction's locks.
pub(crate) struct Locking {
    manager: Arc<LockManager>,
    pub(super) locks: TransactionLocks,
    pub(super) timeout: Option<Duration>,
    /// Of the locks.
    pub(super) count: usize,
}

impl Locking {
    pub(super) fn new(manager: Arc<LockManager>, id: TransactionId) -> Self {
        Self {
            manager,
            locks: TransactionLocks::new(id),
            timeout: None,
            count: 0,
        }
    }

    /// With locks of `mode` on all that a prepared batch would change. What is locked in a way already that `mode` is in conflict
    /// with is not waited for: `TimedOut`.
    fn of_prepared(
        db: &Db,
        manager: &Arc<LockManager>,
        id: TransactionId,
        batch: &Prepared,
        mode: LockMode,
    ) -> Result<Self> {
        let mut locking = Self::new(Arc::clone(manager), id);
        locking.timeout = Some(Duration::ZERO);
        for mutation in batch.mutations() {
            let (family, start, end) = match mutation {
                Mutation::Put { family, key, .. }
                | Mutation::Delete { family, key }
                | Mutation::SingleDelete { family, key }
                | Mutation::Merge { family, key, .. } => (family, key, None),
                Mutation::DeleteRange { family, start, end } => (family, start, Some(end)),
                _ => return Err(Error::bug("a prepared mutation that no method makes")),
            };
            // Of a family that was dropped nothing will be changed.
            let Ok(family) = db.column_family_by_id(family) else {
                continue;
            };
            match end {
                None => locking.lock_key(db, &family, start, mode, None).map(drop)?,
                Some(end) if family.key_order().compare(start, end).is_ge() => {}
                Some(_) => locking
                    .lock_range(db, &family, (start, end), mode, None)
                    .map(drop)?,
            }
        }
        Ok(locking)
    }

    /// Whose locks they are.
    pub(crate) fn id(&self) -> TransactionId {
        self.locks.id()
    }

    /// Gives all locks away; none are left.
    pub(super) fn take(&mut self) -> Self {
        let mut empty = Self::new(Arc::clone(&self.manager), self.id());
        empty.locks.take_interrupter(&mut self.locks);
        std::mem::replace(self, empty)
    }

    pub(super) fn restart(&mut self, id: TransactionId, options: &TransactionOptions) {
        let restarted = self.locks.restart(id);
        debug_assert!(restarted, "a transaction that has ended holds no locks");
        self.locks.set_deadlock_detection(options.deadlock_detection);
        self.timeout = options.lock_timeout;
    }

    #[inline]
    pub(super) fn lock_key(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        key: &[u8],
        mode: LockMode,
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        let acquired = self
            .manager
            .acquire(&mut self.locks, family.id(), key, mode, self.timeout)?;
        self.count += usize::from(acquired == Acquired::New);
        // A lock that was held before has kept others from writing since it was looked at.
        if let (Acquired::New, Some(since)) = (acquired, since) {
            let checked = match db.changed_since(family, key, since) {
                Ok(false) => return Ok(acquired),
                Ok(true) => Err(write_conflict(family.id(), key).in_column_family(family.name())),
                Err(error) => Err(error),
            };
            self.unlock_key(family, key);
            return checked;
        }
        Ok(acquired)
    }

    pub(super) fn lock_range(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        range: KeyRange<'_>,
        mode: LockMode,
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        let order = family.key_order();
        let acquired =
            self.manager
                .acquire_range(&mut self.locks, family.id(), order, range, mode, self.timeout)?;
        self.count += usize::from(acquired == Acquired::New);
        if let (Acquired::New, Some(since)) = (acquired, since) {
            let (start, end) = range;
            let checked = match db.range_changed_since(family, start, end, since) {
                Ok(false) => return Ok(acquired),
                Ok(true) => Err(range_conflict(family.id(), start, end).in_column_family(family.name())),
                Err(error) => Err(error),
            };
            self.unlock_range(family, range);
            return checked;
        }
        Ok(acquired)
    }

    pub(super) fn unlock_key(&mut self, family: &ColumnFamily, key: &[u8]) {
        let released = self.manager.release_one(&mut self.locks, family.id(), key);
        self.count -= usize::from(released == Some(Acquired::New));
    }

    pub(super) fn unlock_range(&mut self, family: &ColumnFamily, range: KeyRange<'_>) {
        let released = self
            .manager
            .release_one_range(&mut self.locks, family.id(), range);
        self.count -= usize::from(released == Some(Acquired::New));
    }

    pub(super) fn roll_back_to_save_point(&mut self) {
        self.manager.roll_back_to_savepoint(&mut self.locks);
        self.count = self.locks.len();
    }

    pub(super) fn end(&mut self) {
        self.manager.release_all(&mut self.locks);
        self.count = 0;
    }
}

/// The locks of all that is prepared, when nobody holds any lock yet: exclusive ones, as they were when it was prepared.
///
/// Only untracked writes can have led two of them to the same keys. Then all locks are shared: nobody else writes what they
/// lock, whichever of the two is resolved first.
///
/// # Errors
/// `LockLimit`.
pub(super) fn lock_prepared(
    db: &Db,
    manager: &Arc<LockManager>,
    prepared: &[Prepared],
    next_id: impl Fn() -> TransactionId,
) -> Result<Vec<Locking>> {
    let lock_all = |mode| -> Result<Vec<Locking>> {
        let lock = |batch| Locking::of_prepared(db, manager, next_id(), batch, mode);
        prepared.iter().map(lock).collect()
    };
    match lock_all(LockMode::Exclusive) {
        Err(error) if error.kind() == ErrorKind::TimedOut => lock_all(LockMode::Shared),
        result => result,
    }
}

impl Drop for Locking {
    fn drop(&mut self) {
        self.end();
    }
}

thread_local! {
    /// Where writes of this thread without a transaction note their locks.
    static SPARE: Cell<Option<TransactionLocks>> = const { Cell::new(None) };
}

/// Locks for the length of one write without a transaction. They are given back when this is dropped.
pub(super) struct Held<'a> {
    manager: &'a LockManager,
    /// Taken by the drop alone.
    locks: Option<TransactionLocks>,
}

impl<'a> Held<'a> {
    pub(super) fn new(manager: &'a LockManager, id: TransactionId) -> Self {
        let spare = SPARE
            .take()
            .and_then(|mut locks| locks.restart(id).then_some(locks));
        let locks = spare.unwrap_or_else(|| TransactionLocks::new(id));
        Self {
            manager,
            locks: Some(locks),
        }
    }

    pub(super) fn lock_key(&mut self, family: u32, key: &[u8]) -> Result<()> {
        let locks = self.locks.as_mut().ok_or_else(no_locks)?;
        self.manager
            .acquire(locks, family, key, LockMode::Exclusive, None)
            .map(drop)
    }

    pub(super) fn lock_range(&mut self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        let order = family.key_order();
        if order.compare(start, end).is_ge() {
            return Ok(());
        }
        let locks = self.locks.as_mut().ok_or_else(no_locks)?;
        let range = (start, Some(end));
        self.manager
            .acquire_range(locks, family.id(), order, range, LockMode::Exclusive, None)
            .map(drop)
    }
}

fn no_locks() -> Error {
    Error::bug("locks are noted until the write is over")
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(mut locks) = self.locks.take() {
            self.manager.release_all(&mut locks);
            SPARE.set(Some(locks));
        }
    }
}
