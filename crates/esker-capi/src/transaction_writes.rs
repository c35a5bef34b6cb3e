//! Writes of a transaction: kept in it, and protected from others, until it ends.

use esker::ColumnFamily;

use crate::boundary::answer;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::esker_slice;
use crate::transaction::esker_transaction;

/// The family given, or `default`.
fn of<'a>(family: Option<&'a esker_family>, default: &'a ColumnFamily) -> &'a ColumnFamily {
    family.map_or(default, |family| &family.0)
}

/// Sets `key` to `value`, under an exclusive lock. Errors: `ESKER_TIMED_OUT`, `ESKER_DEADLOCK`, `ESKER_LOCK_LIMIT` and
/// `ESKER_INTERRUPTED` of the lock; `ESKER_WRITE_LIMIT` past `max_write_set_bytes`;
/// `ESKER_CONFLICT` if there is a snapshot and the key was written since; `ESKER_INVALID_ARGUMENT` past a limit, and if it has ended.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_put(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    value: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (key, value) = (key.get()?, value.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.put(of(family, default), key, value)
        })
    })
}

/// Removes `key`, under an exclusive lock. Errors: as `esker_transaction_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_delete(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let key = key.get()?;
        esker_transaction::change(transaction, |transaction, default| {
            transaction.delete(of(family, default), key)
        })
    })
}

/// Removes a key that was put once, as `esker_db_single_delete`, under an exclusive lock. Errors: as `esker_transaction_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_single_delete(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let key = key.get()?;
        esker_transaction::change(transaction, |transaction, default| {
            transaction.single_delete(of(family, default), key)
        })
    })
}

/// Applies the merge operator's `operand` to `key`, under an exclusive lock. Errors: as `esker_transaction_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_merge(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    operand: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (key, operand) = (key.get()?, operand.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.merge(of(family, default), key, operand)
        })
    })
}

/// Removes all keys from `start` up to `end` (exclusive), under an exclusive lock of the range. Errors: as
/// `esker_transaction_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_delete_range(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (start, end) = (start.get()?, end.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.delete_range(of(family, default), start, end)
        })
    })
}

/// `esker_transaction_put` without lock and without check, for keys that the caller knows nobody else to touch. Conflict checks of
/// others see it. Error: `ESKER_INVALID_ARGUMENT`, as there.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_put_untracked(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    value: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (key, value) = (key.get()?, value.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.put_untracked(of(family, default), key, value)
        })
    })
}

/// `esker_transaction_delete`, as `esker_transaction_put_untracked`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_delete_untracked(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let key = key.get()?;
        esker_transaction::change(transaction, |transaction, default| {
            transaction.delete_untracked(of(family, default), key)
        })
    })
}

/// `esker_transaction_single_delete`, as `esker_transaction_put_untracked`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_single_delete_untracked(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let key = key.get()?;
        esker_transaction::change(transaction, |transaction, default| {
            transaction.single_delete_untracked(of(family, default), key)
        })
    })
}

/// `esker_transaction_merge`, as `esker_transaction_put_untracked`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_merge_untracked(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    operand: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (key, operand) = (key.get()?, operand.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.merge_untracked(of(family, default), key, operand)
        })
    })
}

/// `esker_transaction_delete_range`, as `esker_transaction_put_untracked`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_delete_range_untracked(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (start, end) = (start.get()?, end.get()?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.delete_range_untracked(of(family, default), start, end)
        })
    })
}
