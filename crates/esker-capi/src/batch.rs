//! Batches: mutations that become visible and durable together or not at all.

use std::ffi::c_void;

use esker::{Mutation, WriteBatch};

use crate::boundary::{Guarded, answer, given, release};
use crate::collector::{
    ESKER_DELETE, ESKER_DELETE_RANGE, ESKER_MERGE, ESKER_OTHER_ROW, ESKER_PUT, ESKER_SINGLE_DELETE,
    esker_row_kind,
};
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::esker_slice;

/// Mutations of one or several families, used again and again: a commit empties it and keeps its memory. For one thread at a time.
pub struct esker_batch(pub Guarded<WriteBatch>);

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_create() -> Box<esker_batch> {
    Box::new(esker_batch(Guarded::new(WriteBatch::new())))
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_free(batch: Option<Box<esker_batch>>) {
    release(batch);
}

/// Empties it, save points included, and keeps its memory.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_clear(batch: Option<&mut esker_batch>) {
    if let Some(batch) = batch {
        // Emptying can't fail; a batch that met a defect stays as it is and refuses its commit.
        let _ = batch.0.change(|batch| {
            batch.clear();
            Ok(())
        });
    }
}

/// Sets `key` to `value`. Error: `ESKER_INVALID_ARGUMENT` past a limit (64 KiB a key, 4 GiB - 1 a value, 4 GiB a batch); the batch is
/// as it was then.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_put(
    batch: Option<&mut esker_batch>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    value: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (batch, key, value) = (given(batch, "the batch")?, key.get()?, value.get()?);
        batch.0.change(|batch| match family {
            None => batch.put(key, value),
            Some(family) => batch.put_cf(&family.0, key, value),
        })
    })
}

/// Removes `key`. Error: as `esker_batch_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_delete(
    batch: Option<&mut esker_batch>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (batch, key) = (given(batch, "the batch")?, key.get()?);
        batch.0.change(|batch| match family {
            None => batch.delete(key),
            Some(family) => batch.delete_cf(&family.0, key),
        })
    })
}

/// Removes a key that was put once, as `esker_db_single_delete`. Error: as `esker_batch_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_single_delete(
    batch: Option<&mut esker_batch>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (batch, key) = (given(batch, "the batch")?, key.get()?);
        batch.0.change(|batch| match family {
            None => batch.single_delete(key),
            Some(family) => batch.single_delete_cf(&family.0, key),
        })
    })
}

/// Applies the merge operator's `operand` to `key`. Error: as `esker_batch_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_merge(
    batch: Option<&mut esker_batch>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    operand: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (batch, key, operand) = (given(batch, "the batch")?, key.get()?, operand.get()?);
        batch.0.change(|batch| match family {
            None => batch.merge(key, operand),
            Some(family) => batch.merge_cf(&family.0, key, operand),
        })
    })
}

/// Removes all keys from `start` up to `end` (exclusive). Error: as `esker_batch_put`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_delete_range(
    batch: Option<&mut esker_batch>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (batch, start, end) = (given(batch, "the batch")?, start.get()?, end.get()?);
        batch.0.change(|batch| match family {
            None => batch.delete_range(start, end),
            Some(family) => batch.delete_range_cf(&family.0, start, end),
        })
    })
}

/// Adds all that `other` holds, which may be itself, behind its own. Error: as `esker_batch_put`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_append(
    batch: Option<&mut esker_batch>,
    other: *const esker_batch,
) -> Option<Box<esker_error>> {
    answer(|| {
        let batch = given(batch, "the batch")?;
        if std::ptr::eq(batch, other) {
            return batch.0.change(|batch| batch.append(&batch.clone()));
        }
        // SAFETY: the contract; it is another object than the one that is changed.
        let other = given(unsafe { other.as_ref() }, "the other batch")?;
        batch.0.change(|batch| batch.append(other.0.get()))
    })
}

/// Mutations in it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_count(batch: Option<&esker_batch>) -> usize {
    batch.map_or(0, |batch| batch.0.get().len())
}

/// Size of its encoding in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_size_bytes(batch: Option<&esker_batch>) -> usize {
    batch.map_or(0, |batch| batch.0.get().size_bytes())
}

/// Remembers where it ends now, on top of earlier save points.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_set_save_point(batch: Option<&mut esker_batch>) -> Option<Box<esker_error>> {
    answer(|| {
        given(batch, "the batch")?.0.change(|batch| {
            batch.set_save_point();
            Ok(())
        })
    })
}

/// Takes back all that was added since the last save point, and forgets that one. False if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_roll_back_to_save_point(batch: Option<&mut esker_batch>) -> bool {
    batch.is_some_and(|batch| {
        let done = batch.0.change(|batch| Ok(batch.roll_back_to_save_point()));
        done.unwrap_or(false)
    })
}

/// Forgets the last save point. False if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_pop_save_point(batch: Option<&mut esker_batch>) -> bool {
    batch.is_some_and(|batch| {
        let done = batch.0.change(|batch| Ok(batch.pop_save_point()));
        done.unwrap_or(false)
    })
}

/// A mutation.
#[repr(C)]
pub struct esker_mutation<'a> {
    /// The key, or where the range starts.
    pub key: esker_slice<'a>,
    /// The value, the operand, or the end of the range; empty for deletes.
    pub value: esker_slice<'a>,
    /// The number of the family.
    pub family: u32,
    /// What it does.
    pub kind: esker_row_kind,
}

impl<'a> esker_mutation<'a> {
    fn new(mutation: &Mutation<'a>) -> Self {
        let (family, kind, key, value) = match *mutation {
            Mutation::Put { family, key, value } => (family, ESKER_PUT, key, value),
            Mutation::Delete { family, key } => (family, ESKER_DELETE, key, &[][..]),
            Mutation::SingleDelete { family, key } => (family, ESKER_SINGLE_DELETE, key, &[][..]),
            Mutation::DeleteRange { family, start, end } => (family, ESKER_DELETE_RANGE, start, end),
            Mutation::Merge { family, key, operand } => (family, ESKER_MERGE, key, operand),
            _ => (0, ESKER_OTHER_ROW, &[][..], &[][..]),
        };
        Self {
            key: esker_slice::new(key),
            value: esker_slice::new(value),
            family,
            kind,
        }
    }
}

/// Called with each mutation, which stays for the call. False: no more.
pub type esker_visit_mutation =
    Option<unsafe extern "C" fn(state: *mut c_void, mutation: &esker_mutation<'_>) -> bool>;

/// Shows mutations to a function of the program's.
///
/// # Safety
/// The function keeps its contract.
pub unsafe fn visit_all<'a>(
    mutations: impl Iterator<Item = Mutation<'a>>,
    visit: esker_visit_mutation,
    state: *mut c_void,
) -> esker::Result<()> {
    let visit = given(visit, "the function")?;
    for mutation in mutations {
        // SAFETY: the caller's promise.
        if !unsafe { visit(state, &esker_mutation::new(&mutation)) } {
            break;
        }
    }
    Ok(())
}

/// Shows what it holds, in order.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_visit(
    batch: Option<&esker_batch>,
    visit: esker_visit_mutation,
    state: *mut c_void,
) -> Option<Box<esker_error>> {
    answer(|| {
        let batch = given(batch, "the batch")?.0.get();
        // SAFETY: the contract.
        unsafe { visit_all(batch.mutations(), visit, state) }
    })
}
