//! Write batches: `leveldb_writebatch_*`.

use std::ffi::{c_char, c_void};

use esker::Mutation;
use esker_compat::batch::Batch;
use esker_compat::bytes;

/// `void put(state, key, key_len, value, value_len)`.
type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
/// `void deleted(state, key, key_len)`.
type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_create() -> *mut Batch {
    Box::into_raw(Box::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_destroy(batch: *mut Batch) {
    if !batch.is_null() {
        // SAFETY: the contract; a destroyed batch is not used again.
        drop(unsafe { Box::from_raw(batch) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_clear(batch: *mut Batch) {
    // SAFETY: the contract; a batch is used by one thread at a time.
    unsafe { &mut *batch }.clear();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut Batch,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) {
    // SAFETY: as above.
    unsafe {
        (*batch).put(None, bytes::slice(key, key_len), bytes::slice(value, value_len));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_delete(batch: *mut Batch, key: *const c_char, key_len: usize) {
    // SAFETY: as above.
    unsafe { (*batch).delete(None, bytes::slice(key, key_len)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_append(destination: *mut Batch, source: *const Batch) {
    if std::ptr::eq(destination, source) {
        // SAFETY: the contract. A batch that is added to itself is read from a copy.
        let copy = unsafe { &*source }.clone();
        // SAFETY: as above.
        unsafe { &mut *destination }.append(&copy);
    } else {
        // SAFETY: the contract; the two are not the same.
        unsafe { (*destination).append(&*source) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const Batch,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    // SAFETY: the contract; the functions take keys and values that live for the call.
    unsafe {
        for mutation in (*batch).mutations().mutations() {
            match mutation {
                Mutation::Put { key, value, .. } => put(
                    state,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                ),
                Mutation::Delete { key, .. } => deleted(state, key.as_ptr().cast(), key.len()),
                // This interface makes no others.
                _ => {}
            }
        }
    }
}
