//! Iterators and snapshots.

use std::ffi::c_char;

use esker::{Iter, Snapshot};
use esker_compat::cursor::Cursor;
use esker_compat::{Result, bytes, report, survive};

use crate::families::Handle;
use crate::open::Database;
use crate::read_options::ReadSettings;

esker_compat::iterator_functions!(
    rocksdb_iter_destroy,
    rocksdb_iter_valid,
    rocksdb_iter_seek_to_first,
    rocksdb_iter_seek_to_last,
    rocksdb_iter_seek,
    rocksdb_iter_next,
    rocksdb_iter_prev,
    rocksdb_iter_key,
    rocksdb_iter_value,
    rocksdb_iter_get_error
);

/// # Safety
/// The contract; bounds of the options are readable.
unsafe fn iterator(database: &Database, options: &ReadSettings, family: &Handle) -> Result<Iter> {
    survive(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { options.scan(family) }?;
        Ok(database.db.iter_cf(&family.family, options)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_iterator(
    database: *mut Database,
    options: *const ReadSettings,
) -> *mut Cursor {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_create_iterator_cf(database, options, default)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_iterator_cf(
    database: *mut Database,
    options: *const ReadSettings,
    family: *mut Handle,
) -> *mut Cursor {
    // SAFETY: the contract.
    unsafe {
        let options = &*options;
        let made = iterator(&*database, options, &*family);
        Box::into_raw(Box::new(Cursor::new(made).tailing(options.tailing())))
    }
}

/// Iterators that see their families as of the same moment.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_iterators(
    database: *mut Database,
    options: *mut ReadSettings,
    families: *mut *mut Handle,
    iterators: *mut *mut Cursor,
    count: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; both lists have `count` entries, the second writable ones.
    unsafe {
        report(error, (), || {
            let (database, options) = (&*database, &*options);
            let snapshot = database.db.snapshot();
            let mut made = Vec::with_capacity(count);
            for &family in bytes::array(families, count) {
                let mut scan = options.scan(&*family)?;
                scan.snapshot.get_or_insert_with(|| snapshot.clone());
                made.push(database.db.iter_cf(&(*family).family, scan)?);
            }
            for (i, iter) in made.into_iter().enumerate() {
                *iterators.add(i) = Box::into_raw(Box::new(Cursor::new(Ok(iter))));
            }
            Ok(())
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_seek_for_prev(iter: *mut Cursor, key: *const c_char, key_len: usize) {
    // SAFETY: the contract; an iterator is used by one thread at a time.
    let (iter, key) = unsafe { (&mut *iter, bytes::slice(key, key_len)) };
    iter.position(|iter| iter.seek_for_prev(key));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_refresh(iter: *const Cursor, error: *mut *mut c_char) {
    // SAFETY: the contract; the header's `const` notwithstanding, it moves the iterator.
    unsafe { report(error, (), || (*iter.cast_mut()).refresh()) };
}

/// `rocksdb_slice_t`.
#[repr(C)]
struct Slice {
    data: *const c_char,
    size: usize,
}

impl Slice {
    fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_key_slice(iter: *const Cursor) -> Slice {
    // SAFETY: the contract.
    Slice::of(unsafe { &*iter }.key())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_value_slice(iter: *const Cursor) -> Slice {
    // SAFETY: the contract.
    Slice::of(unsafe { &*iter }.value())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_snapshot(database: *mut Database) -> *const Snapshot {
    // SAFETY: the contract.
    Box::into_raw(Box::new(unsafe { &*database }.db.snapshot()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_release_snapshot(_: *mut Database, snapshot: *const Snapshot) {
    if !snapshot.is_null() {
        // SAFETY: the contract; a released snapshot is not used again.
        drop(unsafe { Box::from_raw(snapshot.cast_mut()) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_snapshot_get_sequence_number(snapshot: *const Snapshot) -> u64 {
    // SAFETY: the contract.
    unsafe { &*snapshot }.sequence()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_latest_sequence_number(database: *mut Database) -> u64 {
    // SAFETY: the contract.
    unsafe { &*database }.db.last_sequence()
}
