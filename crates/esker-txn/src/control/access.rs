//! What all transactions of a database share: the locks, and the writes that belong to no transaction but respect them.

use std::sync::Arc;

use esker::{ColumnFamily, Db, Error, Mutation, Result, WriteBatch, WriteOptions};
use esker_env::Clock;

use super::Control;
use super::commit_locks::{CommitLocks, Needed};
use super::locking::{Held, Locking, lock_prepared};
use super::tracking::Tracking;
use crate::lock::{LockManager, LockSettings, TransactionId};
use crate::names::Names;

/// The shared part of either kind.
pub(crate) enum Access {
    Locks(Arc<LockManager>),
    Commits(Arc<CommitLocks>),
}

impl Access {
    pub(crate) fn with_locks(settings: &LockSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        let manager = LockManager::new(settings.clone(), clock)?;
        Ok(Self::Locks(Arc::new(manager)))
    }

    pub(crate) fn without_locks() -> Self {
        Self::Commits(Arc::new(CommitLocks::new()))
    }

    /// The lock manager, of the kind that has one.
    pub(crate) fn locks(&self) -> Option<&LockManager> {
        match self {
            Self::Locks(manager) => Some(manager),
            Self::Commits(_) => None,
        }
    }

    /// The names of transactions, in the kind that can prepare them: at first those of what is prepared in the database, which gets
    /// its locks.
    ///
    /// # Errors
    /// Those of the locks; in the other kind `InvalidArgument` if anything is prepared.
    pub(crate) fn names(&self, db: &Db, next_id: impl Fn() -> TransactionId) -> Result<Option<Arc<Names>>> {
        let prepared = db.prepared();
        match (self, prepared.first()) {
            (Self::Locks(manager), _) => {
                let names = Names::default();
                let locks = lock_prepared(db, manager, &prepared, next_id)?;
                for (batch, locks) in prepared.iter().zip(locks) {
                    names.leave(batch.name().into(), locks);
                }
                Ok(Some(Arc::new(names)))
            }
            (Self::Commits(_), None) => Ok(None),
            (Self::Commits(_), Some(first)) => Err(Error::invalid(format!(
                "{} transactions are prepared, the first under the name '{}': without locks others would write what they wrote; \
                 commit them or roll them back through a TransactionDb",
                prepared.len(),
                first.name().escape_ascii()
            ))),
        }
    }

    /// For a transaction.
    pub(crate) fn control(&self, id: TransactionId) -> Control {
        match self {
            Self::Locks(manager) => Control::Locking(Locking::new(Arc::clone(manager), id)),
            Self::Commits(locks) => Control::Tracking(Tracking::new(Arc::clone(locks))),
        }
    }

    /// Writes one mutation of `family`, as the transaction `id`.
    pub(crate) fn write_one(
        &self,
        db: &Db,
        id: TransactionId,
        family: &ColumnFamily,
        mutation: Mutation<'_>,
    ) -> Result<()> {
        let options = WriteOptions::default();
        match self {
            Self::Locks(manager) => {
                let mut held = Held::new(manager, id);
                match mutation {
                    Mutation::DeleteRange { start, end, .. } => held.lock_range(family, start, end)?,
                    Mutation::Put { key, .. }
                    | Mutation::Delete { key, .. }
                    | Mutation::SingleDelete { key, .. }
                    | Mutation::Merge { key, .. } => held.lock_key(family.id(), key)?,
                    _ => {}
                }
                apply(db, family, mutation, &options)
            }
            Self::Commits(locks) => {
                let mut needed = Needed::default();
                needed.add_mutation(mutation);
                let _guards = locks.lock(&mut needed);
                apply(db, family, mutation, &options)
            }
        }
    }

    /// Writes a batch, as the transaction `id`.
    pub(crate) fn write(
        &self,
        db: &Db,
        id: TransactionId,
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        match self {
            Self::Locks(manager) => {
                let mut held = Held::new(manager, id);
                lock_all(db, &mut held, batch)?;
                db.write_with(batch, options)
            }
            Self::Commits(locks) => {
                let mut needed = Needed::default();
                for mutation in batch.mutations() {
                    needed.add_mutation(mutation);
                }
                let _guards = locks.lock(&mut needed);
                db.write_with(batch, options)
            }
        }
    }
}

/// Locks what a batch writes, in the order of families and keys, so that batches don't wait for each other in a circle.
fn lock_all(db: &Db, held: &mut Held<'_>, batch: &WriteBatch) -> Result<()> {
    let target = |mutation| match mutation {
        Mutation::DeleteRange { family, start, end } => Some((family, start, Some(end))),
        Mutation::Put { family, key, .. }
        | Mutation::Delete { family, key }
        | Mutation::SingleDelete { family, key }
        | Mutation::Merge { family, key, .. } => Some((family, key, None)),
        _ => None,
    };
    let mut targets: Vec<_> = batch.mutations().filter_map(target).collect();
    targets.sort_unstable();
    targets.dedup();
    for (family, start, end) in targets {
        match end {
            Some(end) => {
                // A family that was dropped never comes back: the write is refused, with or without a lock.
                if let Ok(family) = db.column_family_by_id(family) {
                    held.lock_range(&family, start, end)?;
                }
            }
            None => held.lock_key(family, start)?,
        }
    }
    Ok(())
}

fn apply(db: &Db, family: &ColumnFamily, mutation: Mutation<'_>, options: &WriteOptions) -> Result<()> {
    match mutation {
        Mutation::Put { key, value, .. } => db.put_cf_with(family, key, value, options),
        Mutation::Delete { key, .. } => db.delete_cf_with(family, key, options),
        Mutation::SingleDelete { key, .. } => db.single_delete_cf_with(family, key, options),
        Mutation::Merge { key, operand, .. } => db.merge_cf_with(family, key, operand, options),
        Mutation::DeleteRange { start, end, .. } => db.delete_range_cf_with(family, start, end, options),
        _ => Err(Error::bug("a mutation that no method makes")),
    }
}
