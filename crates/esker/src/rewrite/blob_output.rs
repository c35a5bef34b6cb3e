//! Writes values, in the order of their keys, into one blob file after the other.
//!
//! Invariant: a file is begun for the value that becomes its first, so no file that was ended is empty. An empty one
//! would stay in the database for ever, as blob files leave with the last row that points into them.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::OutputContext;
use crate::blob::{BlobPointer, BlobWriter};
use crate::error::Result;
use crate::version::{BlobFile, FileKind};

/// A blob file is ended at this size, unless the database is so large that there would be too many.
const FILE_BYTES: u64 = 256 << 20;

/// As many files as there should be about, however large the database.
const FILES: u64 = 512;

struct Current {
    writer: BlobWriter,
    number: u64,
    path: PathBuf,
}

/// The blob files being written. After an error the caller [discards](Self::discard) them.
pub(super) struct BlobOutput<'a> {
    context: &'a OutputContext<'a>,
    file_bytes: u64,
    current: Option<Current>,
    done: Vec<BlobFile>,
    made: Vec<PathBuf>,
}

impl<'a> BlobOutput<'a> {
    /// No files yet.
    pub fn new(context: &'a OutputContext<'a>) -> Self {
        let all = context
            .blobs
            .as_ref()
            .map_or(0, |inputs| inputs.blobs.file_bytes());
        Self {
            context,
            file_bytes: FILE_BYTES.max(all / FILES),
            current: None,
            done: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Writes a value, into a new file if there is none with room; gives where it is.
    pub fn add(&mut self, value: &[u8]) -> Result<BlobPointer> {
        if self.current_bytes() >= self.file_bytes {
            self.close()?;
        }
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(create(self.context, &mut self.made)?),
        };
        current.writer.add(value)
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

    /// The files that were ended; they are the caller's from here on.
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
}

fn create(context: &OutputContext<'_>, made: &mut Vec<PathBuf>) -> Result<Current> {
    let number = context.next_file_number.fetch_add(1, Ordering::Relaxed);
    let path = FileKind::Blob(number).path(context.dir);
    let file = context.create(&path, "a blob file")?;
    made.push(path.clone());
    let compression = context.options.blob_compression;
    let writer = BlobWriter::new(file, &path, context.database_id, number, compression)?;
    Ok(Current { writer, number, path })
}
