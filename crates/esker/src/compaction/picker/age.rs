//! Tables that have become old.

use super::conflict::PickerContext;
use super::leveled::pick_where;
use super::plan::{Plan, Reason};
use crate::options::{ColumnFamilyOptions, CompactionStyle};
use crate::version::Version;

/// A plan for the first table that is too old and free. What it is merged into is as young as the plan, so a table is
/// rewritten once in the time that it may be old.
pub(super) fn pick_aged(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    let limit = options.aging.table_limit()?;
    let old = context.now_unix_seconds.checked_sub(limit)?;
    pick_where(version, options, context, Reason::Age, |file| {
        file.created_unix_seconds <= old
    })
}

/// In how many seconds the next table will be too old, if any will. O(tables).
pub fn next_aged_in(version: &Version, options: &ColumnFamilyOptions, now_unix_seconds: u64) -> Option<u64> {
    let limit = options.aging.table_limit()?;
    if options.compaction_style == CompactionStyle::Manual {
        return None;
    }
    let oldest = version.files().map(|(_, file)| file.created_unix_seconds).min()?;
    Some(oldest.saturating_add(limit).saturating_sub(now_unix_seconds))
}
