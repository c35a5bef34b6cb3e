//! Level 0 down to the base level; and, where that has to wait, level 0 onto itself.

use std::sync::Arc;

use super::conflict::{PickerContext, any_busy, free_overlap};
use super::leveled::grandparents_allow_move;
use super::levels::LevelTargets;
use super::plan::{InputLevel, Plan, PlanKind, Reason, key_range};
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version};

/// Fewer files than this are not worth being made into one within level 0.
const DEEP_FILES_MIN: usize = 4;

/// A plan for a level 0 that scored `score`, or `None` if it has to wait.
pub(super) fn pick(
    version: &Version,
    options: &ColumnFamilyOptions,
    targets: &LevelTargets,
    context: &PickerContext<'_>,
    score: f64,
) -> Option<Plan> {
    let mut plan = down(version, options, targets, context).or_else(|| within(version, options, context))?;
    plan.score = score;
    Some(plan)
}

/// The oldest files go down: unchanged if nothing is in their way, else merged with what is.
pub(super) fn down(
    version: &Version,
    options: &ColumnFamilyOptions,
    targets: &LevelTargets,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    if context.level0_goes_down() {
        return None;
    }
    let files = version.level(0).files();
    let idle = files
        .iter()
        .rev()
        .take_while(|file| !file.is_being_compacted())
        .count();
    let oldest = &files[files.len() - idle..];
    let levels = (0, targets.level0_output);
    let moved = movable(version, options, context, levels.1, oldest);
    if !moved.is_empty() {
        let inputs = vec![InputLevel {
            level: 0,
            files: moved,
        }];
        return Plan::new(
            version,
            options,
            levels,
            inputs,
            PlanKind::Move,
            Reason::Level0Full,
        );
    }
    let taken = affordable(oldest, options, context);
    merge_down(version, options, context, levels.1, taken, Reason::Level0Full)
}

/// Merges `taken`, which must be the oldest part of level 0, into level `out`.
pub(super) fn merge_down(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    out: usize,
    taken: &[Arc<FileMeta>],
    reason: Reason,
) -> Option<Plan> {
    let (smallest, largest) = key_range(version.order(), taken)?;
    let overlap = free_overlap(version, context, out, smallest, largest)?;
    let inputs = vec![
        InputLevel {
            level: 0,
            files: taken.to_vec(),
        },
        InputLevel {
            level: out,
            files: version.level(out).files()[overlap].to_vec(),
        },
    ];
    Plan::new(version, options, (0, out), inputs, PlanKind::Merge, reason)
}

/// The oldest of `oldest` (newest first) for as long as each overlaps neither the output level nor those before it.
/// Given newest first again.
fn movable(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    out: usize,
    oldest: &[Arc<FileMeta>],
) -> Vec<Arc<FileMeta>> {
    let order = version.order();
    let mut moved: Vec<Arc<FileMeta>> = Vec::new();
    for file in oldest.iter().rev() {
        let (smallest, largest) = (file.smallest_user_key(), file.largest_user_key());
        let free =
            free_overlap(version, context, out, smallest, largest).is_some_and(|range| range.is_empty());
        if !free
            || moved.iter().any(|other| other.overlaps_file(order, file))
            || !grandparents_allow_move(version, options, out, smallest, largest)
        {
            break;
        }
        moved.push(Arc::clone(file));
        // The job holds the whole range of what it moves against others.
        let hull = key_range(order, &moved);
        if hull.is_some_and(|(smallest, largest)| context.writes_into(order, out, smallest, largest)) {
            moved.pop();
            break;
        }
    }
    moved.reverse();
    moved
}

/// The oldest files within the limit of a job, but at least as many as the trigger asks for.
fn affordable<'a>(
    oldest: &'a [Arc<FileMeta>],
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
) -> &'a [Arc<FileMeta>] {
    let max = context.max_job_bytes(options);
    let mut bytes = 0_u64;
    let count = oldest
        .iter()
        .rev()
        .enumerate()
        .take_while(|(taken, file)| {
            bytes = bytes.saturating_add(file.size_bytes);
            *taken < options.level0_compaction_trigger || bytes <= max
        })
        .count();
    &oldest[oldest.len() - count..]
}

/// Level 0 is deep and waits: its newest files are made into one, which bounds what a read has to look at. This
/// writes the data once more, so it is done late, and only as long as each file taken pays for itself.
fn within(version: &Version, options: &ColumnFamilyOptions, context: &PickerContext<'_>) -> Option<Plan> {
    let files = version.level(0).files();
    let idle = files.iter().take_while(|file| !file.is_being_compacted()).count();
    let deep = (options.level0_compaction_trigger + 2)
        .max(options.level0_files_max / 3)
        .max(DEEP_FILES_MIN);
    if idle < deep || context.running.iter().any(|job| job.level_out == 0) {
        return None;
    }
    let max = context.max_job_bytes(options);
    let (mut taken, mut bytes, mut best_ratio) = (1, files[0].size_bytes, f64::INFINITY);
    for file in &files[1..idle] {
        let more = bytes.saturating_add(file.size_bytes);
        // Bytes written for each file that goes away: rises at the first file that is itself such an output.
        let ratio = more as f64 / taken as f64;
        if more > max || ratio > best_ratio {
            break;
        }
        (taken, bytes, best_ratio) = (taken + 1, more, ratio);
    }
    if taken < DEEP_FILES_MIN || any_busy(&files[..taken]) {
        return None;
    }
    let inputs = vec![InputLevel {
        level: 0,
        files: files[..taken].to_vec(),
    }];
    Plan::new(
        version,
        options,
        (0, 0),
        inputs,
        PlanKind::Merge,
        Reason::Level0Deep,
    )
}
