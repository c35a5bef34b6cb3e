//! What a job knows about the age of its rows.

use super::{Inputs, Job};
use crate::rewrite::Expired;
use crate::sstable::WriteTimes;

/// Which rows have expired, and what the outputs are to know about the others.
pub(super) fn age(job: &Job<'_>, inputs: &Inputs) -> (Expired, WriteTimes) {
    let Some(limit) = job.output.options.aging.row_limit() else {
        return (Expired::Nothing, WriteTimes::default());
    };
    let now = job.output.env.clock.unix_seconds();
    let expired = now.saturating_sub(limit);
    let tables = || inputs.levels.iter().flat_map(|(_, tables)| tables);
    let times = WriteTimes::merge(tables().map(|(_, table)| &table.properties().write_times));
    // A row was written before its table was.
    let expired = if tables().all(|(file, _)| file.created_unix_seconds <= expired) {
        Expired::Everything
    } else {
        Expired::Until(times.written_until(expired))
    };
    (expired, times.thinned(now, limit))
}
