//! A cursor over one table of level 0, which prefix scans may leave out.

use std::sync::Arc;

use super::merging::SourceCursor;
use super::prefix::side_of_file;
use crate::error::Result;
use crate::key::{Cursor, KeyOrder, Sequence};
use crate::options::PrefixExtractor;
use crate::sstable::{CursorOptions, SamePrefix, TableCursor, TableReadOptions};
use crate::version::{FileMeta, Tables};

/// Rows of one table.
pub struct TableSource {
    cursor: TableCursor,
    file: Arc<FileMeta>,
    read: TableReadOptions,
    /// Positionings don't move it: it has nothing of the prefix that is asked for. It is invalid then.
    left_out: bool,
}

impl TableSource {
    /// Over a table, which is opened and kept open.
    pub fn new(
        file: &Arc<FileMeta>,
        tables: &Tables,
        order: &KeyOrder,
        options: CursorOptions,
    ) -> Result<Self> {
        Ok(Self {
            read: options.read,
            cursor: tables.get(file, order)?.cursor(options),
            file: Arc::clone(file),
            left_out: false,
        })
    }
}

impl Cursor for TableSource {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        if self.left_out {
            Ok(())
        } else {
            self.cursor.seek_to_first()
        }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if self.left_out {
            Ok(())
        } else {
            self.cursor.seek_to_last()
        }
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        if self.left_out {
            Ok(())
        } else {
            self.cursor.seek(target)
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        if self.left_out {
            Ok(())
        } else {
            self.cursor.seek_for_prev(target)
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.cursor.next()
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.cursor.prev()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
}

impl SourceCursor for TableSource {
    fn sequence_max(&self) -> Sequence {
        self.file.sequence_max
    }

    fn restrict(&mut self, prefix: Option<(PrefixExtractor, &[u8])>) -> Result<()> {
        self.left_out = prefix.is_some_and(|(extractor, prefix)| {
            let keys = SamePrefix::new(extractor, prefix);
            side_of_file(&keys, &self.file).is_ne()
                || !self.cursor.table().may_contain_prefix(&keys, self.read)
        });
        if self.left_out {
            self.cursor.invalidate();
        }
        Ok(())
    }

    fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        self.cursor.set_upper_bound(upper_bound);
    }
}
