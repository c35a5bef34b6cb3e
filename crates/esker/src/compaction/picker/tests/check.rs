//! What makes a plan legal, said independently of the picker: by comparing everything with everything.

use std::sync::Arc;

use crate::compaction::picker::{Plan, PlanKind, RunningJob};
use crate::version::{FileMeta, Version};

/// Whether two closed ranges of user keys (bytewise) have a key in common.
fn touch(a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

fn range(file: &FileMeta) -> (&[u8], &[u8]) {
    (file.smallest_user_key(), file.largest_user_key())
}

/// What is wrong with a plan for `version` beside the jobs that run; `Ok` if nothing is. Bytewise order, no
/// exclusive bounds.
pub fn check(version: &Version, running: &[RunningJob], plan: &Plan) -> Result<(), String> {
    let span = (plan.smallest.as_slice(), plan.largest.as_slice());
    let input = |level: usize, file: &Arc<FileMeta>| {
        plan.files()
            .any(|(at, other)| at == level && other.number == file.number)
    };
    if plan.inputs.is_empty() || plan.files().count() == 0 {
        return Err("no inputs".into());
    }
    for (level, file) in plan.files() {
        if !version
            .level(level)
            .files()
            .iter()
            .any(|other| Arc::ptr_eq(other, file))
        {
            return Err(format!("file {} is not in level {level}", file.number));
        }
        if file.is_being_compacted() {
            return Err(format!("file {} is taken", file.number));
        }
        let (low, high) = range(file);
        if low < span.0 || high > span.1 {
            return Err(format!("file {} lies outside the plan's range", file.number));
        }
    }
    for job in running {
        let other = (job.smallest.as_slice(), job.largest.as_slice());
        if job.level_out == plan.level_out && touch(other, span) {
            return Err(format!("writes into level {} where {job:?} does", plan.level_out));
        }
        if job.level_in == 0 && job.level_out > 0 && plan.level_in == 0 && plan.level_out > 0 {
            return Err("two jobs take from level 0".into());
        }
    }
    for (level, file) in version.files().filter(|(level, file)| !input(*level, file)) {
        let overlapping: Vec<_> = plan
            .files()
            .filter(|(_, other)| touch(range(other), range(file)))
            .collect();
        let older_below = overlapping.iter().any(|(at, _)| *at < level);
        let same_level = overlapping.iter().any(|(at, _)| *at == level);
        // Nothing newer may sink below something older that stays behind.
        if level > 0 && level <= plan.level_out && older_below {
            return Err(format!(
                "file {} stays in level {level} below newer data",
                file.number
            ));
        }
        if level > 0 && same_level {
            return Err(format!(
                "file {} of level {level} shares a key with an input",
                file.number
            ));
        }
        if level == 0 && plan.level_out > 0 {
            let newer =
                |(at, other): &(usize, &Arc<FileMeta>)| *at == 0 && other.sequence_max > file.sequence_max;
            if overlapping.iter().any(newer) {
                return Err(format!("file {} is left in level 0 and is older", file.number));
            }
        }
        if level == 0 && plan.level_out == 0 {
            let min = plan.files().map(|(_, other)| other.sequence_max).min();
            let max = plan.files().map(|(_, other)| other.sequence_max).max();
            if min < Some(file.sequence_max) && Some(file.sequence_max) < max {
                return Err(format!("file {} lies within the merged run in time", file.number));
            }
        }
        if level == plan.level_out && level > 0 && plan.kind == PlanKind::Merge && touch(range(file), span) {
            return Err(format!(
                "an output could overlap file {} of level {level}",
                file.number
            ));
        }
        if plan.bottommost && level > plan.level_in && touch(range(file), span) {
            return Err(format!(
                "file {} in level {level} holds older versions",
                file.number
            ));
        }
    }
    if plan.kind == PlanKind::Move && plan.level_in == plan.level_out {
        return Err("a move to where the file is".into());
    }
    Ok(())
}
