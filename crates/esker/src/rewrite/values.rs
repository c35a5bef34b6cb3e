//! Where the values of surviving rows go: large ones into a blob file, which leaves a pointer to each in the table.
//!
//! A value is written once when its memtable is flushed. Compactions pass its pointer on, and write it again only to
//! empty a blob file of which little is live ([`BlobInputs::emptied`]). As flushes and compactions write rows in the
//! order of their keys, every blob file is sorted, so scans and later compactions read them from front to back.
//!
//! Invariant: of each blob file, the references counted for a table are those of exactly the rows that were placed
//! since the last [`take_refs`](Values::take_refs).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use esker_env::CreateOptions;

use super::OutputContext;
use crate::blob::{BlobPointer, BlobWindows, BlobWriter, WindowOptions};
use crate::error::{Error, Result};
use crate::key::{TRAILER_LEN, ValueKind};
use crate::version::{BlobFile, BlobRef, BlobSet, FileKind, Tables};

/// A blob file is ended at this size, unless the database is so large that there would be too many.
const FILE_BYTES: u64 = 256 << 20;

/// As many files as there should be about, however large the database.
const FILES: u64 = 512;

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

struct Current {
    writer: BlobWriter,
    number: u64,
    path: PathBuf,
}

/// Places values, in the order of their keys.
pub(super) struct Values<'a> {
    context: &'a OutputContext<'a>,
    file_bytes: u64,
    windows: BlobWindows,
    current: Option<Current>,
    done: Vec<BlobFile>,
    made: Vec<PathBuf>,
    refs: BTreeMap<u64, (u64, u64)>,
    /// The row as it goes into the table, where that differs from what came.
    key: Vec<u8>,
    pointer: Vec<u8>,
}

impl<'a> Values<'a> {
    pub fn new(context: &'a OutputContext<'a>) -> Self {
        let all = context
            .blobs
            .as_ref()
            .map_or(0, |inputs| inputs.blobs.file_bytes());
        Self {
            context,
            file_bytes: FILE_BYTES.max(all / FILES),
            windows: BlobWindows::new(WindowOptions::COMPACTION),
            current: None,
            done: Vec::new(),
            made: Vec::new(),
            refs: BTreeMap::new(),
            key: Vec::new(),
            pointer: Vec::new(),
        }
    }

    /// The row to put into the table for this one.
    #[inline]
    pub fn place<'v>(&'v mut self, internal_key: &'v [u8], value: &'v [u8]) -> Result<(&'v [u8], &'v [u8])> {
        let kind = kind_byte(internal_key);
        if kind == ValueKind::Put as u8 {
            if !self.is_large(value.len()) {
                return Ok((internal_key, value));
            }
            let pointer = self.append(value)?;
            return Ok(self.row_with_pointer(internal_key, pointer));
        }
        if kind != ValueKind::BlobPointer as u8 {
            return Ok((internal_key, value));
        }
        let pointer = BlobPointer::decode(value)?;
        match &self.context.blobs {
            Some(inputs) if inputs.is_emptied(pointer.file) => self.relocate(internal_key, &pointer),
            _ => {
                self.count(&pointer);
                Ok((internal_key, value))
            }
        }
    }

    /// What the rows placed since the last call point to.
    pub fn take_refs(&mut self) -> Vec<BlobRef> {
        let refs = std::mem::take(&mut self.refs).into_iter();
        refs.map(|(file, (records, bytes))| BlobRef { file, records, bytes })
            .collect()
    }

    /// Ends the last file.
    pub fn close(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let summary = current
            .writer
            .finish(self.context.sync)
            .map_err(|error| error.in_file(&current.path))?;
        let file = BlobFile::new(
            current.number,
            summary.file_bytes,
            summary.records,
            summary.record_bytes,
        );
        self.done.push(file);
        Ok(())
    }

    /// The files that were ended.
    pub fn take_done(&mut self) -> Vec<BlobFile> {
        self.made.clear();
        std::mem::take(&mut self.done)
    }

    /// Bytes in the current file.
    pub fn current_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.writer.bytes())
    }

    /// Removes every file that was made; what can't be removed now goes when the database is opened next.
    pub fn discard(&mut self) {
        if let Some(current) = self.current.take() {
            current.writer.abandon();
        }
        for path in self.made.drain(..) {
            let _ = self.context.env.fs.remove(&path);
        }
    }

    fn is_large(&self, len: usize) -> bool {
        let min = self.context.options.blob_value_bytes_min;
        min > 0 && len as u64 >= min
    }

    /// Copies the value behind `pointer` out of a file that is emptied.
    fn relocate<'v>(
        &'v mut self,
        internal_key: &'v [u8],
        pointer: &BlobPointer,
    ) -> Result<(&'v [u8], &'v [u8])> {
        let Some(inputs) = &self.context.blobs else {
            return Err(Error::bug("a blob file is emptied that is no input"));
        };
        let reader = inputs.tables.blob(inputs.blobs.find(pointer.file)?)?;
        if self.is_large(usize::try_from(pointer.bytes).unwrap_or(usize::MAX)) {
            self.open()?;
            let value = self.windows.get(reader, pointer, true)?;
            let Some(current) = &mut self.current else {
                return Err(Error::bug("a blob file was opened and is gone"));
            };
            let moved = current.writer.add(value)?;
            self.count(&moved);
            return Ok(self.row_with_pointer(internal_key, moved));
        }
        // Such values stay in the tables by now.
        self.key.clear();
        self.key.extend_from_slice(internal_key);
        set_kind(&mut self.key, ValueKind::Put);
        Ok((&self.key, self.windows.get(reader, pointer, true)?))
    }

    fn append(&mut self, value: &[u8]) -> Result<BlobPointer> {
        self.open()?;
        let Some(current) = &mut self.current else {
            return Err(Error::bug("a blob file was opened and is gone"));
        };
        let pointer = current.writer.add(value)?;
        self.count(&pointer);
        Ok(pointer)
    }

    fn row_with_pointer<'v>(&'v mut self, internal_key: &[u8], pointer: BlobPointer) -> (&'v [u8], &'v [u8]) {
        self.key.clear();
        self.key.extend_from_slice(internal_key);
        set_kind(&mut self.key, ValueKind::BlobPointer);
        self.pointer.clear();
        pointer.encode_into(&mut self.pointer);
        (&self.key, &self.pointer)
    }

    #[inline]
    fn count(&mut self, pointer: &BlobPointer) {
        let (records, bytes) = self.refs.entry(pointer.file).or_default();
        *records += 1;
        *bytes += pointer.bytes;
    }

    /// Makes sure that there is a file with room.
    fn open(&mut self) -> Result<()> {
        if self.current_bytes() >= self.file_bytes {
            self.close()?;
        }
        if self.current.is_some() {
            return Ok(());
        }
        let context = self.context;
        let number = context.next_file_number.fetch_add(1, Ordering::Relaxed);
        let path = FileKind::Blob(number).path(context.dir);
        let create = CreateOptions {
            mode: context.io,
            preallocate_bytes: 0,
            buffer_bytes: 1 << 20,
            ..CreateOptions::default()
        };
        let file = context
            .env
            .fs
            .create(&path, create)
            .map_err(|error| Error::io("can't create a blob file", error).in_file(&path))?;
        self.made.push(path.clone());
        let compression = context.options.blob_compression;
        let writer = BlobWriter::new(file, &path, context.database_id, number, compression)?;
        self.current = Some(Current { writer, number, path });
        Ok(())
    }
}

/// The value behind a pointer that a table holds, for a fold or a filter.
pub fn fetch(inputs: &BlobInputs<'_>, pointer: &[u8]) -> Result<Vec<u8>> {
    let pointer = BlobPointer::decode(pointer)?;
    let reader = inputs.tables.blob(inputs.blobs.find(pointer.file)?)?;
    Ok(reader.read(&pointer, true)?.to_vec())
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

#[inline]
fn set_kind(internal_key: &mut [u8], kind: ValueKind) {
    if let Some(trailer) = internal_key.last_chunk_mut::<TRAILER_LEN>() {
        trailer[0] = kind as u8;
    }
}
