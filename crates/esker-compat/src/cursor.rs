//! An iterator as C has it: moving it returns nothing, its error waits until it is asked for.

use esker::Iter;

use crate::guard::survive;
use crate::status::{Result, Status};

/// An iterator, or what became of it.
pub struct Cursor {
    /// None if it could not be made, or panicked.
    iter: Option<Iter>,
    /// What the last move met, or why there is none.
    error: Option<Status>,
    /// Shows what was written until it was last positioned, not until it was made.
    tailing: bool,
}

impl Cursor {
    /// Of what making an iterator gave.
    pub fn new(made: Result<Iter>) -> Self {
        let (iter, error) = match made {
            Ok(iter) => (Some(iter), None),
            Err(status) => (None, Some(status)),
        };
        Self {
            iter,
            error,
            tailing: false,
        }
    }

    /// Takes a fresh view whenever it is positioned.
    #[must_use]
    pub fn tailing(mut self, tailing: bool) -> Self {
        self.tailing = tailing;
        self
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.iter.as_ref().is_some_and(Iter::valid)
    }

    /// The key it stands on; empty if there is none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.iter.as_ref().map_or(&[], Iter::key)
    }

    /// The value it stands on; empty if there is none.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.iter.as_ref().map_or(&[], Iter::value)
    }

    /// The error that it ran into, if any.
    pub fn error(&self) -> Option<&Status> {
        self.error.as_ref()
    }

    /// Steps from row to row; does nothing while not valid.
    #[inline]
    pub fn step(&mut self, step: impl FnOnce(&mut Iter) -> esker::Result<()>) {
        let Some(iter) = &mut self.iter else { return };
        match survive(|| Ok(step(iter))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.error = Some(error.into()),
            Err(panic) => self.lose(panic),
        }
    }

    /// Positions it; an earlier error is forgotten.
    pub fn position(&mut self, seek: impl FnOnce(&mut Iter) -> esker::Result<()>) {
        if self.iter.is_none() {
            return;
        }
        self.error = None;
        let tailing = self.tailing;
        self.step(|iter| {
            if tailing {
                iter.refresh()?;
            }
            seek(iter)
        });
    }

    /// Shows the rows of now. Not positioned afterwards.
    pub fn refresh(&mut self) -> Result<()> {
        self.position(Iter::refresh);
        self.error.clone().map_or(Ok(()), Err)
    }

    /// An iterator that panicked is in no known state: it is not used again.
    #[cold]
    fn lose(&mut self, panic: Status) {
        self.iter = None;
        self.error = Some(panic);
    }
}

/// The functions of an iterator, which both interfaces have alike, under the names given.
#[macro_export]
macro_rules! iterator_functions {
    (
        $destroy:ident, $valid:ident, $seek_to_first:ident, $seek_to_last:ident, $seek:ident, $next:ident,
        $prev:ident, $key:ident, $value:ident, $get_error:ident
    ) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $destroy(iter: *mut $crate::cursor::Cursor) {
            if !iter.is_null() {
                // SAFETY: the contract; a destroyed iterator is not used again.
                drop(unsafe { Box::from_raw(iter) });
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $valid(iter: *const $crate::cursor::Cursor) -> std::ffi::c_uchar {
            // SAFETY: the contract.
            unsafe { &*iter }.valid().into()
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $seek_to_first(iter: *mut $crate::cursor::Cursor) {
            // SAFETY: the contract; an iterator is used by one thread at a time.
            unsafe { &mut *iter }.position(esker::Iter::seek_to_first);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $seek_to_last(iter: *mut $crate::cursor::Cursor) {
            // SAFETY: as above.
            unsafe { &mut *iter }.position(esker::Iter::seek_to_last);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $seek(
            iter: *mut $crate::cursor::Cursor,
            key: *const std::ffi::c_char,
            key_len: usize,
        ) {
            // SAFETY: as above.
            let (iter, key) = unsafe { (&mut *iter, $crate::bytes::slice(key, key_len)) };
            iter.position(|iter| iter.seek(key));
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $next(iter: *mut $crate::cursor::Cursor) {
            // SAFETY: as above.
            unsafe { &mut *iter }.step(esker::Iter::next);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $prev(iter: *mut $crate::cursor::Cursor) {
            // SAFETY: as above.
            unsafe { &mut *iter }.step(esker::Iter::prev);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $key(
            iter: *const $crate::cursor::Cursor,
            len: *mut usize,
        ) -> *const std::ffi::c_char {
            // SAFETY: the contract; `len` is writable.
            unsafe {
                let key = (*iter).key();
                *len = key.len();
                key.as_ptr().cast()
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $value(
            iter: *const $crate::cursor::Cursor,
            len: *mut usize,
        ) -> *const std::ffi::c_char {
            // SAFETY: the contract; `len` is writable.
            unsafe {
                let value = (*iter).value();
                *len = value.len();
                value.as_ptr().cast()
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $get_error(
            iter: *const $crate::cursor::Cursor,
            error: *mut *mut std::ffi::c_char,
        ) {
            // SAFETY: the contract.
            unsafe {
                if let Some(status) = (*iter).error() {
                    $crate::guard::store(error, status);
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::{Db, Options, ReadOptions};

    fn db(dir: &tempfile::TempDir) -> Db {
        Db::open(dir.path().join("db"), Options::default()).unwrap()
    }

    #[test]
    fn an_iterator_that_was_not_made_says_why_and_is_never_valid() {
        let mut cursor = Cursor::new(Err(Status::invalid("no")));
        cursor.position(Iter::seek_to_first);
        cursor.step(Iter::next);
        assert!(!cursor.valid());
        assert_eq!(cursor.key(), b"");
        assert_eq!(cursor.error().unwrap().to_string(), "Invalid argument: no");
        assert!(cursor.refresh().is_err());
    }

    #[test]
    fn a_panic_ends_the_iterator_and_not_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let db = db(&dir);
        let mut cursor = Cursor::new(db.iter(ReadOptions::default()).map_err(Status::from));
        cursor.position(|_| panic!("in a callback"));
        assert!(!cursor.valid());
        assert!(cursor.error().unwrap().to_string().contains("in a callback"));
    }

    #[test]
    fn an_error_is_forgotten_by_the_next_positioning() {
        let dir = tempfile::tempdir().unwrap();
        let db = db(&dir);
        db.put(b"a", b"1").unwrap();
        let mut cursor = Cursor::new(db.iter(ReadOptions::default()).map_err(Status::from));
        cursor.position(|_| Err(esker::Error::corruption("a block")));
        assert!(cursor.error().is_some());
        cursor.position(Iter::seek_to_first);
        assert!(cursor.error().is_none() && cursor.valid());
    }

    #[test]
    fn a_tailing_iterator_sees_what_was_written_since() {
        let dir = tempfile::tempdir().unwrap();
        let db = db(&dir);
        let make = || Cursor::new(db.iter(ReadOptions::default()).map_err(Status::from));
        let (mut plain, mut tailing) = (make(), make().tailing(true));
        db.put(b"a", b"1").unwrap();
        plain.position(Iter::seek_to_first);
        tailing.position(Iter::seek_to_first);
        assert!(!plain.valid());
        assert_eq!(tailing.key(), b"a");
        plain.refresh().unwrap();
        plain.position(Iter::seek_to_first);
        assert_eq!(plain.value(), b"1");
    }
}
