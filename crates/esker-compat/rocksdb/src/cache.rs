//! Caches: `rocksdb_cache_*`, and the options that caches are made with.
//!
//! A cache's capacity becomes a part of the memory budget of each database that is opened with it; every database
//! fills its own.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::Db;

use crate::settings::destroyed;

/// `rocksdb_cache_t`.
pub struct Cache {
    pub state: Arc<CacheState>,
}

/// What options and databases share of a cache.
pub struct CacheState {
    capacity_bytes: AtomicU64,
    /// Databases that are open with it, each with its number.
    users: Mutex<Vec<(u64, Db)>>,
}

impl CacheState {
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes: AtomicU64::new(capacity_bytes),
            users: Mutex::default(),
        }
    }

    /// In bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    fn users(&self) -> MutexGuard<'_, Vec<(u64, Db)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A database was opened with it.
    pub fn enter(&self, number: u64, db: &Db) {
        self.users().push((number, db.clone()));
    }

    /// A database is being closed.
    pub fn leave(&self, number: u64) {
        self.users().retain(|user| user.0 != number);
    }

    fn used(&self) -> u64 {
        self.users().iter().map(|(_, db)| db.stats().cache_bytes).sum()
    }
}

fn cache(capacity_bytes: usize) -> *mut Cache {
    Box::into_raw(Box::new(Cache {
        state: Arc::new(CacheState::new(capacity_bytes as u64)),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_lru(capacity_bytes: usize) -> *mut Cache {
    cache(capacity_bytes)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(capacity_bytes: usize) -> *mut Cache {
    cache(capacity_bytes)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_hyper_clock(capacity_bytes: usize, _: usize) -> *mut Cache {
    cache(capacity_bytes)
}

/// `rocksdb_lru_cache_options_t` and `rocksdb_hyper_clock_cache_options_t`.
#[derive(Default)]
struct CacheSettings {
    capacity_bytes: usize,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_lru_cache_options_create() -> *mut CacheSettings {
    Box::into_raw(Box::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_lru_cache_options_set_capacity(options: *mut CacheSettings, bytes: usize) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.capacity_bytes = bytes;
}

/// No meaning here.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_lru_cache_options_set_num_shard_bits(_: *mut CacheSettings, _: c_int) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_cache_create_lru_opts(options: *const CacheSettings) -> *mut Cache {
    // SAFETY: the contract.
    cache(unsafe { &*options }.capacity_bytes)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_hyper_clock_cache_options_create(
    capacity_bytes: usize,
    _: usize,
) -> *mut CacheSettings {
    Box::into_raw(Box::new(CacheSettings { capacity_bytes }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_hyper_clock_cache_options_set_capacity(
    options: *mut CacheSettings,
    bytes: usize,
) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.capacity_bytes = bytes;
}

/// No meaning here.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(_: *mut CacheSettings, _: usize) {}

/// No meaning here.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_hyper_clock_cache_options_set_num_shard_bits(_: *mut CacheSettings, _: c_int) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_cache_create_hyper_clock_opts(options: *const CacheSettings) -> *mut Cache {
    // SAFETY: the contract.
    cache(unsafe { &*options }.capacity_bytes)
}

destroyed!(CacheSettings, rocksdb_lru_cache_options_destroy);
destroyed!(CacheSettings, rocksdb_hyper_clock_cache_options_destroy);
destroyed!(Cache, rocksdb_cache_destroy);

/// No meaning here: databases free what they hold when they are closed.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_disown_data(_: *mut Cache) {}

/// Counts for databases that are opened from now on.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_cache_set_capacity(cache: *mut Cache, bytes: usize) {
    // SAFETY: the contract.
    let state = &unsafe { &*cache }.state;
    state.capacity_bytes.store(bytes as u64, Ordering::Relaxed);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_cache_get_capacity(cache: *const Cache) -> usize {
    // SAFETY: the contract.
    unsafe { &*cache }.state.capacity() as usize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_cache_get_usage(cache: *const Cache) -> usize {
    // SAFETY: the contract.
    unsafe { &*cache }.state.used() as usize
}

/// Blocks that are pinned are not counted apart from the others.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_get_pinned_usage(_: *const Cache) -> usize {
    0
}
