//! The manifest as jobs use it: an edit is durable first and in force after.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_env::Fs;

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::version::manifest::{ManifestTail, ManifestWriter};
use crate::version::{ColumnFamilyRecord, FileKind, VersionEdit, VersionState};

/// What the manifest says, and the file that says it.
pub(super) struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    pub state: VersionState,
    /// Where it was read, if nothing is written to it: see `read_only.rs`.
    pub place: Option<ManifestTail>,
    /// `None`: the last append failed, so the file's end is unknown; the next edit starts a fresh manifest.
    writer: Option<ManifestWriter>,
    /// Files of edits that failed: the abandoned manifest may name them, and is the live one until the next.
    doubtful: Vec<FileKind>,
    closed: bool,
}

impl Manifest {
    /// A fresh manifest file for `state`.
    pub fn create(fs: Arc<dyn Fs>, dir: PathBuf, state: VersionState, number: u64) -> Result<Self> {
        let writer = ManifestWriter::create(Arc::clone(&fs), &dir, number, &state)?;
        Ok(Self {
            fs,
            dir,
            state,
            place: None,
            writer: Some(writer),
            doubtful: Vec::new(),
            closed: false,
        })
    }

    /// A manifest that nothing is ever written to, as it was read.
    pub fn read_only(fs: Arc<dyn Fs>, dir: PathBuf, database_id: u128, place: Option<ManifestTail>) -> Self {
        Self {
            fs,
            dir,
            state: VersionState::new(database_id),
            place,
            writer: None,
            doubtful: Vec::new(),
            closed: false,
        }
    }

    /// The number of the manifest file.
    pub fn number(&self) -> Option<u64> {
        self.writer.as_ref().map(ManifestWriter::number)
    }

    /// Takes no more edits: the folder is about to be let go.
    pub fn close(&mut self) {
        self.writer = None;
        self.closed = true;
    }

    fn append(&mut self, edits: &[VersionEdit], fresh_number: impl FnOnce() -> u64) -> Result<()> {
        let fresh = self
            .writer
            .as_ref()
            .is_none_or(|writer| writer.has_failed() || writer.is_over_limit());
        if fresh {
            self.start_fresh(fresh_number())?;
        }
        let Some(writer) = &mut self.writer else {
            return Err(Error::bug("no manifest to append to"));
        };
        if let Err(error) = writer.append(edits) {
            self.writer = None;
            return Err(error);
        }
        for edit in edits {
            self.state.apply(edit)?;
        }
        Ok(())
    }

    /// Starts a new manifest, which ends all doubt about what the one before holds.
    fn start_fresh(&mut self, number: u64) -> Result<()> {
        if self.closed {
            return Err(Error::new(ErrorKind::Closed, "the database was closed"));
        }
        let old = self.number().map(FileKind::Manifest);
        self.writer = None;
        self.state.next_file_number = self.state.next_file_number.max(number + 1);
        let writer = ManifestWriter::create(Arc::clone(&self.fs), &self.dir, number, &self.state)?;
        self.writer = Some(writer);
        let doubtful = std::mem::take(&mut self.doubtful);
        for dead in old.into_iter().chain(doubtful) {
            let path = dead.path(&self.dir);
            if let Err(error) = self.fs.remove(&path) {
                tracing::warn!(%error, path = %path.display(), "can't remove a dead file");
            }
        }
        Ok(())
    }

    /// Makes sure that the live manifest is known to say what is in force. A job that writes files calls it first,
    /// so that a manifest that keeps failing does not cost new files with every attempt.
    pub fn make_certain(&mut self, fresh_number: impl FnOnce() -> u64) -> Result<()> {
        match self.writer {
            Some(_) => Ok(()),
            None => self.start_fresh(fresh_number()),
        }
    }

    /// Gives up the files of an edit that failed: removes them, once the live manifest is known not to name them.
    pub fn discard(&mut self, files: Vec<FileKind>) {
        self.doubtful.extend(files);
        if self.writer.is_some() {
            for file in std::mem::take(&mut self.doubtful) {
                let path = file.path(&self.dir);
                if let Err(error) = self.fs.remove(&path) {
                    tracing::warn!(%error, path = %path.display(), "can't remove an unused file");
                }
            }
        }
    }
}

impl Manifest {
    /// An edit that creates a family, and the family's id.
    pub fn creation(&self, record: ColumnFamilyRecord, log_number: u64) -> (u32, VersionEdit) {
        let id = self.state.next_column_family;
        let mut edit = VersionEdit::of(id);
        edit.create = Some(record);
        edit.log_number = Some(log_number);
        (id, edit)
    }
}

impl Core {
    /// Makes edits durable, as one atomic group. A failure leaves everything as it was; whether the group is in the
    /// abandoned manifest does not matter, as the next edit begins a new one from the state in memory.
    pub(super) fn commit_edits(&self, manifest: &mut Manifest, mut edits: Vec<VersionEdit>) -> Result<()> {
        if let Some(first) = edits.first_mut() {
            first.last_sequence = first.last_sequence.max(Some(self.visible()));
            first.next_file_number = Some(self.next_file_number.load(Ordering::Relaxed));
        }
        if edits.is_empty() {
            return Ok(());
        }
        manifest.append(&edits, || self.new_file_number())
    }
}
