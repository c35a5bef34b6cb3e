//! A cursor over a memtable, of either kind.

use std::sync::Arc;

use super::row::Row;
use super::vector::Entry;
use super::{Index, Memtable};
use crate::error::Result;
use crate::key::{Cursor, trailer, user_key};

/// A cursor that keeps its memtable alive. It sees every row inserted before it was made; on an ordered memtable it
/// also meets rows inserted since (of sequence numbers that its reader doesn't see).
///
/// Forward steps cost O(1); backward steps cost O(log n) on an ordered memtable, O(1) on a vector. Its `Result`s
/// are always `Ok`.
pub struct MemtableCursor {
    memtable: Arc<Memtable>,
    row: Row,
    /// The snapshot of a vector (empty for an ordered memtable) and the place of `row` in it.
    rows: Arc<Vec<Entry>>,
    at: usize,
}

// SAFETY: `row` points into the arena of `memtable`, which the cursor keeps alive; rows are immutable.
unsafe impl Send for MemtableCursor {}
// SAFETY: as above; through `&self` rows are only read.
unsafe impl Sync for MemtableCursor {}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> Self {
        let rows = match &memtable.index {
            Index::Ordered(_) => Arc::default(),
            Index::Vector(vector) => vector.rows(),
        };
        Self {
            memtable,
            row: Row::NULL,
            rows,
            at: 0,
        }
    }

    /// Stands on the row with this index of a vector's snapshot; none: nowhere.
    #[inline]
    fn stand_at(&mut self, at: Option<usize>) {
        let entry = at.and_then(|at| self.rows.get(at));
        self.row = entry.map_or(Row::NULL, |entry| entry.row);
        self.at = at.unwrap_or(0);
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn valid(&self) -> bool {
        !self.row.is_null()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        match &self.memtable.index {
            Index::Ordered(list) => self.row = list.first(),
            Index::Vector(_) => self.stand_at(Some(0)),
        }
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match &self.memtable.index {
            Index::Ordered(list) => self.row = list.last(),
            Index::Vector(_) => self.stand_at(self.rows.len().checked_sub(1)),
        }
        Ok(())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        match &self.memtable.index {
            Index::Ordered(list) => self.row = list.seek(&list.target(user_key(target), trailer(target))),
            Index::Vector(vector) => {
                let target = vector.target(user_key(target), trailer(target));
                let at = vector.search(&self.rows, &target, false);
                self.stand_at(Some(at));
            }
        }
        Ok(())
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        match &self.memtable.index {
            Index::Ordered(list) => {
                self.row = list.seek_before(&list.target(user_key(target), trailer(target)), true);
            }
            Index::Vector(vector) => {
                let target = vector.target(user_key(target), trailer(target));
                let at = vector.search(&self.rows, &target, true);
                self.stand_at(at.checked_sub(1));
            }
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        if self.row.is_null() {
            return Ok(());
        }
        match &self.memtable.index {
            Index::Ordered(list) => self.row = list.next_in_scan(self.row),
            Index::Vector(_) => {
                if let Some(ahead) = self.rows.get(self.at + 4) {
                    super::prefetch::prefetch(ahead.row.0);
                }
                if let Some(ahead) = self.rows.get(self.at + 2) {
                    // SAFETY: a row of `memtable`, which lives as long as the cursor.
                    unsafe { ahead.row.prefetch_value() };
                }
                self.stand_at(Some(self.at + 1));
            }
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        if self.row.is_null() {
            return Ok(());
        }
        match &self.memtable.index {
            Index::Ordered(list) => self.row = list.prev(self.row),
            Index::Vector(_) => self.stand_at(self.at.checked_sub(1)),
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.row.is_null() {
            return &[];
        }
        // SAFETY: a row of `memtable`, which lives as long as the cursor.
        unsafe { self.row.internal_key() }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.row.is_null() {
            return &[];
        }
        // SAFETY: as in `key`.
        unsafe { self.row.value() }
    }
}
