//! Compactions that someone asked for.

use std::ops::Range;

use super::conflict::{PickerContext, any_busy, free_overlap};
use super::plan::{InputLevel, Plan, PlanKind, Reason, key_range};
use super::{level_targets, level0};
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version};

/// How far the compaction of a key range has come. Starts as its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeCursor {
    /// The level whose files go down next.
    pub level: usize,
    /// What ends at or before this user key was brought down from that level already.
    pub after: Option<Vec<u8>>,
    /// The newest file that there was at the start; those of the last level that are newer were written on the way.
    pub newest: Option<u64>,
}

/// The next step of compacting a key range.
#[derive(Clone, Debug)]
pub enum RangeStep {
    /// Run the plan; when it is done, go on from `next`.
    Run {
        /// What to do.
        plan: Box<Plan>,
        /// Where to go on.
        next: RangeCursor,
    },
    /// A running job is in the way: try again when one has ended.
    Blocked,
    /// The range's data is all in the last level that holds any.
    Done,
}

impl RangeStep {
    /// Runs `plan`, or waits where there is none.
    fn run(plan: Option<Plan>, next: RangeCursor) -> Self {
        plan.map_or(Self::Blocked, |plan| Self::Run {
            plan: Box::new(plan),
            next,
        })
    }
}

impl RangeCursor {
    /// At the first file of `level`.
    fn start_of(level: usize) -> Self {
        Self {
            level,
            ..Self::default()
        }
    }
}

/// The next step of bringing all data in `begin..=end` (user keys; `None`: no bound) down, level by level, until it
/// is in the deepest level that has data. That level is read and written only where data comes down into it; if rows may
/// have expired or there is a filter, all of its files in the range are rewritten.
///
/// The cursor only moves on, so the steps end even while new data arrives; what arrived after the first step may
/// remain above. To include what is in memory, flush first.
pub fn plan_range(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    cursor: &RangeCursor,
) -> RangeStep {
    let newest = cursor
        .newest
        .or_else(|| version.files().map(|(_, file)| file.number).max());
    match step_from(version, options, context, begin, end, cursor, newest) {
        RangeStep::Run { plan, next } => RangeStep::Run {
            plan,
            next: RangeCursor { newest, ..next },
        },
        step => step,
    }
}

fn step_from(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    cursor: &RangeCursor,
    newest: Option<u64>,
) -> RangeStep {
    let mut cursor = cursor.clone();
    if cursor.level == 0 {
        if let Some(step) = level0_step(version, options, context, begin, end) {
            return step;
        }
        cursor = RangeCursor::start_of(1);
    }
    let last = version.last_non_empty().unwrap_or(0);
    while cursor.level < last {
        let files = remaining(version, begin, end, &cursor);
        if !files.is_empty() {
            return sorted_step(version, options, context, cursor.level, files);
        }
        cursor = RangeCursor::start_of(cursor.level + 1);
    }
    if cursor.level == last && options.rewrites_for_rows() {
        let files = remaining(version, begin, end, &cursor);
        return rewrite_step(version, options, context, last, files, newest);
    }
    RangeStep::Done
}

/// Rewrites in place the first of `files` that was there at the start, with those that share a user key.
fn rewrite_step(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    level: usize,
    files: Range<usize>,
    newest: Option<u64>,
) -> RangeStep {
    let (order, at) = (version.order(), version.level(level));
    let old = |file: &FileMeta| Some(file.number) <= newest;
    let Some(first) = files
        .into_iter()
        .find(|&i| at.files().get(i).is_some_and(|file| old(file)))
    else {
        return RangeStep::Done;
    };
    let group = &at.files()[at.clean_cut(order, first..first + 1)];
    let free = key_range(order, group)
        .and_then(|(smallest, largest)| free_overlap(version, context, level, smallest, largest));
    if free.is_none() {
        return RangeStep::Blocked;
    }
    let inputs = vec![InputLevel {
        level,
        files: group.to_vec(),
    }];
    let after = group.last().map(|file| file.largest_user_key().to_vec());
    let plan = Plan::new(
        version,
        options,
        (level, level),
        inputs,
        PlanKind::Merge,
        Reason::Manual,
    );
    RangeStep::run(plan, RangeCursor { level, after, newest })
}

/// Whether a file reaches into the range.
fn concerned(version: &Version, file: &FileMeta, begin: Option<&[u8]>, end: Option<&[u8]>) -> bool {
    !begin.is_some_and(|begin| file.ends_before(version.order(), begin))
        && !end.is_some_and(|end| file.starts_after(version.order(), end))
}

/// Level 0 goes down in one step: its newest file that is concerned, and everything older.
fn level0_step(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Option<RangeStep> {
    let files = version.level(0).files();
    let newest = files
        .iter()
        .position(|file| concerned(version, file, begin, end))?;
    let taken = &files[newest..];
    if context.level0_goes_down() || any_busy(taken) {
        return Some(RangeStep::Blocked);
    }
    let out = level_targets(version, options).level0_output;
    let plan = level0::merge_down(version, options, context, out, taken, Reason::Manual);
    Some(RangeStep::run(plan, RangeCursor::start_of(1)))
}

/// The files of the cursor's level that are still to be brought down.
fn remaining(
    version: &Version,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    cursor: &RangeCursor,
) -> Range<usize> {
    let (order, level) = (version.order(), version.level(cursor.level));
    let files = level.files();
    let mut start = begin.map_or(0, |begin| level.seek(order, begin));
    if let Some(after) = &cursor.after {
        start =
            start.max(files.partition_point(|file| order.compare(file.largest_user_key(), after).is_le()));
    }
    let end = end.map_or(files.len(), |end| {
        files.partition_point(|file| !file.starts_after(order, end))
    });
    level.clean_cut(order, start..end.max(start))
}

/// Brings down as many of `files` as a job may take, from the first on.
fn sorted_step(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    level: usize,
    files: Range<usize>,
) -> RangeStep {
    let order = version.order();
    let (at, below) = (version.level(level), version.level(level + 1));
    let max = context.max_job_bytes(options);
    // Whoever asks for a compaction wants tombstones gone; a move would keep them.
    let kind_of = |group: &Range<usize>, overlap: &Range<usize>| {
        if overlap.is_empty()
            && !options.rewrites_for_rows()
            && !at.files()[group.clone()].iter().any(|file| file.has_tombstones())
        {
            PlanKind::Move
        } else {
            PlanKind::Merge
        }
    };
    let mut taken: Option<(Range<usize>, Range<usize>, PlanKind)> = None;
    let mut next = files.start;
    while next < files.end {
        let group = files.start..at.clean_cut(order, next..next + 1).end;
        next = group.end;
        if any_busy(&at.files()[group.clone()]) {
            break;
        }
        let Some((smallest, largest)) = key_range(order, &at.files()[group.clone()]) else {
            break;
        };
        let Some(overlap) = free_overlap(version, context, level + 1, smallest, largest) else {
            break;
        };
        let bytes = at.range_bytes(&group).saturating_add(below.range_bytes(&overlap));
        let kind = kind_of(&group, &overlap);
        // What can be moved is not rewritten for the sake of what can't.
        let worse = |before: PlanKind| before == PlanKind::Move && kind == PlanKind::Merge;
        if taken
            .as_ref()
            .is_some_and(|(_, _, before)| worse(*before) || bytes > max)
        {
            break;
        }
        taken = Some((group, overlap, kind));
    }
    let Some((group, overlap, kind)) = taken else {
        return RangeStep::Blocked;
    };
    let files = &at.files()[group];
    let after = files.last().map(|file| file.largest_user_key().to_vec());
    let inputs = vec![
        InputLevel {
            level,
            files: files.to_vec(),
        },
        InputLevel {
            level: level + 1,
            files: below.files()[overlap].to_vec(),
        },
    ];
    let plan = Plan::new(version, options, (level, level + 1), inputs, kind, Reason::Manual);
    let next = RangeCursor {
        after,
        ..RangeCursor::start_of(level)
    };
    RangeStep::run(plan, next)
}

/// Everything from all levels into the last one, in one plan: after a load without compaction this writes each row
/// once more, instead of once for each level. A move if no two tables overlap. `None` if all is there already or a
/// job is running.
pub fn plan_bulk(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    let order = version.order();
    let last = version.level_count() - 1;
    let first = (0..last).find(|&level| !version.level(level).is_empty())?;
    if !context.running.is_empty() || version.files().any(|(_, file)| file.is_being_compacted()) {
        return None;
    }
    let mut all: Vec<&FileMeta> = version.files().map(|(_, file)| &**file).collect();
    all.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
    let apart = all
        .windows(2)
        .all(|pair| pair[0].ends_before(order, pair[1].smallest_user_key()));
    let kind = if apart && !options.rewrites_for_rows() && !all.iter().any(|file| file.has_tombstones()) {
        PlanKind::Move
    } else {
        PlanKind::Merge
    };
    let inputs = (first..=last)
        // What is in the last level already need not take part in a move.
        .filter(|&level| kind == PlanKind::Merge || level < last)
        .map(|level| InputLevel {
            level,
            files: version.level(level).files().to_vec(),
        })
        .collect();
    Plan::new(version, options, (first, last), inputs, kind, Reason::Bulk)
}
