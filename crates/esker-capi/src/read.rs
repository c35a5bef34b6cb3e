//! Point reads: values that are pinned where they are, not copied.

use std::mem::MaybeUninit;

use esker::{PinnedValue, ReadOptions, Result};

use crate::boundary::{answer, given, put, release};
use crate::call_options::esker_read_options;
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::list::lend;
use crate::slice::{esker_range, esker_slice, slices};
use crate::snapshot::esker_snapshot;

/// Holds the value that a get found, in the block cache where it is there. Used again and again: each get lets go of what it held.
/// For one thread at a time.
#[derive(Default)]
pub struct esker_value(Option<PinnedValue>);

impl esker_value {
    /// Holds what `find` finds, and says where it is; nothing after an error. What it held stays until then: it may be the key.
    #[inline]
    pub fn hold<'a>(
        &'a mut self,
        slice: Option<&mut MaybeUninit<esker_slice<'a>>>,
        find: impl FnOnce() -> Result<Option<PinnedValue>>,
    ) -> Result<()> {
        let found = find();
        self.0 = None;
        self.0 = found?;
        put(slice, esker_slice::optional(self.0.as_deref()));
        Ok(())
    }
}

/// One that holds nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_value_create() -> Box<esker_value> {
    Box::default()
}

/// Frees it with what it holds.
#[unsafe(no_mangle)]
pub extern "C" fn esker_value_free(value: Option<Box<esker_value>>) {
    release(value);
}

/// Lets go of what it holds.
#[unsafe(no_mangle)]
pub extern "C" fn esker_value_reset(value: Option<&mut esker_value>) {
    if let Some(value) = value {
        value.0 = None;
    }
}

/// What it holds, until it is used again or freed; data is null if it holds nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_value_slice(value: Option<&esker_value>) -> esker_slice<'_> {
    esker_slice::optional(value.and_then(|value| value.0.as_deref()))
}

/// Finds the value of `key` (which may be what `value` holds): `value` holds it from then on, and `slice` (may be null) says where it is. Data is null if the key has none,
/// which is no error; of an empty value it is not. Costs one storage read at most where filters and indexes are in memory.
/// Errors: `ESKER_IO`, `ESKER_CORRUPTION`, `ESKER_CLOSED`; `value` holds nothing then.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_get<'a>(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    options: Option<&esker_read_options>,
    value: Option<&'a mut esker_value>,
    slice: Option<&mut MaybeUninit<esker_slice<'a>>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(value, "the value")?.hold(slice, || {
            let (db, key) = (given(db, "db")?, key.get()?);
            let family = db.family(family);
            match options {
                None => db.db.get_cf(family, key),
                Some(options) => db.db.get_with(family, key, &options.0),
            }
        })
    })
}

/// Holds the values that a multi-get found. Used again and again. For one thread at a time.
#[derive(Default)]
pub struct esker_values {
    slices: Vec<esker_slice<'static>>,
    held: Vec<Option<PinnedValue>>,
}

impl esker_values {
    /// Holds what `find` finds; nothing after an error. What it held stays until then: it may be the keys.
    pub fn hold(&mut self, find: impl FnOnce() -> Result<Vec<Option<PinnedValue>>>) -> Result<()> {
        let found = find();
        self.slices.clear();
        self.held.clear();
        self.held = found?;
        let slices = self.held.iter().map(|value| match value {
            // SAFETY: a pinned value stays where it is as long as it is held, which is as long as its slice stands here.
            Some(value) => unsafe { lend(value) },
            None => esker_slice::NONE,
        });
        self.slices.extend(slices);
        Ok(())
    }
}

/// One that holds nothing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_values_create() -> Box<esker_values> {
    Box::default()
}

/// Frees it with what it holds.
#[unsafe(no_mangle)]
pub extern "C" fn esker_values_free(values: Option<Box<esker_values>>) {
    release(values);
}

/// What it holds, in the order of the keys, until it is used again or freed; `count` is set to how many. Data is null for keys
/// without a value.
#[unsafe(no_mangle)]
pub extern "C" fn esker_values_items(
    values: Option<&esker_values>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_slice<'static> {
    let items = values.map_or(&[][..], |values| &values.slices);
    put(count, items.len());
    items.as_ptr()
}

/// Finds the values of `count` keys, all as of one moment: blocks that are needed are read together. Keys may come in any order and
/// more than once. Errors: as `esker_db_get`, if one of them fails; `values` holds nothing then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_multi_get(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    keys: *const esker_slice<'_>,
    count: usize,
    options: Option<&esker_read_options>,
    values: Option<&mut esker_values>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(values, "the values")?.hold(|| {
            let db = given(db, "db")?;
            // SAFETY: the contract.
            let keys = unsafe { slices(keys, count) }?;
            let defaults = ReadOptions::default();
            let options = options.map_or(&defaults, |options| &options.0);
            db.db.multi_get(db.family(family), &keys, options)
        })
    })
}

/// Whether `key` may have a value: false is certain, true a guess from memtables and filters, without a block read.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_key_may_exist(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    may_exist: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, key) = (given(db, "db")?, key.get()?);
        let may = db.db.key_may_exist(db.family(family), key)?;
        put(may_exist, may);
        Ok(())
    })
}

/// Whether `key` was written since the snapshot was taken.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_changed_since(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    key: esker_slice<'_>,
    snapshot: Option<&esker_snapshot>,
    changed: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, key) = (given(db, "db")?, key.get()?);
        let snapshot = given(snapshot, "the snapshot")?;
        put(changed, db.db.changed_since(db.family(family), key, &snapshot.0)?);
        Ok(())
    })
}

/// Whether any key from `start` up to `end` (exclusive; data is null: to the last key) was written since the snapshot was taken.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_range_changed_since(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    range: esker_range<'_>,
    snapshot: Option<&esker_snapshot>,
    changed: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let (start, end) = (range.start.get()?, range.end.get_optional()?);
        let snapshot = given(snapshot, "the snapshot")?;
        let family = db.family(family);
        put(
            changed,
            db.db.range_changed_since(family, start, end, &snapshot.0)?,
        );
        Ok(())
    })
}
