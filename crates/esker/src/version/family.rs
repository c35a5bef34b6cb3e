//! A live column family: its settings and the one immutable view that readers pin.
//!
//! Invariants:
//! 1. A [`View`] never changes; a change is a new view, stored by whoever holds `change`. Readers take no lock.
//! 2. Views only move data forward: a memtable leaves the view in the same step in which the version that holds its
//!    rows enters it. A pinned view therefore always holds every row written before it was pinned.
//! 3. Only the leader of the commit pipeline replaces the active memtable, between two groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::Version;
use crate::error::Result;
use crate::key::KeyOrder;
use crate::memtable::Memtable;
use crate::options::ColumnFamilyOptions;

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
    /// Pressure on its writers, as the bits of an `f64`; kept by background work.
    pressure: AtomicU64,
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
            pressure: AtomicU64::new(0),
        }
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

    /// Replaces the view by what `change` makes of it; nothing happens if it fails.
    pub fn change_view(&self, change: impl FnOnce(&View) -> Result<View>) -> Result<()> {
        let _alone = self.change.lock();
        let next = change(&self.view.load())?;
        self.view.store(Arc::new(next));
        Ok(())
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
        f64::from_bits(self.pressure.load(Ordering::Relaxed))
    }

    /// Sets the pressure.
    pub fn set_pressure(&self, pressure: f64) {
        self.pressure.store(pressure.to_bits(), Ordering::Relaxed);
    }
}
