//! Merge operators by functions of the program's.

use std::ffi::{c_char, c_void};

use esker::{Error, MergeOperator, Result};

use crate::boundary::given;
use crate::buffer::esker_buffer;
use crate::comparator::{State, name_of};
use crate::slice::esker_slice;

/// Folds operands into values. Its functions are called by several threads at once, and must not throw; they must be
/// deterministic, and independent of how operands are grouped.
#[repr(C)]
pub struct esker_merge_operator {
    /// Given to the functions.
    pub state: *mut c_void,
    /// Called once with `state` when nothing uses the operator any more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Stored with the database: opening with another name is refused. Copied.
    pub name: *const c_char,
    /// Puts into `value`, which is empty, what comes of applying the operands (the oldest first) to `base` (data is null: the
    /// key was absent or deleted). False: they can't be applied, and reads of the key fail with `ESKER_CORRUPTION`.
    pub full_merge: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            key: esker_slice<'_>,
            base: esker_slice<'_>,
            operands: *const esker_slice<'_>,
            count: usize,
            value: &mut esker_buffer,
        ) -> bool,
    >,
    /// Puts into `operand`, which is empty, one that has the effect of the operands one after the other. False: there is none. May
    /// be null.
    pub partial_merge: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            key: esker_slice<'_>,
            operands: *const esker_slice<'_>,
            count: usize,
            operand: &mut esker_buffer,
        ) -> bool,
    >,
}

type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    esker_slice<'_>,
    esker_slice<'_>,
    *const esker_slice<'_>,
    usize,
    &mut esker_buffer,
) -> bool;
type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    esker_slice<'_>,
    *const esker_slice<'_>,
    usize,
    &mut esker_buffer,
) -> bool;

/// The operator as the engine sees it.
pub struct Merging {
    state: State,
    name: String,
    full_merge: FullMerge,
    partial_merge: Option<PartialMerge>,
}

impl Merging {
    /// Takes the functions, and on success the state.
    ///
    /// # Safety
    /// The contract, for the name; the functions keep theirs.
    pub unsafe fn new(given_by: &esker_merge_operator) -> Result<Self> {
        let full_merge = given(given_by.full_merge, "the function full_merge")?;
        // SAFETY: the caller's promise.
        let name = unsafe { name_of(given_by.name) }?;
        Ok(Self {
            state: State::new(given_by.state, given_by.destroy),
            name,
            full_merge,
            partial_merge: given_by.partial_merge,
        })
    }
}

fn lent<'a>(operands: &[&'a [u8]]) -> Vec<esker_slice<'a>> {
    operands.iter().map(|operand| esker_slice::new(operand)).collect()
}

impl MergeOperator for Merging {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let operands = lent(operands);
        let mut value = esker_buffer::default();
        // SAFETY: the function's contract; all slices live for the call.
        let merged = unsafe {
            (self.full_merge)(
                self.state.pointer,
                esker_slice::new(key),
                esker_slice::optional(base),
                operands.as_ptr(),
                operands.len(),
                &mut value,
            )
        };
        if merged {
            return Ok(value.0);
        }
        let (name, key) = (&self.name, key.escape_ascii());
        Err(Error::corruption(format!(
            "merge operator '{name}' can't apply the operands of key \"{key}\""
        )))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial_merge = self.partial_merge?;
        let operands = lent(operands);
        let mut operand = esker_buffer::default();
        // SAFETY: as above.
        let merged = unsafe {
            partial_merge(
                self.state.pointer,
                esker_slice::new(key),
                operands.as_ptr(),
                operands.len(),
                &mut operand,
            )
        };
        merged.then_some(operand.0)
    }
}
