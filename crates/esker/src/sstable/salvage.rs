//! What can still be read of a damaged table.
//!
//! Blocks have checksums of their own, and these are bound to the file and to the block's place in it. So
//! - where the index can be read, it says where all data blocks are, and each of them is good or lost by itself;
//! - where it can't, or the footer is gone, blocks are found without it: a block is a stretch behind which its own checksum
//!   stands, and the checksum of a stretch that grows by a byte grows with it. From one block to the next that costs
//!   one pass over the bytes; behind a damage every place is tried, within a bound ([`SEARCH_STEPS_MAX`]).
//!
//! Blocks do not say what they are for. In the second way the data ends where the first index of blocks stands: the entries
//! of one are handles that lead without a gap from block to block in front of it, which no data does by chance.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::block::Block;
use super::file::TableFile;
use super::format::{BLOCK_TRAILER_LEN, BlockHandle, FOOTER_LEN, Footer, HEADER_LEN, check_header};
use super::properties::TableProperties;
use super::tombstones::{RawRangeTombstone, decode_tombstones};
use crate::cache::{BlockCache, SharedBytes};
use crate::codec::place_mask;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, append_internal_key, parse_key, user_key};
use crate::metrics::Metrics;
use crate::options::Compression;

/// Behind a damage, blocks are looked for that are stored in at most so many bytes.
const SEARCH_BLOCK_BYTES_MAX: usize = 64 << 10;
/// Bytes that may be checksummed in search of blocks behind damages, in one table: some ten seconds.
const SEARCH_STEPS_MAX: u64 = 4 << 30;
/// Bytes of one read where the whole file is read.
const READ_BYTES: usize = 64 << 10;

/// A stretch of a table that can't be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostStretch {
    /// Where it begins in the file.
    pub offset: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// The last user key that was read before it; `None`: the table begins with it.
    pub after: Option<Vec<u8>>,
    /// The first user key that was read behind it; `None`: the table ends with it.
    pub before: Option<Vec<u8>>,
}

/// A part of the file where a data block should be.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Block(BlockHandle),
    Lost { offset: u64, bytes: u64 },
}

/// A damaged table, with what was found in it.
#[derive(Debug)]
pub struct TableSalvage {
    file: TableFile,
    pieces: Vec<Piece>,
    /// What it says about itself, if that can be read.
    pub properties: Option<TableProperties>,
    /// The database that wrote it, if header or footer say so.
    pub database_id: Option<u64>,
    /// The range tombstones that can be read, with the numbers that stand in the file.
    pub tombstones: Vec<RawRangeTombstone>,
    /// Whether range tombstones are lost, or may be: nothing is left that says how many there were.
    pub tombstones_lost: bool,
}

impl TableSalvage {
    /// Looks for what is left. `number` is the one in the file's name: that of its checksums unless the footer says
    /// otherwise. Reads index and ends of the file, or without an index all of it, into memory.
    ///
    /// # Errors
    /// `Io` if the file has no length; `Unsupported` if it is whole and of a newer format.
    pub fn open(file: Arc<dyn RandomFile>, path: &Path, number: u64) -> Result<Self> {
        let len = file
            .len()
            .map_err(|error| Error::io("can't read table", error).in_file(path))?;
        let footer = read_footer(&*file, len).map_err(|error| error.in_file(path))?;
        let mut header = [0; HEADER_LEN];
        let read = file.read_exact_at(0, &mut header).ok();
        let from_header = read.and_then(|()| check_header(&header).ok());
        let file = TableFile {
            file,
            path: path.to_owned(),
            number,
            file_id: footer.map_or(number, |footer| footer.file_id),
            blocks_end: len.saturating_sub(footer.map_or(0, |_| FOOTER_LEN as u64)),
            cache: Arc::new(BlockCache::new(1 << 16)),
            metrics: Arc::new(Metrics::default()),
        };
        let mut salvage = Self {
            file,
            pieces: Vec::new(),
            properties: None,
            database_id: footer.map(|footer| footer.database_id).or(from_header),
            tombstones: Vec::new(),
            tombstones_lost: true,
        };
        if let Some(footer) = footer {
            salvage.read_ends(&footer);
        }
        match footer.and_then(|footer| salvage.handles(&footer)) {
            Some(handles) => salvage.pieces = handles.into_iter().map(Piece::Block).collect(),
            None => salvage.search(footer.is_none()),
        }
        Ok(salvage)
    }

    /// Whether the table was written under another number than the one in its name, as far as that can be read.
    pub fn is_renamed(&self) -> bool {
        self.file.file_id != self.file.number
    }

    /// The database that wrote the table, if header or footer say so.
    pub fn database_id_of(file: &dyn RandomFile) -> Option<u64> {
        let mut header = [0; HEADER_LEN];
        let from_header = file.read_exact_at(0, &mut header).ok();
        let from_header = from_header.and_then(|()| check_header(&header).ok());
        from_header.or_else(|| Some(read_footer(file, file.len().ok()?).ok()??.database_id))
    }

    /// Properties and range tombstones, where the footer says that they are.
    fn read_ends(&mut self, footer: &Footer) {
        let properties = self.read(footer.properties);
        self.properties = properties.and_then(|bytes| TableProperties::decode(&bytes));
        if footer.range_tombstones.is_none() {
            self.tombstones_lost = false;
        } else if let Some(found) = self
            .read(footer.range_tombstones)
            .and_then(|bytes| decode_tombstones(&bytes))
        {
            self.tombstones = found;
            self.tombstones_lost = false;
        }
    }

    /// Where the index says that data blocks are; `None` if a part of it can't be read.
    fn handles(&self, footer: &Footer) -> Option<Vec<BlockHandle>> {
        let top = handles_of(&self.block(footer.index)?)?;
        if !footer.index_partitioned {
            return Some(top);
        }
        let mut handles = Vec::new();
        for partition in top {
            handles.extend(handles_of(&self.block(partition)?)?);
        }
        Some(handles)
    }

    /// The contents of a block that is whole.
    fn read(&self, handle: BlockHandle) -> Option<SharedBytes> {
        self.file.read(handle, true).ok()
    }

    fn block(&self, handle: BlockHandle) -> Option<Block> {
        Block::parse(self.read(handle)?)
    }

    /// Finds data blocks without an index; with `ends`, what stands behind them, too.
    fn search(&mut self, ends: bool) {
        let bytes = self.read_all();
        let end = bytes.len();
        let mut search = Search {
            bytes: &bytes,
            file_id: self.file.file_id,
            steps_left: SEARCH_STEPS_MAX,
        };
        let (mut at, mut in_data) = (HEADER_LEN.min(end), true);
        let mut lost_from = None;
        let mut found = HashSet::new();
        while at + BLOCK_TRAILER_LEN < end {
            let Some(handle) = search.block_at(at, lost_from.is_some()) else {
                lost_from.get_or_insert(at);
                at += 1;
                continue;
            };
            let Some(contents) = self.read(handle) else {
                lost_from.get_or_insert(at);
                at += 1;
                continue;
            };
            let block = Block::parse(contents.clone());
            let handles = block.as_ref().and_then(handles_of);
            if in_data && handles.is_some_and(|handles| is_index(&handles, at, &found)) {
                in_data = false;
                lost_from = self.lose(lost_from, at);
            }
            if in_data && block.as_ref().is_some_and(is_data) {
                lost_from = self.lose(lost_from, at);
                self.pieces.push(Piece::Block(handle));
            } else if ends && block.is_none() {
                self.note_end(&contents);
            }
            found.insert((handle.offset, handle.size));
            at = handle.end().map_or(end, |end| end as usize);
        }
        if in_data {
            // No index was seen, so the data may have gone on.
            let from = lost_from.unwrap_or(at);
            self.pieces.push(Piece::Lost {
                offset: from as u64,
                bytes: end.saturating_sub(from) as u64,
            });
        }
        if ends && let Some(properties) = &self.properties {
            self.tombstones_lost = properties.range_tombstones != self.tombstones.len() as u64;
        }
    }

    fn lose(&mut self, from: Option<usize>, to: usize) -> Option<usize> {
        if let Some(from) = from.filter(|&from| from < to) {
            self.pieces.push(Piece::Lost {
                offset: from as u64,
                bytes: (to - from) as u64,
            });
        }
        None
    }

    /// A block behind the data that is none of the sorted ones.
    fn note_end(&mut self, contents: &[u8]) {
        match TableProperties::decode(contents) {
            Some(properties) if !properties.comparator.is_empty() => self.properties = Some(properties),
            _ => {
                if let Some(tombstones) = decode_tombstones(contents).filter(|found| !found.is_empty()) {
                    self.tombstones = tombstones;
                }
            }
        }
    }

    /// The whole file; what the device does not give is zero.
    fn read_all(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.file.blocks_end).unwrap_or(0)];
        for (i, part) in bytes.chunks_mut(READ_BYTES).enumerate() {
            let offset = (i * READ_BYTES) as u64;
            if self.file.file.read_exact_at(offset, part).is_err() {
                part.fill(0);
            }
        }
        bytes
    }

    /// Gives internal key and value of every entry that can be read to `row`, in order, with `shift` added to the sequence
    /// number; and says what was lost between them. A block whose entries are no rows or out of order is lost.
    ///
    /// # Errors
    /// What `row` says.
    pub fn rows(
        &self,
        order: &KeyOrder,
        shift: Sequence,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<Vec<LostStretch>> {
        let mut lost: Vec<LostStretch> = Vec::new();
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for piece in &self.pieces {
            let good = match piece {
                Piece::Block(handle) => self
                    .block(*handle)
                    .filter(|block| is_data(block) && follows(order, &last, block)),
                Piece::Lost { .. } => None,
            };
            let Some(block) = good else {
                let (offset, bytes) = match *piece {
                    Piece::Block(handle) => (handle.offset, handle.size + BLOCK_TRAILER_LEN as u64),
                    Piece::Lost { offset, bytes } => (offset, bytes),
                };
                match lost.last_mut().filter(|stretch| stretch.before.is_none()) {
                    Some(stretch) => stretch.bytes += bytes,
                    None => lost.push(LostStretch {
                        offset,
                        bytes,
                        after: (!last.is_empty()).then(|| user_key(&last).to_vec()),
                        before: None,
                    }),
                }
                continue;
            };
            for i in 0..block.len() {
                key.clear();
                block.append_key(i, &mut key);
                std::mem::swap(&mut key, &mut last);
                if let Some(stretch) = lost.last_mut().filter(|stretch| stretch.before.is_none()) {
                    stretch.before = Some(user_key(&last).to_vec());
                }
                match parse_key(&last).filter(|_| shift > 0) {
                    None => row(&last, block.value(i))?,
                    Some(parsed) => {
                        let sequence = parsed.sequence.saturating_add(shift).min(SEQUENCE_MAX);
                        key.clear();
                        append_internal_key(&mut key, parsed.user_key, sequence, parsed.kind);
                        row(&key, block.value(i))?;
                    }
                }
            }
        }
        Ok(lost)
    }
}

/// The footer; `None` if it is damaged.
fn read_footer(file: &dyn RandomFile, len: u64) -> Result<Option<Footer>> {
    let mut bytes = [0; FOOTER_LEN];
    let Some(at) = len.checked_sub(FOOTER_LEN as u64) else {
        return Ok(None);
    };
    if file.read_exact_at(at, &mut bytes).is_err() {
        return Ok(None);
    }
    match Footer::decode(&bytes) {
        Ok(footer) => Ok(Some(footer)),
        Err(error) if error.kind() == crate::error::ErrorKind::Unsupported => Err(error),
        Err(_) => Ok(None),
    }
}

/// The values of a block as handles, if all are.
fn handles_of(block: &Block) -> Option<Vec<BlockHandle>> {
    (0..block.len())
        .map(|i| BlockHandle::parse(block.value(i)))
        .collect()
}

/// Whether a block at `at` with these handles for values is an index; `found`: offsets and sizes of blocks in front of it.
fn is_index(handles: &[BlockHandle], at: usize, found: &HashSet<(u64, u64)>) -> bool {
    let (Some(first), Some(end)) = (handles.first(), handles.last().and_then(BlockHandle::end)) else {
        return false;
    };
    let linked = handles
        .windows(2)
        .all(|pair| pair[0].end() == Some(pair[1].offset));
    let at = at as u64;
    let is_known =
        first.offset == HEADER_LEN as u64 || end == at || found.contains(&(first.offset, first.size));
    linked && end <= at && (handles.len() > 1 || is_known)
}

/// Whether all entries are those of a table.
fn is_data(block: &Block) -> bool {
    let mut key = Vec::new();
    let is_row = |i: usize| {
        key.clear();
        block.append_key(i, &mut key);
        parse_key(&key).is_some_and(|key| key.kind != ValueKind::RangeDelete)
    };
    !block.is_empty() && (0..block.len()).all(is_row)
}

/// Whether the entries come in order, behind `last`.
fn follows(order: &KeyOrder, last: &[u8], block: &Block) -> bool {
    let (mut before, mut key) = (last.to_vec(), Vec::new());
    (0..block.len()).all(|i| {
        key.clear();
        block.append_key(i, &mut key);
        let follows = before.is_empty() || order.compare_internal(&before, &key).is_lt();
        std::mem::swap(&mut before, &mut key);
        follows
    })
}

/// Part of [`fuzz_table`](super::fuzz_table): what is found in any bytes is in order. Gives the number of rows, and of
/// stretches that are lost.
pub(super) fn fuzz_salvage(file: Arc<dyn RandomFile>) -> Option<(u64, usize)> {
    let salvage = TableSalvage::open(file, Path::new("fuzz.sst"), 1).ok()?;
    let (mut rows, mut last) = (0, Vec::new());
    let order = KeyOrder::Bytewise;
    let lost = salvage.rows(&order, 0, |key, _| {
        assert!(
            last.is_empty() || order.compare_internal(&last, key).is_lt(),
            "rows were salvaged out of order"
        );
        rows += 1;
        last = key.to_vec();
        Ok(())
    });
    Some((rows, lost.ok()?.len()))
}

/// Looks for blocks by their checksums.
struct Search<'a> {
    bytes: &'a [u8],
    file_id: u64,
    steps_left: u64,
}

impl Search<'_> {
    /// The block that begins at `at`. `behind_damage`: nothing says that one does.
    fn block_at(&mut self, at: usize, behind_damage: bool) -> Option<BlockHandle> {
        let rest = self.bytes.get(at..)?;
        let stored_max = rest.len().checked_sub(4)?;
        let covered_max = if behind_damage {
            if self.steps_left == 0 {
                return None;
            }
            stored_max.min(SEARCH_BLOCK_BYTES_MAX)
        } else {
            stored_max
        };
        let mask = place_mask(self.file_id, at as u64);
        let mut sum = 0;
        for covered in 1..=covered_max {
            let byte = rest[covered - 1];
            sum = crc32c::crc32c_append(sum, &[byte]);
            if covered > 1
                && Compression::from_u8(byte).is_some()
                && rest[covered..]
                    .first_chunk()
                    .map(|found| u32::from_le_bytes(*found))
                    == Some(sum ^ mask)
            {
                let size = covered as u64 - 1;
                return Some(BlockHandle {
                    offset: at as u64,
                    size,
                });
            }
        }
        if behind_damage {
            self.steps_left = self.steps_left.saturating_sub(covered_max as u64);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuzz::Bytes;
    use super::super::testing::{Entries, small_options, write};
    use super::*;
    use crate::key::internal_key;
    use crate::sstable::TableWriter;

    const FILE_ID: u64 = 22;

    fn entries(count: u32) -> Entries {
        let entry = |i: u32| {
            let key = internal_key(format!("key{i:05}").as_bytes(), u64::from(i) + 1, ValueKind::Put);
            (
                key,
                format!("value of {i}, {}", i.wrapping_mul(2_654_435_761)).into_bytes(),
            )
        };
        (0..count).map(entry).collect()
    }

    fn table(count: u32, compression: Compression, partition_bytes: usize) -> Vec<u8> {
        let mut options = small_options(&KeyOrder::Bytewise);
        options.block_bytes = 256;
        options.compression = compression;
        options.index_partition_bytes = partition_bytes;
        write(&options, &entries(count)).0
    }

    fn salvage(bytes: Vec<u8>) -> (Entries, Vec<LostStretch>, TableSalvage) {
        let file = Arc::new(Bytes(bytes));
        let salvage = TableSalvage::open(file, Path::new("test.sst"), FILE_ID).unwrap();
        let mut rows = Entries::new();
        let lost = salvage.rows(&KeyOrder::Bytewise, 0, |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(())
        });
        (rows, lost.unwrap(), salvage)
    }

    /// All that was given was written, and all that was written was given or lies in what is said to be lost.
    fn check(all: &Entries, rows: &Entries, lost: &[LostStretch]) {
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
        for entry in all {
            let key = user_key(&entry.0);
            let is_lost = lost.iter().any(|stretch| {
                stretch.after.as_deref().is_none_or(|after| after < key)
                    && stretch.before.as_deref().is_none_or(|before| key < before)
            });
            let is_there = rows.binary_search(entry).is_ok();
            assert!(
                is_there != is_lost,
                "{}: read {is_there}, lost {is_lost}",
                key.escape_ascii()
            );
        }
        assert!(rows.iter().all(|row| all.binary_search(row).is_ok()));
    }

    #[test]
    fn a_whole_table_is_read_whole_with_and_without_its_footer() {
        let all = entries(200);
        for compression in [Compression::None, Compression::Lz4] {
            for partition_bytes in [64, 32 << 10] {
                let bytes = table(200, compression, partition_bytes);
                let (rows, lost, salvage) = salvage(bytes.clone());
                assert!(rows == all && lost.is_empty() && !salvage.tombstones_lost);
                let mut cut = bytes.clone();
                cut.truncate(bytes.len() - FOOTER_LEN);
                let (rows, lost, salvage) = self::salvage(cut);
                assert!(rows == all && lost.is_empty(), "{lost:?}");
                assert_eq!(salvage.properties.unwrap().entries, 200);
                assert!(!salvage.tombstones_lost && salvage.database_id == Some(11));
            }
        }
    }

    #[test]
    fn a_damaged_byte_costs_its_own_block() {
        let all = entries(120);
        let bytes = table(120, Compression::None, 64);
        for without_footer in [false, true] {
            for at in (0..bytes.len()).step_by(7) {
                let mut bytes = bytes.clone();
                if without_footer {
                    let end = bytes.len();
                    bytes[end - 20] ^= 1;
                }
                bytes[at] ^= 4;
                let (rows, lost, _) = salvage(bytes);
                check(&all, &rows, &lost);
                // Blocks are of twelve rows at most.
                assert!(rows.len() >= all.len() - 12, "byte {at}: {} rows", rows.len());
            }
        }
    }

    #[test]
    fn a_cut_table_gives_what_stands_before_the_cut() {
        let all = entries(120);
        let bytes = table(120, Compression::None, 32 << 10);
        let mut before = 0;
        for len in (0..bytes.len()).step_by(101) {
            let (rows, lost, _) = salvage(bytes[..len].to_vec());
            check(&all, &rows, &lost);
            assert!(rows.len() >= before, "a longer front gives no less");
            before = rows.len();
        }
        assert_eq!(before, all.len());
    }

    #[test]
    fn range_tombstones_are_found_without_a_footer_and_missed_where_they_are_lost() {
        let file = super::super::testing::MemWriter::default();
        let options = small_options(&KeyOrder::Bytewise);
        let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("test.sst"), options);
        for (key, value) in entries(20) {
            writer.add(&key, &value).unwrap();
        }
        writer.add_range_tombstone(b"key00003", b"key00010", 77);
        writer.finish(true).unwrap();
        let mut bytes = file.take();
        let end = bytes.len() - FOOTER_LEN;
        let at = bytes
            .windows(16)
            .rposition(|part| part.ends_with(b"key00010"))
            .unwrap()
            + 10;
        bytes.truncate(end);
        let (_, _, found) = salvage(bytes.clone());
        assert_eq!(
            found.tombstones,
            [(b"key00003".to_vec(), b"key00010".to_vec(), 77)]
        );
        assert!(!found.tombstones_lost);
        bytes[at] ^= 1;
        let (rows, _, missed) = salvage(bytes);
        assert!(missed.tombstones_lost && missed.tombstones.is_empty());
        assert_eq!(rows.len(), 20);
    }

    #[test]
    fn sequence_numbers_are_shifted() {
        let salvage = TableSalvage::open(
            Arc::new(Bytes(table(3, Compression::None, 4096))),
            Path::new("test.sst"),
            FILE_ID,
        );
        let mut sequences = Vec::new();
        let lost = salvage.unwrap().rows(&KeyOrder::Bytewise, 40, |key, _| {
            sequences.push(parse_key(key).unwrap().sequence);
            Ok(())
        });
        assert!(lost.unwrap().is_empty());
        assert_eq!(sequences, [41, 42, 43]);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let noise = |seed: u64| {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            (0..2000).map(|_| next()).collect::<Vec<u8>>()
        };
        for seed in 0..20 {
            let (rows, lost, _) = salvage(noise(seed));
            assert!(rows.is_empty() && lost.len() == 1);
        }
        assert!(salvage(Vec::new()).0.is_empty());
    }
}
