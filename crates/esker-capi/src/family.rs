//! Column families: create, find, drop, list, change.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use esker::ColumnFamily;

use crate::boundary::{answer, given, made, put, release};
use crate::buffer::esker_buffer;
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family_options::esker_family_options;
use crate::list::esker_names;
use crate::slice::esker_slice;
use crate::text;

/// A handle on a column family, for any thread. Where a call takes one, null means the family `default`. It may be freed at any
/// time, and outlive the family's drop: reads go on then, writes fail.
pub struct esker_family(pub ColumnFamily);

/// The family with this name. Error: `ESKER_NOT_FOUND`. To be freed, as all handles.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_open(
    db: Option<&esker_db>,
    name: *const c_char,
    family: Option<&mut MaybeUninit<Option<Box<esker_family>>>>,
) -> Option<Box<esker_error>> {
    made(family, || {
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        Ok(esker_family(given(db, "db")?.db.column_family(name)?))
    })
}

/// The family with this number, as events and deadlocks name it. Error: `ESKER_NOT_FOUND`. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_open_by_id(
    db: Option<&esker_db>,
    id: u32,
    family: Option<&mut MaybeUninit<Option<Box<esker_family>>>>,
) -> Option<Box<esker_error>> {
    made(family, || {
        Ok(esker_family(given(db, "db")?.db.column_family_by_id(id)?))
    })
}

/// Creates a family; options: null for the defaults. Errors: `ESKER_INVALID_ARGUMENT` if the name is taken, empty or over-long, or an
/// option out of range.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_create(
    db: Option<&esker_db>,
    name: *const c_char,
    options: Option<&esker_family_options>,
    family: Option<&mut MaybeUninit<Option<Box<esker_family>>>>,
) -> Option<Box<esker_error>> {
    made(family, || {
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        Ok(esker_family(
            given(db, "db")?.db.create_column_family(name, options)?,
        ))
    })
}

/// Drops a family: its files go once nobody reads them. The handle stays, and is freed as any other. `default` can't be dropped.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_drop(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let family = given(family, "the family")?;
        given(db, "db")?.db.drop_column_family(&family.0)
    })
}

/// Frees a handle; the family stays.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_free(family: Option<Box<esker_family>>) {
    release(family);
}

/// Its name, until the handle is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_name(family: Option<&esker_family>) -> esker_slice<'_> {
    family.map_or(esker_slice::new(b"default"), |family| {
        esker_slice::new(family.0.name().as_bytes())
    })
}

/// Its number, which is never used again after a drop; 0 is `default`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_id(family: Option<&esker_family>) -> u32 {
    family.map_or(0, |family| family.0.id())
}

/// The name of its order of keys, until the handle is freed; of the family `default` by its handle only.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_key_order(family: Option<&esker_family>) -> esker_slice<'_> {
    family.map_or(esker_slice::NONE, |family| {
        esker_slice::new(family.0.key_order().name().as_bytes())
    })
}

/// Compares two keys in the family's order: `order` is set to -1, 0 or 1 as `a` comes before, is, or follows `b`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_compare(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    a: esker_slice<'_>,
    b: esker_slice<'_>,
    order: Option<&mut MaybeUninit<c_int>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (a, b) = (a.get()?, b.get()?);
        let family = given(db, "db")?.family(family);
        put(order, c_int::from(family.key_order().compare(a, b) as i8));
        Ok(())
    })
}

/// The names of all families, in the order in which they were created. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_family_names(
    db: Option<&esker_db>,
    names: Option<&mut MaybeUninit<Option<Box<esker_names>>>>,
) -> Option<Box<esker_error>> {
    made(names, || {
        Ok(esker_names::new(given(db, "db")?.db.column_family_names()))
    })
}

/// The family's settings of now that are plain values, as `name=value;name=value`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_family_settings(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    settings: Option<&mut esker_buffer>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let family = given(db, "db")?.family(family);
        given(settings, "the buffer")?.0 = family.options().to_text().into_bytes();
        Ok(())
    })
}

/// Changes settings of a family while it is open: `name=value;name=value`, all or, on an error, none. They are stored with the
/// database. docs/tuning.md says which can be changed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_change_family_settings(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    settings: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        // SAFETY: the contract.
        let text = unsafe { text::string(settings, "the settings") }?;
        let parts = text.split(';').filter(|part| !part.is_empty());
        let changes = parts
            .map(|part| {
                part.split_once('=').ok_or_else(|| {
                    esker::Error::invalid(format!("'{part}' is no setting of the form name=value"))
                })
            })
            .collect::<esker::Result<Vec<_>>>()?;
        db.db.set_family_options(db.family(family), &changes)
    })
}
