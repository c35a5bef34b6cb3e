//! READ: point reads. The view is pinned first and the sequence read after: see `version/family.rs`, invariant 4.

use std::sync::Arc;

use super::core::Core;
use super::{ColumnFamily, Db};
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::read::{
    PinnedValue, ReadOptions, get_from_view, key_changed_since, multi_get_from_view, range_changed_since,
};
use crate::snapshot::Snapshot;
use crate::sync::Guard;
use crate::version::{Family, View};

impl Db {
    /// The value of `key`, or `None`. What comes from the block cache is not copied; it is pinned while the value
    /// lives. Costs one storage read at most where filters and indexes are in memory.
    pub fn get(&self, key: &[u8]) -> Result<Option<PinnedValue>> {
        let families = self.core().families.load();
        self.core().get(&families.default, key, &ReadOptions::default())
    }

    /// [`get`](Self::get) from a column family.
    pub fn get_cf(&self, family: &ColumnFamily, key: &[u8]) -> Result<Option<PinnedValue>> {
        self.core().get(&family.family, key, &ReadOptions::default())
    }

    /// [`get`](Self::get) with options.
    pub fn get_with(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.core().get(&family.family, key, options)
    }

    /// The values of several keys, in the order of `keys`, all as of one moment: for each what [`get_with`](Self::get_with)
    /// gives, and an error if one of them fails. Keys may come in any order and more than once.
    ///
    /// Keys in one block cost one read of it, and blocks that are not in the cache are read several at a time, whatever
    /// level and file they are in, as are values in blob files. So all keys together wait for the device about as often as
    /// one key does. Beyond the values it needs some 150 bytes for each key, 80 more for each whose value lies in a
    /// blob file, and the memory of 128 blocks, or of 4 MiB of values in blob files (or of one that is larger).
    pub fn multi_get(
        &self,
        family: &ColumnFamily,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Option<PinnedValue>>> {
        let core = self.core();
        core.check_open()?;
        let family = &family.family;
        let (view, sequence) = core.pin(family, options)?;
        if family.is_unborn(sequence) {
            return Ok(keys.iter().map(|_| None).collect());
        }
        let family_options = family.options();
        multi_get_from_view(
            &view,
            &core.tables,
            keys,
            sequence,
            options,
            family_options.merge_operator.as_deref(),
            &core.metrics,
        )
        .map_err(|error| error.in_column_family(&family.name))
    }

    /// Whether `key` may have a value: `false` is certain; `true` is a guess from memtables and filters, without a
    /// block read.
    pub fn key_may_exist(&self, family: &ColumnFamily, key: &[u8]) -> Result<bool> {
        let core = self.core();
        core.check_open()?;
        let (view, _) = core.pin(&family.family, &ReadOptions::default())?;
        crate::read::may_exist(&view, &core.tables, key)
    }

    /// Whether `key` was written (put, deleted, merged, or range-deleted) since `snapshot` was taken. What was committed before
    /// the call counts; what is being committed may. A key that was absent then and is again may count as unchanged. In a family
    /// that was [imported](Self::import_column_family) since, every key counts as written.
    ///
    /// A [`Follower`](crate::Follower) refuses it with `InvalidArgument`: nobody keeps what its snapshots would have to compare.
    /// O(log n) in memtables that hold something newer, and a [`get`](Self::get) in those files only that do: where the
    /// snapshot is young there is usually none.
    pub fn changed_since(&self, family: &ColumnFamily, key: &[u8], snapshot: &Snapshot) -> Result<bool> {
        let core = self.core();
        core.check_open()?;
        core.check_not_following()?;
        let since = core.sequence_of(snapshot)?;
        let family = &family.family;
        if family.is_unborn(since) {
            return Ok(true);
        }
        // The number isn't needed, but what was published by now must be seen.
        let (view, _) = family.pin(|| core.visible());
        key_changed_since(&view, &core.tables, key, since)
            .map_err(|error| error.in_column_family(&family.name))
    }

    /// Whether any key from `start` up to `end` (exclusive; `None`: to the last key) was written since `snapshot` was taken, or a
    /// range delete reaches into this range; otherwise as [`changed_since`](Self::changed_since). Finds inserts as well: keys that were not there then.
    ///
    /// O(rows of the range) in memtables that hold something newer; reads blocks only of files with something newer that lie
    /// across an end of the range.
    pub fn range_changed_since(
        &self,
        family: &ColumnFamily,
        start: &[u8],
        end: Option<&[u8]>,
        snapshot: &Snapshot,
    ) -> Result<bool> {
        let core = self.core();
        core.check_open()?;
        core.check_not_following()?;
        let since = core.sequence_of(snapshot)?;
        let family = &family.family;
        if family.is_unborn(since) {
            return Ok(true);
        }
        let (view, _) = family.pin(|| core.visible());
        range_changed_since(&view, &core.tables, (start, end), since)
            .map_err(|error| error.in_column_family(&family.name))
    }
}

impl Core {
    pub(super) fn get(
        &self,
        family: &Arc<Family>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.check_open()?;
        let (view, sequence) = self.pin(family, options)?;
        if family.is_unborn(sequence) {
            return Ok(None);
        }
        let family_options = family.options();
        let operator = family_options.merge_operator.as_deref();
        get_from_view(
            &view,
            &self.tables,
            key,
            sequence,
            options,
            operator,
            &self.metrics,
        )
        .map_err(|error| error.in_column_family(&family.name))
    }

    /// What a read with these options sees: a family's rows, and up to which of them.
    #[inline]
    fn pin(&self, family: &Arc<Family>, options: &ReadOptions) -> Result<(Guard<Arc<View>>, Sequence)> {
        if let Some(moments) = &self.moments {
            let (view, sequence) = self.pin_moment(moments, family, options)?;
            return Ok((Guard::from_inner(view), sequence));
        }
        let (view, sequence) = family.pin(|| self.read_sequence(options));
        Ok((view, sequence?))
    }

    /// What a read with these options sees. Call after the view was pinned.
    pub(super) fn read_sequence(&self, options: &ReadOptions) -> Result<Sequence> {
        match &options.snapshot {
            None => Ok(self.visible()),
            Some(snapshot) => self.sequence_of(snapshot),
        }
    }

    /// The last sequence number that one of its own snapshots sees.
    pub(super) fn sequence_of(&self, snapshot: &Snapshot) -> Result<Sequence> {
        if snapshot.belongs_to(&self.snapshots) {
            Ok(snapshot.sequence())
        } else {
            Err(Error::invalid("the snapshot was taken from another database"))
        }
    }
}
