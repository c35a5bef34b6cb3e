//! Two-phase commit of a transaction: it gets a name, is prepared, and is committed or rolled back when a coordinator has decided.
//!
//! **From the moment at which [`prepare`](Transaction::prepare) returns, nothing but the coordinator's word ends the transaction.** Its
//! writes are the database's, in the log and in memory ([`Db::prepare`]), so a crash does not undo them, as far as the durability of
//! the step goes; its locks stay, those of reads included, so nobody comes between. When the object goes, they go to
//! the database's list of names, with the transaction's number; an opening makes such entries for what it finds in the log,
//! with the locks of its writes. [`prepared_transaction`](crate::TransactionDb::prepared_transaction) makes an object of either.

use std::sync::Arc;

use esker::{Db, Error, ErrorKind, Result, WriteOptions};

use super::{State, Transaction};
use crate::lock::TransactionId;

impl Transaction {
    /// Gives it the name under which it will be prepared, which no other transaction of the database may have until this one is
    /// committed or rolled back: any bytes, such as an XA transaction's.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is in use or has not 1 to 4,096 bytes, if the transaction has a name, is prepared or has ended,
    /// and for one of an [`OptimisticDb`](crate::OptimisticDb).
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.check_active()?;
        let names = self.names.as_ref().ok_or_else(not_without_locks)?;
        if let Some(own) = &self.name {
            return Err(Error::invalid(format!(
                "the transaction has the name '{}' already",
                own.escape_ascii()
            )));
        }
        self.name = Some(names.take(name.as_ref(), self.id)?);
        self.entry.set_name(self.name.clone());
        Ok(())
    }

    /// The name that it was given, until it ends.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Whether it is prepared, and neither committed nor rolled back.
    pub fn is_prepared(&self) -> bool {
        self.state == State::Prepared
    }

    /// Prepares it under its name: on success it survives crashes, as its write options say (with
    /// [`Durability::Buffered`](esker::Durability::Buffered) those of the process, with `Sync` those of the machine), keeps its locks,
    /// and can only be committed or rolled back. Its snapshot and save points are gone. One that has written nothing can be
    /// prepared, too.
    ///
    /// # Errors
    /// `InvalidArgument` if it has no name, is prepared or has ended; those of [`Db::prepare`], such as `Retry` where too much
    /// is prepared. It is active then, as it was.
    ///
    /// # Examples
    /// ```no_run
    /// # fn main() -> esker::Result<()> {
    /// # let opener = esker::Opener::new(esker::Options::default());
    /// # let has_decided_for = |_: &[u8]| true;
    /// # let sync = esker::WriteOptions::durability(esker::Durability::Sync);
    /// let db = esker_txn::TransactionDb::open(opener, "bank", &Default::default())?;
    /// // What a crash has left: the coordinator's log says what becomes of it.
    /// for left in db.prepared() {
    ///     let mut transaction = db.prepared_transaction(&left.name)?;
    ///     transaction.set_write_options(&sync);
    ///     if has_decided_for(&left.name) {
    ///         transaction.commit()?;
    ///     } else {
    ///         transaction.roll_back()?;
    ///     }
    /// }
    /// let mut transaction = db.begin(&Default::default());
    /// transaction.set_write_options(&sync);
    /// transaction.set_name("transfer 17")?;
    /// transaction.put(&db.db().default_column_family(), b"stock", b"9")?;
    /// transaction.prepare()?;
    /// // Here the coordinator writes down its decision. Then:
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&mut self) -> Result<()> {
        self.check_active()?;
        if self.names.is_none() {
            return Err(not_without_locks());
        }
        let Some(name) = &self.name else {
            return Err(Error::invalid(
                "a transaction is prepared under its name, and this one has none; see `set_name`",
            ));
        };
        self.writes.prepare(&self.db, name, &self.write)?;
        self.state = State::Prepared;
        self.entry.set_prepared(true);
        self.fetched.clear();
        self.clear_snapshot();
        Ok(())
    }

    /// Changes how its steps are written from now on: prepare, commit, and roll back once it is prepared.
    pub fn set_write_options(&mut self, options: &WriteOptions) {
        self.write = *options;
    }

    /// Makes an object that has not begun the prepared transaction of this name and number, whose locks it has.
    pub(crate) fn start_prepared(&mut self, id: TransactionId, name: Arc<[u8]>, writes: usize) {
        self.id = id;
        self.state = State::Prepared;
        self.entry.set_name(Some(Arc::clone(&name)));
        self.entry.set_prepared(true);
        self.name = Some(name);
        self.entry.begin(id, self.running.now());
        self.entry.count(writes, self.control.len());
    }

    /// Ends it by a step of the database.
    pub(super) fn resolve(&mut self, step: fn(&Db, &[u8], &WriteOptions) -> Result<()>) -> Result<()> {
        let name = self.name.as_deref().unwrap_or_default();
        let resolved = step(&self.db, name, &self.write);
        let is_over = match &resolved {
            Ok(()) => true,
            // Resolved behind its back: there is nothing left to be protected.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if is_over {
            self.end();
        }
        resolved
    }

    /// Gives name and locks to the database: it stays prepared.
    pub(super) fn leave(&mut self) {
        if let (Some(names), Some(locks)) = (&self.names, self.control.take_locks())
            && let Some(name) = self.name.take()
        {
            self.entry.set_name(None);
            self.entry.set_prepared(false);
            names.leave(name, locks);
        }
        self.end();
    }

    /// It has ended.
    #[cold]
    pub(super) fn free_name(&mut self) {
        if let (Some(names), Some(name)) = (&self.names, self.name.take()) {
            names.free(&name);
        }
        self.entry.set_name(None);
        self.entry.set_prepared(false);
    }
}

/// Of transactions that take no locks.
pub(crate) fn not_without_locks() -> Error {
    Error::invalid(
        "a transaction without locks can't be prepared: others would write what it wrote before it is committed; use a TransactionDb",
    )
}
