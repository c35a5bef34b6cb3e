//! Writes surviving rows, in order, into one SSTable after the other.
//!
//! Two files of one level never share a user key: a cut is made only where the user key changes. Range tombstones
//! that must be carried are cut to each file's stretch, which reaches from its first key (the first file: from the
//! front) to the first key of the next file (the last one: to the end).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_env::{CreateOptions, Env, IoMode, WriteFile};

use super::Throttle;
use super::tombstone_window::TombstoneWindow;
use super::values::{BlobInputs, Values};
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::key::{FragmentedTombstones, KeyOrder, ValueKind, trailer};
use crate::metrics::Metrics;
use crate::options::ColumnFamilyOptions;
use crate::sstable::{TableFamily, TableOptions, TableWriter, Warmer, WriteTimes};
use crate::version::{BlobFile, FileKind, FileMeta, VersionEdit};

/// How often the throttle is asked, in bytes.
const THROTTLE_STEP: u64 = 1 << 20;

/// A block of flushed rows is hot if they had so many times its bytes at least before their values left for a blob file.
const SEPARATED_RATIO: i64 = 4;

/// Where a row that is written comes from: what says whether readers will want its block in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// A memtable. The row is new. Where its value is large and leaves for a blob file, what stays is small and the way
    /// to all of it; other new rows would drive out of the cache what readers use.
    Memtable {
        /// Whether readers will want it all the same, and nothing has to leave the cache for it.
        read_back: bool,
    },
    /// A block of a table. Its heat is inherited.
    Block {
        /// Whether readers have the block in memory.
        cached: bool,
    },
}

impl RowSource {
    /// The heat of a row of so many bytes of which so many stay in the table. Summed up, it says whether most rows of a
    /// block come from blocks in the cache; or whether most of a block's bytes are elsewhere.
    #[inline]
    fn heat(self, bytes: usize, bytes_in_table: usize) -> i64 {
        match self {
            Self::Memtable { read_back: true } => 1,
            Self::Memtable { read_back: false } => bytes as i64 - SEPARATED_RATIO * bytes_in_table as i64,
            Self::Block { cached: true } => 1,
            Self::Block { cached: false } => -1,
        }
    }
}

/// Where and how output files are written.
pub struct OutputContext<'a> {
    /// The machine.
    pub env: &'a Env,
    /// The database's folder.
    pub dir: &'a Path,
    /// The database's id.
    pub database_id: u64,
    /// The column family, and what is known of its log once the files are in force.
    pub family: TableFamily,
    /// Settings of the column family.
    pub options: &'a ColumnFamilyOptions,
    /// The level that the files will belong to.
    pub level: usize,
    /// Buffered or direct.
    pub io: IoMode,
    /// Whether files are synced.
    pub sync: bool,
    /// Gives numbers of new files.
    pub next_file_number: &'a AtomicU64,
    /// The rate limit.
    pub throttle: &'a Throttle,
    /// What pointers among the input's rows lead to; a flush has none.
    pub blobs: Option<BlobInputs<'a>>,
    /// The cache that hot blocks enter as they are written, if they do.
    pub cache: Option<&'a Arc<BlockCache>>,
    /// Counters.
    pub metrics: &'a Arc<Metrics>,
}

impl OutputContext<'_> {
    /// Whether a flush writes, for which compactions make room.
    fn is_flush(&self) -> bool {
        self.blobs.is_none()
    }

    /// Creates a file to be written from front to end; `what` it is, for the message of an error.
    pub(super) fn create(&self, path: &Path, what: &str) -> Result<Box<dyn WriteFile>> {
        let options = CreateOptions {
            mode: self.io,
            buffer_bytes: 1 << 20,
            ..CreateOptions::default()
        };
        let created = self.env.fs.create(path, options);
        created.map_err(|error| Error::io(format!("can't create {what}"), error).in_file(path))
    }
}

/// What a flush or a compaction wrote.
#[derive(Debug, Default)]
pub struct Written {
    /// Tables, in key order.
    pub tables: Vec<FileMeta>,
    /// The blob files that only they refer to.
    pub blobs: Vec<BlobFile>,
}

impl Written {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let tables: u64 = self.tables.iter().map(|file| file.size_bytes).sum();
        tables + self.blobs.iter().map(|file| file.file_bytes).sum::<u64>()
    }

    /// Makes the files part of an edit, the tables in `level`.
    pub fn add_to(self, edit: &mut VersionEdit, level: usize) {
        edit.added_blobs.extend(self.blobs.into_iter().map(Arc::new));
        for file in self.tables {
            edit.add(level, Arc::new(file));
        }
    }

    /// Takes back that tables should be compacted for their tombstones: nothing older is left that these could meet.
    pub fn unmark(&mut self) {
        for file in &mut self.tables {
            *file.marked.get_mut() = false;
        }
    }

    /// Adds what another part of the same job wrote, behind this one's keys.
    pub fn append(&mut self, mut other: Self) {
        self.tables.append(&mut other.tables);
        self.blobs.append(&mut other.blobs);
    }
}

struct Current {
    writer: TableWriter,
    number: u64,
    path: PathBuf,
}

/// The files being written. Dropped without [`finish`](Self::finish), it removes what it made, from the cache too: jobs that
/// fail again and again would fill it.
pub struct Outputs<'a> {
    context: &'a OutputContext<'a>,
    tombstones: Arc<FragmentedTombstones>,
    /// Front of the current file's stretch of tombstones; `None`: open.
    stretch_start: Option<Vec<u8>>,
    current: Option<Current>,
    values: Values<'a>,
    window: TombstoneWindow,
    write_times: WriteTimes,
    /// Bytes in the current files when the throttle was last asked.
    throttled_bytes: u64,
    done: Vec<FileMeta>,
    /// Numbers of all tables that were begun.
    made: Vec<u64>,
    finished: bool,
}

impl<'a> Outputs<'a> {
    /// No files yet. `tombstones` are carried over whole, cut to the files.
    pub fn new(context: &'a OutputContext<'a>, tombstones: Arc<FragmentedTombstones>) -> Self {
        Self {
            context,
            tombstones,
            stretch_start: None,
            current: None,
            values: Values::new(context),
            window: TombstoneWindow::default(),
            write_times: WriteTimes::default(),
            throttled_bytes: 0,
            done: Vec::new(),
            made: Vec::new(),
            finished: false,
        }
    }

    /// Has each table say this about when its rows were written.
    #[must_use]
    pub fn with_write_times(mut self, write_times: WriteTimes) -> Self {
        self.write_times = write_times;
        self
    }

    /// Appends a row; internal keys ascend.
    #[inline]
    pub fn add(&mut self, internal_key: &[u8], value: &[u8], source: RowSource) -> Result<()> {
        if self.current.is_none() {
            self.open()?;
        }
        let Some(current) = &mut self.current else {
            return Err(Error::bug("an SSTable was opened and is gone"));
        };
        let bytes = internal_key.len() + value.len();
        let (internal_key, value) = self.values.place(internal_key, value)?;
        current.writer.add(internal_key, value)?;
        self.window.add(is_tombstone(internal_key));
        let heat = source.heat(bytes, internal_key.len() + value.len());
        current.writer.add_heat(heat);
        let written = current.writer.estimated_bytes() + self.values.current_bytes();
        if written.saturating_sub(self.throttled_bytes) >= THROTTLE_STEP {
            let bytes = written - self.throttled_bytes;
            let clock = &*self.context.env.clock;
            if !self.context.is_flush() {
                self.context.throttle.give_way(clock, bytes);
            }
            self.context.throttle.take(clock, bytes);
            self.throttled_bytes = written;
        } else {
            // A file was ended since.
            self.throttled_bytes = self.throttled_bytes.min(written);
        }
        Ok(())
    }

    /// Bytes in the current file.
    #[inline]
    pub fn current_bytes(&self) -> u64 {
        self.current
            .as_ref()
            .map_or(0, |current| current.writer.estimated_bytes())
    }

    /// Ends the current file before `next_user_key`, which must differ from the last one added.
    pub fn cut(&mut self, next_user_key: &[u8]) -> Result<()> {
        self.close(Some(next_user_key))?;
        self.stretch_start = Some(next_user_key.to_vec());
        Ok(())
    }

    /// Ends the last files; [`finish`](Self::finish) then only makes the names durable.
    pub fn close_last(&mut self) -> Result<()> {
        self.close(None)?;
        self.values.close()?;
        // They are written now; another close must not begin a file for them.
        self.tombstones = Arc::default();
        Ok(())
    }

    /// Ends the last files; gives all of them. The folder is synced if the files are.
    pub fn finish(mut self) -> Result<Written> {
        self.close_last()?;
        if self.context.sync && !self.done.is_empty() {
            let dir = self.context.dir;
            self.context
                .env
                .fs
                .sync_dir(dir)
                .map_err(|error| Error::io("can't sync the folder", error).in_file(dir))?;
        }
        self.finished = true;
        Ok(Written {
            tables: std::mem::take(&mut self.done),
            blobs: self.values.take_done(),
        })
    }

    fn order(&self) -> &KeyOrder {
        &self.context.options.key_order
    }

    fn open(&mut self) -> Result<()> {
        let context = self.context;
        let number = context.next_file_number.fetch_add(1, Ordering::Relaxed);
        let path = FileKind::Table(number).path(context.dir);
        let file = context.create(&path, "an SSTable")?;
        self.made.push(number);
        let created = context.env.clock.unix_seconds();
        let options = TableOptions {
            database_id: context.database_id,
            file_number: number,
            creation_unix_seconds: created,
            write_times: self.write_times.clone(),
            family: Some(context.family.clone()),
            ..TableOptions::new(context.options, context.level)
        };
        let warmer = context
            .cache
            .map(|cache| Warmer::new(Arc::clone(cache), Arc::clone(context.metrics), number));
        let writer = TableWriter::new(file, &path, options).with_warmer(warmer);
        self.current = Some(Current { writer, number, path });
        Ok(())
    }

    fn close(&mut self, end: Option<&[u8]>) -> Result<()> {
        if !self.tombstones.is_empty() {
            let start = self.stretch_start.as_deref();
            let tombstones = self.tombstones.clip(self.order(), start, end);
            if !tombstones.is_empty() {
                if self.current.is_none() {
                    self.open()?;
                }
                if let Some(current) = &mut self.current {
                    for (start, end, sequence) in tombstones.tombstones() {
                        current.writer.add_range_tombstone(start, end, sequence);
                    }
                }
            }
        }
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let summary = current
            .writer
            .finish(self.context.sync)
            .map_err(|error| error.in_file(&current.path))?;
        let mut file = FileMeta::from_summary(current.number, summary);
        file.blobs = self.values.take_refs();
        *file.marked.get_mut() = self.window.take();
        self.done.push(file);
        Ok(())
    }
}

#[inline]
fn is_tombstone(internal_key: &[u8]) -> bool {
    let kind = trailer(internal_key) as u8;
    kind == ValueKind::Delete as u8 || kind == ValueKind::SingleDelete as u8
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.current = None;
        self.values.discard();
        if let Some(cache) = self.context.cache.filter(|_| !self.made.is_empty()) {
            cache.remove_tables(&self.made);
        }
        for &number in &self.made {
            // What stays is removed when the database is opened next: no version refers to it.
            let path = FileKind::Table(number).path(self.context.dir);
            let _ = self.context.env.fs.remove(&path);
        }
    }
}
