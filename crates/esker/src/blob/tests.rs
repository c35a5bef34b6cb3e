//! What is written is read in every way; what is damaged or pointed to wrongly is an error with its place.

use std::path::Path;
use std::sync::Arc;

use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::{CreateOptions, Env, Fs};
use proptest::prelude::*;

use super::testing::{CountingFile, DATABASE, open, values, write};
use super::*;
use crate::cache::SharedBytes;
use crate::error::ErrorKind;
use crate::options::Compression;

const KINDS: [Compression; 5] = [
    Compression::None,
    Compression::Snappy,
    Compression::Zlib,
    Compression::Lz4,
    Compression::Zstd,
];

fn walked(reader: &BlobReader) -> crate::error::Result<Vec<(BlobPointer, Vec<u8>)>> {
    let mut found = Vec::new();
    reader.walk(|pointer, value| {
        found.push((*pointer, value.to_vec()));
        Ok(())
    })?;
    Ok(found)
}

/// All of them, read together.
fn batched(reader: &BlobReader, pointers: &[BlobPointer]) -> crate::error::Result<Vec<SharedBytes>> {
    let wanted: Vec<_> = pointers
        .iter()
        .map(|pointer| WantedValue { reader, pointer })
        .collect();
    read_values(&*Env::simulated(1).0.fs, &wanted, true)
}

#[test]
fn values_of_all_lengths_come_back_in_every_way() {
    // Empty, small, around the output buffer's 64 KiB, and beyond the walk's chunk.
    let lens = [0, 1, 800, 65_535, 65_536, 65_537, 3, 1_200_000, 0, 5000];
    let values = values(30, |i| lens[i as usize % lens.len()]);
    let raw: u64 = values.iter().map(|value| value.len() as u64).sum();
    for kind in KINDS {
        let (bytes, pointers, summary) = write(22, kind, &values);
        assert_eq!((summary.records, summary.raw_bytes), (30, raw));
        assert_eq!(
            summary.file_bytes,
            summary.record_bytes + (HEADER_LEN + FOOTER_LEN) as u64
        );
        let least = raw + 30 * RECORD_HEADER_LEN as u64;
        assert_eq!(
            summary.record_bytes < least,
            kind != Compression::None,
            "{kind:?}"
        );
        let (reader, file) = open(22, bytes).expect("whole");
        let mut windows = BlobWindows::new(WindowOptions::SCAN);
        for (pointer, value) in pointers.iter().zip(&values) {
            let before = file.reads();
            assert_eq!(&reader.read(pointer, true).expect("there")[..], value);
            assert_eq!(file.reads(), before + 1, "one read of the file");
            assert_eq!(windows.get(&reader, pointer, true).expect("there"), value);
        }
        let before = file.reads();
        let together = batched(&reader, &pointers).expect("there");
        assert!(file.reads() - before < 30, "neighbours are one read");
        for (found, value) in together.iter().zip(&values) {
            assert_eq!(found[..], value[..]);
            let alone = value.len() + RECORD_HEADER_LEN;
            assert!(found.backing_len() <= alone, "neighbours are kept alive");
        }
        assert_eq!(together.len(), 30);
        let all: Vec<_> = pointers.into_iter().zip(values.iter().cloned()).collect();
        assert!(walked(&reader).expect("whole") == all);
    }
}

/// The copy of all records of a file, each read by itself, is the file that was written from the values under that number.
#[test]
fn records_are_copied_as_they_are_stored() {
    let lens = [0, 1, 800, 65_535, 65_536, 3, 1_200_000];
    let values = values(14, |i| lens[i as usize % lens.len()]);
    for kind in KINDS {
        let (bytes, pointers, summary) = write(22, kind, &values);
        let (expected, _, _) = write(23, kind, &values);
        let (reader, _) = open(22, bytes.clone()).expect("whole");
        let (env, _) = Env::simulated(1);
        let path = Path::new("/copy.blob");
        let file = env.fs.create(path, CreateOptions::default()).expect("a file");
        let mut copy = BlobWriter::new(file, path, DATABASE, 23, Compression::None).expect("empty");
        for from in &pointers {
            let record = &bytes[from.offset as usize..][..from.bytes as usize];
            let to = copy.copy(&reader, from, record).expect("whole");
            assert_eq!((to.file, to.offset, to.bytes), (23, from.offset, from.bytes));
        }
        assert_eq!(copy.finish(true).expect("memory takes it"), summary);
        assert!(env.fs.read_all(path).expect("the file") == expected, "{kind:?}");
    }
}

#[test]
fn a_damaged_record_is_not_copied() {
    let (bytes, pointers, _) = write(22, Compression::Lz4, &[[7; 900]]);
    let (reader, _) = open(22, bytes.clone()).expect("whole");
    let record = &bytes[pointers[0].offset as usize..][..pointers[0].bytes as usize];
    let (env, _) = Env::simulated(1);
    let path = Path::new("/copy.blob");
    let file = env.fs.create(path, CreateOptions::default()).expect("a file");
    let mut copy = BlobWriter::new(file, path, DATABASE, 23, Compression::None).expect("empty");
    let mut damaged: Vec<Vec<u8>> = (0..record.len() * 8)
        .map(|bit| {
            let mut record = record.to_vec();
            record[bit / 8] ^= 1 << (bit % 8);
            record
        })
        .collect();
    damaged.extend((0..record.len()).map(|len| record[..len].to_vec()));
    for record in damaged {
        let error = copy.copy(&reader, &pointers[0], &record).expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.offset(), Some(pointers[0].offset));
    }
    assert_eq!(copy.records(), 0);
}

#[test]
fn a_file_without_values_is_whole() {
    let (bytes, _, summary) = write::<Vec<u8>>(22, Compression::Lz4, &[]);
    assert_eq!(summary.file_bytes as usize, HEADER_LEN + FOOTER_LEN);
    let (reader, _) = open(22, bytes).expect("whole");
    assert_eq!(walked(&reader).expect("whole"), []);
}

#[test]
fn no_bit_of_a_file_may_flip_unnoticed_and_the_place_is_named() {
    let values = values(5, |i| 40 * i as usize);
    for kind in [Compression::None, Compression::Lz4] {
        let (whole, pointers, summary) = write(22, kind, &values);
        let records_end = (summary.file_bytes as usize - FOOTER_LEN) as u64;
        for bit in 0..whole.len() * 8 {
            let at = bit as u64 / 8;
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = pointers
                .iter()
                .position(|pointer| (pointer.offset..pointer.offset + pointer.bytes).contains(&at));
            let opened = open(22, bytes);
            let Some(damaged) = damaged else {
                let error = opened.expect_err("a damaged end");
                assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
                assert_eq!(error.offset(), Some(if at < 32 { 0 } else { records_end }));
                continue;
            };
            let (reader, _) = opened.expect("its ends are whole");
            let mut windows = BlobWindows::new(WindowOptions::SCAN);
            for (i, pointer) in pointers.iter().enumerate() {
                let alone = reader.read(pointer, true);
                let windowed = windows.get(&reader, pointer, true).map(<[u8]>::to_vec);
                if i != damaged {
                    assert_eq!(&alone.expect("another record")[..], values[i]);
                    assert_eq!(windowed.expect("another record"), values[i]);
                    continue;
                }
                for error in [alone.expect_err("damaged"), windowed.expect_err("damaged")] {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
                    assert_eq!(error.offset(), Some(pointer.offset));
                    assert_eq!(error.file(), Some(Path::new("test.blob")));
                }
            }
            for error in [
                walked(&reader).expect_err("damaged"),
                batched(&reader, &pointers).expect_err("damaged"),
            ] {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(error.offset(), Some(pointers[damaged].offset), "bit {bit}");
                assert_eq!(error.file(), Some(Path::new("test.blob")));
            }
        }
    }
}

#[test]
fn a_cut_file_is_corrupt_wherever_it_is_cut() {
    let (whole, ..) = write(22, Compression::None, &values(4, |_| 50));
    for len in 0..whole.len() {
        let error = open(22, whole[..len].to_vec()).expect_err("cut");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{len} bytes");
    }
    let error = open(22, [&whole[..], &[0]].concat()).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_read_that_ends_early_is_corruption_and_one_that_fails_is_not() {
    let (whole, pointers, _) = write(22, Compression::None, &values(4, |_| 5000));
    let path = Path::new("test.blob");
    let (env, _) = Env::simulated(1);
    let faults = FaultFs::new(Arc::clone(&env.fs));
    let mut copy = faults.create(path, CreateOptions::default()).expect("a file");
    copy.append(&whole).expect("appended");
    let short = faults.open(path, esker_env::IoMode::Buffered).expect("there");
    let reader = BlobReader::open(short, path, DATABASE, 22).expect("whole");
    faults.add(Rule::new(Op::Read, Fault::ShortRead).sticky());
    assert_eq!(
        reader.read(&pointers[2], true).expect_err("short").kind(),
        ErrorKind::Corruption
    );
    let mut windows = BlobWindows::new(WindowOptions::SCAN);
    for pointer in &pointers[..2] {
        let error = windows.get(&reader, pointer, true).expect_err("short");
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
    let error = walked(&reader).expect_err("short");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    faults.clear();
    faults.add(Rule::new(Op::Read, Fault::Eio).sticky());
    assert_eq!(
        reader.read(&pointers[2], true).expect_err("broken").kind(),
        ErrorKind::Io
    );
    faults.clear();
    assert_eq!(walked(&reader).expect("whole").len(), 4);
}

#[test]
fn a_file_of_another_name_or_database_is_refused() {
    let (whole, ..) = write(22, Compression::None, &[b"value"]);
    let as_ids = |database, number| {
        let file = Arc::new(CountingFile {
            bytes: whole.clone(),
            ..CountingFile::default()
        });
        BlobReader::open(file, Path::new("test.blob"), database, number).map(|reader| reader.number())
    };
    assert_eq!(as_ids(DATABASE, 22).expect("its own"), 22);
    for (database, number) in [(DATABASE, 23), (DATABASE + 1, 22)] {
        let error = as_ids(database, number).expect_err("another's");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.file(), Some(Path::new("test.blob")));
    }
    let (other, ..) = write(23, Compression::None, &[b"value"]);
    let mixed = [
        &whole[..whole.len() - FOOTER_LEN],
        &other[other.len() - FOOTER_LEN..],
    ]
    .concat();
    let error = open(22, mixed).expect_err("another's footer");
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_record_in_another_place_or_file_is_noticed() {
    let same = [b"the same value", b"the same value"];
    let (mut swapped, pointers, _) = write(22, Compression::None, &same);
    let (first, second) = (pointers[0].offset as usize, pointers[1].offset as usize);
    let bytes = pointers[0].bytes as usize;
    let record = swapped[first..first + bytes].to_vec();
    swapped[second..second + bytes].copy_from_slice(&record);
    let (reader, _) = open(22, swapped).expect("its ends are whole");
    assert!(reader.read(&pointers[0], true).is_ok());
    assert!(reader.read(&pointers[1], true).is_err());
    let (other, ..) = write(23, Compression::None, &same);
    let (mut whole, ..) = write(22, Compression::None, &same);
    whole[first..first + bytes].copy_from_slice(&other[first..first + bytes]);
    let (reader, _) = open(22, whole).expect("its ends are whole");
    assert!(reader.read(&pointers[0], true).is_err());
    assert!(reader.read(&pointers[1], true).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn wrong_pointers_are_corruption(offset in 0..3000_u64, bytes in 0..3000_u64, file in 21..24_u64, huge: u64) {
        let (whole, pointers, _) = write(22, Compression::None, &values(20, |i| 20 + i as usize));
        let (reader, counted) = open(22, whole).expect("whole");
        let mut windows = BlobWindows::new(WindowOptions::SCAN);
        for wrong in [
            BlobPointer { file, offset, bytes },
            BlobPointer { file: 22, offset, bytes: pointers[3].bytes },
            BlobPointer { file: 22, offset: pointers[3].offset, bytes },
            BlobPointer { file, ..pointers[3] },
            BlobPointer { file: 22, offset: huge, bytes },
            BlobPointer { file: 22, offset, bytes: huge },
        ] {
            if pointers.contains(&wrong) {
                continue;
            }
            for error in [
                reader.read(&wrong, true).err(),
                windows.get(&reader, &wrong, true).err(),
            ] {
                let error = error.expect("nothing is there");
                prop_assert_eq!(error.kind(), ErrorKind::Corruption);
                prop_assert_eq!(error.offset(), Some(wrong.offset));
            }
        }
        // A pointer out of the file costs no read.
        let before = counted.reads();
        let outside = BlobPointer { file: 22, offset: 32, bytes: 1 << 32 };
        prop_assert!(reader.read(&outside, true).is_err());
        prop_assert_eq!(counted.reads(), before);
    }

    #[test]
    fn windows_give_what_single_reads_give(
        steps in prop::collection::vec((0..4_usize, 0..1500_usize, 0..6_u8), 1..300),
        total_kib in 8..300_usize,
        files_max in 1..6_usize,
        lz4: bool,
    ) {
        let kind = if lz4 { Compression::Lz4 } else { Compression::None };
        let values: Vec<_> = values(1500, |i| if i % 97 == 5 { 40_000 } else { 100 + (i % 7) as usize * 50 });
        let files: Vec<_> = (0..4).map(|i| {
            let (bytes, pointers, _) = write(i, kind, &values);
            (open(i, bytes).expect("whole").0, pointers)
        }).collect();
        let options = WindowOptions {
            window_bytes_max: 64 << 10,
            total_bytes_max: total_kib << 10,
            files_max,
        };
        let mut windows = BlobWindows::new(options);
        let mut at = [0; 4];
        for (file, jump, step) in steps {
            at[file] = match step {
                0 => jump,
                1 | 2 => (at[file] + 1) % 1500,
                3 => (at[file] + jump % 20) % 1500,
                _ => at[file].saturating_sub(1),
            };
            let (reader, pointers) = &files[file];
            let value = windows.get(reader, &pointers[at[file]], true).expect("there");
            prop_assert!(value == values[at[file]]);
            prop_assert!(windows.memory_bytes() <= options.total_bytes_max);
        }
    }
}

const ROWS: u64 = 4000;

fn rows() -> (Arc<BlobReader>, Arc<CountingFile>, Vec<BlobPointer>) {
    let (bytes, pointers, _) = write(22, Compression::None, &values(ROWS, |_| 800));
    let (reader, file) = open(22, bytes).expect("whole");
    (reader, file, pointers)
}

fn read_all<'a>(
    windows: &mut BlobWindows,
    reader: &BlobReader,
    pointers: impl IntoIterator<Item = &'a BlobPointer>,
) {
    for pointer in pointers {
        windows.get(reader, pointer, true).expect("there");
    }
}

#[test]
fn reading_in_order_takes_few_large_reads() {
    let (reader, file, pointers) = rows();
    // One record, then windows of 16, 32, … 256 KiB and so on; a partial record at the end of each is read again.
    let windows_of = |max: u64| {
        let (mut left, mut size, mut reads) = (reader.records_end(), 16 << 10, 1);
        while left > 0 {
            left = left.saturating_sub(size - 809);
            size = (size * 2).min(max);
            reads += 1;
        }
        reads
    };
    for options in [WindowOptions::SCAN, WindowOptions::COMPACTION] {
        for backward in [false, true] {
            let before = file.reads();
            let mut windows = BlobWindows::new(options);
            if backward {
                read_all(&mut windows, &reader, pointers.iter().rev());
            } else {
                read_all(&mut windows, &reader, &pointers);
            }
            let most = windows_of(options.window_bytes_max as u64) + u64::from(backward);
            let reads = file.reads() - before;
            assert!(reads <= most, "{reads} reads, at most {most}");
            assert_eq!(windows.reads().reads, reads);
            let bytes = windows.reads().bytes;
            assert!(bytes < reader.records_end() * 21 / 20, "{bytes} bytes");
        }
    }
}

#[test]
fn gaps_inside_windows_are_free_and_far_jumps_read_one_record() {
    let (reader, file, pointers) = rows();
    let mut windows = BlobWindows::new(WindowOptions::SCAN);
    read_all(&mut windows, &reader, pointers.iter().step_by(10));
    assert!(file.reads() < 30, "{} reads", file.reads());
    // 400 records are 316 KiB: farther than a window reaches.
    let before = file.reads();
    let mut windows = BlobWindows::new(WindowOptions::SCAN);
    read_all(&mut windows, &reader, pointers.iter().step_by(400));
    assert_eq!(file.reads() - before, 10);
    assert_eq!(windows.reads().bytes, 10 * 809);
    assert_eq!(windows.memory_bytes(), 0);
}

#[test]
fn an_odd_read_leaves_the_window_as_it_is() {
    let (reader, file, pointers) = rows();
    let mut windows = BlobWindows::new(WindowOptions::SCAN);
    read_all(&mut windows, &reader, &pointers[1000..1003]);
    let before = file.reads();
    // Far back, then on in the window of 16 KiB, in which 19 more records are.
    read_all(&mut windows, &reader, [&pointers[5]]);
    assert_eq!(file.reads(), before + 1);
    read_all(&mut windows, &reader, &pointers[1003..1015]);
    assert_eq!(file.reads(), before + 1);
}

#[test]
fn a_single_value_is_read_alone() {
    let (reader, file, pointers) = rows();
    for pointer in [&pointers[0], &pointers[1], &pointers[3000]] {
        let mut windows = BlobWindows::new(WindowOptions::COMPACTION);
        read_all(&mut windows, &reader, [pointer]);
        assert_eq!((windows.reads().reads, windows.reads().bytes), (1, 809));
    }
    assert_eq!(file.reads(), 3);
}

#[test]
fn many_files_in_turn_share_the_memory_and_keep_their_windows() {
    let values = values(600, |_| 800);
    let files: Vec<_> = (0..16)
        .map(|number| {
            let (bytes, pointers, _) = write(number, Compression::None, &values);
            (open(number, bytes).expect("whole").0, pointers)
        })
        .collect();
    let options = WindowOptions {
        window_bytes_max: 256 << 10,
        total_bytes_max: 1 << 20,
        files_max: 16,
    };
    let mut windows = BlobWindows::new(options);
    for row in 0..values.len() {
        for (reader, pointers) in &files {
            assert_eq!(
                windows.get(reader, &pointers[row], true).expect("there"),
                values[row]
            );
            assert!(windows.memory_bytes() <= options.total_bytes_max);
        }
    }
    // A share is 52 KiB, so some 64 records a read.
    let reads = windows.reads().reads;
    assert!(reads < 16 * 600 / 30, "{reads} reads");

    // More files than are followed: one by one, but nothing in vain.
    let mut windows = BlobWindows::new(WindowOptions {
        files_max: 8,
        ..options
    });
    for row in 0..20 {
        for (reader, pointers) in &files {
            windows.get(reader, &pointers[row], true).expect("there");
        }
    }
    assert_eq!(windows.reads().bytes, 16 * 20 * 809);
}

#[test]
fn after_a_failed_write_nothing_more_is_taken() {
    for len in [40_000, 100_000] {
        let (env, _) = Env::simulated(1);
        let faults = FaultFs::new(Arc::clone(&env.fs));
        let path = Path::new("/test.blob");
        let file = faults.create(path, CreateOptions::default()).expect("a file");
        let mut writer = BlobWriter::new(file, path, DATABASE, 22, Compression::None).expect("empty");
        faults.add(Rule::new(Op::Append, Fault::Enospc).nth(2).sticky());
        let error = (0..10)
            .find_map(|_| writer.add(&vec![7; len]).err())
            .expect("the device is full");
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(error.file(), Some(path));
        faults.clear();
        assert_eq!(writer.add(b"more").expect_err("failed").kind(), ErrorKind::Bug);
        assert_eq!(writer.finish(true).expect_err("failed").kind(), ErrorKind::Bug);
    }
}

#[test]
fn a_footer_that_counts_wrongly_is_found_by_a_walk() {
    let (mut bytes, ..) = write(22, Compression::None, &[b"value"]);
    let at = bytes.len() - FOOTER_LEN;
    let mut footer = *bytes[at..].first_chunk::<FOOTER_LEN>().expect("a footer");
    let mut counts = BlobFooter::decode(&footer).expect("whole");
    counts.raw_bytes += 1;
    footer.copy_from_slice(&counts.encode());
    bytes[at..].copy_from_slice(&footer);
    let (reader, _) = open(22, bytes).expect("its ends are whole");
    let error = walked(&reader).expect_err("miscounted");
    assert_eq!(
        (error.kind(), error.offset()),
        (ErrorKind::Corruption, Some(at as u64))
    );
}
