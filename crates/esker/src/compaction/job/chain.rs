//! Reads the input tables of one level from front to end, one after the other.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::key::Cursor;
use crate::sstable::{CursorOptions, Table, TableCursor};

/// A forward-only cursor over tables that follow each other in key order. Only one of them is being read at a time,
/// so that a level costs one read buffer however many files it has.
pub(super) struct ChainCursor {
    tables: Vec<Arc<Table>>,
    options: CursorOptions,
    at: usize,
    cursor: Option<TableCursor>,
}

impl ChainCursor {
    pub(super) fn new(tables: Vec<Arc<Table>>, options: CursorOptions) -> Self {
        Self {
            tables,
            options,
            at: 0,
            cursor: None,
        }
    }

    /// Whether the block cache has the block that it reads.
    #[inline]
    pub(super) fn is_cached(&self) -> bool {
        self.cursor.as_ref().is_some_and(TableCursor::is_cached)
    }

    /// Goes through the tables from `at` on until one has a row; `target`: where to begin in each.
    fn settle(&mut self, target: Option<&[u8]>) -> Result<()> {
        loop {
            let Some(table) = self.tables.get(self.at) else {
                self.cursor = None;
                return Ok(());
            };
            let cursor = self.cursor.insert(table.cursor(self.options.clone()));
            match target {
                None => cursor.seek_to_first()?,
                Some(target) => cursor.seek(target)?,
            }
            if cursor.valid() {
                return Ok(());
            }
            self.at += 1;
        }
    }

    fn forward_only() -> Error {
        Error::bug("a compaction's input was read backward")
    }
}

impl Cursor for ChainCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        self.settle(None)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        Err(Self::forward_only())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.at = 0;
        self.settle(Some(target))
    }

    fn seek_for_prev(&mut self, _: &[u8]) -> Result<()> {
        Err(Self::forward_only())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else {
            return Err(Error::bug("a compaction read past its input"));
        };
        cursor.next()?;
        if cursor.valid() {
            return Ok(());
        }
        self.at += 1;
        self.settle(None)
    }

    fn prev(&mut self) -> Result<()> {
        Err(Self::forward_only())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::value)
    }
}
