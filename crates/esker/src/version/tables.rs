//! READ 2: the table cache. Opens SSTables and blob files on first use, and closes those unused longest when there are too
//! many.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use esker_env::{Fs, IoMode};

use super::{BlobFile, FileKind, FileMeta};
use crate::blob::BlobReader;
use crate::cache::BlockCache;
use crate::error::{Error, ErrorKind, Result};
use crate::key::KeyOrder;
use crate::metrics::Metrics;
use crate::sstable::{Table, TableOpenOptions};
use crate::sync::Mutex;

/// Files that can be opened at the same time, if their numbers fall apart.
const OPENING: usize = 16;

/// Scans get this part of the block cache's memory for what they read ahead.
const AHEAD_PART: u64 = 8;

/// A file that was opened.
#[derive(Debug)]
enum Opened {
    Table(Weak<FileMeta>),
    Blob(Weak<BlobFile>),
}

impl Opened {
    fn take_used(&self) -> bool {
        match self {
            Self::Table(file) => file.upgrade().is_some_and(|file| file.table.take_used()),
            Self::Blob(file) => file.upgrade().is_some_and(|file| file.reader.take_used()),
        }
    }

    fn close(&self) {
        match self {
            Self::Table(file) => drop(file.upgrade().and_then(|file| file.table.take())),
            Self::Blob(file) => drop(file.upgrade().and_then(|file| file.reader.take())),
        }
    }
}

/// Opens tables and blob files, and bounds how many are open.
#[derive(Debug)]
pub struct Tables {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    pub(super) cache: Arc<BlockCache>,
    pub(super) metrics: Arc<Metrics>,
    mode: IoMode,
    database_id: u64,
    open_max: usize,
    /// Who opens a file holds one of these, by the file's number, so that many readers that miss it at once don't all
    /// read its index and filter.
    opening: [Mutex<()>; OPENING],
    /// Open files in the order in which they were opened: a clock's hand takes from the front.
    open: Mutex<VecDeque<Opened>>,
    /// What tables took when they were last counted, and what was opened since.
    noted_bytes: AtomicU64,
    /// What scans have for values that they read ahead.
    ahead_bytes: AtomicU64,
    /// Whether another process removes files while they are read here.
    followed: bool,
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
            ahead_bytes: AtomicU64::new(0),
            followed: false,
        }
    }

    /// The same for a follower: a file that is gone is no damage, but says to catch up.
    #[must_use]
    pub fn followed(mut self) -> Self {
        self.followed = true;
        self
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

    /// Sets memory aside for what a scan reads ahead, at the cost of the block cache; false if other scans have their part
    /// of it already.
    pub fn reserve_ahead(&self, bytes: u64) -> bool {
        let bytes_max = self.cache.capacity() / AHEAD_PART;
        let add = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= bytes_max);
        let reserved = self
            .ahead_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_ok();
        if reserved {
            self.cache.shrink_by(bytes);
        }
        reserved
    }

    /// Gives back what was set aside.
    pub fn release_ahead(&self, bytes: u64) {
        if bytes > 0 {
            self.ahead_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.cache.grow_by(bytes);
        }
    }

    /// What is set aside for scans, in bytes.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes.load(Ordering::Relaxed)
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
        match file.table.with(body) {
            Ok(result) => result,
            Err(body) => body(&*self.open(file, order)?),
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

    /// The open blob file, opened if need be.
    pub fn blob(&self, file: &Arc<BlobFile>) -> Result<Arc<BlobReader>> {
        match file.reader.get() {
            Some(reader) => Ok(reader),
            None => self.open_blob(file),
        }
    }

    /// Runs `body` on an open blob file; the usual case counts no reference.
    #[inline]
    pub fn with_blob<R>(
        &self,
        file: &Arc<BlobFile>,
        body: impl FnOnce(&BlobReader) -> Result<R>,
    ) -> Result<R> {
        match file.reader.with(body) {
            Ok(result) => result,
            Err(body) => body(&*self.open_blob(file)?),
        }
    }

    fn open_apart(&self, file: &FileMeta, order: &KeyOrder, mode: IoMode) -> Result<Arc<Table>> {
        let path = FileKind::Table(file.number).path(&self.dir);
        let handle = self
            .fs
            .open(&path, mode)
            .map_err(|error| self.not_opened("can't open an SSTable", error, &path))?;
        handle.expect_random_reads();
        let cache = Arc::clone(&self.cache);
        let options = TableOpenOptions {
            database_id: Some(file.origin.map_or(self.database_id, |origin| origin.database_id)),
            sequence_shift: file.origin.map_or(0, |origin| origin.sequence_shift),
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
        open.push_back(Opened::Table(Arc::downgrade(file)));
        self.evict(&mut open);
        Ok(table)
    }

    fn open_blob(&self, file: &Arc<BlobFile>) -> Result<Arc<BlobReader>> {
        let _alone = self.opening[file.number as usize % OPENING].lock();
        if let Some(reader) = file.reader.get() {
            return Ok(reader);
        }
        let path = FileKind::Blob(file.number).path(&self.dir);
        let handle = self
            .fs
            .open(&path, self.mode)
            .map_err(|error| self.not_opened("can't open a blob file", error, &path))?;
        handle.expect_random_reads();
        let database_id = file.origin.map_or(self.database_id, |origin| origin.database_id);
        let reader = Arc::new(BlobReader::open(handle, &path, database_id, file.pointed_as())?);
        let mut open = self.open.lock();
        file.reader.set(Arc::clone(&reader));
        open.push_back(Opened::Blob(Arc::downgrade(file)));
        self.evict(&mut open);
        Ok(reader)
    }

    #[cold]
    fn not_opened(&self, what: &str, error: io::Error, path: &Path) -> Error {
        if self.followed && error.kind() == io::ErrorKind::NotFound {
            let gone = "the process that writes has removed a file since the last catch-up: catch up, and read again";
            return Error::new(ErrorKind::Retry, gone).caused_by(error).in_file(path);
        }
        Error::io(what, error).in_file(path)
    }

    /// Closes files that were not used since the hand passed them last, until there are few enough.
    fn evict(&self, open: &mut VecDeque<Opened>) {
        let mut second_chances = open.len();
        while open.len() > self.open_max {
            let Some(file) = open.pop_front() else { return };
            if second_chances > 0 && file.take_used() {
                second_chances -= 1;
                open.push_back(file);
            } else {
                file.close();
            }
        }
    }

    /// Bytes of indexes and filters that open tables pin; counted anew, in O(open files).
    pub fn memory_bytes(&self) -> u64 {
        let mut open = self.open.lock();
        let mut bytes = 0;
        open.retain(|file| match file {
            Opened::Table(file) => file.upgrade().is_some_and(|file| {
                bytes += file.table.peek().map_or(0, |table| table.memory_bytes() as u64);
                true
            }),
            Opened::Blob(file) => file.strong_count() > 0,
        });
        self.noted_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// The same as of the last count, with what was opened since.
    pub fn memory_bytes_noted(&self) -> u64 {
        self.noted_bytes.load(Ordering::Relaxed)
    }

    /// How many tables are open, and how many blob files.
    pub fn open_counts(&self) -> (usize, usize) {
        let open = self.open.lock();
        let tables = open.iter().filter(|file| matches!(file, Opened::Table(_)));
        let tables = tables.count();
        (tables, open.len() - tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::fault::{FaultFs, Op};
    use esker_env::{CreateOptions, Env};

    use crate::blob::{BlobPointer, BlobWriter};
    use crate::key::{ValueKind, internal_key};
    use crate::options::{ColumnFamilyOptions, Compression};
    use crate::sstable::{TableOptions, TableReadOptions, TableWriter};
    use crate::version::BlobSet;

    /// Of the files in a folder `open_max` may be open.
    fn simulated(open_max: usize) -> (Env, Tables, FaultFs) {
        let (env, mem) = Env::simulated(1);
        let faults = FaultFs::new(Arc::new(mem));
        env.fs.create_dir_all(Path::new("db")).unwrap();
        let tables = Tables::new(
            Arc::new(faults.clone()),
            "db".into(),
            Arc::new(BlockCache::new(1)),
            Arc::new(Metrics::default()),
            IoMode::Buffered,
            1,
            open_max,
        );
        (env, tables, faults)
    }

    /// Blob files 1, 2, ... each with one value of its number.
    fn blob_files(count: u64, open_max: usize) -> (Tables, BlobSet, Vec<Vec<u8>>, FaultFs) {
        let (env, tables, faults) = simulated(open_max);
        let (mut blobs, mut pointers) = (BlobSet::default(), Vec::new());
        for number in 1..=count {
            let path = FileKind::Blob(number).path(Path::new("db"));
            let file = env.fs.create(&path, CreateOptions::default()).unwrap();
            let mut writer = BlobWriter::new(file, &path, 1, number, Compression::None).unwrap();
            let mut pointer = Vec::new();
            writer
                .add(&[number as u8; 100])
                .unwrap()
                .encode_into(&mut pointer);
            pointers.push(pointer);
            let written = writer.finish(true).unwrap();
            let file = BlobFile::new(number, written.file_bytes, written.records, written.record_bytes);
            blobs.add(Arc::new(file)).unwrap();
        }
        (tables, blobs, pointers, faults)
    }

    /// Those that are open.
    fn open(blobs: &BlobSet) -> Vec<u64> {
        let open = blobs.iter().filter(|blob| blob.file.reader.peek().is_some());
        open.map(|blob| blob.file.number).collect()
    }

    const READ: TableReadOptions = TableReadOptions {
        verify_checksums: true,
        fill_cache: false,
    };

    /// Each stayed open for as long as a version held it.
    #[test]
    fn blob_files_unused_longest_are_closed_when_there_are_too_many() {
        let (tables, blobs, pointers, faults) = blob_files(20, 4);
        for _ in 0..2 {
            for (pointer, number) in pointers.iter().zip(1..) {
                assert_eq!(*tables.value(&blobs, pointer, READ).unwrap(), [number; 100]);
                assert!(tables.open_counts().1 <= 4);
            }
        }
        assert_eq!(tables.open_counts(), (0, 4));
        assert_eq!(
            faults.calls(Op::Open),
            40,
            "each was closed before it was read again"
        );
        assert_eq!(open(&blobs), [17, 18, 19, 20]);
    }

    #[test]
    fn a_blob_file_that_was_read_since_the_hand_passed_stays_open() {
        let (tables, blobs, pointers, _) = blob_files(6, 4);
        // The fifth has the hand pass all of them; the second is read after.
        for number in [1, 2, 3, 4, 5, 2, 6] {
            tables.value(&blobs, &pointers[number - 1], READ).unwrap();
        }
        assert_eq!(open(&blobs), [2, 4, 5, 6]);
    }

    /// It made each of them look used.
    #[test]
    fn counting_memory_is_no_use_of_a_table() {
        let (env, tables, _) = simulated(4);
        let table = |number: u64| {
            let path = FileKind::Table(number).path(Path::new("db"));
            let file = env.fs.create(&path, CreateOptions::default()).unwrap();
            let options = TableOptions {
                database_id: 1,
                file_number: number,
                ..TableOptions::new(&ColumnFamilyOptions::default(), 0)
            };
            let mut writer = TableWriter::new(file, &path, options);
            writer
                .add(&internal_key(b"key", number, ValueKind::Put), b"value")
                .unwrap();
            Arc::new(FileMeta::from_summary(number, writer.finish(true).unwrap()))
        };
        let files: Vec<_> = (1..=6).map(table).collect();
        let read = |number: usize| tables.get(&files[number - 1], &KeyOrder::Bytewise).unwrap();
        for number in 1..=5 {
            read(number);
        }
        assert!(tables.memory_bytes() > 0);
        read(2);
        read(6);
        let open = files.iter().filter(|file| file.table.peek().is_some());
        let open: Vec<u64> = open.map(|file| file.number).collect();
        assert_eq!(open, [2, 4, 5, 6]);
        assert_eq!(tables.open_counts(), (4, 0));
    }

    #[test]
    fn a_reader_in_use_outlives_its_closing() {
        let (tables, blobs, pointers, _) = blob_files(3, 1);
        let first = tables.blob(blobs.find(1).unwrap()).unwrap();
        for pointer in &pointers {
            tables.value(&blobs, pointer, READ).unwrap();
        }
        assert!(blobs.find(1).unwrap().reader.peek().is_none());
        let pointer = BlobPointer::decode(&pointers[0]).unwrap();
        assert_eq!(*first.read(&pointer, true).unwrap(), [1; 100]);
    }

    #[test]
    fn files_that_are_gone_are_not_counted_as_open() {
        let (tables, mut blobs, pointers, _) = blob_files(8, 4);
        for pointer in &pointers[..4] {
            tables.value(&blobs, pointer, READ).unwrap();
        }
        blobs.prune();
        assert!(blobs.is_empty(), "nothing refers to them");
        assert_eq!(tables.memory_bytes(), 0);
        assert_eq!(tables.open_counts(), (0, 0));
    }
}
