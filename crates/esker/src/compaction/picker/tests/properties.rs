//! Whatever a version looks like, every plan for it is legal, and picking until nothing is left ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::check::check;
use crate::compaction::picker::{
    PickerContext, Plan, PlanKind, RangeCursor, RangeStep, pick, plan_bulk, plan_range,
};
use crate::key::{KeyOrder, ValueKind, internal_key};
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version};

/// A legal version: per level a list of steps (gap, width, size, shares its start with the file before).
fn any_version() -> impl Strategy<Value = Version> {
    let file = (0..6_u32, 0..6_u32, 1..60_u64, any::<bool>(), 0..8_u8);
    let level0 = proptest::collection::vec((0..60_u32, 0..60_u32, 1..60_u64, any::<bool>(), 0..8_u8), 0..9);
    let deeper = proptest::collection::vec(proptest::collection::vec(file, 0..12), 3);
    (level0, deeper).prop_map(|(level0, deeper)| {
        let mut number = 0;
        let mut make = |start: u32, end: u32, size: u64, level: u64, flags: u8| {
            number += 1;
            // Deeper is older; within a level the left neighbour has the newer version of a shared key.
            let sequence = (16 - level) * 1000 + if level == 0 { number } else { 500 - number };
            Arc::new(FileMeta {
                number,
                size_bytes: size,
                smallest: internal_key(&start.to_be_bytes(), sequence, ValueKind::Put),
                largest: internal_key(&end.to_be_bytes(), sequence, ValueKind::Put),
                sequence_max: sequence,
                entries: size,
                deletions: if flags == 1 { size } else { 0 },
                marked: AtomicBool::new(flags == 2),
                ..FileMeta::default()
            })
        };
        let mut levels = vec![
            level0
                .iter()
                .map(|&(a, b, size, _, flags)| make(a.min(b), a.max(b), size, 0, flags))
                .collect::<Vec<_>>(),
        ];
        for (level, steps) in deeper.iter().enumerate() {
            let (mut at, mut files) = (0, Vec::new());
            for &(gap, width, size, shares, flags) in steps {
                // A shared key needs a file of more than that key on its left, or the two would overlap.
                let start = if shares && at > 0 { at } else { at + gap + 1 };
                let end = start + width + 1;
                files.push(make(start, end, size, level as u64 + 1, flags));
                at = end;
            }
            levels.push(files);
        }
        Version::new(KeyOrder::Bytewise, 4, levels).expect("legal by construction")
    })
}

fn options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        levels: 4,
        file_bytes: 20,
        level_base_bytes: 100,
        level_size_multiplier: 4,
        level0_files_max: 6,
        level0_compaction_trigger: 2,
        ..ColumnFamilyOptions::default()
    }
}

/// The version after `plan`, with a merge's inputs replaced by files of about the target size over their range.
fn carry_out(version: &Version, plan: &Plan, next_number: &mut u64) -> Version {
    let mut edit = plan.edit(0);
    if plan.kind == PlanKind::Merge {
        let sequence = plan.files().map(|(_, file)| file.sequence_max).max().unwrap_or(0);
        *next_number += 1;
        edit.add(
            plan.level_out,
            Arc::new(FileMeta {
                number: *next_number,
                size_bytes: plan.input_bytes().min(60),
                smallest: internal_key(&plan.smallest, sequence, ValueKind::Put),
                largest: internal_key(&plan.largest, sequence, ValueKind::Put),
                sequence_max: sequence,
                entries: 1,
                ..FileMeta::default()
            }),
        );
    }
    let next = version.apply(&edit).expect("a legal plan's result fits");
    plan.release();
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn jobs_beside_each_other_are_legal_and_can_end_in_any_order(
        version in any_version(), order in proptest::collection::vec(any::<prop::sample::Index>(), 200), limit in 0..200_u64,
    ) {
        let options = options();
        let (mut version, mut plans) = (version, Vec::<Plan>::new());
        let mut next_number = 1000;
        for choice in order {
            let running: Vec<_> = plans.iter().map(Plan::running).collect();
            let context = PickerContext { running: &running, max_job_bytes: limit, ..PickerContext::default() };
            match pick(&version, &options, &context) {
                Some(plan) if plans.len() < 4 => {
                    let legal = check(&version, &running, &plan);
                    prop_assert!(legal.is_ok(), "{legal:?} {plan:?}");
                    prop_assert!(plan.claim());
                    plans.push(plan);
                }
                _ if plans.is_empty() => return Ok(()),
                _ => {
                    let plan = plans.swap_remove(choice.index(plans.len()));
                    version = carry_out(&version, &plan, &mut next_number);
                }
            }
        }
        prop_assert!(false, "picking does not end");
    }

    #[test]
    fn a_range_is_brought_down_in_legal_steps(version in any_version(), a in 0..80_u32, b in 0..80_u32, limit in 0..200_u64) {
        let (low, high) = (a.min(b).to_be_bytes(), a.max(b).to_be_bytes());
        let (mut version, options) = (version, options());
        let context = PickerContext { running: &[], max_job_bytes: limit, ..PickerContext::default() };
        let (mut cursor, mut next_number) = (RangeCursor::default(), 1000);
        for _ in 0..60 {
            match plan_range(&version, &options, &context, Some(&low), Some(&high), &cursor) {
                RangeStep::Run { plan, next } => {
                    let legal = check(&version, &[], &plan);
                    prop_assert!(legal.is_ok(), "{legal:?} {plan:?}");
                    version = carry_out(&version, &plan, &mut next_number);
                    cursor = next;
                }
                RangeStep::Blocked => prop_assert!(false, "nothing runs that could block"),
                RangeStep::Done => {
                    let last = version.last_non_empty().unwrap_or(0);
                    for level in 1..last {
                        prop_assert!(version.overlapping(level, &low, &high).is_empty(), "level {level} of {last}");
                    }
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "the steps don't end");
    }

    #[test]
    fn bulk_leaves_one_level(version in any_version()) {
        let options = options();
        let mut next_number = 1000;
        if let Some(plan) = plan_bulk(&version, &options, &PickerContext::default()) {
            let legal = check(&version, &[], &plan);
            prop_assert!(legal.is_ok(), "{legal:?} {plan:?}");
            let version = carry_out(&version, &plan, &mut next_number);
            prop_assert!((0..version.level_count() - 1).all(|level| version.level(level).is_empty()));
        } else {
            prop_assert!((0..version.level_count() - 1).all(|level| version.level(level).is_empty()));
        }
    }
}
