//! Write batches: `rocksdb_writebatch_*`.
//!
//! | file | what it does |
//! |---|---|
//! | `lists` | keys and values that come in pieces (`…v`) |
//! | `iterate` | what a batch holds, told to functions of the program's |
//! | `wire` | a batch as bytes, in RocksDB's own form |

mod iterate;
mod lists;
mod wire;

use std::ffi::{c_char, c_int};

use esker::ColumnFamily;
use esker_compat::{Status, bytes, report};

use crate::families::Handle;
use crate::settings::object;

/// `rocksdb_writebatch_t`.
#[derive(Default)]
pub struct Batch {
    pub inner: esker_compat::batch::Batch,
    /// Whether a merge was added since it was last cleared.
    pub has_merges: bool,
    /// Its bytes as they were last asked for.
    wire: Vec<u8>,
}

object!(Batch, rocksdb_writebatch_create, rocksdb_writebatch_destroy);

impl Batch {
    fn single_delete(&mut self, family: Option<&ColumnFamily>, key: &[u8]) {
        self.inner.change(|batch| match family {
            None => batch.single_delete(key),
            Some(family) => batch.single_delete_cf(family, key),
        });
    }

    fn merge(&mut self, family: Option<&ColumnFamily>, key: &[u8], operand: &[u8]) {
        self.has_merges = true;
        self.inner.change(|batch| match family {
            None => batch.merge(key, operand),
            Some(family) => batch.merge_cf(family, key, operand),
        });
    }

    fn delete_range(&mut self, family: Option<&ColumnFamily>, start: &[u8], end: &[u8]) {
        self.inner.change(|batch| match family {
            None => batch.delete_range(start, end),
            Some(family) => batch.delete_range_cf(family, start, end),
        });
    }
}

/// The family of a handle.
///
/// # Safety
/// The contract.
unsafe fn family<'a>(handle: *mut Handle) -> Option<&'a ColumnFamily> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.map(|handle| &handle.family)
}

/// Memory is taken as it is needed; the engine's limit of a batch is the only one.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_create_with_params(_: usize, _: usize, _: usize, _: usize) -> *mut Batch {
    rocksdb_writebatch_create()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_clear(batch: *mut Batch) {
    // SAFETY: the contract; a batch is used by one thread at a time.
    let batch = unsafe { &mut *batch };
    batch.inner.clear();
    batch.has_merges = false;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_count(batch: *mut Batch) -> c_int {
    // SAFETY: as above.
    let count = unsafe { &*batch }.inner.mutations().len();
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// Functions that add a mutation of a key and a value (or the end of a range), for the default family and for one.
macro_rules! of_two {
    ($($name:ident, $name_cf:ident => |$batch:ident, $family:ident, $key:ident, $value:ident| $add:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                batch: *mut Batch,
                key: *const c_char,
                key_len: usize,
                value: *const c_char,
                value_len: usize,
            ) {
                // SAFETY: as above.
                unsafe { $name_cf(batch, std::ptr::null_mut(), key, key_len, value, value_len) };
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name_cf(
                batch: *mut Batch,
                handle: *mut Handle,
                key: *const c_char,
                key_len: usize,
                value: *const c_char,
                value_len: usize,
            ) {
                // SAFETY: as above.
                let ($batch, $family, $key, $value) = unsafe {
                    (&mut *batch, family(handle), bytes::slice(key, key_len), bytes::slice(value, value_len))
                };
                $add;
            }
        )*
    };
}

of_two! {
    rocksdb_writebatch_put, rocksdb_writebatch_put_cf =>
        |batch, family, key, value| batch.inner.put(family, key, value);
    rocksdb_writebatch_merge, rocksdb_writebatch_merge_cf =>
        |batch, family, key, value| batch.merge(family, key, value);
    rocksdb_writebatch_delete_range, rocksdb_writebatch_delete_range_cf =>
        |batch, family, start, end| batch.delete_range(family, start, end);
}

/// Functions that add a mutation of a key, for the default family and for one.
macro_rules! of_one {
    ($($name:ident, $name_cf:ident => |$batch:ident, $family:ident, $key:ident| $add:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(batch: *mut Batch, key: *const c_char, key_len: usize) {
                // SAFETY: as above.
                unsafe { $name_cf(batch, std::ptr::null_mut(), key, key_len) };
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name_cf(
                batch: *mut Batch,
                handle: *mut Handle,
                key: *const c_char,
                key_len: usize,
            ) {
                // SAFETY: as above.
                let ($batch, $family, $key) = unsafe {
                    let key = bytes::slice(key, key_len);
                    (&mut *batch, family(handle), key)
                };
                $add;
            }
        )*
    };
}

of_one! {
    rocksdb_writebatch_delete, rocksdb_writebatch_delete_cf =>
        |batch, family, key| batch.inner.delete(family, key);
    rocksdb_writebatch_singledelete, rocksdb_writebatch_singledelete_cf =>
        |batch, family, key| batch.single_delete(family, key);
}

/// No meaning here: the log holds mutations and nothing else.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_put_log_data(_: *mut Batch, _: *const c_char, _: usize) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_set_save_point(batch: *mut Batch) {
    // SAFETY: as above.
    unsafe { &mut *batch }.inner.change(|batch| {
        batch.set_save_point();
        Ok(())
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_rollback_to_save_point(batch: *mut Batch, error: *mut *mut c_char) {
    let mut known = false;
    // SAFETY: as above.
    unsafe {
        (*batch).inner.change(|batch| {
            known = batch.roll_back_to_save_point();
            Ok(())
        });
        report(error, (), || {
            known.then_some(()).ok_or(Status::Text("NotFound: ".into()))
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_pop_save_point(batch: *mut Batch, error: *mut *mut c_char) {
    let mut known = false;
    // SAFETY: as above.
    unsafe {
        (*batch).inner.change(|batch| {
            known = batch.pop_save_point();
            Ok(())
        });
        report(error, (), || {
            known.then_some(()).ok_or(Status::Text("NotFound: ".into()))
        });
    }
}
