//! What LevelDB's C interface and RocksDB's, which grew out of it, have in common: the same functions under another
//! prefix, and the work that takes no others.

use std::ffi::{CStr, c_char, c_uchar, c_void};
use std::path::Path;

use esker_lab_core::Result;
use esker_lab_core::engine::Start;

use crate::capi::{ErrorSlot, bytes, c_functions, c_path};

/// Any of a library's objects, which are only ever handled by address.
pub(crate) type Ptr = *mut c_void;

c_functions! {
    /// Functions that both have, with the same arguments.
    Common;
    required {
        options_create() -> Ptr;
        options_destroy(Ptr);
        options_set_create_if_missing(Ptr, c_uchar);
        readoptions_create() -> Ptr;
        readoptions_destroy(Ptr);
        writeoptions_create() -> Ptr;
        writeoptions_destroy(Ptr);
        writeoptions_set_sync(Ptr, c_uchar);
        open(Ptr, *const c_char, *mut *mut c_char) -> Ptr;
        close(Ptr);
        put(Ptr, Ptr, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
        delete(Ptr, Ptr, *const c_char, usize, *mut *mut c_char);
        write(Ptr, Ptr, Ptr, *mut *mut c_char);
        writebatch_create() -> Ptr;
        writebatch_destroy(Ptr);
        writebatch_clear(Ptr);
        writebatch_put(Ptr, *const c_char, usize, *const c_char, usize);
        create_iterator(Ptr, Ptr) -> Ptr;
        iter_destroy(Ptr);
        iter_valid(Ptr) -> c_uchar;
        iter_seek_to_first(Ptr);
        iter_seek_to_last(Ptr);
        iter_seek(Ptr, *const c_char, usize);
        iter_next(Ptr);
        iter_prev(Ptr);
        iter_key(Ptr, *mut usize) -> *const c_char;
        iter_value(Ptr, *mut usize) -> *const c_char;
        iter_get_error(Ptr, *mut *mut c_char);
        compact_range(Ptr, *const c_char, usize, *const c_char, usize);
        property_value(Ptr, *const c_char) -> *mut c_char;
        free(*mut c_void);
    }
    optional {
    }
}

/// Declares an object of the library that is made by one function and destroyed by another when it is dropped.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $create:ident, $destroy:ident) => {
        $(#[$doc])*
        pub(crate) struct $name {
            api: &'static Common,
            object: Ptr,
        }

        impl $name {
            pub(crate) fn new(api: &'static Common) -> Self {
                // SAFETY: makes an object of our own, which is destroyed once, in `drop`.
                let object = unsafe { (api.$create)() };
                $name { api, object }
            }

            /// To be configured, or given to the library; it stays ours.
            pub(crate) fn raw(&self) -> Ptr {
                self.object
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: ours, destroyed once.
                unsafe { (self.api.$destroy)(self.object) };
            }
        }

        // SAFETY: a plain object, bound to no thread.
        unsafe impl Send for $name {}
    };
}

owned! {
    /// How to read.
    ReadOptions, readoptions_create, readoptions_destroy
}
owned! {
    /// How to write.
    WriteOptions, writeoptions_create, writeoptions_destroy
}
owned! {
    /// Rows to be written together.
    Batch, writebatch_create, writebatch_destroy
}

// SAFETY: configured when they are made; from then on the library only reads them.
unsafe impl Sync for ReadOptions {}
// SAFETY: as above.
unsafe impl Sync for WriteOptions {}

impl WriteOptions {
    /// That wait for the device.
    pub(crate) fn sync(api: &'static Common) -> Self {
        let options = Self::new(api);
        // SAFETY: options of our own.
        unsafe { (api.writeoptions_set_sync)(options.raw(), 1) };
        options
    }
}

/// An open database; closes it, or gives it back to who lent it, when it is dropped. Sessions borrow it, so that none is left
/// by then.
pub(crate) struct Connection {
    api: &'static Common,
    database: Ptr,
    close: unsafe extern "C" fn(Ptr),
}

// SAFETY: a database may be used from several threads at once ("c.h" and "db.h" of both say so).
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened successfully, closed once, by the function for it.
        unsafe { (self.close)(self.database) };
    }
}

impl Connection {
    /// Opens the database in `dir`.
    ///
    /// # Safety
    /// `options` are the library's, complete, and outlive the connection.
    pub(crate) unsafe fn open(api: &'static Common, options: Ptr, dir: &Path) -> Result<Self> {
        let path = c_path(dir)?;
        let mut error = ErrorSlot::new();
        // SAFETY: the caller's promise; the path is NUL-terminated.
        let database = unsafe { (api.open)(options, path.as_ptr(), error.out()) };
        error.check("opening", api.free)?;
        Ok(Connection {
            api,
            database,
            close: api.close,
        })
    }

    /// What another database lends of itself.
    ///
    /// # Safety
    /// `database` is open until `give_back` was called for it, which is for us to do, once.
    pub(crate) unsafe fn lent(
        api: &'static Common,
        database: Ptr,
        give_back: unsafe extern "C" fn(Ptr),
    ) -> Self {
        Connection {
            api,
            database,
            close: give_back,
        }
    }

    /// For calls that only one of the libraries has.
    pub(crate) fn raw(&self) -> Ptr {
        self.database
    }

    /// What the engine says under this name; empty if it does not know it.
    pub(crate) fn property(&self, name: &CStr) -> String {
        // SAFETY: the database is open; the returned string is null or NUL-terminated and ours to free.
        unsafe {
            let value = (self.api.property_value)(self.database, name.as_ptr());
            if value.is_null() {
                return String::new();
            }
            let text = CStr::from_ptr(value).to_string_lossy().into_owned();
            (self.api.free)(value.cast());
            text
        }
    }

    pub(crate) fn compact_all(&self) {
        // SAFETY: null keys mean before the first and after the last.
        unsafe { (self.api.compact_range)(self.database, std::ptr::null(), 0, std::ptr::null(), 0) };
    }

    pub(crate) fn compact_range(&self, start: &[u8], end: &[u8]) {
        // SAFETY: the keys are readable for the lengths given.
        unsafe {
            (self.api.compact_range)(
                self.database,
                start.as_ptr().cast(),
                start.len(),
                end.as_ptr().cast(),
                end.len(),
            );
        }
    }

    pub(crate) fn put(&self, options: &WriteOptions, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: key and value are readable for the lengths given.
        unsafe {
            (self.api.put)(
                self.database,
                options.raw(),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error.out(),
            );
        }
        error.check("put", self.api.free)
    }

    /// Writes `rows` together; `batch` is room for them.
    pub(crate) fn put_batch(
        &self,
        options: &WriteOptions,
        batch: &mut Batch,
        rows: &[(&[u8], &[u8])],
    ) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: keys and values are readable for the lengths given and copied into our own batch.
        unsafe {
            (self.api.writebatch_clear)(batch.raw());
            for (key, value) in rows {
                (self.api.writebatch_put)(
                    batch.raw(),
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                );
            }
            (self.api.write)(self.database, options.raw(), batch.raw(), error.out());
        }
        error.check("write", self.api.free)
    }

    pub(crate) fn delete(&self, options: &WriteOptions, key: &[u8]) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: the key is readable for the length given.
        unsafe {
            (self.api.delete)(
                self.database,
                options.raw(),
                key.as_ptr().cast(),
                key.len(),
                error.out(),
            );
        }
        error.check("delete", self.api.free)
    }

    /// Visits rows in order from `start`, backward from the last one, through a new iterator, until `row` says no.
    pub(crate) fn scan(
        &self,
        options: &ReadOptions,
        start: Start<'_>,
        row: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let api = self.api;
        // SAFETY: the iterator is ours; keys and values are read only while it is valid and not moved.
        unsafe {
            let iter = Iter {
                api,
                iter: (api.create_iterator)(self.database, options.raw()),
            };
            match start {
                Start::At(key) => (api.iter_seek)(iter.iter, key.as_ptr().cast(), key.len()),
                Start::First => (api.iter_seek_to_first)(iter.iter),
                Start::Last => (api.iter_seek_to_last)(iter.iter),
            }
            while (api.iter_valid)(iter.iter) != 0 {
                let (mut key_length, mut value_length) = (0, 0);
                let key = (api.iter_key)(iter.iter, &raw mut key_length);
                let value = (api.iter_value)(iter.iter, &raw mut value_length);
                if !row(bytes(key, key_length), bytes(value, value_length)) {
                    break;
                }
                match start {
                    Start::Last => (api.iter_prev)(iter.iter),
                    Start::First | Start::At(_) => (api.iter_next)(iter.iter),
                }
            }
            let mut error = ErrorSlot::new();
            (api.iter_get_error)(iter.iter, error.out());
            error.check("scan", api.free)
        }
    }
}

/// An iterator, destroyed when it goes out of scope (also when the caller's check panics).
struct Iter {
    api: &'static Common,
    iter: Ptr,
}

impl Drop for Iter {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, inside a call on the connection and so before the database.
        unsafe { (self.api.iter_destroy)(self.iter) };
    }
}
