//! Level 0 down before it is due, because readers have paid for it: see `version/hidden.rs`.

use super::conflict::PickerContext;
use super::level_targets;
use super::levels::{LEVEL0_PART, LevelTargets};
use super::plan::{Plan, Reason};
use crate::options::ColumnFamilyOptions;
use crate::version::Version;

/// Steps over hidden rows that cost as much as it costs to read, merge and write one: decision 12 has the measurement.
const STEPS_PER_ROW: u64 = 3;

/// The active memtable goes down with level 0 if it has this part of all rows of the merge, one in so many.
const MEMTABLE_PART: u64 = 16;

/// Whether the memtable, of `rows` rows, should be flushed for a merge that iterators have paid for by `hidden_rows`: of it alone or of level
/// 0, which would otherwise go down without it and soon have to be merged again.
pub fn merge_takes_memtable(
    version: &Version,
    options: &ColumnFamilyOptions,
    rows: u64,
    hidden_rows: u64,
) -> bool {
    let tables = Merge::of(version, &level_targets(version, options));
    let with_memtable = Merge {
        above: tables.above.saturating_add(rows),
        ..tables
    };
    (tables.pays(hidden_rows) || with_memtable.pays(hidden_rows))
        && rows.saturating_mul(MEMTABLE_PART) >= with_memtable.rows()
}

/// Rows of level 0, and of the level that it goes down to.
#[derive(Clone, Copy)]
struct Merge {
    above: u64,
    below: u64,
}

impl Merge {
    fn of(version: &Version, targets: &LevelTargets) -> Self {
        Self {
            above: rows_of_level(version, 0),
            below: rows_of_level(version, targets.level0_output),
        }
    }

    fn rows(self) -> u64 {
        self.above.saturating_add(self.below)
    }

    /// Whether iterators have spent on `hidden_rows` what it costs. Never before level 0 is worth it: where few rows would come to many,
    /// the merge would soon have to be made again.
    fn pays(self, hidden_rows: u64) -> bool {
        self.above > 0
            && hidden_rows >= self.rows().saturating_mul(STEPS_PER_ROW)
            && self.above as f64 * LEVEL0_PART >= self.below as f64
    }
}

/// Point entries of a level.
pub fn rows_of_level(version: &Version, level: usize) -> u64 {
    let level = version.level(level);
    level.sums(&(0..level.len())).entries
}

/// The merge, if it pays.
pub(super) fn pick_hidden(
    version: &Version,
    options: &ColumnFamilyOptions,
    targets: &LevelTargets,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    if context.hidden_rows == 0 || !Merge::of(version, targets).pays(context.hidden_rows) {
        return None;
    }
    let mut plan = super::level0::down(version, options, targets, context)?;
    plan.reason = Reason::HiddenRows;
    Some(plan)
}
