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
use crate::blob::{BlobPointer, BlobWindows, RECORD_HEADER_LEN, WindowOptions};
use crate::error::Result;
use crate::key::{TRAILER_LEN, ValueKind, trailer};
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
        let kind = trailer(internal_key) as u8;
        if kind == ValueKind::Put as u8 {
            if !is_large(self.context, value.len() as u64) {
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
    /// stay there by now. A value that is stored is not shorter than what is stored of it, which nearly always says enough.
    fn relocate<'v>(
        &'v mut self,
        inputs: &BlobInputs<'_>,
        internal_key: &[u8],
        pointer: &BlobPointer,
    ) -> Result<(&'v [u8], &'v [u8])> {
        let stored_bytes = pointer.bytes.saturating_sub(RECORD_HEADER_LEN as u64);
        if is_large(self.context, stored_bytes) {
            let moved = self.output.add_moved(pointer)?;
            self.refs.count(&moved);
            return Ok(self.row.with_pointer(internal_key, &moved));
        }
        let windows = &mut self.windows;
        let value = inputs
            .tables
            .with_blob(inputs.blobs.find(pointer.file)?, move |reader| {
                windows.get(reader, pointer, true)
            })?;
        if !is_large(self.context, value.len() as u64) {
            return Ok((self.row.key_of_kind(internal_key, ValueKind::Put), value));
        }
        let moved = self.output.add(value)?;
        self.refs.count(&moved);
        Ok(self.row.with_pointer(internal_key, &moved))
    }
}

/// Whether a value of so many bytes belongs into a blob file.
#[inline]
fn is_large(context: &OutputContext<'_>, value_bytes: u64) -> bool {
    let min = context.options.blob_value_bytes_min;
    min > 0 && value_bytes >= min
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
    use crate::sstable::TableFamily;
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
                family: TableFamily::default(),
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

    /// What is read together with others is known to be damaged late; nothing stays of what was made for it.
    #[test]
    fn a_value_that_cant_be_read_leaves_no_file() {
        for (min, compression) in [(512, Compression::None), (512, Compression::Lz4)] {
            let machine = Machine::new();
            let options = options(min, compression);
            let (blobs, row_key, pointer) = machine.flush(&options, &[5; 2000]);
            let (fs, path) = (&machine.env.fs, FileKind::Blob(1).path(Path::new(DIR)));
            let mut bytes = fs.read_all(&path).unwrap();
            bytes[45] ^= 1;
            let mut file = fs.create(&path, CreateOptions::default()).unwrap();
            file.append(&bytes).unwrap();
            file.finish(true).unwrap();
            let context = machine.context(&options, Some((&blobs, vec![1])));
            let mut values = Values::new(&context);
            let placed = values.place(&row_key, &pointer).map(|_| ());
            let error = placed.and_then(|()| values.close()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            values.discard();
            assert_eq!(machine.files(), 1);
        }
    }

    /// Rows whose values move, rows that bring theirs, and rows whose values stay, over several files: each pointer leads to
    /// its value, and each file holds its values in the order of the rows.
    #[test]
    fn moved_and_new_values_lie_in_the_order_of_their_rows() {
        let machine = Machine::new();
        let options = options(512, Compression::Lz4);
        let (mut files, mut refs, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let value = |i: u64| -> Vec<u8> {
            let len = [600, 2000, 70_000, 300_000][i as usize % 4] + i as usize;
            let noise = |at: usize| (at as u64 * i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57;
            (0..len).map(|at| noise(at) as u8).collect()
        };
        for part in 0..3 {
            let context = machine.context(&options, None);
            let mut values = Values::new(&context);
            for i in (part..90).step_by(3) {
                let key = internal_key(format!("{i:04}").as_bytes(), 7, ValueKind::Put);
                let value = value(i);
                let (key, pointer) = values.place(&key, &value).unwrap();
                rows.push((i, key.to_vec(), pointer.to_vec()));
            }
            values.close().unwrap();
            refs.extend(values.take_refs());
            files.extend(values.take_done());
        }
        rows.sort();
        let blobs = blob_set(files, refs);
        let context = machine.context(&options, Some((&blobs, vec![1, 2])));
        let mut values = Values::new(&context);
        let mut placed = Vec::new();
        for (i, key, pointer) in &rows {
            if i % 7 == 0 {
                let key = internal_key(format!("{i:04}+").as_bytes(), 8, ValueKind::Put);
                placed.push((*i, values.place(&key, &value(*i)).unwrap().1.to_vec()));
            }
            placed.push((*i, values.place(key, pointer).unwrap().1.to_vec()));
        }
        values.close().unwrap();
        let mut counted: Vec<_> = values.take_refs();
        counted.sort_by_key(|part| part.file);
        assert_eq!(
            counted.iter().map(|part| part.records).sum::<u64>(),
            placed.len() as u64
        );
        let new_files = values.take_done();
        assert_eq!(counted[0].file, 3, "what is not emptied stays");
        let mut all = BlobSet::default();
        let kept = Arc::clone(blobs.find(3).unwrap());
        for file in new_files.into_iter().map(Arc::new).chain([kept]) {
            all.add(file).unwrap();
        }
        let inputs = BlobInputs {
            tables: &machine.tables,
            blobs: &all,
            emptied: Vec::new(),
        };
        let mut last = BlobPointer {
            file: 0,
            offset: 0,
            bytes: 0,
        };
        for (i, pointer) in &placed {
            assert!(fetch(&inputs, pointer).unwrap() == value(*i), "row {i}");
            let pointer = BlobPointer::decode(pointer).unwrap();
            if pointer.file != 3 {
                assert!((last.file, last.offset) < (pointer.file, pointer.offset));
                last = pointer;
            }
        }
    }
}
