//! The boundary: errors go into the caller's slot, and no panic leaves the library.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::memory;
use crate::status::{Result, Status};

/// Runs `work`. What goes wrong in it, a panic included, replaces what the slot holds, and `otherwise` is returned;
/// on success the slot stays as it is. A null slot lets the error go.
///
/// # Safety
/// The crate's contract about `slot`.
#[inline]
pub unsafe fn report<T>(slot: *mut *mut c_char, otherwise: T, work: impl FnOnce() -> Result<T>) -> T {
    match survive(work) {
        Ok(value) => value,
        Err(status) => {
            // SAFETY: the caller's promise.
            unsafe { store(slot, &status) };
            otherwise
        }
    }
}

/// Runs `work`; a panic in it becomes an error. Whatever `work` was changing then is not used again by this layer
/// without being made anew, and the engine's own locks do not poison.
#[inline]
pub fn survive<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match caught(work) {
        Ok(result) => result,
        Err(panic) => Err(Status::Text(format!("Aborted: {panic}").into())),
    }
}

/// Runs `work`; if it panics, what is to be told of it.
#[inline]
pub fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(&*panic))
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!("a defect of the library: {message}")
}

/// Puts an error into a slot, in the place of what it holds.
///
/// # Safety
/// The crate's contract about `slot`.
#[cold]
pub unsafe fn store(slot: *mut *mut c_char, status: &Status) {
    if slot.is_null() {
        return;
    }
    // SAFETY: a slot is writable and holds null or what `malloc` gave, by the caller's promise.
    unsafe {
        memory::release((*slot).cast());
        *slot = memory::copy_text(&status.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    #[test]
    fn an_error_replaces_the_one_before_and_success_leaves_it() {
        let mut slot = std::ptr::null_mut();
        // SAFETY: the slot holds null or what this module put there.
        unsafe {
            let fail = |text: &'static str| move || Err::<i32, _>(Status::Text(text.into()));
            assert_eq!(report(&raw mut slot, 1, fail("first")), 1);
            assert_eq!(report(&raw mut slot, 1, fail("second")), 1);
            assert_eq!(bytes::text(slot), "second");
            assert_eq!(report(&raw mut slot, 1, || Ok(2)), 2);
            assert_eq!(bytes::text(slot), "second");
            assert_eq!(report(std::ptr::null_mut(), 1, fail("nowhere")), 1);
            memory::release(slot.cast());
        }
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let status = survive(|| -> Result<()> { panic!("number {}", 7) }).unwrap_err();
        assert_eq!(status.to_string(), "Aborted: a defect of the library: number 7");
    }
}
