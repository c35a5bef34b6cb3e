//! Single writes, and the commit of batches.

use std::ffi::c_char;

use esker::Mutation;
use esker_compat::{Result, Status, bytes, report};

use crate::batch::Batch;
use crate::families::Handle;
use crate::open::Database;
use crate::write_options::WriteSettings;

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_put(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (key, value) = (bytes::slice(key, key_len), bytes::slice(value, value_len));
        report(error, (), || {
            Ok((*database).db.put_with(key, value, (*options).engine()?)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_put_cf(
    database: *mut Database,
    options: *const WriteSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (key, value) = (bytes::slice(key, key_len), bytes::slice(value, value_len));
        report(error, (), || {
            let options = (*options).engine()?;
            Ok((*database)
                .db
                .put_cf_with(&(*family).family, key, value, options)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_delete(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_delete_cf(database, options, default, key, key_len, error);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_delete_cf(
    database: *mut Database,
    options: *const WriteSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let key = bytes::slice(key, key_len);
        report(error, (), || {
            let options = (*options).engine()?;
            Ok((*database).db.delete_cf_with(&(*family).family, key, options)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_singledelete(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_singledelete_cf(database, options, default, key, key_len, error);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_singledelete_cf(
    database: *mut Database,
    options: *const WriteSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let key = bytes::slice(key, key_len);
        report(error, (), || {
            let options = (*options).engine()?;
            Ok((*database)
                .db
                .single_delete_cf_with(&(*family).family, key, options)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_delete_range_cf(
    database: *mut Database,
    options: *const WriteSettings,
    family: *mut Handle,
    start: *const c_char,
    start_len: usize,
    end: *const c_char,
    end_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (start, end) = (bytes::slice(start, start_len), bytes::slice(end, end_len));
        report(error, (), || {
            if (*family).order.compare(start, end).is_gt() {
                return Err(Status::invalid("end key comes before start key"));
            }
            let options = (*options).engine()?;
            Ok((*database)
                .db
                .delete_range_cf_with(&(*family).family, start, end, options)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_merge(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_merge_cf(database, options, default, key, key_len, value, value_len, error);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_merge_cf(
    database: *mut Database,
    options: *const WriteSettings,
    family: *mut Handle,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (key, value) = (bytes::slice(key, key_len), bytes::slice(value, value_len));
        report(error, (), || {
            if !(*family).merges {
                return Err(Status::refused("Provide a merge_operator when opening DB"));
            }
            let options = (*options).engine()?;
            Ok((*database)
                .db
                .merge_cf_with(&(*family).family, key, value, options)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_write(
    database: *mut Database,
    options: *const WriteSettings,
    batch: *mut Batch,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; a batch is used by one thread at a time.
    unsafe {
        report(error, (), || {
            let (database, batch) = (&*database, &mut *batch);
            if batch.has_merges {
                check_merges(database, batch)?;
            }
            batch.inner.commit(&database.db, (*options).engine()?)
        });
    }
}

/// A merge for a family without operator could be stored, but never read.
fn check_merges(database: &Database, batch: &Batch) -> Result<()> {
    let mut mutations = batch.inner.mutations().mutations();
    let lost = |mutation| matches!(mutation, Mutation::Merge { family, .. } if !database.merges(family));
    match mutations.any(lost) {
        true => Err(Status::invalid(
            "Merge requires `ColumnFamilyOptions::merge_operator != nullptr`",
        )),
        false => Ok(()),
    }
}
