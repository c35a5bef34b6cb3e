//! Space in blob files: how much is too much, which files are emptied, which tables are rewritten for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::check::check;
use crate::compaction::picker::collect::{blob_excess, pick_collect};
use crate::compaction::picker::{InputLevel, PickerContext, Plan, PlanKind, Reason, emptied, garbage, pick};
use crate::key::{KeyOrder, ValueKind, internal_key};
use crate::options::ColumnFamilyOptions;
use crate::version::{BlobFile, BlobRef, BlobSet, FileMeta, Version};

const MIB: u64 = 1 << 20;

/// The last of the levels.
const LAST: usize = 3;

fn options(blob_space_percent: u32) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        levels: LAST + 1,
        memtable_bytes: 16 << 10,
        blob_space_percent,
        ..ColumnFamilyOptions::default()
    }
}

/// A table of the keys `first..=last`, with bytes that its rows point to by blob file.
fn table(number: u64, (first, last): (u32, u32), refs: &[(u64, u64)]) -> Arc<FileMeta> {
    let part = |&(file, bytes): &(u64, u64)| BlobRef {
        file,
        records: bytes.div_ceil(1000),
        bytes,
    };
    Arc::new(FileMeta {
        number,
        size_bytes: MIB,
        smallest: internal_key(&first.to_be_bytes(), number, ValueKind::Put),
        largest: internal_key(&last.to_be_bytes(), number, ValueKind::Put),
        sequence_min: number,
        sequence_max: number,
        entries: 1000,
        blobs: refs.iter().map(part).collect(),
        ..FileMeta::default()
    })
}

/// Blob files by number and bytes.
fn version(levels: Vec<Vec<Arc<FileMeta>>>, blobs: &[(u64, u64)]) -> Version {
    let mut set = BlobSet::default();
    for &(number, bytes) in blobs {
        let file = BlobFile::new(number, bytes, bytes.div_ceil(1000), bytes);
        set.add(Arc::new(file)).expect("each once");
    }
    Version::with_blobs(KeyOrder::Bytewise, LAST + 1, levels, &set).expect("legal")
}

/// A version with tables in the last level only.
fn at_the_bottom(tables: Vec<Arc<FileMeta>>, blobs: &[(u64, u64)]) -> Version {
    version(vec![vec![], vec![], vec![], tables], blobs)
}

/// A merge of one table of the last level with itself.
fn rewrite(version: &Version, options: &ColumnFamilyOptions, table: usize, reason: Reason) -> Plan {
    let files = vec![Arc::clone(&version.level(LAST).files()[table])];
    let inputs = vec![InputLevel { level: LAST, files }];
    Plan::new(version, options, (LAST, LAST), inputs, PlanKind::Merge, reason).expect("an input")
}

fn numbers(plan: &Plan) -> Vec<u64> {
    plan.files().map(|(_, file)| file.number).collect()
}

/// What is picked for nothing but blob files, if that is legal.
fn collect(version: &Version, options: &ColumnFamilyOptions) -> Option<Plan> {
    let plan = pick_collect(version, options, &PickerContext::default())?;
    check(version, &[], &plan).unwrap_or_else(|wrong| panic!("{wrong}: {plan:?}"));
    assert_eq!(plan.reason, Reason::BlobSpace);
    Some(plan)
}

#[test]
fn excess_is_what_is_dead_beyond_what_is_allowed() {
    for (dead, percent, excess) in [
        (50, 150, 0.0),
        (75, 150, 0.5),
        (100, 150, 1.0),
        (100, 200, 0.0),
        (100, 110, 9.0),
    ] {
        let live = at_the_bottom(
            vec![table(1, (0, 9), &[(5, 100 * MIB)])],
            &[(5, (100 + dead) * MIB)],
        );
        let options = options(percent);
        assert_eq!(blob_excess(&live, &options), excess, "{dead} MiB at {percent} %");
        assert_eq!(collect(&live, &options).is_some(), excess > 0.0);
    }
    let without = at_the_bottom(vec![table(1, (0, 9), &[])], &[]);
    assert_eq!(blob_excess(&without, &options(110)), 0.0);
    assert!(collect(&without, &options(110)).is_none());
}

#[test]
fn two_memtables_of_garbage_are_always_allowed() {
    let version = at_the_bottom(vec![table(1, (0, 9), &[(5, MIB)])], &[(5, 10 * MIB)]);
    let with_memtables_of = |mib: u64| ColumnFamilyOptions {
        memtable_bytes: mib * MIB,
        ..options(150)
    };
    assert_eq!(blob_excess(&version, &with_memtables_of(5)), 0.0);
    assert!(collect(&version, &with_memtables_of(5)).is_none());
    assert_eq!(blob_excess(&version, &with_memtables_of(4)), 0.125);
    assert!(collect(&version, &with_memtables_of(4)).is_some());
}

#[test]
fn rows_that_may_hide_others_leave_less_room_for_garbage() {
    let with_above = |above: u64, dead: u64| {
        let bottom = table(1, (0, 9), &[(5, 100 * MIB)]);
        let upper = table(2, (0, 9), &[(6, above * MIB)]);
        let blobs = [(5, (100 + dead) * MIB), (6, above * MIB)];
        version(vec![vec![], vec![], vec![upper], vec![bottom]], &blobs)
    };
    // Half of 100 MiB, less the 20 that may hide others: 150 MiB in all for 100.
    assert_eq!(blob_excess(&with_above(20, 30), &options(150)), 0.0);
    assert_eq!(blob_excess(&with_above(20, 45), &options(150)), 0.5);
    // However many are in doubt, a quarter of half of what is referred to.
    assert_eq!(blob_excess(&with_above(100, 25), &options(150)), 0.0);
    assert_eq!(blob_excess(&with_above(100, 50), &options(150)), 1.0);
    // Writers are held to what both together permit: of 50 MiB some are left for what merges write.
    let both = garbage(&with_above(20, 30), &options(150));
    assert_eq!((both.bytes, both.wanted), (50 * MIB, 30 * MIB));
    let small = garbage(
        &with_above(20, 0),
        &ColumnFamilyOptions {
            memtable_bytes: 40 * MIB,
            ..options(150)
        },
    );
    assert_eq!((small.bytes, small.wanted), (20 * MIB, 80 * MIB));
    // With a single level nothing is hidden.
    let alone = version(vec![vec![table(1, (0, 9), &[(5, 100 * MIB)])]], &[(5, 150 * MIB)]);
    assert_eq!(blob_excess(&alone, &options(150)), 0.0);
}

/// Four files, of which 100, 50, 10 and 90 of 100 MiB are live: 150 MiB are dead.
fn four_files() -> Version {
    let refs = [(1, 100 * MIB), (2, 50 * MIB), (3, 10 * MIB), (4, 90 * MIB)];
    let blobs = refs.map(|(number, _)| (number, 100 * MIB));
    let tables = refs.iter().zip(1_u32..).map(|(part, i)| {
        let number = u64::from(i) + 10;
        table(number, (10 * i, 10 * i + 9), &[*part])
    });
    at_the_bottom(tables.collect(), &blobs)
}

#[test]
fn the_emptiest_files_are_emptied_and_no_more_than_are_needed() {
    let version = four_files();
    for (percent, files) in [
        // All may stay as it is.
        (1000, &[][..]),
        // 125 MiB may be dead, 112 are aimed at: 60 are left.
        (150, &[3]),
        // 50 and 45: 10 are left.
        (120, &[2, 3]),
        // 25 and 22. What is wholly live is never moved.
        (110, &[2, 3]),
    ] {
        let options = options(percent);
        let plan = rewrite(&version, &options, 2, Reason::Manual);
        assert_eq!(emptied(&version, &options, &plan, false), files, "{percent} %");
    }
}

#[test]
fn a_merge_moves_about_as_much_as_comes_from_above() {
    let options = options(110);
    for (above, is_held, files) in [
        (10, false, &[3][..]),
        (25, false, &[3]),
        (25, true, &[2, 3]),
        (50, false, &[2, 3]),
    ] {
        let upper = table(9, (20, 29), &[(5, above * MIB)]);
        let lower = table(12, (20, 29), &[(2, 50 * MIB), (3, 10 * MIB)]);
        let others = table(13, (30, 39), &[(1, 100 * MIB), (4, 90 * MIB)]);
        let blobs = [(1, 100), (2, 100), (3, 100), (4, 100), (5, above)];
        let version = version(
            vec![
                vec![],
                vec![],
                vec![Arc::clone(&upper)],
                vec![Arc::clone(&lower), others],
            ],
            &blobs.map(|(number, mib)| (number, mib * MIB)),
        );
        let input = |level, file| InputLevel {
            level,
            files: vec![file],
        };
        let inputs = vec![input(LAST - 1, upper), input(LAST, lower)];
        let plan = Plan::new(
            &version,
            &options,
            (LAST - 1, LAST),
            inputs,
            PlanKind::Merge,
            Reason::LevelFull,
        )
        .expect("inputs");
        assert_eq!(emptied(&version, &options, &plan, is_held), files, "{above} MiB");
    }
}

#[test]
fn values_move_only_where_a_merge_ends_at_the_bottom() {
    let (file, blob) = (table(2, (0, 9), &[(5, 10 * MIB)]), [(5, 100 * MIB)]);
    let below = table(1, (0, 9), &[]);
    let options = options(150);
    let merge = |version: &Version| {
        let inputs = vec![InputLevel {
            level: 1,
            files: vec![Arc::clone(&file)],
        }];
        let levels = (1, 2);
        Plan::new(
            version,
            &options,
            levels,
            inputs,
            PlanKind::Merge,
            Reason::LevelFull,
        )
        .expect("an input")
    };
    let alone = version(vec![vec![], vec![Arc::clone(&file)]], &blob);
    assert_eq!(emptied(&alone, &options, &merge(&alone), false), [5]);
    let above = version(vec![vec![], vec![Arc::clone(&file)], vec![], vec![below]], &blob);
    assert!(emptied(&above, &options, &merge(&above), false).is_empty());
}

#[test]
fn a_few_values_are_moved_on_purpose_only() {
    // The first table has most of what is live in the file, the other a little.
    let tables = vec![
        table(1, (0, 9), &[(5, 10 * MIB)]),
        table(2, (10, 19), &[(5, MIB - 1)]),
    ];
    let version = at_the_bottom(tables, &[(5, 100 * MIB)]);
    let options = options(150);
    let emptied_by = |table, reason| {
        emptied(
            &version,
            &options,
            &rewrite(&version, &options, table, reason),
            false,
        )
    };
    assert_eq!(emptied_by(0, Reason::LevelFull), [5]);
    assert!(emptied_by(1, Reason::LevelFull).is_empty());
    assert_eq!(emptied_by(1, Reason::BlobSpace), [5]);
}

#[test]
fn tables_that_point_into_the_emptiest_files_are_rewritten_where_they_are() {
    let version = four_files();
    let options = options(150);
    let plan = collect(&version, &options).expect("150 MiB are dead, 125 allowed");
    assert_eq!((numbers(&plan), plan.kind), (vec![13], PlanKind::Merge));
    assert_eq!((plan.level_in, plan.level_out), (LAST, LAST));
    assert!(plan.bottommost);
    assert_eq!(emptied(&version, &options, &plan, false), [3]);
    // Levels are in order, so this is what there is to do.
    let picked = pick(&version, &options, &PickerContext::default()).expect("a plan");
    assert_eq!(numbers(&picked), [13]);
    assert!(plan.claim());
    assert!(
        collect(&version, &options).is_none(),
        "the one table with values in the file is taken"
    );
}

#[test]
fn a_table_above_the_bottom_goes_down_until_its_values_can_move() {
    let options = options(150);
    for level in 0..LAST {
        let wanted = table(9, (0, 9), &[(5, 10 * MIB)]);
        let mut levels = vec![vec![]; LAST + 1];
        levels[level].push(wanted);
        levels[LAST].push(table(1, (0, 9), &[]));
        let mut version = version(levels, &[(5, 100 * MIB)]);
        let mut plan = collect(&version, &options).expect("90 MiB are dead");
        let mut moves = 0;
        while plan.kind == PlanKind::Move {
            assert!(plan.level_in < plan.level_out);
            version = version.apply(&plan.edit(0)).expect("a move fits");
            plan = collect(&version, &options).expect("as many are dead as before");
            moves += 1;
        }
        assert!(moves <= LAST, "from level {level}");
        assert_eq!((numbers(&plan), plan.level_out), (vec![9, 1], LAST));
        assert_eq!(emptied(&version, &options, &plan, false), [5]);
    }
}

/// The version after a merge: each input is written again where it goes, and its values in emptied files are in one new
/// file.
fn carry_out(version: &Version, options: &ColumnFamilyOptions, plan: &Plan, number: &mut u64) -> Version {
    let emptied = emptied(version, options, plan, false);
    let mut edit = plan.edit(0);
    let moved_to = *number + 1;
    let mut moved = 0;
    *number += 1;
    for (_, file) in plan.files() {
        let mut refs: BTreeMap<u64, u64> = BTreeMap::new();
        for part in &file.blobs {
            let is_emptied = emptied.binary_search(&part.file).is_ok();
            moved += if is_emptied { part.bytes } else { 0 };
            *refs
                .entry(if is_emptied { moved_to } else { part.file })
                .or_default() += part.bytes;
        }
        let refs: Vec<_> = refs.into_iter().collect();
        let key = |key: &[u8]| u32::from_be_bytes(key.try_into().expect("4 bytes"));
        let keys = (key(file.smallest_user_key()), key(file.largest_user_key()));
        *number += 1;
        edit.add(plan.level_out, table(*number, keys, &refs));
    }
    if moved > 0 {
        let file = BlobFile::new(moved_to, moved, moved.div_ceil(1000), moved);
        edit.added_blobs.push(Arc::new(file));
    }
    version.apply(&edit).expect("an edit that fits")
}

proptest! {
    /// Tables at the bottom, each with values in some of the files.
    #[test]
    fn collecting_ends_with_as_much_space_as_is_allowed(
        tables in prop::collection::vec(prop::collection::btree_map(1..20_u64, 1..2 * MIB, 0..6), 1..30),
        dead in prop::collection::vec(0..20 * MIB, 20),
        percent in prop::sample::select(vec![110, 150, 300]),
    ) {
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        tables.iter().flatten().for_each(|(&file, &bytes)| *live.entry(file).or_default() += bytes);
        let blobs: Vec<_> = live
            .iter()
            .map(|(&file, &bytes)| (file, bytes + dead[file as usize]))
            .collect();
        let tables = tables.iter().zip(0_u32..).map(|(refs, i)| {
            let refs: Vec<_> = refs.iter().map(|(&file, &bytes)| (file, bytes)).collect();
            table(100 + u64::from(i), (10 * i, 10 * i + 9), &refs)
        });
        let tables: Vec<_> = tables.collect();
        let (steps_max, live_before) = (tables.len(), live.values().sum::<u64>());
        let (mut version, options) = (at_the_bottom(tables, &blobs), options(percent));
        let (mut number, mut steps) = (1000, 0);
        while let Some(plan) = collect(&version, &options) {
            // Each table is rewritten once at most: nothing that was moved is moved again.
            steps += 1;
            prop_assert!(steps <= steps_max, "{version:?}");
            prop_assert!(plan.files().all(|(_, file)| file.number < 1000));
            version = carry_out(&version, &options, &plan, &mut number);
            prop_assert!(version.blobs().iter().all(|blob| blob.live_records > 0));
        }
        prop_assert_eq!(blob_excess(&version, &options), 0.0);
        prop_assert_eq!(version.blobs().live_bytes(), live_before);
    }
}
