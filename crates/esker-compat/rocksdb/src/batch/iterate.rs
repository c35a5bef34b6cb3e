//! What a batch holds, told to functions of the program's.

use std::ffi::{c_char, c_void};

use esker::Mutation;

use super::Batch;

/// `void put(state, key, key_len, value, value_len)`.
type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
/// `void deleted(state, key, key_len)`.
type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
/// `void put_cf(state, family, key, key_len, value, value_len)`; also of merges.
type PutCf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
/// `void deleted_cf(state, family, key, key_len)`.
type DeletedCf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);

/// Puts and deletes up to the first mutation of another family than the default one, or of a range: RocksDB stops there.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate(
    batch: *mut Batch,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    // SAFETY: the contract; keys and values live for the calls.
    unsafe {
        for mutation in (*batch).inner.mutations().mutations() {
            match mutation {
                Mutation::Put {
                    family: 0,
                    key,
                    value,
                } => {
                    put(
                        state,
                        key.as_ptr().cast(),
                        key.len(),
                        value.as_ptr().cast(),
                        value.len(),
                    );
                }
                Mutation::Delete { family: 0, key } => deleted(state, key.as_ptr().cast(), key.len()),
                Mutation::Merge { family: 0, .. } | Mutation::SingleDelete { family: 0, .. } => {}
                _ => return,
            }
        }
    }
}

/// Puts, deletes and merges of all families, up to the first range or single delete of another family than the
/// default one: RocksDB stops there.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate_cf(
    batch: *mut Batch,
    state: *mut c_void,
    put: PutCf,
    deleted: DeletedCf,
    merge: PutCf,
) {
    // SAFETY: the contract; keys and values live for the calls.
    unsafe {
        for mutation in (*batch).inner.mutations().mutations() {
            match mutation {
                Mutation::Put { family, key, value } => put(
                    state,
                    family,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                ),
                Mutation::Merge { family, key, operand } => merge(
                    state,
                    family,
                    key.as_ptr().cast(),
                    key.len(),
                    operand.as_ptr().cast(),
                    operand.len(),
                ),
                Mutation::Delete { family, key } => deleted(state, family, key.as_ptr().cast(), key.len()),
                Mutation::SingleDelete { family: 0, .. } => {}
                _ => return,
            }
        }
    }
}
