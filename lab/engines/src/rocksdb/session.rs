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
        let (read, scan) = (verified(api), verified(api));
        if let Some(set) = api.readoptions_set_readahead_size {
            // SAFETY: options of our own.
            unsafe { set(scan.raw(), open.setup.readahead_bytes()) };
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

/// Options of reads that verify checksums.
pub(super) fn verified(api: &'static Api) -> ReadOptions {
    let options = ReadOptions::new(&api.base);
    if let Some(set) = api.readoptions_set_verify_checksums {
        // SAFETY: options of our own.
        unsafe { set(options.raw(), 1) };
    }
    options
}

/// A pinned value, released when it goes out of scope (also when the caller's check panics).
pub(super) struct Pinned {
    api: &'static Api,
    slice: Ptr,
}

impl Pinned {
    /// `None` of a null.
    ///
    /// # Safety
    /// `slice` is null, or a pinned value of the library that is ours from now on.
    pub(super) unsafe fn new(api: &'static Api, slice: Ptr) -> Option<Pinned> {
        (!slice.is_null()).then_some(Pinned { api, slice })
    }

    pub(super) fn value(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the value stays as it is until it is destroyed, which `self` outlives.
        unsafe {
            let value: *const c_char = (self.api.pinnableslice_value)(self.slice, &raw mut length);
            bytes(value, length)
        }
    }
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
        // SAFETY: the key is readable for the length given; the slice, if any, is ours.
        let pinned = unsafe {
            let slice = (self.api.get_pinned)(
                self.open.connection.raw(),
                self.read.raw(),
                key.as_ptr().cast(),
                key.len(),
                error.out(),
            );
            Pinned::new(self.api, slice)
        };
        error.check("get", self.api.free)?;
        if let Some(pinned) = &pinned {
            found(pinned.value());
        }
        Ok(pinned.is_some())
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
