//! The manifest as jobs use it: an edit is durable first and in force after.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_env::Fs;

use super::core::Core;
use crate::error::{Error, Result};
use crate::version::manifest::ManifestWriter;
use crate::version::{ColumnFamilyRecord, FileKind, FileMeta, VersionEdit, VersionState};

/// What the manifest says, and the file that says it.
pub(super) struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    pub state: VersionState,
    /// `None`: the last append failed, so the file's end is unknown; the next edit starts a fresh manifest.
    writer: Option<ManifestWriter>,
    /// Tables of groups whose append failed. The abandoned manifest may name them, so they stay until another one
    /// is live.
    orphans: Vec<u64>,
}

impl Manifest {
    /// A fresh manifest file for `state`.
    pub fn create(fs: Arc<dyn Fs>, dir: PathBuf, state: VersionState, number: u64) -> Result<Self> {
        let writer = ManifestWriter::create(Arc::clone(&fs), &dir, number, &state)?;
        Ok(Self {
            fs,
            dir,
            state,
            writer: Some(writer),
            orphans: Vec::new(),
        })
    }

    /// A manifest that nothing is ever written to.
    pub fn read_only(fs: Arc<dyn Fs>, dir: PathBuf, state: VersionState) -> Self {
        Self {
            fs,
            dir,
            state,
            writer: None,
            orphans: Vec::new(),
        }
    }

    /// The number of the manifest file.
    pub fn number(&self) -> Option<u64> {
        self.writer.as_ref().map(ManifestWriter::number)
    }

    fn append(&mut self, edits: &[VersionEdit], fresh_number: impl FnOnce() -> u64) -> Result<()> {
        let fresh = self
            .writer
            .as_ref()
            .is_none_or(|writer| writer.has_failed() || writer.is_over_limit());
        if fresh {
            let old = self.number();
            self.writer = None;
            let number = fresh_number();
            self.state.next_file_number = self.state.next_file_number.max(number + 1);
            let writer = ManifestWriter::create(Arc::clone(&self.fs), &self.dir, number, &self.state)?;
            self.writer = Some(writer);
            if let Some(old) = old {
                let path = FileKind::Manifest(old).path(&self.dir);
                if let Err(error) = self.fs.remove(&path) {
                    tracing::warn!(%error, path = %path.display(), "can't remove the old manifest");
                }
            }
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
}

impl Manifest {
    /// Takes tables of a job whose edit could not be committed.
    pub fn abandon<'a>(&mut self, files: impl Iterator<Item = &'a FileMeta>) {
        self.orphans.extend(files.map(|file| file.number));
    }

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
            first.last_sequence = Some(self.visible());
            first.next_file_number = Some(self.next_file_number.load(Ordering::Relaxed));
        }
        let result = manifest.append(&edits, || self.new_file_number());
        if manifest.number().is_some() {
            manifest
                .orphans
                .drain(..)
                .for_each(|number| self.graveyard.bury(number));
        }
        result
    }
}
