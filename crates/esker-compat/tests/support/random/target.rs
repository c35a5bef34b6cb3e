//! A database behind a library, and what it answers to an operation.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use libloading::Library;

use super::Op;
use super::joined::{
    FullMerge, PartialMerge, delete_value, full_merge, nothing, operator_name, partial_merge,
};

pub type Ptr = *mut c_void;
pub type Slot = *mut *mut c_char;

fn key_of(number: u8) -> Vec<u8> {
    // Of different lengths, and one the beginning of another.
    vec![b'k'; 1 + usize::from(number) % 3]
        .into_iter()
        .chain([number])
        .collect()
}

/// Loads a library, after the neighbours that it may need. It is never unloaded: it leaves threads behind.
pub fn load(path: &Path) -> &'static Library {
    use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_NOW};
    let neighbours = path.parent().and_then(|folder| folder.read_dir().ok());
    for entry in neighbours.into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("libsnappy") {
            // SAFETY: what the real library was built with.
            std::mem::forget(unsafe { Unix::open(Some(entry.path()), RTLD_NOW | RTLD_GLOBAL) });
        }
    }
    // SAFETY: the libraries that the tests are about.
    Box::leak(Box::new(unsafe { Library::new(path) }.unwrap()))
}

/// A database behind a library.
pub struct Target {
    library: &'static Library,
    prefix: &'static str,
    path: PathBuf,
    options: Ptr,
    reads: Ptr,
    writes: Ptr,
    db: Ptr,
    snapshots: Vec<Ptr>,
    /// The default family and another one, where there are families.
    families: Vec<Ptr>,
    /// The one that the operation is about; null for functions that know none.
    family: Ptr,
}

impl Target {
    /// Opens a database in a folder.
    pub fn open(library: &Path, prefix: &'static str, path: PathBuf, full: bool) -> Self {
        let library = load(library);
        let mut target = Self {
            library,
            prefix,
            path,
            options: null_mut(),
            reads: null_mut(),
            writes: null_mut(),
            db: null_mut(),
            snapshots: Vec::new(),
            families: Vec::new(),
            family: null_mut(),
        };
        // SAFETY: each function has the type of its header; objects are destroyed in `drop`.
        unsafe {
            target.options = target.f::<unsafe extern "C" fn() -> Ptr>("options_create")();
            target.reads = target.f::<unsafe extern "C" fn() -> Ptr>("readoptions_create")();
            target.writes = target.f::<unsafe extern "C" fn() -> Ptr>("writeoptions_create")();
            target.f::<unsafe extern "C" fn(Ptr, c_uchar)>("options_set_create_if_missing")(
                target.options,
                1,
            );
            target.f::<unsafe extern "C" fn(Ptr, usize)>("options_set_write_buffer_size")(
                target.options,
                64 << 10,
            );
            if full {
                target.set_merge_operator();
                let function = "options_set_create_missing_column_families";
                target.f::<unsafe extern "C" fn(Ptr, c_uchar)>(function)(target.options, 1);
                target.families = vec![null_mut(); 2];
            }
        }
        target.open_again();
        target
    }

    fn f<F: Copy>(&self, name: &str) -> F {
        let name = format!("{}{name}", self.prefix);
        // SAFETY: callers name the type that the header declares.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn open_again(&mut self) {
        let path = CString::new(self.path.as_os_str().as_bytes()).unwrap();
        let mut error = null_mut();
        // SAFETY: as above; there are as many names, options and slots as families.
        self.db = unsafe {
            if self.families.is_empty() {
                self.f::<unsafe extern "C" fn(Ptr, *const c_char, Slot) -> Ptr>("open")(
                    self.options,
                    path.as_ptr(),
                    &raw mut error,
                )
            } else {
                let (names, options) = ([c"default".as_ptr(), c"other".as_ptr()], [self.options; 2]);
                type OpenFamilies = unsafe extern "C" fn(
                    Ptr,
                    *const c_char,
                    c_int,
                    *const *const c_char,
                    *const Ptr,
                    *mut Ptr,
                    Slot,
                ) -> Ptr;
                self.f::<OpenFamilies>("open_column_families")(
                    self.options,
                    path.as_ptr(),
                    2,
                    names.as_ptr(),
                    options.as_ptr(),
                    self.families.as_mut_ptr(),
                    &raw mut error,
                )
            }
        };
        assert_eq!(self.answer(error), "ok");
    }

    fn answer(&self, error: *mut c_char) -> String {
        if error.is_null() {
            return "ok".to_owned();
        }
        // SAFETY: an error is a string that is ours to free.
        unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            self.f::<unsafe extern "C" fn(Ptr)>("free")(error.cast());
            text.split(':').next().unwrap_or_default().to_owned()
        }
    }

    /// Does the operation and says what came of it.
    pub fn run(&mut self, op: &Op) -> String {
        type Put = unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize, *const c_char, usize, Slot);
        type PutCf = unsafe extern "C" fn(Ptr, Ptr, Ptr, *const c_char, usize, *const c_char, usize, Slot);
        type Delete = unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize, Slot);
        type DeleteCf = unsafe extern "C" fn(Ptr, Ptr, Ptr, *const c_char, usize, Slot);
        let mut error = null_mut();
        let (db, writes) = (self.db, self.writes);
        // SAFETY: each function has the type of its header; keys and values live for the call.
        unsafe {
            match op {
                Op::Put(key, value) | Op::Merge(key, value) => {
                    let name = if matches!(op, Op::Put(..)) { "put" } else { "merge" };
                    let (key, data, len) = (key_of(*key), value.as_ptr().cast(), value.len());
                    let (key, key_len) = (key.as_ptr().cast(), key.len());
                    if self.family.is_null() {
                        self.f::<Put>(name)(db, writes, key, key_len, data, len, &raw mut error);
                    } else {
                        let (name, family) = (format!("{name}_cf"), self.family);
                        self.f::<PutCf>(&name)(db, writes, family, key, key_len, data, len, &raw mut error);
                    }
                }
                Op::Delete(key) => {
                    let key = key_of(*key);
                    let (key, len) = (key.as_ptr().cast(), key.len());
                    if self.family.is_null() {
                        self.f::<Delete>("delete")(db, writes, key, len, &raw mut error);
                    } else {
                        self.f::<DeleteCf>("delete_cf")(db, writes, self.family, key, len, &raw mut error);
                    }
                }
                Op::DeleteRange(start, end) => {
                    let (start, end) = (key_of(*start), key_of(*end));
                    if start >= end {
                        return "nothing".to_owned();
                    }
                    type DeleteRange =
                        unsafe extern "C" fn(Ptr, Ptr, Ptr, *const c_char, usize, *const c_char, usize, Slot);
                    let family = if self.family.is_null() {
                        self.families[0]
                    } else {
                        self.family
                    };
                    self.f::<DeleteRange>("delete_range_cf")(
                        db,
                        writes,
                        family,
                        start.as_ptr().cast(),
                        start.len(),
                        end.as_ptr().cast(),
                        end.len(),
                        &raw mut error,
                    );
                }
                Op::Write(rows) => self.write(rows, &raw mut error),
                Op::Get(key) => return self.get(self.reads, *key),
                Op::Snapshot => {
                    let snapshot = self.f::<unsafe extern "C" fn(Ptr) -> Ptr>("create_snapshot")(db);
                    self.snapshots.push(snapshot);
                }
                Op::Release(number) => {
                    if !self.snapshots.is_empty() {
                        let at = usize::from(*number) % self.snapshots.len();
                        let snapshot = self.snapshots.remove(at);
                        self.f::<unsafe extern "C" fn(Ptr, Ptr)>("release_snapshot")(db, snapshot);
                    }
                }
                Op::GetThen(number, key) => {
                    return self.with_options(Some(*number), |target, options| target.get(options, *key));
                }
                Op::Scan {
                    from,
                    forward,
                    rows,
                    then,
                } => {
                    return self.with_options(*then, |target, options| {
                        target.scan(options, Some(&key_of(*from)), *forward, *rows)
                    });
                }
                Op::Within {
                    lower,
                    upper,
                    forward,
                } => {
                    let (lower, upper) = (key_of(*lower), key_of(*upper));
                    if lower > upper {
                        return "nothing".to_owned();
                    }
                    return self.with_options(None, |target, options| {
                        type Bound = unsafe extern "C" fn(Ptr, *const c_char, usize);
                        for (name, key) in [("lower", &lower), ("upper", &upper)] {
                            target.f::<Bound>(&format!("readoptions_set_iterate_{name}_bound"))(
                                options,
                                key.as_ptr().cast(),
                                key.len(),
                            );
                        }
                        target.scan(options, None, *forward, 100)
                    });
                }
                Op::Compact(range) => {
                    type Compact = unsafe extern "C" fn(Ptr, *const c_char, usize, *const c_char, usize);
                    let range = range.map(|(a, b)| (key_of(a.min(b)), key_of(a.max(b))));
                    let ends = range.as_ref().map_or((null(), 0, null(), 0), |(start, end)| {
                        (start.as_ptr().cast(), start.len(), end.as_ptr().cast(), end.len())
                    });
                    type CompactCf =
                        unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize, *const c_char, usize);
                    if self.family.is_null() {
                        self.f::<Compact>("compact_range")(db, ends.0, ends.1, ends.2, ends.3);
                    } else {
                        let function = self.f::<CompactCf>("compact_range_cf");
                        function(db, self.family, ends.0, ends.1, ends.2, ends.3);
                    }
                }
                Op::MultiGet(keys) => return self.multi_get(keys),
                Op::Other(op) => {
                    self.family = self.families[1];
                    let answer = self.run(op);
                    self.family = null_mut();
                    return answer;
                }
                Op::Reopen => {
                    self.close();
                    self.open_again();
                }
            }
        }
        self.answer(error)
    }

    /// # Safety
    /// `error` is a slot.
    unsafe fn write(&self, rows: &[(u8, Option<Vec<u8>>)], error: Slot) {
        // SAFETY: as in `run`.
        unsafe {
            let batch = self.f::<unsafe extern "C" fn() -> Ptr>("writebatch_create")();
            for (key, value) in rows {
                type Put = unsafe extern "C" fn(Ptr, *const c_char, usize, *const c_char, usize);
                type PutCf = unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize, *const c_char, usize);
                type Delete = unsafe extern "C" fn(Ptr, *const c_char, usize);
                type DeleteCf = unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize);
                let (key, family) = (key_of(*key), self.family);
                let (key, len) = (key.as_ptr().cast(), key.len());
                match value {
                    Some(value) if family.is_null() => {
                        self.f::<Put>("writebatch_put")(batch, key, len, value.as_ptr().cast(), value.len());
                    }
                    Some(value) => {
                        let function = self.f::<PutCf>("writebatch_put_cf");
                        function(batch, family, key, len, value.as_ptr().cast(), value.len());
                    }
                    None if family.is_null() => self.f::<Delete>("writebatch_delete")(batch, key, len),
                    None => self.f::<DeleteCf>("writebatch_delete_cf")(batch, family, key, len),
                }
            }
            self.f::<unsafe extern "C" fn(Ptr, Ptr, Ptr, Slot)>("write")(self.db, self.writes, batch, error);
            self.f::<unsafe extern "C" fn(Ptr)>("writebatch_destroy")(batch);
        }
    }

    /// Read options of the moment, with one of the snapshots if there is any.
    fn with_options(&self, snapshot: Option<u8>, read: impl FnOnce(&Self, Ptr) -> String) -> String {
        // SAFETY: as in `run`.
        unsafe {
            let options = self.f::<unsafe extern "C" fn() -> Ptr>("readoptions_create")();
            if let Some(number) = snapshot.filter(|_| !self.snapshots.is_empty()) {
                let snapshot = self.snapshots[usize::from(number) % self.snapshots.len()];
                self.f::<unsafe extern "C" fn(Ptr, Ptr)>("readoptions_set_snapshot")(options, snapshot);
            }
            let answer = read(self, options);
            self.f::<unsafe extern "C" fn(Ptr)>("readoptions_destroy")(options);
            answer
        }
    }

    fn get(&self, options: Ptr, key: u8) -> String {
        type Get = unsafe extern "C" fn(Ptr, Ptr, *const c_char, usize, *mut usize, Slot) -> *mut c_char;
        type GetCf =
            unsafe extern "C" fn(Ptr, Ptr, Ptr, *const c_char, usize, *mut usize, Slot) -> *mut c_char;
        let (key, mut len, mut error) = (key_of(key), 77, null_mut());
        // SAFETY: as in `run`; a value is ours to free.
        unsafe {
            let (data, key_len) = (key.as_ptr().cast(), key.len());
            let value = if self.family.is_null() {
                self.f::<Get>("get")(self.db, options, data, key_len, &raw mut len, &raw mut error)
            } else {
                let function = self.f::<GetCf>("get_cf");
                function(
                    self.db,
                    options,
                    self.family,
                    data,
                    key_len,
                    &raw mut len,
                    &raw mut error,
                )
            };
            if value.is_null() {
                return format!("{} none {len}", self.answer(error));
            }
            let shown = shown(value, len);
            self.f::<unsafe extern "C" fn(Ptr)>("free")(value.cast());
            shown
        }
    }

    fn scan(&self, options: Ptr, from: Option<&[u8]>, forward: bool, rows: usize) -> String {
        type Part = unsafe extern "C" fn(Ptr, *mut usize) -> *const c_char;
        let mut text = String::new();
        // SAFETY: as in `run`; keys and values are read while the iterator stands on them.
        unsafe {
            let iter = if self.family.is_null() {
                self.f::<unsafe extern "C" fn(Ptr, Ptr) -> Ptr>("create_iterator")(self.db, options)
            } else {
                let function = self.f::<unsafe extern "C" fn(Ptr, Ptr, Ptr) -> Ptr>("create_iterator_cf");
                function(self.db, options, self.family)
            };
            match from {
                Some(key) => self.f::<unsafe extern "C" fn(Ptr, *const c_char, usize)>("iter_seek")(
                    iter,
                    key.as_ptr().cast(),
                    key.len(),
                ),
                None if forward => self.f::<unsafe extern "C" fn(Ptr)>("iter_seek_to_first")(iter),
                None => self.f::<unsafe extern "C" fn(Ptr)>("iter_seek_to_last")(iter),
            }
            let valid = self.f::<unsafe extern "C" fn(Ptr) -> c_uchar>("iter_valid");
            for row in 0..rows {
                if valid(iter) == 0 {
                    break;
                }
                let (mut key_len, mut value_len) = (0, 0);
                let key = self.f::<Part>("iter_key")(iter, &raw mut key_len);
                let value = self.f::<Part>("iter_value")(iter, &raw mut value_len);
                text += &format!("{}={} ", shown(key, key_len), shown(value, value_len));
                // Now and then in the other direction.
                let step = if forward == (row % 7 != 6) {
                    "iter_next"
                } else {
                    "iter_prev"
                };
                self.f::<unsafe extern "C" fn(Ptr)>(step)(iter);
            }
            let mut error = null_mut();
            self.f::<unsafe extern "C" fn(Ptr, Slot)>("iter_get_error")(iter, &raw mut error);
            text += &format!("{} {}", valid(iter), self.answer(error));
            self.f::<unsafe extern "C" fn(Ptr)>("iter_destroy")(iter);
        }
        text
    }

    /// Of the keys, every second in the other family.
    fn multi_get(&self, keys: &[u8]) -> String {
        type MultiGet = unsafe extern "C" fn(
            Ptr,
            Ptr,
            *const Ptr,
            usize,
            *const *const c_char,
            *const usize,
            *mut *mut c_char,
            *mut usize,
            Slot,
        );
        let keys: Vec<_> = keys.iter().map(|&key| key_of(key)).collect();
        let data: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lens: Vec<_> = keys.iter().map(Vec::len).collect();
        let families: Vec<_> = (0..keys.len()).map(|i| self.families[i % 2]).collect();
        let (mut values, mut value_lens) = (vec![null_mut(); keys.len()], vec![7; keys.len()]);
        let mut errors = vec![null_mut(); keys.len()];
        // SAFETY: as in `run`; every list has as many entries as there are keys.
        unsafe {
            self.f::<MultiGet>("multi_get_cf")(
                self.db,
                self.reads,
                families.as_ptr(),
                keys.len(),
                data.as_ptr(),
                lens.as_ptr(),
                values.as_mut_ptr(),
                value_lens.as_mut_ptr(),
                errors.as_mut_ptr(),
            );
            let mut text = String::new();
            for ((value, len), error) in values.into_iter().zip(value_lens).zip(errors) {
                text += &self.answer(error);
                if !value.is_null() {
                    text += &shown(value, len);
                    self.f::<unsafe extern "C" fn(Ptr)>("free")(value.cast());
                }
            }
            text
        }
    }

    pub fn close(&mut self) {
        // SAFETY: as in `run`; snapshots go before their database.
        unsafe {
            for snapshot in self.snapshots.drain(..).collect::<Vec<_>>() {
                self.f::<unsafe extern "C" fn(Ptr, Ptr)>("release_snapshot")(self.db, snapshot);
            }
            for family in &self.families {
                self.f::<unsafe extern "C" fn(Ptr)>("column_family_handle_destroy")(*family);
            }
            self.f::<unsafe extern "C" fn(Ptr)>("close")(self.db);
        }
    }

    fn set_merge_operator(&self) {
        type Create = unsafe extern "C" fn(
            Ptr,
            unsafe extern "C" fn(Ptr),
            FullMerge,
            PartialMerge,
            unsafe extern "C" fn(Ptr, *const c_char, usize),
            unsafe extern "C" fn(Ptr) -> *const c_char,
        ) -> Ptr;
        // SAFETY: the functions below keep the header's contract; the options own the operator.
        unsafe {
            let operator = self.f::<Create>("mergeoperator_create")(
                null_mut(),
                nothing,
                full_merge,
                partial_merge,
                delete_value,
                operator_name,
            );
            self.f::<unsafe extern "C" fn(Ptr, Ptr)>("options_set_merge_operator")(self.options, operator);
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.close();
        // SAFETY: as in `run`.
        unsafe {
            self.f::<unsafe extern "C" fn(Ptr)>("options_destroy")(self.options);
            self.f::<unsafe extern "C" fn(Ptr)>("readoptions_destroy")(self.reads);
            self.f::<unsafe extern "C" fn(Ptr)>("writeoptions_destroy")(self.writes);
        }
    }
}

/// # Safety
/// `data` is readable for `len` bytes.
unsafe fn shown(data: *const c_char, len: usize) -> String {
    if len == 0 {
        return "''".to_owned();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    if len <= 24 {
        return format!("'{}'", bytes.escape_ascii());
    }
    let sum = bytes
        .iter()
        .fold(0_u64, |sum, &byte| sum.wrapping_mul(31) + u64::from(byte));
    format!("{len} bytes, {sum:x}")
}
