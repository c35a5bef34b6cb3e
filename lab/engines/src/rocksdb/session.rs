//! One thread's work on an open RocksDB database: reads through pinned slices, no copies on our side.

use std::ffi::c_char;

use esker_lab_core::Result;
use esker_lab_core::engine::{Durability, Session, Start};

use super::Open;
use super::api::{Api, Ptr};
use crate::capi::{ErrorSlot, bytes};
use crate::common::{Batch, ReadOptions};

pub(super) struct Worker<'a> {
    api: &'static Api,
    open: &'a Open,
    batch: Batch,
    read: ReadOptions,
    scan: ReadOptions,
}

impl<'a> Worker<'a> {
    pub(super) fn new(open: &'a Open) -> Self {
        let api = open.api;
        let (read, scan) = (ReadOptions::new(&api.base), ReadOptions::new(&api.base));
        // SAFETY: options of our own.
        unsafe {
            if let Some(set) = api.readoptions_set_verify_checksums {
                set(read.raw(), 1);
                set(scan.raw(), 1);
            }
            if let Some(set) = api.readoptions_set_readahead_size {
                set(scan.raw(), open.setup.readahead_bytes());
            }
        }
        Worker {
            api,
            open,
            batch: Batch::new(&api.base),
            read,
            scan,
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

impl Session for Worker<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let options = self.open.writes.get(durability);
        self.open.connection.put(options, key, value)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        let options = self.open.writes.get(durability);
        self.open.connection.put_batch(options, &mut self.batch, rows)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut error = ErrorSlot::new();
        // SAFETY: the key is readable for the length given; the slice, if any, is ours until destroyed.
        unsafe {
            let slice = (self.api.get_pinned)(
                self.open.connection.raw(),
                self.read.raw(),
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
        let options = self.open.writes.get(durability);
        self.open.connection.delete(options, key)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], durability: Durability) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: key and operand are readable for the lengths given.
        unsafe {
            (self.api.merge)(
                self.open.connection.raw(),
                self.open.writes.get(durability).raw(),
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
        let options = if let Start::At(_) = start {
            &self.read
        } else {
            &self.scan
        };
        self.open.connection.scan(options, start, row)
    }
}
