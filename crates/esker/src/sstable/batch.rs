//! Data blocks of several tables, read together: what a multi-get waits for is one batch, not one block after another.
//!
//! Blocks that lie side by side in a table, or nearly, are one request: another request costs the device and the
//! processor more than the few KiB in between. Blocks that enter the cache are copied out of such a run, so that a
//! cached block never keeps its neighbours alive.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use esker_env::{BatchRead, Fs};

use super::block::{Block, BlockKind};
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

/// A data block that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedBlock<'t> {
    table: &'t Table,
    handle: BlockHandle,
}

impl<'t> WantedBlock<'t> {
    /// The block of a place that this table gave.
    pub fn new(table: &'t Table, place: &Place) -> Self {
        Self {
            table,
            handle: place.handle(),
        }
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

/// Reads blocks that the cache does not have, in the order in which they are given; neighbours are found if that is by
/// table and offset. Fails with the error of the first block that can't be read.
pub fn read_blocks(fs: &dyn Fs, wanted: &[WantedBlock<'_>], options: TableReadOptions) -> Result<Vec<Block>> {
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
    let mut blocks = Vec::with_capacity(wanted.len());
    for (run, result) in runs.into_iter().zip(results) {
        let wanted = &wanted[run.blocks];
        let result = result.and_then(|count| whole(count, run.buffer.len()));
        for block in wanted {
            let file = &block.table.file;
            file.metrics.cache_misses.add(1);
            let contents = match &result {
                Ok(()) => block.contents(&run.buffer, wanted[0].handle.offset, options)?,
                // By itself it tells which block it is; and what lies in between does no harm.
                Err(_) if wanted.len() > 1 => file.read(block.handle, options.verify_checksums)?,
                Err(_) => break,
            };
            let parsed = file.parse(block.handle, contents)?;
            if options.fill_cache {
                file.keep(block.handle, BlockKind::Data, &parsed);
            }
            blocks.push(parsed);
        }
        if let (Err(error), [block]) = (result, wanted) {
            return Err(Error::io("can't read table", error)
                .in_file(block.table.path())
                .at_offset(block.handle.offset));
        }
    }
    Ok(blocks)
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
