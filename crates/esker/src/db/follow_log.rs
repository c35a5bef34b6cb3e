//! FOLLOW: the log of another process, read into memtables as it grows.
//!
//! Each family has a memtable for each segment that holds rows of it, because the writer's tables take the place of whole segments:
//! a memtable goes when the family's log number has passed its segment (`db/recover.rs` says which rows count). Memtables are shared
//! by the moments that readers hold; rows are only added, with numbers that no earlier moment sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_env::IoMode;

use super::core::Core;
use crate::batch::{RawBatch, StepKind, is_carried};
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::memtable::Memtable;
use crate::options::{ColumnFamilyOptions, MemtableKind};
use crate::version::{Buffer, Family, FileKind, Version, VersionState, View};
use crate::wal::{SegmentId, Tailed, WalTail};

/// A family, as far as it was read.
#[derive(Debug)]
pub(super) struct Followed {
    pub family: Arc<Family>,
    pub version: Arc<Version>,
    /// Rows of the log, a buffer for each segment that has some, the newest first.
    buffers: Vec<Arc<Buffer>>,
    /// Stands in where there are none.
    empty: Arc<Buffer>,
    log_number: u64,
}

impl Followed {
    /// The family that is `known` already, or a new one.
    pub fn new(
        stored: (u32, &str, u64),
        known: Option<Arc<Family>>,
        version: Arc<Version>,
        options: ColumnFamilyOptions,
        core: &Core,
    ) -> Self {
        let (id, name, log_number) = stored;
        let empty = buffer(&options, core, 0);
        let family = known.unwrap_or_else(|| {
            let version = Arc::clone(&version);
            Arc::new(Family::new(
                id,
                name.to_owned(),
                options,
                version,
                Arc::clone(&empty),
            ))
        });
        Self {
            family,
            version,
            buffers: Vec::new(),
            empty,
            log_number,
        }
    }

    /// What readers get.
    pub fn view(&self) -> View {
        View::of(&self.buffers, &self.empty, &self.version)
    }

    /// Forgets rows of the log that are in tables.
    pub fn forget_below(&mut self, log_number: u64) {
        self.log_number = log_number;
        self.buffers.retain(|buffer| buffer.wal_number() >= log_number);
    }

    /// Forgets all rows of the log.
    pub fn forget_rows(&mut self) {
        self.buffers.clear();
    }

    fn insert(&mut self, segment: u64, core: &Core) -> &Memtable {
        if self.buffers.first().map(|buffer| buffer.wal_number()) != Some(segment) {
            if let Some(last) = self.buffers.first() {
                last.table.seal();
            }
            self.buffers
                .insert(0, buffer(&self.family.options(), core, segment));
        }
        &self.buffers[0].table
    }
}

/// An empty memtable for rows of a segment. They are read at once, so never the vector.
fn buffer(options: &ColumnFamilyOptions, core: &Core, segment: u64) -> Arc<Buffer> {
    let table = Memtable::new(
        MemtableKind::Ordered,
        options.key_order.clone(),
        segment,
        options.memtable_bytes as usize,
        &core.arena_pool,
    );
    Arc::new(Buffer::new(table, segment))
}

/// A place in the log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The segment that is read, or the first one that may come.
    number: u64,
    /// `None`: it is still to be found.
    tail: Option<WalTail>,
    last_sequence: Sequence,
}

impl Log {
    /// The last sequence number that was read.
    pub fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// Leaves segments that `state` does not need. Gives the segment at which reading goes on.
    pub fn go_to(&mut self, state: &VersionState, core: &Core) -> u64 {
        let needed = state.log_number_min().unwrap_or(0);
        if self.number < needed {
            *self = Self {
                number: needed,
                tail: None,
                last_sequence: self.last_sequence,
            };
            core.prepared.lock().clear();
        }
        self.number
    }

    /// Reads what has come, to the end or up to a batch that names a family which is younger than `state`: then it gives false.
    pub fn read(
        &mut self,
        core: &Core,
        state: &VersionState,
        families: &mut BTreeMap<u32, Followed>,
        batches: &mut u64,
    ) -> Result<bool> {
        loop {
            let Some(tail) = &mut self.tail else {
                match self.next_segment(core)? {
                    true => continue,
                    false => return Ok(true),
                }
            };
            match tail.read()? {
                Tailed::Waiting => return Ok(true),
                Tailed::Finished => {
                    self.number += 1;
                    self.tail = None;
                }
                Tailed::Record(bytes) => {
                    let batch = RawBatch::from_bytes(bytes.to_vec())?;
                    let is_own = !is_carried(bytes);
                    // As a whole first: a batch is applied whole or not at all.
                    for entry in batch.iter() {
                        if entry?.family >= state.next_column_family {
                            return Ok(false);
                        }
                    }
                    tail.pass();
                    let mut rows = Rows {
                        core,
                        families,
                        segment: self.number,
                    };
                    let last = rows.apply(batch)?;
                    self.last_sequence = self.last_sequence.max(last);
                    *batches += u64::from(is_own);
                }
            }
        }
    }

    /// Opens the oldest segment from `number` on; false if there is none.
    fn next_segment(&mut self, core: &Core) -> Result<bool> {
        let names = core.env.fs.list(&core.dir);
        let names = names.map_err(|error| Error::io("can't list the folder", error).in_file(&core.dir))?;
        let next = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Wal(number)) if number >= self.number => Some(number),
                _ => None,
            })
            .min();
        let Some(number) = next else { return Ok(false) };
        let path = FileKind::Wal(number).path(&core.dir);
        let file = match core.env.fs.open(&path, IoMode::Buffered) {
            Ok(file) => file,
            // It has got another name, as it is used again. The manifest tells.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("can't open a WAL segment", error).in_file(&path)),
        };
        let id = SegmentId {
            db_id: core.database_id,
            number,
        };
        self.number = number;
        self.tail = Some(WalTail::new(file, &path, id));
        // It begins with all that is prepared.
        core.prepared.lock().clear();
        Ok(true)
    }
}

/// Where the rows of a segment go.
struct Rows<'a> {
    core: &'a Core,
    families: &'a mut BTreeMap<u32, Followed>,
    segment: u64,
}

impl Rows<'_> {
    /// Applies a record; gives the last sequence number of what it committed, or the one before the next.
    fn apply(&mut self, batch: RawBatch) -> Result<Sequence> {
        let sequence = batch.sequence();
        let mut rows = 0;
        let resolve = |step: &RawBatch| self.core.prepared.lock().resolve(step);
        match batch.kind() {
            StepKind::Batch => rows = self.insert(sequence, &batch)?,
            StepKind::Prepare | StepKind::Carried => self.core.prepared.lock().add(batch),
            StepKind::Commit => {
                let prepared = resolve(&batch)?;
                rows = self.insert(sequence, &prepared)?;
                rows += self.insert(sequence.saturating_add(rows), &batch)?;
            }
            StepKind::RollBack => drop(resolve(&batch)?),
        }
        Ok(sequence.saturating_add(rows).saturating_sub(1))
    }

    /// Inserts a batch whose first row is `sequence`; gives the number of its rows. Those of dropped families, and those in
    /// tables, are left out.
    fn insert(&mut self, mut sequence: Sequence, batch: &RawBatch) -> Result<u64> {
        for entry in batch.iter() {
            let entry = entry?;
            if let Some(followed) = self.families.get_mut(&entry.family)
                && self.segment >= followed.log_number
            {
                followed
                    .insert(self.segment, self.core)
                    .insert(sequence, entry.kind, entry.key, entry.value);
            }
            sequence += 1;
        }
        Ok(u64::from(batch.count()))
    }
}
