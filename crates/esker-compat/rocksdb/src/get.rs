//! Point reads: copied, pinned, into a buffer, and several at once.

use std::ffi::{c_char, c_uchar};

use esker::{PinnedValue, ReadOptions};
use esker_compat::{Result, bytes, guard, memory, report, survive};

use crate::families::Handle;
use crate::open::Database;
use crate::read_options::ReadSettings;
use crate::settings::destroyed;

/// # Safety
/// The contract.
#[inline]
unsafe fn get(
    database: *mut Database,
    options: *const ReadSettings,
    family: &Handle,
    key: *const c_char,
    key_len: usize,
) -> Result<Option<PinnedValue>> {
    // SAFETY: the caller's promise.
    unsafe {
        let (database, key) = (&*database, bytes::slice(key, key_len));
        Ok(database.db.get_with(&family.family, key, (*options).point()?)?)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    error: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_get_cf(database, options, default, key, key_len, value_len, error)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_cf(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    error: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: the contract; `value_len` is writable.
    unsafe {
        *value_len = 0;
        report(error, std::ptr::null_mut(), || {
            let value = get(database, options, &*family, key, key_len)?;
            Ok(value.map_or(std::ptr::null_mut(), |value| {
                *value_len = value.len();
                memory::copy(&value)
            }))
        })
    }
}

/// `rocksdb_pinnableslice_t` is a [`PinnedValue`]: what lies in the block cache is not copied.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_pinned(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) -> *mut PinnedValue {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_get_pinned_cf(database, options, default, key, key_len, error)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_pinned_cf(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) -> *mut PinnedValue {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            let value = get(database, options, &*family, key, key_len)?;
            Ok(value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value))))
        })
    }
}

destroyed!(PinnedValue, rocksdb_pinnableslice_destroy);

/// Null stands for a value that was not found.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_pinnableslice_value(
    value: *const PinnedValue,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the contract; `len` is writable.
    unsafe {
        match value.as_ref() {
            None => {
                *len = 0;
                std::ptr::null()
            }
            Some(value) => {
                *len = value.len();
                value.as_ptr().cast()
            }
        }
    }
}

/// The same as [`rocksdb_get_pinned`]; RocksDB has two names for it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_pinned_v2(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) -> *mut PinnedValue {
    // SAFETY: the contract.
    unsafe { rocksdb_get_pinned(database, options, key, key_len, error) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_pinned_cf_v2(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) -> *mut PinnedValue {
    // SAFETY: the contract.
    unsafe { rocksdb_get_pinned_cf(database, options, family, key, key_len, error) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_pinnable_handle_get_value(
    value: *const PinnedValue,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the contract.
    unsafe { rocksdb_pinnableslice_value(value, len) }
}

destroyed!(PinnedValue, rocksdb_pinnable_handle_destroy);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_into_buffer(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    buffer: *mut c_char,
    buffer_len: usize,
    value_len: *mut usize,
    found: *mut c_uchar,
    error: *mut *mut c_char,
) -> c_uchar {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_get_into_buffer_cf(
            database, options, default, key, key_len, buffer, buffer_len, value_len, found, error,
        )
    }
}

/// Copies the value where it fits; 0 where it does not, with its length said.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_into_buffer_cf(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    buffer: *mut c_char,
    buffer_len: usize,
    value_len: *mut usize,
    found: *mut c_uchar,
    error: *mut *mut c_char,
) -> c_uchar {
    // SAFETY: the contract; the buffer is writable for its length, `value_len` and `found` are writable.
    unsafe {
        (*value_len, *found) = (0, 0);
        report(error, 0, || {
            let Some(value) = get(database, options, &*family, key, key_len)? else {
                return Ok(0);
            };
            (*value_len, *found) = (value.len(), 1);
            if value.len() > buffer_len {
                return Ok(0);
            }
            std::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast(), value.len());
            Ok(1)
        })
    }
}

/// Whether the key may be there; the value is not fetched.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_key_may_exist(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    value_len: *mut usize,
    timestamp: *const c_char,
    timestamp_len: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_key_may_exist_cf(
            database,
            options,
            default,
            key,
            key_len,
            value,
            value_len,
            timestamp,
            timestamp_len,
            value_found,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_key_may_exist_cf(
    database: *mut Database,
    _: *const ReadSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    _: *mut *mut c_char,
    _: *mut usize,
    _: *const c_char,
    _: usize,
    value_found: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the contract; `value_found` is null or writable.
    unsafe {
        if let Some(value_found) = value_found.as_mut() {
            *value_found = 0;
        }
        let (database, family, key) = (&*database, &*family, bytes::slice(key, key_len));
        let known = survive(|| Ok(database.db.key_may_exist(&family.family, key)?));
        // What can't be told may be there.
        known.unwrap_or(true).into()
    }
}

/// What a read of several keys gave: values in the order of the keys, or one error for all.
fn multi_get(
    database: &Database,
    options: &ReadSettings,
    family: &Handle,
    keys: &[&[u8]],
) -> Result<Vec<Option<PinnedValue>>> {
    survive(|| Ok(database.db.multi_get(&family.family, keys, options.point()?)?))
}

/// # Safety
/// `data` and `lens` have `count` entries, keys of these lengths.
unsafe fn keys<'a>(data: *const *const c_char, lens: *const usize, count: usize) -> Vec<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe {
        let pairs = bytes::array(data, count).iter().zip(bytes::array(lens, count));
        pairs.map(|(&key, &len)| bytes::slice(key, len)).collect()
    }
}

/// # Safety
/// `value` and `len` are writable, `error` is writable: what it holds is not looked at.
unsafe fn answer(
    result: Result<Option<PinnedValue>>,
    value: *mut *mut c_char,
    len: *mut usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the caller's promise.
    unsafe {
        (*value, *len, *error) = (std::ptr::null_mut(), 0, std::ptr::null_mut());
        match result {
            Ok(None) => {}
            Ok(Some(found)) => (*value, *len) = (memory::copy(&found), found.len()),
            Err(status) => guard::store(error, &status),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_multi_get(
    database: *mut Database,
    options: *const ReadSettings,
    count: usize,
    data: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errors: *mut *mut c_char,
) {
    // SAFETY: the contract; every list has `count` entries, the last three writable ones.
    unsafe {
        let database = &*database;
        let found = multi_get(database, &*options, &database.default, &keys(data, lens, count));
        for (i, result) in each(found, count).enumerate() {
            answer(result, values.add(i), value_lens.add(i), errors.add(i));
        }
    }
}

/// One result for each key.
fn each(
    found: Result<Vec<Option<PinnedValue>>>,
    count: usize,
) -> Box<dyn Iterator<Item = Result<Option<PinnedValue>>>> {
    match found {
        Ok(found) => Box::new(found.into_iter().map(Ok)),
        Err(status) => Box::new((0..count).map(move |_| Err(status.clone()))),
    }
}

/// Keys of several families, all read as of one moment.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_multi_get_cf(
    database: *mut Database,
    options: *const ReadSettings,
    families: *const *const Handle,
    count: usize,
    data: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errors: *mut *mut c_char,
) {
    // SAFETY: the contract; every list has `count` entries, the last three writable ones.
    unsafe {
        let database = &*database;
        let moment = (*options).point().map(|options| {
            let mut options: ReadOptions = options.clone();
            options.snapshot.get_or_insert_with(|| database.db.snapshot());
            options
        });
        let families = bytes::array(families, count);
        for (i, key) in keys(data, lens, count).into_iter().enumerate() {
            let result = match &moment {
                Ok(options) => survive(|| Ok(database.db.get_with(&(*families[i]).family, key, options)?)),
                Err(status) => Err(status.clone()),
            };
            answer(result, values.add(i), value_lens.add(i), errors.add(i));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
    count: usize,
    data: *const *const c_char,
    lens: *const usize,
    values: *mut *mut PinnedValue,
    errors: *mut *mut c_char,
    _: bool,
) {
    // SAFETY: the contract; every list has `count` entries, the last two writable ones.
    unsafe {
        let found = multi_get(&*database, &*options, &*family, &keys(data, lens, count));
        for (i, result) in each(found, count).enumerate() {
            let (value, error) = (values.add(i), errors.add(i));
            (*value, *error) = (std::ptr::null_mut(), std::ptr::null_mut());
            match result {
                Ok(None) => {}
                Ok(Some(found)) => *value = Box::into_raw(Box::new(found)),
                Err(status) => guard::store(error, &status),
            }
        }
    }
}
