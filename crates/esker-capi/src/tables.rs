//! What tables say about themselves, with what collectors gathered.

use std::mem::MaybeUninit;

use esker::TableDescription;

use crate::boundary::{given, made, release};
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::list::{List, lend};
use crate::slice::{esker_pair, esker_slice};

/// A table of a family.
#[repr(C)]
pub struct esker_table {
    /// The number in its name.
    pub number: u64,
    /// Its level.
    pub level: usize,
    /// Length of its file in bytes.
    pub size_bytes: u64,
    /// Bytes of the records in blob files that its rows point to.
    pub blob_bytes: u64,
    /// Puts, deletes and merges.
    pub entries: u64,
    /// Deletes among them.
    pub deletions: u64,
    /// Deletes of ranges.
    pub range_deletions: u64,
    /// Its smallest key.
    pub smallest: esker_slice<'static>,
    /// Its largest key; the end of a deleted range counts.
    pub largest: esker_slice<'static>,
    /// When it was written, in seconds since 1970 UTC.
    pub written_unix_seconds: u64,
    /// What the collectors said: by their name, a dot, and the name of their own.
    pub properties: *const esker_pair<'static>,
    /// How many.
    pub property_count: usize,
}

/// Tables of a family.
pub struct esker_tables(List<esker_table, Described>);

/// Descriptions, and pairs that refer to them: on the heap both.
struct Described {
    tables: Vec<TableDescription>,
    pairs: Vec<Vec<esker_pair<'static>>>,
}

/// The tables of a family that reach into the keys from `start` up to `end` (exclusive; data is null: open), level by level. To be
/// freed. Errors: `ESKER_IO`, `ESKER_CORRUPTION`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_tables(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    start: esker_slice<'_>,
    end: esker_slice<'_>,
    tables: Option<&mut MaybeUninit<Option<Box<esker_tables>>>>,
) -> Option<Box<esker_error>> {
    made(tables, || {
        let db = given(db, "db")?;
        let (start, end) = (start.get_optional()?, end.get_optional()?);
        let tables = db.db.table_properties(db.family(family), start, end)?;
        let pairs = tables.iter().map(pairs).collect();
        let described = Described { tables, pairs };
        // SAFETY: keys, names, values and the arrays of pairs are on the heap, owned by what the list owns.
        Ok(esker_tables(unsafe {
            List::new(described, |described| {
                let both = described.tables.iter().zip(&described.pairs);
                both.map(|(table, pairs)| item(table, pairs)).collect()
            })
        }))
    })
}

fn pairs(table: &TableDescription) -> Vec<esker_pair<'static>> {
    let properties = table.properties.iter();
    properties
        .map(|(name, value)| {
            // SAFETY: the caller keeps the table beside the pairs; nodes of the map hold pointers to the heap.
            let (name, value) = unsafe { (lend(name.as_bytes()), lend(value)) };
            esker_pair { name, value }
        })
        .collect()
}

fn item(table: &TableDescription, pairs: &[esker_pair<'static>]) -> esker_table {
    // SAFETY: as above.
    let (smallest, largest) = unsafe { (lend(&table.smallest), lend(&table.largest)) };
    esker_table {
        number: table.number,
        level: table.level,
        size_bytes: table.size_bytes,
        blob_bytes: table.blob_bytes,
        entries: table.entries,
        deletions: table.deletions,
        range_deletions: table.range_deletions,
        smallest,
        largest,
        written_unix_seconds: table.written_unix_seconds,
        properties: pairs.as_ptr(),
        property_count: pairs.len(),
    }
}

/// The tables, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_tables_items(
    tables: Option<&esker_tables>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_table {
    List::array(tables.map(|tables| &tables.0), count)
}

/// Frees a list of tables.
#[unsafe(no_mangle)]
pub extern "C" fn esker_tables_free(tables: Option<Box<esker_tables>>) {
    release(tables);
}
