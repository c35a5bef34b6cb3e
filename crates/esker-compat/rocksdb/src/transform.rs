//! Comparators and prefixes of keys: `rocksdb_comparator_*`, `rocksdb_slicetransform_*`.

use std::ffi::{c_char, c_uchar, c_void};

use esker_compat::comparator::{CComparator, Compare, Destructor, Name};

use crate::settings::destroyed;

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Compare,
    name: Name,
) -> *mut CComparator {
    // SAFETY: the contract; the functions keep theirs.
    Box::into_raw(Box::new(unsafe {
        CComparator::new(state, destructor, compare, name)
    }))
}

destroyed!(CComparator, rocksdb_comparator_destroy);

/// `char* transform(state, key, len, result_len)`.
type Transformation = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
/// `unsigned char in_domain(state, key, len)`.
type InDomain = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// The part of keys that prefix scans look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefix {
    /// None.
    #[default]
    None,
    /// The first so many bytes.
    Fixed(usize),
    /// What a function of the program's says. The engine does not ask it: filters are of whole keys, and scans that
    /// would have to stop at the prefix are refused.
    Own,
}

/// `rocksdb_slicetransform_t`.
pub struct Transform {
    prefix: Prefix,
    state: *mut c_void,
    destructor: Option<Destructor>,
}

impl Transform {
    /// What it means here.
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }

    fn builtin(prefix: Prefix) -> *mut Self {
        Box::into_raw(Box::new(Self {
            prefix,
            state: std::ptr::null_mut(),
            destructor: None,
        }))
    }
}

impl Drop for Transform {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the destructor's contract; once.
            unsafe { destructor(self.state) };
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    _: Option<Transformation>,
    _: Option<InDomain>,
    _: Option<Name>,
) -> *mut Transform {
    Box::into_raw(Box::new(Transform {
        prefix: Prefix::Own,
        state,
        destructor,
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_create_fixed_prefix(len: usize) -> *mut Transform {
    Transform::builtin(Prefix::Fixed(len))
}

/// The prefix is the whole key, so that a scan within it is that key.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_create_noop() -> *mut Transform {
    Transform::builtin(Prefix::Own)
}

destroyed!(Transform, rocksdb_slicetransform_destroy);
