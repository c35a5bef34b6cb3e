//! A cursor over a sorted level: one table after the other, each opened when the cursor gets to it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::merging::{Cover, SourceCursor, seek_past};
use super::prefix::{Restriction, side_of_file};
use crate::error::{Error, Result};
use crate::key::{Cursor, SEQUENCE_MAX, Sequence, replace_bound, user_key};
use crate::options::PrefixExtractor;
use crate::sstable::{CursorOptions, SamePrefix, TableCursor};
use crate::version::{FileMeta, Tables, Version};

/// Rows of the files of one level below level 0, or of some of them.
pub struct LevelCursor {
    version: Arc<Version>,
    level: usize,
    tables: Arc<Tables>,
    options: CursorOptions,
    restriction: Restriction,
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
            restriction: Restriction::default(),
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

    /// The first file from `at` on that may hold what is asked for; the number of files if there is none.
    #[inline]
    fn wanted_from(&self, at: usize) -> Result<usize> {
        match self.restriction.keys() {
            None => Ok(at),
            Some(keys) => {
                for (i, file) in self.files().iter().enumerate().skip(at) {
                    match side_of_file(&keys, file) {
                        Ordering::Less => {}
                        Ordering::Equal if !self.filter_allows(&keys, file)? => {}
                        Ordering::Equal => return Ok(i),
                        Ordering::Greater => break,
                    }
                }
                Ok(self.files().len())
            }
        }
    }

    /// The last of the first `end` files that may hold what is asked for.
    #[inline]
    fn wanted_before(&self, end: usize) -> Result<Option<usize>> {
        match self.restriction.keys() {
            None => Ok(end.checked_sub(1)),
            Some(keys) => {
                for (i, file) in self.files().iter().enumerate().take(end).rev() {
                    match side_of_file(&keys, file) {
                        Ordering::Greater => {}
                        Ordering::Equal if !self.filter_allows(&keys, file)? => {}
                        Ordering::Equal => return Ok(Some(i)),
                        Ordering::Less => break,
                    }
                }
                Ok(None)
            }
        }
    }

    fn filter_allows(&self, keys: &SamePrefix<'_>, file: &Arc<FileMeta>) -> Result<bool> {
        let read = self.options.read;
        self.tables.with(file, self.version.order(), |table| {
            Ok(table.may_contain_prefix(keys, read))
        })
    }

    /// To the first row of the first file from `at` on that has one. Files of range tombstones alone have none.
    fn enter_forward(&mut self, at: usize) -> Result<()> {
        let at = self.wanted_from(at)?;
        if let Some(cursor) = self.open(at)? {
            cursor.seek_to_first()?;
        }
        self.settle_forward()
    }

    fn settle_forward(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let next = self.wanted_from(self.at + 1)?;
            if let Some(cursor) = self.open(next)? {
                cursor.seek_to_first()?;
            }
        }
        Ok(())
    }

    /// To the last row of the last of the first `end` files that has one.
    fn enter_backward(&mut self, end: usize) -> Result<()> {
        let Some(at) = self.wanted_before(end)? else {
            self.cursor = None;
            return Ok(());
        };
        if let Some(cursor) = self.open(at)? {
            cursor.seek_to_last()?;
        }
        self.settle_backward()
    }

    fn settle_backward(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let Some(before) = self.wanted_before(self.at)? else {
                self.cursor = None;
                return Ok(());
            };
            if let Some(cursor) = self.open(before)? {
                cursor.seek_to_last()?;
            }
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
        let result = self.enter_forward(0);
        self.guard(result)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let result = self.enter_backward(self.files().len());
        self.guard(result)
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let at = self
            .version
            .level(self.level)
            .seek(self.version.order(), user_key(target));
        let result = (|| {
            let wanted = self.wanted_from(at)?;
            if let Some(cursor) = self.open(wanted)? {
                if wanted == at {
                    cursor.seek(target)?;
                } else {
                    cursor.seek_to_first()?;
                }
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
            let Some(wanted) = self.wanted_before(at + 1)? else {
                self.cursor = None;
                return Ok(());
            };
            if let Some(cursor) = self.open(wanted)? {
                if wanted == at {
                    cursor.seek_for_prev(target)?;
                } else {
                    cursor.seek_to_last()?;
                }
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

    fn restrict(&mut self, prefix: Option<(PrefixExtractor, &[u8])>) -> Result<()> {
        self.restriction.set(prefix);
        Ok(())
    }

    fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        replace_bound(&mut self.options.upper_bound, upper_bound);
        if let Some(cursor) = &mut self.cursor {
            cursor.set_upper_bound(upper_bound);
        }
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
            (false, true, _) => self.enter_forward(self.at + 1),
            (true, _, true) => self.enter_backward(self.at),
            // Guards itself.
            _ => return seek_past(self, end, backward, scratch).map(|()| true),
        };
        self.guard(result).map(|()| true)
    }
}
