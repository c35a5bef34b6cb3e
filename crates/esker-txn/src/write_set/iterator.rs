//! Iterators over the set and the database together.
//!
//! Two cursors, `base` over the database and `own` over the keys of the set, travel side by side:
//! ```text
//! base    a   b   c       f           own range tombstone [c, d)
//! own         b-      d+      g+      (- deleted, + put)
//! shown   a           d   f   g
//! ```
//! Invariant while a row is shown, travelling forward: both stand on the first of their rows, hidden ones of the base left
//! out, whose key is the shown one or follows it; so whichever stands on it is moved by `next`. Backward likewise, the
//! other way. A change of direction brings the cursor that does not stand on the shown key to its other side.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use esker::key::SEQUENCE_MAX;
use esker::{ColumnFamily, Db, MergeOperator, Mutation, PrefixExtractor, ReadOptions, Result};

use super::WriteSet;
use super::ordered::Position;
use super::reads::Base;
use super::writes::{FamilyWrites, Writes};

/// The row that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    None,
    /// The one of the base.
    Base,
    /// That of an operation of the set: its own value, or a merged one in `buffer`. `meets`: the base stands on the same key.
    Own {
        number: u32,
        merged: bool,
        meets: bool,
    },
}

/// A cursor over the rows of a column family as they will be once a [`WriteSet`] is committed: over the database as it was,
/// and the set as it was, when the iterator was made or last refreshed. Not positioned at first.
///
/// It has the calls, and keeps the promises, of [`esker::Iter`].
pub struct Iter {
    base: esker::Iter,
    /// With `prefix_same`: the one that is not in use of the base that stays in a prefix and the base that is free. The latter
    /// is for positionings without a prefix, as the other one would take up that of any key to which it is brought; and it
    /// finds the first and the last row, as the first prefix of the database may be hidden by the set.
    other: Option<esker::Iter>,
    base_is_free: bool,
    writes: Arc<Writes>,
    family: ColumnFamily,
    operator: Option<Arc<dyn MergeOperator>>,
    /// As they were given, for a refresh.
    options: ReadOptions,
    /// The bounds that are in force.
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    own: Option<Position>,
    backward: bool,
    row: Row,
    /// The merged value that is shown.
    buffer: Vec<u8>,
    /// The key that is shown, while cursors move around it.
    saved: Vec<u8>,
    extractor: Option<PrefixExtractor>,
    /// The prefix that rows must have, if any.
    prefix: Option<Vec<u8>>,
}

impl WriteSet {
    /// An iterator over a column family, through the set. O(1) in the set.
    ///
    /// # Errors
    /// Those of [`Db::iter_cf`].
    pub fn iter(&self, db: &Db, family: &ColumnFamily, options: ReadOptions) -> Result<Iter> {
        let settings = family.options();
        let extractor = settings.prefix_extractor.filter(|_| options.prefix_same);
        let mut base = options.clone();
        let other = if extractor.is_some() {
            base.snapshot.get_or_insert_with(|| db.snapshot());
            let free = ReadOptions {
                prefix_same: false,
                ..base.clone()
            };
            Some(db.iter_cf(family, free)?)
        } else {
            None
        };
        Ok(Iter {
            base: db.iter_cf(family, base)?,
            other,
            base_is_free: false,
            writes: Arc::clone(&self.writes),
            family: family.clone(),
            operator: settings.merge_operator,
            lower: options.lower_bound.clone(),
            upper: options.upper_bound.clone(),
            options,
            own: None,
            backward: false,
            row: Row::None,
            buffer: Vec::new(),
            saved: Vec::new(),
            extractor,
            prefix: None,
        })
    }
}

impl Iter {
    /// Shows the rows of now (or of the options' snapshot) and what `set` holds now. Not positioned afterwards.
    ///
    /// # Errors
    /// Those of [`WriteSet::iter`]; it stands on no row then.
    pub fn refresh(&mut self, db: &Db, set: &WriteSet) -> Result<()> {
        self.row = Row::None;
        *self = set.iter(db, &self.family, self.options.clone())?;
        Ok(())
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.row != Row::None
    }

    /// The key it stands on; empty while not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.row {
            Row::None => &[],
            Row::Base => self.base.key(),
            Row::Own { number, .. } => self.writes.key(number),
        }
    }

    /// The value it stands on; empty while not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.row {
            Row::None => &[],
            Row::Base => self.base.value(),
            Row::Own { merged: true, .. } => &self.buffer,
            Row::Own { number, .. } => match self.writes.mutation(number) {
                Some(Mutation::Put { value, .. }) => value,
                _ => &[],
            },
        }
    }

    /// [`esker::Iter::set_bounds`].
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.row = Row::None;
        self.base.set_bounds(lower, upper);
        if let Some(other) = &mut self.other {
            other.set_bounds(lower, upper);
        }
        let (lower, upper) = self.options.narrowed(self.family.key_order(), lower, upper);
        self.lower = lower.map(<[u8]>::to_vec);
        self.upper = upper.map(<[u8]>::to_vec);
    }

    /// Moves to the first row within the bounds.
    ///
    /// # Errors
    /// As all moves: those of [`esker::Iter`] and of the merge operator; it stands on no row then.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.first()?;
        self.stay_in_prefix(Self::seek)
    }

    /// Moves to the last row within the bounds.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.last()?;
        self.stay_in_prefix(Self::seek_for_prev)
    }

    /// Moves to the first row whose key is `key` or follows it.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.start(false, Some(key));
        self.base.seek(key)?;
        let lower = self.lower.as_deref();
        let order = self.family.key_order();
        let from = lower
            .filter(|lower| order.compare(key, lower).is_lt())
            .unwrap_or(key);
        self.own = self.own_from(from);
        self.settle()
    }

    /// Moves to the last row whose key is `key` or precedes it.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.start(true, Some(key));
        self.base.seek_for_prev(key)?;
        let upper = self.upper.as_deref();
        let order = self.family.key_order();
        self.own = match upper.filter(|upper| order.compare(key, upper).is_ge()) {
            Some(upper) => self.own_before(upper),
            None => self.own_upto(key),
        };
        self.settle()
    }

    /// Moves to the next row; does nothing while not valid.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    #[expect(
        clippy::should_implement_trait,
        reason = "the field's word for moving a cursor; it gives no item"
    )]
    pub fn next(&mut self) -> Result<()> {
        self.step(false)
    }

    /// Moves to the previous row; does nothing while not valid.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn prev(&mut self) -> Result<()> {
        self.step(true)
    }

    /// After a positioning to an end.
    fn stay_in_prefix(&mut self, seek: impl FnOnce(&mut Self, &[u8]) -> Result<()>) -> Result<()> {
        if self.extractor.is_none() || !self.valid() {
            return Ok(());
        }
        let key = self.key().to_vec();
        seek(self, &key)
    }

    fn first(&mut self) -> Result<()> {
        self.start(false, None);
        self.base.seek_to_first()?;
        self.own = match &self.lower {
            Some(lower) => self.own_from(lower),
            None => self.own_family().and_then(|own| own.keys.first()),
        };
        self.settle()
    }

    fn last(&mut self) -> Result<()> {
        self.start(true, None);
        self.base.seek_to_last()?;
        self.own = match &self.upper {
            Some(upper) => self.own_before(upper),
            None => self.own_family().and_then(|own| own.keys.last()),
        };
        self.settle()
    }

    /// What comes before every positioning.
    fn start(&mut self, backward: bool, key: Option<&[u8]>) {
        self.row = Row::None;
        self.backward = backward;
        let prefix = match (self.extractor, key) {
            (Some(extractor), Some(key)) => extractor.prefix(key),
            _ => None,
        };
        self.prefix = prefix.map(<[u8]>::to_vec);
        if let Some(other) = &mut self.other
            && self.base_is_free != self.prefix.is_none()
        {
            std::mem::swap(&mut self.base, other);
            self.base_is_free = self.prefix.is_none();
        }
    }

    fn step(&mut self, backward: bool) -> Result<()> {
        let row = std::mem::replace(&mut self.row, Row::None);
        let (on_base, on_own) = match row {
            Row::None => return Ok(()),
            Row::Base => (true, false),
            Row::Own { meets, .. } => (meets, true),
        };
        if backward != self.backward {
            self.turn(row, (on_base, on_own), backward)?;
        }
        if on_base {
            self.step_base()?;
        }
        if on_own {
            self.step_own();
        }
        self.settle()
    }

    /// Brings the cursor that does not stand on the shown key to its other side.
    fn turn(&mut self, row: Row, (on_base, on_own): (bool, bool), backward: bool) -> Result<()> {
        self.backward = backward;
        let mut saved = std::mem::take(&mut self.saved);
        saved.clear();
        saved.extend_from_slice(match row {
            Row::Own { number, .. } => self.writes.key(number),
            _ => self.base.key(),
        });
        if !on_own {
            self.own = if backward {
                self.own_before(&saved)
            } else {
                self.own_from(&saved)
            };
        }
        let sought = match (on_base, backward) {
            (true, _) => Ok(()),
            // May come to the shown key itself, if the base has it under a range tombstone that is older than the set's row:
            // that is passed over once more.
            (false, true) => self.base.seek_for_prev(&saved),
            (false, false) => self.base.seek(&saved),
        };
        self.saved = saved;
        sought
    }

    fn step_base(&mut self) -> Result<()> {
        if self.backward {
            self.base.prev()
        } else {
            self.base.next()
        }
    }

    fn step_own(&mut self) {
        let (Some(own), Some(at)) = (self.own_family(), self.own) else {
            return;
        };
        self.own = if self.backward {
            own.keys.before(at)
        } else {
            own.keys.after(at)
        };
    }

    /// Shows the next row, in the direction of travel, from where the cursors stand.
    fn settle(&mut self) -> Result<()> {
        loop {
            let own = self.own_row();
            let order = match (self.base.valid(), own) {
                (false, None) => return Ok(()),
                (true, None) => Ordering::Less,
                (false, Some(_)) => Ordering::Greater,
                (true, Some((_, key))) => {
                    let order = self.family.key_order().compare(self.base.key(), key);
                    if self.backward { order.reverse() } else { order }
                }
            };
            let Some((number, _)) = own.filter(|_| order.is_ge()) else {
                if self.skip_covered()? {
                    continue;
                }
                self.row = Row::Base;
                return Ok(());
            };
            let meets = order.is_eq();
            if let Some(merged) = self.show_own(number, meets)? {
                self.row = Row::Own {
                    number,
                    merged,
                    meets,
                };
                return Ok(());
            }
            self.step_own();
            if meets {
                self.step_base()?;
            }
        }
    }

    /// Whether the key of an operation has a value, and whether that is a merged one, which is then in `buffer`.
    fn show_own(&mut self, number: u32, meets: bool) -> Result<Option<bool>> {
        let Some(own) = self.writes.family(self.family.id()) else {
            return Ok(None);
        };
        let key = self.writes.key(number);
        let known = self.writes.known_from(own, key, Some(number));
        if known.is_merged() {
            let database = meets.then(|| self.base.value());
            self.buffer = known.fold(&self.family, key, database, self.operator.as_deref())?;
            return Ok(Some(true));
        }
        Ok(matches!(known.base, Base::Value(_)).then_some(false))
    }

    /// Leaves the row of the base if a range tombstone of the set covers it. False if none does.
    fn skip_covered(&mut self) -> Result<bool> {
        let own = self.writes.family(self.family.id());
        let Some((own, fragments)) = own.and_then(|own| Some((own, own.fragments()?))) else {
            return Ok(false);
        };
        let (order, key) = (&own.order, self.base.key());
        let far_end = if self.backward {
            fragments.covered_start(order, key, 0, SEQUENCE_MAX)
        } else {
            fragments.covered_end(order, key, 0, SEQUENCE_MAX)
        };
        let Some(far_end) = far_end else {
            return Ok(false);
        };
        if self.backward {
            self.base.prev()?;
        } else {
            self.base.next()?;
        }
        // Often that was the only one. A base that stays in a prefix would change to that of the tombstone's end.
        if self.prefix.is_none() && self.base.valid() {
            match (self.backward, order.compare(self.base.key(), far_end)) {
                (false, Ordering::Less) => self.base.seek(far_end)?,
                (true, Ordering::Greater) => self.base.seek_for_prev(far_end)?,
                _ => {}
            }
        }
        Ok(true)
    }

    fn own_family(&self) -> Option<&FamilyWrites> {
        self.writes.family(self.family.id())
    }

    /// The operation that `own` stands on, and its key, within bounds and prefix.
    fn own_row(&self) -> Option<(u32, &[u8])> {
        let number = self.own_family()?.keys.get(self.own?)?;
        let key = self.writes.key(number);
        let order = self.family.key_order();
        let below = |lower: &Vec<u8>| order.compare(key, lower).is_lt();
        let past = |upper: &Vec<u8>| order.compare(key, upper).is_ge();
        let elsewhere = |prefix: &Vec<u8>| {
            self.extractor.and_then(|extractor| extractor.prefix(key)) != Some(prefix.as_slice())
        };
        let hidden = self.lower.as_ref().is_some_and(below)
            || self.upper.as_ref().is_some_and(past)
            || self.prefix.as_ref().is_some_and(elsewhere);
        (!hidden).then_some((number, key))
    }

    /// The first own key from `key` on.
    fn own_from(&self, key: &[u8]) -> Option<Position> {
        let own = self.own_family()?;
        let (Ok(position) | Err(position)) = self.writes.search(own, key);
        own.keys.at_or_after(position)
    }

    /// The last own key before `key`.
    fn own_before(&self, key: &[u8]) -> Option<Position> {
        let own = self.own_family()?;
        let (Ok(position) | Err(position)) = self.writes.search(own, key);
        own.keys.before(position)
    }

    /// The last own key up to `key`.
    fn own_upto(&self, key: &[u8]) -> Option<Position> {
        let own = self.own_family()?;
        match self.writes.search(own, key) {
            Ok(position) => Some(position),
            Err(position) => own.keys.before(position),
        }
    }
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("family", &self.family.name())
            .field("valid", &self.valid())
            .finish()
    }
}
