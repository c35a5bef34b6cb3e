//! Lists that calls give: an array for C, and what its pointers point into.

use std::mem::MaybeUninit;

use crate::boundary::release;
use crate::slice::esker_slice;

/// An array of `T`, whose slices and pointers refer to `O`.
pub struct List<T, O> {
    items: Vec<T>,
    _owner: O,
}

impl<T, O> List<T, O> {
    /// Makes the items of what owns their bytes.
    ///
    /// # Safety
    /// The items refer to nothing but memory that stays where it is when the owner is moved, and is freed with it.
    pub unsafe fn new(owner: O, items: impl FnOnce(&O) -> Vec<T>) -> Self {
        Self {
            items: items(&owner),
            _owner: owner,
        }
    }

    /// The array, and how many items it has.
    pub fn array(list: Option<&Self>, count: Option<&mut MaybeUninit<usize>>) -> *const T {
        let items = list.map_or(&[][..], |list| &list.items);
        if let Some(count) = count {
            count.write(items.len());
        }
        items.as_ptr()
    }
}

/// The same bytes without the tie to their owner, for the items of a [`List`].
///
/// # Safety
/// They outlive the slice.
pub unsafe fn lend(bytes: &[u8]) -> esker_slice<'static> {
    // SAFETY: the caller's promise.
    esker_slice::new(unsafe { &*std::ptr::from_ref(bytes) })
}

/// Names.
pub struct esker_names(List<esker_slice<'static>, Vec<String>>);

impl esker_names {
    pub fn new(names: Vec<String>) -> Self {
        // SAFETY: strings keep their bytes on the heap.
        Self(unsafe {
            List::new(names, |names| {
                names.iter().map(|name| lend(name.as_bytes())).collect()
            })
        })
    }
}

/// The names; `count` is set to how many they are. The array stays until the list is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_names_items(
    names: Option<&esker_names>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_slice<'static> {
    List::array(names.map(|names| &names.0), count)
}

/// Frees a list of names.
#[unsafe(no_mangle)]
pub extern "C" fn esker_names_free(names: Option<Box<esker_names>>) {
    release(names);
}
