//! The log against every cut, every flipped bit, lost and reordered writes, and recycled files.

use std::path::Path;
use std::sync::Arc;

use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{CreateOptions, Fs, IoMode};
use proptest::prelude::*;

use super::fuzz::Bytes;
use super::*;
use crate::error::ErrorKind;
use crate::options::RecoveryMode::{self, Absolute, PointInTime, SkipCorrupt};

const ID: SegmentId = SegmentId { db_id: 77, number: 5 };
const MODES: [RecoveryMode; 3] = [PointInTime, Absolute, SkipCorrupt];

fn file_path() -> &'static Path {
    Path::new("000005.wal")
}

/// A segment's bytes, and the offsets at which its records end.
fn segment(id: SegmentId, origin: Origin, payloads: &[Vec<u8>], finish: bool) -> (Vec<u8>, Vec<u64>) {
    let fs = MemFs::new();
    let file = fs.create(file_path(), CreateOptions::default()).unwrap();
    let mut writer = WalWriter::new(file, file_path(), id, origin).unwrap();
    let mut ends = Vec::new();
    for payload in payloads {
        let before = writer.len();
        let grown = writer.append(payload).unwrap();
        assert_eq!(writer.len(), before + grown);
        ends.push(writer.len());
    }
    if finish {
        writer.finish(false).unwrap();
    }
    assert_eq!(fs.file_len(file_path()).unwrap(), writer.len());
    (fs.read_all(file_path()).unwrap(), ends)
}

fn read_as(id: SegmentId, bytes: &[u8], mode: RecoveryMode) -> (Vec<Vec<u8>>, crate::error::Result<Report>) {
    let mut records = Vec::new();
    let file = Arc::new(Bytes(bytes.to_vec()));
    let mut reader = match WalReader::new(file, file_path(), id, mode) {
        Ok(reader) => reader,
        Err(error) => return (records, Err(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => records.push(record.payload.to_vec()),
            Ok(None) => return (records, Ok(reader.report())),
            Err(error) => {
                assert_eq!(error.file(), Some(file_path()));
                assert!(error.offset().is_some());
                let again = reader.next().unwrap_err();
                assert_eq!(again.to_string(), error.to_string());
                return (records, Err(error));
            }
        }
    }
}

fn read(bytes: &[u8], mode: RecoveryMode) -> (Vec<Vec<u8>>, crate::error::Result<Report>) {
    read_as(ID, bytes, mode)
}

fn payload(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

/// Short ones, an empty one, one that ends right at a block's end, and ones that cross blocks.
fn various() -> Vec<Vec<u8>> {
    let first = BLOCK_BYTES - SEGMENT_HEADER_BYTES - 3 * FRAGMENT_HEADER_BYTES - 300;
    let lens = [
        300,
        0,
        first,
        10,
        BLOCK_BYTES - 2 * FRAGMENT_HEADER_BYTES - 10 - 5,
        70_000,
        1,
    ];
    lens.iter()
        .zip(1..)
        .map(|(&len, seed)| payload(len, seed))
        .collect()
}

fn small() -> Vec<Vec<u8>> {
    [20, 0, 33, 7]
        .iter()
        .zip(1..)
        .map(|(&len, seed)| payload(len, seed))
        .collect()
}

#[test]
fn records_come_back_in_every_mode() {
    for finish in [false, true] {
        for origin in [Origin::Fresh, Origin::Recycled] {
            let (bytes, ends) = segment(ID, origin, &various(), finish);
            for mode in MODES {
                let (records, report) = read(&bytes, mode);
                assert!(records == various());
                let report = report.unwrap();
                assert_eq!(
                    report.ending,
                    if finish { Ending::Finished } else { Ending::Clean }
                );
                assert_eq!(report.records, records.len() as u64);
                assert_eq!((report.unusable_bytes, report.skipped), (0, Skipped::default()));
                assert!(finish || report.end_offset == *ends.last().unwrap());
            }
        }
    }
}

#[test]
fn a_group_is_the_same_log_by_one_call() {
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let file = fs.create(file_path(), CreateOptions::default()).unwrap();
    let mut writer = WalWriter::new(file, file_path(), ID, Origin::Fresh).unwrap();
    let payloads = various();
    let group: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    writer.append_group(&group).unwrap();
    assert_eq!(fs.calls(Op::Append), 2, "header and group");
    assert_eq!(writer.records(), 7);
    let (bytes, _) = segment(ID, Origin::Fresh, &payloads, false);
    assert!(fs.read_all(file_path()).unwrap() == bytes);
    writer.append(b"one more").unwrap();
    assert_eq!(fs.calls(Op::Append), 3);
    writer.append(&vec![9; 5 << 20]).unwrap();
    let (records, report) = read(&fs.read_all(file_path()).unwrap(), Absolute);
    assert_eq!(report.unwrap().ending, Ending::Clean);
    assert!(records[8].iter().all(|&b| b == 9) && records[8].len() == 5 << 20);
}

#[test]
fn a_log_cut_at_any_byte_gives_the_whole_records_before() {
    let (bytes, ends) = segment(ID, Origin::Fresh, &small(), false);
    for cut in 0..bytes.len() {
        let whole = ends.iter().filter(|&&end| end <= cut as u64).count();
        let is_between = cut == 0 || cut == SEGMENT_HEADER_BYTES || ends.contains(&(cut as u64));
        for mode in [PointInTime, SkipCorrupt] {
            let (records, report) = read(&bytes[..cut], mode);
            assert_eq!(records, small()[..whole], "{mode:?} cut at {cut}");
            let report = report.unwrap();
            let expected = match (cut, is_between) {
                (0, _) => Ending::NotStarted,
                (_, true) => Ending::Clean,
                _ => Ending::Torn,
            };
            assert_eq!(report.ending, expected, "{mode:?} cut at {cut}");
            assert_eq!(report.skipped.count, 0);
            assert_eq!(report.unusable_bytes == 0, is_between);
        }
        let (records, report) = read(&bytes[..cut], Absolute);
        assert_eq!(report.is_ok(), is_between, "cut at {cut}");
        if let Err(error) = report {
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(records, small()[..whole]);
        }
    }
}

#[test]
fn a_long_record_cut_anywhere_is_torn() {
    let (bytes, ends) = segment(ID, Origin::Fresh, &various(), false);
    for cut in (SEGMENT_HEADER_BYTES..bytes.len()).step_by(997) {
        let whole = ends.iter().filter(|&&end| end <= cut as u64).count();
        let (records, report) = read(&bytes[..cut], PointInTime);
        assert!(records == various()[..whole], "cut at {cut}");
        assert_ne!(report.unwrap().ending, Ending::Damaged);
    }
}

#[test]
fn zeros_behind_the_log_are_a_clean_end() {
    for finish in [false, true] {
        let (mut bytes, _) = segment(ID, Origin::Fresh, &small(), finish);
        bytes.resize(300_000, 0);
        for mode in MODES {
            let (records, report) = read(&bytes, mode);
            assert_eq!(records, small());
            assert!(matches!(report.unwrap().ending, Ending::Clean | Ending::Finished));
        }
    }
    for len in [1, 64, 1000, 100_000] {
        let (records, report) = read(&vec![0; len], Absolute);
        assert_eq!((records.len(), report.unwrap().ending), (0, Ending::NotStarted));
    }
}

#[test]
fn a_closed_segment_is_cut_behind_its_last_record_and_marked_only_if_it_was_sealed() {
    for (seal, ending) in [(false, Ending::Clean), (true, Ending::Finished)] {
        let fs = MemFs::new();
        let options = CreateOptions {
            preallocate_bytes: 1 << 20,
            buffer_bytes: 1 << 10,
            ..CreateOptions::default()
        };
        let file = fs.create(file_path(), options).unwrap();
        let mut writer = WalWriter::new(file, file_path(), ID, Origin::Fresh).unwrap();
        let payloads = small();
        let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        writer.append_group(&slices).unwrap();
        if seal {
            writer.seal().unwrap();
        }
        assert!(fs.used_bytes() >= 1 << 20);
        writer.close().unwrap();
        assert_eq!(fs.used_bytes(), writer.len());
        assert_eq!(writer.append(b"late").unwrap_err().kind(), ErrorKind::ReadOnly);
        let (records, report) = read(&fs.read_all(file_path()).unwrap(), Absolute);
        assert_eq!((records, report.unwrap().ending), (small(), ending));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for finish in [false, true] {
        let (bytes, ends) = segment(ID, Origin::Fresh, &small(), finish);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let at = (bit / 8) as u64;
            let hit = ends.iter().position(|&end| at < end).unwrap_or(4);
            let in_header = at < SEGMENT_HEADER_BYTES as u64;

            let (records, report) = read(&flipped, Absolute);
            assert_eq!(report.unwrap_err().kind(), ErrorKind::Corruption, "bit {bit}");
            assert_eq!(records, small()[..if in_header { 0 } else { hit }]);

            let (records, report) = read(&flipped, PointInTime);
            assert_eq!(records, small()[..if in_header { 0 } else { hit }]);
            let is_last = !in_header && hit >= if finish { 4 } else { 3 };
            let expected = if is_last { Ending::Torn } else { Ending::Damaged };
            assert_eq!(report.unwrap().ending, expected, "bit {bit}");

            let (records, report) = read(&flipped, SkipCorrupt);
            let report = report.unwrap();
            let mut expected = small();
            if !in_header && hit < 4 {
                expected.remove(hit);
            }
            assert_eq!(records, expected, "bit {bit}");
            assert_eq!(report.skipped.count, u64::from(!is_last));
            if report.skipped.count > 0 {
                let first = report.skipped.first_offset.unwrap();
                assert!(first <= at && at < first + report.skipped.bytes);
            }
        }
    }
}

#[test]
fn a_damage_inside_a_long_record_costs_that_record_only() {
    let (bytes, ends) = segment(ID, Origin::Fresh, &various(), true);
    // The record before leaves five bytes of its block, which are padding.
    assert_eq!(ends[4] as usize, 2 * BLOCK_BYTES - 5);
    for at in (2 * BLOCK_BYTES..ends[5] as usize - 3).step_by(1009) {
        let mut damaged = bytes.clone();
        damaged[at..at + 3].copy_from_slice(b"!?!");
        let (records, report) = read(&damaged, SkipCorrupt);
        let mut expected = various();
        expected.remove(5);
        assert!(records == expected, "at {at}");
        let report = report.unwrap();
        assert_eq!(report.skipped.count, 1);
        assert_eq!(report.ending, Ending::Finished);
        let (records, report) = read(&damaged, PointInTime);
        assert!(records == various()[..5]);
        assert_eq!(report.unwrap().ending, Ending::Damaged);
        let error = read(&damaged, Absolute).1.unwrap_err();
        assert!(error.offset().unwrap() <= at as u64);
    }
}

#[test]
fn a_lost_page_in_the_middle_is_seen_and_skipped() {
    let payloads: Vec<Vec<u8>> = (0..200).map(|i| payload(700, i)).collect();
    let (bytes, ends) = segment(ID, Origin::Fresh, &payloads, false);
    for page in 1..bytes.len() / 4096 - 1 {
        let mut holed = bytes.clone();
        holed[page * 4096..(page + 1) * 4096].fill(0);
        let (records, report) = read(&holed, PointInTime);
        let before = ends.iter().filter(|&&end| end <= page as u64 * 4096).count();
        assert!(records == payloads[..before], "page {page}");
        assert_eq!(report.unwrap().ending, Ending::Damaged);
        let (records, report) = read(&holed, SkipCorrupt);
        assert!(records.len() >= 200 - 8, "page {page}: {}", records.len());
        assert!(records.iter().all(|record| payloads.contains(record)));
        assert_eq!(report.unwrap().skipped.count, 1);
    }
}

#[test]
fn reordered_blocks_and_fragments_are_not_replayed() {
    let payloads: Vec<Vec<u8>> = (0..200).map(|i| payload(700, i)).collect();
    let (bytes, _) = segment(ID, Origin::Fresh, &payloads, false);
    let mut swapped = bytes.clone();
    swapped.copy_within(2 * BLOCK_BYTES..3 * BLOCK_BYTES, BLOCK_BYTES);
    swapped[2 * BLOCK_BYTES..3 * BLOCK_BYTES].copy_from_slice(&bytes[BLOCK_BYTES..2 * BLOCK_BYTES]);
    let (records, report) = read(&swapped, PointInTime);
    assert!(payloads.starts_with(&records) && records.len() < 60);
    assert_eq!(report.unwrap().ending, Ending::Damaged);
    let (records, _) = read(&swapped, SkipCorrupt);
    assert!(records.is_sorted_by_key(|record| payloads.iter().position(|p| p == record).unwrap()));

    // Two fragments of one length in one block.
    let (bytes, ends) = segment(
        ID,
        Origin::Fresh,
        &[payload(9, 1), payload(9, 2), payload(9, 3)],
        false,
    );
    let (a, b, c) = (ends[0] as usize - 20, ends[0] as usize, ends[1] as usize);
    let mut swapped = bytes.clone();
    swapped[a..b].copy_from_slice(&bytes[b..c]);
    swapped[b..c].copy_from_slice(&bytes[a..b]);
    assert!(read(&swapped, PointInTime).0.is_empty());
    assert_eq!(read(&swapped, SkipCorrupt).0, [payload(9, 3)]);
    assert!(read(&swapped, Absolute).1.is_err());
}

#[test]
fn the_stale_tail_of_a_recycled_segment_is_never_replayed() {
    let old_id = SegmentId { number: 4, ..ID };
    // All of one length, so that stale fragments stand exactly where the next ones would.
    let old: Vec<Vec<u8>> = (0..300).map(|i| payload(500, i as u8)).collect();
    let (stale, _) = segment(old_id, Origin::Fresh, &old, true);
    for count in [0, 1, 7, 64, 65, 150, 299] {
        let new: Vec<Vec<u8>> = (0..count)
            .map(|i| payload(500, 100_u8.wrapping_add(i as u8)))
            .collect();
        for finish in [false, true] {
            let (mut bytes, ends) = segment(ID, Origin::Recycled, &new, finish);
            let end = ends.last().map_or(SEGMENT_HEADER_BYTES, |&end| end as usize);
            if bytes.len() < stale.len() {
                bytes.extend_from_slice(&stale[bytes.len()..]);
            }
            for mode in MODES {
                let (records, report) = read(&bytes, mode);
                assert!(records == new);
                let report = report.unwrap();
                let expected = if finish { Ending::Finished } else { Ending::Clean };
                assert_eq!((report.ending, report.skipped.count), (expected, 0));
            }
            // Torn in the last record: its header is there, so that it is told from a stale tail.
            if count > 0 && !finish && end < stale.len() {
                let torn_at = end - 100;
                bytes[torn_at..].copy_from_slice(&stale[torn_at..]);
                bytes[torn_at] ^= 1;
                let (records, report) = read(&bytes, PointInTime);
                assert!(records == new[..count - 1]);
                assert_eq!(report.unwrap().ending, Ending::Torn);
                assert!(read(&bytes, Absolute).1.is_err());
            }
        }
    }
}

#[test]
fn a_payload_that_is_a_log_is_not_taken_for_one() {
    let (inner, _) = segment(ID, Origin::Fresh, &small(), true);
    let (mut bytes, ends) = segment(ID, Origin::Fresh, &[inner, payload(5, 9)], false);
    bytes[SEGMENT_HEADER_BYTES] ^= 1;
    let (records, _) = read(&bytes, SkipCorrupt);
    assert_eq!(records, [payload(5, 9)]);
    assert_eq!(ends.len(), 2);
}

#[test]
fn another_segment_another_database_another_version() {
    let (bytes, _) = segment(ID, Origin::Fresh, &small(), false);
    for mode in MODES {
        let renamed = SegmentId { number: 9, ..ID };
        let (records, report) = read_as(renamed, &bytes, mode);
        assert_eq!((records.len(), report.unwrap().ending), (0, Ending::NotStarted));
        let foreign = SegmentId { db_id: 1, ..ID };
        let error = read_as(foreign, &bytes, mode).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let header = format::SegmentHeader {
            version: FORMAT_VERSION + 1,
            id: ID,
            recycled: false,
        };
        let mut newer = bytes.clone();
        newer[..SEGMENT_HEADER_BYTES].copy_from_slice(&header.encode());
        let error = read(&newer, mode).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn an_error_of_the_file_is_final_and_finish_cuts_the_failed_append() {
    for fault in [Fault::Eio, Fault::Enospc] {
        let mem = MemFs::new();
        let fs = FaultFs::new(Arc::new(mem));
        let file = fs.create(file_path(), CreateOptions::default()).unwrap();
        let mut writer = WalWriter::new(file, file_path(), ID, Origin::Fresh).unwrap();
        writer.append(b"kept").unwrap();
        fs.add(Rule::new(Op::Append, fault));
        let error = writer.append(b"refused").unwrap_err();
        let expected = if fault == Fault::Eio {
            ErrorKind::Io
        } else {
            ErrorKind::NoSpace
        };
        assert_eq!((error.kind(), error.file()), (expected, Some(file_path())));
        assert_eq!(writer.append(b"x").unwrap_err().kind(), ErrorKind::ReadOnly);
        writer.finish(true).unwrap();
        writer.finish(true).unwrap_err();
        let (records, report) = read(&fs.read_all(file_path()).unwrap(), Absolute);
        assert_eq!(records, [b"kept"]);
        assert_eq!(report.unwrap().ending, Ending::Clean);
    }
}

#[test]
fn a_failed_sync_is_final() {
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let file = fs.create(file_path(), CreateOptions::default()).unwrap();
    let mut writer = WalWriter::new(file, file_path(), ID, Origin::Fresh).unwrap();
    fs.add(Rule::new(Op::Sync, Fault::Eio));
    assert_eq!(writer.sync().unwrap_err().kind(), ErrorKind::Io);
    for result in [
        writer.sync(),
        writer.flush(),
        writer.append(b"x").map(drop),
        writer.finish(true),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn an_unreadable_file_is_an_error_not_an_end() {
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let file = fs.create(file_path(), CreateOptions::default()).unwrap();
    let mut writer = WalWriter::new(file, file_path(), ID, Origin::Fresh).unwrap();
    writer.append(&vec![1; 600_000]).unwrap();
    for n in 1..=3 {
        fs.clear();
        fs.add(Rule::new(Op::Read, Fault::Eio).nth(n));
        let file = fs.open(file_path(), IoMode::Buffered).unwrap();
        let result = WalReader::new(file, file_path(), ID, SkipCorrupt)
            .and_then(|mut reader| reader.next().map(|record| record.is_some()));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Io, "read {n}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_payloads_come_back(
        lens in prop::collection::vec(prop_oneof![4 => 0_usize..300, 2 => 0_usize..40_000, 1 => 0_usize..200_000], 0..20),
        finish: bool,
        cut in 0.0_f64..1.0,
    ) {
        let payloads: Vec<Vec<u8>> = lens.iter().zip(0..).map(|(&len, seed)| payload(len, seed)).collect();
        let (bytes, ends) = segment(ID, Origin::Fresh, &payloads, finish);
        let (records, _) = read(&bytes, Absolute);
        prop_assert!(records == payloads);
        let cut = (bytes.len() as f64 * cut) as usize;
        let whole = ends.iter().filter(|&&end| end <= cut as u64).count();
        let (records, report) = read(&bytes[..cut], PointInTime);
        prop_assert!(records == payloads[..whole]);
        prop_assert_ne!(report.unwrap().ending, Ending::Damaged);
    }

    #[test]
    fn any_damage_is_survived(
        lens in prop::collection::vec(0_usize..9_000, 1..12),
        damages in prop::collection::vec((0.0_f64..1.0, prop::collection::vec(any::<u8>(), 1..60)), 1..5),
    ) {
        let payloads: Vec<Vec<u8>> = lens.iter().zip(0..).map(|(&len, seed)| payload(len, seed)).collect();
        let (mut bytes, _) = segment(ID, Origin::Fresh, &payloads, true);
        for (place, data) in &damages {
            let at = (bytes.len() as f64 * place) as usize;
            let len = data.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&data[..len]);
        }
        fuzz_read(&bytes);
        let (records, _) = read(&bytes, SkipCorrupt);
        let mut left = payloads.iter();
        prop_assert!(records.iter().all(|record| left.any(|p| p == record)), "in order and none invented");
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(fuzz_read(&bytes), 0);
    }

    /// Power cuts on a log that is synced now and then: what was synced is there, and what is there is a prefix.
    #[test]
    fn a_power_cut_leaves_a_prefix_with_all_that_was_synced(
        steps in prop::collection::vec((0_usize..3_000, prop::bool::weighted(0.2)), 1..30),
        seed: u64, direct: bool, recycled: bool,
    ) {
        let fs = MemFs::new();
        let old = Path::new("000004.wal");
        let options = CreateOptions {
            mode: if direct { IoMode::Direct } else { IoMode::Buffered },
            preallocate_bytes: 100_000,
            buffer_bytes: if direct { 8192 } else { 0 },
            ..CreateOptions::default()
        };
        let file = if recycled {
            let stale: Vec<Vec<u8>> = (0..100).map(|i| payload(500, i)).collect();
            let (stale, _) = segment(SegmentId { number: 4, ..ID }, Origin::Fresh, &stale, true);
            let mut file = fs.create(old, options).unwrap();
            file.append(&stale).unwrap();
            file.sync().unwrap();
            fs.rename(old, file_path()).unwrap();
            file.rewind().unwrap();
            file
        } else {
            fs.create(file_path(), options).unwrap()
        };
        let origin = if recycled { Origin::Recycled } else { Origin::Fresh };
        let mut writer = WalWriter::new(file, file_path(), ID, origin).unwrap();
        fs.sync_dir(Path::new("")).unwrap();
        let mut payloads = Vec::new();
        let mut synced = 0;
        for (i, (len, sync)) in steps.iter().enumerate() {
            payloads.push(payload(*len, i as u8));
            writer.append(&payloads[i]).unwrap();
            if *sync {
                writer.sync().unwrap();
                synced = payloads.len();
            }
        }
        for mode in [CrashMode::Torn { seed }, CrashMode::DropUnsynced, CrashMode::KeepAll] {
            let bytes = fs.crash(mode).read_all(file_path()).unwrap();
            let (records, report) = read(&bytes, PointInTime);
            report.unwrap();
            prop_assert!(payloads.starts_with(&records));
            prop_assert!(records.len() >= synced, "{} of {synced} synced records", records.len());
            fuzz_read(&bytes);
        }
    }
}
