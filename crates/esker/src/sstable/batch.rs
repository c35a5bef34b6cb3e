//! Blocks of several tables, read together: what a multi-get waits for is one batch, not one block after another.
//!
//! Blocks that lie side by side in a table, or nearly, are one request: another request costs the device and the
//! processor more than the few KiB in between. Blocks that enter the cache are copied out of such a run, so that a
//! cached block never keeps its neighbours alive.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use esker_env::{BatchRead, Fs};

use super::block::{Block, BlockKind};
use super::filter::is_filter;
use super::format::{BLOCK_TRAILER_LEN, BlockHandle};
use super::get::Place;
use super::options::TableReadOptions;
use super::table::Table;
use crate::cache::{SharedBytes, zeroed};
use crate::error::{Error, Result};

/// Bytes between two blocks that are read along rather than skipped: at most one page of the device more.
const GAP_BYTES_MAX: u64 = 4 << 10;
/// A run is not longer than this, so that a long one is read by several requests at a time.
const RUN_BYTES_MAX: u64 = 128 << 10;

/// A block that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedBlock<'t> {
    table: &'t Table,
    handle: BlockHandle,
    kind: BlockKind,
}

/// A part of a table's filter or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub(super) handle: BlockHandle,
    pub(super) kind: BlockKind,
}

impl<'t> WantedBlock<'t> {
    /// The data block of a place that this table gave.
    pub fn new(table: &'t Table, place: &Place) -> Self {
        Self {
            table,
            handle: place.handle(),
            kind: BlockKind::Data,
        }
    }

    /// A part that this table named.
    pub fn part(table: &'t Table, part: Part) -> Self {
        Self {
            table,
            handle: part.handle,
            kind: part.kind,
        }
    }

    /// The order in which blocks are best read, which is also that of equal blocks: table and offset.
    pub fn position(&self) -> (u64, u64) {
        (self.table.number(), self.handle.offset)
    }
}

impl Table {
    /// The data block of a place that this table gave, if the cache has it.
    #[inline]
    pub fn cached_block(&self, place: &Place) -> Result<Option<Block>> {
        self.file.cached(place.handle(), BlockKind::Data)
    }
}

/// Neighbouring blocks that are read by one request.
struct Run {
    blocks: Range<usize>,
    buffer: Arc<[u8]>,
}

/// Reads data blocks that the cache does not have, in the order in which they are given; neighbours are found if that is
/// by [`position`](WantedBlock::position). Fails with the error of the first block that can't be read.
pub fn read_blocks(fs: &dyn Fs, wanted: &[WantedBlock<'_>], options: TableReadOptions) -> Result<Vec<Block>> {
    let contents = read_contents(fs, wanted, options)?;
    wanted
        .iter()
        .zip(contents)
        .map(|(block, contents)| {
            let file = &block.table.file;
            let parsed = file.parse(block.handle, contents?)?;
            if options.fill_cache {
                file.keep(block.handle, BlockKind::Data, &parsed);
            }
            Ok(parsed)
        })
        .collect()
}

/// Brings parts of filters and indexes into the cache, given like the blocks of [`read_blocks`]. What can't be read is left
/// to whoever needs it, and can say what that means.
pub fn read_parts(fs: &dyn Fs, wanted: &[WantedBlock<'_>], options: TableReadOptions) {
    let Ok(contents) = read_contents(fs, wanted, options) else {
        return;
    };
    for (part, contents) in wanted.iter().zip(contents) {
        let (file, Ok(contents)) = (&part.table.file, contents) else {
            continue;
        };
        if part.kind != BlockKind::Filter {
            if let Ok(block) = file.parse(part.handle, contents) {
                file.keep(part.handle, part.kind, &block);
            }
        } else if is_filter(&contents) {
            file.keep_filter(part.handle, &contents);
        }
    }
}

/// The contents of each block, or why it could not be read.
fn read_contents(
    fs: &dyn Fs,
    wanted: &[WantedBlock<'_>],
    options: TableReadOptions,
) -> Result<Vec<Result<SharedBytes>>> {
    let mut runs = runs(wanted)?;
    let mut reads: Vec<BatchRead<'_>> = Vec::with_capacity(runs.len());
    for run in &mut runs {
        let first = &wanted[run.blocks.start];
        let bytes = Arc::get_mut(&mut run.buffer).ok_or_else(|| Error::bug("a new buffer is shared"))?;
        reads.push(BatchRead::new(
            &*first.table.file.file,
            first.handle.offset,
            bytes,
        ));
    }
    fs.read_many(&mut reads);
    let results: Vec<io::Result<usize>> = reads.into_iter().map(|read| read.result).collect();
    let mut contents = Vec::with_capacity(wanted.len());
    for (run, result) in runs.into_iter().zip(results) {
        let wanted = &wanted[run.blocks];
        let mut failure = result.and_then(|count| whole(count, run.buffer.len())).err();
        for block in wanted {
            let file = &block.table.file;
            file.metrics.cache_misses.add(1);
            contents.push(match failure.take_if(|_| wanted.len() == 1) {
                Some(error) => Err(Error::io("can't read table", error)
                    .in_file(&file.path)
                    .at_offset(block.handle.offset)),
                None if failure.is_none() => block.contents(&run.buffer, wanted[0].handle.offset, options),
                // By itself it tells which block it is; and what lies in between does no harm.
                None => file.read(block.handle, options.verify_checksums),
            });
        }
    }
    Ok(contents)
}

fn whole(count: usize, wanted: usize) -> io::Result<()> {
    if count == wanted {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

impl WantedBlock<'_> {
    /// Its contents out of a run that begins at `run_offset`, in memory of their own.
    fn contents(&self, run: &Arc<[u8]>, run_offset: u64, options: TableReadOptions) -> Result<SharedBytes> {
        let file = &self.table.file;
        let at = (self.handle.offset - run_offset) as usize;
        let contents = file.contents(run, at, self.handle, options.verify_checksums)?;
        let holds_neighbours = contents.backing_len() > self.handle.size as usize + BLOCK_TRAILER_LEN
            && contents.backing_len() == run.len();
        Ok(if holds_neighbours {
            SharedBytes::from(&*contents)
        } else {
            contents
        })
    }
}

fn runs(wanted: &[WantedBlock<'_>]) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::with_capacity(wanted.len());
    let mut next = 0;
    while let Some(first) = wanted.get(next) {
        let blocks_start = next;
        let start = first.handle.offset;
        let mut end = start;
        while let Some(block) = wanted.get(next) {
            let at = block.handle.offset;
            let block_end = at + block.table.file.stored_len(block.handle)? as u64;
            let joins = block.table.number() == first.table.number()
                && at >= end
                && at - end <= GAP_BYTES_MAX
                && block_end - start <= RUN_BYTES_MAX;
            if next > blocks_start && !joins {
                break;
            }
            end = block_end;
            next += 1;
        }
        runs.push(Run {
            blocks: blocks_start..next,
            buffer: zeroed((end - start) as usize),
        });
    }
    Ok(runs)
}
