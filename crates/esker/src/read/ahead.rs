//! Rows that a scan will come to, with their values on the way: what lies scattered over blob files is asked of the device long
//! before it is shown, and many values at a time.
//!
//! # Why
//! After a while of overwriting, the values of neighbouring rows lie in dozens of files, with dead ones between them. Each
//! file is sorted, so reading each by windows is possible, but then a scan waits for one window after the other, each of which
//! has to be small, as there are so many. A scan that knows its next thousand rows asks for all of their values at once, and
//! for those of the thousand after them while it shows the first.
//!
//! # How
//! The cursor of the tree runs ahead. The rows that it comes to are gathered into a [`Batch`]: keys and pointers in one
//! buffer, values by ranges of blob files that are read together. Values that lie side by side in a file, or nearly, are one range.
//! While one batch is shown, the next is under way:
//! ```text
//!   shown: batch 7        under way: batch 8        the cursor: on the last row of 8
//! ```
//! # How much
//! A scan may end with any row, and what was read ahead of it is then read in vain. So a batch has 64 KiB at first, each has twice
//! as many as the one before, up to 4 MiB, and until there are 256 KiB the next is read only when the scan comes to it. Nothing is
//! read past an iterator's bound. All scans together get a part of the block cache's memory ([`Tables::reserve_ahead`]); whoever
//! gets none does not grow.
//!
//! What was read this way enters the block cache as long as batches are small (what is scanned again and again in short pieces shall
//! be there), and later only while the cache has room: there, rows that a scan meets once would but push each other out.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use esker_env::{AheadBatch, IoPriority, ReadAhead};

use super::blob_scan::BlobScan;
use super::merging::SourceCursor;
use super::visible::VisibleCursor;
use crate::blob::{BlobPointer, BlobReader};
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::key::ValueKind;
use crate::version::Tables;

/// The first batch, and the longest, in bytes that are read.
const BATCH_BYTES_FIRST: usize = 64 << 10;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// From this on the next batch is under way while one is shown.
const OVERLAP_BYTES_MIN: usize = 256 << 10;
/// Batches under way while one is shown. With two of half the length a scan is a tenth slower: requests are shorter then.
const UNDER_WAY_MAX: usize = 1;
/// Rows of a batch, and files that it reads, which are open as long.
const BATCH_ROWS_MAX: usize = 8192;
const BATCH_FILES_MAX: usize = 128;
/// Bytes between two values that are read along: with many reads under way, as many as take the time of one more.
const GAP_BYTES_MAX: u64 = esker_env::BACKGROUND_GAP_BYTES_MAX;
/// A range is not longer than this, so that a long one is read by several requests at a time. Values that are longer are read
/// alone when they are shown.
const RANGE_BYTES_MAX: u64 = 256 << 10;
/// What direct I/O rounds out to.
const BLOCK_BYTES: u64 = 4 << 10;

/// Where a move led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// To the next row.
    Row,
    /// Past the last one.
    End,
    /// Nowhere: nothing has to be read ahead any more. The cursor stands on the row that is shown.
    Idle,
}

/// The value of a gathered row.
#[derive(Debug)]
enum Value {
    /// These bytes of the batch.
    Here(Range<usize>),
    /// It was in the block cache.
    Cached(SharedBytes),
    /// In a range that is read, by its number.
    Read(u32, BlobPointer),
    /// To be read when it is shown, behind the pointer in these bytes of the batch: a large one, or one that will fail.
    Unread(Range<usize>),
}

#[derive(Debug)]
struct Row {
    key: Range<usize>,
    value: Value,
}

/// A range of a blob file.
#[derive(Debug)]
struct FileRange {
    file: usize,
    from: u64,
    end: u64,
}

impl FileRange {
    /// Bytes that are read for it.
    fn cost(&self) -> u64 {
        self.end.next_multiple_of(BLOCK_BYTES) - self.from / BLOCK_BYTES * BLOCK_BYTES
    }

    /// Takes in what lies behind it, or before it, if that is near.
    fn join(&mut self, from: u64, end: u64) -> bool {
        let joined = self.from.min(from)..self.end.max(end);
        let apart = from.saturating_sub(self.end).max(self.from.saturating_sub(end));
        let joins = apart <= GAP_BYTES_MAX && joined.end - joined.start <= RANGE_BYTES_MAX;
        if joins {
            (self.from, self.end) = (joined.start, joined.end);
        }
        joins
    }
}

/// Rows that follow each other.
#[derive(Debug, Default)]
struct Batch {
    rows: Vec<Row>,
    /// Keys, pointers and values that lie in tables.
    bytes: Vec<u8>,
    files: Vec<Arc<BlobReader>>,
    ranges: Vec<FileRange>,
    /// The file, and the last range of it, of each file number.
    last: HashMap<u64, (usize, usize)>,
    read_bytes: u64,
    /// Whether its values enter the block cache.
    fills_cache: bool,
    reads: AheadBatch,
}

impl Batch {
    fn clear(&mut self) {
        self.rows.clear();
        self.bytes.clear();
        self.files.clear();
        self.ranges.clear();
        self.last.clear();
        self.read_bytes = 0;
        self.reads.clear();
    }

    fn is_full(&self, bytes_max: usize) -> bool {
        self.read_bytes as usize + self.bytes.len() >= bytes_max
            || self.rows.len() >= BATCH_ROWS_MAX
            || self.files.len() >= BATCH_FILES_MAX
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        from..self.bytes.len()
    }

    fn kept(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// Adds the row that the cursor stands on.
    fn add<C: SourceCursor>(&mut self, cursor: &VisibleCursor<C>, blobs: &BlobScan) {
        let key = self.keep(cursor.key());
        let value = match cursor.kind() {
            ValueKind::BlobPointer => self.plan(cursor.value(), blobs),
            _ => Value::Here(self.keep(cursor.value())),
        };
        self.rows.push(Row { key, value });
    }

    fn plan(&mut self, bytes: &[u8], blobs: &BlobScan) -> Value {
        let Ok(pointer) = BlobPointer::decode(bytes) else {
            return Value::Unread(self.keep(bytes));
        };
        if let Some(value) = blobs.cached(&pointer) {
            return Value::Cached(value);
        }
        if pointer.bytes > RANGE_BYTES_MAX {
            self.read_bytes += pointer.bytes;
            return Value::Unread(self.keep(bytes));
        }
        match self.plan_range(&pointer, blobs) {
            Ok(range) => Value::Read(range as u32, pointer),
            Err(_) => Value::Unread(self.keep(bytes)),
        }
    }

    /// The number of the range that the record will be in.
    fn plan_range(&mut self, pointer: &BlobPointer, blobs: &BlobScan) -> Result<usize> {
        let (file, last) = match self.last.get(&pointer.file) {
            Some(&(file, last)) => (file, Some(last)),
            None => {
                self.files.push(blobs.reader(pointer.file)?);
                (self.files.len() - 1, None)
            }
        };
        let len = self.files[file].checked_len(pointer)? as u64;
        let (from, end) = (pointer.offset, pointer.offset + len);
        if let Some(last) = last {
            let range = &mut self.ranges[last];
            let before = range.cost();
            if range.join(from, end) {
                self.read_bytes += range.cost() - before;
                return Ok(last);
            }
        }
        let range = FileRange { file, from, end };
        self.read_bytes += range.cost();
        self.ranges.push(range);
        self.last.insert(pointer.file, (file, self.ranges.len() - 1));
        Ok(self.ranges.len() - 1)
    }
}

/// A batch whose reads are under way.
#[derive(Debug)]
struct UnderWay {
    batch: Batch,
    reads: ReadAhead,
}

/// Where the value of the row that is shown is.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// Where its row says.
    InBatch,
    /// It was decompressed.
    Raw,
    /// It was read alone.
    Alone,
}

/// The rows that a scan will come to. It stands on one of them.
#[derive(Debug)]
pub struct RowsAhead {
    tables: Arc<Tables>,
    backward: bool,
    front: Batch,
    /// The row of `front` that is shown.
    at: usize,
    shown: Shown,
    raw: Vec<u8>,
    under_way: VecDeque<UnderWay>,
    spare: Vec<Batch>,
    bytes_first: usize,
    /// Of the next batch; 0 before the first.
    bytes_max: usize,
    /// What was set aside for the batches there are.
    reserved: u64,
    /// How the cursor ended.
    end: Option<Result<()>>,
}

impl RowsAhead {
    /// For a cursor that stands on the row shown. It stands on no row until it is moved. `bytes_first`: of the first batch, if
    /// that is more than [`BATCH_BYTES_FIRST`].
    pub fn new(tables: &Arc<Tables>, backward: bool, bytes_first: usize) -> Self {
        Self {
            tables: Arc::clone(tables),
            backward,
            front: Batch::default(),
            at: 0,
            shown: Shown::InBatch,
            raw: Vec::new(),
            under_way: VecDeque::new(),
            spare: Vec::new(),
            bytes_first,
            bytes_max: 0,
            reserved: 0,
            end: None,
        }
    }

    /// The key of the row that is shown.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.front.rows.get(self.at) {
            Some(row) => self.front.kept(&row.key),
            None => &[],
        }
    }

    /// Its value.
    #[inline]
    pub fn value<'a>(&'a self, blobs: &'a BlobScan) -> &'a [u8] {
        let Some(row) = self.front.rows.get(self.at) else {
            return &[];
        };
        match (self.shown, &row.value) {
            (Shown::Alone, _) => blobs.value(),
            (Shown::Raw, _) => &self.raw,
            (Shown::InBatch, Value::Here(range)) => self.front.kept(range),
            (Shown::InBatch, Value::Cached(value)) => value,
            (Shown::InBatch, Value::Read(range, pointer)) => {
                let record = self
                    .front
                    .reads
                    .get(*range as usize, pointer.offset, pointer.bytes as usize);
                BlobReader::stored(record.unwrap_or_default())
            }
            (Shown::InBatch, Value::Unread(_)) => &[],
        }
    }

    /// Moves on by a row. After an error it stands on none.
    #[inline]
    pub fn advance<C: SourceCursor>(
        &mut self,
        cursor: &mut VisibleCursor<C>,
        blobs: &mut BlobScan,
    ) -> Result<Moved> {
        self.at += 1;
        if self.at >= self.front.rows.len() {
            let moved = self.next_batch(cursor, blobs)?;
            if moved != Moved::Row {
                return Ok(moved);
            }
        }
        self.show(blobs)?;
        Ok(Moved::Row)
    }

    #[cold]
    fn next_batch<C: SourceCursor>(
        &mut self,
        cursor: &mut VisibleCursor<C>,
        blobs: &BlobScan,
    ) -> Result<Moved> {
        let was_idle = !self.front.rows.is_empty() && self.front.ranges.is_empty();
        if was_idle && self.under_way.is_empty() && self.end.is_none() {
            return Ok(Moved::Idle);
        }
        let used = std::mem::take(&mut self.front);
        self.spare.push(used);
        self.at = 0;
        self.grow();
        while self.under_way.len() <= under_way_max(self.bytes_max) && self.end.is_none() {
            if self
                .under_way
                .back()
                .is_some_and(|last| last.batch.ranges.is_empty())
            {
                // Everything is in the cache, or in the tree, from here on.
                break;
            }
            self.start(cursor, blobs);
        }
        let Some(UnderWay { batch, reads }) = self.under_way.pop_front() else {
            return self.end.take().unwrap_or(Ok(())).map(|()| Moved::End);
        };
        self.front = batch;
        let fs = self.tables.fs();
        self.front.reads = reads.wait(|reads| fs.read_many(reads, IoPriority::Background));
        Ok(Moved::Row)
    }

    /// Twice as many bytes a batch, or fewer where there is no memory for them.
    fn grow(&mut self) {
        // The least is what windows would take as well.
        let least = self.bytes_max.max(BATCH_BYTES_FIRST);
        let mut bytes = match self.bytes_max {
            0 => self.bytes_first.clamp(least, BATCH_BYTES_MAX),
            bytes => (bytes * 2).min(BATCH_BYTES_MAX),
        };
        self.bytes_max = least;
        while bytes > least {
            let wanted = (bytes * (under_way_max(bytes) + 1)) as u64;
            let more = wanted.saturating_sub(self.reserved);
            if self.tables.reserve_ahead(more) {
                self.reserved += more;
                self.bytes_max = bytes;
                return;
            }
            bytes /= 2;
        }
    }

    /// Gathers a batch and starts its reads.
    fn start<C: SourceCursor>(&mut self, cursor: &mut VisibleCursor<C>, blobs: &BlobScan) {
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.clear();
        while !batch.is_full(self.bytes_max) {
            let moved = if self.backward {
                cursor.prev()
            } else {
                cursor.next()
            };
            if moved.is_err() || !cursor.valid() {
                self.end = Some(moved);
                break;
            }
            batch.add(cursor, blobs);
        }
        if batch.rows.is_empty() {
            return;
        }
        batch.fills_cache = blobs.fills_cache()
            && (self.bytes_max < OVERLAP_BYTES_MIN
                || self.tables.block_cache().free_bytes() > batch.read_bytes);
        let mut reads = std::mem::take(&mut batch.reads);
        for range in &batch.ranges {
            let file = batch.files[range.file].shared_file();
            reads.add(file, range.from, (range.end - range.from) as usize);
        }
        let reads = match reads.is_empty() {
            true => ReadAhead::done(reads),
            false => self.tables.fs().read_ahead(reads),
        };
        self.under_way.push_back(UnderWay { batch, reads });
    }

    /// Makes the value of the row it stands on one that can be given.
    #[inline]
    fn show(&mut self, blobs: &mut BlobScan) -> Result<()> {
        self.shown = Shown::InBatch;
        let batch = &self.front;
        let Some(row) = batch.rows.get(self.at) else {
            return Ok(());
        };
        match &row.value {
            Value::Here(_) | Value::Cached(_) => Ok(()),
            Value::Read(range, pointer) => {
                let record = batch
                    .reads
                    .get(*range as usize, pointer.offset, pointer.bytes as usize);
                let reader = batch
                    .ranges
                    .get(*range as usize)
                    .and_then(|range| batch.files.get(range.file));
                let (Some(record), Some(reader)) = (record, reader) else {
                    // Read alone it tells why.
                    self.shown = Shown::Alone;
                    return blobs.load(pointer);
                };
                let is_raw = reader.open_record(pointer.offset, record, blobs.verifies(), &mut self.raw)?;
                if is_raw {
                    self.shown = Shown::Raw;
                }
                if batch.fills_cache {
                    let value = if is_raw {
                        &self.raw
                    } else {
                        BlobReader::stored(record)
                    };
                    blobs.keep(pointer, value);
                }
                Ok(())
            }
            Value::Unread(pointer) => {
                self.shown = Shown::Alone;
                blobs.load(&BlobPointer::decode(batch.kept(pointer))?)
            }
        }
    }
}

impl Drop for RowsAhead {
    fn drop(&mut self) {
        self.tables.release_ahead(self.reserved);
    }
}

/// Batches under way beside the one that is shown, where each has so many bytes.
fn under_way_max(batch_bytes: usize) -> usize {
    if batch_bytes < OVERLAP_BYTES_MIN {
        0
    } else {
        UNDER_WAY_MAX
    }
}
