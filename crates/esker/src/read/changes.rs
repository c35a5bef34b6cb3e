//! Whether a key, or a range of keys, was written since a moment: what optimistic writers ask before they commit.
//!
//! The question is about rows and range tombstones that are newer than `since`, so memtables and files of which nothing is
//! newer are not looked at: usually all files.
//!
//! It needs a snapshot at `since` itself, held from that moment on. Compactions then keep what tells the two sides of
//! `since` apart (the stripes of `rewrite/rows.rs`): a newer row keeps its number, and it goes without a trace only together
//! with all that it hid, where the key was absent at `since` and is absent again. An older snapshot does not do: between it
//! and now a put before `since` and a delete behind it may vanish together.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::source::memtables;
use crate::error::{Error, Result};
use crate::key::{
    Cursor, FragmentedTombstones, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, internal_key, parse_key,
    user_key,
};
use crate::sstable::{CursorOptions, Purpose, Table, TableReadOptions};
use crate::version::{FileMeta, Tables, View};

/// Changes are looked for in what was written last, which others will want as well.
const READ: TableReadOptions = TableReadOptions {
    verify_checksums: true,
    fill_cache: true,
};

/// What a source says about a key.
enum Newest {
    /// A version, or a tombstone over the key, newer than `since`.
    Newer,
    /// Its newest version is not newer: nor is what older sources hold of the key.
    Older,
    /// No version.
    None,
}

impl Newest {
    #[inline]
    fn of(sequence: Sequence, since: Sequence) -> Self {
        if sequence > since {
            Self::Newer
        } else {
            Self::Older
        }
    }
}

/// Whether `view` holds a version of `key`, or a range tombstone over it, that is newer than `since`.
pub fn key_changed_since(view: &View, tables: &Tables, key: &[u8], since: Sequence) -> Result<bool> {
    for memtable in memtables(view) {
        match memtable.sequence_max() {
            // Nothing in it yet.
            0 => continue,
            // Those behind it are older still, and so are the tables.
            newest if newest <= since => return Ok(false),
            _ => {}
        }
        if memtable.max_covering_tombstone(key, SEQUENCE_MAX) > since {
            return Ok(true);
        }
        let mut newest = Newest::None;
        let _ = memtable.get(key, SEQUENCE_MAX, |sequence, _, _| {
            newest = Newest::of(sequence, since);
            ControlFlow::Break(())
        });
        match newest {
            Newest::Newer => return Ok(true),
            Newest::Older => return Ok(false),
            Newest::None => {}
        }
    }
    let version = &view.version;
    let order = version.order();
    for (number, level) in version.levels().iter().enumerate() {
        let files = match number {
            0 => level.files(),
            _ => level.find_all(order, key),
        };
        for file in files {
            let elsewhere = || file.ends_before(order, key) || file.starts_after(order, key);
            if file.sequence_max <= since || (number == 0 && elsewhere()) {
                continue;
            }
            match tables.with(file, order, |table| newest_in_table(table, key, since))? {
                Newest::Newer => return Ok(true),
                Newest::Older => return Ok(false),
                Newest::None => {}
            }
        }
    }
    Ok(false)
}

fn newest_in_table(table: &Table, key: &[u8], since: Sequence) -> Result<Newest> {
    let tombstones = table.range_tombstones();
    if tombstones.max_covering(table.order(), key, SEQUENCE_MAX) > since {
        return Ok(Newest::Newer);
    }
    let mut newest = Newest::None;
    let _ = table.get(key, SEQUENCE_MAX, READ, |sequence, _, _| {
        newest = Newest::of(sequence, since);
        ControlFlow::Break(())
    })?;
    Ok(newest)
}

/// Whether `view` holds a version of a key from `start` up to `end` (exclusive; none: to the last key), or a range tombstone that
/// reaches into this range, that is newer than `since`. Of tables only those are read that lie at an end of the range: of one inside it,
/// the newest sequence number says all.
pub fn range_changed_since(
    view: &View,
    tables: &Arc<Tables>,
    (start, end): (&[u8], Option<&[u8]>),
    since: Sequence,
) -> Result<bool> {
    let version = &view.version;
    let order = version.order();
    if end.is_some_and(|end| order.compare(start, end).is_ge()) {
        return Ok(false);
    }
    for memtable in memtables(view) {
        match memtable.sequence_max() {
            0 => continue,
            newest if newest <= since => return Ok(false),
            _ => {}
        }
        if memtable.has_range_tombstones()
            && newer_tombstone(&memtable.range_tombstones(), order, (start, end), since)
        {
            return Ok(true);
        }
        if newer_row(memtable.cursor(), order, (start, end), since)? {
            return Ok(true);
        }
    }
    for (number, level) in version.levels().iter().enumerate() {
        // What lies before the start is passed over file by file.
        let files = match end {
            Some(end) if number > 0 => &level.files()[level.overlapping(order, start, end)],
            _ => level.files(),
        };
        for file in files {
            if file.sequence_max > since && file_changed(file, tables, order, (start, end), since)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// For a file in which something is newer than `since`.
fn file_changed(
    file: &Arc<FileMeta>,
    tables: &Tables,
    order: &KeyOrder,
    (start, end): (&[u8], Option<&[u8]>),
    since: Sequence,
) -> Result<bool> {
    let smallest = file.smallest_user_key();
    if file.ends_before(order, start) || end.is_some_and(|end| order.compare(smallest, end).is_ge()) {
        return Ok(false);
    }
    if order.compare(smallest, start).is_ge() && end.is_none_or(|end| file.ends_before(order, end)) {
        return Ok(true);
    }
    let table = tables.get(file, order)?;
    if newer_tombstone(table.range_tombstones(), order, (start, end), since) {
        return Ok(true);
    }
    let cursor = table.cursor(CursorOptions {
        read: READ,
        readahead_bytes: 0,
        upper_bound: end.map(<[u8]>::to_vec),
        purpose: Purpose::User,
    });
    newer_row(cursor, order, (start, end), since)
}

fn newer_tombstone(
    tombstones: &FragmentedTombstones,
    order: &KeyOrder,
    (start, end): (&[u8], Option<&[u8]>),
    since: Sequence,
) -> bool {
    (tombstones.index_at_or_after(order, start)..)
        .map_while(|index| tombstones.get(index))
        .take_while(|fragment| end.is_none_or(|end| order.compare(fragment.start, end) == Ordering::Less))
        .any(|fragment| fragment.newest(SEQUENCE_MAX) > since)
}

fn newer_row(
    mut cursor: impl Cursor,
    order: &KeyOrder,
    (start, end): (&[u8], Option<&[u8]>),
    since: Sequence,
) -> Result<bool> {
    cursor.seek(&internal_key(start, SEQUENCE_MAX, ValueKind::SEEK))?;
    while cursor.valid() && end.is_none_or(|end| order.compare(user_key(cursor.key()), end).is_lt()) {
        let Some(row) = parse_key(cursor.key()) else {
            return Err(Error::corruption("a row whose internal key can't be decoded"));
        };
        if row.sequence > since {
            return Ok(true);
        }
        cursor.next()?;
    }
    Ok(false)
}
