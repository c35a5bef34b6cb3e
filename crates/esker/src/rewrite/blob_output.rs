//! Writes values, in the order of their keys, into one blob file after the other.
//!
//! Invariant: a file is begun for the value that becomes its first, so no file that was ended is empty. An empty one
//! would stay in the database for ever, as blob files leave with the last row that points into them.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::OutputContext;
use super::moves::Moves;
use crate::blob::{BlobPointer, BlobWriter};
use crate::error::{Error, Result};
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
    /// Records that come next in the current file.
    moves: Moves,
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
            moves: Moves::default(),
            done: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Writes a value, into a new file if there is none with room; gives where it is.
    pub fn add(&mut self, value: &[u8]) -> Result<BlobPointer> {
        self.carry_out_moves()?;
        self.current()?.writer.add(value)
    }

    /// Moves the record behind `pointer` as [`add`](Self::add) would; gives where it will be. Errors of reading it may come
    /// later, at the latest when the files are closed.
    pub fn add_moved(&mut self, pointer: &BlobPointer) -> Result<BlobPointer> {
        let file = self.current()?.number;
        let moved = BlobPointer {
            file,
            offset: self.current_bytes(),
            bytes: pointer.bytes,
        };
        self.moves.push(pointer);
        if self.moves.is_full() {
            self.carry_out_moves()?;
        }
        Ok(moved)
    }

    /// The file with room.
    fn current(&mut self) -> Result<&mut Current> {
        if self.current_bytes() >= self.file_bytes {
            self.close()?;
        }
        Ok(match &mut self.current {
            Some(current) => current,
            none => none.insert(create(self.context, &mut self.made)?),
        })
    }

    fn carry_out_moves(&mut self) -> Result<()> {
        if self.moves.record_bytes() == 0 {
            return Ok(());
        }
        let end = self.current_bytes();
        let (Some(inputs), Some(current)) = (&self.context.blobs, &mut self.current) else {
            return Err(Error::bug("a record moves from nowhere or to nowhere"));
        };
        let (values, bytes) = (self.moves.len(), self.moves.record_bytes());
        self.moves.carry_out(inputs, &mut current.writer)?;
        self.context.metrics.blob_values_moved.add(values as u64);
        self.context.metrics.blob_moved_bytes.add(bytes);
        if current.writer.bytes() != end {
            return Err(Error::bug("a moved record is not where its pointer points to"));
        }
        Ok(())
    }

    /// Ends the last file.
    pub fn close(&mut self) -> Result<()> {
        self.carry_out_moves()?;
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

    /// Bytes in the current file, with those that are on their way to it.
    pub fn current_bytes(&self) -> u64 {
        let written = self.current.as_ref().map_or(0, |current| current.writer.bytes());
        written + self.moves.record_bytes()
    }

    /// Removes every file that was made; what can't be removed now goes when the database is opened next.
    pub fn discard(&mut self) {
        self.moves.clear();
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
