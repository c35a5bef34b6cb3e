//! Reads of a transaction, through its own writes; reads for update, and locks without a read.

use std::mem::MaybeUninit;

use crate::boundary::{answer, given, made, put};
use crate::call_options::esker_read_options;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::iterator::{Cursor, esker_iterator};
use crate::read::{esker_value, esker_values};
use crate::slice::{esker_range, esker_slice, slices};
use crate::transaction::esker_transaction;
use crate::transaction_options::{esker_lock_mode, lock_mode};

/// The value of `key`, own writes included, as `esker_db_get` gives it. Takes no lock and waits for nobody. A snapshot among the
/// options goes before that of the transaction.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_get<'a>(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    options: Option<&esker_read_options>,
    value: Option<&'a mut esker_value>,
    slice: Option<&mut MaybeUninit<esker_slice<'a>>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(value, "the value")?.hold(slice, || {
            let key = key.get()?;
            esker_transaction::change(transaction, |transaction, default| {
                let family = family.map_or(default, |family| &family.0);
                match options {
                    None => transaction.get(family, key),
                    Some(options) => transaction.get_with(family, key, &options.0),
                }
            })
        })
    })
}

/// The values of `count` keys, own writes included, all of one moment, as `esker_db_multi_get` gives them. Options: as for
/// `esker_transaction_get`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_multi_get(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    keys: *const esker_slice<'_>,
    count: usize,
    options: Option<&esker_read_options>,
    values: Option<&mut esker_values>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(values, "the values")?.hold(|| {
            // SAFETY: the contract.
            let keys = unsafe { slices(keys, count) }?;
            esker_transaction::change(transaction, |transaction, default| {
                let family = family.map_or(default, |family| &family.0);
                match options {
                    None => transaction.multi_get(family, &keys),
                    Some(options) => transaction.multi_get_with(family, &keys, &options.0),
                }
            })
        })
    })
}

/// The value of `key`, which nobody else can write until this transaction ends, nor lock, if the mode is exclusive. So it is the newest
/// there is. Errors: those of a get and of the lock; nothing is locked by it then.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_get_for_update<'a>(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    mode: esker_lock_mode,
    value: Option<&'a mut esker_value>,
    slice: Option<&mut MaybeUninit<esker_slice<'a>>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(value, "the value")?.hold(slice, || {
            let (key, mode) = (key.get()?, lock_mode(mode)?);
            esker_transaction::change(transaction, |transaction, default| {
                transaction.get_for_update(family.map_or(default, |family| &family.0), key, mode)
            })
        })
    })
}

/// `esker_transaction_get_for_update` for several keys, which are locked in the order in which they come; on an error none is locked by
/// it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_multi_get_for_update(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    keys: *const esker_slice<'_>,
    count: usize,
    mode: esker_lock_mode,
    values: Option<&mut esker_values>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(values, "the values")?.hold(|| {
            // SAFETY: the contract.
            let (keys, mode) = (unsafe { slices(keys, count) }?, lock_mode(mode)?);
            esker_transaction::change(transaction, |transaction, default| {
                let family = family.map_or(default, |family| &family.0);
                transaction.multi_get_for_update(family, &keys, mode)
            })
        })
    })
}

/// `esker_transaction_get_for_update` without the read.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_lock_key(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    mode: esker_lock_mode,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (key, mode) = (key.get()?, lock_mode(mode)?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.lock_key(family.map_or(default, |family| &family.0), key, mode)
        })
    })
}

/// Keeps others from writing any key of the range (an end with data null: to the last key) until this transaction ends, those that are
/// not there as well. Costs time proportional to the locks that all hold. Errors: those of the lock; `ESKER_INVALID_ARGUMENT` for a range
/// without keys.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_lock_range(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    range: esker_range<'_>,
    mode: esker_lock_mode,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (start, end, mode) = (range.start.get()?, range.end.get_optional()?, lock_mode(mode)?);
        esker_transaction::change(transaction, |transaction, default| {
            transaction.lock_range(family.map_or(default, |family| &family.0), start, end, mode)
        })
    })
}

/// Undoes the last read for update, or lock, of `key` since the last save point, for a program that has found that it does not need
/// the row. `undone` (may be null) is set to whether anything was given back: not, if the lock was held before, or the key was written.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_undo_get_for_update(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    undone: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let key = key.get()?;
        let was = esker_transaction::change(transaction, |transaction, default| {
            transaction.undo_get_for_update(family.map_or(default, |family| &family.0), key)
        })?;
        put(undone, was);
        Ok(())
    })
}

/// Makes an iterator over a family as the transaction sees it now, own writes included; later ones are not until it is refreshed.
/// Takes no lock.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_iterator(
    transaction: Option<&mut esker_transaction>,
    family: Option<&esker_family>,
    options: Option<&esker_read_options>,
    iterator: Option<&mut MaybeUninit<Option<Box<esker_iterator>>>>,
) -> Option<Box<esker_error>> {
    made(iterator, || {
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        let iter = esker_transaction::change(transaction, |transaction, default| {
            transaction.iter(family.map_or(default, |family| &family.0), options)
        })?;
        Ok(esker_iterator::new(Cursor::Transaction(iter)))
    })
}

/// Shows what an iterator of this transaction would see if it were made now. Not positioned afterwards.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_refresh_iterator(
    transaction: Option<&mut esker_transaction>,
    iterator: Option<&mut esker_iterator>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let iterator = given(iterator, "the iterator")?;
        esker_transaction::change(transaction, |transaction, _| {
            iterator.cursor.change(|cursor| match cursor {
                Cursor::Transaction(iter) => transaction.refresh(iter),
                Cursor::Plain(_) => Err(esker::Error::invalid(
                    "an iterator of the database is refreshed by esker_iterator_refresh",
                )),
            })
        })
    })
}
