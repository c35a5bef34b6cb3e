//! Blocks of several tables, read together: what a multi-get waits for is one batch, not one block after another.
//!
//! Blocks that lie side by side in a table, or nearly, are one request ([`read_ranges`]). They are copied out of what
//! that brought, so that a cached block never keeps its neighbours alive.

use esker_env::{Fs, IoPriority, ReadRange, WantedRange, read_ranges};

use super::block::{Block, BlockKind};
use super::filter::is_filter;
use super::format::{BLOCK_TRAILER_LEN, BlockHandle};
use super::get::Place;
use super::options::TableReadOptions;
use super::table::Table;
use crate::cache::SharedBytes;
use crate::error::{Error, Result};

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
    let ranges = wanted
        .iter()
        .map(WantedBlock::range)
        .collect::<Result<Vec<_>>>()?;
    let read = read_ranges(fs, &ranges, IoPriority::Foreground)
        .into_iter()
        .zip(wanted);
    let contents = read.map(|(read, block)| {
        let file = &block.table.file;
        file.metrics.cache_misses.add(1);
        let read = read.map_err(|error| {
            Error::io("can't read table", error)
                .in_file(&file.path)
                .at_offset(block.handle.offset)
        })?;
        block.contents(&read, options)
    });
    Ok(contents.collect())
}

impl WantedBlock<'_> {
    /// Where it is stored, after its handle was checked against the file's length.
    fn range(&self) -> Result<WantedRange<'_>> {
        let file = &self.table.file;
        Ok(WantedRange {
            file: &*file.file,
            number: file.number,
            offset: self.handle.offset,
            len: file.stored_len(self.handle)?,
        })
    }

    /// Its contents, in memory that holds no neighbours.
    fn contents(&self, read: &ReadRange, options: TableReadOptions) -> Result<SharedBytes> {
        let file = &self.table.file;
        let contents = file.contents(&read.buffer, read.at, self.handle, options.verify_checksums)?;
        let holds_neighbours = contents.backing_len() > self.handle.size as usize + BLOCK_TRAILER_LEN
            && contents.backing_len() == read.buffer.len();
        Ok(if holds_neighbours {
            SharedBytes::from(&*contents)
        } else {
            contents
        })
    }
}
