//! From a sorted level to the next one.
//!
//! The file chosen is the one for which the fewest bytes of the next level must be rewritten per byte that it
//! brings down. That spreads over the key space by itself, as a file that was just merged into has neighbours that
//! are denser than others.

use std::ops::Range;

use super::conflict::{PickerContext, any_busy, free_overlap};
use super::levels::LevelScore;
use super::plan::{InputLevel, Plan, PlanKind, Reason, key_range};
use super::splitter::OVERLAP_FACTOR_MAX;
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Level, Version};

/// What goes down together: files of the input level, and the files of the output level that they meet.
struct Choice {
    group: Range<usize>,
    overlap: Range<usize>,
}

/// A plan for a sorted level that is too large.
pub(super) fn pick(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    candidate: &LevelScore,
) -> Option<Plan> {
    let level = candidate.level;
    let choice = cheapest(version, context, level)?;
    let excess = candidate.size_bytes.saturating_sub(candidate.target_bytes);
    let reason = if candidate.target_bytes == 0 {
        Reason::LevelUnused
    } else {
        Reason::LevelFull
    };
    let mut plan = plan_of(version, options, context, level, choice, excess, reason)?;
    plan.score = candidate.score;
    Some(plan)
}

/// A plan for the first marked file that is free: down a level, or rewritten in place if it is in the last.
pub(super) fn pick_marked(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    pick_where(version, options, context, Reason::Marked, FileMeta::is_marked)
}

/// A plan for the first file that is `wanted` and free: down a level, or rewritten in place if it is in the last.
pub(super) fn pick_where(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    reason: Reason,
    wanted: impl Fn(&FileMeta) -> bool,
) -> Option<Plan> {
    let order = version.order();
    let last = version.last_non_empty()?;
    if version.level(0).files().iter().any(|file| wanted(file)) {
        let targets = super::level_targets(version, options);
        let down = super::level0::down(version, options, &targets, context);
        if let Some(mut plan) = down {
            plan.reason = reason;
            return Some(plan);
        }
    }
    for level in (1..=last).rev() {
        let at = version.level(level);
        for index in 0..at.len() {
            if !wanted(&at.files()[index]) || at.files()[index].is_being_compacted() {
                continue;
            }
            let group = at.clean_cut(order, index..index + 1);
            let Some((smallest, largest)) = key_range(order, &at.files()[group.clone()]) else {
                continue;
            };
            if any_busy(&at.files()[group.clone()]) {
                continue;
            }
            let plan = if level == last {
                free_overlap(version, context, level, smallest, largest).and_then(|_| {
                    let inputs = vec![InputLevel {
                        level,
                        files: at.files()[group].to_vec(),
                    }];
                    Plan::new(version, options, (level, level), inputs, PlanKind::Merge, reason)
                })
            } else {
                free_overlap(version, context, level + 1, smallest, largest).and_then(|overlap| {
                    let choice = Choice { group, overlap };
                    plan_of(version, options, context, level, choice, 0, reason)
                })
            };
            if plan.is_some() {
                return plan;
            }
        }
    }
    None
}

/// The group of files of `level` that is free and costs least to bring down.
fn cheapest(version: &Version, context: &PickerContext<'_>, level: usize) -> Option<Choice> {
    let order = version.order();
    let (at, below) = (version.level(level), version.level(level + 1));
    let mut best: Option<(f64, Choice)> = None;
    let mut next = 0;
    while next < at.len() {
        let group = at.clean_cut(order, next..next + 1);
        next = group.end;
        let files = &at.files()[group.clone()];
        if any_busy(files) {
            continue;
        }
        let (smallest, largest) = (
            files[0].smallest_user_key(),
            files[files.len() - 1].largest_user_key(),
        );
        let ratio =
            below.range_bytes(&below.overlapping(order, smallest, largest)) as f64 / weight(at, &group);
        if best.as_ref().is_some_and(|(least, _)| *least <= ratio) {
            continue;
        }
        if let Some(overlap) = free_overlap(version, context, level + 1, smallest, largest) {
            let free = overlap.is_empty();
            best = Some((ratio, Choice { group, overlap }));
            if free {
                break;
            }
        }
    }
    best.map(|(_, choice)| choice)
}

/// The bytes of a group; tombstones count as if they had brought what they will take away.
fn weight(level: &Level, group: &Range<usize>) -> f64 {
    let weights = level.files()[group.clone()].iter().map(|file| {
        let tombstones = file.deletions.saturating_add(file.range_tombstones) as f64;
        let entries = file.entries.saturating_add(file.range_tombstones).max(1) as f64;
        file.size_bytes.max(1) as f64 * (1.0 + tombstones / entries)
    });
    weights.sum()
}

/// Extends the choice by what comes for free and makes the plan.
fn plan_of(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    level: usize,
    choice: Choice,
    excess_bytes: u64,
    reason: Reason,
) -> Option<Plan> {
    let Choice { mut group, overlap } = choice;
    let at = version.level(level);
    let movable = |group: &Range<usize>| {
        let files = &at.files()[group.clone()];
        let range = files.first().zip(files.last());
        range.is_some_and(|(first, last)| {
            let (smallest, largest) = (first.smallest_user_key(), last.largest_user_key());
            grandparents_allow_move(version, options, level + 1, smallest, largest)
        })
    };
    // A marked file is to be rewritten, not moved on as it is, if it has anything to lose; an old one always, or it would
    // stay old.
    let must_rewrite = reason == Reason::Age
        || (reason == Reason::Marked && at.files()[group.clone()].iter().any(|file| file.has_tombstones()));
    let kind = if overlap.is_empty() && !must_rewrite && movable(&group) {
        let enough = excess_bytes.min(context.max_job_bytes(options));
        while at.range_bytes(&group) < enough {
            let Some(more) = neighbours(version, context, level, &group, &(0..0), true) else {
                break;
            };
            if !movable(&more) {
                break;
            }
            group.end = more.end;
        }
        PlanKind::Move
    } else {
        let max = context.max_job_bytes(options);
        let fixed = version.level(level + 1).range_bytes(&overlap);
        if !overlap.is_empty() {
            extend(&mut group, max.saturating_sub(fixed), at, |group, forward| {
                neighbours(version, context, level, group, &overlap, forward)
            });
        }
        PlanKind::Merge
    };
    let inputs = vec![
        InputLevel {
            level,
            files: at.files()[group].to_vec(),
        },
        InputLevel {
            level: level + 1,
            files: version.level(level + 1).files()[overlap].to_vec(),
        },
    ];
    Plan::new(version, options, (level, level + 1), inputs, kind, reason)
}

/// Lets `group` grow on both sides by what `more` gives while it stays within `max_bytes`.
fn extend(
    group: &mut Range<usize>,
    max_bytes: u64,
    at: &Level,
    more: impl Fn(&Range<usize>, bool) -> Option<Range<usize>>,
) {
    for forward in [true, false] {
        while let Some(next) = more(group, forward) {
            let grown = group.start.min(next.start)..group.end.max(next.end);
            if at.range_bytes(&grown) > max_bytes {
                break;
            }
            *group = grown;
        }
    }
}

/// The files right behind `group`, or, not `forward`, right before it, if they are free and meet nothing in the next
/// level but what is in `overlap`.
fn neighbours(
    version: &Version,
    context: &PickerContext<'_>,
    level: usize,
    group: &Range<usize>,
    overlap: &Range<usize>,
    forward: bool,
) -> Option<Range<usize>> {
    let at = version.level(level);
    let next = if forward {
        group.end
    } else {
        group.start.checked_sub(1)?
    };
    if next >= at.len() {
        return None;
    }
    let more = at.clean_cut(version.order(), next..next + 1);
    comes_for_free(version, context, level, group, &more, overlap).then_some(more)
}

/// Whether `more` is free and its range together with `group` — output files may span the gap between the two — meets
/// nothing in the next level but what is in `overlap`.
fn comes_for_free(
    version: &Version,
    context: &PickerContext<'_>,
    level: usize,
    group: &Range<usize>,
    more: &Range<usize>,
    overlap: &Range<usize>,
) -> bool {
    let files = version.level(level).files();
    let hull = group.start.min(more.start)..group.end.max(more.end);
    let Some((smallest, largest)) = key_range(version.order(), &files[hull]) else {
        return false;
    };
    if any_busy(&files[more.clone()]) {
        return false;
    }
    free_overlap(version, context, level + 1, smallest, largest)
        .is_some_and(|met| met.is_empty() || (overlap.start <= met.start && met.end <= overlap.end))
}

/// Whether a file may come to rest in level `out` as it is: a file that overlaps too much of the level below would
/// make its next compaction a long one.
pub(super) fn grandparents_allow_move(
    version: &Version,
    options: &ColumnFamilyOptions,
    out: usize,
    smallest: &[u8],
    largest: &[u8],
) -> bool {
    if out + 1 >= version.level_count() {
        return true;
    }
    let below = version.level(out + 1);
    let bytes = below.range_bytes(&below.overlapping(version.order(), smallest, largest));
    bytes <= options.file_bytes.saturating_mul(OVERLAP_FACTOR_MAX)
}
