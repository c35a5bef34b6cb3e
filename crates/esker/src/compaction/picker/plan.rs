//! What a compaction is to do.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::conflict::RunningJob;
use crate::key::KeyOrder;
use crate::options::ColumnFamilyOptions;
use crate::version::{FileMeta, Version, VersionEdit};

/// How a plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanKind {
    /// The files change their level and nothing is written.
    Move,
    /// The inputs are merged into new files of the output level.
    Merge,
}

/// Why a plan was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Level 0 has too many files or bytes.
    Level0Full,
    /// Level 0 is deep and can't go down now: its newest files are made into one.
    Level0Deep,
    /// The level is larger than its target.
    LevelFull,
    /// The level is above the base level and should be empty.
    LevelUnused,
    /// The file was marked: it has many tombstones.
    Marked,
    /// The file is older than files of the family may be.
    Age,
    /// Readers step over what is hidden in level 0 or by it again and again.
    HiddenRows,
    /// Blob files that the tables point into have too much dead space.
    BlobSpace,
    /// A key range was asked for.
    Manual,
    /// Everything was asked for, at once.
    Bulk,
}

/// The input files of one level: level 0 newest first, others by key.
#[derive(Clone, Debug)]
pub struct InputLevel {
    /// The level.
    pub level: usize,
    /// Its files that take part; never empty.
    pub files: Vec<Arc<FileMeta>>,
}

/// A compaction to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The level that has to give.
    pub level_in: usize,
    /// The level that takes.
    pub level_out: usize,
    /// The files to read, from the newest level to the oldest.
    pub inputs: Vec<InputLevel>,
    /// Files below the output level that the output will overlap: where it is best cut ([`super::OutputSplitter`]).
    pub grandparents: Vec<Arc<FileMeta>>,
    /// Move or merge.
    pub kind: PlanKind,
    /// Whether no older version of any key in the range exists outside the inputs, so that tombstones may go.
    pub bottommost: bool,
    /// Why.
    pub reason: Reason,
    /// The score of the level when it was picked; 0.0 where that was not the reason.
    pub score: f64,
    /// The smallest user key of all inputs.
    pub smallest: Vec<u8>,
    /// The largest user key of all inputs (inclusive, even if it is a range tombstone's end).
    pub largest: Vec<u8>,
    /// The size at which the output starts a new file, in bytes.
    pub output_file_bytes: u64,
}

impl Plan {
    /// A plan with everything that follows from the inputs filled in; `None` without inputs. A level 0 among the
    /// inputs must be all of it or its oldest part.
    pub(super) fn new(
        version: &Version,
        options: &ColumnFamilyOptions,
        (level_in, level_out): (usize, usize),
        inputs: Vec<InputLevel>,
        kind: PlanKind,
        reason: Reason,
    ) -> Option<Self> {
        let order = version.order();
        let inputs: Vec<InputLevel> = inputs
            .into_iter()
            .filter(|input| !input.files.is_empty())
            .collect();
        let (smallest, largest) = key_range(order, inputs.iter().flat_map(|input| &input.files))?;
        let (smallest, largest) = (smallest.to_vec(), largest.to_vec());
        let within_level0 = level_out == 0;
        let grandparents = if within_level0 {
            Vec::new()
        } else {
            (level_out + 1..version.level_count())
                .map(|level| (level, version.overlapping(level, &smallest, &largest)))
                .find(|(_, range)| !range.is_empty())
                .map(|(level, range)| version.level(level).files()[range].to_vec())
                .unwrap_or_default()
        };
        // A merge takes all that it meets in the output level; files that are moved may lie on both sides of others.
        let meets_all =
            || kind == PlanKind::Merge || version.overlapping(level_out, &smallest, &largest).is_empty();
        let bottommost = !within_level0 && grandparents.is_empty() && meets_all();
        Some(Self {
            level_in,
            level_out,
            inputs,
            grandparents,
            kind,
            bottommost,
            reason,
            score: 0.0,
            smallest,
            largest,
            output_file_bytes: if within_level0 {
                u64::MAX
            } else {
                output_file_bytes(version, options)
            },
        })
    }

    /// All input files with their levels.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMeta>)> {
        self.inputs
            .iter()
            .flat_map(|input| input.files.iter().map(move |file| (input.level, file)))
    }

    /// Bytes of all input files.
    pub fn input_bytes(&self) -> u64 {
        self.files()
            .fold(0, |sum, (_, file)| sum.saturating_add(file.size_bytes))
    }

    /// Marks the inputs as being compacted. Only for who may pick (see the module). `false`, and nothing is marked,
    /// if another job has one of them.
    pub fn claim(&self) -> bool {
        for (done, (_, file)) in self.files().enumerate() {
            if file.being_compacted.swap(true, Relaxed) {
                self.files()
                    .take(done)
                    .for_each(|(_, file)| file.being_compacted.store(false, Relaxed));
                return false;
            }
        }
        true
    }

    /// Undoes [`claim`](Self::claim): when the job is given up, and for moved files when it is done.
    pub fn release(&self) {
        self.files()
            .for_each(|(_, file)| file.being_compacted.store(false, Relaxed));
    }

    /// What others must know about the plan while it runs.
    pub fn running(&self) -> RunningJob {
        RunningJob {
            level_in: self.level_in,
            level_out: self.level_out,
            smallest: self.smallest.clone(),
            largest: self.largest.clone(),
        }
    }

    /// The edit that takes the inputs out of the version; a move's also puts them into the output level. A merge's
    /// outputs are for the caller to add.
    pub fn edit(&self, column_family: u32) -> VersionEdit {
        let mut edit = VersionEdit::of(column_family);
        for (level, file) in self.files() {
            if self.kind == PlanKind::Move {
                if level == self.level_out {
                    continue;
                }
                edit.add(self.level_out, Arc::clone(file));
            }
            edit.remove(level, file.number);
        }
        edit
    }
}

/// Output files of a small database are smaller than `file_bytes`: a job reads whole files, and one that takes seconds
/// holds up level 0 for as long. So that a database has some hundred files, but never tiny ones.
fn output_file_bytes(version: &Version, options: &ColumnFamilyOptions) -> u64 {
    const FILES: u64 = 128;
    const BYTES_MIN: u64 = 8 << 20;
    (version.size_bytes() / FILES)
        .max(BYTES_MIN)
        .min(options.file_bytes)
}

/// The smallest and the largest user key of some files.
pub(super) fn key_range<'a>(
    order: &KeyOrder,
    files: impl IntoIterator<Item = &'a Arc<FileMeta>>,
) -> Option<(&'a [u8], &'a [u8])> {
    let mut files = files.into_iter();
    let first = files.next()?;
    let start = (first.smallest_user_key(), first.largest_user_key());
    Some(files.fold(start, |(smallest, largest), file| {
        let (low, high) = (file.smallest_user_key(), file.largest_user_key());
        (
            if order.compare(low, smallest) == Ordering::Less {
                low
            } else {
                smallest
            },
            if order.compare(high, largest) == Ordering::Greater {
                high
            } else {
                largest
            },
        )
    }))
}
