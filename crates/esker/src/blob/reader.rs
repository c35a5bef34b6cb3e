//! An open blob file: reads single values.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::{RandomFile, ReadRange};

use super::format::{BlobFooter, FOOTER_LEN, HEADER_LEN, RECORD_HEADER_LEN, check_header, check_record};
use super::pointer::BlobPointer;
use crate::cache::{SharedBytes, zeroed};
use crate::codec::{decompress, decompress_into};
use crate::error::{Error, Result};
use crate::options::Compression;

/// An open blob file. Shared by all threads; keeps nothing of the file in memory but its footer.
#[derive(Debug)]
pub struct BlobReader {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    footer: BlobFooter,
    /// Where the footer begins.
    records_end: u64,
}

impl BlobReader {
    /// Opens the blob file `number` of this database. Two small reads.
    ///
    /// # Errors
    /// `Corruption` if header or footer are damaged or missing, name another database or file, or count other than
    /// the file's length; `Unsupported` if the format is newer; and what the file says.
    pub fn open(file: Arc<dyn RandomFile>, path: &Path, database_id: u64, number: u64) -> Result<Self> {
        let place = |error: Error| error.in_file(path);
        let file_bytes = file
            .len()
            .map_err(|error| place(Error::io("can't read blob file", error)))?;
        let Some(records_end) = file_bytes
            .checked_sub(FOOTER_LEN as u64)
            .filter(|end| *end >= HEADER_LEN as u64)
        else {
            return Err(place(Error::corruption(
                "the file is too short to be a blob file",
            )));
        };
        let mut header = [0; HEADER_LEN];
        read_exact(&*file, path, 0, &mut header)?;
        let ids = check_header(&header).map_err(|error| place(error.at_offset(0)))?;
        let mut footer = [0; FOOTER_LEN];
        read_exact(&*file, path, records_end, &mut footer)?;
        let footer = BlobFooter::decode(&footer).map_err(|error| place(error.at_offset(records_end)))?;
        if ids != (database_id, number) {
            return Err(place(
                Error::corruption(format!(
                    "the blob file is number {} of database {:#x}, not {number} of {database_id:#x}",
                    ids.1, ids.0
                ))
                .at_offset(0),
            ));
        }
        if (footer.database_id, footer.number) != ids
            || footer.record_bytes.checked_add(HEADER_LEN as u64) != Some(records_end)
        {
            let error = Error::corruption("the blob file's footer is that of another file");
            return Err(place(error.at_offset(records_end)));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            footer,
            records_end,
        })
    }

    /// The file's number.
    #[inline]
    pub fn number(&self) -> u64 {
        self.footer.number
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the footer counts.
    pub fn footer(&self) -> &BlobFooter {
        &self.footer
    }

    /// Where the records end and the footer begins.
    #[inline]
    pub fn records_end(&self) -> u64 {
        self.records_end
    }

    /// The value that `pointer` points to: one read of the file, no copy unless it is compressed. Without `verify` the
    /// checksum is not computed; lengths are checked all the same.
    ///
    /// # Errors
    /// `Corruption`, with file and offset, if no whole record of that length is there; and what the file says.
    pub fn read(&self, pointer: &BlobPointer, verify: bool) -> Result<SharedBytes> {
        let len = self.checked_len(pointer)?;
        let mut buffer = zeroed(len);
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            self.read_exact(pointer.offset, bytes)?;
        }
        self.value(pointer, len, &ReadRange { buffer, at: 0 }, verify)
    }

    /// The value of the record of `len` bytes that was read, in memory that holds no neighbours: without a copy where
    /// there are none, unless it is compressed.
    pub(super) fn value(
        &self,
        pointer: &BlobPointer,
        len: usize,
        read: &ReadRange,
        verify: bool,
    ) -> Result<SharedBytes> {
        let cut = || self.corrupt(pointer.offset, "blob record is cut short");
        let record = read.buffer.get(read.at..read.at + len).ok_or_else(cut)?;
        let stored = record.get(RECORD_HEADER_LEN..).ok_or_else(cut)?;
        match self.check(pointer.offset, record, verify)? {
            Compression::None if len == read.buffer.len() => {
                SharedBytes::from_range(Arc::clone(&read.buffer), RECORD_HEADER_LEN..len).ok_or_else(cut)
            }
            Compression::None => Ok(SharedBytes::from(stored)),
            kind => decompress(kind, stored)
                .map(SharedBytes::new)
                .ok_or_else(|| self.undecodable(pointer.offset)),
        }
    }

    /// The file, for [`read_values`](super::read_values).
    pub(super) fn file(&self) -> &dyn RandomFile {
        &*self.file
    }

    /// The file, for reads that outlive a call.
    pub fn shared_file(&self) -> Arc<dyn RandomFile> {
        Arc::clone(&self.file)
    }

    /// Checks the record of `offset` that was read elsewhere. If its value is compressed, decompresses it to `raw` and gives
    /// true; else the value is what is [`stored`](Self::stored) in it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn open_record(&self, offset: u64, record: &[u8], verify: bool, raw: &mut Vec<u8>) -> Result<bool> {
        match self.check(offset, record, verify)? {
            Compression::None => Ok(false),
            kind => decompress_into(kind, Self::stored(record), raw)
                .map(|()| true)
                .ok_or_else(|| self.undecodable(offset)),
        }
    }

    /// The stored bytes of a record.
    #[inline]
    pub fn stored(record: &[u8]) -> &[u8] {
        record.get(RECORD_HEADER_LEN..).unwrap_or_default()
    }

    /// The length of a pointer's record, after the pointer was checked against the file.
    #[inline]
    pub fn checked_len(&self, pointer: &BlobPointer) -> Result<usize> {
        if pointer.file != self.number() {
            return Err(self.corrupt(
                pointer.offset,
                "a pointer to another blob file was followed into this one",
            ));
        }
        let inside = pointer.offset >= HEADER_LEN as u64
            && pointer.bytes >= RECORD_HEADER_LEN as u64
            && pointer.end().is_some_and(|end| end <= self.records_end);
        usize::try_from(pointer.bytes)
            .ok()
            .filter(|_| inside)
            .ok_or_else(|| self.corrupt(pointer.offset, "a pointer points out of the blob file"))
    }

    /// Checks a whole record; gives how it is compressed.
    #[inline]
    pub(super) fn check(&self, offset: u64, record: &[u8], verify: bool) -> Result<Compression> {
        check_record(record, verify, self.number(), offset).map_err(|what| self.corrupt(offset, what))
    }

    /// Reads exactly `bytes.len()` bytes.
    pub(super) fn read_exact(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        read_exact(&*self.file, &self.path, offset, bytes)
    }

    /// Reads what there is up to the length of `bytes`, and at least its first `least`.
    pub(super) fn read_least(&self, offset: u64, bytes: &mut [u8], least: usize) -> Result<()> {
        let read = self
            .file
            .read_at(offset, bytes)
            .map_err(|error| unreadable(error, &self.path, offset))?;
        if read < least {
            return Err(self.corrupt(offset + read as u64, "the blob file ends within its records"));
        }
        Ok(())
    }

    /// The error of a read that failed.
    #[cold]
    pub(super) fn unreadable(&self, error: io::Error, offset: u64) -> Error {
        unreadable(error, &self.path, offset)
    }

    #[cold]
    pub(super) fn corrupt(&self, offset: u64, what: &str) -> Error {
        Error::corruption(what).at_offset(offset).in_file(&self.path)
    }

    #[cold]
    pub(super) fn undecodable(&self, offset: u64) -> Error {
        self.corrupt(offset, "blob record can't be decompressed")
    }
}

fn read_exact(file: &dyn RandomFile, path: &Path, offset: u64, bytes: &mut [u8]) -> Result<()> {
    file.read_exact_at(offset, bytes)
        .map_err(|error| unreadable(error, path, offset))
}

#[cold]
fn unreadable(error: io::Error, path: &Path, offset: u64) -> Error {
    Error::io("can't read blob file", error)
        .in_file(path)
        .at_offset(offset)
}
