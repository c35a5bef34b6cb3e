//! The open reader of a file, and what becomes of the file when nobody needs it any more.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::names::FileKind;
use crate::blob::BlobReader;
use crate::sstable::Table;
use crate::sync::{ArcSwapOption, AtomicBool, Mutex, Ordering};

/// A file that no version refers to any more.
#[derive(Debug)]
pub struct Dead {
    /// The SSTable or blob file.
    pub file: FileKind,
    /// Its length.
    pub bytes: u64,
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
    pub(super) fn bury(&self, file: FileKind, bytes: u64, table: Option<Arc<Table>>) {
        self.dead.lock().push(Dead { file, bytes, table });
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

/// A reader that can be kept open.
pub trait OpenFile {
    /// The table, if it is one: the block cache may hold blocks of it.
    fn into_table(self: Arc<Self>) -> Option<Arc<Table>>;
}

impl OpenFile for Table {
    fn into_table(self: Arc<Self>) -> Option<Arc<Table>> {
        Some(self)
    }
}

impl OpenFile for BlobReader {
    fn into_table(self: Arc<Self>) -> Option<Arc<Table>> {
        None
    }
}

/// The place in a file's metadata where its open reader is kept, so that a read finds it without a look-up.
pub struct Slot<T: OpenFile> {
    open: ArcSwapOption<T>,
    used: AtomicBool,
    obsolete: OnceLock<(Arc<Graveyard>, FileKind, u64)>,
}

/// Where an SSTable is kept open.
pub type TableSlot = Slot<Table>;

/// Where a blob file is kept open.
pub type BlobSlot = Slot<BlobReader>;

impl<T: OpenFile> Slot<T> {
    /// The open reader, if there is one.
    #[inline]
    pub fn get(&self) -> Option<Arc<T>> {
        let reader = self.open.load_full();
        if reader.is_some() {
            self.note_use();
        }
        reader
    }

    /// The open reader, if there is one, without counting as a use of it.
    pub fn peek(&self) -> Option<Arc<T>> {
        self.open.load_full()
    }

    /// Runs `body` on the open reader without counting a reference; gives `body` back if there is none.
    #[inline]
    pub fn with<R, B: FnOnce(&T) -> R>(&self, body: B) -> Result<R, B> {
        let reader = self.open.load();
        let Some(reader) = reader.as_ref() else {
            return Err(body);
        };
        self.note_use();
        Ok(body(reader))
    }

    #[inline]
    fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps an opened reader.
    pub fn set(&self, reader: Arc<T>) {
        self.used.store(true, Ordering::Relaxed);
        self.open.store(Some(reader));
    }

    /// Closes the file once its last reader is done; gives what was open.
    pub fn take(&self) -> Option<Arc<T>> {
        self.open.swap(None)
    }

    /// Whether it was used since this was last asked.
    pub fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// From now on `file`, of this length, is not part of the database; when the last version that holds it is gone, it goes to
    /// `graveyard`. Call only after the manifest edit that removed it is durable.
    pub fn mark_obsolete(&self, graveyard: &Arc<Graveyard>, file: FileKind, bytes: u64) {
        let _ = self.obsolete.set((Arc::clone(graveyard), file, bytes));
    }
}

impl<T: OpenFile> Default for Slot<T> {
    fn default() -> Self {
        Self {
            open: ArcSwapOption::default(),
            used: AtomicBool::default(),
            obsolete: OnceLock::new(),
        }
    }
}

impl<T: OpenFile> Drop for Slot<T> {
    fn drop(&mut self) {
        if let Some((graveyard, file, bytes)) = self.obsolete.get() {
            graveyard.bury(*file, *bytes, self.open.swap(None).and_then(T::into_table));
        }
    }
}

impl<T: OpenFile> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.open.load().is_some() {
            "Slot(open)"
        } else {
            "Slot"
        })
    }
}
