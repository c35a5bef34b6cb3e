//! Lists that calls give: an array for C, and what its pointers point into.

use std::mem::MaybeUninit;
use std::path::PathBuf;

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
    pub fn parts(&self) -> (*const T, usize) {
        (self.items.as_ptr(), self.items.len())
    }

    /// The array of a list that C gave; `count` is set to how many items it has.
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

/// Texts with slices of them, for a field of an item that points to several: both stay where they are when this is moved.
pub struct Texts(List<esker_slice<'static>, Vec<Vec<u8>>>);

impl Texts {
    pub fn new(texts: impl Iterator<Item = Vec<u8>>) -> Self {
        // SAFETY: each text is on the heap.
        Self(unsafe {
            List::new(texts.collect(), |texts: &Vec<Vec<u8>>| {
                texts.iter().map(|text| lend(text)).collect()
            })
        })
    }

    /// Of paths.
    pub fn of_paths(paths: &[PathBuf]) -> Self {
        let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();
        Self::new(paths.iter().map(bytes))
    }

    /// The slices, and how many they are.
    pub fn slices(&self) -> (*const esker_slice<'static>, usize) {
        self.0.parts()
    }
}

/// Names.
pub struct esker_names(Texts);

impl esker_names {
    pub fn new(names: Vec<String>) -> Self {
        Self(Texts::new(names.into_iter().map(String::into_bytes)))
    }
}

/// The names; `count` is set to how many they are. The array stays until the list is freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_names_items(
    names: Option<&esker_names>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_slice<'static> {
    List::array(names.map(|names| &names.0.0), count)
}

/// Frees a list of names.
#[unsafe(no_mangle)]
pub extern "C" fn esker_names_free(names: Option<Box<esker_names>>) {
    release(names);
}
