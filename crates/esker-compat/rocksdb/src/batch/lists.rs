//! Keys and values that come in pieces: the functions whose names end in `v`.

use std::ffi::{c_char, c_int};

use esker_compat::bytes;

use super::{Batch, family};
use crate::families::Handle;

/// The pieces put together.
///
/// # Safety
/// `data` and `lens` have `count` entries, pieces of these lengths.
unsafe fn joined(count: c_int, data: *const *const c_char, lens: *const usize) -> Vec<u8> {
    let count = usize::try_from(count).unwrap_or(0);
    let mut whole = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        for (&piece, &len) in bytes::array(data, count).iter().zip(bytes::array(lens, count)) {
            whole.extend_from_slice(bytes::slice(piece, len));
        }
    }
    whole
}

macro_rules! of_two {
    ($($name:ident, $name_cf:ident => |$batch:ident, $family:ident, $key:ident, $value:ident| $add:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                batch: *mut Batch,
                key_count: c_int,
                keys: *const *const c_char,
                key_lens: *const usize,
                value_count: c_int,
                values: *const *const c_char,
                value_lens: *const usize,
            ) {
                let default = std::ptr::null_mut();
                // SAFETY: the contract; a batch is used by one thread at a time.
                unsafe {
                    $name_cf(batch, default, key_count, keys, key_lens, value_count, values, value_lens);
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name_cf(
                batch: *mut Batch,
                handle: *mut Handle,
                key_count: c_int,
                keys: *const *const c_char,
                key_lens: *const usize,
                value_count: c_int,
                values: *const *const c_char,
                value_lens: *const usize,
            ) {
                // SAFETY: as above; the lists have as many entries as their counts say.
                let ($batch, $family, $key, $value) = unsafe {
                    (
                        &mut *batch,
                        family(handle),
                        &joined(key_count, keys, key_lens),
                        &joined(value_count, values, value_lens),
                    )
                };
                $add;
            }
        )*
    };
}

of_two! {
    rocksdb_writebatch_putv, rocksdb_writebatch_putv_cf =>
        |batch, family, key, value| batch.inner.put(family, key, value);
    rocksdb_writebatch_mergev, rocksdb_writebatch_mergev_cf =>
        |batch, family, key, value| batch.merge(family, key, value);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_deletev(
    batch: *mut Batch,
    count: c_int,
    keys: *const *const c_char,
    lens: *const usize,
) {
    // SAFETY: as above.
    unsafe { rocksdb_writebatch_deletev_cf(batch, std::ptr::null_mut(), count, keys, lens) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_deletev_cf(
    batch: *mut Batch,
    handle: *mut Handle,
    count: c_int,
    keys: *const *const c_char,
    lens: *const usize,
) {
    // SAFETY: as above.
    unsafe { (*batch).inner.delete(family(handle), &joined(count, keys, lens)) };
}

/// Start and end have as many pieces.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_delete_rangev(
    batch: *mut Batch,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
) {
    let default = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe { rocksdb_writebatch_delete_rangev_cf(batch, default, count, starts, start_lens, ends, end_lens) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_delete_rangev_cf(
    batch: *mut Batch,
    handle: *mut Handle,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
) {
    // SAFETY: as above.
    unsafe {
        let (start, end) = (joined(count, starts, start_lens), joined(count, ends, end_lens));
        (*batch).delete_range(family(handle), &start, &end);
    }
}
