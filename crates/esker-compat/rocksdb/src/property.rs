//! Properties: RocksDB's names, out of the engine's figures. What has no meaning here is unknown.

use std::ffi::{c_char, c_int};
use std::fmt::Write as _;

use esker::inspect::Inspector;
use esker_compat::properties::{VERSION, level_of, levels, number, tables, version};
use esker_compat::{Result, bytes, memory, report};

use crate::families::Handle;
use crate::open::Database;

/// A property that is a number.
fn integer(database: &Database, handle: &Handle, name: &str) -> Option<u64> {
    let (db, family) = (&database.db, &handle.family);
    let engine = |name| number(db, family, name);
    let some = |is: bool| u64::from(is);
    Some(match name.strip_prefix("rocksdb.")? {
        "num-immutable-mem-table" => engine("memtables-waiting"),
        "mem-table-flush-pending" | "num-running-flushes" => some(engine("memtables-waiting") > 0),
        "compaction-pending" => some(levels(db, family).iter().any(|level| level.score >= 1.0)),
        "num-running-compactions" => engine("compactions-running"),
        // The engine counts memtables of all families together.
        "cur-size-active-mem-table" | "cur-size-all-mem-tables" | "size-all-mem-tables" => {
            engine("memtable-bytes")
        }
        "num-entries-active-mem-table" => engine("entries-active-memtable"),
        "estimate-num-keys" => engine("estimate-keys"),
        "total-sst-files-size" | "live-sst-files-size" | "estimate-live-data-size" => engine("table-bytes"),
        "estimate-pending-compaction-bytes" => engine("pending-compaction-bytes"),
        "num-snapshots" => engine("snapshots"),
        "estimate-table-readers-mem" => db.stats().table_memory_bytes,
        "block-cache-usage" => engine("cache-bytes"),
        "block-cache-capacity" => db.stats().cache_capacity_bytes,
        "background-errors" => some(db.stats().trouble.is_some()),
        "is-write-stopped" | "actual-delayed-write-rate" => 0,
        _ => return None,
    })
}

fn text(database: &Database, handle: &Handle, name: &str) -> Result<Option<String>> {
    let (db, family) = (&database.db, &handle.family);
    if let Some(number) = integer(database, handle, name) {
        return Ok(Some(number.to_string()));
    }
    if let Some(level) = level_of(name, "rocksdb.num-files-at-level") {
        let levels = levels(db, family);
        return Ok(levels.get(level).map(|level| level.files.to_string()));
    }
    Ok(match name {
        VERSION => Some(version()),
        "rocksdb.stats" | "rocksdb.cfstats" | "rocksdb.cfstats-no-file-histogram" | "rocksdb.dbstats" => {
            Some(db.stats().to_string())
        }
        "rocksdb.levelstats" => Some(level_stats(database, handle)),
        "rocksdb.sstables" => {
            let described = Inspector::new(&database.path).describe()?;
            let own = described.families.iter().find(|info| info.id == family.id());
            own.map(tables)
        }
        _ => None,
    })
}

/// Files and size of each level, in RocksDB's columns.
fn level_stats(database: &Database, handle: &Handle) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for (i, level) in levels(&database.db, &handle.family).iter().enumerate() {
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "{i:3} {:8} {:8.0}",
            level.files,
            level.bytes as f64 / f64::from(1 << 20)
        );
    }
    text
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_property_value(database: *mut Database, name: *const c_char) -> *mut c_char {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_property_value_cf(database, default, name)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_property_value_cf(
    database: *mut Database,
    family: *mut Handle,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the contract.
    unsafe {
        let value = report(std::ptr::null_mut(), None, || {
            text(&*database, &*family, &bytes::text(name))
        });
        value.map_or(std::ptr::null_mut(), |text| memory::copy_text(&text))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_property_int(
    database: *mut Database,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_property_int_cf(database, default, name, out)
    }
}

/// 0 if it is known, else -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_property_int_cf(
    database: *mut Database,
    family: *mut Handle,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the contract; `out` is writable.
    unsafe {
        let value = report(std::ptr::null_mut(), None, || {
            Ok(integer(&*database, &*family, &bytes::text(name)))
        });
        match value {
            Some(value) => {
                *out = value;
                0
            }
            None => -1,
        }
    }
}
