//! Writes a blob file from front to end.
//!
//! A small value is copied once, behind its header into the output buffer, where its checksum is computed while it is in
//! the processor's cache. One that would fill the buffer by itself goes to the file directly.

use std::path::{Path, PathBuf};

use esker_env::WriteFile;

use super::format::{BlobFooter, RECORD_HEADER_LEN, encode_header, move_record, open_record, seal_record};
use super::pointer::BlobPointer;
use super::reader::BlobReader;
use crate::codec::{Compressor, raw_len};
use crate::error::{Error, Result};
use crate::key::VALUE_LEN_MAX;
use crate::options::Compression;

/// Bytes that are collected before they are handed to the file.
const OUT_BYTES: usize = 64 << 10;

/// Writes a blob file. After an error nothing more can be written; the caller removes the file.
///
/// The caller's [`CreateOptions`](esker_env::CreateOptions) decide on direct I/O and the size of its buffers.
#[derive(Debug)]
pub struct BlobWriter {
    out: Out,
    compressor: Compressor,
    footer: BlobFooter,
}

/// The file, and what comes next in it.
#[derive(Debug)]
struct Out {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    /// Bytes not handed to the file yet; less than `OUT_BYTES` between calls.
    bytes: Vec<u8>,
    /// Where they begin in the file.
    offset: u64,
    failed: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobSummary {
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// Records in the file.
    pub records: u64,
    /// Their bytes, with headers.
    pub record_bytes: u64,
    /// Bytes of their values, before compression.
    pub raw_bytes: u64,
}

impl BlobWriter {
    /// Begins a blob file in an empty file. The header leaves with the first values.
    ///
    /// # Errors
    /// `Bug` if the file is not empty.
    pub fn new(
        file: Box<dyn WriteFile>,
        path: &Path,
        database_id: u64,
        file_number: u64,
        compression: Compression,
    ) -> Result<Self> {
        if !file.is_empty() {
            return Err(Error::bug("began a blob file in a file that is not empty").in_file(path));
        }
        let mut bytes = Vec::with_capacity(2 * OUT_BYTES);
        bytes.extend_from_slice(&encode_header(database_id, file_number));
        Ok(Self {
            out: Out {
                file,
                path: path.to_owned(),
                bytes,
                offset: 0,
                failed: false,
            },
            compressor: Compressor::new(compression),
            footer: BlobFooter {
                database_id,
                number: file_number,
                ..BlobFooter::default()
            },
        })
    }

    /// Adds a value behind the last; gives where it is. Values come in key order, so that scans read forward.
    /// Allocates nothing, except that a compressor's buffer grows to the longest value.
    ///
    /// # Errors
    /// `InvalidArgument` if the value is longer than [`VALUE_LEN_MAX`]; what the file says; `Bug` after an error.
    #[inline]
    pub fn add(&mut self, value: &[u8]) -> Result<BlobPointer> {
        if self.out.failed || value.len() as u64 > VALUE_LEN_MAX {
            return Err(self.refuse(value.len()));
        }
        let (stored, compression) = self
            .compressor
            .compress(value)
            .unwrap_or((value, Compression::None));
        let start = self.out.bytes.len();
        let pointer = BlobPointer {
            file: self.footer.number,
            offset: self.out.end(),
            bytes: (RECORD_HEADER_LEN + stored.len()) as u64,
        };
        // What is stored is not longer than the value, which was checked to fit.
        open_record(&mut self.out.bytes, stored.len() as u32, compression);
        let (collected, alone) = split(stored);
        self.out.bytes.extend_from_slice(collected);
        let record = &mut self.out.bytes[start..];
        seal_record(record, alone, pointer.file, pointer.offset);
        self.footer.count(pointer.bytes, value.len());
        self.out.put(alone)?;
        Ok(pointer)
    }

    /// Copies `record`, which was read from where `from` points to in another file, behind the last, as it is stored there;
    /// gives where it is now. Its checksum is computed once, to check it. Allocates nothing.
    ///
    /// # Errors
    /// `Corruption`, with the other file and the offset, if the record is damaged; what the file says; `Bug` after an error.
    pub fn copy(&mut self, reader: &BlobReader, from: &BlobPointer, record: &[u8]) -> Result<BlobPointer> {
        if self.out.failed {
            return Err(self.refuse(record.len()));
        }
        let compression = reader.check(from.offset, record, true)?;
        let (front, stored) = record.split_at(RECORD_HEADER_LEN.min(record.len()));
        let raw_len = raw_len(compression, stored).ok_or_else(|| reader.undecodable(from.offset))?;
        let start = self.out.bytes.len();
        let pointer = BlobPointer {
            file: self.footer.number,
            offset: self.out.end(),
            bytes: record.len() as u64,
        };
        self.out.bytes.extend_from_slice(front);
        let (collected, alone) = split(stored);
        self.out.bytes.extend_from_slice(collected);
        let record = &mut self.out.bytes[start..];
        move_record(record, (from.file, from.offset), (pointer.file, pointer.offset));
        self.footer.count(pointer.bytes, raw_len);
        self.out.put(alone)?;
        Ok(pointer)
    }

    /// Bytes so far: header and records.
    pub fn bytes(&self) -> u64 {
        self.out.end()
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.footer.records
    }

    /// Writes what is left and the footer, and syncs the file if `sync`.
    ///
    /// # Errors
    /// What the file says; `Bug` after an error.
    pub fn finish(mut self, sync: bool) -> Result<BlobSummary> {
        if self.out.failed {
            return Err(self.refuse(0));
        }
        self.out.bytes.extend_from_slice(&self.footer.encode());
        self.out.write_out(&[])?;
        let finished = self.out.file.finish(sync);
        finished.map_err(|error| self.out.fail(error))?;
        Ok(BlobSummary {
            file_bytes: self.out.offset,
            records: self.footer.records,
            record_bytes: self.footer.record_bytes,
            raw_bytes: self.footer.raw_bytes,
        })
    }

    /// Gives up. The caller removes the file.
    pub fn abandon(self) {}

    #[cold]
    fn refuse(&self, len: usize) -> Error {
        let error = if self.out.failed {
            Error::bug("went on with a blob file whose writing failed")
        } else {
            Error::invalid(format!("a value of {len} bytes; at most {VALUE_LEN_MAX}"))
        };
        error.in_file(&self.out.path)
    }
}

/// What of a record's stored bytes is collected, and what goes to the file by itself, as it would fill the buffer.
#[inline]
fn split(stored: &[u8]) -> (&[u8], &[u8]) {
    if stored.len() < OUT_BYTES {
        (stored, &[])
    } else {
        (&[], stored)
    }
}

impl Out {
    /// Where the next byte comes to lie.
    #[inline]
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Hands to the file what was collected if it is enough, or if `alone` follows it.
    #[inline]
    fn put(&mut self, alone: &[u8]) -> Result<()> {
        if alone.is_empty() && self.bytes.len() < OUT_BYTES {
            return Ok(());
        }
        self.write_out(alone)
    }

    fn write_out(&mut self, alone: &[u8]) -> Result<()> {
        let mut written = self.file.append(&self.bytes);
        if !alone.is_empty() {
            written = written.and_then(|()| self.file.append(alone));
        }
        self.offset += (self.bytes.len() + alone.len()) as u64;
        self.bytes.clear();
        written.map_err(|error| self.fail(error))
    }

    #[cold]
    fn fail(&mut self, error: std::io::Error) -> Error {
        self.failed = true;
        Error::io("can't write blob file", error).in_file(&self.path)
    }
}
