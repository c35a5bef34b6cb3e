//! Environments, loggers, rate limiters and write buffer managers.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cache::Cache;
use crate::settings::destroyed;

/// `rocksdb_env_t`: there is one, the machine. The numbers of its threads are kept for their getters; a database's own
/// options say how many it has.
#[derive(Default)]
struct Environment {
    low: c_int,
    high: c_int,
    bottom: c_int,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_default_env() -> *mut Environment {
    Box::into_raw(Box::new(Environment {
        low: 1,
        ..Environment::default()
    }))
}

destroyed!(Environment, rocksdb_env_destroy);

macro_rules! threads {
    ($($field:ident, $set:ident, $get:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $set(env: *mut Environment, threads: c_int) {
                // SAFETY: the contract; an environment is changed by one thread at a time.
                unsafe { &mut *env }.$field = threads;
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $get(env: *mut Environment) -> c_int {
                // SAFETY: as above.
                unsafe { &*env }.$field
            }
        )*
    };
}

threads! {
    low, rocksdb_env_set_background_threads, rocksdb_env_get_background_threads;
    low, rocksdb_env_set_low_priority_background_threads, rocksdb_env_get_low_priority_background_threads;
    high, rocksdb_env_set_high_priority_background_threads, rocksdb_env_get_high_priority_background_threads;
    bottom, rocksdb_env_set_bottom_priority_background_threads, rocksdb_env_get_bottom_priority_background_threads;
}

macro_rules! without_meaning {
    ($($name:ident;)*) => {
        $(
            /// No meaning here: a database's threads are its own.
            #[unsafe(no_mangle)]
            extern "C" fn $name(_: *mut Environment) {}
        )*
    };
}

without_meaning! {
    rocksdb_env_join_all_threads;
    rocksdb_env_lower_thread_pool_io_priority;
    rocksdb_env_lower_high_priority_thread_pool_io_priority;
    rocksdb_env_lower_thread_pool_cpu_priority;
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority;
}

/// `rocksdb_logger_t`: nothing is written to it.
struct Logger {
    /// A byte, so that each has an address of its own.
    _own: u8,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_logger_create_stderr_logger(_: c_int, _: *const c_char) -> *mut Logger {
    Box::into_raw(Box::new(Logger { _own: 0 }))
}

/// `void log(state, level, message, len)`.
type Log = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn rocksdb_logger_create_callback_logger(_: c_int, _: Option<Log>, _: *mut c_void) -> *mut Logger {
    Box::into_raw(Box::new(Logger { _own: 0 }))
}

destroyed!(Logger, rocksdb_logger_destroy);

/// `rocksdb_ratelimiter_t`: its rate is that of each database's background work.
pub struct RateLimiter {
    bytes_per_second: u64,
}

impl RateLimiter {
    /// 0: no limit.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }
}

fn limiter(bytes_per_second: i64) -> *mut RateLimiter {
    Box::into_raw(Box::new(RateLimiter {
        bytes_per_second: u64::try_from(bytes_per_second).unwrap_or(0),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_create(bytes_per_second: i64, _: i64, _: i32) -> *mut RateLimiter {
    limiter(bytes_per_second)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    bytes_per_second: i64,
    _: i64,
    _: i32,
) -> *mut RateLimiter {
    limiter(bytes_per_second)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_create_with_mode(
    bytes_per_second: i64,
    _: i64,
    _: i32,
    _: c_int,
    _: bool,
) -> *mut RateLimiter {
    limiter(bytes_per_second)
}

destroyed!(RateLimiter, rocksdb_ratelimiter_destroy);

/// `rocksdb_write_buffer_manager_t`: its size bounds the memtables of each database that is opened with it.
pub struct WriteBufferManager {
    buffer_bytes: AtomicUsize,
}

impl WriteBufferManager {
    /// 0: no bound.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes.load(Ordering::Relaxed)
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_create(buffer_bytes: usize, _: bool) -> *mut WriteBufferManager {
    Box::into_raw(Box::new(WriteBufferManager {
        buffer_bytes: AtomicUsize::new(buffer_bytes),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    buffer_bytes: usize,
    _: *const Cache,
    allow_stall: bool,
) -> *mut WriteBufferManager {
    rocksdb_write_buffer_manager_create(buffer_bytes, allow_stall)
}

destroyed!(WriteBufferManager, rocksdb_write_buffer_manager_destroy);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_write_buffer_manager_enabled(manager: *mut WriteBufferManager) -> bool {
    // SAFETY: the contract.
    unsafe { &*manager }.buffer_bytes() > 0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_write_buffer_manager_buffer_size(manager: *mut WriteBufferManager) -> usize {
    // SAFETY: the contract.
    unsafe { &*manager }.buffer_bytes()
}

/// Counts for databases that are opened from now on.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_write_buffer_manager_set_buffer_size(
    manager: *mut WriteBufferManager,
    bytes: usize,
) {
    // SAFETY: the contract.
    unsafe { &*manager }.buffer_bytes.store(bytes, Ordering::Relaxed);
}

/// No meaning here: writers wait where memory is full.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_set_allow_stall(_: *mut WriteBufferManager, _: bool) {}
