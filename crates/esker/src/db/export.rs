//! EXPORT: the files of one column family in a folder of their own, from which any database can import them.
//!
//! 1. The family's memtables are flushed. Under the leader's token what was written since is sealed, and the view is pinned:
//!    it is the family at one moment. This is all that a writer may wait for.
//! 2. Memtables that are in the view still are written into tables of the export. Its tables and blob files are linked, with
//!    the numbers in their names.
//! 3. A description is written (`version/family_file.rs`): which files, in which levels, from which database.
//! 4. The folder is synced and gets its name, as a checkpoint's does.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::Pinned;
use super::core::Core;
use super::jobs::new_files;
use super::new_folder::NewFolder;
use super::settings::record;
use super::{ColumnFamily, Db};
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::version::{BlobOrigin, FAMILY_FILE, Family, Origin, VersionEdit, encode_family};

/// What an export holds, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The last sequence number in it: it holds all writes to the family up to this one, and none after.
    pub sequence: u64,
    /// Tables.
    pub tables: u64,
    /// Blob files.
    pub blob_files: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Bytes that had to be copied, as there could be no links.
    pub copied_bytes: u64,
}

impl Db {
    /// Brings one column family, as it is now, into the new folder `dir`, from which
    /// [`import_column_family`](Self::import_column_family) makes it a family of this or another database. Durable when it
    /// returns. On the same file system tables and blob files are linked, elsewhere copied. O(files), after a flush of the family; other
    /// writes wait no longer than for the start of a log segment.
    ///
    /// It holds what was committed to the family, whatever its [durability](crate::Durability); what is
    /// [prepared](Self::prepare) is not in it. Snapshots are not, either, but older versions of rows that one of them sees may be.
    ///
    /// Errors: `InvalidArgument` (`dir` exists, or the folder around it does not; the family was dropped), `Locked` (somebody
    /// is making the same export), `Io`, `NoSpace`. After an error, or a crash, there is no `dir`; what a crash leaves under
    /// `dir` with `.unfinished` behind the name is removed by the next attempt, and may be removed by hand.
    pub fn export_column_family(
        &self,
        family: &ColumnFamily,
        dir: impl AsRef<Path>,
    ) -> Result<ExportSummary> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        let result = core.export(&core.family(family.id())?, dir.as_ref());
        core.bury_dead_files();
        result
    }
}

impl Core {
    fn export(&self, family: &Arc<Family>, dir: &Path) -> Result<ExportSummary> {
        let mut folder = NewFolder::begin(&self.env, dir)?;
        self.flush_families(std::slice::from_ref(family))?;
        let (pinned, sequence) = self.pin_family(family)?;
        let written = self.write_memtables(&pinned, folder.dir())?;
        let mut edit = VersionEdit {
            create: Some(record(&family.name, &pinned.options)),
            last_sequence: Some(sequence),
            ..VersionEdit::default()
        };
        let version = &pinned.view.version;
        for blob in version.blobs().iter() {
            edit.added_blobs.push(Arc::clone(&blob.file));
        }
        for (level, file) in version.files() {
            edit.add(level, Arc::clone(file));
        }
        for file in new_files(&edit) {
            folder.link(&file.path(&self.dir), &file.name())?;
        }
        written.add_to(&mut edit, 0);
        self.state_origins(&mut edit);
        folder.write(FAMILY_FILE, &encode_family(&edit))?;
        let table_bytes: u64 = edit.added.iter().map(|(_, file)| file.size_bytes).sum();
        let blob_bytes: u64 = edit.added_blobs.iter().map(|file| file.file_bytes).sum();
        let summary = ExportSummary {
            sequence,
            tables: edit.added.len() as u64,
            blob_files: edit.added_blobs.len() as u64,
            bytes: table_bytes + blob_bytes,
            copied_bytes: folder.copied_bytes,
        };
        folder.finish()?;
        Ok(summary)
    }

    /// The family as it is now, and the last sequence number of it.
    fn pin_family(&self, family: &Arc<Family>) -> Result<(Pinned, Sequence)> {
        let _requested = self.request_flush();
        self.with_token(|token| {
            self.check_open()?;
            if token.wal_broken {
                self.leave_broken_segment(token, false)?;
            }
            if family.dropped() {
                return Err(Error::invalid("the column family was dropped").in_column_family(&family.name));
            }
            self.seal(token, family)?;
            Ok((Pinned::new(family), token.last_sequence))
        })
    }

    /// Says of every file which database wrote it.
    fn state_origins(&self, edit: &mut VersionEdit) {
        let database_id = self.database_id;
        for (_, file) in edit.added.iter_mut().filter(|(_, file)| file.origin.is_none()) {
            let origin = Origin {
                database_id,
                sequence_shift: 0,
            };
            *file = Arc::new(file.renamed(file.number, Some(origin)));
        }
        for file in edit.added_blobs.iter_mut().filter(|file| file.origin.is_none()) {
            let origin = BlobOrigin {
                database_id,
                number: file.number,
            };
            *file = Arc::new(file.renamed(file.number, Some(origin)));
        }
    }
}
