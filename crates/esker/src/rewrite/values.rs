//! Where the values of surviving rows go: large ones into a blob file, which leaves a pointer to each in the table.
//!
//! A value is written once when its memtable is flushed. Compactions pass its pointer on, and write it again only to
//! empty a blob file of which little is live ([`BlobInputs::emptied`]). As flushes and compactions write rows in the
//! order of their keys, every blob file is sorted, so scans and later compactions read them from front to back.
//!
//! Invariants:
//! - Of each blob file, the references counted for a table are those of exactly the rows that were placed since the last
//!   [`take_refs`](Values::take_refs).
//! - Where a value goes is decided by its own length, however long it is when compressed: flushes and all compactions
//!   decide the same, so a value changes its place only after the setting did.

use std::collections::BTreeMap;

use super::OutputContext;
use super::blob_output::BlobOutput;
use crate::blob::{BlobPointer, BlobWindows, WindowOptions};
use crate::error::Result;
use crate::key::{TRAILER_LEN, ValueKind};
use crate::version::{BlobFile, BlobRef, BlobSet, Tables};

/// The blob files that a compaction's rows point into.
pub struct BlobInputs<'a> {
    /// Opens them.
    pub tables: &'a Tables,
    /// All of them.
    pub blobs: &'a BlobSet,
    /// Numbers of files whose live values move to a new file, ascending.
    pub emptied: Vec<u64>,
}

impl BlobInputs<'_> {
    fn is_emptied(&self, number: u64) -> bool {
        self.emptied.binary_search(&number).is_ok()
    }
}

/// Places values, in the order of their keys.
pub(super) struct Values<'a> {
    context: &'a OutputContext<'a>,
    windows: BlobWindows,
    output: BlobOutput<'a>,
    refs: Refs,
    row: Row,
}

impl<'a> Values<'a> {
    pub fn new(context: &'a OutputContext<'a>) -> Self {
        Self {
            context,
            windows: BlobWindows::new(WindowOptions::COMPACTION),
            output: BlobOutput::new(context),
            refs: Refs::default(),
            row: Row::default(),
        }
    }

    /// The row to put into the table for this one.
    #[inline]
    pub fn place<'v>(&'v mut self, internal_key: &'v [u8], value: &'v [u8]) -> Result<(&'v [u8], &'v [u8])> {
        let kind = kind_byte(internal_key);
        if kind == ValueKind::Put as u8 {
            if !is_large(self.context, value) {
                return Ok((internal_key, value));
            }
            let pointer = self.output.add(value)?;
            self.refs.count(&pointer);
            return Ok(self.row.with_pointer(internal_key, &pointer));
        }
        if kind != ValueKind::BlobPointer as u8 {
            return Ok((internal_key, value));
        }
        let pointer = BlobPointer::decode(value)?;
        match &self.context.blobs {
            Some(inputs) if inputs.is_emptied(pointer.file) => self.relocate(inputs, internal_key, &pointer),
            _ => {
                self.refs.count(&pointer);
                Ok((internal_key, value))
            }
        }
    }

    /// What the rows placed since the last call point to.
    pub fn take_refs(&mut self) -> Vec<BlobRef> {
        self.refs.take()
    }

    /// Ends the last file.
    pub fn close(&mut self) -> Result<()> {
        self.output.close()
    }

    /// The files that were ended.
    pub fn take_done(&mut self) -> Vec<BlobFile> {
        self.output.take_done()
    }

    /// Bytes in the current file.
    pub fn current_bytes(&self) -> u64 {
        self.output.current_bytes()
    }

    /// Removes every file that was made.
    pub fn discard(&mut self) {
        self.output.discard();
    }

    /// Copies the value behind `pointer` out of a file that is emptied: to a new one, or into the table if such values
    /// stay there by now.
    fn relocate<'v>(
        &'v mut self,
        inputs: &BlobInputs<'_>,
        internal_key: &[u8],
        pointer: &BlobPointer,
    ) -> Result<(&'v [u8], &'v [u8])> {
        let windows = &mut self.windows;
        let value = inputs
            .tables
            .with_blob(inputs.blobs.find(pointer.file)?, move |reader| {
                windows.get(reader, pointer, true)
            })?;
        if !is_large(self.context, value) {
            return Ok((self.row.key_of_kind(internal_key, ValueKind::Put), value));
        }
        let moved = self.output.add(value)?;
        self.refs.count(&moved);
        Ok(self.row.with_pointer(internal_key, &moved))
    }
}

/// Whether the value belongs into a blob file.
#[inline]
fn is_large(context: &OutputContext<'_>, value: &[u8]) -> bool {
    let min = context.options.blob_value_bytes_min;
    min > 0 && value.len() as u64 >= min
}

/// Records, and their bytes, that were pointed to in each blob file.
#[derive(Default)]
struct Refs(BTreeMap<u64, (u64, u64)>);

impl Refs {
    #[inline]
    fn count(&mut self, pointer: &BlobPointer) {
        let (records, bytes) = self.0.entry(pointer.file).or_default();
        *records += 1;
        *bytes += pointer.bytes;
    }

    fn take(&mut self) -> Vec<BlobRef> {
        let refs = std::mem::take(&mut self.0).into_iter();
        refs.map(|(file, (records, bytes))| BlobRef { file, records, bytes })
            .collect()
    }
}

/// A row as it goes into the table, where that differs from what came.
#[derive(Default)]
struct Row {
    key: Vec<u8>,
    pointer: Vec<u8>,
}

impl Row {
    fn key_of_kind(&mut self, internal_key: &[u8], kind: ValueKind) -> &[u8] {
        self.key.clear();
        self.key.extend_from_slice(internal_key);
        if let Some(trailer) = self.key.last_chunk_mut::<TRAILER_LEN>() {
            trailer[0] = kind as u8;
        }
        &self.key
    }

    fn with_pointer(&mut self, internal_key: &[u8], pointer: &BlobPointer) -> (&[u8], &[u8]) {
        self.key_of_kind(internal_key, ValueKind::BlobPointer);
        self.pointer.clear();
        pointer.encode_into(&mut self.pointer);
        (&self.key, &self.pointer)
    }
}

/// The value behind a pointer that a table holds, for a fold or a filter.
pub fn fetch(inputs: &BlobInputs<'_>, pointer: &[u8]) -> Result<Vec<u8>> {
    let pointer = BlobPointer::decode(pointer)?;
    let file = inputs.blobs.find(pointer.file)?;
    let value = inputs
        .tables
        .with_blob(file, |reader| reader.read(&pointer, true))?;
    Ok(value.to_vec())
}

#[inline]
fn kind_byte(internal_key: &[u8]) -> u8 {
    internal_key
        .len()
        .checked_sub(TRAILER_LEN)
        .and_then(|at| internal_key.get(at))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use esker_env::{CreateOptions, Env, IoMode};

    use crate::cache::BlockCache;
    use crate::error::ErrorKind;
    use crate::key::internal_key;
    use crate::metrics::Metrics;
    use crate::options::{ColumnFamilyOptions, Compression};
    use crate::rewrite::Throttle;
    use crate::version::{FileKind, FileMeta};

    const DIR: &str = "db";

    struct Machine {
        env: Env,
        tables: Tables,
        next_file_number: AtomicU64,
        throttle: Throttle,
        metrics: Arc<Metrics>,
    }

    impl Machine {
        fn new() -> Self {
            let env = Env::simulated(1).0;
            env.fs.create_dir_all(Path::new(DIR)).unwrap();
            let tables = Tables::new(
                Arc::clone(&env.fs),
                DIR.into(),
                Arc::new(BlockCache::new(1 << 16)),
                Arc::new(Metrics::default()),
                IoMode::Buffered,
                1,
                16,
            );
            Self {
                env,
                tables,
                next_file_number: AtomicU64::new(1),
                throttle: Throttle::default(),
                metrics: Arc::default(),
            }
        }

        fn context<'a>(
            &'a self,
            options: &'a ColumnFamilyOptions,
            emptied: Option<(&'a BlobSet, Vec<u64>)>,
        ) -> OutputContext<'a> {
            OutputContext {
                env: &self.env,
                dir: Path::new(DIR),
                database_id: 1,
                options,
                level: 1,
                io: IoMode::Buffered,
                sync: true,
                next_file_number: &self.next_file_number,
                throttle: &self.throttle,
                cache: None,
                metrics: &self.metrics,
                blobs: emptied.map(|(blobs, emptied)| BlobInputs {
                    tables: &self.tables,
                    blobs,
                    emptied,
                }),
            }
        }

        /// Writes one value to blob file 1; gives the file and the row that points to it.
        fn flush(&self, options: &ColumnFamilyOptions, value: &[u8]) -> (BlobSet, Vec<u8>, Vec<u8>) {
            let context = self.context(options, None);
            let mut values = Values::new(&context);
            let key = key();
            let (key, pointer) = values.place(&key, value).unwrap();
            let (key, pointer) = (key.to_vec(), pointer.to_vec());
            values.close().unwrap();
            let (refs, files) = (values.take_refs(), values.take_done());
            (blob_set(files, refs), key, pointer)
        }

        fn files(&self) -> usize {
            self.env.fs.list(Path::new(DIR)).unwrap().len()
        }
    }

    fn key() -> Vec<u8> {
        internal_key(b"key", 7, ValueKind::Put)
    }

    fn blob_set(files: Vec<BlobFile>, refs: Vec<BlobRef>) -> BlobSet {
        let mut blobs = BlobSet::default();
        for file in files {
            assert!(file.records > 0);
            blobs.add(Arc::new(file)).unwrap();
        }
        blobs
            .add_refs(&FileMeta {
                blobs: refs,
                ..FileMeta::default()
            })
            .unwrap();
        blobs
    }

    fn options(blob_value_bytes_min: u64, blob_compression: Compression) -> ColumnFamilyOptions {
        ColumnFamilyOptions {
            blob_value_bytes_min,
            blob_compression,
            ..ColumnFamilyOptions::default()
        }
    }

    /// What was stored of it was compared with the setting: it went into the table, and out again with the next.
    #[test]
    fn a_large_value_that_compresses_well_moves_to_a_blob_file() {
        let machine = Machine::new();
        let options = options(512, Compression::Lz4);
        let value = [5; 2000];
        let (blobs, row_key, pointer) = machine.flush(&options, &value);
        assert!(BlobPointer::decode(&pointer).unwrap().bytes < 512);
        let context = machine.context(&options, Some((&blobs, vec![1])));
        let mut values = Values::new(&context);
        let (moved_key, moved) = values.place(&row_key, &pointer).unwrap();
        assert_eq!(moved_key, row_key);
        assert_eq!(BlobPointer::decode(moved).unwrap().file, 2);
        let moved = moved.to_vec();
        values.close().unwrap();
        let (refs, files) = (values.take_refs(), values.take_done());
        let blobs = blob_set(files, refs);
        let inputs = BlobInputs {
            tables: &machine.tables,
            blobs: &blobs,
            emptied: Vec::new(),
        };
        assert_eq!(fetch(&inputs, &moved).unwrap(), value);
    }

    /// One byte below the setting, and above it with the header of its record.
    #[test]
    fn a_value_below_the_setting_comes_into_the_table_and_begins_no_file() {
        let machine = Machine::new();
        let value = [5; 511];
        let (blobs, row_key, pointer) = machine.flush(&options(100, Compression::None), &value);
        assert!(BlobPointer::decode(&pointer).unwrap().bytes > 512);
        let options = options(512, Compression::None);
        let context = machine.context(&options, Some((&blobs, vec![1])));
        let mut values = Values::new(&context);
        assert_eq!(
            values.place(&row_key, &pointer).unwrap(),
            (&key()[..], &value[..])
        );
        values.close().unwrap();
        assert!(values.take_refs().is_empty() && values.take_done().is_empty());
        assert_eq!(machine.files(), 1);
    }

    /// The new file was begun before.
    #[test]
    fn a_value_that_cant_be_read_begins_no_file() {
        let machine = Machine::new();
        let options = options(512, Compression::None);
        let (blobs, row_key, pointer) = machine.flush(&options, &[5; 2000]);
        let (fs, path) = (&machine.env.fs, FileKind::Blob(1).path(Path::new(DIR)));
        let mut bytes = fs.read_all(&path).unwrap();
        bytes[1000] ^= 1;
        let mut file = fs.create(&path, CreateOptions::default()).unwrap();
        file.append(&bytes).unwrap();
        file.finish(true).unwrap();
        let context = machine.context(&options, Some((&blobs, vec![1])));
        let mut values = Values::new(&context);
        let error = values.place(&row_key, &pointer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(machine.files(), 1);
    }
}
