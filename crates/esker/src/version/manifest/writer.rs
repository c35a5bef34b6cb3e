//! Writes manifests, and switches from one to the next.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::{CreateOptions, Fs, WriteFile};

use super::{RecordKind, current, header, record};
use crate::error::{Error, ErrorKind, Result};
use crate::version::edit::VersionEdit;
use crate::version::names::FileKind;
use crate::version::state::VersionState;

/// A manifest smaller than this is never rolled over, in bytes.
const ROLL_BYTES_MIN: u64 = 4 << 20;
/// A manifest may grow to this many times its snapshot.
const ROLL_FACTOR: u64 = 10;

/// The live manifest, open for appending. One owner; not for concurrent use.
///
/// A failed append is final for the file: what it holds past the last success is unknown, so nothing may follow.
/// [`roll_over`](Self::roll_over) to a fresh file, with the state *without* the failed edits, makes it known
/// again. Until that succeeded, a crash may bring the failed edits back: no file that they add may be deleted,
/// and none of their inputs.
#[derive(Debug)]
pub struct ManifestWriter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    file: Box<dyn WriteFile>,
    number: u64,
    offset: u64,
    snapshot_bytes: u64,
    roll_bytes_min: u64,
    failed: bool,
}

impl ManifestWriter {
    /// Makes manifest `number` with a snapshot of `state`, syncs it, and makes it the live one. `number` must be
    /// new and smaller than `state.next_file_number`.
    ///
    /// # Errors
    /// `Io` or `NoSpace`, with the file. The manifest that was live before still is, unless the very last step
    /// failed; whichever of the two a recovery then finds, it is whole.
    pub fn create(fs: Arc<dyn Fs>, dir: &Path, number: u64, state: &VersionState) -> Result<Self> {
        let writer = Self::prepare(fs, dir, number, state)?;
        current::switch(&*writer.fs, dir)?;
        Ok(writer)
    }

    /// Everything up to the switch of `CURRENT`. What is left after an error is removed where that is possible.
    fn prepare(fs: Arc<dyn Fs>, dir: &Path, number: u64, state: &VersionState) -> Result<Self> {
        if number >= state.next_file_number {
            return Err(Error::bug(format!(
                "manifest {number} has a number that is still to be given out"
            )));
        }
        let made = Self::write_snapshot(Arc::clone(&fs), dir, number, state)
            .and_then(|writer| current::prepare(&*writer.fs, dir, number).map(|()| writer));
        if made.is_err() {
            // The first error is what counts; a leftover is removed when the database is opened next.
            let _ = fs.remove(&FileKind::Manifest(number).path(dir));
        }
        made
    }

    fn write_snapshot(fs: Arc<dyn Fs>, dir: &Path, number: u64, state: &VersionState) -> Result<Self> {
        let path = FileKind::Manifest(number).path(dir);
        let failed = |error| Error::io("can't write a new manifest", error).in_file(&path);
        let mut file = fs.create(&path, CreateOptions::default()).map_err(failed)?;
        let head = header(state.database_id, number);
        file.append(&head).map_err(failed)?;
        let mut offset = head.len() as u64;
        let edits = state.snapshot_edits();
        for (i, edit) in edits.iter().enumerate() {
            let kind = if i + 1 == edits.len() {
                RecordKind::SnapshotEnd
            } else {
                RecordKind::Snapshot
            };
            let bytes = record(kind, std::slice::from_ref(edit), number, offset)?;
            file.append(&bytes).map_err(failed)?;
            offset += bytes.len() as u64;
        }
        file.sync().map_err(failed)?;
        // The name must be durable before CURRENT can be.
        fs.sync_dir(dir).map_err(failed)?;
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            file,
            number,
            offset,
            snapshot_bytes: offset,
            roll_bytes_min: ROLL_BYTES_MIN,
            failed: false,
        })
    }

    /// Stores a group of edits, all or none of which a recovery will see, and syncs it. An empty group is nothing.
    ///
    /// # Errors
    /// `Io` or `NoSpace`: nothing can be appended any more (see the type); `ReadOnly` on every later call.
    /// `InvalidArgument`: the group is larger than 256 MiB, and nothing has changed.
    pub fn append(&mut self, edits: &[VersionEdit]) -> Result<()> {
        if edits.is_empty() {
            return Ok(());
        }
        if self.failed {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "the manifest could not be written earlier and takes no more edits",
            )
            .in_file(&self.path()));
        }
        let bytes = record(RecordKind::Group, edits, self.number, self.offset)?;
        let stored = self.file.append(&bytes).and_then(|()| self.file.sync());
        if let Err(error) = stored {
            self.failed = true;
            return Err(Error::io("can't store a change of the database's state", error)
                .in_file(&self.path())
                .at_offset(self.offset));
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Goes on in a new manifest `number` that starts with a snapshot of `state`; gives the number of the old one,
    /// which can then be deleted. Allowed, and the only way on, after a failed [`append`](Self::append).
    ///
    /// # Errors
    /// As [`create`](Self::create). If it is not known which manifest is live, this writer takes no more edits.
    pub fn roll_over(&mut self, number: u64, state: &VersionState) -> Result<u64> {
        if number == self.number {
            return Err(Error::bug(format!("manifest {number} can't follow itself")));
        }
        let mut next = Self::prepare(Arc::clone(&self.fs), &self.dir, number, state)?;
        next.roll_bytes_min = self.roll_bytes_min;
        if let Err(error) = current::switch(&*self.fs, &self.dir) {
            // Either may be live now: an edit appended to this one could be lost.
            self.failed = true;
            return Err(error);
        }
        let old = self.number;
        *self = next;
        Ok(old)
    }

    /// Whether it has grown so large, against its snapshot, that it is time to [`roll_over`](Self::roll_over).
    pub fn is_over_limit(&self) -> bool {
        self.offset
            > self
                .roll_bytes_min
                .max(self.snapshot_bytes.saturating_mul(ROLL_FACTOR))
    }

    /// Whether an append failed, or it is not known whether this manifest is the live one.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.offset
    }

    fn path(&self) -> PathBuf {
        FileKind::Manifest(self.number).path(&self.dir)
    }

    #[cfg(test)]
    pub(super) fn set_roll_bytes_min(&mut self, bytes: u64) {
        self.roll_bytes_min = bytes;
    }
}
