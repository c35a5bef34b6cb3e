//! The output splitter and the split into parallel parts.

use std::sync::Arc;

use proptest::prelude::*;

use crate::compaction::picker::{OutputSplitter, PickerContext, plan_bulk, split_points};
use crate::key::{KeyOrder, ValueKind, internal_key};
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version};

fn file(number: u64, smallest: u32, largest: u32, size_bytes: u64) -> Arc<FileMeta> {
    Arc::new(FileMeta {
        number,
        size_bytes,
        smallest: internal_key(&smallest.to_be_bytes(), 1, ValueKind::Put),
        largest: internal_key(&largest.to_be_bytes(), 1, ValueKind::Put),
        sequence_max: number,
        ..FileMeta::default()
    })
}

/// Sizes of the files into which rows of one byte with keys `0..rows` are cut, and the keys at which they start.
fn cut(grandparents: &[Arc<FileMeta>], target_bytes: u64, rows: u32) -> Vec<(u32, u64)> {
    let order = KeyOrder::Bytewise;
    let mut splitter = OutputSplitter::new(&order, grandparents, target_bytes);
    let (mut files, mut start, mut bytes) = (Vec::new(), 0, 0);
    for key in 0..rows {
        if splitter.should_split_before(&key.to_be_bytes(), bytes) {
            files.push((start, bytes));
            (start, bytes) = (key, 0);
        }
        bytes += 1;
    }
    files.push((start, bytes));
    files
}

#[test]
fn without_grandparents_files_have_the_target_size() {
    assert_eq!(cut(&[], 10, 25), [(0, 10), (10, 10), (20, 5)]);
    assert_eq!(cut(&[], u64::MAX, 25), [(0, 25)]);
}

#[test]
fn past_half_of_the_target_a_boundary_below_ends_the_file() {
    // Boundaries after 2 (too early), 6 (in time), 13 (in time again).
    let below = [
        file(1, 0, 2, 9),
        file(2, 3, 6, 9),
        file(3, 8, 13, 9),
        file(4, 14, 90, 9),
    ];
    assert_eq!(cut(&below, 10, 30), [(0, 7), (7, 7), (14, 10), (24, 6)]);
}

#[test]
fn a_file_ends_before_it_overlaps_more_than_ten_targets() {
    let below: Vec<_> = (0..10)
        .map(|i| file(u64::from(i) + 1, 2 * i, 2 * i + 1, 300))
        .collect();
    // Targets of 100 bytes: a fourth file of 300 is one too many for 1,000.
    assert_eq!(cut(&below, 100, 20), [(0, 6), (6, 6), (12, 6), (18, 2)]);
}

#[test]
fn files_that_are_skipped_over_count_as_overlap() {
    let order = KeyOrder::Bytewise;
    let below: Vec<_> = (0..10)
        .map(|i| file(u64::from(i) + 1, 10 * i, 10 * i + 5, 300))
        .collect();
    let mut splitter = OutputSplitter::new(&order, &below, 100);
    assert!(!splitter.should_split_before(&1_u32.to_be_bytes(), 0));
    assert!(
        splitter.should_split_before(&35_u32.to_be_bytes(), 1),
        "four of them lie between"
    );
    assert!(
        !splitter.should_split_before(&36_u32.to_be_bytes(), 1),
        "counted anew"
    );
}

proptest! {
    #[test]
    fn output_files_respect_both_limits(
        bounds in proptest::collection::btree_set(0..2000_u32, 0..60),
        sizes in proptest::collection::vec(1..500_u64, 30),
        target in 1..200_u64,
    ) {
        let bounds: Vec<u32> = bounds.into_iter().collect();
        let below: Vec<_> = bounds
            .chunks_exact(2)
            .zip(&sizes)
            .zip(1..)
            .map(|((pair, &size), number)| file(number, pair[0], pair[1], size))
            .collect();
        let files = cut(&below, target, 2000);
        prop_assert_eq!(files.iter().map(|file| file.1).sum::<u64>(), 2000);
        let boundary_within = |from: u32, to: u32| below.iter().any(|f| {
            let end = u32::from_be_bytes(f.largest_user_key().try_into().expect("4 bytes"));
            from <= end && end < to
        });
        for (i, &(start, bytes)) in files.iter().enumerate() {
            let end = start + bytes as u32;
            prop_assert!(bytes <= target);
            let last_row = end - 1;
            let overlap: u64 = below
                .iter()
                .filter(|f| f.overlaps(&KeyOrder::Bytewise, &start.to_be_bytes(), &last_row.to_be_bytes()))
                .map(|f| f.size_bytes)
                .sum();
            // One row is the least that a file can have, whatever it overlaps.
            prop_assert!(overlap <= 10 * target || bytes == 1, "{start} {bytes} {overlap}");
            // A file that is not full has a reason to end.
            let next_overlap: u64 = below
                .iter()
                .filter(|f| f.overlaps(&KeyOrder::Bytewise, &start.to_be_bytes(), &end.to_be_bytes()))
                .map(|f| f.size_bytes)
                .sum();
            let aligned = bytes >= target / 2 && boundary_within(start, end);
            prop_assert!(i + 1 == files.len() || bytes == target || aligned || next_overlap > 10 * target);
        }
    }

    #[test]
    fn parts_are_even_and_ordered(
        weights in proptest::collection::vec((0..10_000_u32, 1..100_u64), 1..300),
        parts in 1..9_usize,
    ) {
        let keys: Vec<([u8; 4], u64)> = weights.iter().map(|&(key, bytes)| (key.to_be_bytes(), bytes)).collect();
        let anchors: Vec<(&[u8], u64)> = keys.iter().map(|(key, bytes)| (key.as_slice(), *bytes)).collect();
        let points = split_points(&KeyOrder::Bytewise, anchors, parts);
        prop_assert!(points.len() < parts);
        prop_assert!(points.is_sorted_by(|a, b| a < b));
        // Bytes at or before each point: within one key's weight of the even share.
        let total: u64 = keys.iter().map(|(_, bytes)| bytes).sum();
        if points.len() + 1 == parts {
            for (i, point) in points.iter().enumerate() {
                let passed: u64 = keys.iter().filter(|(key, _)| key.as_slice() <= point.as_slice()).map(|(_, b)| b).sum();
                let due = (i as u64 + 1) * total / parts as u64;
                prop_assert!(passed >= due);
            }
        }
    }
}

#[test]
fn equal_weights_are_cut_into_equal_parts() {
    let keys: Vec<[u8; 4]> = (0..100_u32).map(u32::to_be_bytes).collect();
    let anchors = keys.iter().map(|key| (key.as_slice(), 10)).collect();
    let points = split_points(&KeyOrder::Bytewise, anchors, 4);
    assert_eq!(points, [24_u32, 49, 74].map(|key| key.to_be_bytes().to_vec()));
}

#[test]
fn a_plan_is_split_along_its_files() {
    let options = ColumnFamilyOptions::default();
    let files: Vec<_> = (0..8)
        .map(|i| file(u64::from(i) + 1, 100 * i, 100 * i + 99, 1000))
        .collect();
    let top = vec![file(90, 0, 799, 800)];
    let version = Version::new(KeyOrder::Bytewise, 3, vec![top, vec![], files]).expect("legal");
    let plan = plan_bulk(&version, &options, &PickerContext::default()).expect("a plan");
    let points = plan.split_points(&KeyOrder::Bytewise, 4);
    assert_eq!(points, [200_u32, 400, 600].map(|key| key.to_be_bytes().to_vec()));
    assert!(plan.split_points(&KeyOrder::Bytewise, 1).is_empty());
}
