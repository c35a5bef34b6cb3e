//! What the two C interfaces have in common: errors that they allocate, strings, and the table of functions.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use esker_lab_core::{Error, Result};

/// An error slot as both interfaces want it: null, or a C string that the library allocated.
pub(crate) struct ErrorSlot(*mut c_char);

impl ErrorSlot {
    pub(crate) fn new() -> Self {
        ErrorSlot(std::ptr::null_mut())
    }

    pub(crate) fn out(&mut self) -> *mut *mut c_char {
        &raw mut self.0
    }

    /// The error in the slot, if any; `free` is the library's own.
    pub(crate) fn check(self, what: &str, free: unsafe extern "C" fn(*mut c_void)) -> Result<()> {
        if self.0.is_null() {
            return Ok(());
        }
        // SAFETY: a non-null slot was filled by the library with a NUL-terminated string that it allocated and that
        // is ours to free, once, with the library's `free`.
        let message = unsafe {
            let message = CStr::from_ptr(self.0).to_string_lossy().into_owned();
            free(self.0.cast());
            message
        };
        Err(Error::engine(format!("{what}: {message}")))
    }
}

/// A path as a C string.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::usage(format!("{} holds a zero byte", path.display())))
}

/// Bytes that a library lends us.
///
/// # Safety
/// `data` points at `length` readable bytes (or `length` is 0) that stay as they are for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// Declares a table of C functions and how to load it: `required` ones must be there, `optional` ones (settings
/// that not every library of that interface offers) become `None`. Names lack the library's prefix. A table may stand
/// on another one, whose functions it then has, too.
macro_rules! c_functions {
    (
        $(#[$doc:meta])* $table:ident $(on $base:ident)?;
        required { $( $name:ident($($argument:ty),*) $(-> $result:ty)?; )* }
        optional { $( $option:ident($($oargument:ty),*) $(-> $oresult:ty)?; )* }
    ) => {
        $(#[$doc])*
        // The fields carry the functions' own names, capitals included.
        #[allow(non_snake_case)]
        pub(crate) struct $table {
            $( pub(crate) base: $base, )?
            $( pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?, )*
            $( pub(crate) $option: Option<unsafe extern "C" fn($($oargument),*) $(-> $oresult)?>, )*
        }

        impl $table {
            pub(crate) fn load(
                library: &crate::dylib::Dylib,
                prefix: &str,
            ) -> esker_lab_core::Result<Self> {
                // SAFETY: each type above is the one that the library's public header declares for that name.
                unsafe {
                    Ok($table {
                        $( base: $base::load(library, prefix)?, )?
                        $( $name: library.function(&format!("{prefix}{}", stringify!($name)))?, )*
                        $( $option: library.function(&format!("{prefix}{}", stringify!($option))).ok(), )*
                    })
                }
            }
        }

        $(
            impl std::ops::Deref for $table {
                type Target = $base;

                fn deref(&self) -> &$base {
                    &self.base
                }
            }
        )?
    };
}
pub(crate) use c_functions;
