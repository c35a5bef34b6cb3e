//! What is told about a database: properties, statistics, estimates.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use esker::PROPERTIES;

use crate::boundary::{answer, given, made, put, release};
use crate::buffer::esker_buffer;
use crate::database::esker_db;
use crate::error::esker_error;
use crate::event::esker_write_stall;
use crate::family::esker_family;
use crate::list::{List, esker_names};
use crate::shown::write_stall;
use crate::slice::{esker_range, esker_slice};
use crate::text;

/// Names that `esker_db_property` knows. To be freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_property_names() -> Box<esker_names> {
    Box::new(esker_names::new(
        PROPERTIES.iter().map(|&name| name.to_owned()).collect(),
    ))
}

/// A property of a family, or of the whole database, as text. Errors: `ESKER_INVALID_ARGUMENT` for an unknown name, listing the known
/// ones; `ESKER_IO`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_property(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    name: *const c_char,
    value: Option<&mut esker_buffer>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, value) = (given(db, "db")?, given(value, "the buffer")?);
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        value.0 = db.db.property(db.family(family), name)?.into_bytes();
        Ok(())
    })
}

/// All metrics as text in the OpenMetrics format (`application/openmetrics-text; version=1.0.0`), which Prometheus reads: counters and
/// times since the opening, what there is now, and that by family and level.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_metrics_text(
    db: Option<&esker_db>,
    text: Option<&mut esker_buffer>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (db, text) = (given(db, "db")?, given(text, "the buffer")?);
        text.0 = db.db.metrics_text()?.into_bytes();
        Ok(())
    })
}

/// How things stand in a database now.
#[repr(C)]
pub struct esker_stats {
    /// Bytes that memtables hold.
    pub memtable_bytes: u64,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Bytes that the block cache may hold.
    pub cache_capacity_bytes: u64,
    /// Bytes of indexes and filters of open tables.
    pub table_memory_bytes: u64,
    /// Tables that are open.
    pub open_tables: u64,
    /// Blob files that are open.
    pub open_blob_files: u64,
    /// Snapshots alive.
    pub snapshots: u64,
    /// Bytes of log segments that are needed.
    pub wal_live_bytes: u64,
    /// Bytes of batches that are prepared and neither committed nor rolled back.
    pub prepared_bytes: u64,
    /// Bytes of tables, over all families.
    pub table_bytes: u64,
    /// Blob files, over all families.
    pub blob_files: u64,
    /// Bytes of them.
    pub blob_bytes: u64,
    /// Bytes of the values in them that tables refer to.
    pub blob_live_bytes: u64,
    /// Compactions that run.
    pub compactions_running: u64,
    /// Writers that wait for others' commits to end; the next one commits for all of them.
    pub writers_waiting: u64,
    /// How writers are let in.
    pub write_stall: esker_write_stall,
    /// The highest pressure of all families, as `esker_family_stats` has it.
    pub write_pressure: f64,
}

/// How things stand now.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_stats(
    db: Option<&esker_db>,
    stats: Option<&mut MaybeUninit<esker_stats>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let now = given(db, "db")?.db.stats();
        put(
            stats,
            esker_stats {
                memtable_bytes: now.memtable_bytes,
                cache_bytes: now.cache_bytes,
                cache_capacity_bytes: now.cache_capacity_bytes,
                table_memory_bytes: now.table_memory_bytes,
                open_tables: now.open_tables as u64,
                open_blob_files: now.open_blob_files as u64,
                snapshots: now.snapshots as u64,
                wal_live_bytes: now.wal_live_bytes,
                prepared_bytes: now.prepared_bytes,
                table_bytes: now.table_bytes,
                blob_files: now.blob_files as u64,
                blob_bytes: now.blob_bytes,
                blob_live_bytes: now.blob_live_bytes,
                compactions_running: now.compactions_running as u64,
                writers_waiting: now.writers_waiting as u64,
                write_stall: write_stall(now.write_stall),
                write_pressure: now.write_pressure,
            },
        );
        Ok(())
    })
}

/// What writers or background work run into at the moment: an error as any other, to be freed; null if there is no trouble.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_trouble(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| given(db, "db")?.db.stats().trouble.map_or(Ok(()), Err))
}

/// A counter.
#[repr(C)]
pub struct esker_counter {
    /// Its name.
    pub name: esker_slice<'static>,
    /// Its value.
    pub value: u64,
}

/// Counters, which only grow while a database is open.
pub struct esker_counters(List<esker_counter, ()>);

/// All counters. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_counters(
    db: Option<&esker_db>,
    counters: Option<&mut MaybeUninit<Option<Box<esker_counters>>>>,
) -> Option<Box<esker_error>> {
    made(counters, || {
        let all = given(db, "db")?.db.stats().counters;
        let items = all.iter().map(|&(name, value)| esker_counter {
            name: esker_slice::new(name.as_bytes()),
            value,
        });
        // SAFETY: the names are static.
        Ok(esker_counters(unsafe { List::new((), |()| items.collect()) }))
    })
}

/// The counters, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_counters_items(
    counters: Option<&esker_counters>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_counter {
    List::array(counters.map(|counters| &counters.0), count)
}

/// Frees a list of counters.
#[unsafe(no_mangle)]
pub extern "C" fn esker_counters_free(counters: Option<Box<esker_counters>>) {
    release(counters);
}

/// About how many bytes of tables, blob files and memtables hold the keys of a range. Reads no data blocks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_approximate_size(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    range: esker_range<'_>,
    bytes: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let (start, end) = (range.start.get()?, range.end.get()?);
        put(bytes, db.db.approximate_size(db.family(family), start, end)?);
        Ok(())
    })
}

/// About how many keys there are in a range. Reads no data blocks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_approximate_count(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    range: esker_range<'_>,
    keys: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        let (start, end) = (range.start.get()?, range.end.get()?);
        put(keys, db.db.approximate_count(db.family(family), start, end)?);
        Ok(())
    })
}
