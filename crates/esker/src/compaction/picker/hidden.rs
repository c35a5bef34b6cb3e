//! Level 0 down before it is due, because readers have paid for it: see `version/hidden.rs`.

use super::conflict::PickerContext;
use super::level_targets;
use super::levels::{LEVEL0_PART, LevelTargets};
use super::plan::{Plan, Reason};
use crate::options::ColumnFamilyOptions;
use crate::version::Version;

/// Steps over hidden rows that are taken to cost as much as it costs to read, merge and write one: some 0.1 us for a step, 0.8 for the other,
/// as far as the rates of scans and merges tell. Neither was measured apart.
const STEPS_PER_ROW: u64 = 8;

/// Whether iterators have spent on `hidden_rows` what it costs to merge level 0, and `rows_above` more that come into it, into the level
/// below. Never before level 0 is worth it: where few rows would come to many, the merge would soon have to be made again.
pub fn merge_pays(
    version: &Version,
    options: &ColumnFamilyOptions,
    rows_above: u64,
    hidden_rows: u64,
) -> bool {
    pays(version, &level_targets(version, options), rows_above, hidden_rows)
}

fn pays(version: &Version, targets: &LevelTargets, rows_above: u64, hidden_rows: u64) -> bool {
    let above = rows_above.saturating_add(rows_of_level(version, 0));
    let below = rows_of_level(version, targets.level0_output);
    let cost = above.saturating_add(below).saturating_mul(STEPS_PER_ROW);
    above > 0 && hidden_rows >= cost && above as f64 * LEVEL0_PART >= below as f64
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
    if context.hidden_rows == 0 || !pays(version, targets, 0, context.hidden_rows) {
        return None;
    }
    let mut plan = super::level0::down(version, options, targets, context)?;
    plan.reason = Reason::HiddenRows;
    Some(plan)
}
