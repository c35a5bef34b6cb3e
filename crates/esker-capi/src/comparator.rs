//! An order of keys by functions of the program's.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};

use esker::{Comparator, Error, Result};

use crate::boundary::given;
use crate::buffer::esker_buffer;
use crate::slice::esker_slice;
use crate::text;

/// An order of keys. Its functions are called by several threads at once, and must not throw. It must be total and never change,
/// and keys that compare as equal must be the same bytes.
#[repr(C)]
pub struct esker_comparator {
    /// Given to the functions.
    pub state: *mut c_void,
    /// Called once with `state` when nothing uses the order any more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Stored with the database: opening with another name is refused. Copied.
    pub name: *const c_char,
    /// Below, equal to or above 0 as `a` comes before, is, or follows `b`.
    pub compare:
        Option<unsafe extern "C" fn(state: *mut c_void, a: esker_slice<'_>, b: esker_slice<'_>) -> c_int>,
    /// May set `key` (on entry some key) to a shorter one that does not precede it and comes before `limit`. May be null.
    pub shorten_separator:
        Option<unsafe extern "C" fn(state: *mut c_void, key: &mut esker_buffer, limit: esker_slice<'_>)>,
    /// May set `key` (on entry some key) to a shorter one that does not precede it. May be null.
    pub shorten_successor: Option<unsafe extern "C" fn(state: *mut c_void, key: &mut esker_buffer)>,
}

/// The state of functions, destroyed once.
pub struct State {
    pub pointer: *mut c_void,
    destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

// SAFETY: the header asks that functions can be called by several threads at once, and `destroy` by any; the state is only handed
// to them.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub fn new(pointer: *mut c_void, destroy: Option<unsafe extern "C" fn(state: *mut c_void)>) -> Self {
        Self { pointer, destroy }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: once, and nobody calls the functions any more.
            unsafe { destroy(self.pointer) };
        }
    }
}

/// The order as the engine sees it.
pub struct Order {
    state: State,
    name: String,
    compare: unsafe extern "C" fn(*mut c_void, esker_slice<'_>, esker_slice<'_>) -> c_int,
    shorten_separator: Option<unsafe extern "C" fn(*mut c_void, &mut esker_buffer, esker_slice<'_>)>,
    shorten_successor: Option<unsafe extern "C" fn(*mut c_void, &mut esker_buffer)>,
}

impl Order {
    /// Takes the functions, and on success the state.
    ///
    /// # Safety
    /// The contract, for the name; the functions keep theirs.
    pub unsafe fn new(given_by: &esker_comparator) -> Result<Self> {
        let compare = given(given_by.compare, "the function compare")?;
        // SAFETY: the caller's promise.
        let name = unsafe { name_of(given_by.name) }?;
        Ok(Self {
            state: State::new(given_by.state, given_by.destroy),
            name,
            compare,
            shorten_separator: given_by.shorten_separator,
            shorten_successor: given_by.shorten_successor,
        })
    }

    /// Lets a function shorten a key. What is longer than before is not taken.
    fn shorten(key: &mut Vec<u8>, shorten: impl FnOnce(&mut esker_buffer)) {
        let mut buffer = esker_buffer(key.clone());
        shorten(&mut buffer);
        if buffer.0.len() < key.len() {
            *key = buffer.0;
        }
    }
}

/// The name of something that is stored by it.
///
/// # Safety
/// As for [`text::string`].
pub unsafe fn name_of(name: *const c_char) -> Result<String> {
    // SAFETY: the caller's promise.
    let name = unsafe { text::string(name, "the name") }?;
    if name.is_empty() {
        return Err(Error::invalid("the name is empty"));
    }
    Ok(name.to_owned())
}

impl Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: the function's contract.
        let order = unsafe { (self.compare)(self.state.pointer, esker_slice::new(a), esker_slice::new(b)) };
        order.cmp(&0)
    }

    fn shorten_separator(&self, separator: &mut Vec<u8>, limit: &[u8]) {
        if let Some(shorten) = self.shorten_separator {
            Self::shorten(separator, |key| {
                // SAFETY: the function's contract.
                unsafe { shorten(self.state.pointer, key, esker_slice::new(limit)) }
            });
        }
    }

    fn shorten_successor(&self, key: &mut Vec<u8>) {
        if let Some(shorten) = self.shorten_successor {
            Self::shorten(key, |key| {
                // SAFETY: the function's contract.
                unsafe { shorten(self.state.pointer, key) }
            });
        }
    }
}
