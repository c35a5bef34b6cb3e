//! READ: iterators as users hold them.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::{ColumnFamily, Db};
use crate::error::Result;
use crate::read::{ReadOptions, RowScan, cursor_over_view};
use crate::snapshot::Snapshot;
use crate::version::Family;

/// A cursor over the rows of a column family as they were when it was made. Not positioned at first.
///
/// It keeps the files alive that it reads; the property `iterators` counts those that are open. After an error of any
/// call it is not valid, and may be positioned again. It may outlive the database's handles: once that is closed, it can
/// still be moved over what it pinned from where it stands, but every positioning fails with `Closed`.
pub struct Iter {
    core: Arc<Core>,
    family: Arc<Family>,
    options: ReadOptions,
    rows: RowScan,
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
        let (view, snapshot) = match &core.moments {
            Some(moments) => {
                let snapshot = options.snapshot.clone().unwrap_or_else(|| core.snapshot());
                (core.view_in(moments, &family, &snapshot)?, snapshot)
            }
            None => family.pin_owned(|| options.snapshot.clone().unwrap_or_else(|| core.snapshot())),
        };
        let view = match family.is_unborn(snapshot.sequence()) {
            true => core.empty_view(&family),
            false => view,
        };
        let cursor = cursor_over_view(
            &view,
            &family.options(),
            &core.tables,
            snapshot.sequence(),
            &options,
        )
        .map_err(|error| error.in_column_family(&family.name))?;
        core.metrics.iterators_opened.add(1);
        let rows = RowScan::new(cursor, &view, &core.tables, &options);
        Ok(Self {
            _burial: Burial(Arc::clone(&core)),
            core,
            family,
            options,
            rows,
            _snapshot: snapshot,
        })
    }

    /// Shows the rows of now (or of the options' snapshot) and lets go of files that are not needed for them. Not
    /// positioned afterwards.
    pub fn refresh(&mut self) -> Result<()> {
        self.rows.invalidate();
        self.core.check_open()?;
        *self = Self::new(
            Arc::clone(&self.core),
            Arc::clone(&self.family),
            self.options.clone(),
        )?;
        Ok(())
    }

    /// Narrows what it may give to the keys from `lower` on, up to `upper` without it (none: as its options say). Where the options
    /// have bounds, these stay in force beside the new ones, which replace those of an earlier call. Not positioned afterwards; a
    /// [`refresh`](Self::refresh) goes back to the options. Cheaper than another iterator, by all that one costs: O(length of the bounds).
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        let (lower, upper) = self.options.narrowed(&self.family.order, lower, upper);
        self.rows.set_bounds(lower, upper);
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.rows.valid()
    }

    /// Moves to the first row within the bounds.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.leave()?;
        let moved = self.rows.seek_to_first();
        self.told(moved)
    }

    /// Moves to the last row within the bounds.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.leave()?;
        let moved = self.rows.seek_to_last();
        self.told(moved)
    }

    /// Moves to the first row whose key is `key` or follows it.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.leave()?;
        let moved = self.rows.seek(key);
        self.told(moved)
    }

    /// Moves to the last row whose key is `key` or precedes it.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.leave()?;
        let moved = self.rows.seek_for_prev(key);
        self.told(moved)
    }

    /// Moves to the next row; does nothing while not valid.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "the field's word for moving a cursor; it gives no item"
    )]
    pub fn next(&mut self) -> Result<()> {
        let moved = self.rows.next();
        self.told(moved)
    }

    /// Moves to the previous row; does nothing while not valid.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        let moved = self.rows.prev();
        self.told(moved)
    }

    /// The key it stands on; empty while not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.rows.key()
    }

    /// The value it stands on; empty while not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.rows.value()
    }

    #[inline]
    fn told(&self, moved: Result<()>) -> Result<()> {
        moved.map_err(|error| error.in_column_family(&self.family.name))
    }

    /// Counts what it has stepped over for nothing; now and then somebody looks whether that should be merged.
    fn count_hidden(&mut self) {
        let hidden = self.rows.take_hidden();
        if hidden > 0 && self.family.hidden.add(hidden) {
            self.core.wake();
        }
    }

    /// What comes before every positioning.
    fn leave(&mut self) -> Result<()> {
        self.count_hidden();
        self.core.metrics.seeks.add(1);
        self.core.check_open().inspect_err(|_| self.rows.invalidate())
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        self.count_hidden();
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

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::Env;

    use crate::db::Opener;
    use crate::error::ErrorKind;
    use crate::options::Options;

    /// It stayed on its old row.
    #[test]
    fn a_call_that_fails_as_the_database_is_closed_leaves_it_on_no_row() {
        let opener = Opener::new(Options::default()).env(Env::simulated(1).0);
        let db = opener.open("/db").unwrap();
        for key in [b"a", b"b", b"c"] {
            db.put(key, b"value").unwrap();
        }
        type Call = fn(&mut Iter) -> Result<()>;
        let calls: [Call; 5] = [
            Iter::seek_to_first,
            Iter::seek_to_last,
            |iter| iter.seek(b"b"),
            |iter| iter.seek_for_prev(b"b"),
            Iter::refresh,
        ];
        let mut iters: Vec<_> = (0..calls.len() + 1)
            .map(|_| {
                let mut iter = db.iter(ReadOptions::default()).unwrap();
                iter.seek_to_first().unwrap();
                iter
            })
            .collect();
        db.close().unwrap();
        let mut moving = iters.pop().unwrap();
        for key in [&b"a"[..], b"b", b"c"] {
            assert_eq!((moving.key(), moving.value()), (key, &b"value"[..]));
            moving.next().unwrap();
        }
        assert!(!moving.valid());
        for (call, iter) in calls.iter().zip(&mut iters) {
            assert!(iter.valid());
            assert_eq!(call(iter).unwrap_err().kind(), ErrorKind::Closed);
            assert!(!iter.valid());
            assert_eq!((iter.key(), iter.value()), (&b""[..], &b""[..]));
            iter.next().unwrap();
            assert!(!iter.valid());
        }
    }
}
