//! A range that is removed for good: its tables at once, the rest by a delete.

use super::*;

impl Runner {
    /// Drops tables of a range, which of its rows removes those that it likes, and then the range. No snapshot is there:
    /// it would see less than it did.
    pub(super) fn drop_range(&mut self, change: &Change) -> std::result::Result<(), Failure> {
        self.resume();
        self.snapshots.clear();
        self.iterators.clear();
        let family = self.family(change.family);
        let (id, handle) = (family.handle.id(), family.handle.clone());
        let range = Change {
            kind: ChangeKind::DeleteRange,
            // Wide enough to have tables in it.
            span: KEYS / 8 + change.span,
            ..*change
        };
        let mutation = changes::mutation(&range, &family.settings, self.scope.large);
        let Mutation::DeleteRange(start, end) = &mutation else {
            return Ok(());
        };
        // What a power cut would take back can't be what the tables that stay lie upon.
        self.db.flush_cf(&handle).map_err(failed("flush_cf"))?;
        self.oracle.flushed(id);
        self.db
            .delete_files_in_ranges(&handle, &[(start, end)])
            .map_err(failed("delete_files_in_ranges"))?;
        let mut batch = WriteBatch::new();
        batch
            .delete_range_cf(&handle, start, end)
            .map_err(failed("batch"))?;
        self.db
            .write_with(&mut batch, &WriteOptions::durability(Durability::Sync))
            .map_err(failed("write"))?;
        self.oracle.commit(vec![(id, mutation)], Durability::Sync);
        Ok(())
    }
}
