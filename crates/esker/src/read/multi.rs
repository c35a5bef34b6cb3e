//! Many point reads at once: blocks are shared by the keys that lie in them, and read several at a time.
//!
//! Each key goes through its sources from new to old, as in a get. What differs is when blocks are read. In a *round*
//!
//! 1. every key that is still open goes on until it needs a data block: tombstones, filter and index of a table tell
//!    without one that it holds nothing of most keys;
//! 2. the keys are grouped by the block they need; blocks that the cache has are searched at once, and their keys go on;
//! 3. when every open key waits for a block that is not in memory, these blocks are read together
//!    ([`read_blocks`]), and each is parsed once and searched for all its keys.
//!
//! Parts of filters and indexes that are neither held by their tables nor cached are brought into the cache together
//! as well ([`read_parts`]), when no key gets on without one. And when all rows are found, the values that lie in blob files
//! are read together ([`Tables::values`]).
//!
//! A round therefore waits for the device once, whatever levels and files its blocks are in. There are as many rounds
//! as the unluckiest key needs blocks: mostly one; more after false positives of filters, and for merges that reach
//! through the levels. (Going level by level instead would wait for each level that holds any of the keys.)
//!
//! `cargo bench -p esker --bench multi_get`, 2 cores shared with other builds (load 10 to 11), 1,000,000 rows of 400 bytes in
//! 405 MiB of tables, direct I/O, a cache of 12 MiB; three rounds, thousands of random keys a second, and processor time a key:
//!
//! | keys a call | by gets | | by one multi-get | |
//! |---|---|---|---|---|
//! | 8 | 10 to 15 | 17 to 30 us | 29 to 45 | 5.7 to 7.3 us |
//! | 32 | 15 to 18 | 16 to 17 us | 43 to 58 | 4.5 to 5.0 us |
//! | 128 | 14 to 17 | 16 us | 38 to 63 | 4.3 to 5.0 us |
//! | 32, all in the cache | 500 to 710 | 0.63 to 0.68 us | 410 to 620 | 0.65 to 0.67 us |
//!
//! So it pays where keys are not in the cache; where they are, sharing blocks makes up for the sorting, no more.

use std::sync::Arc;

use super::ReadOptions;
use super::point::{PointLookup, Step};
use super::source::{PinnedValue, cover_by_table, get_from_view, in_block, in_memtable, memtables, value_of};
use crate::cache::SharedBytes;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Sequence, key_head};
use crate::merge::MergeOperator;
use crate::metrics::Metrics;
use crate::sstable::{Block, Part, Place, Table, TableReadOptions, WantedBlock, read_blocks, read_parts};
use crate::version::{FileMeta, Tables, Version, View};

/// Blocks that are held in memory at a time, beside those that values pin.
const BLOCKS_MAX: usize = 128;

/// Parts of a table that a key waits for: of its filter, and of its index.
const WAITS_MAX: u32 = 2;

/// A key on its way.
struct Asked<'k> {
    key: &'k [u8],
    /// Its number among the caller's keys.
    number: usize,
    lookup: PointLookup<PinnedValue>,
    /// The source it looks at next: the files of level 0, then the levels.
    source: usize,
    /// The block it needs: of which table, and where.
    wants: Option<(usize, Place)>,
    /// The part of filter or index that it waits for.
    part: Option<(usize, Part)>,
    /// How often it waited for parts of one table. More than a filter and an index there is not to wait for: what the
    /// cache did not keep until then is read when it is needed.
    waits: u32,
}

/// The SSTables of a view, as the keys come to them.
struct Sources<'v> {
    version: &'v Version,
    tables: &'v Tables,
    order: &'v KeyOrder,
    sequence: Sequence,
    read: TableReadOptions,
    opened: Vec<Arc<Table>>,
    /// For each source the last file that a key fell into, and its number in `opened`. Keys come about in their order,
    /// so the next one often falls into the same.
    last: Vec<Option<(&'v Arc<FileMeta>, usize)>>,
}

/// The values of `keys` in `view` as of `sequence`, in the order of `keys`: for each what
/// [`get_from_view`] gives. Fails if one of them does.
pub fn multi_get_from_view(
    view: &View,
    tables: &Tables,
    keys: &[&[u8]],
    sequence: Sequence,
    options: &ReadOptions,
    operator: Option<&dyn MergeOperator>,
    metrics: &Metrics,
) -> Result<Vec<Option<PinnedValue>>> {
    if let [key] = keys {
        return Ok(vec![get_from_view(
            view, tables, key, sequence, options, operator, metrics,
        )?]);
    }
    metrics.gets.add(keys.len() as u64);
    let mut sources = Sources::new(view, tables, sequence, options);
    let mut asked: Vec<Asked<'_>> = sorted(keys, sources.order)
        .into_iter()
        .map(|(_, number)| Asked::new(keys[number], number))
        .collect();
    let mut open: Vec<usize> = (0..asked.len()).collect();
    for memtable in memtables(view) {
        keep_open(&mut open, |i| {
            let Asked { key, lookup, .. } = &mut asked[i];
            in_memtable(memtable, key, sequence, lookup)
        })?;
    }
    let mut stuck = Vec::new();
    while !open.is_empty() {
        sources.go_as_far_as_memory(&mut asked, &mut open, &mut stuck)?;
        sources.read_and_search(&mut asked, &mut stuck, &mut open)?;
    }
    let mut fetched = fetch(view, tables, &asked, operator, sources.read)?.into_iter();
    let mut values = Vec::with_capacity(keys.len());
    values.resize_with(keys.len(), || None);
    let mut found = 0;
    for asked in asked {
        let blob = asked.needs_value(operator).and_then(|_| fetched.next().flatten());
        let value = value_of(asked.lookup, asked.key, operator, |_| {
            blob.clone().ok_or_else(|| Error::bug("a value was not read"))
        })?;
        found += u64::from(value.is_some());
        values[asked.number] = value;
    }
    metrics.gets_found.add(found);
    Ok(values)
}

/// The values in blob files that the keys need, in their order; all are there unless one can't be read.
fn fetch(
    view: &View,
    tables: &Tables,
    asked: &[Asked<'_>],
    operator: Option<&dyn MergeOperator>,
    read: TableReadOptions,
) -> Result<Vec<Option<SharedBytes>>> {
    let pointers: Vec<&[u8]> = asked
        .iter()
        .filter_map(|asked| asked.needs_value(operator))
        .collect();
    let mut fetched = vec![None; pointers.len()];
    tables.values(view.version.blobs(), &pointers, read, |number, value| {
        fetched[number] = Some(value);
    })?;
    Ok(fetched)
}

/// The keys' numbers in the order of keys, each behind the key's head, which decides most comparisons.
fn sorted(keys: &[&[u8]], order: &KeyOrder) -> Vec<(u64, usize)> {
    let head = |key: &[u8]| if order.is_bytewise() { key_head(key) } else { 0 };
    let mut numbers: Vec<(u64, usize)> = keys.iter().map(|key| head(key)).zip(0..).collect();
    numbers.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| order.compare(keys[a.1], keys[b.1])));
    numbers
}

/// Lets every open key take a step; those that are done leave.
fn keep_open(open: &mut Vec<usize>, mut step: impl FnMut(usize) -> Result<Step>) -> Result<()> {
    let mut result = Ok(());
    open.retain(|&i| {
        if result.is_err() {
            return false;
        }
        match step(i) {
            Ok(step) => step == Step::Continue,
            Err(error) => {
                result = Err(error);
                false
            }
        }
    });
    result
}

impl<'k> Asked<'k> {
    fn new(key: &'k [u8], number: usize) -> Self {
        Self {
            key,
            number,
            lookup: PointLookup::new(),
            source: 0,
            wants: None,
            part: None,
            waits: 0,
        }
    }

    /// The pointer to the value in a blob file that the answer takes.
    fn needs_value(&self, operator: Option<&dyn MergeOperator>) -> Option<&[u8]> {
        let pointer = self.lookup.blob_pointer()?;
        // Without an operator a merge fails whatever its base is.
        (operator.is_some() || !self.lookup.is_merged()).then_some(pointer)
    }
}

/// How far a key came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// To a table in which it needs a block.
    Block,
    /// To a table that has to read filter or index first.
    Part,
    /// To the end: its lookup is complete.
    Nothing,
}

impl<'v> Sources<'v> {
    fn new(view: &'v View, tables: &'v Tables, sequence: Sequence, options: &ReadOptions) -> Self {
        let version: &Version = &view.version;
        let levels = version.level_count().saturating_sub(1);
        Self {
            version,
            tables,
            order: version.order(),
            sequence,
            read: TableReadOptions {
                verify_checksums: options.verify_checksums,
                fill_cache: options.fill_cache,
            },
            opened: Vec::new(),
            last: vec![None; version.level(0).len() + levels],
        }
    }

    /// Steps 1 and 2: leaves nothing open; `stuck` are the keys that wait for a block, by block.
    fn go_as_far_as_memory(
        &mut self,
        asked: &mut [Asked<'_>],
        open: &mut Vec<usize>,
        stuck: &mut Vec<usize>,
    ) -> Result<()> {
        let mut waiting = Vec::with_capacity(open.len());
        let mut without_part = Vec::new();
        while !open.is_empty() || !without_part.is_empty() {
            if open.is_empty() {
                self.read_parts(asked, &mut without_part);
                std::mem::swap(open, &mut without_part);
            }
            waiting.clear();
            for &i in &*open {
                match self.find_block(&mut asked[i])? {
                    Found::Block => waiting.push(i),
                    Found::Part => without_part.push(i),
                    Found::Nothing => {}
                }
            }
            open.clear();
            self.sort_by_block(asked, &mut waiting);
            let mut rest = waiting.as_slice();
            while let Some(&first) = rest.first() {
                let (group, later) = self.split_group(asked, rest);
                rest = later;
                let (table, place) = self.wanted(&asked[first])?;
                match table.cached_block(&place)? {
                    None => stuck.extend_from_slice(group),
                    Some(block) => self.search(asked, group, &block, open)?,
                }
            }
        }
        self.sort_by_block(asked, stuck);
        Ok(())
    }

    /// Brings the parts into the cache for which these keys wait.
    fn read_parts(&self, asked: &[Asked<'_>], keys: &mut [usize]) {
        let mut wanted: Vec<WantedBlock<'_>> = keys
            .iter()
            .filter_map(|&i| asked[i].part)
            .map(|(number, part)| WantedBlock::part(&self.opened[number], part))
            .collect();
        wanted.sort_unstable_by_key(WantedBlock::position);
        wanted.dedup_by_key(|part| part.position());
        for wanted in wanted.chunks(BLOCKS_MAX) {
            read_parts(self.tables.fs(), wanted, self.read);
        }
        keys.sort_unstable();
    }

    /// Step 3: leaves nobody stuck; `open` are the keys that need more.
    fn read_and_search(
        &self,
        asked: &mut [Asked<'_>],
        stuck: &mut Vec<usize>,
        open: &mut Vec<usize>,
    ) -> Result<()> {
        let mut rest = stuck.as_slice();
        while !rest.is_empty() {
            let mut groups: Vec<&[usize]> = Vec::with_capacity(rest.len().min(BLOCKS_MAX));
            let mut wanted = Vec::with_capacity(groups.capacity());
            while let Some(&first) = rest.first().filter(|_| groups.len() < BLOCKS_MAX) {
                let (table, place) = self.wanted(&asked[first])?;
                wanted.push(WantedBlock::new(table, &place));
                let (group, later) = self.split_group(asked, rest);
                groups.push(group);
                rest = later;
            }
            let blocks = read_blocks(self.tables.fs(), &wanted, self.read)?;
            for (group, block) in groups.into_iter().zip(&blocks) {
                self.search(asked, group, block, open)?;
            }
        }
        stuck.clear();
        // Files are found fastest in the order of keys.
        open.sort_unstable();
        Ok(())
    }

    /// Goes on to the next source in which the key needs a block.
    fn find_block(&mut self, asked: &mut Asked<'_>) -> Result<Found> {
        while asked.source < self.last.len() {
            let source = asked.source;
            asked.source += 1;
            let Some(number) = self.table_of(source, asked.key)? else {
                continue;
            };
            let table = &self.opened[number];
            if self.read.fill_cache
                && asked.waits < WAITS_MAX
                && let Some(part) = table.missing_part(asked.key, self.sequence, self.read)
            {
                asked.part = Some((number, part));
                asked.waits += 1;
                asked.source = source;
                return Ok(Found::Part);
            }
            asked.waits = 0;
            cover_by_table(table, asked.key, self.sequence, &mut asked.lookup);
            if let Some(place) = table.place(asked.key, self.sequence, self.read)? {
                asked.wants = Some((number, place));
                return Ok(Found::Block);
            }
            if asked.lookup.source_done() == Step::Done {
                break;
            }
        }
        Ok(Found::Nothing)
    }

    /// The table of this source that may hold the key: its number in `opened`.
    #[inline]
    fn table_of(&mut self, source: usize, key: &[u8]) -> Result<Option<usize>> {
        let order = self.order;
        let covers = |file: &FileMeta| !file.ends_before(order, key) && !file.starts_after(order, key);
        if let Some((file, number)) = self.last[source]
            && covers(file)
        {
            return Ok(Some(number));
        }
        let level0 = self.version.level(0).files();
        let file = match level0.get(source) {
            Some(file) => Some(file).filter(|file| covers(file) && file.sequence_min <= self.sequence),
            None => self.version.level(1 + source - level0.len()).find(order, key),
        };
        let Some(file) = file else { return Ok(None) };
        let number = self.opened.len();
        self.opened.push(self.tables.get(file, order)?);
        self.last[source] = Some((file, number));
        Ok(Some(number))
    }

    fn wanted(&self, asked: &Asked<'_>) -> Result<(&Table, Place)> {
        match asked.wants {
            Some((number, place)) => Ok((&*self.opened[number], place)),
            None => Err(Error::bug("a key waits for no block")),
        }
    }

    /// Names the block that a key waits for: table and offset.
    #[inline]
    fn block_of(&self, asked: &Asked<'_>) -> (u64, u64) {
        asked.wants.as_ref().map_or((0, 0), |(number, place)| {
            (self.opened[*number].number(), place.handle().offset)
        })
    }

    fn sort_by_block(&self, asked: &[Asked<'_>], keys: &mut [usize]) {
        keys.sort_unstable_by_key(|&i| (self.block_of(&asked[i]), i));
    }

    /// The keys that wait for the same block as the first, and the rest.
    fn split_group<'k>(&self, asked: &[Asked<'_>], keys: &'k [usize]) -> (&'k [usize], &'k [usize]) {
        let block = keys.first().map(|&i| self.block_of(&asked[i]));
        let same = |&&i: &&usize| Some(self.block_of(&asked[i])) == block;
        keys.split_at(keys.iter().take_while(same).count())
    }

    /// Searches the block for the keys of a group that waits for it; those that need more are open again.
    fn search(
        &self,
        asked: &mut [Asked<'_>],
        group: &[usize],
        block: &Block,
        open: &mut Vec<usize>,
    ) -> Result<()> {
        for &i in group {
            let Asked {
                key, lookup, wants, ..
            } = &mut asked[i];
            let Some((number, place)) = wants.take() else {
                return Err(Error::bug("a key waits for no block"));
            };
            let table = &self.opened[number];
            if in_block(table, (&place, block), key, self.sequence, self.read, lookup)? == Step::Continue {
                open.push(i);
            }
        }
        Ok(())
    }
}
