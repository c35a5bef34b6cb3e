//! Which tables may be dropped because a key range is.

use std::collections::HashSet;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::version::{FileMeta, Version};

/// The tables that lie inside one of `ranges` (from a user key up to another, exclusive) with all their keys, and can go
/// without uncovering anything, with their levels, from the oldest to the newest.
///
/// What a table hides lies in older tables: deeper ones, in level 0 those written before, in a sorted level the right
/// neighbour that shares a user key. A table goes only if every older one that it overlaps goes as well, so of each
/// key the newest versions stay or none: a delete never goes before what it deleted, nor a value before the one that it
/// replaced. A table that a running job reads stays, and with it what lies above. O(tables x log), and one look at each
/// pair of tables that overlap in neighbouring levels.
pub fn tables_within(version: &Version, ranges: &[(&[u8], &[u8])]) -> Vec<(usize, Arc<FileMeta>)> {
    let order = version.order();
    let mut gone = Gone::default();
    for level in (1..version.level_count()).rev() {
        let files = version.level(level).files();
        for (i, file) in files.iter().enumerate().rev() {
            let beside = files.get(i + 1).filter(|next| next.overlaps_file(order, file));
            if is_free(order, file, ranges)
                && beside.is_none_or(|next| gone.has(next))
                && gone.has_all_below(version, level, file)
            {
                gone.add(level, file);
            }
        }
    }
    let files = version.level(0).files();
    for (i, file) in files.iter().enumerate().rev() {
        let mut older = files.iter().skip(i + 1);
        if is_free(order, file, ranges)
            && older.all(|older| gone.has(older) || !older.overlaps_file(order, file))
            && gone.has_all_below(version, 0, file)
        {
            gone.add(0, file);
        }
    }
    gone.tables
}

/// Whether no job reads the table, and it has no key outside of some range.
fn is_free(order: &KeyOrder, file: &FileMeta, ranges: &[(&[u8], &[u8])]) -> bool {
    let inside = |(start, end): &(&[u8], &[u8])| {
        order.compare(start, file.smallest_user_key()).is_le() && file.ends_before(order, end)
    };
    !file.is_being_compacted() && ranges.iter().any(inside)
}

/// The tables that are chosen.
#[derive(Default)]
struct Gone {
    numbers: HashSet<u64>,
    tables: Vec<(usize, Arc<FileMeta>)>,
}

impl Gone {
    fn add(&mut self, level: usize, file: &Arc<FileMeta>) {
        self.numbers.insert(file.number);
        self.tables.push((level, Arc::clone(file)));
    }

    fn has(&self, file: &FileMeta) -> bool {
        self.numbers.contains(&file.number)
    }

    /// Whether everything is chosen that `file` overlaps in the levels below `level`.
    fn has_all_below(&self, version: &Version, level: usize, file: &FileMeta) -> bool {
        (level + 1..version.level_count()).all(|below| {
            let met = version.overlapping(below, file.smallest_user_key(), file.largest_user_key());
            let mut met = version.level(below).files()[met].iter();
            met.all(|older| self.has(older) || !older.overlaps_file(version.order(), file))
        })
    }
}
