//! Writes a blob file from front to end.
//!
//! A small value is copied once, behind its header into the output buffer, where its checksum is computed while it is in
//! the processor's cache. One that would fill the buffer by itself goes to the file directly.

use std::path::{Path, PathBuf};

use esker_env::WriteFile;

use super::format::{BlobFooter, RECORD_HEADER_LEN, encode_header, open_record, seal_record};
use super::pointer::BlobPointer;
use crate::codec::Compressor;
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
    file: Box<dyn WriteFile>,
    path: PathBuf,
    compressor: Compressor,
    /// Bytes not handed to the file yet; less than `OUT_BYTES` between calls.
    out: Vec<u8>,
    /// Where `out` begins in the file.
    out_offset: u64,
    footer: BlobFooter,
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
        let mut out = Vec::with_capacity(2 * OUT_BYTES);
        out.extend_from_slice(&encode_header(database_id, file_number));
        Ok(Self {
            file,
            path: path.to_owned(),
            compressor: Compressor::new(compression),
            out,
            out_offset: 0,
            footer: BlobFooter {
                database_id,
                number: file_number,
                ..BlobFooter::default()
            },
            failed: false,
        })
    }

    /// Adds a value behind the last; gives where it is. Values come in key order, so that scans read forward.
    /// Allocates nothing, except that a compressor's buffer grows to the longest value.
    ///
    /// # Errors
    /// `InvalidArgument` if the value is longer than [`VALUE_LEN_MAX`]; what the file says; `Bug` after an error.
    #[inline]
    pub fn add(&mut self, value: &[u8]) -> Result<BlobPointer> {
        if self.failed || value.len() as u64 > VALUE_LEN_MAX {
            return Err(self.refuse(value.len()));
        }
        let (stored, compression) = self
            .compressor
            .compress(value)
            .unwrap_or((value, Compression::None));
        let start = self.out.len();
        let pointer = BlobPointer {
            file: self.footer.number,
            offset: self.out_offset + start as u64,
            bytes: (RECORD_HEADER_LEN + stored.len()) as u64,
        };
        // What is stored is not longer than the value, which was checked to fit.
        open_record(&mut self.out, stored.len() as u32, compression);
        self.footer.records += 1;
        self.footer.record_bytes += pointer.bytes;
        self.footer.raw_bytes += value.len() as u64;
        if stored.len() < OUT_BYTES {
            self.out.extend_from_slice(stored);
            seal_record(&mut self.out[start..], b"", pointer.file, pointer.offset);
            if self.out.len() >= OUT_BYTES {
                self.write_out()?;
            }
        } else {
            seal_record(&mut self.out[start..], stored, pointer.file, pointer.offset);
            let written = match self.file.append(&self.out) {
                Ok(()) => self.file.append(stored),
                error => error,
            };
            self.out_offset += (self.out.len() + stored.len()) as u64;
            self.out.clear();
            written.map_err(|error| self.fail(error))?;
        }
        Ok(pointer)
    }

    /// Bytes so far: header and records.
    pub fn bytes(&self) -> u64 {
        self.out_offset + self.out.len() as u64
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
        if self.failed {
            return Err(self.refuse(0));
        }
        self.out.extend_from_slice(&self.footer.encode());
        self.write_out()?;
        let finished = self.file.finish(sync);
        finished.map_err(|error| self.fail(error))?;
        Ok(BlobSummary {
            file_bytes: self.out_offset,
            records: self.footer.records,
            record_bytes: self.footer.record_bytes,
            raw_bytes: self.footer.raw_bytes,
        })
    }

    /// Gives up. The caller removes the file.
    pub fn abandon(self) {}

    fn write_out(&mut self) -> Result<()> {
        let written = self.file.append(&self.out);
        self.out_offset += self.out.len() as u64;
        self.out.clear();
        written.map_err(|error| self.fail(error))
    }

    #[cold]
    fn fail(&mut self, error: std::io::Error) -> Error {
        self.failed = true;
        Error::io("can't write blob file", error).in_file(&self.path)
    }

    #[cold]
    fn refuse(&self, len: usize) -> Error {
        let error = if self.failed {
            Error::bug("went on with a blob file whose writing failed")
        } else {
            Error::invalid(format!("a value of {len} bytes; at most {VALUE_LEN_MAX}"))
        };
        error.in_file(&self.path)
    }
}
