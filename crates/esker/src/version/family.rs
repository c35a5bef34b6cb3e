//! A live column family: its settings and the one immutable view that readers pin.
//!
//! Invariants:
//! 1. A [`View`] never changes; a change is a new view, stored by whoever holds `change`. Readers take no lock.
//! 2. Views only move data forward: a memtable leaves the view in the same step in which the version that holds its
//!    rows enters it. A pinned view therefore always holds every row published before it was pinned, except for those
//!    that a job dropped because a later one hides them from every reader.
//! 3. Only the leader of the commit pipeline replaces the active memtable, between two groups: so what a sealed memtable
//!    holds is published.
//! 4. A reader pins its view first and learns what it sees after ([`pin`](Family::pin)). So it sees the later row of 2,
//!    which was published before its view was made; with a number from before it would see neither. Rows that were
//!    published after the view was pinned may be missing from it, if the memtable was sealed meanwhile: it then shows the
//!    family as it was at the sealing, a moment within the read.
//!
//! `version/loom.rs` explores all of this.

use std::sync::Arc;
use std::time::Duration;

use super::hidden::HiddenRows;
use super::pressure::{Hold, Pressure};
use super::slot::Graveyard;
use super::space_rate::{Garbage, SpaceRate};
use super::{FileMeta, Version, VersionEdit};
use crate::error::Result;
use crate::key::{KeyOrder, Sequence};
use crate::memtable::Memtable;
use crate::options::ColumnFamilyOptions;
use crate::sync::{ArcSwap, AtomicBool, AtomicU64, Guard, Mutex, Ordering};

/// A memtable and the first WAL segment that can hold its rows.
#[derive(Debug)]
pub struct Buffer {
    /// The rows.
    pub table: Arc<Memtable>,
    wal_number: AtomicU64,
}

impl Buffer {
    /// An empty memtable that becomes active while this segment is written to.
    pub fn new(table: Arc<Memtable>, wal_number: u64) -> Self {
        Self {
            table,
            wal_number: AtomicU64::new(wal_number),
        }
    }

    /// The oldest segment that can hold rows of it.
    pub fn wal_number(&self) -> u64 {
        self.wal_number.load(Ordering::Acquire)
    }

    /// Before rows of this segment are inserted: an empty memtable needs none of the segments before, however long
    /// it has been empty. For the leader only.
    #[inline]
    pub fn note_wal(&self, wal_number: u64) {
        if self.table.is_empty() {
            self.wal_number.store(wal_number, Ordering::Release);
        }
    }
}

/// What a reader sees of a column family.
#[derive(Clone, Debug)]
pub struct View {
    /// Takes writes.
    pub active: Arc<Buffer>,
    /// Waiting for their flush, newest first.
    pub sealed: Vec<Arc<Buffer>>,
    /// The SSTables.
    pub version: Arc<Version>,
}

impl View {
    /// The active memtable is sealed and `active` takes its place.
    fn with_active(&self, active: Arc<Buffer>) -> Self {
        let mut sealed = Vec::with_capacity(self.sealed.len() + 1);
        sealed.push(Arc::clone(&self.active));
        sealed.extend(self.sealed.iter().cloned());
        Self {
            active,
            sealed,
            version: Arc::clone(&self.version),
        }
    }

    /// These memtables, the newest first, over this version; `empty` is active where there is none.
    pub fn of(buffers: &[Arc<Buffer>], empty: &Arc<Buffer>, version: &Arc<Version>) -> Self {
        let (active, sealed) = match buffers.split_first() {
            Some((active, sealed)) => (active, sealed.to_vec()),
            None => (empty, Vec::new()),
        };
        Self {
            active: Arc::clone(active),
            sealed,
            version: Arc::clone(version),
        }
    }

    /// `version` takes the place of the tables, and of these memtables.
    fn with_version(&self, version: Arc<Version>, flushed: &[Arc<Buffer>]) -> Self {
        let kept = |buffer: &&Arc<Buffer>| !flushed.iter().any(|gone| Arc::ptr_eq(gone, buffer));
        Self {
            active: Arc::clone(&self.active),
            sealed: self.sealed.iter().filter(kept).cloned().collect(),
            version,
        }
    }
}

/// A live column family.
#[derive(Debug)]
pub struct Family {
    /// Its number in batches and in the manifest; never used again after a drop.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its key order, apart from the other options because it can't change.
    pub order: KeyOrder,
    options: ArcSwap<ColumnFamilyOptions>,
    view: ArcSwap<View>,
    change: Mutex<()>,
    dropped: AtomicBool,
    /// Pressure on its writers; kept by background work.
    pressure: Pressure,
    /// And what the want of space permits them.
    space_rate: SpaceRate,
    /// What its iterators step over for nothing.
    pub hidden: HiddenRows,
    /// What a read sees that sees less than this is nothing: the family was imported later.
    born: Sequence,
}

impl Family {
    /// A family with these tables and an empty memtable.
    pub fn new(
        id: u32,
        name: String,
        options: ColumnFamilyOptions,
        version: Arc<Version>,
        active: Arc<Buffer>,
    ) -> Self {
        Self {
            id,
            name,
            order: options.key_order.clone(),
            options: ArcSwap::from_pointee(options),
            view: ArcSwap::from_pointee(View {
                active,
                sealed: Vec::new(),
                version,
            }),
            change: Mutex::new(()),
            dropped: AtomicBool::new(false),
            pressure: Pressure::default(),
            space_rate: SpaceRate::default(),
            hidden: HiddenRows::default(),
            born: 0,
        }
    }

    /// The same with rows that came all at one moment, whatever their numbers: readers of before `born` see none.
    #[must_use]
    pub fn born_at(self, born: Sequence) -> Self {
        Self { born, ..self }
    }

    /// Whether what is read as of this number is of a time before the family.
    #[inline]
    pub fn is_unborn(&self, sequence: Sequence) -> bool {
        sequence < self.born
    }

    /// The view of now, pinned cheaply for the length of a call.
    #[inline]
    pub fn view(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// The view of now, to keep.
    pub fn view_owned(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The view of now, and what `seen` then says that the read sees: in this order, see invariant 4.
    #[inline]
    pub fn pin<R>(&self, seen: impl FnOnce() -> R) -> (Guard<Arc<View>>, R) {
        let view = self.view();
        (view, seen())
    }

    /// [`pin`](Self::pin), to keep.
    pub fn pin_owned<R>(&self, seen: impl FnOnce() -> R) -> (Arc<View>, R) {
        let view = self.view_owned();
        (view, seen())
    }

    /// Seals the active memtable; `next` takes its place. For the leader, between two groups.
    pub fn replace_active(&self, next: Arc<Buffer>) {
        let _alone = self.change.lock();
        let view = self.view.load();
        view.active.table.seal();
        self.view.store(Arc::new(view.with_active(next)));
    }

    /// Takes `view` in place of the one of now: for a database that follows what another process does. Its readers pin all
    /// families together, elsewhere.
    pub fn set_view(&self, view: Arc<View>) {
        let _alone = self.change.lock();
        self.view.store(view);
    }

    /// Puts the result of a job in force, in one step: the tables of `edit` come and go, the memtables that were
    /// `flushed` into them leave. Files that left for good are removed, by way of `graveyard`, when nobody reads them any
    /// more. Call only once the edit is durable; nothing happens if it does not fit.
    pub fn install(
        &self,
        edit: &VersionEdit,
        flushed: &[Arc<Buffer>],
        graveyard: &Arc<Graveyard>,
    ) -> Result<()> {
        let (left, left_blobs): (Vec<Arc<FileMeta>>, _) = {
            let _alone = self.change.lock();
            let view = self.view.load();
            let version = Arc::new(view.version.apply(edit)?);
            let left = edit.left_for_good(&view.version).cloned().collect();
            let left_blobs = view.version.blobs().gone(version.blobs());
            self.view.store(Arc::new(view.with_version(version, flushed)));
            (left, left_blobs)
        };
        for file in left {
            file.mark_obsolete(graveyard);
        }
        for blob in left_blobs {
            blob.mark_obsolete(graveyard);
        }
        Ok(())
    }

    /// Lets sealed memtables go with all they hold: the family was dropped.
    pub fn forget_sealed(&self, sealed: &[Arc<Buffer>]) {
        let _alone = self.change.lock();
        let view = self.view.load();
        let version = Arc::clone(&view.version);
        self.view.store(Arc::new(view.with_version(version, sealed)));
    }

    /// The settings of now.
    #[inline]
    pub fn options(&self) -> Guard<Arc<ColumnFamilyOptions>> {
        self.options.load()
    }

    /// Replaces the settings.
    pub fn set_options(&self, options: ColumnFamilyOptions) {
        self.options.store(Arc::new(options));
    }

    /// Whether it was dropped: no more writes, no more background work; readers that hold it go on.
    pub fn dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Marks it dropped.
    pub fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// How hard its debt presses on writers, 0 to 1.
    pub fn pressure(&self) -> f64 {
        self.pressure.get().max(self.space_rate.pressure())
    }

    /// What writers are held to.
    #[inline]
    pub fn hold(&self) -> Hold {
        Hold {
            pressure: self.pressure.get(),
            bytes_per_second: self.space_rate.permitted(),
        }
    }

    /// Sets the pressure from `now` on.
    pub fn set_pressure(&self, pressure: f64, now: Duration) {
        self.pressure.set(pressure, now);
    }

    /// Notes how much garbage its blob files have at `now`, when `written_bytes` had been written to the database.
    pub fn look_at_garbage(&self, garbage: Garbage, written_bytes: u64, now: Duration) {
        self.space_rate.look(garbage, written_bytes, now);
    }

    /// There is no pressure.
    pub fn clear_pressure(&self) {
        self.pressure.clear();
        self.space_rate.clear();
    }
}
