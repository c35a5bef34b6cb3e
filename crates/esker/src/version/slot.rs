//! The open table of a file, and what becomes of the file when nobody needs it any more.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::names::FileKind;
use crate::sstable::Table;
use crate::sync::{ArcSwapOption, AtomicBool, Mutex, Ordering};

/// A file that no version refers to any more.
#[derive(Debug)]
pub struct Dead {
    /// The SSTable or blob file.
    pub file: FileKind,
    /// The table, if it was open. Its blocks are still in the block cache.
    pub table: Option<Arc<Table>>,
}

/// Files that no version refers to any more; whoever drains it removes them.
#[derive(Default)]
pub struct Graveyard {
    dead: Mutex<Vec<Dead>>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Graveyard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Graveyard").field(&self.dead.lock()).finish()
    }
}

impl Graveyard {
    /// Takes them out.
    pub fn drain(&self) -> Vec<Dead> {
        std::mem::take(&mut *self.dead.lock())
    }

    /// Adds a file; only one that no version will ever refer to.
    pub(super) fn bury(&self, file: FileKind, table: Option<Arc<Table>>) {
        self.dead.lock().push(Dead { file, table });
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Has `wake` called after each burial: the last holder may be a reader, which removes no files itself. It must
    /// take no lock under which views are replaced.
    pub fn on_burial(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    /// Whether there is something to remove.
    pub fn is_empty(&self) -> bool {
        self.dead.lock().is_empty()
    }
}

/// The place in a file's metadata where its open table is kept, so that a read finds it without a look-up.
#[derive(Default)]
pub struct TableSlot {
    open: ArcSwapOption<Table>,
    used: AtomicBool,
    obsolete: OnceLock<(Arc<Graveyard>, u64)>,
}

impl TableSlot {
    /// The open table, if there is one.
    #[inline]
    pub fn get(&self) -> Option<Arc<Table>> {
        let table = self.open.load_full();
        if table.is_some() && !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        table
    }

    /// Runs `body` on the open table without counting a reference, if there is one.
    #[inline]
    pub fn with<R>(&self, body: impl FnOnce(&Table) -> R) -> Option<R> {
        let table = self.open.load();
        let table = table.as_ref()?;
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(body(table))
    }

    /// Keeps an opened table.
    pub fn set(&self, table: Arc<Table>) {
        self.used.store(true, Ordering::Relaxed);
        self.open.store(Some(table));
    }

    /// Closes the table once its last reader is done; gives it.
    pub fn take(&self) -> Option<Arc<Table>> {
        self.open.swap(None)
    }

    /// Whether it was used since this was last asked.
    pub fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// From now on the file `number` is not part of the database; when the last version that holds it is gone, its
    /// number goes to `graveyard`. Call only after the manifest edit that removed it is durable.
    pub fn mark_obsolete(&self, graveyard: &Arc<Graveyard>, number: u64) {
        let _ = self.obsolete.set((Arc::clone(graveyard), number));
    }
}

impl Drop for TableSlot {
    fn drop(&mut self) {
        if let Some((graveyard, number)) = self.obsolete.get() {
            graveyard.bury(FileKind::Table(*number), self.open.swap(None));
        }
    }
}

impl fmt::Debug for TableSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.open.load().is_some() {
            "TableSlot(open)"
        } else {
            "TableSlot"
        })
    }
}
