//! Two-phase commit: a batch is prepared, which a crash does not undo, and later committed or rolled back by its name.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use esker::{Error, Prepared};

use crate::batch::{esker_batch, esker_visit_mutation, visit_all};
use crate::boundary::{answer, given, made, release};
use crate::call_options::{esker_write_options, write_options};
use crate::database::esker_db;
use crate::error::esker_error;
use crate::list::{List, lend};
use crate::slice::esker_slice;

/// Prepares a batch under a name: it is logged, as durable as the options say, and not visible. From then on it is there, over crashes
/// and openings, until it is committed or rolled back by its name. On success the batch is empty again; on failure it is as it was, and
/// nothing is prepared. It takes no locks: who may touch the rows meanwhile is the program's business.
/// Errors: `ESKER_INVALID_ARGUMENT` for a name that is taken or has not 1 to 4,096 bytes, and for `ESKER_NO_LOG`; `ESKER_RETRY` if all
/// prepared batches together would pass the memtables' part of the memory; those of a write.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_prepare(
    db: Option<&esker_db>,
    name: esker_slice<'_>,
    batch: Option<&mut esker_batch>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, name, options) = (given(db, "db")?, name.get()?, write_options(options));
        let batch = given(batch, "the batch")?;
        batch.0.change(|batch| db.db.prepare(name, batch, &options))
    })
}

/// Commits what was prepared under this name, and behind it, together with it, the mutations of `more` (may be null), which is empty
/// again on success. On failure it is prepared as it was.
/// Errors: `ESKER_NOT_FOUND` if nothing is prepared under the name, as after a commit that is repeated; `ESKER_RETRY` if another thread
/// commits or rolls it back; `ESKER_INVALID_ARGUMENT` for `ESKER_NO_LOG`; those of a write.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_commit_prepared(
    db: Option<&esker_db>,
    name: esker_slice<'_>,
    more: Option<&mut esker_batch>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, name, options) = (given(db, "db")?, name.get()?, write_options(options));
        match more {
            None => db.db.commit_prepared(name, &options),
            Some(more) => more
                .0
                .change(|more| db.db.commit_prepared_with(name, more, &options)),
        }
    })
}

/// Forgets what was prepared under this name. Errors: as `esker_db_commit_prepared`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_roll_back_prepared(
    db: Option<&esker_db>,
    name: esker_slice<'_>,
    options: Option<&esker_write_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, name) = (given(db, "db")?, name.get()?);
        db.db.roll_back_prepared(name, &write_options(options))
    })
}

/// A batch that is prepared.
#[repr(C)]
pub struct esker_prepared {
    /// Its name.
    pub name: esker_slice<'static>,
    /// Mutations.
    pub count: usize,
    /// Size of its encoding in bytes, name included.
    pub size_bytes: usize,
}

/// Batches that are prepared and neither committed nor rolled back. It keeps their mutations, also when they are committed meanwhile.
pub struct esker_prepared_list {
    list: List<esker_prepared, ()>,
    prepared: Vec<Prepared>,
}

impl esker_prepared_list {
    fn new(prepared: Vec<Prepared>) -> Self {
        let items = prepared
            .iter()
            .map(|one| esker_prepared {
                // SAFETY: a prepared batch is shared, on the heap, and held beside the list.
                name: unsafe { lend(one.name()) },
                count: one.len(),
                size_bytes: one.size_bytes(),
            })
            .collect();
        // SAFETY: as above.
        let list = unsafe { List::new((), |()| items) };
        Self { list, prepared }
    }
}

/// All that is prepared, by name; after an opening that is what a coordinator has to decide. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_prepared(
    db: Option<&esker_db>,
    prepared: Option<&mut MaybeUninit<Option<Box<esker_prepared_list>>>>,
) -> Option<Box<esker_error>> {
    made(prepared, || {
        Ok(esker_prepared_list::new(given(db, "db")?.db.prepared()))
    })
}

/// What is prepared under this name: a list of one, or of none. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_prepared_named(
    db: Option<&esker_db>,
    name: esker_slice<'_>,
    prepared: Option<&mut MaybeUninit<Option<Box<esker_prepared_list>>>>,
) -> Option<Box<esker_error>> {
    made(prepared, || {
        let found = given(db, "db")?.db.prepared_named(name.get()?);
        Ok(esker_prepared_list::new(found.into_iter().collect()))
    })
}

/// The prepared batches, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_prepared_items(
    prepared: Option<&esker_prepared_list>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_prepared {
    List::array(prepared.map(|prepared| &prepared.list), count)
}

/// Shows what the batch at `index` of the list would change, in order.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_prepared_visit(
    prepared: Option<&esker_prepared_list>,
    index: usize,
    visit: esker_visit_mutation,
    state: *mut c_void,
) -> Option<Box<esker_error>> {
    answer(|| {
        let prepared = given(prepared, "the list")?.prepared.get(index);
        let prepared = prepared.ok_or_else(|| Error::invalid("there is no such item in the list"))?;
        // SAFETY: the contract.
        unsafe { visit_all(prepared.mutations(), visit, state) }
    })
}

/// Frees a list of prepared batches.
#[unsafe(no_mangle)]
pub extern "C" fn esker_prepared_free(prepared: Option<Box<esker_prepared_list>>) {
    release(prepared);
}
