//! Reads of a transaction, through its own writes; reads for update, which keep others from writing what was read.

use std::ops::Range as Span;

use esker::{ColumnFamily, Error, PinnedValue, ReadOptions, Result};

use super::Transaction;
use crate::lock::{Acquired, LockMode};
use crate::write_set::Iter;

/// The keys that were read for update, so that it can be undone.
#[derive(Default)]
pub(super) struct Fetched {
    /// In order of time.
    calls: Vec<Call>,
    /// Keys, one behind the other.
    keys: Vec<u8>,
    /// How many calls there were at each save point.
    save_points: Vec<usize>,
}

struct Call {
    family: u32,
    key: Span<usize>,
    acquired: Acquired,
}

impl Fetched {
    fn push(&mut self, family: u32, key: &[u8], acquired: Acquired) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        let key = start..self.keys.len();
        self.calls.push(Call {
            family,
            key,
            acquired,
        });
    }

    /// Forgets the last call for the key behind the last save point; what it had changed.
    fn take(&mut self, family: u32, key: &[u8]) -> Option<Acquired> {
        let from = self.save_points.last().copied().unwrap_or(0);
        let calls = self.calls.get(from..)?;
        let is_it = |call: &Call| call.family == family && self.keys.get(call.key.clone()) == Some(key);
        let at = from + calls.iter().rposition(is_it)?;
        let call = self.calls.remove(at);
        if at == self.calls.len() {
            self.keys.truncate(call.key.start);
        }
        Some(call.acquired)
    }

    pub(super) fn set_save_point(&mut self) {
        self.save_points.push(self.calls.len());
    }

    pub(super) fn pop_save_point(&mut self) {
        self.save_points.pop();
    }

    pub(super) fn roll_back_to_save_point(&mut self) {
        let kept = self.save_points.pop().unwrap_or(0);
        self.calls.truncate(kept);
        let end = self.calls.last().map_or(0, |call| call.key.end);
        self.keys.truncate(end);
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.keys.clear();
        self.save_points.clear();
    }
}

impl Transaction {
    /// The value of `key`, own writes included. Takes no lock and waits for nobody.
    ///
    /// # Errors
    /// Those of [`WriteSet::get`](crate::WriteSet::get); `InvalidArgument` if it is prepared or has ended.
    pub fn get(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<Option<PinnedValue>> {
        self.before_read()?;
        self.writes.get(&self.db, family, key, &self.reads)
    }

    /// [`get`](Self::get) with options. A snapshot among them goes before that of the transaction.
    ///
    /// # Errors
    /// As there.
    pub fn get_with(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        let options = self.read_options(options.clone())?;
        self.writes.get(&self.db, family, key, &options)
    }

    /// The values of several keys, in their order: for each what [`get`](Self::get) gives, all of one moment.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get(&mut self, family: &ColumnFamily, keys: &[&[u8]]) -> Result<Vec<Option<PinnedValue>>> {
        self.before_read()?;
        self.writes.multi_get(&self.db, family, keys, &self.reads)
    }

    /// [`multi_get`](Self::multi_get) with options. A snapshot among them goes before that of the transaction.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_with(
        &mut self,
        family: &ColumnFamily,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Option<PinnedValue>>> {
        let options = self.read_options(options.clone())?;
        self.writes.multi_get(&self.db, family, keys, &options)
    }

    /// An iterator over the family as this transaction sees it now, own writes included; later ones are not, see
    /// [`refresh`](Self::refresh). Takes no lock.
    ///
    /// # Errors
    /// Those of [`WriteSet::iter`](crate::WriteSet::iter); `InvalidArgument` if it is prepared or has ended.
    pub fn iter(&mut self, family: &ColumnFamily, options: ReadOptions) -> Result<Iter> {
        let options = self.read_options(options)?;
        self.writes.iter(&self.db, family, options)
    }

    /// Shows what an iterator of this transaction would see if it were made now. Not positioned afterwards.
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn refresh(&mut self, iter: &mut Iter) -> Result<()> {
        self.before_read()?;
        iter.refresh(&self.db, &self.writes)
    }

    /// The value of `key`, which nobody else can write until this transaction ends, nor lock, if `mode` is exclusive. So the
    /// value is the newest there is, also under `RepeatableRead`.
    ///
    /// # Errors
    /// Those of [`get`](Self::get) and of the lock, as in [`put`](Self::put); nothing is locked by it then.
    pub fn get_for_update(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<PinnedValue>> {
        let acquired = self.protect_key(family, key, mode)?;
        let value = self.writes.get(&self.db, family, key, &self.reads);
        match value {
            Ok(_) => {
                self.fetched.push(family.id(), key, acquired);
                self.count();
            }
            Err(_) => self.give_back_key(family, key, acquired),
        }
        value
    }

    /// [`get_for_update`](Self::get_for_update) for several keys, which are locked in the order in which they come.
    ///
    /// # Errors
    /// As there, if one of them fails; none is locked by it then.
    pub fn multi_get_for_update(
        &mut self,
        family: &ColumnFamily,
        keys: &[&[u8]],
        mode: LockMode,
    ) -> Result<Vec<Option<PinnedValue>>> {
        self.set_save_point()?;
        let mut locked = keys.iter().map(|key| self.lock_key(family, key, mode));
        let values = match locked.try_for_each(|locked| locked) {
            Ok(()) => self.multi_get(family, keys),
            Err(error) => Err(error),
        };
        if values.is_ok() {
            self.pop_save_point()?;
        } else {
            self.roll_back_to_save_point()?;
        }
        values
    }

    /// [`get_for_update`](Self::get_for_update) without the read.
    ///
    /// # Errors
    /// Those of the lock, as in [`put`](Self::put).
    pub fn lock_key(&mut self, family: &ColumnFamily, key: &[u8], mode: LockMode) -> Result<()> {
        let acquired = self.protect_key(family, key, mode)?;
        self.fetched.push(family.id(), key, acquired);
        self.count();
        Ok(())
    }

    /// Keeps others from writing any key from `start` on, up to `end` without it (none: to the last key), until this
    /// transaction ends, those that are not there as well: what is then read of the range stays so. A range without keys is
    /// refused. Costs time proportional to the locks that all hold.
    ///
    /// # Errors
    /// Those of the lock, as in [`put`](Self::put).
    pub fn lock_range(
        &mut self,
        family: &ColumnFamily,
        start: &[u8],
        end: Option<&[u8]>,
        mode: LockMode,
    ) -> Result<()> {
        if end.is_some_and(|end| family.key_order().compare(start, end).is_ge()) {
            return Err(Error::invalid("a range to lock must start before its end"));
        }
        self.protect_range(family, (start, end), mode).map(drop)
    }

    /// Undoes the last [`get_for_update`](Self::get_for_update) or [`lock_key`](Self::lock_key) of `key` since the last save point:
    /// for a caller that has found that it does not need the row. The lock is given back, or is shared again, if it was that
    /// call which took it, and the transaction has not written the key. Whether anything was given back. Takes time
    /// proportional to the locks that were taken since.
    ///
    /// # Errors
    /// `InvalidArgument` if it is prepared or has ended.
    pub fn undo_get_for_update(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<bool> {
        self.check_active()?;
        let acquired = self.fetched.take(family.id(), key);
        let Some(acquired) = acquired.filter(|acquired| *acquired != Acquired::Held) else {
            return Ok(false);
        };
        if self.writes.has_written(family, key) {
            return Ok(false);
        }
        self.give_back_key(family, key, acquired);
        Ok(true)
    }

    #[inline]
    fn before_read(&mut self) -> Result<()> {
        self.check_active()?;
        self.need_snapshot();
        Ok(())
    }

    fn read_options(&mut self, mut options: ReadOptions) -> Result<ReadOptions> {
        self.before_read()?;
        if options.snapshot.is_none() {
            options.snapshot.clone_from(&self.reads.snapshot);
        }
        Ok(options)
    }
}
