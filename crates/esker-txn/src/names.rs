//! The names of transactions: each belongs to one of them until that is resolved.
//!
//! What is prepared outlives the object that has prepared it, and the process. So a name goes through these states:
//! ```text
//!            set_name           is prepared, and its object goes
//! (unknown) ---------> [Open] ---------------------------------> [Left]
//!     ^                  |    <---------------------------------    ^
//!     +------------------+          prepared_transaction            |
//!        committed, rolled back,                          found by an opening
//!        gone and not prepared
//! ```
//! Who is left keeps its number and its locks, which are here and nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::batch::NAME_LEN_MAX;
use esker::sync::Mutex;
use esker::{Error, ErrorKind, Prepared, Result};

use crate::control::Locking;
use crate::lock::TransactionId;

/// Who has a name.
enum Holder {
    /// A transaction object.
    Open(TransactionId),
    /// Nobody: it is prepared.
    Left(Box<Locking>),
}

/// A prepared transaction that has been neither committed nor rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// Its name.
    pub name: Arc<[u8]>,
    /// Its number, under which its locks are listed.
    pub id: TransactionId,
    /// Mutations that it would commit.
    pub writes: u64,
    /// What it takes in memory and in the log, in bytes.
    pub size_bytes: u64,
    /// Whether a [`Transaction`](crate::Transaction) has it. If not, it waits for
    /// [`prepared_transaction`](crate::TransactionDb::prepared_transaction).
    pub is_open: bool,
}

/// The names of a database's transactions.
#[derive(Default)]
pub(crate) struct Names {
    by_name: Mutex<BTreeMap<Arc<[u8]>, Holder>>,
}

impl Names {
    /// Takes a name for the transaction `id`.
    ///
    /// # Errors
    /// `InvalidArgument` if it is in use, or has not 1 to 4,096 bytes.
    pub(crate) fn take(&self, name: &[u8], id: TransactionId) -> Result<Arc<[u8]>> {
        let len = name.len();
        if !(1..=NAME_LEN_MAX).contains(&len) {
            return Err(Error::invalid(format!(
                "the name of a transaction has {len} bytes; it must have 1 to {NAME_LEN_MAX}"
            )));
        }
        let mut by_name = self.by_name.lock();
        if by_name.contains_key(name) {
            return Err(Error::invalid(format!(
                "another transaction has the name '{}'",
                name.escape_ascii()
            )));
        }
        let name: Arc<[u8]> = name.into();
        by_name.insert(Arc::clone(&name), Holder::Open(id));
        Ok(name)
    }

    /// Forgets a name.
    pub(crate) fn free(&self, name: &[u8]) {
        self.by_name.lock().remove(name);
    }

    /// Its transaction is prepared and has no object any more.
    pub(crate) fn leave(&self, name: Arc<[u8]>, locks: Locking) {
        self.by_name.lock().insert(name, Holder::Left(Box::new(locks)));
    }

    /// Takes what was [left](Self::leave) under a name.
    ///
    /// # Errors
    /// For a name that `is_prepared` in the database: `Retry` if another object has it; `InvalidArgument` if no transaction has ever had
    /// it. For any other `NotFound`.
    pub(crate) fn adopt(&self, name: &[u8], is_prepared: bool) -> Result<(Arc<[u8]>, Locking)> {
        let mut by_name = self.by_name.lock();
        let is_open = match by_name.remove_entry(name) {
            Some((name, Holder::Left(locks))) => {
                by_name.insert(Arc::clone(&name), Holder::Open(locks.id()));
                return Ok((name, *locks));
            }
            Some((name, open)) => {
                by_name.insert(name, open);
                true
            }
            None => false,
        };
        let name = name.escape_ascii();
        Err(match (is_prepared, is_open) {
            (true, true) => Error::new(
                ErrorKind::Retry,
                format!("another object has the transaction '{name}'"),
            ),
            (true, false) => Error::invalid(format!(
                "'{name}' was prepared through the database itself, where it is to be resolved, and not by a transaction"
            )),
            (false, _) => Error::new(
                ErrorKind::NotFound,
                format!("no transaction is prepared under the name '{name}'"),
            ),
        })
    }

    /// What is prepared by transactions.
    pub(crate) fn list(&self, prepared: &[Prepared]) -> Vec<PreparedTransaction> {
        let by_name = self.by_name.lock();
        let listed = prepared.iter().filter_map(|batch| {
            let (name, holder) = by_name.get_key_value(batch.name())?;
            let (id, is_open) = match holder {
                Holder::Open(id) => (*id, true),
                Holder::Left(locks) => (locks.id(), false),
            };
            Some(PreparedTransaction {
                name: Arc::clone(name),
                id,
                writes: batch.len() as u64,
                size_bytes: batch.size_bytes() as u64,
                is_open,
            })
        });
        listed.collect()
    }
}
