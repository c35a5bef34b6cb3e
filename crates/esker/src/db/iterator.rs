//! READ: iterators as users hold them.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::{ColumnFamily, Db};
use crate::error::Result;
use crate::read::{AnySource, ReadOptions, VisibleCursor, cursor_over_view};
use crate::snapshot::Snapshot;
use crate::version::Family;

/// A cursor over the rows of a column family as they were when it was made. Not positioned at first.
///
/// It keeps the files alive that it reads; the property `iterators` counts those that are open. After an error it is
/// not valid, and may be positioned again.
pub struct Iter {
    core: Arc<Core>,
    family: Arc<Family>,
    options: ReadOptions,
    cursor: VisibleCursor<AnySource>,
    /// Keeps what it sees from being compacted away under a view that is refreshed or read by several iterators.
    _snapshot: Snapshot,
    _burial: Burial,
}

/// Dropped last, when the files that only this iterator held are free to be removed.
struct Burial(Arc<Core>);

impl Drop for Burial {
    fn drop(&mut self) {
        if !self.0.graveyard.is_empty() {
            // Background threads remove them; the reader doesn't wait for that.
            self.0.wake();
        }
    }
}

impl Db {
    /// An iterator over the family `default`.
    pub fn iter(&self, options: ReadOptions) -> Result<Iter> {
        self.iter_cf(&self.default_column_family(), options)
    }

    /// An iterator over a column family.
    pub fn iter_cf(&self, family: &ColumnFamily, options: ReadOptions) -> Result<Iter> {
        let core = self.core();
        core.check_open()?;
        Iter::new(Arc::clone(core), Arc::clone(&family.family), options)
    }

    /// Iterators over several families that see them all as of the same moment.
    pub fn iter_many(&self, families: &[&ColumnFamily], options: &ReadOptions) -> Result<Vec<Iter>> {
        let mut options = options.clone();
        options.snapshot.get_or_insert_with(|| self.snapshot());
        families
            .iter()
            .map(|family| self.iter_cf(family, options.clone()))
            .collect()
    }
}

impl Iter {
    fn new(core: Arc<Core>, family: Arc<Family>, options: ReadOptions) -> Result<Self> {
        core.read_sequence(&options)?;
        let (view, snapshot) = family.pin_owned(|| match &options.snapshot {
            Some(snapshot) => snapshot.clone(),
            None => core.snapshots.acquire(|| core.visible()),
        });
        let cursor = cursor_over_view(
            &view,
            &family.options(),
            &core.tables,
            snapshot.sequence(),
            &options,
        )
        .map_err(|error| error.in_column_family(&family.name))?;
        core.metrics.iterators_opened.add(1);
        Ok(Self {
            _burial: Burial(Arc::clone(&core)),
            core,
            family,
            options,
            cursor,
            _snapshot: snapshot,
        })
    }

    /// Shows the rows of now (or of the options' snapshot) and lets go of files that are not needed for them. Not
    /// positioned afterwards.
    pub fn refresh(&mut self) -> Result<()> {
        self.core.check_open()?;
        *self = Self::new(
            Arc::clone(&self.core),
            Arc::clone(&self.family),
            self.options.clone(),
        )?;
        Ok(())
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }

    /// Moves to the first row within the bounds.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.positioned()?;
        self.cursor.seek_to_first()
    }

    /// Moves to the last row within the bounds.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.positioned()?;
        self.cursor.seek_to_last()
    }

    /// Moves to the first row whose key is `key` or follows it.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.positioned()?;
        self.cursor.seek(key)
    }

    /// Moves to the last row whose key is `key` or precedes it.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.positioned()?;
        self.cursor.seek_for_prev(key)
    }

    /// Moves to the next row; does nothing while not valid.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "the field's word for moving a cursor; it gives no item"
    )]
    pub fn next(&mut self) -> Result<()> {
        self.cursor.next()
    }

    /// Moves to the previous row; does nothing while not valid.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.cursor.prev()
    }

    /// The key it stands on; empty while not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.cursor.valid() {
            self.cursor.key()
        } else {
            &[]
        }
    }

    /// The value it stands on; empty while not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.cursor.valid() {
            self.cursor.value()
        } else {
            &[]
        }
    }

    fn positioned(&self) -> Result<()> {
        self.core.metrics.seeks.add(1);
        self.core.check_open()
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        self.core.metrics.iterators_closed.add(1);
    }
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("family", &self.family.name)
            .field("valid", &self.valid())
            .finish()
    }
}
