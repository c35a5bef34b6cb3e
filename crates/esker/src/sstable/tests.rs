//! Whole tables: what is written comes back by every way of reading; damage is noticed and named.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::testing::{Entries, MemWriter, open, open_with, small_options, write};
use super::*;
use crate::ErrorKind;
use crate::cache::BlockCache;
use crate::key::{
    Cursor, KeyOrder, ReverseBytewiseComparator, SEQUENCE_MAX, ValueKind, internal_key, parse_key, user_key,
};
use crate::options::{Compression, PrefixExtractor};

const COMPRESSIONS: [Compression; 5] = [
    Compression::None,
    Compression::Snappy,
    Compression::Zlib,
    Compression::Lz4,
    Compression::Zstd,
];

fn reverse() -> KeyOrder {
    KeyOrder::Custom(Arc::new(ReverseBytewiseComparator))
}

fn sorted(order: &KeyOrder, mut entries: Entries) -> Entries {
    entries.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

/// `keys` keys of ten bytes, every third with several versions.
fn plain_entries(keys: u64, value_len: usize) -> Entries {
    let mut entries = Entries::new();
    for i in 0..keys {
        let key = format!("key{:07}", i * 2);
        let versions = if i % 3 == 0 { 1 + i % 7 } else { 1 };
        for version in 0..versions {
            let kind = if i % 11 == 5 {
                ValueKind::Delete
            } else {
                ValueKind::Put
            };
            let mut value = format!("{key}@{version}").into_bytes();
            value.resize(value_len.max(1), b'.');
            entries.push((internal_key(key.as_bytes(), 1000 - version, kind), value));
        }
    }
    sorted(&KeyOrder::Bytewise, entries)
}

fn cursors(table: &Arc<Table>) -> Vec<TableCursor> {
    let base = CursorOptions::default();
    let no_fill = TableReadOptions {
        fill_cache: false,
        ..TableReadOptions::default()
    };
    [
        base.clone(),
        CursorOptions {
            purpose: Purpose::Compaction,
            ..base.clone()
        },
        CursorOptions {
            readahead_bytes: 5000,
            read: no_fill,
            ..base.clone()
        },
        CursorOptions {
            upper_bound: Some(b"key0000100".to_vec()),
            ..base
        },
    ]
    .map(|options| table.cursor(options))
    .into()
}

fn assert_at(cursor: &TableCursor, expected: Option<&(Vec<u8>, Vec<u8>)>) {
    assert_eq!(cursor.valid(), expected.is_some());
    if let Some((key, value)) = expected {
        assert_eq!(cursor.key(), key);
        assert_eq!(cursor.value(), value);
        assert_eq!(&*cursor.pin_value(), value.as_slice());
    }
}

/// Everything a cursor can do agrees with the sorted vector.
fn check_cursor(cursor: &mut TableCursor, order: &KeyOrder, entries: &Entries, targets: &[Vec<u8>]) {
    cursor.seek_to_first().expect("whole");
    for entry in entries {
        assert_at(cursor, Some(entry));
        cursor.next().expect("whole");
    }
    assert_at(cursor, None);
    cursor.seek_to_last().expect("whole");
    for entry in entries.iter().rev() {
        assert_at(cursor, Some(entry));
        cursor.prev().expect("whole");
    }
    assert_at(cursor, None);
    for target in targets {
        let at = entries.partition_point(|(key, _)| order.compare_internal(key, target).is_lt());
        cursor.seek(target).expect("whole");
        assert_at(cursor, entries.get(at));
        if cursor.valid() {
            cursor.prev().expect("whole");
            assert_at(cursor, at.checked_sub(1).map(|at| &entries[at]));
        }
        let after = entries.partition_point(|(key, _)| order.compare_internal(key, target).is_le());
        cursor.seek_for_prev(target).expect("whole");
        assert_at(cursor, after.checked_sub(1).map(|at| &entries[at]));
        if cursor.valid() {
            cursor.next().expect("whole");
            assert_at(cursor, entries.get(after));
        }
    }
}

type Version = (u64, ValueKind, Vec<u8>);

fn versions(table: &Table, key: &[u8], sequence_max: u64) -> crate::Result<Vec<Version>> {
    let mut found = Vec::new();
    let _ = table.get(
        key,
        sequence_max,
        TableReadOptions::default(),
        |sequence, kind, value| {
            assert_eq!(&*value.pin(), &*value);
            found.push((sequence, kind, value.to_vec()));
            ControlFlow::Continue(())
        },
    )?;
    Ok(found)
}

fn expected_versions(entries: &Entries, key: &[u8], sequence_max: u64) -> Vec<Version> {
    entries
        .iter()
        .filter_map(|(internal, value)| {
            let parsed = parse_key(internal)?;
            (parsed.user_key == key && parsed.sequence <= sequence_max)
                .then(|| (parsed.sequence, parsed.kind, value.clone()))
        })
        .collect()
}

fn raw_entries() -> impl Strategy<Value = Entries> {
    let key = prop::collection::vec(prop::sample::select(vec![0_u8, 1, 97, 98, 255]), 0..12);
    let kind = prop::sample::select(vec![ValueKind::Put, ValueKind::Delete, ValueKind::Merge]);
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0_usize..900).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let entry = (key, 0_u64..30, kind, value)
        .prop_map(|(key, sequence, kind, value)| (internal_key(&key, sequence, kind), value));
    prop::collection::vec(entry, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_table_gives_what_was_put_in(
        raw in raw_entries(),
        probes in prop::collection::vec((prop::collection::vec(96_u8..99, 0..5), 0_u64..31), 1..20),
        block_bytes in prop::sample::select(vec![64_usize, 512, 4096, 65536]),
        partition_bytes in prop::sample::select(vec![64_usize, 300, 32768]),
        compression in prop::sample::select(COMPRESSIONS.to_vec()),
        pinned: bool,
        is_reverse: bool,
        extractor in prop::sample::select(vec![None, Some(PrefixExtractor::Fixed(2)), Some(PrefixExtractor::Capped(3))]),
        whole_key_filter: bool,
    ) {
        let order = if is_reverse { reverse() } else { KeyOrder::Bytewise };
        let entries = sorted(&order, raw);
        let options = TableOptions {
            compression,
            block_bytes,
            index_partition_bytes: partition_bytes,
            filter_partition_bytes: partition_bytes,
            prefix_extractor: extractor,
            whole_key_filter,
            ..small_options(&order)
        };
        let (bytes, summary) = write(&options, &entries);
        prop_assert_eq!(summary.smallest, entries.first().map(|e| e.0.clone()).unwrap_or_default());
        prop_assert_eq!(summary.largest, entries.last().map(|e| e.0.clone()).unwrap_or_default());
        let pin = if pinned { u64::MAX } else { 0 };
        let open_options = TableOpenOptions {
            database_id: Some(11),
            index_pinned_bytes_max: pin,
            filter_pinned_bytes_max: pin,
            ..TableOpenOptions::default()
        };
        let cache = Arc::new(BlockCache::new(64 << 10));
        let table = open_with(bytes, &order, &open_options, &cache).expect("whole");
        table.verify().expect("whole");
        prop_assert_eq!(table.properties(), &summary.properties);
        prop_assert_eq!(table.properties().entries, entries.len() as u64);

        let mut targets: Vec<Vec<u8>> = entries.iter().step_by(3).map(|entry| entry.0.clone()).collect();
        targets.extend(probes.iter().map(|(key, sequence)| internal_key(key, *sequence, ValueKind::SEEK)));
        for mut cursor in cursors(&table) {
            check_cursor(&mut cursor, &order, &entries, &targets);
        }
        for target in &targets {
            let (key, sequence) = (user_key(target), crate::key::trailer(target) >> 8);
            let expected = expected_versions(&entries, key, sequence);
            prop_assert!(expected.is_empty() || table.may_contain(key));
            prop_assert_eq!(versions(&table, key, sequence).expect("whole"), expected);
            let before = table.approximate_bytes(None, Some(target)).expect("whole");
            let behind = table.approximate_bytes(Some(target), None).expect("whole");
            prop_assert_eq!(before + behind, table.properties().data_bytes);
            let other = &targets[targets.len() / 2];
            let up_to_other = table.approximate_bytes(None, Some(other)).expect("whole");
            let between = table.approximate_bytes(Some(target), Some(other)).expect("whole");
            prop_assert_eq!(between, up_to_other.saturating_sub(before));
        }
        for (key, _) in &entries {
            for len in 0..4 {
                for asked in [PrefixExtractor::Fixed(len), PrefixExtractor::Capped(len)] {
                    if let Some(prefix) = asked.prefix(user_key(key)) {
                        let same = SamePrefix::new(asked, prefix);
                        prop_assert!(table.may_contain_prefix(&same, TableReadOptions::default()));
                    }
                }
            }
        }
        let points = table.key_ranges(4).expect("whole");
        prop_assert!(points.len() < 4);
        for pair in points.windows(2) {
            prop_assert!(order.compare(&pair[0].user_key, &pair[1].user_key).is_lt());
            prop_assert!(pair[0].bytes_before <= pair[1].bytes_before);
        }
    }
}

#[test]
fn every_bit_flip_is_noticed_or_harmless() {
    let order = KeyOrder::Bytewise;
    let entries = plain_entries(14, 20);
    let options = TableOptions {
        block_bytes: 200,
        index_partition_bytes: 100,
        filter_partition_bytes: 10,
        compression: Compression::Lz4,
        ..small_options(&order)
    };
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("t"), options);
    for (key, value) in &entries {
        writer.add(key, value).expect("in order");
    }
    writer.add_range_tombstone(b"a", b"b", 3);
    let _ = writer.finish(false).expect("written");
    let good = file.take();
    assert!(open(good.clone(), &order).expect("whole").verify().is_ok());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let Ok(table) = open(bad, &order) else { continue };
        let tombstones: Vec<_> = table.range_tombstones().tombstones().collect();
        assert_eq!(tombstones, [(&b"a"[..], &b"b"[..], 3)]);
        let error = table
            .verify()
            .expect_err("every byte of a table is covered by a checksum");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.file().is_some());
        // What can still be read is right, and blocks that are whole stay readable.
        let mut cursor = table.cursor(CursorOptions::default());
        let mut seen = 0;
        for (key, value) in &entries {
            if cursor.seek(key).is_ok() && cursor.valid() {
                assert_eq!((cursor.key(), cursor.value()), (key.as_slice(), value.as_slice()));
                seen += 1;
            }
            if let Ok(found) = versions(&table, user_key(key), SEQUENCE_MAX) {
                assert_eq!(found, expected_versions(&entries, user_key(key), SEQUENCE_MAX));
            }
        }
        assert!(seen > 0, "bit {bit} took everything");
    }
}

#[test]
fn a_table_cut_anywhere_is_refused() {
    let order = KeyOrder::Bytewise;
    let (good, _) = write(&small_options(&order), &plain_entries(40, 50));
    for len in 0..good.len() {
        let error = open(good[..len].to_vec(), &order).expect_err("cut");
        assert_eq!(error.kind(), ErrorKind::Corruption, "cut to {len}: {error}");
    }
    let longer = [good.as_slice(), b"x"].concat();
    assert!(open(longer, &order).is_err());
}

#[test]
fn large_tables_are_partitioned_and_read_the_same_pinned_or_not() {
    let order = KeyOrder::Bytewise;
    let entries = plain_entries(3000, 60);
    let options = TableOptions {
        block_bytes: 512,
        index_partition_bytes: 2048,
        filter_partition_bytes: 1024,
        ..small_options(&order)
    };
    let (bytes, summary) = write(&options, &entries);
    assert!(summary.properties.data_blocks > 500);
    let mut memory = Vec::new();
    for pin in [0, u64::MAX] {
        let open_options = TableOpenOptions {
            index_pinned_bytes_max: pin,
            filter_pinned_bytes_max: pin,
            ..TableOpenOptions::default()
        };
        let cache = Arc::new(BlockCache::new(4 << 20));
        let table = open_with(bytes.clone(), &order, &open_options, &cache).expect("whole");
        table.verify().expect("whole");
        assert_eq!(
            cache.len(),
            0,
            "compactions and verification stay out of the cache"
        );
        for (key, _) in entries.iter().step_by(17) {
            let key = user_key(key);
            assert_eq!(
                versions(&table, key, 998).expect("whole"),
                expected_versions(&entries, key, 998)
            );
        }
        assert!(table.file.metrics.cache_misses.get() > 0);
        let before = table.file.metrics.cache_misses.get();
        let absent = (0..3000).filter(|i| {
            !versions(&table, format!("key{:07}", i * 2 + 1).as_bytes(), SEQUENCE_MAX)
                .expect("whole")
                .is_empty()
        });
        assert_eq!(absent.count(), 0);
        let negatives = table.file.metrics.filter_negatives.get();
        assert!(
            negatives > 2900,
            "{negatives} of 3000 absent keys were stopped by the filter"
        );
        if pin > 0 {
            let read = table.file.metrics.cache_misses.get() - before;
            assert!(read < 100, "{read} blocks read for absent keys");
        }
        memory.push(table.memory_bytes());
        let points = table.key_ranges(8).expect("whole");
        assert_eq!(points.len(), 7);
        let total = summary.properties.data_bytes;
        for (i, point) in points.iter().enumerate() {
            let ideal = total * (i as u64 + 1) / 8;
            assert!(point.bytes_before.abs_diff(ideal) < total / 50, "{point:?}");
        }
        let key = internal_key(b"key0003000", 0, ValueKind::Put);
        let middle = table.approximate_bytes(None, Some(&key)).expect("whole");
        assert!(middle.abs_diff(total / 2) < total / 10);
    }
    assert!(memory[0] + 8000 < memory[1], "{memory:?}");
}

#[test]
fn prefix_filters_stop_absent_prefixes_also_of_other_extractors() {
    let order = KeyOrder::Bytewise;
    let mut entries = Entries::new();
    for i in 0..2000_u64 {
        let key = format!("{:04}{:04}", i / 10 * 2, i);
        entries.push((internal_key(key.as_bytes(), 1, ValueKind::Put), b"v".to_vec()));
    }
    let options = TableOptions {
        prefix_extractor: Some(PrefixExtractor::Fixed(4)),
        whole_key_filter: false,
        filter_partition_bytes: 32,
        block_bytes: 256,
        ..small_options(&order)
    };
    let (bytes, _) = write(&options, &entries);
    let table = open(bytes, &order).expect("whole");
    for (asked, works) in [
        (PrefixExtractor::Fixed(4), true),
        (PrefixExtractor::Capped(4), true),
        (PrefixExtractor::Fixed(5), true),
        (PrefixExtractor::Fixed(3), false),
    ] {
        let passes = |i: &u32| {
            let key = format!("{i:04}{:04}", i * 5);
            let prefix = asked.prefix(key.as_bytes()).expect("long enough");
            table.may_contain_prefix(&SamePrefix::new(asked, prefix), TableReadOptions::default())
        };
        let passed: Vec<u32> = (0..400).filter(passes).collect();
        assert!(
            (0..400).step_by(2).all(|i| passed.contains(&i)),
            "no prefix is denied that is there"
        );
        assert_eq!(passed.len() < 230, works, "{asked:?}: {} passed", passed.len());
    }
    // A single key, which is shorter than the filter's prefixes.
    let short = SamePrefix::new(PrefixExtractor::Capped(4), b"000");
    assert!(table.may_contain_prefix(&short, TableReadOptions::default()));
    assert!(!table.may_contain(b"00017777"));
}

#[test]
fn range_tombstones_widen_the_bounds_and_come_back() {
    let order = KeyOrder::Bytewise;
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("t"), small_options(&order));
    writer
        .add(&internal_key(b"m", 5, ValueKind::Put), b"v")
        .expect("first");
    writer.add_range_tombstone(b"c", b"x", 9);
    writer.add_range_tombstone(b"d", b"d", 100);
    writer.add_range_tombstone(b"a", b"b", 2);
    assert!(!writer.is_empty());
    let summary = writer.finish(true).expect("written");
    assert_eq!(summary.smallest, internal_key(b"a", 2, ValueKind::RangeDelete));
    assert_eq!(
        summary.largest,
        internal_key(b"x", SEQUENCE_MAX, ValueKind::RangeDelete)
    );
    let properties = &summary.properties;
    assert_eq!(
        (
            properties.sequence_min,
            properties.sequence_max,
            properties.range_tombstones
        ),
        (2, 9, 2)
    );
    let table = open(file.take(), &order).expect("whole");
    let tombstones: Vec<_> = table.range_tombstones().tombstones().collect();
    assert_eq!(tombstones, [(&b"a"[..], &b"b"[..], 2), (&b"c"[..], &b"x"[..], 9)]);
    table.verify().expect("whole");

    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("t"), small_options(&order));
    writer.add_range_tombstone(b"a", b"b", 2);
    let _ = writer.finish(true).expect("written");
    let table = open(file.take(), &order).expect("a table of tombstones alone");
    table.verify().expect("whole");
    assert!(versions(&table, b"a", SEQUENCE_MAX).expect("whole").is_empty());
}

#[test]
fn what_is_out_of_order_or_no_entry_is_refused_for_good() {
    let order = KeyOrder::Bytewise;
    let key = |key: &[u8], sequence| internal_key(key, sequence, ValueKind::Put);
    let bad: [(Vec<u8>, ErrorKind); 5] = [
        (key(b"b", 5), ErrorKind::Bug),
        (key(b"b", 6), ErrorKind::Bug),
        (b"short".to_vec(), ErrorKind::Bug),
        (internal_key(b"c", 1, ValueKind::RangeDelete), ErrorKind::Bug),
        (key(&vec![b'x'; 65537], 1), ErrorKind::InvalidArgument),
    ];
    for (bad, kind) in bad {
        for block_bytes in [64, 4096] {
            let options = TableOptions {
                block_bytes,
                ..small_options(&order)
            };
            let mut writer = TableWriter::new(Box::new(MemWriter::default()), Path::new("t"), options);
            writer.add(&key(b"b", 5), &[b'v'; 100]).expect("first");
            assert_eq!(writer.add(&bad, b"v").expect_err("refused").kind(), kind);
            assert_eq!(
                writer.add(&key(b"z", 1), b"v").expect_err("dead").kind(),
                ErrorKind::Bug
            );
            assert!(writer.finish(true).is_err());
        }
    }
}

#[test]
fn a_full_device_is_named_and_final() {
    let order = KeyOrder::Bytewise;
    let file = MemWriter {
        appends_left: Some(2),
        ..MemWriter::default()
    };
    let mut writer = TableWriter::new(Box::new(file), Path::new("/db/7.sst"), small_options(&order));
    let mut failed = None;
    for (key, value) in plain_entries(2000, 800) {
        if let Err(error) = writer.add(&key, &value) {
            failed.get_or_insert(error);
        }
    }
    let error = failed.expect("the device was full");
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(error.file(), Some(Path::new("/db/7.sst")));
    assert!(writer.finish(true).is_err());
}

#[test]
fn tables_of_others_are_refused_with_what_to_do() {
    let order = KeyOrder::Bytewise;
    let (bytes, _) = write(&small_options(&order), &plain_entries(3, 3));
    let kind = |result: crate::Result<Arc<Table>>| result.expect_err("refused").kind();
    assert_eq!(kind(open(bytes.clone(), &reverse())), ErrorKind::InvalidArgument);
    let other = TableOpenOptions {
        database_id: Some(12),
        ..TableOpenOptions::default()
    };
    let cache = Arc::new(BlockCache::new(1 << 20));
    assert_eq!(
        kind(open_with(bytes, &order, &other, &cache)),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        kind(open(b"some other file".repeat(20), &order)),
        ErrorKind::Corruption
    );
}

#[test]
fn huge_values_get_blocks_of_their_own() {
    let order = KeyOrder::Bytewise;
    for compression in COMPRESSIONS {
        let mut entries = plain_entries(50, 30);
        entries[20].1 = vec![9; 3 << 20];
        entries[21].1 = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let options = TableOptions {
            compression,
            ..small_options(&order)
        };
        let (bytes, summary) = write(&options, &entries);
        if compression != Compression::None {
            assert!(summary.file_bytes < 1 << 20);
        }
        let table = open(bytes, &order).expect("whole");
        for mut cursor in cursors(&table) {
            check_cursor(&mut cursor, &order, &entries, &[]);
        }
    }
}

#[test]
fn a_pinned_value_outlives_the_table_and_the_cache() {
    let order = KeyOrder::Bytewise;
    let (bytes, _) = write(&small_options(&order), &plain_entries(100, 100));
    let table = open(bytes, &order).expect("whole");
    let mut pinned = None;
    let flow = table
        .get(
            b"key0000002",
            SEQUENCE_MAX,
            TableReadOptions::default(),
            |_, _, value| {
                pinned = Some(value.pin());
                ControlFlow::Break(())
            },
        )
        .expect("whole");
    assert!(flow.is_break());
    drop(table);
    assert!(pinned.expect("found").starts_with(b"key0000002@0"));
}

/// About where in the file a key is.
fn offset_of(table: &Table, key: &[u8]) -> u64 {
    24 + table.approximate_bytes(None, Some(key)).expect("whole")
}

#[test]
fn scans_read_ahead_and_stop_at_the_bound() {
    let order = KeyOrder::Bytewise;
    let entries = plain_entries(4000, 200);
    let options = small_options(&order);
    let (bytes, _) = write(&options, &entries);
    let table = open(bytes, &order).expect("whole");
    let bound = CursorOptions {
        upper_bound: Some(b"key0000200".to_vec()),
        read: TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        },
        ..CursorOptions::default()
    };
    let mut cursor = table.cursor(bound);
    cursor.seek_to_first().expect("whole");
    let stop = internal_key(b"key0000200", SEQUENCE_MAX, ValueKind::SEEK);
    while cursor.valid() && order.compare_internal(cursor.key(), &stop).is_lt() {
        cursor.next().expect("whole");
    }
    let limit = offset_of(&table, &stop) + 8192;
    assert!(cursor.window_end() > 16 << 10, "it read ahead");
    assert!(
        cursor.window_end() <= limit,
        "{} past {limit}",
        cursor.window_end()
    );
    // Another bound, and none: what was found for the one before is forgotten.
    for number in [900, 600] {
        let key = format!("key{number:07}").into_bytes();
        cursor.set_upper_bound(Some(&key));
        let from = internal_key(
            format!("key{:07}", number - 200).as_bytes(),
            SEQUENCE_MAX,
            ValueKind::SEEK,
        );
        let stop = internal_key(&key, SEQUENCE_MAX, ValueKind::SEEK);
        cursor.seek(&from).expect("whole");
        while cursor.valid() && order.compare_internal(cursor.key(), &stop).is_lt() {
            cursor.next().expect("whole");
        }
        let (start, limit) = (
            offset_of(&table, &from) + (16 << 10),
            offset_of(&table, &stop) + 8192,
        );
        let end = cursor.window_end();
        assert!(start < end && end <= limit, "{end} not in {start}..{limit}");
    }
    cursor.set_upper_bound(None);
    let from = internal_key(b"key0000600", SEQUENCE_MAX, ValueKind::SEEK);
    cursor.seek(&from).expect("whole");
    for _ in 0..800 {
        cursor.next().expect("whole");
    }
    let key = internal_key(b"key0001500", SEQUENCE_MAX, ValueKind::SEEK);
    assert!(
        cursor.window_end() > offset_of(&table, &key),
        "it reads ahead again"
    );
}

/// Damage under a right checksum: what a defect or an attacker could write.
#[test]
fn no_content_of_a_block_makes_the_reader_panic() {
    let order = KeyOrder::Bytewise;
    let options = TableOptions {
        block_bytes: 120,
        index_partition_bytes: 80,
        filter_partition_bytes: 10,
        ..small_options(&order)
    };
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("t"), options);
    for (key, value) in plain_entries(8, 12) {
        writer.add(&key, &value).expect("in order");
    }
    writer.add_range_tombstone(b"a", b"b", 3);
    let _ = writer.finish(false).expect("written");
    let good = file.take();
    let table = open(good.clone(), &order).expect("whole");
    let footer = table.footer;
    let mut handles = vec![
        footer.index,
        footer.filter,
        footer.range_tombstones,
        footer.properties,
    ];
    for ordinal in 0..table.leaf_count() {
        handles.push(table.handle(&table.index, ordinal).expect("whole"));
        let leaf = table
            .index_leaf(ordinal, TableReadOptions::default())
            .expect("whole");
        handles.extend((0..leaf.len()).map(|i| table.handle(&leaf, i).expect("whole")));
    }
    let filter = table.filter.as_ref().expect("there is one");
    handles.extend((0..filter.index.len()).map(|i| table.handle(&filter.index, i).expect("whole")));
    assert!(handles.len() > 10);
    for handle in handles {
        let (from, len) = (handle.offset as usize, handle.size as usize);
        for at in from..from + len {
            for change in [0x01, 0x80, 0xff] {
                let mut stored = good[from..from + len].to_vec();
                stored[at - from] ^= change;
                format::seal_block(&mut stored, 0, Compression::None, footer.file_id, handle.offset);
                let mut bad = good.clone();
                bad[from..from + stored.len()].copy_from_slice(&stored);
                fuzz_table(&bad, false);
                fuzz_table(&bad, true);
            }
        }
    }
}

#[test]
fn many_threads_read_one_table_through_a_cache_that_is_resized() {
    let order = KeyOrder::Bytewise;
    let entries = plain_entries(2000, 100);
    let (bytes, _) = write(&small_options(&order), &entries);
    let cache = Arc::new(BlockCache::new(64 << 10));
    let options = TableOpenOptions {
        index_pinned_bytes_max: 0,
        filter_pinned_bytes_max: 0,
        ..TableOpenOptions::default()
    };
    let table = open_with(bytes, &order, &options, &cache).expect("whole");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, entries, cache) = (&table, &entries, &cache);
            scope.spawn(move || {
                for i in 0..2000 {
                    let (internal, value) = &entries[(i * 37 + thread * 501) % entries.len()];
                    let sequence = crate::key::trailer(internal) >> 8;
                    let found = versions(table, user_key(internal), sequence).expect("whole");
                    assert_eq!(&found[0].2, value);
                    if i % 200 == 0 {
                        cache.set_capacity(((i as u64 / 200) % 3 + 1) << 15);
                    }
                }
            });
        }
    });
    assert!(cache.used_bytes() <= cache.capacity());
}

#[test]
fn fuzz_entries_take_what_tables_are_made_of() {
    let order = KeyOrder::Bytewise;
    let (bytes, _) = write(&small_options(&order), &plain_entries(60, 40));
    fuzz_table(&bytes, false);
    fuzz_table(b"", true);
    for bytes in bytes.chunks(97) {
        fuzz_block(bytes);
        fuzz_compression(bytes);
        fuzz_filter(bytes);
    }
}

#[test]
fn parts_that_are_missing_are_named_and_brought_in_together() {
    let order = KeyOrder::Bytewise;
    let entries = plain_entries(4000, 20);
    let options = TableOptions {
        block_bytes: 256,
        index_partition_bytes: 512,
        filter_partition_bytes: 512,
        ..small_options(&order)
    };
    let (bytes, _) = write(&options, &entries);
    let nothing_pinned = TableOpenOptions {
        index_pinned_bytes_max: 0,
        filter_pinned_bytes_max: 0,
        ..TableOpenOptions::default()
    };
    let cache = Arc::new(BlockCache::new(4 << 20));
    let table = open_with(bytes, &order, &nothing_pinned, &cache).expect("whole");
    let fs = esker_env::mem::MemFs::new();
    let read = TableReadOptions::default();
    let keys: Vec<&[u8]> = entries
        .iter()
        .step_by(97)
        .map(|entry| user_key(&entry.0))
        .collect();
    for round in 0..2 {
        let missing: Vec<Part> = keys
            .iter()
            .filter_map(|key| table.missing_part(key, SEQUENCE_MAX, read))
            .collect();
        assert!(
            missing.len() > 10,
            "round {round}: filters, then leaves of the index"
        );
        let mut wanted: Vec<WantedBlock<'_>> = missing
            .iter()
            .map(|part| WantedBlock::part(&table, *part))
            .collect();
        wanted.dedup_by_key(|part| part.position());
        let before = cache.len();
        read_parts(&fs, &wanted, read);
        assert_eq!(cache.len(), before + wanted.len());
    }
    let cached = cache.len();
    for key in &keys {
        assert_eq!(table.missing_part(key, SEQUENCE_MAX, read), None);
        let place = table
            .place(key, SEQUENCE_MAX, read)
            .expect("whole")
            .expect("it is there");
        let wanted = [WantedBlock::new(&table, &place)];
        let blocks = read_blocks(
            &fs,
            &wanted,
            TableReadOptions {
                fill_cache: false,
                ..read
            },
        )
        .expect("whole");
        let mut found = 0;
        let _ = table.visit(key, SEQUENCE_MAX, read, &place, &blocks[0], |_, _, _| {
            found += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(found, versions(&table, key, SEQUENCE_MAX).expect("whole").len());
    }
    assert!(cache.len() > cached, "gets read data blocks, but no part again");
    // A key whose filter says no needs no leaf of the index.
    assert_eq!(table.missing_part(b"key0000001", SEQUENCE_MAX, read), None);
}
