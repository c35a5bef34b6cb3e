//! What a transaction has written and not committed, and reading through it.
//!
//! A [`WriteSet`] is a [`WriteBatch`], which is what will be written at commit, and an index to it:
//! ```text
//! batch        | put a 1 | merge b x | delete c | merge a 2 | delete_range d..g | put e 3 |
//! operations        0          1           2          3               4             5
//! keys, in the family's order:  a -> 3 -> 0     b -> 1     c -> 2     e -> 5
//! range tombstones:             d..g @4
//! ```
//! - An *operation* is a mutation of the batch that reads see, numbered in the order of writing; it knows where it begins
//!   in the batch, and the one before it on the same key (`writes.rs`).
//! - `ordered.rs` holds the newest operation of each key in the order of the family's comparator: a sorted vector in chunks, so
//!   that one put is one push, and a million keys are no long moves. It holds numbers only; keys stay in the batch.
//! - Range deletes are cut into the engine's fragments when something is read after one was added.
//! - `reads.rs` says what the set knows of a key, and asks the database for the rest; `iterator.rs` merges the two.
//! - A save point is the number of operations at its time. Rolling back takes the operations behind it out of the index, from
//!   the last on: O(log n) for each.
//!
//! # Iterators and later writes
//! An iterator sees the set as it was when it was made or last refreshed. It shares the set's memory, and the first write
//! while it lives copies that: O(size of the set), once for each iterator at most.

mod iterator;
mod ordered;
mod reads;
mod writes;

use std::sync::Arc;

use esker::{ColumnFamily, Db, Error, ErrorKind, Mutation, Result, WriteBatch, WriteOptions};

pub use iterator::Iter;
use writes::Writes;

/// Mutations that are not committed, in order, and an index to them by family and key. One thread writes to it at a time.
///
/// Families that are given to it must all be of one database.
#[derive(Debug)]
pub struct WriteSet {
    writes: Arc<Writes>,
    bytes_max: usize,
}

impl Default for WriteSet {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteSet {
    /// An empty set, bounded by what a [`WriteBatch`] can hold.
    pub fn new() -> Self {
        Self::with_max_bytes(usize::MAX)
    }

    /// An empty set that refuses what makes it larger than `max_write_set_bytes` (of [`size_bytes`](Self::size_bytes)).
    pub fn with_max_bytes(max_write_set_bytes: usize) -> Self {
        Self {
            writes: Arc::default(),
            bytes_max: max_write_set_bytes,
        }
    }

    /// Changes the limit; what is there already may stay.
    pub fn set_max_bytes(&mut self, max_write_set_bytes: usize) {
        self.bytes_max = max_write_set_bytes;
    }

    /// Sets `key` to `value`. O(log n), as all of the following.
    ///
    /// # Errors
    /// `WriteLimit` past `max_write_set_bytes`; `InvalidArgument` past a limit of a batch. The set is as it was.
    pub fn put(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        let id = family.id();
        self.write(
            family,
            Mutation::Put {
                family: id,
                key,
                value,
            },
        )
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let id = family.id();
        self.write(family, Mutation::Delete { family: id, key })
    }

    /// Removes `key`, under the conditions of [`WriteBatch::single_delete`].
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn single_delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let id = family.id();
        self.write(family, Mutation::SingleDelete { family: id, key })
    }

    /// Applies the merge operator's `operand` to `key`. Without an operator reads of the key fail.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn merge(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        let id = family.id();
        self.write(
            family,
            Mutation::Merge {
                family: id,
                key,
                operand,
            },
        )
    }

    /// Removes all keys from `start` up to `end` (exclusive). An empty range is nothing. The first read behind it costs
    /// O(n log n) in the range deletes of the family.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&mut self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        let id = family.id();
        self.write(
            family,
            Mutation::DeleteRange {
                family: id,
                start,
                end,
            },
        )
    }

    /// Adds a mutation of `family`. Errors as of [`put`](Self::put).
    #[inline]
    pub(crate) fn write(&mut self, family: &ColumnFamily, mutation: Mutation<'_>) -> Result<()> {
        let bytes_max = self.bytes_max;
        let writes = Arc::make_mut(&mut self.writes);
        let offset = writes.push(mutation, bytes_max)?;
        writes.index(family, mutation, offset)
    }

    /// Adds a mutation that is committed, counted and rolled back with the others, but that no read of the set sees.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn push_unindexed(&mut self, mutation: Mutation<'_>) -> Result<()> {
        let bytes_max = self.bytes_max;
        Arc::make_mut(&mut self.writes)
            .push(mutation, bytes_max)
            .map(drop)
    }

    /// What will be written at commit.
    pub fn batch(&self) -> &WriteBatch {
        &self.writes.batch
    }

    /// Commits the mutations, which the set keeps; see [`Db::write_and_keep`].
    ///
    /// # Errors
    /// Those of the database; nothing is written then.
    pub fn commit(&mut self, db: &Db, options: &WriteOptions) -> Result<()> {
        db.write_and_keep(&mut Arc::make_mut(&mut self.writes).batch, options)
    }

    /// Prepares the mutations under a name, which empties the set; see [`Db::prepare`]. An iterator that shares its memory makes it
    /// copy that, as any write does.
    ///
    /// # Errors
    /// Those of the database; nothing is prepared then, and the set is as it was.
    pub fn prepare(&mut self, db: &Db, name: &[u8], options: &WriteOptions) -> Result<()> {
        db.prepare(name, &mut Arc::make_mut(&mut self.writes).batch, options)?;
        self.clear();
        Ok(())
    }

    /// Whether there is a mutation of exactly this key: range deletes don't count. O(log n).
    pub fn has_written(&self, family: &ColumnFamily, key: &[u8]) -> bool {
        let own = self.writes.family(family.id());
        own.is_some_and(|own| self.writes.search(own, key).is_ok())
    }

    /// Number of mutations.
    pub fn len(&self) -> usize {
        self.writes.batch.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.batch.is_empty()
    }

    /// Size of the batch, in bytes: what the limit is about.
    pub fn size_bytes(&self) -> usize {
        self.writes.batch.size_bytes()
    }

    /// Bytes of memory in use, the index included.
    pub fn memory_bytes(&self) -> usize {
        self.writes.memory_bytes()
    }

    /// Empties it, save points included, and keeps its memory, unless an iterator still needs that.
    pub fn clear(&mut self) {
        match Arc::get_mut(&mut self.writes) {
            Some(writes) => writes.clear(),
            None => self.writes = Arc::default(),
        }
    }

    /// Remembers what it holds now, on top of earlier save points.
    pub fn set_save_point(&mut self) {
        Arc::make_mut(&mut self.writes).set_save_point();
    }

    /// Takes back all that was written since the last save point, and forgets that one. False if there is none.
    /// O(log n) for each mutation that is taken back.
    pub fn roll_back_to_save_point(&mut self) -> bool {
        Arc::make_mut(&mut self.writes).roll_back_to_save_point()
    }

    /// Forgets the last save point, and keeps what was written since. False if there is none.
    pub fn pop_save_point(&mut self) -> bool {
        Arc::make_mut(&mut self.writes).pop_save_point()
    }
}

fn past_limit(bytes: usize, bytes_max: usize) -> Error {
    Error::new(
        ErrorKind::WriteLimit,
        format!("the writes of the transaction would take {bytes} bytes; max_write_set_bytes is {bytes_max}"),
    )
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
