//! Writes of a transaction: they are kept in its write set, and protected from others until it ends.

use esker::{ColumnFamily, Mutation, Result};

use super::Transaction;
use crate::lock::{Acquired, LockMode};
use crate::write_set::WriteSet;

impl Transaction {
    /// Sets `key` to `value`, under an exclusive lock. O(log n) in its writes, as all of the following, beside the lock.
    ///
    /// # Errors
    /// `TimedOut`, `Deadlock` and `LockLimit` of the lock; `Conflict` if there is a snapshot and the key was written since;
    /// `InvalidArgument` past a limit (`max_write_set_bytes`, those of a batch), and if it has ended. Nothing is changed then.
    pub fn put(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_key(family, key, |writes| writes.put(family, key, value))
    }

    /// Removes `key`, under an exclusive lock.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.write_key(family, key, |writes| writes.delete(family, key))
    }

    /// Removes `key`, under an exclusive lock and the conditions of [`WriteBatch::single_delete`](esker::WriteBatch::single_delete).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn single_delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.write_key(family, key, |writes| writes.single_delete(family, key))
    }

    /// Applies the merge operator's `operand` to `key`, under an exclusive lock.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn merge(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        self.write_key(family, key, |writes| writes.merge(family, key, operand))
    }

    /// Removes all keys from `start` up to `end` (exclusive), under an exclusive lock of the range. An empty range is nothing.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&mut self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        self.check_active()?;
        if family.key_order().compare(start, end).is_ge() {
            return Ok(());
        }
        let range = (start, Some(end));
        let acquired = self.protect_range(family, range, LockMode::Exclusive)?;
        let written = self.writes.delete_range(family, start, end);
        if written.is_err() && acquired != Acquired::Held {
            self.control.give_back_range(family, range);
        }
        self.count();
        written
    }

    /// [`put`](Self::put) without lock and without check, for keys that the caller knows nobody else to touch. Whoever else
    /// writes the key at the same time has it overwritten, or overwrites it, in the order of the commits; but the conflict
    /// checks of others see it.
    ///
    /// # Errors
    /// `InvalidArgument`, as [`put`](Self::put).
    pub fn put_untracked(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        let id = family.id();
        let mutation = Mutation::Put {
            family: id,
            key,
            value,
        };
        self.write_untracked(mutation, |writes| writes.put(family, key, value))
    }

    /// [`delete`](Self::delete), as [`put_untracked`](Self::put_untracked).
    ///
    /// # Errors
    /// As there.
    pub fn delete_untracked(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let mutation = Mutation::Delete {
            family: family.id(),
            key,
        };
        self.write_untracked(mutation, |writes| writes.delete(family, key))
    }

    /// [`single_delete`](Self::single_delete), as [`put_untracked`](Self::put_untracked).
    ///
    /// # Errors
    /// As there.
    pub fn single_delete_untracked(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let mutation = Mutation::SingleDelete {
            family: family.id(),
            key,
        };
        self.write_untracked(mutation, |writes| writes.single_delete(family, key))
    }

    /// [`merge`](Self::merge), as [`put_untracked`](Self::put_untracked).
    ///
    /// # Errors
    /// As there.
    pub fn merge_untracked(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        let id = family.id();
        let mutation = Mutation::Merge {
            family: id,
            key,
            operand,
        };
        self.write_untracked(mutation, |writes| writes.merge(family, key, operand))
    }

    /// [`delete_range`](Self::delete_range), as [`put_untracked`](Self::put_untracked).
    ///
    /// # Errors
    /// As there.
    pub fn delete_range_untracked(&mut self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        let id = family.id();
        let mutation = Mutation::DeleteRange {
            family: id,
            start,
            end,
        };
        self.write_untracked(mutation, |writes| writes.delete_range(family, start, end))
    }

    #[inline]
    fn write_key(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        write: impl FnOnce(&mut WriteSet) -> Result<()>,
    ) -> Result<()> {
        let acquired = self.protect_key(family, key, LockMode::Exclusive)?;
        let written = write(&mut self.writes);
        match written {
            Ok(()) => self.count(),
            Err(_) => self.give_back_key(family, key, acquired),
        }
        written
    }

    fn write_untracked(
        &mut self,
        mutation: Mutation<'_>,
        write: impl FnOnce(&mut WriteSet) -> Result<()>,
    ) -> Result<()> {
        self.check_active()?;
        write(&mut self.writes)?;
        self.control.note_untracked(mutation);
        self.count();
        Ok(())
    }
}
