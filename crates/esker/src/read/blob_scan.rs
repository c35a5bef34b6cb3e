//! The values of an iterator's rows, where they lie in blob files.
//!
//! Blob files are sorted by key, so the rows of a scan point into each of them in ascending order, and a window of each
//! serves many rows by one storage read.

use std::sync::Arc;

use super::ReadOptions;
use crate::blob::{BlobPointer, BlobReader, BlobWindows, WindowOptions};
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
    /// The value that was loaded last, if it is in the cache; else it is in `copy`, whose memory serves every row.
    cached: Option<SharedBytes>,
    copy: Vec<u8>,
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
            cached: None,
            copy: Vec::new(),
        })
    }

    /// Takes the value behind `pointer` out of the cache, if it is there.
    #[inline]
    pub fn load_cached(&mut self, pointer: &BlobPointer) -> bool {
        self.cached = self.cached(pointer);
        self.cached.is_some()
    }

    /// Reads the value behind `pointer`. Allocates only for a value that enters the cache, or is longer than all before.
    pub fn load(&mut self, pointer: &BlobPointer) -> Result<()> {
        self.cached = None;
        let (windows, verify) = (&mut self.windows, self.verify_checksums);
        let value = self
            .tables
            .with_blob(self.blobs.find(pointer.file)?, move |reader| {
                windows.get(reader, pointer, verify)
            })?;
        if self.fill_cache {
            let value = SharedBytes::from(value);
            self.tables.keep_value(&self.blobs, pointer, value.clone());
            self.cached = Some(value);
        } else {
            self.copy.clear();
            self.copy.extend_from_slice(value);
        }
        Ok(())
    }

    /// The value behind `pointer`, if the block cache has it.
    #[inline]
    pub fn cached(&self, pointer: &BlobPointer) -> Option<SharedBytes> {
        self.tables.cached_value(&self.blobs, pointer)
    }

    /// Keeps a value in the block cache that was read elsewhere.
    pub fn keep(&self, pointer: &BlobPointer, value: &[u8]) {
        self.tables
            .keep_value(&self.blobs, pointer, SharedBytes::from(value));
    }

    /// An open blob file, by the number that pointers have.
    pub fn reader(&self, file: u64) -> Result<Arc<BlobReader>> {
        self.tables.blob(self.blobs.find(file)?)
    }

    /// Whether values that are read enter the block cache.
    pub fn fills_cache(&self) -> bool {
        self.fill_cache
    }

    /// Whether checksums are verified.
    #[inline]
    pub fn verifies(&self) -> bool {
        self.verify_checksums
    }

    /// Lets go of what it read beyond the values that were wanted.
    pub fn forget_windows(&mut self) {
        self.windows.clear();
    }

    /// The value that was loaded last.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.cached {
            Some(value) => value,
            None => &self.copy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use esker_env::{CreateOptions, Env, IoMode};

    use crate::blob::BlobWriter;
    use crate::cache::BlockCache;
    use crate::metrics::Metrics;
    use crate::options::Compression;
    use crate::version::{BlobFile, FileKind};

    const VALUES: u8 = 50;

    fn value(i: u8) -> Vec<u8> {
        vec![i; 1000 - usize::from(i)]
    }

    /// A scan over a blob file of [`VALUES`] values, and the pointers to them.
    fn scan(fill_cache: bool) -> (BlobScan, Vec<Vec<u8>>) {
        let env = Env::simulated(1).0;
        let (dir, number) = (Path::new("db"), 5);
        env.fs.create_dir_all(dir).unwrap();
        let path = FileKind::Blob(number).path(dir);
        let file = env.fs.create(&path, CreateOptions::default()).unwrap();
        let mut writer = BlobWriter::new(file, &path, 1, number, Compression::None).unwrap();
        let pointers = (0..VALUES).map(|i| {
            let mut pointer = Vec::new();
            writer.add(&value(i)).unwrap().encode_into(&mut pointer);
            pointer
        });
        let pointers = pointers.collect();
        let summary = writer.finish(true).unwrap();
        let mut blobs = BlobSet::default();
        let file = BlobFile::new(number, summary.file_bytes, summary.records, summary.record_bytes);
        blobs.add(Arc::new(file)).unwrap();
        let tables = Tables::new(
            env.fs,
            dir.to_owned(),
            Arc::new(BlockCache::new(1 << 20)),
            Arc::new(Metrics::default()),
            IoMode::Buffered,
            1,
            16,
        );
        let scan = BlobScan {
            blobs: Arc::new(blobs),
            tables: Arc::new(tables),
            windows: BlobWindows::new(WindowOptions::SCAN),
            verify_checksums: true,
            fill_cache,
            cached: None,
            copy: Vec::new(),
        };
        (scan, pointers)
    }

    fn load(scan: &mut BlobScan, pointer: &[u8]) {
        let pointer = BlobPointer::decode(pointer).unwrap();
        if !scan.load_cached(&pointer) {
            scan.load(&pointer).unwrap();
        }
    }

    /// Each row took memory of its own.
    #[test]
    fn values_that_do_not_enter_the_cache_share_one_buffer() {
        let (mut scan, pointers) = scan(false);
        load(&mut scan, &pointers[0]);
        let buffer = scan.value().as_ptr();
        for (i, pointer) in (0..).zip(&pointers) {
            load(&mut scan, pointer);
            assert_eq!(scan.value(), value(i));
            assert_eq!(scan.value().as_ptr(), buffer);
        }
        assert!(scan.tables.block_cache().is_empty());
    }

    #[test]
    fn values_out_of_the_cache_and_out_of_the_file_take_turns() {
        let (mut scan, pointers) = scan(true);
        for pointer in pointers.iter().step_by(2) {
            load(&mut scan, pointer);
        }
        scan.fill_cache = false;
        for (i, pointer) in (0..).zip(&pointers) {
            load(&mut scan, pointer);
            assert_eq!(scan.value(), value(i));
        }
        assert_eq!(scan.tables.block_cache().len(), pointers.len().div_ceil(2));
    }
}
