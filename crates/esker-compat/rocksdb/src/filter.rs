//! Filter policies: `rocksdb_filterpolicy_*`. All of them are the engine's own filters, of so many bits.

use std::ffi::c_int;

use crate::settings::destroyed;

/// `rocksdb_filterpolicy_t`.
pub struct FilterPolicy {
    pub bits_per_key: u32,
}

fn policy(bits_per_key: f64) -> *mut FilterPolicy {
    Box::into_raw(Box::new(FilterPolicy {
        bits_per_key: bits_per_key.round().clamp(0.0, 32.0) as u32,
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_filterpolicy_create_bloom(bits_per_key: f64) -> *mut FilterPolicy {
    policy(bits_per_key)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy {
    policy(bits_per_key)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_filterpolicy_create_ribbon(bits_per_key: f64) -> *mut FilterPolicy {
    policy(bits_per_key)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_filterpolicy_create_ribbon_hybrid(bits_per_key: f64, _: c_int) -> *mut FilterPolicy {
    policy(bits_per_key)
}

destroyed!(FilterPolicy, rocksdb_filterpolicy_destroy);
