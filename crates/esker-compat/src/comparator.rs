//! An order of keys by a C function.
//!
//! The caller owns a comparator and destroys it after every database that uses it was closed; options and databases
//! refer to it meanwhile. So its state ends when the caller says so, while the object itself lives as long as
//! anything here still points to it.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use esker::{Comparator, KeyOrder};

use crate::bytes;

/// `int compare(state, a, a_len, b, b_len)`.
pub type Compare = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
/// `const char* name(state)`.
pub type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
/// `void destructor(state)`.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// A comparator as the caller holds it.
pub struct CComparator {
    functions: Arc<Functions>,
    destructor: Option<Destructor>,
}

struct Functions {
    state: *mut c_void,
    compare: Compare,
    name: String,
}

// SAFETY: the headers ask that a comparator can be used by several threads at once; its state is only handed to its
// own functions.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

impl CComparator {
    /// Takes the callbacks; the name is asked for once.
    ///
    /// # Safety
    /// The functions keep their contracts: an order that is total and never changes, usable from any thread, until
    /// the comparator is destroyed.
    pub unsafe fn new(
        state: *mut c_void,
        destructor: Option<Destructor>,
        compare: Compare,
        name: Name,
    ) -> Self {
        // SAFETY: the caller's promise.
        let name = unsafe { bytes::text(name(state)) }.into_owned();
        Self {
            functions: Arc::new(Functions { state, compare, name }),
            destructor,
        }
    }

    /// The order, for a database's settings.
    pub fn order(&self) -> KeyOrder {
        KeyOrder::Custom(Arc::clone(&self.functions) as Arc<dyn Comparator>)
    }
}

impl Drop for CComparator {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: once, and the caller promised that no database uses the order any more.
            unsafe { destructor(self.functions.state) };
        }
    }
}

impl Comparator for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: the function's contract; both keys are readable for their lengths.
        let order =
            unsafe { (self.compare)(self.state, a.as_ptr().cast(), a.len(), b.as_ptr().cast(), b.len()) };
        order.cmp(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering as Memory};

    unsafe extern "C" fn by_length(
        _: *mut c_void,
        _: *const c_char,
        a: usize,
        _: *const c_char,
        b: usize,
    ) -> c_int {
        match a.cmp(&b) {
            Ordering::Less => -7,
            Ordering::Equal => 0,
            Ordering::Greater => 7,
        }
    }

    unsafe extern "C" fn name(_: *mut c_void) -> *const c_char {
        c"test.by-length".as_ptr()
    }

    unsafe extern "C" fn count(state: *mut c_void) {
        // SAFETY: the state is the test's counter.
        unsafe { &*state.cast::<AtomicUsize>() }.fetch_add(1, Memory::Relaxed);
    }

    #[test]
    fn the_order_is_the_functions_and_the_state_ends_with_the_callers_object() {
        let destroyed = AtomicUsize::new(0);
        let state = (&raw const destroyed).cast_mut().cast();
        // SAFETY: the functions above keep their contracts.
        let comparator = unsafe { CComparator::new(state, Some(count), by_length, name) };
        let order = comparator.order();
        assert_eq!(order.name(), "test.by-length");
        assert_eq!(order.compare(b"zz", b"aaa"), Ordering::Less);
        assert_eq!(order.compare(b"", b""), Ordering::Equal);
        drop(comparator);
        assert_eq!(destroyed.load(Memory::Relaxed), 1);
        drop(order);
        assert_eq!(destroyed.load(Memory::Relaxed), 1);
    }
}
