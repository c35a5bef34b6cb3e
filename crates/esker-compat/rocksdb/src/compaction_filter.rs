//! Compaction filters: they can be made and handed to options, so that programs load; opening with one is refused.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use esker_compat::comparator::{Destructor, Name};

use crate::settings::destroyed;

/// `unsigned char filter(state, level, key, key_len, value, value_len, new_value, new_len, value_changed)`.
type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;
/// `rocksdb_compactionfilter_t* create(state, context)`.
type Create = unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut CompactionFilter;

/// `rocksdb_compactionfilter_t` and `rocksdb_compactionfilterfactory_t`.
pub struct CompactionFilter {
    state: *mut c_void,
    destructor: Option<Destructor>,
}

impl Drop for CompactionFilter {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the destructor's contract; once.
            unsafe { destructor(self.state) };
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    _: Option<Filter>,
    _: Option<Name>,
) -> *mut CompactionFilter {
    Box::into_raw(Box::new(CompactionFilter { state, destructor }))
}

destroyed!(CompactionFilter, rocksdb_compactionfilter_destroy);

/// No meaning here.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilter_set_ignore_snapshots(_: *mut CompactionFilter, _: c_uchar) {}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    _: Option<Create>,
    _: Option<Name>,
) -> *mut CompactionFilter {
    Box::into_raw(Box::new(CompactionFilter { state, destructor }))
}

destroyed!(CompactionFilter, rocksdb_compactionfilterfactory_destroy);
