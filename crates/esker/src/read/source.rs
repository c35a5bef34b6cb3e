//! The sources of a view: which cursors and tombstones an iterator merges, and which places a get looks at.

use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use super::ReadOptions;
use super::level::LevelCursor;
use super::merging::{Cover, MergingCursor, SourceCursor, skip_by_seek};
use super::point::{PointLookup, PointValue, Step};
use super::table::TableSource;
use super::visible::{View as Shown, VisibleCursor};
use crate::cache::SharedBytes;
use crate::error::{Error, Result};
use crate::key::{Cursor, FragmentedTombstones, SEQUENCE_MAX, Sequence, ValueKind};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::MergeOperator;
use crate::metrics::Metrics;
use crate::options::{ColumnFamilyOptions, PrefixExtractor};
use crate::sstable::{Block, CursorOptions, Place, Purpose, Table, TableReadOptions};
use crate::version::{FileMeta, Tables, View};

/// A value as a get gives it: pinned in the block cache where it came from there.
#[derive(Clone, Debug)]
pub struct PinnedValue(Held);

#[derive(Clone, Debug)]
enum Held {
    Block(SharedBytes),
    Owned(Vec<u8>),
}

impl PinnedValue {
    /// The value, copied if it is pinned.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Block(bytes) => bytes.to_vec(),
            Held::Owned(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for PinnedValue {
    fn from(value: Vec<u8>) -> Self {
        Self(Held::Owned(value))
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Block(bytes) => bytes,
            Held::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for PinnedValue {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

/// Any source of an iterator.
pub enum AnySource {
    /// A memtable.
    Memtable(MemtableCursor),
    /// A table of level 0.
    Table(Box<TableSource>),
    /// A level.
    Level(Box<LevelCursor>),
}

macro_rules! each {
    ($self:expr, $cursor:ident => $body:expr) => {
        match $self {
            AnySource::Memtable($cursor) => $body,
            AnySource::Table($cursor) => $body,
            AnySource::Level($cursor) => $body,
        }
    };
}

impl Cursor for AnySource {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }
    fn seek_to_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_to_first())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_to_last())
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek(target))
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        each!(self, cursor => cursor.seek_for_prev(target))
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }
}

impl SourceCursor for AnySource {
    fn sequence_max(&self) -> Sequence {
        match self {
            Self::Memtable(_) => SEQUENCE_MAX,
            Self::Table(cursor) => cursor.sequence_max(),
            Self::Level(cursor) => cursor.sequence_max(),
        }
    }

    fn restrict(&mut self, prefix: Option<(PrefixExtractor, &[u8])>) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Table(cursor) => cursor.restrict(prefix),
            Self::Level(cursor) => cursor.restrict(prefix),
        }
    }

    fn set_upper_bound(&mut self, upper_bound: Option<&[u8]>) {
        match self {
            Self::Memtable(_) => {}
            Self::Table(cursor) => cursor.set_upper_bound(upper_bound),
            Self::Level(cursor) => cursor.set_upper_bound(upper_bound),
        }
    }

    fn skip_covered(&mut self, cover: &Cover<'_>, backward: bool, scratch: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Level(cursor) => cursor.skip_covered(cover, backward, scratch),
            _ => skip_by_seek(self, cover, backward, scratch),
        }
    }
}

pub(super) fn memtables(view: &View) -> impl Iterator<Item = &Arc<Memtable>> {
    std::iter::once(&view.active)
        .chain(&view.sealed)
        .map(|buffer| &buffer.table)
}

/// An iterator over what `view` holds at `sequence`.
pub fn cursor_over_view(
    view: &Arc<View>,
    family: &ColumnFamilyOptions,
    tables: &Arc<Tables>,
    sequence: Sequence,
    options: &ReadOptions,
) -> Result<VisibleCursor<AnySource>> {
    let version = &view.version;
    let order = version.order();
    let read = TableReadOptions {
        verify_checksums: options.verify_checksums,
        fill_cache: options.fill_cache,
    };
    let cursor_options = CursorOptions {
        read,
        readahead_bytes: options.readahead_bytes,
        upper_bound: options.upper_bound.clone(),
        purpose: Purpose::User,
    };
    let mut sources = Vec::new();
    let mut tombstones: Vec<Arc<FragmentedTombstones>> = Vec::new();
    for memtable in memtables(view) {
        if memtable.has_range_tombstones() {
            tombstones.push(memtable.range_tombstones());
        }
        sources.push(AnySource::Memtable(memtable.cursor()));
    }
    for (level, file) in version.files() {
        if file.range_tombstones > 0 {
            tombstones.push(Arc::clone(tables.get(file, order)?.range_tombstones()));
        }
        if level == 0 && in_bounds(file, options, version.order()) {
            sources.push(AnySource::Table(Box::new(TableSource::new(
                file,
                tables,
                order,
                cursor_options.clone(),
            )?)));
        }
    }
    for level in 1..version.level_count() {
        if !version.level(level).is_empty() {
            sources.push(AnySource::Level(Box::new(LevelCursor::new(
                Arc::clone(version),
                level,
                Arc::clone(tables),
                cursor_options.clone(),
            ))));
        }
    }
    let (blobs, opener) = (Arc::clone(version.blobs()), Arc::clone(tables));
    let shown = Shown {
        fetch: Some(Arc::new(move |pointer: &[u8]| {
            opener.value(&blobs, pointer, read)
        })),
        order: order.clone(),
        sequence,
        merge_operator: family.merge_operator.clone(),
        lower_bound: options.lower_bound.clone(),
        upper_bound: options.upper_bound.clone(),
        prefix_same: if options.prefix_same {
            family.prefix_extractor
        } else {
            None
        },
    };
    Ok(VisibleCursor::new(
        MergingCursor::new(order.clone(), sources),
        &tombstones,
        shown,
    ))
}

fn in_bounds(file: &FileMeta, options: &ReadOptions, order: &crate::key::KeyOrder) -> bool {
    let after = options
        .upper_bound
        .as_deref()
        .is_some_and(|upper| order.compare(file.smallest_user_key(), upper) != std::cmp::Ordering::Less);
    let before = options
        .lower_bound
        .as_deref()
        .is_some_and(|lower| file.ends_before(order, lower));
    !after && !before
}

/// The value of `key` in `view` as of `sequence`: memtables from the newest to the oldest, level 0 likewise, then
/// one table of each level, until one of them decides.
pub fn get_from_view(
    view: &View,
    tables: &Tables,
    key: &[u8],
    sequence: Sequence,
    options: &ReadOptions,
    operator: Option<&dyn MergeOperator>,
    metrics: &Metrics,
) -> Result<Option<PinnedValue>> {
    metrics.gets.add(1);
    let mut lookup = PointLookup::new();
    let step = search(view, tables, key, sequence, options, &mut lookup)?;
    let _ = step;
    let found = value_of(lookup, key, operator, |pointer| {
        tables.value(view.version.blobs(), pointer, table_read(options))
    })?;
    if found.is_some() {
        metrics.gets_found.add(1);
    }
    Ok(found)
}

/// What tables and blob files are told of a read's options.
#[inline]
pub(super) fn table_read(options: &ReadOptions) -> TableReadOptions {
    TableReadOptions {
        verify_checksums: options.verify_checksums,
        fill_cache: options.fill_cache,
    }
}

/// The value that a lookup came to; `fetch` reads what lies in a blob file.
#[inline]
pub(super) fn value_of(
    lookup: PointLookup<PinnedValue>,
    key: &[u8],
    operator: Option<&dyn MergeOperator>,
    fetch: impl Fn(&[u8]) -> Result<SharedBytes>,
) -> Result<Option<PinnedValue>> {
    Ok(match lookup.finish(key, operator, &fetch)? {
        None => None,
        Some(PointValue::Pinned(value)) => Some(value),
        Some(PointValue::Merged(value)) => Some(PinnedValue(Held::Owned(value))),
        Some(PointValue::Blob(pointer)) => Some(PinnedValue(Held::Block(fetch(&pointer)?))),
    })
}

fn search(
    view: &View,
    tables: &Tables,
    key: &[u8],
    sequence: Sequence,
    options: &ReadOptions,
    lookup: &mut PointLookup<PinnedValue>,
) -> Result<Step> {
    for memtable in memtables(view) {
        if in_memtable(memtable, key, sequence, lookup)? == Step::Done {
            return Ok(Step::Done);
        }
    }
    let read = TableReadOptions {
        verify_checksums: options.verify_checksums,
        fill_cache: options.fill_cache,
    };
    let version = &view.version;
    let order = version.order();
    for file in version.level(0).files() {
        if file.ends_before(order, key) || file.starts_after(order, key) || file.sequence_min > sequence {
            continue;
        }
        if tables.with(file, order, |table| in_table(table, key, sequence, read, lookup))? == Step::Done {
            return Ok(Step::Done);
        }
    }
    for level in 1..version.level_count() {
        let Some(file) = version.level(level).find(order, key) else {
            continue;
        };
        if tables.with(file, order, |table| in_table(table, key, sequence, read, lookup))? == Step::Done {
            return Ok(Step::Done);
        }
    }
    Ok(Step::Continue)
}

pub(super) fn in_memtable(
    memtable: &Memtable,
    key: &[u8],
    sequence: Sequence,
    lookup: &mut PointLookup<PinnedValue>,
) -> Result<Step> {
    if memtable.has_range_tombstones() {
        lookup.cover(memtable.max_covering_tombstone(key, sequence));
    }
    let mut failure = None;
    let flow = memtable.get(key, sequence, |sequence, kind, value| {
        // A copy: a reference into the memtable would have to pin all of it.
        push(lookup, &mut failure, sequence, kind, || {
            PinnedValue(Held::Owned(value.to_vec()))
        })
    });
    settle(lookup, flow, failure)
}

fn in_table(
    table: &Table,
    key: &[u8],
    sequence: Sequence,
    read: TableReadOptions,
    lookup: &mut PointLookup<PinnedValue>,
) -> Result<Step> {
    cover_by_table(table, key, sequence, lookup);
    let mut failure = None;
    let flow = table.get(key, sequence, read, |sequence, kind, value| {
        push(lookup, &mut failure, sequence, kind, || {
            PinnedValue(Held::Block(value.pin()))
        })
    })?;
    settle(lookup, flow, failure)
}

/// Tells the lookup of the table's range tombstones.
#[inline]
pub(super) fn cover_by_table(
    table: &Table,
    key: &[u8],
    sequence: Sequence,
    lookup: &mut PointLookup<PinnedValue>,
) {
    let tombstones = table.range_tombstones();
    if !tombstones.is_empty() {
        lookup.cover(tombstones.max_covering(table.order(), key, sequence));
    }
}

/// The second half of a look into a table: in the block that is known to hold the key if the table does.
pub(super) fn in_block(
    table: &Table,
    (place, block): (&Place, &Block),
    key: &[u8],
    sequence: Sequence,
    read: TableReadOptions,
    lookup: &mut PointLookup<PinnedValue>,
) -> Result<Step> {
    let mut failure = None;
    let flow = table.visit(key, sequence, read, place, block, |sequence, kind, value| {
        push(lookup, &mut failure, sequence, kind, || {
            PinnedValue(Held::Block(value.pin()))
        })
    })?;
    settle(lookup, flow, failure)
}

#[inline]
fn push(
    lookup: &mut PointLookup<PinnedValue>,
    failure: &mut Option<Error>,
    sequence: Sequence,
    kind: ValueKind,
    pin: impl FnOnce() -> PinnedValue,
) -> ControlFlow<()> {
    match lookup.push(sequence, kind, pin) {
        Ok(Step::Continue) => ControlFlow::Continue(()),
        Ok(Step::Done) => ControlFlow::Break(()),
        Err(error) => {
            *failure = Some(error);
            ControlFlow::Break(())
        }
    }
}

#[inline]
fn settle(
    lookup: &mut PointLookup<PinnedValue>,
    flow: ControlFlow<()>,
    failure: Option<Error>,
) -> Result<Step> {
    match (failure, flow) {
        (Some(error), _) => Err(error),
        (None, ControlFlow::Break(())) => Ok(Step::Done),
        (None, ControlFlow::Continue(())) => Ok(lookup.source_done()),
    }
}

/// Whether the view may hold a version of `key`; reads no data block.
pub fn may_exist(view: &View, tables: &Tables, key: &[u8]) -> Result<bool> {
    if memtables(view).any(|memtable| {
        memtable
            .get(key, SEQUENCE_MAX, |_, _, _| ControlFlow::Break(()))
            .is_break()
    }) {
        return Ok(true);
    }
    let version = &view.version;
    let order = version.order();
    for (level, files) in version.levels().iter().enumerate() {
        let check = |file: &Arc<FileMeta>| tables.with(file, order, |table| Ok(table.may_contain(key)));
        if level > 0 {
            if let Some(file) = files.find(order, key)
                && check(file)?
            {
                return Ok(true);
            }
            continue;
        }
        for file in files.files() {
            if !file.ends_before(order, key) && !file.starts_after(order, key) && check(file)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
