//! Writes of a transaction: they are kept in its write set, and protected from others until it ends.

use esker::{ColumnFamily, Mutation, Result};

use super::Transaction;
use crate::lock::{Acquired, LockMode};

impl Transaction {
    /// Sets `key` to `value`, under an exclusive lock. O(log n) in its writes, as all of the following, beside the lock.
    ///
    /// # Errors
    /// `TimedOut`, `Deadlock` and `LockLimit` of the lock; `Conflict` if there is a snapshot and the key was written since;
    /// `Interrupted` if somebody did; `WriteLimit` past `max_write_set_bytes`; `InvalidArgument` past a limit of a batch, and if it is
    /// prepared or has ended. Nothing is changed then.
    pub fn put(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        let id = family.id();
        let mutation = Mutation::Put {
            family: id,
            key,
            value,
        };
        self.write_key(family, key, mutation)
    }

    /// Removes `key`, under an exclusive lock.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let mutation = Mutation::Delete {
            family: family.id(),
            key,
        };
        self.write_key(family, key, mutation)
    }

    /// Removes `key`, under an exclusive lock and the conditions of [`WriteBatch::single_delete`](esker::WriteBatch::single_delete).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn single_delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let mutation = Mutation::SingleDelete {
            family: family.id(),
            key,
        };
        self.write_key(family, key, mutation)
    }

    /// Applies the merge operator's `operand` to `key`, under an exclusive lock.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn merge(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        let id = family.id();
        let mutation = Mutation::Merge {
            family: id,
            key,
            operand,
        };
        self.write_key(family, key, mutation)
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
        self.write_untracked(family, mutation)
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
        self.write_untracked(family, mutation)
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
        self.write_untracked(family, mutation)
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
        self.write_untracked(family, mutation)
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
        self.write_untracked(family, mutation)
    }

    #[inline]
    fn write_key(&mut self, family: &ColumnFamily, key: &[u8], mutation: Mutation<'_>) -> Result<()> {
        let acquired = self.protect_key(family, key, LockMode::Exclusive)?;
        let written = self.writes.write(family, mutation);
        match written {
            Ok(()) => self.count(),
            Err(_) => self.give_back_key(family, key, acquired),
        }
        written
    }

    fn write_untracked(&mut self, family: &ColumnFamily, mutation: Mutation<'_>) -> Result<()> {
        self.check_active()?;
        self.writes.write(family, mutation)?;
        self.control.note_untracked(mutation);
        self.count();
        Ok(())
    }
}
