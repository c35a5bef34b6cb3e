//! Writes without a transaction, of one mutation each or of a batch.

use esker::{ColumnFamily, Mutation, Result, WriteBatch, WriteOptions};

use crate::batch::esker_batch;
use crate::boundary::{answer, given};
use crate::call_options::{esker_write_options, write_options};
use crate::database::{Layer, esker_db};
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::esker_slice;

/// Commits one mutation to a database of transactions.
fn write_locked(db: &esker_db, mutation: Mutation<'_>, options: Option<&esker_write_options>) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.push(mutation)?;
    commit(db, &mut batch, options)
}

/// Whether a write goes to the engine at once.
#[inline]
fn is_direct(db: &esker_db, options: Option<&esker_write_options>) -> bool {
    matches!(db.layer, Layer::Plain | Layer::Following(_)) || options.is_some_and(|options| options.unlocked)
}

/// Commits a batch and empties it.
pub fn commit(db: &esker_db, batch: &mut WriteBatch, options: Option<&esker_write_options>) -> Result<()> {
    let write = write_options(options);
    if options.is_some_and(|options| options.unlocked) {
        return db.db.write_with(batch, &write);
    }
    match &db.layer {
        Layer::Plain | Layer::Following(_) => db.db.write_with(batch, &write),
        Layer::Locking(db) => db.write(batch, &write),
        Layer::Optimistic(db) => db.write(batch, &write),
    }
}

/// The parts that every write has.
type Parts<'a> = (&'a esker_db, &'a ColumnFamily, WriteOptions);

#[inline]
fn parts<'a>(
    db: Option<&'a esker_db>,
    family: Option<&'a esker_family>,
    options: Option<&esker_write_options>,
) -> Result<Parts<'a>> {
    let db = given(db, "db")?;
    Ok((db, db.family(family), write_options(options)))
}

/// Sets `key` to `value`. Errors: `ESKER_INVALID_ARGUMENT` past a limit (64 KiB a key, 4 GiB - 1 a value), `ESKER_IO`,
/// `ESKER_NO_SPACE`, `ESKER_READ_ONLY`, `ESKER_RETRY`; in a database of transactions those of their locks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_put(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    value: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, family, write) = parts(db, family, options)?;
        let (key, value, id) = (key.get()?, value.get()?, family.id());
        if is_direct(db, options) {
            return db.db.put_cf_with(family, key, value, &write);
        }
        let mutation = Mutation::Put {
            family: id,
            key,
            value,
        };
        write_locked(db, mutation, options)
    })
}

/// Removes `key`. Errors: as `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_delete(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, family, write) = parts(db, family, options)?;
        let (key, id) = (key.get()?, family.id());
        if is_direct(db, options) {
            return db.db.delete_cf_with(family, key, &write);
        }
        write_locked(db, Mutation::Delete { family: id, key }, options)
    })
}

/// Removes a key that was put once: only for keys that are put and single-deleted in turns, never overwritten, deleted or merged
/// in between. Errors: as `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_single_delete(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, family, write) = parts(db, family, options)?;
        let (key, id) = (key.get()?, family.id());
        if is_direct(db, options) {
            return db.db.single_delete_cf_with(family, key, &write);
        }
        write_locked(db, Mutation::SingleDelete { family: id, key }, options)
    })
}

/// Applies the merge operator's `operand` to `key`. Without an operator reads of the key fail. Errors: as `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_merge(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    operand: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, family, write) = parts(db, family, options)?;
        let (key, operand, id) = (key.get()?, operand.get()?, family.id());
        if is_direct(db, options) {
            return db.db.merge_cf_with(family, key, operand, &write);
        }
        let mutation = Mutation::Merge {
            family: id,
            key,
            operand,
        };
        write_locked(db, mutation, options)
    })
}

/// Removes all keys from `start` up to `end` (exclusive), at the cost of one entry. Errors: as `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_delete_range(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, family, write) = parts(db, family, options)?;
        let (start, end, id) = (start.get()?, end.get()?, family.id());
        if is_direct(db, options) {
            return db.db.delete_range_cf_with(family, start, end, &write);
        }
        let mutation = Mutation::DeleteRange {
            family: id,
            start,
            end,
        };
        write_locked(db, mutation, options)
    })
}

/// Commits a batch: all of it becomes visible together. On success it is empty again, on failure as it was. Errors: as
/// `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_write(
    db: Option<&esker_db>,
    batch: Option<&mut esker_batch>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let batch = given(batch, "the batch")?;
        batch.0.change(|batch| commit(db, batch, options))
    })
}

/// Commits a batch that holds the same afterwards, so that it can be committed again. In a database of transactions it is copied for
/// that. Errors: as `esker_db_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_write_and_keep(
    db: Option<&esker_db>,
    batch: Option<&mut esker_batch>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let batch = given(batch, "the batch")?;
        batch.0.change(|batch| match is_direct(db, options) {
            true => db.db.write_and_keep(batch, &write_options(options)),
            false => commit(db, &mut batch.clone(), options),
        })
    })
}
