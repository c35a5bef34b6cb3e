//! One thread's work on an open RocksDB database: reads through pinned slices, no copies on our side.

use std::ffi::c_char;

use esker_lab_core::Result;
use esker_lab_core::engine::{Durability, Session, Start};

use super::Open;
use super::api::{Api, Ptr};
use crate::capi::{ErrorSlot, bytes};

pub(super) struct Worker<'a> {
    api: &'static Api,
    database: Ptr,
    open: &'a Open,
    batch: Ptr,
    read: Ptr,
    scan: Ptr,
}

impl<'a> Worker<'a> {
    pub(super) fn new(open: &'a Open) -> Self {
        let api = open.database.api;
        // SAFETY: objects of our own, destroyed once in `drop`.
        unsafe {
            let worker = Worker {
                api,
                database: open.database.database,
                open,
                batch: (api.writebatch_create)(),
                read: (api.readoptions_create)(),
                scan: (api.readoptions_create)(),
            };
            if let Some(set) = api.readoptions_set_verify_checksums {
                set(worker.read, 1);
                set(worker.scan, 1);
            }
            if let Some(set) = api.readoptions_set_readahead_size {
                set(worker.scan, open.setup.readahead_bytes());
            }
            worker
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, before the database (which we borrow).
        unsafe {
            (self.api.writebatch_destroy)(self.batch);
            (self.api.readoptions_destroy)(self.read);
            (self.api.readoptions_destroy)(self.scan);
        }
    }
}

/// A pinned value, released when it goes out of scope (also when the caller's check panics).
struct Pinned {
    api: &'static Api,
    slice: Ptr,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        unsafe { (self.api.pinnableslice_destroy)(self.slice) };
    }
}

/// An iterator, destroyed when it goes out of scope.
struct Iter {
    api: &'static Api,
    iter: Ptr,
}

impl Drop for Iter {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, inside a session and so before the database.
        unsafe { (self.api.iter_destroy)(self.iter) };
    }
}

impl Session for Worker<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: key and value are readable for the lengths given.
        unsafe {
            (self.api.put)(
                self.database,
                self.open.writes.get(durability),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error.out(),
            );
        }
        error.check("put", self.api.free)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: keys and values are readable for the lengths given and copied into our own batch.
        unsafe {
            (self.api.writebatch_clear)(self.batch);
            for (key, value) in rows {
                (self.api.writebatch_put)(
                    self.batch,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                );
            }
            (self.api.write)(
                self.database,
                self.open.writes.get(durability),
                self.batch,
                error.out(),
            );
        }
        error.check("write", self.api.free)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut error = ErrorSlot::new();
        // SAFETY: the key is readable for the length given; the slice, if any, is ours until destroyed.
        unsafe {
            let slice = (self.api.get_pinned)(
                self.database,
                self.read,
                key.as_ptr().cast(),
                key.len(),
                error.out(),
            );
            let pinned = (!slice.is_null()).then_some(Pinned { api: self.api, slice });
            error.check("get", self.api.free)?;
            let Some(pinned) = pinned else { return Ok(false) };
            let mut length = 0;
            let value: *const c_char = (self.api.pinnableslice_value)(pinned.slice, &raw mut length);
            found(bytes(value, length));
        }
        Ok(true)
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: the key is readable for the length given.
        unsafe {
            let options = self.open.writes.get(durability);
            (self.api.delete)(
                self.database,
                options,
                key.as_ptr().cast(),
                key.len(),
                error.out(),
            );
        }
        error.check("delete", self.api.free)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], durability: Durability) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: key and operand are readable for the lengths given.
        unsafe {
            (self.api.merge)(
                self.database,
                self.open.writes.get(durability),
                key.as_ptr().cast(),
                key.len(),
                operand.as_ptr().cast(),
                operand.len(),
                error.out(),
            );
        }
        error.check("merge", self.api.free)
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let api = self.api;
        let options = if let Start::At(_) = start {
            self.read
        } else {
            self.scan
        };
        // SAFETY: the iterator is ours; keys and values are read only while it is valid and not moved.
        unsafe {
            let iter = Iter {
                api,
                iter: (api.create_iterator)(self.database, options),
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
