//! A cursor over a sorted level: one table after the other, each opened when the cursor gets to it.

use std::sync::Arc;

use super::merging::{Cover, SourceCursor, seek_past};
use crate::error::{Error, Result};
use crate::key::{Cursor, SEQUENCE_MAX, Sequence, user_key};
use crate::sstable::{CursorOptions, TableCursor};
use crate::version::{FileMeta, Tables, Version};

/// Rows of the files of one level below level 0, or of some of them.
pub struct LevelCursor {
    version: Arc<Version>,
    level: usize,
    tables: Arc<Tables>,
    options: CursorOptions,
    /// Index of the file it stands in; the number of files: none.
    at: usize,
    cursor: Option<TableCursor>,
}

impl LevelCursor {
    /// Over a level of `version`; it keeps the version alive.
    pub fn new(version: Arc<Version>, level: usize, tables: Arc<Tables>, options: CursorOptions) -> Self {
        let at = version.level(level).len();
        Self {
            version,
            level,
            tables,
            options,
            at,
            cursor: None,
        }
    }

    fn files(&self) -> &[Arc<FileMeta>] {
        self.version.level(self.level).files()
    }

    /// Stands in this file, not positioned; past the end if there is none.
    fn open(&mut self, at: usize) -> Result<Option<&mut TableCursor>> {
        if at != self.at || self.cursor.is_none() {
            self.cursor = None;
            self.at = at;
            if let Some(file) = self.files().get(at) {
                let table = self.tables.get(file, self.version.order())?;
                self.cursor = Some(table.cursor(self.options.clone()));
            }
        }
        Ok(self.cursor.as_mut())
    }

    /// Goes on to the next file, be there a row in it or not.
    fn enter_next(&mut self) -> Result<()> {
        match self.open(self.at + 1)? {
            Some(cursor) => cursor.seek_to_first(),
            None => Ok(()),
        }
    }

    fn enter_previous(&mut self) -> Result<()> {
        if self.at == 0 {
            self.cursor = None;
            return Ok(());
        }
        match self.open(self.at - 1)? {
            Some(cursor) => cursor.seek_to_last(),
            None => Ok(()),
        }
    }

    /// Goes on to the first row of the next file that has one. Files of range tombstones alone have none.
    fn settle_forward(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            self.enter_next()?;
        }
        Ok(())
    }

    fn settle_backward(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            self.enter_previous()?;
        }
        Ok(())
    }

    /// An error leaves the cursor invalid.
    fn guard(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.cursor = None;
            self.at = self.files().len();
        }
        result
    }

    fn current(&mut self) -> Result<&mut TableCursor> {
        self.cursor
            .as_mut()
            .ok_or_else(|| Error::bug("a level cursor was moved while invalid"))
    }
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::valid)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        let result = (|| {
            if let Some(cursor) = self.open(0)? {
                cursor.seek_to_first()?;
            }
            self.settle_forward()
        })();
        self.guard(result)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let result = (|| {
            let Some(last) = self.files().len().checked_sub(1) else {
                return Ok(());
            };
            if let Some(cursor) = self.open(last)? {
                cursor.seek_to_last()?;
            }
            self.settle_backward()
        })();
        self.guard(result)
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let at = self
            .version
            .level(self.level)
            .seek(self.version.order(), user_key(target));
        let result = (|| {
            if let Some(cursor) = self.open(at)? {
                cursor.seek(target)?;
            }
            self.settle_forward()
        })();
        self.guard(result)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        let files = self.files().len();
        if files == 0 {
            return Ok(());
        }
        let at = self
            .version
            .level(self.level)
            .seek(self.version.order(), user_key(target))
            .min(files - 1);
        let result = (|| {
            if let Some(cursor) = self.open(at)? {
                cursor.seek_for_prev(target)?;
            }
            self.settle_backward()
        })();
        self.guard(result)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let cursor = self.current()?;
        cursor.next()?;
        if cursor.valid() {
            return Ok(());
        }
        let result = self.settle_forward();
        self.guard(result)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let cursor = self.current()?;
        cursor.prev()?;
        if cursor.valid() {
            return Ok(());
        }
        let result = self.settle_backward();
        self.guard(result)
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

impl SourceCursor for LevelCursor {
    fn sequence_max(&self) -> Sequence {
        self.files()
            .get(self.at)
            .map_or(SEQUENCE_MAX, |file| file.sequence_max)
    }

    fn skip_covered(&mut self, cover: &Cover<'_>, backward: bool, scratch: &mut Vec<u8>) -> Result<bool> {
        // Judged by the bound of the file it stands in: rows of the next files may be newer than that, so the jump ends
        // with the file.
        let Some(file) = self.files().get(self.at).cloned() else {
            return Ok(false);
        };
        let Some(end) = cover.far_end(user_key(self.key()), file.sequence_max, backward) else {
            return Ok(false);
        };
        let order = cover.order;
        let result = match (
            backward,
            file.ends_before(order, end),
            file.starts_after(order, end),
        ) {
            (false, true, _) => self.enter_next().and_then(|()| self.settle_forward()),
            (true, _, true) => self.enter_previous().and_then(|()| self.settle_backward()),
            // Guards itself.
            _ => return seek_past(self, end, backward, scratch).map(|()| true),
        };
        self.guard(result).map(|()| true)
    }
}
