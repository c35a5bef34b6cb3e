//! Which blob files are emptied, and which tables are rewritten only for that.
//!
//! Space in a blob file is given back when the last row that points into it is gone. What is dead in the files may come
//! to the part of what is live that `blob_space_percent` allows. Two ways lead there:
//! - *in passing*: a merge at the bottom reads every row of its range anyway, and moves those values to a new file that
//!   lie in the files with the least life in them ([`emptied`]). Under steady writes most of it happens so;
//! - *on purpose*: where more is dead than is allowed, tables that point into those files are rewritten though
//!   nothing else calls for it ([`pick_collect`]).
//!
//! Files are taken from the one with the smallest live part on, as its space costs least to get back, and only as many
//! as are needed: moving values of files that will lose more of them anyway is work done too early.

use super::conflict::PickerContext;
use super::leveled::pick_where;
use super::plan::{Plan, Reason};
use crate::options::ColumnFamilyOptions;
use crate::version::{BlobUse, FileMeta, Garbage, Version};

/// Garbage, as a part of what is allowed, that merges at the bottom aim at. The rest is for what is written before the next merge,
/// for what merges write before what they replace can go, and for the log.
const WANTED: f64 = 0.6;

/// Of the dead bytes that are wanted this part may be left however many rows are in doubt: to leave less is dear.
const DEAD_PART: u64 = 2;

/// Dead bytes, as a part of those allowed, that rewriting on purpose leaves.
const LEAVE_ON_PURPOSE: f64 = 0.9;

/// Bytes of values that a merge may move beside those that come from above.
const MOVED_MIN: u64 = 16 << 20;

/// And bytes that it moves at most, however much comes from above.
const MOVED_MAX: u64 = 256 << 20;

/// How many times as much it moves while writers are held back for the sake of space.
const MOVED_IF_HELD: u64 = 3;

/// Rows whose values are moved bring at least so many bytes with them; fewer aren't worth a new file.
const BYTES_MIN: u64 = 1 << 20;

/// What is surely dead, as a part of what is allowed by the rows alone, may be so much however many rows are in doubt.
const CERTAIN_PART: u64 = 4;

/// Dead bytes in the blob files, and how many there may be.
///
/// Each row above the lowest level with data may hide another one that no merge has met yet, whose value then is dead
/// though a table refers to it. So the rows of the lowest level alone are taken for live, and the others for garbage
/// that can't be collected: what can be has to make room for it, down to a quarter of what would be allowed without it.
fn dead_and_allowed(version: &Version, options: &ColumnFamilyOptions) -> (u64, u64) {
    let referred = version.blobs().live_bytes();
    let dead = version.blobs().file_bytes().saturating_sub(referred);
    let in_doubt = bytes_above_lowest(version);
    let allowed = part_of(referred.saturating_sub(in_doubt), options).saturating_sub(in_doubt);
    (dead, allowed.max(part_of(referred, options) / CERTAIN_PART))
}

/// How many bytes may be dead beside `live` ones.
fn part_of(live: u64, options: &ColumnFamilyOptions) -> u64 {
    (live / 100).saturating_mul(u64::from(options.blob_space_percent.saturating_sub(100)))
}

/// Bytes of records that rows above the lowest level with data point to. O(tables there).
fn bytes_above_lowest(version: &Version) -> u64 {
    let lowest = (0..version.level_count())
        .rev()
        .find(|&level| !version.level(level).is_empty());
    let above = (0..lowest.unwrap_or(0)).flat_map(|level| version.level(level).files());
    above.map(|file| file.blob_bytes()).fold(0, u64::saturating_add)
}

/// How far the dead bytes in blob files are beyond what is allowed: 1.0 is twice what is allowed, 0.0 is within. A few
/// MiB are always allowed.
pub(super) fn blob_excess(version: &Version, options: &ColumnFamilyOptions) -> f64 {
    let (dead, allowed) = dead_and_allowed(version, options);
    let allowed = allowed.max(options.memtable_bytes.saturating_mul(2));
    dead.saturating_sub(allowed) as f64 / allowed.max(1) as f64
}

/// What is dead in the blob files or may be, and how much of it there may be without slowing writers. A burst is let through and
/// collected behind; writes that never end come to the rate at which space is given back.
pub fn garbage(version: &Version, options: &ColumnFamilyOptions) -> Garbage {
    let referred = version.blobs().live_bytes();
    let in_doubt = bytes_above_lowest(version);
    let dead = version.blobs().file_bytes().saturating_sub(referred);
    let allowed = part_of(referred.saturating_sub(in_doubt), options);
    Garbage {
        bytes: dead.saturating_add(in_doubt),
        wanted: ((allowed as f64 * WANTED) as u64).max(options.memtable_bytes.saturating_mul(2)),
    }
}

/// Numbers of the files to empty, ascending, so that about `goal` dead bytes are left; no more of them than have `moved_max`
/// live bytes together, but one.
fn files_to_empty(version: &Version, goal: u64, moved_max: u64) -> Vec<u64> {
    let blobs = version.blobs();
    let mut dead = blobs.file_bytes().saturating_sub(blobs.live_bytes());
    let mut files: Vec<&BlobUse> = version
        .blobs()
        .iter()
        .filter(|blob| blob.live_bytes < blob.file.record_bytes)
        .collect();
    files.sort_by(|a, b| a.live_ratio().total_cmp(&b.live_ratio()));
    let (mut numbers, mut moved) = (Vec::new(), 0_u64);
    for blob in files {
        moved = moved.saturating_add(blob.live_bytes);
        if dead <= goal || (moved > moved_max && !numbers.is_empty()) {
            break;
        }
        dead = dead.saturating_sub(blob.file.file_bytes.saturating_sub(blob.live_bytes));
        numbers.push(blob.file.pointed_as());
    }
    numbers.sort_unstable();
    numbers
}

/// The blob files out of which `plan` moves the values of its rows, ascending by number. `is_held`: writers are held back
/// until there is space.
pub fn emptied(version: &Version, options: &ColumnFamilyOptions, plan: &Plan, is_held: bool) -> Vec<u64> {
    if !plan.bottommost || version.blobs().is_empty() {
        return Vec::new();
    }
    let from_above = plan.files().filter(|(level, _)| *level < plan.level_out);
    let moved_max = match plan.reason {
        Reason::BlobSpace | Reason::Manual | Reason::Bulk => u64::MAX,
        _ => from_above
            .map(|(_, table)| table.blob_bytes())
            .fold(MOVED_MIN, u64::saturating_add)
            .min(MOVED_MAX)
            .saturating_mul(if is_held { MOVED_IF_HELD } else { 1 }),
    };
    let goal = match plan.reason {
        Reason::BlobSpace => goal_on_purpose(version, options),
        _ => {
            let wanted = garbage(version, options).wanted;
            // What comes to light in this merge, and what has come above it when it ends, is garbage as well.
            let found = bytes_above_lowest(version).saturating_mul(2);
            wanted.saturating_sub(found).max(wanted / DEAD_PART)
        }
    };
    let files = files_to_empty(version, goal, moved_max);
    let bytes: u64 = plan.files().map(|(_, table)| bytes_in(table, &files)).sum();
    if bytes < BYTES_MIN && plan.reason != Reason::BlobSpace {
        return Vec::new();
    }
    files
}

fn goal_on_purpose(version: &Version, options: &ColumnFamilyOptions) -> u64 {
    let (_, allowed) = dead_and_allowed(version, options);
    (allowed as f64 * LEAVE_ON_PURPOSE) as u64
}

/// A plan that rewrites tables for nothing but space in blob files, if more of it is dead than is allowed.
pub(super) fn pick_collect(
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
) -> Option<Plan> {
    if version.blobs().is_empty() || blob_excess(version, options) <= 0.0 {
        return None;
    }
    let files = files_to_empty(version, goal_on_purpose(version, options), u64::MAX);
    pick_where(version, options, context, Reason::BlobSpace, |table| {
        bytes_in(table, &files) > 0
    })
}

/// Bytes of records in `files` that rows of `table` point to.
fn bytes_in(table: &FileMeta, files: &[u64]) -> u64 {
    let parts = table.blobs.iter();
    parts
        .filter(|part| files.binary_search(&part.file).is_ok())
        .map(|part| part.bytes)
        .sum()
}
