//! What enters the cache while a table is written is what a reader would have put there; what leaves is all of it.

use std::ops::ControlFlow;
use std::path::Path;

use super::*;
use crate::key::{KeyOrder, SEQUENCE_MAX, ValueKind, internal_key};
use crate::options::Compression;
use crate::sstable::testing::{MemWriter, open_with, small_options};
use crate::sstable::{TableOptions, TableReadOptions, TableWriter};

/// Under this number `open_with` opens tables.
const NUMBER: u64 = 7;

fn key(i: u64) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// A table of `rows` rows, written beside a cache; `heat` says how hot each is.
fn write(
    options: &TableOptions,
    cache: &Arc<BlockCache>,
    rows: u64,
    heat: impl Fn(u64) -> i64,
) -> (Vec<u8>, u64) {
    let file = MemWriter::default();
    let metrics = Arc::new(Metrics::default());
    let warmer = Warmer::new(Arc::clone(cache), Arc::clone(&metrics), NUMBER);
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("test.sst"), options.clone())
        .with_warmer(Some(warmer));
    for i in 0..rows {
        let key = internal_key(&key(i), 1, ValueKind::Put);
        writer
            .add(&key, format!("value of {i}").as_bytes())
            .expect("in order");
        writer.add_heat(heat(i));
    }
    writer.finish(true).expect("memory takes it");
    (file.take(), metrics.blocks_warmed.get())
}

fn open(bytes: Vec<u8>, options: &TableOpenOptions, cache: &Arc<BlockCache>) -> Arc<Table> {
    open_with(bytes, &KeyOrder::Bytewise, options, cache).expect("whole")
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(64 << 20))
}

/// Index and filter of any size go through the cache.
fn nothing_pinned() -> TableOpenOptions {
    TableOpenOptions {
        index_pinned_bytes_max: 0,
        filter_pinned_bytes_max: 0,
        ..TableOpenOptions::default()
    }
}

fn partitioned() -> TableOptions {
    TableOptions {
        block_bytes: 512,
        index_partition_bytes: 512,
        filter_partition_bytes: 512,
        ..small_options(&KeyOrder::Bytewise)
    }
}

fn read_all(table: &Table, rows: std::ops::Range<u64>) {
    for i in rows {
        let read = TableReadOptions::default();
        let found = table.get(&key(i), SEQUENCE_MAX, read, |_, _, value| {
            assert_eq!(&*value, format!("value of {i}").as_bytes());
            ControlFlow::Break(())
        });
        assert_eq!(found.expect("whole"), ControlFlow::Break(()), "row {i}");
    }
}

fn data_blocks(table: &Table) -> Vec<BlockHandle> {
    let read = TableReadOptions {
        fill_cache: false,
        ..TableReadOptions::default()
    };
    (0..table.leaf_count())
        .flat_map(|ordinal| {
            let leaf = table.index_leaf(ordinal, read).expect("whole");
            table.handles(&leaf).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn what_enters_is_what_a_reader_puts_there() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let options = TableOptions {
            compression,
            ..small_options(&KeyOrder::Bytewise)
        };
        let (warm, cold) = (cache(), cache());
        let (bytes, warmed) = write(&options, &warm, 3000, |_| 1);
        let ours = open(bytes.clone(), &TableOpenOptions::default(), &warm);
        let theirs = open(bytes, &TableOpenOptions::default(), &cold);
        read_all(&ours, 0..3000);
        assert_eq!(ours.file.metrics.cache_misses.get(), 0);
        read_all(&theirs, 0..3000);
        assert_eq!(theirs.file.metrics.cache_misses.get(), warmed);
        // A reader keeps an uncompressed block with its trailer.
        assert!(warm.used_bytes() <= cold.used_bytes() && cold.used_bytes() < warm.used_bytes() * 5 / 4);
        let handles = data_blocks(&ours);
        assert_eq!(handles.len() as u64, warmed);
        for handle in handles {
            let ours = ours.file.take_out(handle).expect("warm");
            let theirs = theirs.file.take_out(handle).expect("read");
            assert_eq!((ours.bytes, ours.words), (theirs.bytes, theirs.words));
        }
        assert!(warm.is_empty() && cold.is_empty());
    }
}

#[test]
fn blocks_enter_by_the_heat_of_most_of_their_rows() {
    let options = small_options(&KeyOrder::Bytewise);
    let cache = cache();
    let (_, warmed) = write(&options, &cache, 3000, |_| -1);
    assert!(cache.is_empty() && warmed == 0);
    // Every third row is hot in the first half, all but every third in the second.
    let (bytes, warmed) = write(&options, &cache, 3000, |i| {
        if (i % 3 == 0) == (i < 1500) { 1 } else { -1 }
    });
    let table = open(bytes, &TableOpenOptions::default(), &cache);
    let handles = data_blocks(&table);
    let is_warm: Vec<bool> = handles
        .iter()
        .map(|&handle| table.file.is_cached(handle))
        .collect();
    let first_warm = is_warm.iter().position(|&warm| warm).expect("some are warm");
    assert!(is_warm[first_warm..].iter().all(|&warm| warm));
    assert!(first_warm * 2 - 1 <= is_warm.len() && first_warm * 2 + 1 >= is_warm.len());
    assert_eq!(warmed as usize, is_warm.len() - first_warm);
}

#[test]
fn partitions_that_an_open_table_does_not_hold_enter_with_hot_blocks() {
    let options = TableOptions {
        block_bytes: 128,
        filter_bits_per_key: 32,
        ..small_options(&KeyOrder::Bytewise)
    };
    let rows = 150_000;
    let cache = cache();
    let (bytes, warmed) = write(&options, &cache, rows, |i| if i < rows / 2 { 1 } else { -1 });
    let table = open(bytes.clone(), &TableOpenOptions::default(), &cache);
    let filter = table.filter.as_ref().expect("a filter");
    assert!(
        table.index_pinned.is_empty() && filter.pinned.is_empty(),
        "they are too large"
    );
    let hot_blocks = warmed as usize - table.leaf_count() - filter.index.len();
    assert!(hot_blocks.abs_diff(data_blocks(&table).len() / 2) <= 1);
    // The block on the border is as it happens to be.
    read_all(&table, 0..rows / 2 - 10);
    assert_eq!(table.file.metrics.cache_misses.get(), 0);
    table.leave_cache();
    assert!(cache.is_empty());
    let (_, warmed) = write(&options, &cache, rows, |_| -1);
    assert_eq!(warmed, 0, "a cold table's partitions stay out");
}

#[test]
fn a_dead_table_takes_its_blocks_along_and_no_others() {
    for (options, open_options) in [
        (small_options(&KeyOrder::Bytewise), TableOpenOptions::default()),
        (partitioned(), TableOpenOptions::default()),
        (partitioned(), nothing_pinned()),
    ] {
        let cache = cache();
        let (bytes, _) = write(&options, &cache, 3000, |_| -1);
        let table = open(bytes, &open_options, &cache);
        read_all(&table, 0..3000);
        let others = BlockKey {
            table: NUMBER + 1,
            offset: data_blocks(&table)[0].offset,
        };
        let block = cache
            .get(BlockKey {
                table: NUMBER,
                ..others
            })
            .expect("read");
        cache.insert(others, block.clone());
        assert!(cache.len() > data_blocks(&table).len());
        table.leave_cache();
        assert_eq!(cache.len(), 1);
        assert!(cache.contains(others));
        // Who holds a block keeps it, and who still has the table can read.
        assert!(Block::from_cached(block, BlockKind::Data).is_some_and(|block| !block.is_empty()));
        read_all(&table, 0..3000);
    }
}

/// Its way to them would be read from the device only to forget them.
#[test]
fn blocks_of_a_partition_that_has_left_stay_until_others_drive_them_out() {
    let cache = cache();
    let (bytes, _) = write(&partitioned(), &cache, 3000, |_| -1);
    let table = open(bytes, &nothing_pinned(), &cache);
    read_all(&table, 0..3000);
    let gone = table.handles(&table.index).next().expect("a partition");
    let leaf = table
        .file
        .take_out(gone)
        .and_then(|leaf| Block::from_cached(leaf, BlockKind::Index));
    let misses = table.file.metrics.cache_misses.get();
    table.leave_cache();
    assert_eq!(cache.len(), leaf.expect("it was read").len());
    assert_eq!(table.file.metrics.cache_misses.get(), misses);
}
