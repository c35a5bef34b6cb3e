//! Carries out a merge: reads the inputs once, in order, and writes what survives once.
//!
//! A large merge is cut into key ranges that run in parallel; each has cursors, drop rules and outputs of its own, and
//! shares nothing but the throttle. Ranges begin and end between user keys.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use esker_env::Spawn;

use super::picker::{self, OutputSplitter, Plan, Reason};
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{CompactionFilter, FilterContext, RewriteCause};
use crate::key::{Cursor, FragmentedTombstones, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, internal_key};
use crate::read::MergingCursor;
use crate::rewrite::{
    self, Expired, Fetch, OutputContext, Outputs, RowFilter, RowSource, Rows, Rules, Written,
    carried_tombstones,
};
use crate::sstable::{CursorOptions, Purpose, Table, TableReadOptions, WriteTimes};
use crate::version::{FileMeta, Tables, Version};

mod age;
mod chain;

use chain::ChainCursor;

/// Ranges are not made smaller than this many input bytes.
const RANGE_BYTES_MIN: u64 = 16 << 20;

/// Rows between two looks at whether the database is being closed.
const ROWS_PER_CHECK: u32 = 4096;

/// A merge and all it needs.
pub struct Job<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// The version from which the plan was made, or a later one.
    pub version: &'a Version,
    /// Snapshots that were alive after the inputs were chosen.
    pub snapshots: Vec<Sequence>,
    /// Where tables are opened.
    pub tables: &'a Tables,
    /// Where outputs go.
    pub output: OutputContext<'a>,
    /// Starts threads.
    pub spawn: &'a dyn Spawn,
    /// Key ranges at most.
    pub ranges_max: usize,
    /// Ends the job early, with an error, when it becomes true.
    pub stop: &'a AtomicBool,
}

/// Runs a merge; gives the new files, complete and synced. On an error nothing is left behind.
pub fn run(job: &Job<'_>) -> Result<Written> {
    let mut written = merge(job)?;
    if job.plan.bottommost {
        written.unmark();
    }
    Ok(written)
}

fn merge(job: &Job<'_>) -> Result<Written> {
    let order = job.version.order();
    let mut levels = Vec::new();
    let mut tombstones = Vec::new();
    for input in &job.plan.inputs {
        let mut tables = Vec::new();
        for file in &input.files {
            let table = job.tables.for_background(file, order, job.output.io)?;
            if file.range_tombstones > 0 {
                tombstones.push(Arc::clone(table.range_tombstones()));
            }
            tables.push((Arc::clone(file), table));
        }
        levels.push((input.level, tables));
    }
    let tombstones = Arc::new(FragmentedTombstones::merge(
        order,
        tombstones.iter().map(Arc::as_ref),
    ));
    let carried = carried_tombstones(order, &tombstones, &job.snapshots, job.plan.bottommost);
    let mut inputs = Inputs {
        levels,
        tombstones,
        carried,
        expired: Expired::Nothing,
        write_times: WriteTimes::default(),
    };
    (inputs.expired, inputs.write_times) = age::age(job, &inputs);

    let cuts = cuts(job, &inputs, order)?;
    let mut ranges: Vec<Range<'_>> = Vec::with_capacity(cuts.len() + 1);
    let mut start = None;
    for cut in &cuts {
        ranges.push(Range {
            start,
            end: Some(cut),
        });
        start = Some(cut.as_slice());
    }
    ranges.push(Range { start, end: None });

    if let [range] = ranges.as_slice() {
        return run_range(job, &inputs, *range)?.commit();
    }
    let results: Vec<Mutex<Option<Result<Finished<'_>>>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
    let tasks = ranges
        .iter()
        .zip(&results)
        .map(|(range, result)| {
            let inputs = &inputs;
            let task: Box<dyn FnOnce() + Send + '_> =
                Box::new(move || *result.lock() = Some(run_range(job, inputs, *range)));
            task
        })
        .collect();
    job.spawn.run_all("esker-range", tasks);
    let mut finished = Vec::new();
    for result in results {
        let result = result.into_inner();
        finished.push(result.unwrap_or_else(|| Err(Error::bug("a part of a compaction did not run")))?);
    }
    let mut written = Written::default();
    for part in finished {
        written.append(part.commit()?);
    }
    Ok(written)
}

type OpenFile = (Arc<FileMeta>, Arc<Table>);

/// Open tables of the inputs.
struct Inputs {
    /// Level and files of each input.
    levels: Vec<(usize, Vec<OpenFile>)>,
    /// All range tombstones.
    tombstones: Arc<FragmentedTombstones>,
    /// Those that outputs must hold.
    carried: FragmentedTombstones,
    /// Which rows are too old.
    expired: Expired,
    /// What outputs are to say about when rows were written.
    write_times: WriteTimes,
}

/// User keys from `start` up to `end` (exclusive).
#[derive(Clone, Copy)]
struct Range<'a> {
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
}

/// Files of one range, removed unless they are committed.
struct Finished<'a> {
    outputs: Outputs<'a>,
}

impl Finished<'_> {
    fn commit(self) -> Result<Written> {
        self.outputs.finish()
    }
}

/// Where the merge is cut into ranges of about the same size.
fn cuts(job: &Job<'_>, inputs: &Inputs, order: &KeyOrder) -> Result<Vec<Vec<u8>>> {
    let parts = (job.plan.input_bytes() / RANGE_BYTES_MIN).min(job.ranges_max as u64) as usize;
    // The newest memtables' files made into one stay one file.
    if parts < 2 || job.plan.level_out == 0 {
        return Ok(Vec::new());
    }
    let mut anchors: Vec<(Vec<u8>, u64)> = Vec::new();
    for (_, table) in inputs.levels.iter().flat_map(|(_, tables)| tables) {
        let mut before = 0;
        for point in table.key_ranges(64)? {
            anchors.push((point.user_key, point.bytes_before - before));
            before = point.bytes_before;
        }
    }
    let anchors = anchors
        .iter()
        .map(|(key, bytes)| (key.as_slice(), *bytes))
        .collect();
    Ok(picker::split_points(order, anchors, parts))
}

fn run_range<'a>(job: &'a Job<'a>, inputs: &Inputs, range: Range<'_>) -> Result<Finished<'a>> {
    let order = job.version.order();
    let read = TableReadOptions {
        verify_checksums: true,
        fill_cache: false,
    };
    let options = CursorOptions {
        read,
        readahead_bytes: 0,
        upper_bound: range.end.map(<[u8]>::to_vec),
        purpose: Purpose::Compaction,
    };
    let mut sources = Vec::new();
    for (level, tables) in &inputs.levels {
        if *level == 0 {
            for (_, table) in tables {
                let chain = vec![Arc::clone(table)];
                sources.push(ChainCursor::new(chain, options.clone()));
            }
        } else {
            // Files that lie before the range are never opened by a cursor, and those behind it never reached.
            let reaches = |file: &FileMeta| range.start.is_none_or(|start| !file.ends_before(order, start));
            let chain = tables
                .iter()
                .filter(|(file, _)| reaches(file))
                .map(|(_, table)| Arc::clone(table));
            sources.push(ChainCursor::new(chain.collect(), options.clone()));
        }
    }
    let mut merging = MergingCursor::new(order.clone(), sources);
    match range.start {
        None => merging.seek_to_first()?,
        Some(start) => merging.seek(&internal_key(start, SEQUENCE_MAX, ValueKind::SEEK))?,
    }
    let family = job.output.options;
    let rules = Rules {
        order: order.clone(),
        snapshots: job.snapshots.clone(),
        bottommost: job.plan.bottommost,
        tombstones: Arc::clone(&inputs.tombstones),
        end: range.end.map(<[u8]>::to_vec),
        merge_operator: family.merge_operator.clone(),
        filter: RowFilter::new(user_filter(job), inputs.expired),
        keep_sequences: family.aging.row_limit().is_some(),
        fetch: job.output.blobs.as_ref().map(|inputs| {
            let fetch: Fetch<'_> = Box::new(|pointer| rewrite::fetch(inputs, pointer));
            fetch
        }),
    };
    let mut below = Below::new(job.version, job.plan.level_out);
    // A merge within level 0 leaves older files of level 0 beside it.
    let within_level0 = job.plan.level_out == 0;
    let mut rows = Rows::new(
        merging,
        move |key: &[u8]| within_level0 || below.may_hold(key),
        rules,
    );
    let carried = inputs.carried.clip(order, range.start, range.end);
    let mut outputs =
        Outputs::new(&job.output, Arc::new(carried)).with_write_times(inputs.write_times.clone());
    let mut splitter = OutputSplitter::new(order, &job.plan.grandparents, job.plan.output_file_bytes);
    let mut until_check = ROWS_PER_CHECK;
    while rows.advance()? {
        if rows.starts_key() {
            let key = crate::key::user_key(rows.key());
            if splitter.should_split_before(key, outputs.current_bytes()) {
                outputs.cut(key)?;
            }
        }
        outputs.add(rows.key(), rows.value(), source(rows.input()))?;
        until_check -= 1;
        if until_check == 0 {
            until_check = ROWS_PER_CHECK;
            if job.stop.load(Ordering::Relaxed) {
                return Err(Error::new(
                    ErrorKind::Closed,
                    "the database was closed during a compaction",
                ));
            }
        }
    }
    outputs.close_last()?;
    let dropped = rows.dropped();
    let metrics = job.output.metrics;
    metrics.compaction_dropped.add(dropped.total());
    metrics.rows_filtered.add(dropped.removed);
    metrics.rows_changed.add(dropped.changed);
    metrics.merge_failures.add(dropped.merge_failures);
    Ok(Finished { outputs })
}

/// The family's filter for a key range of the job.
fn user_filter(job: &Job<'_>) -> Option<Box<dyn CompactionFilter>> {
    let factory = job.output.options.hooks.compaction_filter.as_ref()?;
    let cause = match job.plan.reason {
        Reason::Manual | Reason::Bulk => RewriteCause::Manual,
        _ => RewriteCause::Compaction,
    };
    factory.create(&FilterContext::new(
        job.plan.level_out,
        job.plan.bottommost,
        cause,
    ))
}

/// The block that the row to be written comes from. A fold has gone on to what follows its operands, most often in the
/// same block.
#[inline]
fn source(input: &MergingCursor<ChainCursor>) -> RowSource {
    let child = input.children().get(input.child_index());
    RowSource::Block {
        cached: child.is_some_and(ChainCursor::is_cached),
    }
}

/// Whether a key may exist in levels below the output; asked with ascending keys.
struct Below<'a> {
    version: &'a Version,
    /// Next level to look at, with the index of the first file that does not end before the last key asked.
    levels: Vec<(usize, usize)>,
}

impl<'a> Below<'a> {
    fn new(version: &'a Version, level_out: usize) -> Self {
        let levels = (level_out + 1..version.level_count()).filter(|&level| !version.level(level).is_empty());
        Self {
            version,
            levels: levels.map(|level| (level, 0)).collect(),
        }
    }

    fn may_hold(&mut self, key: &[u8]) -> bool {
        let order = self.version.order();
        let within = self.levels.iter_mut().try_for_each(|(level, at)| {
            let files = self.version.level(*level).files();
            while files.get(*at).is_some_and(|file| file.ends_before(order, key)) {
                *at += 1;
            }
            match files.get(*at) {
                Some(file) if !file.starts_after(order, key) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        within.is_break()
    }
}
