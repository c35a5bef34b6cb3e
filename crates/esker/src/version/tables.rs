//! READ 2: the table cache. Opens SSTables on first use and closes those unused longest when there are too many;
//! opens blob files on first use, and reads values out of them through the block cache.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use esker_env::{Fs, IoMode};

use super::{BlobFile, BlobSet, FileKind, FileMeta};
use crate::blob::{BlobPointer, BlobReader};
use crate::cache::{BlockCache, BlockKey, CachedBlock, SharedBytes};
use crate::error::{Error, Result};
use crate::key::KeyOrder;
use crate::metrics::Metrics;
use crate::sstable::{Table, TableOpenOptions, TableReadOptions};
use crate::sync::Mutex;

/// Tables that can be opened at the same time, if their numbers fall apart.
const OPENING: usize = 16;

/// Opens tables and bounds how many are open.
#[derive(Debug)]
pub struct Tables {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    metrics: Arc<Metrics>,
    mode: IoMode,
    database_id: u64,
    open_max: usize,
    /// Who opens a table holds one of these, by the table's number, so that many readers that miss it at once don't all
    /// read its index and filter.
    opening: [Mutex<()>; OPENING],
    /// Open tables in the order in which they were opened: a clock's hand takes from the front.
    open: Mutex<VecDeque<Weak<FileMeta>>>,
    /// What they took when they were last counted, and what was opened since.
    noted_bytes: AtomicU64,
}

impl Tables {
    /// A cache over the SSTables in `dir`.
    pub fn new(
        fs: Arc<dyn Fs>,
        dir: PathBuf,
        cache: Arc<BlockCache>,
        metrics: Arc<Metrics>,
        mode: IoMode,
        database_id: u64,
        open_max: usize,
    ) -> Self {
        Self {
            fs,
            dir,
            cache,
            metrics,
            mode,
            database_id,
            open_max,
            opening: std::array::from_fn(|_| Mutex::new(())),
            open: Mutex::new(VecDeque::new()),
            noted_bytes: AtomicU64::new(0),
        }
    }

    /// The folder of the SSTables.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file system of the SSTables.
    pub fn fs(&self) -> &dyn Fs {
        &*self.fs
    }

    /// The block cache.
    pub fn block_cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// The table of a file, opened if need be.
    pub fn get(&self, file: &Arc<FileMeta>, order: &KeyOrder) -> Result<Arc<Table>> {
        match file.table.get() {
            Some(table) => Ok(table),
            None => self.open(file, order),
        }
    }

    /// Runs `body` on the table of a file; the usual case counts no reference.
    #[inline]
    pub fn with<R>(
        &self,
        file: &Arc<FileMeta>,
        order: &KeyOrder,
        body: impl FnOnce(&Table) -> Result<R>,
    ) -> Result<R> {
        let mut body = Some(body);
        let mut run = |table: &Table| match body.take() {
            Some(body) => body(table),
            None => Err(Error::bug("a table was visited twice")),
        };
        match file.table.with(&mut run) {
            Some(result) => result,
            None => run(&*self.open(file, order)?),
        }
    }

    /// The table of a file for a background job: the users' if they read in the same mode, else one of its own.
    pub fn for_background(&self, file: &Arc<FileMeta>, order: &KeyOrder, mode: IoMode) -> Result<Arc<Table>> {
        if mode == self.mode {
            self.get(file, order)
        } else {
            self.open_apart(file, order, mode)
        }
    }

    /// The open blob file. It stays open for as long as a version holds it.
    #[inline]
    pub fn blob<'a>(&self, file: &'a BlobFile) -> Result<&'a Arc<BlobReader>> {
        file.reader(|| {
            let path = FileKind::Blob(file.number).path(&self.dir);
            let handle = self
                .fs
                .open(&path, self.mode)
                .map_err(|error| Error::io("can't open a blob file", error).in_file(&path))?;
            BlobReader::open(handle, &path, self.database_id, file.number)
        })
    }

    /// The value behind `pointer`, as a row holds it: from the block cache, or by one storage read.
    pub fn value(&self, blobs: &BlobSet, pointer: &[u8], read: TableReadOptions) -> Result<SharedBytes> {
        let pointer = BlobPointer::decode(pointer)?;
        let key = value_key(&pointer);
        if let Some(cached) = self.cache.get(key) {
            self.metrics.cache_hits.add(1);
            return Ok(cached.bytes);
        }
        self.metrics.cache_misses.add(1);
        let reader = self.blob(blobs.find(pointer.file)?)?;
        let value = reader.read(&pointer, read.verify_checksums)?;
        if read.fill_cache {
            self.keep_value(&pointer, value.clone());
        }
        Ok(value)
    }

    /// The value behind a pointer if it is in the block cache.
    #[inline]
    pub fn cached_value(&self, pointer: &BlobPointer) -> Option<SharedBytes> {
        let cached = self.cache.get(value_key(pointer))?;
        self.metrics.cache_hits.add(1);
        Some(cached.bytes)
    }

    /// Keeps a value in the block cache.
    pub fn keep_value(&self, pointer: &BlobPointer, bytes: SharedBytes) {
        let words = [0; 4];
        self.cache
            .insert(value_key(pointer), CachedBlock { bytes, words });
    }

    fn open_apart(&self, file: &FileMeta, order: &KeyOrder, mode: IoMode) -> Result<Arc<Table>> {
        let path = FileKind::Table(file.number).path(&self.dir);
        let handle = self
            .fs
            .open(&path, mode)
            .map_err(|error| Error::io("can't open an SSTable", error).in_file(&path))?;
        let cache = Arc::clone(&self.cache);
        let options = TableOpenOptions {
            database_id: Some(self.database_id),
            ..TableOpenOptions::default()
        };
        let metrics = Arc::clone(&self.metrics);
        Ok(Arc::new(Table::open(
            handle,
            &path,
            file.number,
            order.clone(),
            cache,
            metrics,
            &options,
        )?))
    }

    fn open(&self, file: &Arc<FileMeta>, order: &KeyOrder) -> Result<Arc<Table>> {
        let _alone = self.opening[file.number as usize % OPENING].lock();
        // Another thread may have been faster.
        if let Some(table) = file.table.get() {
            return Ok(table);
        }
        let table = self.open_apart(file, order, self.mode)?;
        let mut open = self.open.lock();
        file.table.set(Arc::clone(&table));
        // Until memory is shared out anew, the block cache makes room for it.
        let bytes = table.memory_bytes() as u64;
        self.noted_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.cache.shrink_by(bytes);
        open.push_back(Arc::downgrade(file));
        self.evict(&mut open);
        Ok(table)
    }

    /// Closes tables that were not used since the hand passed them last, until there are few enough.
    fn evict(&self, open: &mut VecDeque<Weak<FileMeta>>) {
        let mut second_chances = open.len();
        while open.len() > self.open_max {
            let Some(weak) = open.pop_front() else { return };
            let Some(file) = weak.upgrade() else { continue };
            if second_chances > 0 && file.table.take_used() {
                second_chances -= 1;
                open.push_back(weak);
            } else {
                file.table.take();
            }
        }
    }

    /// Bytes of indexes and filters that open tables pin; counted anew, in O(open tables).
    pub fn memory_bytes(&self) -> u64 {
        let mut open = self.open.lock();
        let mut bytes = 0;
        open.retain(|weak| match weak.upgrade() {
            Some(file) => {
                bytes += file.table.with(|table| table.memory_bytes() as u64).unwrap_or(0);
                true
            }
            None => false,
        });
        self.noted_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// The same as of the last count, with what was opened since.
    pub fn memory_bytes_noted(&self) -> u64 {
        self.noted_bytes.load(Ordering::Relaxed)
    }

    /// How many tables are open.
    pub fn open_count(&self) -> usize {
        self.open.lock().len()
    }
}

/// Files of all kinds draw their numbers from one counter, so a value's key is no block's.
#[inline]
fn value_key(pointer: &BlobPointer) -> BlockKey {
    BlockKey {
        table: pointer.file,
        offset: pointer.offset,
    }
}
