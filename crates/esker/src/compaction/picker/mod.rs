//! Decides what to compact next. Pure: a version and settings go in, a plan comes out.
//!
//! No function here reads a file, a clock or a lock, so that a database of 10 TB can be simulated in seconds and
//! every rule can be drawn as a scenario (`tests/scenarios/`). The caller holds whatever lock makes it the only
//! one that picks for the column family, claims the plan ([`Plan::claim`]) before it lets go, and passes the ranges
//! of the running jobs to the next call.
//!
//! ```text
//! levels.rs     how large each level should be; scores; debt
//! plan.rs       what a plan is; claiming it
//! conflict.rs   which files and ranges running jobs have taken
//! level0.rs     level 0 -> base level, and level 0 -> level 0
//! leveled.rs    a sorted level -> the next one
//! manual.rs     a key range step by step; everything at once
//! hidden.rs     level 0 down, because readers have paid for it
//! age.rs        tables that have become old
//! collect.rs    space in blob files
//! within.rs     tables that go with a key range
//! splitter.rs   where the output of a merge starts a new file
//! split.rs      how a merge is cut into parallel parts
//! ```
//!
//! # Rules that keep every plan legal
//! 1. *Newer above older.* A file leaves a level only together with every overlapping file of the output level, and
//!    with every file of its own level that shares a user key with it. From level 0, the files that go down are the
//!    oldest ones. Between input and output level there is nothing.
//! 2. *One job a file.* No plan holds a file that is being compacted.
//! 3. *One job a place.* Two jobs never write overlapping ranges of one level, and at most one job takes files from
//!    level 0 down.
//! 4. *Dropping for good.* `bottommost` is set only if no file that is not an input can hold an older version of a
//!    key in the plan's range.

mod age;
mod collect;
mod conflict;
mod hidden;
mod level0;
mod leveled;
mod levels;
mod manual;
mod plan;
mod split;
mod splitter;
mod within;

#[cfg(test)]
mod tests;

pub use age::next_aged_in;
pub use collect::{emptied, garbage};
pub use conflict::{PickerContext, RunningJob};
pub use hidden::{merge_takes_memtable, rows_of_level};
pub use levels::{
    LevelScore, LevelTargets, estimate_coming_debt, estimate_debt, level_targets, level0_due_files,
    level0_is_due, scores,
};
pub use manual::{RangeCursor, RangeStep, plan_bulk, plan_range};
pub use plan::{InputLevel, Plan, PlanKind, Reason};
pub use split::split_points;
pub use splitter::OutputSplitter;
pub use within::tables_within;

use crate::options::{ColumnFamilyOptions, CompactionStyle};
use crate::version::Version;

/// The most useful compaction that can run now beside those that do, or `None` if there is nothing to do or
/// everything that is to be done waits for a running job. O(files of one level x log).
pub fn pick(version: &Version, options: &ColumnFamilyOptions, context: &PickerContext<'_>) -> Option<Plan> {
    if options.compaction_style == CompactionStyle::Manual {
        return None;
    }
    let targets = level_targets(version, options);
    let mut candidates = levels::scores_with(version, options, &targets);
    candidates.retain(|candidate| candidate.score >= 1.0);
    candidates.sort_by(|a, b| b.priority.total_cmp(&a.priority));
    // While level 0 waits for jobs that read its output level, none of these may be followed by another of its kind:
    // each would overlap the wait of the one before, for ever.
    let mut reserved = None;
    for candidate in &candidates {
        let picked = if candidate.level == 0 {
            let picked = level0::pick(version, options, &targets, context, candidate.score);
            if picked.is_none() {
                reserved = Some(targets.level0_output);
            }
            picked
        } else if reserved == Some(candidate.level) {
            None
        } else {
            leveled::pick(version, options, context, candidate)
        };
        if picked.is_some() {
            return picked;
        }
    }
    leveled::pick_marked(version, options, context)
        .or_else(|| hidden::pick_hidden(version, options, &targets, context))
        .or_else(|| age::pick_aged(version, options, context))
        .or_else(|| collect::pick_collect(version, options, context))
}
