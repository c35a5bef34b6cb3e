//! Transactions: their life, from the beginning until they are committed or rolled back, save points and snapshots.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use esker::{Error, Result};
use esker_txn::{Interrupter, Isolation, Transaction, TransactionOptions};

use crate::batch::{esker_visit_mutation, visit_all};
use crate::boundary::{Guarded, answer, given, made, put, release};
use crate::database::{Layer, esker_db};
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::esker_slice;
use crate::snapshot::esker_snapshot;
use crate::transaction_options::{
    ESKER_READ_COMMITTED, ESKER_REPEATABLE_READ, esker_isolation, esker_transaction_options, timeout,
};

/// Reads and writes that others see together or not at all. Used again and again, by `esker_transaction_restart`. For one thread at
/// a time. Families that are given to it must be of its database.
///
/// A call that fails has changed nothing: what it has locked it gives back, and the transaction goes on. After `ESKER_TIMED_OUT` and
/// `ESKER_LOCK_LIMIT` the call may be tried again, after `ESKER_INTERRUPTED` too, if that was not meant for good; after `ESKER_DEADLOCK`
/// others wait for locks of this one, so roll back, to a save point at least; after `ESKER_CONFLICT` roll back and run it again.
pub struct esker_transaction {
    pub inner: Guarded<Transaction>,
    pub default: esker::ColumnFamily,
}

/// Ends waits for locks of a transaction, from any thread: for a program whose user has given a query up.
pub struct esker_interrupter(pub Interrupter);

impl esker_transaction {
    /// Does something with it.
    #[inline]
    pub fn change<R>(
        transaction: Option<&mut Self>,
        work: impl FnOnce(&mut Transaction, &esker::ColumnFamily) -> Result<R>,
    ) -> Result<R> {
        let transaction = given(transaction, "the transaction")?;
        let default = &transaction.default;
        transaction.inner.change(|inner| work(inner, default))
    }
}

/// Begins a transaction of a database that was opened for them. Options: null for the defaults.
/// Error: `ESKER_INVALID_ARGUMENT` if the database was opened without transactions.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_begin(
    db: Option<&esker_db>,
    options: Option<&esker_transaction_options>,
    transaction: Option<&mut MaybeUninit<Option<Box<esker_transaction>>>>,
) -> Option<Box<esker_error>> {
    made(transaction, || {
        let db = given(db, "db")?;
        let defaults = TransactionOptions::default();
        let options = options.map_or(&defaults, |options| &options.0);
        let inner = match &db.layer {
            Layer::Plain | Layer::Following(_) => {
                return Err(Error::invalid(
                    "the database was opened without transactions; esker_db_open_transactional opens it with them",
                ));
            }
            Layer::Locking(db) => db.begin(options),
            Layer::Optimistic(db) => db.begin(options),
        };
        Ok(esker_transaction {
            inner: Guarded::new(inner),
            default: db.default.clone(),
        })
    })
}

/// Frees a transaction. If it is active, it is rolled back; if it is prepared, it stays so.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_free(transaction: Option<Box<esker_transaction>>) {
    release(transaction);
}

/// Makes this object another transaction of the same database, with the memory of the one before; what that one has not committed is
/// rolled back, or stays prepared.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_restart(
    transaction: Option<&mut esker_transaction>,
    options: Option<&esker_transaction_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        esker_transaction::change(transaction, |transaction, _| {
            match options {
                Some(options) => transaction.restart(&options.0),
                None => transaction.restart(&TransactionOptions::default()),
            }
            Ok(())
        })
    })
}

/// Makes its writes visible to all at one moment, as durable as its options say, and ends it. Errors: those of a write, for an
/// optimistic transaction `ESKER_CONFLICT` as well; nothing is written then, and it is still active, with all its locks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_commit(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| esker_transaction::change(transaction, |transaction, _| transaction.commit()))
}

/// Forgets its writes, gives its locks back and ends it. Nothing to do for one that has ended. Errors: none, unless it is prepared: then
/// those of a write, and it is prepared as before.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_roll_back(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| esker_transaction::change(transaction, |transaction, _| transaction.roll_back()))
}

/// Remembers what is written and locked now, on top of earlier save points.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_save_point(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| esker_transaction::change(transaction, |transaction, _| transaction.set_save_point()))
}

/// Takes back all that was written and locked since the last save point, and forgets that one; the snapshot stays. `done` (may be
/// null) is set to whether there was one.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_roll_back_to_save_point(
    transaction: Option<&mut esker_transaction>,
    done: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let was = esker_transaction::change(transaction, |transaction, _| {
            transaction.roll_back_to_save_point()
        })?;
        put(done, was);
        Ok(())
    })
}

/// Forgets the last save point, and keeps what was written and locked since. `done` (may be null) is set to whether there was one.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_pop_save_point(
    transaction: Option<&mut esker_transaction>,
    done: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let was = esker_transaction::change(transaction, |transaction, _| transaction.pop_save_point())?;
        put(done, was);
        Ok(())
    })
}

/// Its number, which no other transaction of this opening of the database has or had; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_id(transaction: Option<&esker_transaction>) -> u64 {
    transaction.map_or(0, |transaction| transaction.inner.get().id().0)
}

/// What its options call it, until it is restarted or freed; data is null if they don't.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_label(transaction: Option<&esker_transaction>) -> esker_slice<'_> {
    let label = transaction.and_then(|transaction| transaction.inner.get().label());
    esker_slice::optional(label.map(str::as_bytes))
}

/// What its plain reads see.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_isolation(transaction: Option<&esker_transaction>) -> esker_isolation {
    match transaction.map(|transaction| transaction.inner.get().isolation()) {
        Some(Isolation::RepeatableRead) => ESKER_REPEATABLE_READ,
        _ => ESKER_READ_COMMITTED,
    }
}

/// Whether it has neither been committed nor rolled back.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_is_active(transaction: Option<&esker_transaction>) -> bool {
    transaction.is_some_and(|transaction| transaction.inner.get().is_active())
}

/// Locks that it holds; of an optimistic one, keys and ranges that its commit will ask about.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_lock_count(transaction: Option<&esker_transaction>) -> usize {
    transaction.map_or(0, |transaction| transaction.inner.get().lock_count())
}

/// Mutations that it would commit.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_write_count(transaction: Option<&esker_transaction>) -> usize {
    transaction.map_or(0, |transaction| transaction.inner.get().writes().len())
}

/// What it has written, as `max_write_set_bytes` counts it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_write_bytes(transaction: Option<&esker_transaction>) -> usize {
    transaction.map_or(0, |transaction| transaction.inner.get().writes().size_bytes())
}

/// Memory that its writes take, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_memory_bytes(transaction: Option<&esker_transaction>) -> usize {
    transaction.map_or(0, |transaction| transaction.inner.get().writes().memory_bytes())
}

/// Whether it has written `key` itself (range deletes do not count).
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_has_written(
    transaction: Option<&esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    written: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let transaction = given(transaction, "the transaction")?;
        let family = family.map_or(&transaction.default, |family| &family.0);
        put(
            written,
            transaction.inner.get().writes().has_written(family, key.get()?),
        );
        Ok(())
    })
}

/// Shows what it would commit, in order.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_visit(
    transaction: Option<&esker_transaction>,
    visit: esker_visit_mutation,
    state: *mut c_void,
) -> Option<Box<esker_error>> {
    answer(|| {
        let writes = given(transaction, "the transaction")?.inner.get().writes();
        // SAFETY: the contract.
        unsafe { visit_all(writes.batch().mutations(), visit, state) }
    })
}

/// The snapshot since which nobody else may have written what it writes or locks: a handle of its own, to be freed; null if it has
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_snapshot(
    transaction: Option<&esker_transaction>,
) -> Option<Box<esker_snapshot>> {
    let snapshot = transaction?.inner.get().snapshot()?;
    Some(Box::new(esker_snapshot(snapshot.clone())))
}

/// Takes a snapshot of now, in place of an earlier one. Under `ESKER_READ_COMMITTED` writes and locks are then checked against it, and
/// reads still see what is newest.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_snapshot(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| esker_transaction::change(transaction, |transaction, _| transaction.set_snapshot()))
}

/// Gives the snapshot up. Under `ESKER_REPEATABLE_READ` the next operation takes another one.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_clear_snapshot(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_error>> {
    answer(|| {
        esker_transaction::change(transaction, |transaction, _| {
            transaction.clear_snapshot();
            Ok(())
        })
    })
}

/// What ends waits for locks of this object's transactions, all that it becomes included: to be freed, before or after it. Each call
/// gives a handle to the same one. Null for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_interrupter(
    transaction: Option<&mut esker_transaction>,
) -> Option<Box<esker_interrupter>> {
    let mut interrupter = None;
    let asked = answer(|| {
        interrupter = Some(esker_transaction::change(transaction, |transaction, _| {
            Ok(transaction.interrupter())
        })?);
        Ok(())
    });
    drop(asked);
    interrupter.map(|interrupter| Box::new(esker_interrupter(interrupter)))
}

/// Refuses the lock that the transaction waits for, and each that it would have to wait for, with `ESKER_INTERRUPTED`, until
/// `esker_interrupter_clear`. Locks that are free are granted all the same. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn esker_interrupter_request(interrupter: Option<&esker_interrupter>) {
    if let Some(interrupter) = interrupter {
        interrupter.0.request();
    }
}

/// Lets waits go on as if nobody had asked.
#[unsafe(no_mangle)]
pub extern "C" fn esker_interrupter_clear(interrupter: Option<&esker_interrupter>) {
    if let Some(interrupter) = interrupter {
        interrupter.0.clear();
    }
}

/// Whether waits are refused.
#[unsafe(no_mangle)]
pub extern "C" fn esker_interrupter_is_requested(interrupter: Option<&esker_interrupter>) -> bool {
    interrupter.is_some_and(|interrupter| interrupter.0.is_requested())
}

/// Frees a handle to an interrupter.
#[unsafe(no_mangle)]
pub extern "C" fn esker_interrupter_free(interrupter: Option<Box<esker_interrupter>>) {
    release(interrupter);
}

/// Changes how long it waits for a lock, in microseconds, as `esker_transaction_options_set_lock_timeout_us`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_set_lock_timeout_us(
    transaction: Option<&mut esker_transaction>,
    microseconds: u64,
) -> Option<Box<esker_error>> {
    answer(|| {
        esker_transaction::change(transaction, |transaction, _| {
            transaction.set_lock_timeout(timeout(microseconds));
            Ok(())
        })
    })
}
