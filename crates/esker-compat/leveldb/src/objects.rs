//! Comparators, filter policies, caches and environments.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use esker_compat::comparator::{CComparator, Compare, Destructor, Name};
use esker_compat::memory;

/// `char* create_filter(state, keys, key_lens, count, filter_len)`.
type CreateFilter =
    unsafe extern "C" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char;
/// `uint8_t key_may_match(state, key, key_len, filter, filter_len)`.
type KeyMayMatch = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_uchar;

/// `leveldb_cache_t`: its size is all that counts; each database has a cache of its own.
pub struct Cache {
    pub capacity_bytes: usize,
}

/// `leveldb_filterpolicy_t`.
pub enum FilterPolicy {
    /// The engine's own filters, of so many bits.
    Bloom(u32),
    /// The program's. The engine has its own filters in their place: what a filter says never changes an answer.
    Own {
        state: *mut c_void,
        destructor: Option<Destructor>,
    },
}

impl FilterPolicy {
    /// Bits of filter for each key.
    pub fn bits_per_key(&self) -> u32 {
        match *self {
            Self::Bloom(bits) => bits,
            Self::Own { .. } => 10,
        }
    }
}

impl Drop for FilterPolicy {
    fn drop(&mut self) {
        if let Self::Own {
            state,
            destructor: Some(destructor),
        } = *self
        {
            // SAFETY: the destructor's contract; once.
            unsafe { destructor(state) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_comparator_create(
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

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_comparator_destroy(comparator: *mut CComparator) {
    if !comparator.is_null() {
        // SAFETY: the contract; no open database uses it any more.
        drop(unsafe { Box::from_raw(comparator) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    _: Option<CreateFilter>,
    _: Option<KeyMayMatch>,
    _: Option<Name>,
) -> *mut FilterPolicy {
    Box::into_raw(Box::new(FilterPolicy::Own { state, destructor }))
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut FilterPolicy {
    let bits = u32::try_from(bits_per_key).unwrap_or(0).min(32);
    Box::into_raw(Box::new(FilterPolicy::Bloom(bits)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_filterpolicy_destroy(policy: *mut FilterPolicy) {
    if !policy.is_null() {
        // SAFETY: the contract; a destroyed policy is not used again.
        drop(unsafe { Box::from_raw(policy) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_cache_create_lru(capacity_bytes: usize) -> *mut Cache {
    Box::into_raw(Box::new(Cache { capacity_bytes }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_cache_destroy(cache: *mut Cache) {
    if !cache.is_null() {
        // SAFETY: the contract; a destroyed cache is not used again.
        drop(unsafe { Box::from_raw(cache) });
    }
}

/// `leveldb_env_t`: there is one, the machine.
struct Environment {
    /// A byte, so that each has an address of its own.
    _own: u8,
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_create_default_env() -> *mut Environment {
    Box::into_raw(Box::new(Environment { _own: 0 }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_env_destroy(env: *mut Environment) {
    if !env.is_null() {
        // SAFETY: the contract; it came from `leveldb_create_default_env` and is not used again.
        drop(unsafe { Box::from_raw(env) });
    }
}

/// A folder for tests, made if it is missing: `TEST_TMPDIR`, or one in the folder of temporary files.
#[unsafe(no_mangle)]
extern "C" fn leveldb_env_get_test_directory(_: *mut Environment) -> *mut c_char {
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    let dir = match std::env::var_os("TEST_TMPDIR") {
        Some(dir) if !dir.is_empty() => dir.into(),
        _ => std::env::temp_dir().join(format!("leveldbtest-{}", geteuid())),
    };
    match std::fs::create_dir_all(&dir) {
        Ok(()) => memory::copy_text(&dir.to_string_lossy()),
        Err(_) => std::ptr::null_mut(),
    }
}
