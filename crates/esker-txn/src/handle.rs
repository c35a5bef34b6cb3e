//! What the handles of both kinds are made of.

use std::sync::Arc;

use esker::{ColumnFamily, Db, Mutation, Result, WriteBatch, WriteOptions};
use esker_env::Clock;

use crate::control::{Access, Control};
use crate::lock::TransactionId;
use crate::names::{Names, PreparedTransaction};
use crate::options::{TransactionOptions, TransactionSettings};
use crate::running::Running;
use crate::transaction::{Transaction, not_without_locks};

/// A database and what its transactions share.
pub(crate) struct Handle {
    pub(crate) db: Db,
    pub(crate) access: Access,
    pub(crate) running: Arc<Running>,
    /// None where transactions can't be prepared.
    names: Option<Arc<Names>>,
    max_write_set_bytes: usize,
}

impl Handle {
    pub(crate) fn new(
        db: Db,
        access: Access,
        settings: &TransactionSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let running = Arc::new(Running::new(clock));
        let names = access.names(&db, || running.next_id())?;
        Ok(Arc::new(Self {
            db,
            access,
            running,
            names,
            max_write_set_bytes: settings.max_write_set_bytes,
        }))
    }

    pub(crate) fn begin(&self, options: &TransactionOptions) -> Transaction {
        let id = self.running.next_id();
        let mut transaction = self.object(id, self.access.control(id));
        transaction.start(id, options);
        transaction
    }

    /// A transaction that has not begun: `control` is for the number `object`.
    fn object(&self, object: TransactionId, control: Control) -> Transaction {
        Transaction::new(
            self.db.clone(),
            Arc::clone(&self.running),
            self.names.clone(),
            object,
            control,
            self.max_write_set_bytes,
        )
    }

    pub(crate) fn prepared(&self) -> Vec<PreparedTransaction> {
        let names = self.names.as_ref();
        names
            .map(|names| names.list(&self.db.prepared()))
            .unwrap_or_default()
    }

    pub(crate) fn prepared_transaction(&self, name: &[u8]) -> Result<Transaction> {
        let batch = self.db.prepared_named(name);
        let names = self.names.as_ref().ok_or_else(not_without_locks)?;
        let (name, locking) = names.adopt(name, batch.is_some())?;
        let writes = batch.map_or(0, |batch| batch.len());
        let id = locking.id();
        let mut transaction = self.object(self.running.next_id(), Control::Locking(locking));
        transaction.start_prepared(id, name, writes);
        Ok(transaction)
    }

    pub(crate) fn write_one(&self, family: &ColumnFamily, mutation: Mutation<'_>) -> Result<()> {
        self.access
            .write_one(&self.db, self.running.next_id(), family, mutation)
    }

    pub(crate) fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        self.access
            .write(&self.db, self.running.next_id(), batch, options)
    }
}

/// The writes without a transaction, which are the same in both kinds.
macro_rules! plain_writes {
    ($kind:ty) => {
        impl $kind {
            /// Sets `key` to `value`, beside all transactions: see the type.
            ///
            /// # Errors
            /// Those of the database, and of the locks, if there are any. Nothing is written then.
            pub fn put(&self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
                let id = family.id();
                let mutation = Mutation::Put {
                    family: id,
                    key,
                    value,
                };
                self.handle.write_one(family, mutation)
            }

            /// Removes `key`.
            ///
            /// # Errors
            /// As [`put`](Self::put).
            pub fn delete(&self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
                let mutation = Mutation::Delete {
                    family: family.id(),
                    key,
                };
                self.handle.write_one(family, mutation)
            }

            /// Removes `key`, under the conditions of [`WriteBatch::single_delete`].
            ///
            /// # Errors
            /// As [`put`](Self::put).
            pub fn single_delete(&self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
                let mutation = Mutation::SingleDelete {
                    family: family.id(),
                    key,
                };
                self.handle.write_one(family, mutation)
            }

            /// Applies the merge operator's `operand` to `key`.
            ///
            /// # Errors
            /// As [`put`](Self::put).
            pub fn merge(&self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
                let id = family.id();
                let mutation = Mutation::Merge {
                    family: id,
                    key,
                    operand,
                };
                self.handle.write_one(family, mutation)
            }

            /// Removes all keys from `start` up to `end` (exclusive).
            ///
            /// # Errors
            /// As [`put`](Self::put).
            pub fn delete_range(&self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
                let id = family.id();
                let mutation = Mutation::DeleteRange {
                    family: id,
                    start,
                    end,
                };
                self.handle.write_one(family, mutation)
            }

            /// Commits a batch. On success it is empty again; on failure it is as it was.
            ///
            /// # Errors
            /// As [`put`](Self::put).
            pub fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
                self.handle.write(batch, options)
            }

            /// Begins a transaction.
            pub fn begin(&self, options: &TransactionOptions) -> Transaction {
                self.handle.begin(options)
            }

            /// The database. What is written through it directly asks nobody, and is for the time in which there are no
            /// transactions.
            pub fn db(&self) -> &Db {
                &self.handle.db
            }

            /// The transactions that run, in the order in which they began.
            pub fn running(&self) -> Vec<RunningTransaction> {
                self.handle.running.list()
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($kind))
                    .field(&self.handle.db)
                    .finish()
            }
        }
    };
}

pub(crate) use plain_writes;
