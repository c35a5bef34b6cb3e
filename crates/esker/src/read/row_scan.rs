//! The rows of an iterator with their values, wherever those lie.

use std::sync::Arc;

use super::ReadOptions;
use super::ahead::{Moved, RowsAhead};
use super::blob_scan::BlobScan;
use super::source::AnySource;
use super::visible::VisibleCursor;
use crate::blob::BlobPointer;
use crate::error::Result;
use crate::key::ValueKind;
use crate::version::{Tables, View};

/// Values that a scan reads one after the other before it reads ahead, unless it was told to read ahead.
const AHEAD_AFTER: u32 = 16;

/// A cursor over rows and their values. After an error it is not valid.
pub struct RowScan {
    cursor: VisibleCursor<AnySource>,
    /// `None` if no row can point into a blob file.
    values: Option<Values>,
}

struct Values {
    tables: Arc<Tables>,
    blobs: BlobScan,
    /// `Some`: what is shown comes from here, and the cursor is ahead of it.
    ahead: Option<Box<RowsAhead>>,
    /// Values that had to be read since the last change of the direction.
    streak: u32,
    backward: bool,
    readahead_bytes: usize,
}

impl RowScan {
    /// Over what `cursor` shows of `view`.
    pub fn new(
        cursor: VisibleCursor<AnySource>,
        view: &View,
        tables: &Arc<Tables>,
        options: &ReadOptions,
    ) -> Self {
        let values = BlobScan::new(view, tables, options).map(|blobs| Values {
            tables: Arc::clone(tables),
            blobs,
            ahead: None,
            streak: 0,
            backward: false,
            readahead_bytes: options.readahead_bytes,
        });
        Self { cursor, values }
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.ahead().is_some() || self.cursor.valid()
    }

    /// The key it stands on; empty while not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.ahead() {
            Some(ahead) => ahead.key(),
            None if self.cursor.valid() => self.cursor.key(),
            None => &[],
        }
    }

    /// The value it stands on; empty while not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.values {
            Some(Values {
                ahead: Some(ahead),
                blobs,
                ..
            }) => ahead.value(blobs),
            _ if !self.cursor.valid() => &[],
            Some(values) if self.cursor.kind() == ValueKind::BlobPointer => values.blobs.value(),
            _ => self.cursor.value(),
        }
    }

    #[inline]
    fn ahead(&self) -> Option<&RowsAhead> {
        self.values.as_ref().and_then(|values| values.ahead.as_deref())
    }

    /// Leaves its row; it stands on none until it is positioned.
    pub fn invalidate(&mut self) {
        self.leave();
        self.cursor.invalidate();
    }

    /// How many rows it has come to and not shown since this was last asked.
    pub fn take_hidden(&mut self) -> u64 {
        self.cursor.take_hidden()
    }

    /// Changes the bounds to others, between those that the sources were chosen for. What was read ahead within the old ones is dropped;
    /// nothing is read past the new ones. It stands on no row then.
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.leave();
        self.cursor.set_bounds(lower, upper);
    }

    /// Moves to the first row.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.leave();
        self.cursor.seek_to_first()?;
        self.load()
    }

    /// Moves to the last row.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.leave();
        self.cursor.seek_to_last()?;
        self.load()
    }

    /// Moves to the first row whose key is `key` or follows it.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.leave();
        self.cursor.seek(key)?;
        self.load()
    }

    /// Moves to the last row whose key is `key` or precedes it.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.leave();
        self.cursor.seek_for_prev(key)?;
        self.load()
    }

    /// Moves to the next row; does nothing while not valid.
    #[inline]
    #[allow(clippy::should_implement_trait)] // Rows are lent, which `Iterator` can't express.
    pub fn next(&mut self) -> Result<()> {
        if self.values.is_some() {
            return self.step(false);
        }
        self.cursor.next()
    }

    /// Moves to the previous row; does nothing while not valid.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if self.values.is_some() {
            return self.step(true);
        }
        self.cursor.prev()
    }

    fn step(&mut self, backward: bool) -> Result<()> {
        if let Some(values) = &mut self.values {
            if values.backward != backward {
                values.backward = backward;
                values.streak = 0;
                if let Some(ahead) = values.ahead.take() {
                    self.cursor.return_to(ahead.key())?;
                }
            }
            if values.ahead.is_none() && values.is_worth_it() && self.cursor.valid() {
                let ahead = RowsAhead::new(&values.tables, backward, values.readahead_bytes);
                values.blobs.forget_windows();
                values.ahead = Some(Box::new(ahead));
            }
            if let Some(ahead) = &mut values.ahead {
                match ahead.advance(&mut self.cursor, &mut values.blobs) {
                    Ok(Moved::Row) => return Ok(()),
                    Ok(Moved::Idle) => self.leave(),
                    Ok(Moved::End) => {
                        self.invalidate();
                        return Ok(());
                    }
                    Err(error) => {
                        self.invalidate();
                        return Err(error);
                    }
                }
            }
        }
        if backward {
            self.cursor.prev()?;
        } else {
            self.cursor.next()?;
        }
        self.load()
    }

    /// Reads nothing ahead any more.
    fn leave(&mut self) {
        if let Some(values) = &mut self.values {
            values.ahead = None;
            values.streak = 0;
        }
    }

    /// Reads the value of the row it has come to, if it lies in a blob file. A value that can't be read is the end.
    #[inline]
    fn load(&mut self) -> Result<()> {
        let Some(values) = &mut self.values else {
            return Ok(());
        };
        if !self.cursor.valid() || self.cursor.kind() != ValueKind::BlobPointer {
            return Ok(());
        }
        let loaded = values.load(self.cursor.value());
        if loaded.is_err() {
            self.invalidate();
        }
        loaded
    }
}

impl Values {
    fn load(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = BlobPointer::decode(pointer)?;
        if self.blobs.load_cached(&pointer) {
            return Ok(());
        }
        self.streak = self.streak.saturating_add(1);
        self.blobs.load(&pointer)
    }

    fn is_worth_it(&self) -> bool {
        self.streak >= AHEAD_AFTER || (self.readahead_bytes > 0 && self.streak > 0)
    }
}
