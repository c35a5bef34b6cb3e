//! Tables of which nobody knows which are older, as one sorted run.
//!
//! Reading stops at the first version of a key that it finds, level by level, so a table may lie above another only if all
//! it has of a key is newer. Without the manifest that can't be told of two tables whose keys and sequence numbers
//! overlap: compactions mix the one with the other, and give rows without older versions the number 0. So tables
//! whose keys overlap are merged, row by row in the order of internal keys, all versions of each key with it: that order is
//! right whatever was mixed. A table that overlaps no other stays as it is.
//!
//! The same write may be there twice, in a table and in what a job made of it. It is kept once: a value rather than the
//! operand from which it was made, and of equal ones the newer table's.

use std::sync::Arc;

use super::Repair;
use super::families::FamilyPlan;
use crate::error::{Error, Result};
use crate::key::{Cursor, FragmentedTombstones, KeyOrder, Sequence, ValueKind, parse_key, user_key};
use crate::read::MergingCursor;
use crate::rewrite::{OutputContext, Outputs, RowSource, Written};
use crate::sstable::{CursorOptions, Purpose, TableCursor};
use crate::version::FileMeta;

/// Tables that overlap each other, if there are several.
pub(super) fn components(order: &KeyOrder, mut files: Vec<Arc<FileMeta>>) -> Vec<Vec<Arc<FileMeta>>> {
    files.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
    let mut components: Vec<Vec<Arc<FileMeta>>> = Vec::new();
    let mut end: Vec<u8> = Vec::new();
    for file in files {
        let reach = file.largest_user_key().to_vec();
        match components.last_mut() {
            Some(last) if order.compare(file.smallest_user_key(), &end).is_le() => {
                if order.compare(&reach, &end).is_gt() {
                    end = reach;
                }
                last.push(file);
            }
            _ => {
                end = reach;
                components.push(vec![file]);
            }
        }
    }
    components
}

/// The files as few runs, in each of which they follow each other.
fn runs(order: &KeyOrder, files: &[Arc<FileMeta>]) -> Vec<Vec<Arc<FileMeta>>> {
    let mut runs: Vec<Vec<Arc<FileMeta>>> = Vec::new();
    for file in files {
        let fits = |run: &&mut Vec<Arc<FileMeta>>| {
            let last = run.last().map(|last| last.largest_user_key());
            last.is_some_and(|last| order.compare(last, file.smallest_user_key()).is_lt())
        };
        match runs.iter_mut().find(fits) {
            Some(run) => run.push(Arc::clone(file)),
            None => runs.push(vec![Arc::clone(file)]),
        }
    }
    runs
}

impl Repair<'_> {
    /// Writes the rows of `files`, sorted by their smallest keys, as tables that follow each other.
    pub(super) fn merge(
        &self,
        plan: &FamilyPlan,
        context: &OutputContext<'_>,
        files: &[Arc<FileMeta>],
    ) -> Result<Written> {
        let order = &plan.options.key_order;
        let mut lists = Vec::new();
        for file in files.iter().filter(|file| file.range_tombstones > 0) {
            lists.push(Arc::clone(self.open_table(file, order)?.range_tombstones()));
        }
        let tombstones = FragmentedTombstones::merge(order, lists.iter().map(Arc::as_ref));
        let cursors = runs(order, files).into_iter().map(|files| Run {
            repair: self,
            order: order.clone(),
            files,
            at: 0,
            cursor: None,
        });
        let mut merging = MergingCursor::new(order.clone(), cursors.collect());
        merging.seek_to_first()?;
        let mut outputs = Outputs::new(context, Arc::new(tombstones));
        let mut best: Option<Row> = None;
        let mut last_user_key: Option<Vec<u8>> = None;
        while merging.valid() {
            let number = merging.children()[merging.child_index()].number();
            let row = Row::new(merging.key(), merging.value(), number)?;
            match &mut best {
                Some(before) if before.is_same_write(&row) => {
                    if row.rank > before.rank {
                        *before = row;
                    }
                }
                _ => {
                    if let Some(before) = best.replace(row) {
                        put(&mut outputs, &before, &mut last_user_key, plan.options.file_bytes)?;
                    }
                }
            }
            merging.next()?;
        }
        if let Some(row) = best {
            put(&mut outputs, &row, &mut last_user_key, plan.options.file_bytes)?;
        }
        outputs.finish()
    }
}

fn put(
    outputs: &mut Outputs<'_>,
    row: &Row,
    last_user_key: &mut Option<Vec<u8>>,
    file_bytes: u64,
) -> Result<()> {
    let next = user_key(&row.key);
    if last_user_key.as_deref() != Some(next) {
        if last_user_key.is_some() && outputs.current_bytes() >= file_bytes {
            outputs.cut(next)?;
        }
        *last_user_key = Some(next.to_vec());
    }
    outputs.add(&row.key, &row.value, RowSource::Block { cached: false })
}

/// A row, and how much it is to be preferred to others of the same write.
struct Row {
    key: Vec<u8>,
    value: Vec<u8>,
    sequence: Sequence,
    rank: (u8, u64),
}

impl Row {
    fn new(key: &[u8], value: &[u8], table: u64) -> Result<Self> {
        let parsed = parse_key(key).ok_or_else(|| Error::bug("a row of no kind came out of a table"))?;
        let kind = match parsed.kind {
            ValueKind::Put | ValueKind::BlobPointer => 2,
            ValueKind::Delete | ValueKind::SingleDelete | ValueKind::RangeDelete => 1,
            ValueKind::Merge => 0,
        };
        Ok(Self {
            key: key.to_vec(),
            value: value.to_vec(),
            sequence: parsed.sequence,
            // Of what has the number 0, being without older versions, the newest table knows best.
            rank: if parsed.sequence == 0 {
                (0, table)
            } else {
                (kind, table)
            },
        })
    }

    fn is_same_write(&self, other: &Self) -> bool {
        self.sequence == other.sequence && user_key(&self.key) == user_key(&other.key)
    }
}

/// A forward-only cursor over tables that follow each other, one of which is open at a time.
struct Run<'a> {
    repair: &'a Repair<'a>,
    order: KeyOrder,
    files: Vec<Arc<FileMeta>>,
    at: usize,
    cursor: Option<TableCursor>,
}

impl Run<'_> {
    /// The number of the table that it stands in.
    fn number(&self) -> u64 {
        self.files.get(self.at).map_or(0, |file| file.number)
    }

    /// Goes on to the first table from `at` on that has a row.
    fn settle(&mut self) -> Result<()> {
        while let Some(file) = self.files.get(self.at) {
            let table = self.repair.open_table(file, &self.order)?;
            let cursor = self.cursor.insert(table.cursor(CursorOptions {
                purpose: Purpose::Compaction,
                ..CursorOptions::default()
            }));
            cursor.seek_to_first()?;
            if cursor.valid() {
                return Ok(());
            }
            self.at += 1;
        }
        self.cursor = None;
        Ok(())
    }

    fn forward_only() -> Error {
        Error::bug("a repair's input is read from front to end only")
    }
}

impl Cursor for Run<'_> {
    fn valid(&self) -> bool {
        self.cursor.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        Err(Self::forward_only())
    }

    fn seek(&mut self, _: &[u8]) -> Result<()> {
        Err(Self::forward_only())
    }

    fn seek_for_prev(&mut self, _: &[u8]) -> Result<()> {
        Err(Self::forward_only())
    }

    fn next(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else {
            return Err(Error::bug("a repair read past its input"));
        };
        cursor.next()?;
        if cursor.valid() {
            return Ok(());
        }
        self.at += 1;
        self.settle()
    }

    fn prev(&mut self) -> Result<()> {
        Err(Self::forward_only())
    }

    fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::key)
    }

    fn value(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::value)
    }
}
