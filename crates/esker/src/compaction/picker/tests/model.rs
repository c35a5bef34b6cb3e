//! A database of which only the sizes exist.
//!
//! Keys are slots `0..keys`; a file is a range of slots and the number of rows in it, taken to be spread evenly.
//! Merging files of densities `a` and `b` gives the density `1 - (1 - a)(1 - b)`, which is what random keys do. So a
//! merge costs by the number of files, not of rows, and terabytes are written in seconds.

use std::sync::Arc;

use super::check::check;
use crate::compaction::picker::{OutputSplitter, PickerContext, Plan, PlanKind, pick};
use crate::key::{KeyOrder, ValueKind, internal_key};
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version, VersionEdit};

/// What was written and seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub user_bytes: f64,
    pub flushed_bytes: f64,
    pub compacted_bytes: f64,
    pub moves: u64,
    pub merges: u64,
    pub checked: u64,
    pub level0_files_max: usize,
    /// Flushes that had to wait because level 0 was full.
    pub waits: u64,
    /// The most jobs that ran at once.
    pub jobs_max: usize,
}

/// A running job and the bytes it still has to write.
struct Job {
    plan: Plan,
    left_bytes: f64,
}

pub struct Model {
    pub version: Version,
    pub options: ColumnFamilyOptions,
    pub totals: Totals,
    keys: u64,
    row_bytes: u64,
    workers: usize,
    jobs: Vec<Job>,
    number: u64,
    sequence: u64,
}

fn slot(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

impl Model {
    /// A database without files that can hold `keys` rows.
    pub fn new(options: ColumnFamilyOptions, keys: u64, row_bytes: u64, workers: usize) -> Self {
        options.validate().expect("valid options");
        Self {
            version: Version::empty(KeyOrder::Bytewise, options.levels),
            options,
            totals: Totals::default(),
            keys,
            row_bytes,
            workers,
            jobs: Vec::new(),
            number: 0,
            sequence: 0,
        }
    }

    fn file(&mut self, first: u64, last: u64, rows: f64, sequence: u64) -> Arc<FileMeta> {
        self.number += 1;
        let entries = rows.clamp(1.0, (last - first + 1) as f64) as u64;
        Arc::new(FileMeta {
            number: self.number,
            size_bytes: entries * self.row_bytes,
            smallest: internal_key(&first.to_be_bytes(), sequence, ValueKind::Put),
            largest: internal_key(&last.to_be_bytes(), sequence, ValueKind::Put),
            sequence_min: sequence,
            sequence_max: sequence,
            entries,
            ..FileMeta::default()
        })
    }

    /// Fills the last level with every key.
    pub fn load_full(&mut self) {
        let rows = self.options.file_bytes / self.row_bytes;
        let (last, mut edit) = (self.version.level_count() - 1, VersionEdit::default());
        for first in (0..self.keys).step_by(rows as usize) {
            let end = (first + rows).min(self.keys) - 1;
            let file = self.file(first, end, (end - first + 1) as f64, 0);
            edit.add(last, file);
        }
        self.version = self.version.apply(&edit).expect("disjoint");
    }

    /// Flushes a memtable of uniformly random keys, after the background work that falls into its time: each worker
    /// writes `speed` bytes for each byte that users write.
    pub fn write_random(&mut self, speed: f64) {
        let written = (self.options.memtable_bytes / self.row_bytes) as f64;
        let keys = self.keys as f64;
        let distinct = keys * (1.0 - (-written / keys).exp());
        self.flush(0, self.keys - 1, distinct, written, speed);
    }

    /// Flushes a memtable of the keys from `first` on; gives the first key after them.
    pub fn write_sequential(&mut self, first: u64, speed: f64) -> u64 {
        let rows = self.options.memtable_bytes / self.row_bytes;
        self.flush(first, first + rows - 1, rows as f64, rows as f64, speed);
        first + rows
    }

    fn flush(&mut self, first: u64, last: u64, rows: f64, written: f64, speed: f64) {
        let budget = written * self.row_bytes as f64 * speed;
        self.work(budget);
        while self.version.level(0).len() >= self.options.level0_files_max {
            self.totals.waits += 1;
            self.work(budget);
        }
        self.sequence += 1;
        let file = self.file(first, last, rows, self.sequence);
        self.totals.user_bytes += written * self.row_bytes as f64;
        self.totals.flushed_bytes += file.size_bytes as f64;
        let mut edit = VersionEdit::default();
        edit.add(0, file);
        self.version = self.version.apply(&edit).expect("level 0 takes everything");
        self.totals.level0_files_max = self.totals.level0_files_max.max(self.version.level(0).len());
    }

    /// Lets the workers write `budget` bytes each.
    fn work(&mut self, budget: f64) {
        let mut left = budget;
        loop {
            self.start_jobs();
            // The job that ends first, if it ends in time.
            let soonest = (0..self.jobs.len())
                .min_by(|&a, &b| self.jobs[a].left_bytes.total_cmp(&self.jobs[b].left_bytes));
            let Some(soonest) = soonest else {
                return;
            };
            let step = self.jobs[soonest].left_bytes.min(left);
            self.jobs.iter_mut().for_each(|job| job.left_bytes -= step);
            left -= step;
            if self.jobs[soonest].left_bytes > 0.0 {
                return;
            }
            let job = self.jobs.swap_remove(soonest);
            self.install(&job.plan);
        }
    }

    /// Works until nothing is left to do.
    pub fn settle(&mut self) {
        self.work(f64::INFINITY);
    }

    fn start_jobs(&mut self) {
        while self.jobs.len() < self.workers {
            let running: Vec<_> = self.jobs.iter().map(|job| job.plan.running()).collect();
            let context = PickerContext {
                running: &running,
                max_job_bytes: 0,
                ..PickerContext::default()
            };
            let Some(plan) = pick(&self.version, &self.options, &context) else {
                return;
            };
            let picked = self.totals.moves + self.totals.merges;
            // The oracle compares all with all: every plan of a small database, a sample of a large one's.
            if self.version.file_count() < 400 || picked.is_multiple_of(101) {
                check(&self.version, &running, &plan).unwrap_or_else(|wrong| panic!("{wrong}: {plan:?}"));
                self.totals.checked += 1;
            }
            assert!(plan.claim(), "a file was taken: {plan:?}");
            if plan.kind == PlanKind::Move {
                self.totals.moves += 1;
                self.install(&plan);
            } else {
                self.totals.merges += 1;
                let left_bytes = plan.input_bytes() as f64;
                self.jobs.push(Job { plan, left_bytes });
                self.totals.jobs_max = self.totals.jobs_max.max(self.jobs.len());
            }
        }
    }

    fn install(&mut self, plan: &Plan) {
        let mut edit = plan.edit(0);
        if plan.kind == PlanKind::Merge {
            for file in self.merge(plan) {
                self.totals.compacted_bytes += file.size_bytes as f64;
                edit.add(plan.level_out, file);
            }
        }
        self.version = self
            .version
            .apply(&edit)
            .unwrap_or_else(|error| panic!("{error}: {plan:?}"));
        plan.release();
    }

    /// The output files of a merge.
    fn merge(&mut self, plan: &Plan) -> Vec<Arc<FileMeta>> {
        struct Input {
            first: u64,
            end: u64,
            density: f64,
        }
        let inputs: Vec<Input> = plan
            .files()
            .map(|(_, file)| {
                let (first, end) = (slot(file.smallest_user_key()), slot(file.largest_user_key()) + 1);
                Input {
                    first,
                    end,
                    density: file.entries as f64 / (end - first) as f64,
                }
            })
            .collect();
        let mut bounds: Vec<u64> = inputs.iter().flat_map(|input| [input.first, input.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let order = KeyOrder::Bytewise;
        let mut splitter = OutputSplitter::new(&order, &plan.grandparents, plan.output_file_bytes);
        let mut pieces: Vec<(u64, u64, f64)> = Vec::new();
        let (mut start, mut rows) = (bounds[0], 0.0);
        for pair in bounds.windows(2) {
            let missing: f64 = inputs
                .iter()
                .filter(|input| input.first <= pair[0] && pair[1] <= input.end)
                .map(|input| 1.0 - input.density)
                .product();
            let density = 1.0 - missing;
            // Small steps, so that a file ends near where the splitter wants it to.
            let step_bytes = (plan.output_file_bytes.min(self.options.file_bytes) / 32) as f64;
            let step = (step_bytes / (density.max(1e-9) * self.row_bytes as f64)).max(1.0);
            let steps = ((pair[1] - pair[0]) as f64 / step).ceil().max(1.0) as u64;
            for i in 0..steps {
                let at = pair[0] + (pair[1] - pair[0]) * i / steps;
                let end = pair[0] + (pair[1] - pair[0]) * (i + 1) / steps;
                let bytes = (rows * self.row_bytes as f64) as u64;
                if splitter.should_split_before(&at.to_be_bytes(), bytes) {
                    pieces.push((start, at, rows));
                    (start, rows) = (at, 0.0);
                }
                rows += (end - at) as f64 * density;
            }
        }
        let end = bounds[bounds.len() - 1];
        pieces.push((start, end, rows));
        let sequence = plan.files().map(|(_, file)| file.sequence_max).max().unwrap_or(0);
        let files = pieces.into_iter().filter(|piece| piece.2 >= 1.0);
        files
            .map(|(start, end, rows)| self.file(start, end - 1, rows, sequence))
            .collect()
    }
}
