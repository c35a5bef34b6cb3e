//! The values of an iterator's rows, where they lie in blob files.
//!
//! Blob files are sorted by key, so the rows of a scan point into each of them in ascending order, and a window of each
//! serves many rows by one storage read.

use std::sync::Arc;

use super::ReadOptions;
use crate::blob::{BlobPointer, BlobWindows, WindowOptions};
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::version::{BlobSet, Tables, View};

/// Reads the values of the rows that an iterator comes to.
#[derive(Debug)]
pub struct BlobScan {
    blobs: Arc<BlobSet>,
    tables: Arc<Tables>,
    windows: BlobWindows,
    verify_checksums: bool,
    fill_cache: bool,
    /// The value that was loaded last.
    value: SharedBytes,
}

impl BlobScan {
    /// For an iterator over `view`; `None` if none of its rows can point into a blob file.
    pub fn new(view: &View, tables: &Arc<Tables>, options: &ReadOptions) -> Option<Self> {
        let blobs = view.version.blobs();
        (!blobs.is_empty()).then(|| Self {
            blobs: Arc::clone(blobs),
            tables: Arc::clone(tables),
            windows: BlobWindows::new(WindowOptions {
                window_bytes_max: WindowOptions::SCAN.window_bytes_max.max(options.readahead_bytes),
                ..WindowOptions::SCAN
            }),
            verify_checksums: options.verify_checksums,
            fill_cache: options.fill_cache,
            value: SharedBytes::default(),
        })
    }

    /// Reads the value behind `pointer`.
    #[inline]
    pub fn load(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = BlobPointer::decode(pointer)?;
        if let Some(value) = self.tables.cached_value(&pointer) {
            self.value = value;
            return Ok(());
        }
        let reader = self.tables.blob(self.blobs.find(pointer.file)?)?;
        let value = self.windows.get(reader, &pointer, self.verify_checksums)?;
        self.value = SharedBytes::from(value);
        if self.fill_cache {
            self.tables.keep_value(&pointer, self.value.clone());
        }
        Ok(())
    }

    /// The value that was loaded last.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}
