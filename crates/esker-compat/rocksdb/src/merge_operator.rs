//! Merge operators by C functions: `rocksdb_mergeoperator_*`.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use esker::{Error, MergeOperator};
use esker_compat::comparator::{Destructor, Name};
use esker_compat::{bytes, memory};

use crate::settings::destroyed;

/// `char* full_merge(state, key, key_len, existing, existing_len, operands, operand_lens, count, success, new_len)`.
type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// `char* partial_merge(state, key, key_len, operands, operand_lens, count, success, new_len)`.
type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// `void delete_value(state, value, len)`.
type DeleteValue = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// `rocksdb_mergeoperator_t`. Options take it over; it ends with the last options or database that has it.
pub struct CMergeOperator {
    state: *mut c_void,
    destructor: Option<Destructor>,
    full_merge: FullMerge,
    partial_merge: Option<PartialMerge>,
    delete_value: Option<DeleteValue>,
    name: String,
}

// SAFETY: RocksDB's header asks that an operator can be used by several threads at once; its state is only handed to its
// own functions.
unsafe impl Send for CMergeOperator {}
// SAFETY: as above.
unsafe impl Sync for CMergeOperator {}

/// Operands as C takes them: two lists. Most merges have few operands and allocate nothing.
struct Operands<'a> {
    few: ([*const c_char; FEW], [usize; FEW]),
    many: (Vec<*const c_char>, Vec<usize>),
    operands: &'a [&'a [u8]],
}

const FEW: usize = 16;

impl<'a> Operands<'a> {
    fn new(operands: &'a [&'a [u8]]) -> Self {
        let mut few = ([std::ptr::null(); FEW], [0; FEW]);
        let mut many = (Vec::new(), Vec::new());
        if operands.len() <= FEW {
            for (i, operand) in operands.iter().enumerate() {
                few.0[i] = operand.as_ptr().cast();
                few.1[i] = operand.len();
            }
        } else {
            many.0 = operands.iter().map(|operand| operand.as_ptr().cast()).collect();
            many.1 = operands.iter().map(|operand| operand.len()).collect();
        }
        Self { few, many, operands }
    }

    fn lists(&self) -> (*const *const c_char, *const usize, c_int) {
        let count = c_int::try_from(self.operands.len()).unwrap_or(c_int::MAX);
        if self.operands.len() <= FEW {
            (self.few.0.as_ptr(), self.few.1.as_ptr(), count)
        } else {
            (self.many.0.as_ptr(), self.many.1.as_ptr(), count)
        }
    }
}

impl CMergeOperator {
    /// Copies what a merge returned, and gives it back to the program.
    ///
    /// # Safety
    /// `value` is null or what a merge function returned, with the length it said.
    unsafe fn take(&self, success: c_uchar, value: *mut c_char, len: usize) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise.
        let taken = (success != 0).then(|| unsafe { bytes::slice(value, len) }.to_vec());
        if !value.is_null() {
            // SAFETY: as above; a program without a function of its own allocated by `malloc`.
            unsafe {
                match self.delete_value {
                    Some(delete_value) => delete_value(self.state, value, len),
                    None => memory::release(value.cast()),
                }
            }
        }
        taken
    }
}

impl MergeOperator for CMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        let lists = Operands::new(operands);
        let (data, lens, count) = lists.lists();
        let (existing, existing_len) = base.map_or((std::ptr::null(), 0), |base| (base.as_ptr(), base.len()));
        let (mut success, mut len) = (0, 0);
        // SAFETY: the function's contract; all slices live for the call.
        let merged = unsafe {
            let value = (self.full_merge)(
                self.state,
                key.as_ptr().cast(),
                key.len(),
                existing.cast(),
                existing_len,
                data,
                lens,
                count,
                &raw mut success,
                &raw mut len,
            );
            self.take(success, value, len)
        };
        merged.ok_or_else(|| Error::corruption("Merge operator failed"))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial_merge = self.partial_merge?;
        let lists = Operands::new(operands);
        let (data, lens, count) = lists.lists();
        let (mut success, mut len) = (0, 0);
        // SAFETY: the function's contract; all slices live for the call.
        unsafe {
            let value = partial_merge(
                self.state,
                key.as_ptr().cast(),
                key.len(),
                data,
                lens,
                count,
                &raw mut success,
                &raw mut len,
            );
            self.take(success, value, len)
        }
    }
}

impl Drop for CMergeOperator {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the destructor's contract; once.
            unsafe { destructor(self.state) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    full_merge: FullMerge,
    partial_merge: Option<PartialMerge>,
    delete_value: Option<DeleteValue>,
    name: Name,
) -> *mut CMergeOperator {
    // SAFETY: the contract; the functions keep theirs.
    let name = unsafe { bytes::text(name(state)) }.into_owned();
    Box::into_raw(Box::new(CMergeOperator {
        state,
        destructor,
        full_merge,
        partial_merge,
        delete_value,
        name,
    }))
}

destroyed!(CMergeOperator, rocksdb_mergeoperator_destroy);

/// RocksDB's own operator: adds little-endian numbers of 64 bits; what has not 8 bytes counts as 0.
pub struct UInt64Add;

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        let parts = base.into_iter().chain(operands.iter().copied());
        let sum = parts.fold(0_u64, |sum, part| sum.wrapping_add(number(part)));
        Ok(sum.to_le_bytes().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands).ok()
    }
}
