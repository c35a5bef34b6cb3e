//! Space back at once: whole tables of a key range leave without anything being written.
//!
//! The edit is that of a compaction whose output is empty. The tables are marked as compactions mark their inputs, so no
//! job reads them, and the family is reserved, so none is picked, until the edit is in force. Which tables may go is
//! decided before that and stays right meanwhile: what jobs that run write is older than nothing that goes, because their
//! inputs stay and everything above them; and what a flush brings is newer.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::events::event_family;
use super::manual::Reserved;
use super::{ColumnFamily, Db};
use crate::compaction::picker;
use crate::error::Result;
use crate::hooks::TablesDropped;
use crate::version::{Family, FileMeta, VersionEdit};

/// What was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedFiles {
    /// Tables.
    pub tables: u64,
    /// Bytes of them, without the values in blob files.
    pub bytes: u64,
}

impl Db {
    /// Drops the tables of a family that lie inside one of the ranges (each from a key up to another, exclusive) with all
    /// their keys, at once and durably. Nothing is read or rewritten: O(tables). The space of a table is free when the last iterator that
    /// reads it is gone, that of a blob file when the last table that points into it is.
    ///
    /// **It is no delete**: rows of the ranges stay that are in memtables, in tables that reach beyond a range or that a compaction
    /// reads at the moment, and in what lies above such tables. To remove a range, as an index that is dropped, call this
    /// first and [`WriteBatch::delete_range`](crate::WriteBatch::delete_range) after: the delete then has little left to do. (To have
    /// as much as possible in tables, [`flush`](Self::flush) before.)
    ///
    /// *Older versions*: none comes to light. A table goes only together with all older tables that its keys lie in, level 0
    /// included; so of each key some of the oldest versions are gone, or all. Where only old ones go, reads see what they saw;
    /// a merge whose base went shows its operands alone.
    ///
    /// *Snapshots* do not hold tables back: a read with a snapshot, too, sees the rows no more. Iterators that are open go on with what
    /// they had. So use it for keys that nobody reads any more.
    ///
    /// Errors: `Io`, `NoSpace`; the database is then as it was. After a crash all of the tables are gone or none.
    pub fn delete_files_in_ranges(
        &self,
        family: &ColumnFamily,
        ranges: &[(&[u8], &[u8])],
    ) -> Result<DeletedFiles> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        core.delete_files(&core.family(family.id())?, ranges)
    }
}

impl Core {
    fn delete_files(&self, family: &Arc<Family>, ranges: &[(&[u8], &[u8])]) -> Result<DeletedFiles> {
        let reserved = Reserved::new(self, family.id);
        let tables = {
            let _picking = self.running.lock();
            let tables = picker::tables_within(&family.view().version, ranges);
            mark(&tables, true);
            tables
        };
        let mut edit = VersionEdit::of(family.id);
        for (level, file) in &tables {
            edit.remove(*level, file.number);
        }
        let deleted = DeletedFiles {
            tables: tables.len() as u64,
            bytes: tables.iter().map(|(_, file)| file.size_bytes).sum(),
        };
        if !tables.is_empty() {
            self.install(family, &edit, false, |_, in_force| {
                if in_force {
                    self.tables_dropped(family, &deleted);
                }
            })
            .inspect_err(|_| mark(&tables, false))?;
        }
        drop((reserved, tables));
        self.bury_dead_files();
        self.update_pressure(family);
        self.share_memory();
        self.wake();
        Ok(deleted)
    }
}

impl Core {
    /// The tables are no longer part of the database. Under the manifest's lock.
    fn tables_dropped(&self, family: &Family, deleted: &DeletedFiles) {
        self.metrics.tables_dropped.add(deleted.tables);
        self.metrics.dropped_bytes.add(deleted.bytes);
        self.events.note(|| TablesDropped {
            family: event_family(family),
            tables: deleted.tables,
            bytes: deleted.bytes,
        });
    }
}

fn mark(tables: &[(usize, Arc<FileMeta>)], taken: bool) {
    for (_, file) in tables {
        file.being_compacted.store(taken, Relaxed);
    }
}
