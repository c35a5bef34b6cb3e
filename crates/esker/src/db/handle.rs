//! The handle that users hold, and its one-line writes.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::{Core, RecoveryReport};
use super::{ColumnFamily, Opener, WriteBatch};
use crate::batch::{DEFAULT_COLUMN_FAMILY, RawBatch};
use crate::commit::Request;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::SnapshotFreed;
use crate::key::ValueKind;
use crate::options::{Durability, Options, WriteOptions};
use crate::snapshot::Snapshot;

/// An open database. Clones share it; it closes when the last one is dropped, or by [`close`](Self::close).
/// All methods may be called from any thread.
#[derive(Clone)]
pub struct Db {
    owner: Arc<Owner>,
}

/// Closes the database when the last handle goes; background threads hold the core itself.
struct Owner {
    core: Arc<Core>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Err(error) = self.core.shut_down() {
            tracing::error!(%error, "closing the database failed");
        }
    }
}

thread_local! {
    /// A batch whose memory single writes of this thread use again.
    static SPARE: RefCell<Option<RawBatch>> = const { RefCell::new(None) };
}

/// Single writes keep at most this much memory for the next one.
const SPARE_BYTES_MAX: usize = 64 << 10;

impl Db {
    /// Opens the database in `path` with the settings and key orders that its column families have; families with
    /// an order or merge operator of the user's own are opened by [`Opener`].
    ///
    /// Errors: `Locked` (another process has it open), `NotFound` (none there, and not to be created),
    /// `InvalidArgument` (the folder holds something else; options out of range or incompatible), `Unsupported`
    /// (written by a newer version), `Corruption` (naming file and offset).
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Opener::new(options).open(path)
    }

    pub(super) fn from_core(core: Arc<Core>) -> Self {
        Self {
            owner: Arc::new(Owner { core }),
        }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// Ends background work and releases the folder; every later call on any clone fails with `Closed`. What was
    /// written without the WAL is flushed first. Iterators may live on; see [`Iter`](super::Iter).
    pub fn close(&self) -> Result<()> {
        self.core().shut_down()
    }

    /// What recovery found when the database was opened.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.core().recovery
    }

    /// Commits a batch with the database's durability.
    pub fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// Commits a batch. On success the batch is empty again; on failure nothing of it is visible and it is as it was.
    pub fn write_with(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        let result = self.write_and_keep(batch, options);
        if result.is_ok() {
            batch.clear();
        }
        result
    }

    /// Commits a batch that holds the same afterwards, so that it can be looked at or committed again.
    pub fn write_and_keep(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        // An empty one stands in for it meanwhile, without an allocation.
        let stand_in = SPARE.take().unwrap_or_default();
        let (raw, result) = self.commit(std::mem::replace(&mut batch.raw, stand_in), options);
        if let Some(raw) = raw {
            SPARE.set(Some(std::mem::replace(&mut batch.raw, raw)));
        }
        result
    }

    /// Sets `key` to `value`.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one(
            DEFAULT_COLUMN_FAMILY,
            ValueKind::Put,
            key,
            value,
            &WriteOptions::default(),
        )
    }

    /// Sets `key` to `value` in a column family.
    pub fn put_cf(&self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one(family.id(), ValueKind::Put, key, value, &WriteOptions::default())
    }

    /// Sets `key` to `value`, with options.
    pub fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(DEFAULT_COLUMN_FAMILY, ValueKind::Put, key, value, options)
    }

    /// [`put_cf`](Self::put_cf) with options.
    pub fn put_cf_with(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(family.id(), ValueKind::Put, key, value, options)
    }

    /// Removes `key`.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.write_one(
            DEFAULT_COLUMN_FAMILY,
            ValueKind::Delete,
            key,
            &[],
            &WriteOptions::default(),
        )
    }

    /// Removes `key` from a column family.
    pub fn delete_cf(&self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.write_one(family.id(), ValueKind::Delete, key, &[], &WriteOptions::default())
    }

    /// [`delete_cf`](Self::delete_cf) with options.
    pub fn delete_cf_with(&self, family: &ColumnFamily, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family.id(), ValueKind::Delete, key, &[], options)
    }

    /// Removes a key that was put once; see [`WriteBatch::single_delete`].
    pub fn single_delete(&self, key: &[u8]) -> Result<()> {
        self.write_one(
            DEFAULT_COLUMN_FAMILY,
            ValueKind::SingleDelete,
            key,
            &[],
            &WriteOptions::default(),
        )
    }

    /// [`single_delete`](Self::single_delete) from a column family, with options.
    pub fn single_delete_cf_with(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(family.id(), ValueKind::SingleDelete, key, &[], options)
    }

    /// Removes all keys from `start` up to `end` (exclusive).
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<()> {
        self.write_one(
            DEFAULT_COLUMN_FAMILY,
            ValueKind::RangeDelete,
            start,
            end,
            &WriteOptions::default(),
        )
    }

    /// Removes all keys from `start` up to `end` (exclusive) from a column family.
    pub fn delete_range_cf(&self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<()> {
        self.write_one(
            family.id(),
            ValueKind::RangeDelete,
            start,
            end,
            &WriteOptions::default(),
        )
    }

    /// [`delete_range_cf`](Self::delete_range_cf) with options.
    pub fn delete_range_cf_with(
        &self,
        family: &ColumnFamily,
        start: &[u8],
        end: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(family.id(), ValueKind::RangeDelete, start, end, options)
    }

    /// Applies the merge operator's `operand` to `key`. Without an operator reads of the key fail.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.write_one(
            DEFAULT_COLUMN_FAMILY,
            ValueKind::Merge,
            key,
            operand,
            &WriteOptions::default(),
        )
    }

    /// Applies the merge operator's `operand` to `key` in a column family.
    pub fn merge_cf(&self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        self.write_one(
            family.id(),
            ValueKind::Merge,
            key,
            operand,
            &WriteOptions::default(),
        )
    }

    /// [`merge_cf`](Self::merge_cf) with options.
    pub fn merge_cf_with(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        operand: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(family.id(), ValueKind::Merge, key, operand, options)
    }

    /// Pins the database as it is now. Versions that a snapshot sees are kept until its last clone is dropped.
    pub fn snapshot(&self) -> Snapshot {
        let core = self.core();
        if !core.events.is_on() {
            return core.snapshot();
        }
        let events = Arc::clone(&core.events);
        let freed = move |sequence, oldest_left| {
            events.note(|| SnapshotFreed {
                sequence,
                oldest_left,
            });
        };
        core.snapshots.acquire_told(|| core.visible(), Box::new(freed))
    }

    /// The last sequence number that readers see.
    pub fn last_sequence(&self) -> u64 {
        self.core().visible()
    }

    /// Makes all writes so far durable.
    pub fn sync_wal(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.health.check_writable()?;
        core.with_token(|token| core.sync_wal(token))
    }

    #[inline]
    fn write_one(
        &self,
        family: u32,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = SPARE.take().unwrap_or_default();
        batch.push(family, kind, key, value)?;
        let (batch, result) = self.commit(batch, options);
        if let Some(mut batch) = batch
            && batch.as_bytes().len() <= SPARE_BYTES_MAX
        {
            batch.clear();
            SPARE.set(Some(batch));
        }
        result
    }

    fn commit(&self, batch: RawBatch, options: &WriteOptions) -> (Option<RawBatch>, Result<()>) {
        let core = self.core();
        if batch.is_empty() {
            return (Some(batch), core.check_open());
        }
        if core.options.read_only {
            return (Some(batch), Err(opened_read_only()));
        }
        let durability = options.durability.unwrap_or_else(|| core.default_durability());
        let (count, bytes) = (batch.count(), batch.as_bytes().len());
        let request = Request {
            batch,
            prepared: None,
            durability,
            no_wait: options.no_wait,
        };
        let (batch, result) = core.pipeline.commit(core, request);
        if result.is_ok() {
            core.metrics.writes.add(u64::from(count));
            core.metrics.write_bytes.add(bytes as u64);
        }
        (batch, result)
    }
}

pub(super) fn opened_read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the database was opened read-only")
}

impl Core {
    pub(super) fn default_durability(&self) -> Durability {
        match self.durability.load(Ordering::Relaxed) {
            0 => Durability::Sync,
            2 => Durability::None,
            _ => Durability::Buffered,
        }
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.core().dir.display())
    }
}
