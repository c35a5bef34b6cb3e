//! Two-phase commit: a batch is prepared, which a crash does not undo, and later committed or rolled back by its name.
//!
//! Each step is a record of the log, written by the commit pipeline like any other batch. The rows reach the log once: the
//! record that commits holds a name, and the rows go from memory into the memtables, with the sequence numbers of that moment.
//! Who may touch the rows in between is the business of the layer above, which finds them here after a crash.

use std::fmt;
use std::sync::Arc;

use super::batch::Mutation;
use super::core::Core;
use super::{Db, WriteBatch, handle};
use crate::batch::{RawBatch, StepKind};
use crate::commit::Request;
use crate::error::{Error, Result};
use crate::options::{Durability, WriteOptions};

/// A batch that is prepared and neither committed nor rolled back. It holds the mutations, also when they are committed
/// meanwhile.
#[derive(Clone)]
pub struct Prepared {
    batch: Arc<RawBatch>,
}

impl Prepared {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        self.batch.name()
    }

    /// Number of mutations.
    pub fn len(&self) -> usize {
        self.batch.count() as usize
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Size of its encoding, name included, in bytes: what it takes in memory and in the log.
    pub fn size_bytes(&self) -> usize {
        self.batch.as_bytes().len()
    }

    /// What it would change, in order. Of a column family that was dropped meanwhile nothing will be.
    pub fn mutations(&self) -> impl Iterator<Item = Mutation<'_>> {
        // Every entry was pushed, or checked by recovery.
        self.batch.iter().flatten().filter_map(Mutation::of)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, len, bytes) = (self.name().escape_ascii(), self.len(), self.size_bytes());
        write!(f, "Prepared({name}, {len} mutations, {bytes} bytes)")
    }
}

impl Db {
    /// Prepares a batch under a name: it is logged, as durable as `options` say, and not visible. From then on it is there,
    /// over crashes and openings, until [`commit_prepared`](Self::commit_prepared) or
    /// [`roll_back_prepared`](Self::roll_back_prepared) is called with its name. On success the batch is empty again; on failure
    /// it is as it was, and nothing is prepared.
    ///
    /// What is prepared stays in memory, and every segment of the log begins with a copy of it: a batch that stays prepared for
    /// long does not keep the log from being shortened, and costs its bytes and a sync whenever a memtable is full.
    ///
    /// Errors: `InvalidArgument` for a name that is taken or has not 1 to 4,096 bytes, and for
    /// [`Durability::None`]; `Retry` if all prepared batches together would pass the memtables'
    /// part of the memory ([`memtables_bytes_max`](crate::Options::memtables_bytes_max)), which one alone may pass; those of a write. After a failed sync the database takes no
    /// more writes, and whether the batch is prepared shows when it is opened again.
    pub fn prepare(&self, name: &[u8], batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        let core = self.core();
        let durability = core.two_phase_durability(options)?;
        batch.raw.make_step(StepKind::Prepare, name)?;
        let bytes = batch.raw.as_bytes().len() as u64;
        let reserved = core
            .prepared
            .lock()
            .reserve(name, bytes, core.options.memtables_bytes_resolved());
        if let Err(error) = reserved {
            batch.raw.unmake_step();
            return Err(error);
        }
        let request = Request {
            batch: std::mem::take(&mut batch.raw),
            prepared: None,
            durability,
            no_wait: options.no_wait,
        };
        let (raw, result) = core.pipeline.commit(core, request);
        match &result {
            Ok(()) => {
                batch.clear();
                core.metrics.prepared.add(1);
            }
            Err(_) => {
                batch.raw = raw.unwrap_or_default();
                batch.raw.unmake_step();
                core.prepared.lock().remove(name);
            }
        }
        result
    }

    /// Commits what was prepared under this name: its rows become visible together, as written now, and the name is free. On
    /// failure it is prepared as it was. A durability below that with which it was prepared may undo the commit, not the
    /// preparation.
    ///
    /// Errors: `NotFound` if nothing is prepared under the name, as after a commit that is repeated; `Retry` if another thread
    /// commits or rolls it back; `InvalidArgument` for [`Durability::None`]; those of a write.
    pub fn commit_prepared(&self, name: &[u8], options: &WriteOptions) -> Result<()> {
        self.commit_prepared_with(name, &mut WriteBatch::new(), options)
    }

    /// [`commit_prepared`](Self::commit_prepared) with more mutations, which are committed behind the prepared ones and
    /// together with them. On success the batch is empty again; on failure it is as it was.
    pub fn commit_prepared_with(
        &self,
        name: &[u8],
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        self.resolve(StepKind::Commit, name, batch, options)
    }

    /// Forgets what was prepared under this name. Errors as of [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared(&self, name: &[u8], options: &WriteOptions) -> Result<()> {
        self.resolve(StepKind::RollBack, name, &mut WriteBatch::new(), options)
    }

    /// What is prepared and neither committed nor rolled back, by name; after an opening that is what a coordinator has to
    /// decide. O(prepared batches); their mutations are shared, not copied.
    pub fn prepared(&self) -> Vec<Prepared> {
        let all = self.core().prepared.lock().all();
        all.into_iter().map(|batch| Prepared { batch }).collect()
    }

    /// What is prepared under this name.
    pub fn prepared_named(&self, name: &[u8]) -> Option<Prepared> {
        let batch = self.core().prepared.lock().get(name).cloned()?;
        Some(Prepared { batch })
    }

    fn resolve(
        &self,
        kind: StepKind,
        name: &[u8],
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        let core = self.core();
        let durability = core.two_phase_durability(options)?;
        batch.raw.make_step(kind, name)?;
        let prepared = core.prepared.lock().take(name);
        let prepared = prepared.inspect_err(|_| batch.raw.unmake_step())?;
        let request = Request {
            batch: std::mem::take(&mut batch.raw),
            prepared: Some(prepared),
            durability,
            no_wait: options.no_wait,
        };
        let (rows, bytes) = (request.rows(), request.bytes() as u64);
        let (raw, result) = core.pipeline.commit(core, request);
        batch.raw = raw.unwrap_or_default();
        batch.raw.unmake_step();
        match &result {
            Ok(()) => {
                batch.clear();
                match kind {
                    StepKind::RollBack => core.metrics.prepared_rolled_back.add(1),
                    _ => core.metrics.prepared_committed.add(1),
                }
                core.metrics.writes.add(rows);
                if rows > 0 {
                    core.metrics.write_bytes.add(bytes);
                }
            }
            Err(_) => core.prepared.lock().give_back(name),
        }
        result
    }
}

impl Core {
    /// The durability of a step, if steps can be taken at all.
    fn two_phase_durability(&self, options: &WriteOptions) -> Result<Durability> {
        self.check_open()?;
        if self.options.read_only {
            return Err(handle::opened_read_only());
        }
        match options.durability.unwrap_or_else(|| self.default_durability()) {
            Durability::None => Err(Error::invalid(
                "a two-phase commit is in the log, so its steps can't be written with Durability::None",
            )),
            logged => Ok(logged),
        }
    }
}
