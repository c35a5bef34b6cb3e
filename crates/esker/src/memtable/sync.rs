//! The atomics and the lock of the memtable: the machine's, or loom's when it explores interleavings.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(super) use ::loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A lock without poisoning, whichever atomics are in use.
#[cfg(not(loom))]
pub(super) type Mutex<T> = parking_lot::Mutex<T>;

/// A lock without poisoning, whichever atomics are in use.
#[cfg(loom)]
#[derive(Debug)]
pub(super) struct Mutex<T>(::loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(::loom::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> ::loom::sync::MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// Asks for the cache line at `at`, which may be any address: it is a hint, never an access.
#[inline(always)]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: prefetching has no effect on the program's state and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
