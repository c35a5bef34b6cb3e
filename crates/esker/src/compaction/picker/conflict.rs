//! What running jobs have taken.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version};

/// A compaction that was claimed and is not installed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// The level that gives.
    pub level_in: usize,
    /// The level that takes.
    pub level_out: usize,
    /// The smallest user key of its inputs.
    pub smallest: Vec<u8>,
    /// The largest user key of its inputs.
    pub largest: Vec<u8>,
}

/// What the picker must know besides the version.
#[derive(Clone, Copy, Debug, Default)]
pub struct PickerContext<'a> {
    /// The running jobs of the column family.
    pub running: &'a [RunningJob],
    /// Input bytes up to which a job is extended beyond what it must take; 0: 25 times `file_bytes`.
    pub max_job_bytes: u64,
    /// The time, in seconds since 1970 UTC; 0: no table is too old.
    pub now_unix_seconds: u64,
    /// Rows that iterators have stepped over for nothing since level 0 was last merged down; 0 also where the merge had better wait.
    pub hidden_rows: u64,
}

impl PickerContext<'_> {
    /// The limit in effect.
    pub(super) fn max_job_bytes(&self, options: &ColumnFamilyOptions) -> u64 {
        match self.max_job_bytes {
            0 => options.file_bytes.saturating_mul(25),
            bytes => bytes,
        }
    }

    /// Whether a running job will write into `smallest..=largest` (user keys) of `level`.
    pub fn writes_into(&self, order: &KeyOrder, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        self.running.iter().any(|job| {
            job.level_out == level
                && order.compare(&job.smallest, largest) != Ordering::Greater
                && order.compare(smallest, &job.largest) != Ordering::Greater
        })
    }

    /// Whether a job takes files from level 0 down.
    pub fn level0_goes_down(&self) -> bool {
        self.running
            .iter()
            .any(|job| job.level_in == 0 && job.level_out != 0)
    }
}

/// Whether a job has one of these files.
pub(super) fn any_busy(files: &[Arc<FileMeta>]) -> bool {
    files.iter().any(|file| file.is_being_compacted())
}

/// The files of `level` that a job with outputs in `smallest..=largest` of it must read, or `None` if one of them is
/// taken or another job writes there.
pub(super) fn free_overlap(
    version: &Version,
    context: &PickerContext<'_>,
    level: usize,
    smallest: &[u8],
    largest: &[u8],
) -> Option<Range<usize>> {
    let order = version.order();
    if context.writes_into(order, level, smallest, largest) {
        return None;
    }
    let at = version.level(level);
    let range = at.clean_cut(order, at.overlapping(order, smallest, largest));
    if any_busy(&at.files()[range.clone()]) {
        return None;
    }
    // A clean cut may have reached beyond the range that was checked.
    match (
        at.files().get(range.start),
        range.end.checked_sub(1).and_then(|end| at.files().get(end)),
    ) {
        (Some(first), Some(end)) if !range.is_empty() => {
            let taken = context.writes_into(order, level, first.smallest_user_key(), end.largest_user_key());
            (!taken).then_some(range)
        }
        _ => Some(range),
    }
}
