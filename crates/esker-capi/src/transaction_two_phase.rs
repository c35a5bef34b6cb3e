//! Two-phase commit of transactions: a name, a prepare that crashes do not undo, and what a crash has left.

use std::mem::MaybeUninit;

use esker::{Error, Result};
use esker_txn::{PreparedTransaction, TransactionDb};

use crate::boundary::{Guarded, answer, given, made, release};
use crate::call_options::{esker_write_options, write_options};
use crate::database::{Layer, esker_db};
use crate::error::esker_error;
use crate::list::{List, lend};
use crate::slice::esker_slice;
use crate::transaction::esker_transaction;

/// Gives a transaction the name under which it will be prepared: any bytes, such as an XA transaction's. No other transaction of the
/// database may have it until this one is committed or rolled back. Error: `ESKER_INVALID_ARGUMENT` if the name is in use or has not 1
/// to 4,096 bytes, if the transaction has one or has ended, and for an optimistic one.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_name(
    transaction: Option<&mut esker_transaction>,
    name: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let name = name.get()?;
        esker_transaction::change(transaction, |transaction, _| transaction.set_name(name))
    })
}

/// The name that it was given, until it ends or is freed; data is null without one.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_name(transaction: Option<&esker_transaction>) -> esker_slice<'_> {
    esker_slice::optional(transaction.and_then(|transaction| transaction.inner.get().name()))
}

/// Changes how its steps are written from now on: prepare, commit, and roll back once it is prepared. Null: the defaults.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_write_options(
    transaction: Option<&mut esker_transaction>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        esker_transaction::change(transaction, |transaction, _| {
            transaction.set_write_options(&write_options(options));
            Ok(())
        })
    })
}

/// Prepares it under its name: on success it survives crashes, as its write options say, keeps its locks, and can only be committed or
/// rolled back. Freed or restarted it stays prepared, and `esker_transaction_take_prepared` gives it back. Errors: `ESKER_INVALID_ARGUMENT`
/// if it has no name, is prepared or has ended; those of `esker_db_prepare`. It is active then, as it was.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_prepare(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| esker_transaction::change(transaction, |transaction, _| transaction.prepare()))
}

/// Whether it is prepared, and neither committed nor rolled back.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_is_prepared(transaction: Option<&esker_transaction>) -> bool {
    transaction.is_some_and(|transaction| transaction.inner.get().is_prepared())
}

fn locking(db: Option<&esker_db>) -> Result<&TransactionDb> {
    match &given(db, "db")?.layer {
        Layer::Locking(db) => Ok(db),
        _ => Err(Error::invalid(
            "only transactions that lock are prepared; the database was opened without them",
        )),
    }
}

/// A transaction that is prepared and neither committed nor rolled back.
#[repr(C)]
pub struct esker_prepared_transaction {
    /// Its name.
    pub name: esker_slice<'static>,
    /// Its number, under which its locks are listed.
    pub id: u64,
    /// Mutations that it would commit.
    pub writes: u64,
    /// What it takes in memory and in the log, in bytes.
    pub size_bytes: u64,
    /// Whether an object has it. If not, it waits for `esker_transaction_take_prepared`.
    pub is_open: bool,
}

/// Transactions that are prepared.
pub struct esker_prepared_transactions(List<esker_prepared_transaction, Vec<PreparedTransaction>>);

/// The transactions that are prepared, by name: behind an opening, what a coordinator has to decide. To be freed.
/// Error: `ESKER_INVALID_ARGUMENT` in a database without transactions that lock.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_prepared_transactions(
    db: Option<&esker_db>,
    prepared: Option<&mut MaybeUninit<Option<Box<esker_prepared_transactions>>>>,
) -> Option<Box<esker_error>> {
    made(prepared, || {
        let prepared = locking(db)?.prepared();
        // SAFETY: names are shared, and held by what the list owns.
        Ok(esker_prepared_transactions(unsafe {
            List::new(prepared, |prepared| {
                let items = prepared.iter().map(|one| esker_prepared_transaction {
                    name: lend(&one.name),
                    id: one.id.0,
                    writes: one.writes,
                    size_bytes: one.size_bytes,
                    is_open: one.is_open,
                });
                items.collect()
            })
        }))
    })
}

/// The transactions, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_prepared_transactions_items(
    prepared: Option<&esker_prepared_transactions>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_prepared_transaction {
    List::array(prepared.map(|prepared| &prepared.0), count)
}

/// Frees a list of prepared transactions.
#[unsafe(no_mangle)]
pub extern "C" fn esker_prepared_transactions_free(prepared: Option<Box<esker_prepared_transactions>>) {
    release(prepared);
}

/// The prepared transaction of this name, if no other object has it: it can be committed and rolled back, and nothing else. Freed, it
/// stays prepared. Errors: `ESKER_NOT_FOUND` if nothing is prepared under the name; `ESKER_RETRY` if another object has it;
/// `ESKER_INVALID_ARGUMENT` in a database without transactions that lock.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_take_prepared(
    db: Option<&esker_db>,
    name: esker_slice<'_>,
    transaction: Option<&mut MaybeUninit<Option<Box<esker_transaction>>>>,
) -> Option<Box<esker_error>> {
    made(transaction, || {
        let inner = locking(db)?.prepared_transaction(name.get()?)?;
        Ok(esker_transaction {
            inner: Guarded::new(inner),
            default: given(db, "db")?.default.clone(),
        })
    })
}
