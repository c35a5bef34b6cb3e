//! The state that a database's threads share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use esker_env::{Env, FileLock};

use super::edits::Manifest;
use super::health::Health;
use super::moment::Moments;
use super::prepared::PreparedSet;
use super::running::Running;
use super::write::Token;
use crate::background::{Events, FlushProgress, Scheduler};
use crate::batch::DEFAULT_COLUMN_FAMILY;
use crate::commit::{Admission, Pipeline};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Sequence;
use crate::memtable::MemtableArenaPool;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::rewrite::Throttle;
use crate::snapshot::{Published, SnapshotList};
use crate::version::{Family, Graveyard, Tables};
use crate::wal::{WalSegments, WalWriter};

/// All column families, looked up by the leader and by jobs without a lock.
#[derive(Clone, Debug)]
pub(super) struct Families {
    pub default: Arc<Family>,
    /// Every live family by id, the default one included.
    pub by_id: BTreeMap<u32, Arc<Family>>,
}

impl Families {
    pub fn get(&self, id: u32) -> Option<&Arc<Family>> {
        if id == DEFAULT_COLUMN_FAMILY {
            Some(&self.default)
        } else {
            self.by_id.get(&id)
        }
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Family>> {
        self.by_id.values().find(|family| family.name == name)
    }
}

/// What recovery found in the WAL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Batches replayed.
    pub batches: u64,
    /// Damaged stretches that were skipped or at which replay stopped; a torn tail is none.
    pub damages: u64,
    /// Bytes of WAL that could not be used, torn tails included.
    pub lost_bytes: u64,
    /// WAL files with damage, and those behind them that are not part of the database any more, kept aside under these
    /// names.
    pub kept_aside: Vec<PathBuf>,
    /// Files that earlier recoveries had kept aside, and that were removed because all together passed `wal_bytes_max`.
    pub given_up: Vec<PathBuf>,
}

pub(super) struct Core {
    pub env: Env,
    pub dir: PathBuf,
    pub database_id: u64,
    pub options: Options,
    /// Durability of writes that name none: `Durability as u8`.
    pub durability: std::sync::atomic::AtomicU8,
    pub file_lock: Mutex<Option<Box<dyn FileLock>>>,
    pub families: ArcSwap<Families>,
    pub pipeline: Pipeline<Core>,
    pub published: Published,
    /// What readers see, where the database follows another process (`moment.rs`).
    pub moments: Option<Moments>,
    pub next_file_number: AtomicU64,
    /// Edits in the order in which they become durable. Held across manifest writes, never by readers or writers.
    pub manifest: Mutex<Manifest>,
    /// Which WAL segments there are.
    pub wal: WalSegments,
    /// Held by a rotation, and by a thread that decides which segments to release while it looks at the memtables, so
    /// that none comes between.
    pub wal_rotation: Mutex<()>,
    /// Complete segments that were never synced; a `Sync` write syncs them first.
    pub wal_unsynced: Mutex<Vec<WalWriter>>,
    /// Changed as the log says: by the leader (`prepared.rs`).
    pub prepared: Mutex<PreparedSet>,
    pub tables: Arc<Tables>,
    pub graveyard: Arc<Graveyard>,
    /// Held while files are removed; nothing is locked under it but leaves.
    pub removing: Mutex<()>,
    pub arena_pool: Arc<MemtableArenaPool>,
    pub snapshots: Arc<SnapshotList>,
    pub metrics: Arc<Metrics>,
    /// How many point reads there were when the last flush began.
    pub gets_at_flush: AtomicU64,
    /// What listeners are told.
    pub events: Arc<Events>,
    /// How writers are let in: `WriteStall as u8`; changed under the token.
    pub stall: std::sync::atomic::AtomicU8,
    pub admission: Admission,
    pub throttle: Throttle,
    pub health: Health,
    pub running: Mutex<Running>,
    /// Set once, right after the core was made.
    pub scheduler: std::sync::OnceLock<Scheduler>,
    pub closed: AtomicBool,
    /// Whether something was written without the WAL since the last flush of everything.
    pub unlogged: AtomicBool,
    pub recovery: RecoveryReport,
    pub flushes: FlushProgress,
}

impl Core {
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, "the database was closed"));
        }
        Ok(())
    }

    #[inline]
    pub fn visible(&self) -> Sequence {
        self.published.get()
    }

    pub fn new_file_number(&self) -> u64 {
        self.new_file_numbers(1)
    }

    /// The first of `count` numbers that follow each other.
    pub fn new_file_numbers(&self, count: usize) -> u64 {
        self.next_file_number.fetch_add(count as u64, Ordering::Relaxed)
    }

    pub fn scheduler(&self) -> Option<&Scheduler> {
        self.scheduler.get()
    }

    pub fn wake(&self) {
        if let Some(scheduler) = self.scheduler.get() {
            scheduler.wake();
        }
    }

    pub fn family(&self, id: u32) -> Result<Arc<Family>> {
        let families = self.families.load();
        families
            .get(id)
            .cloned()
            .ok_or_else(|| Error::invalid(format!("unknown column family {id}")))
    }

    pub fn with_token<R>(&self, section: impl FnOnce(&mut Token) -> R) -> R {
        self.pipeline.exclusive(section)
    }

    /// Memory of all memtables at which writers wait: a quarter more than the setting, from which on the largest is sealed.
    pub fn memtables_bytes_limit(&self) -> u64 {
        let setting = self.options.memtables_bytes_resolved();
        setting.saturating_add(setting / 4)
    }

    /// Memory that memtables hold, in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        let families = self.families.load();
        let bytes = |buffer: &crate::version::Buffer| buffer.table.approximate_bytes() as u64;
        families
            .by_id
            .values()
            .map(|family| {
                let view = family.view();
                bytes(&view.active) + view.sealed.iter().map(|sealed| bytes(sealed)).sum::<u64>()
            })
            .sum()
    }

    /// Gives the block cache what the other users of the memory budget leave it. O(families + open tables).
    pub fn share_memory(&self) {
        self.share_memory_beside(self.tables.memory_bytes());
    }

    /// The same where the tables are those of the last time. O(families).
    pub fn share_memory_with_memtables(&self) {
        self.share_memory_beside(self.tables.memory_bytes_noted());
    }

    fn share_memory_beside(&self, table_bytes: u64) {
        let budget = self.options.memory_budget_bytes;
        // What memtables hold, and what they may come to hold. That is set aside from the start, not when writes come:
        // blocks that a full cache gives up lie scattered, and the allocator gets little memory for memtables out of them.
        let (mut held, mut reserved) = (self.arena_pool.free_bytes() as u64, 0_u64);
        for family in self.families.load().by_id.values() {
            let (view, options) = (family.view(), family.options());
            let sealed = view.sealed.iter().map(|sealed| &sealed.table);
            held += sealed.map(|table| table.approximate_bytes() as u64).sum::<u64>();
            held += view.active.table.approximate_bytes() as u64;
            let full_bytes = options
                .memtable_bytes
                .saturating_mul(options.memtables_max as u64);
            // What their chunks leave free comes on top.
            reserved = reserved.saturating_add(full_bytes.saturating_add(full_bytes / 4));
        }
        let reserved = if self.options.read_only {
            0
        } else {
            reserved.min(self.memtables_bytes_limit())
        };
        // Memtables grow into the free chunks of the pool first.
        let prepared_bytes = self.prepared.lock().bytes();
        let taken = held.max(reserved)
            + table_bytes
            + self.wal_memory_bytes()
            + prepared_bytes
            + self.tables.ahead_bytes();
        let capacity = budget.saturating_sub(taken).max(budget / 16);
        self.tables.block_cache().set_capacity(capacity);
    }

    /// Memory that is set aside for WAL segments.
    fn wal_memory_bytes(&self) -> u64 {
        if self.options.read_only {
            0
        } else {
            self.wal.memory_bytes_max()
        }
    }

    /// Removes the SSTables and blob files that no version refers to any more, and the blocks of those that are open from
    /// the block cache.
    pub fn bury_dead_files(&self) {
        // Who comes back from here finds them gone, also those that another thread has taken out.
        let _removing = self.removing.lock();
        for dead in self.graveyard.drain() {
            if let Some(table) = dead.table {
                table.leave_cache();
            }
            let path = dead.file.path(&self.dir);
            match self.env.fs.remove(&path) {
                Ok(()) => self.note_removed(dead.file, dead.bytes),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "can't remove an obsolete file");
                }
            }
        }
    }
}
