//! Flushes, compactions, sizes, and settings that change while a database is open.

use std::ffi::{c_char, c_int, c_uchar};

use esker_compat::{Result, Status, bytes, report, survive};

use crate::families::Handle;
use crate::maintenance_options::{CompactSettings, FlushSettings, FlushWalSettings, WaitSettings};
use crate::open::Database;

/// Waits for the flush, also where the options ask not to.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush(
    database: *mut Database,
    _: *const FlushSettings,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let database = &*database;
        report(error, (), || {
            Ok(database.db.flush_cf(&database.default.family)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush_cf(
    database: *mut Database,
    _: *const FlushSettings,
    family: *mut Handle,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe { report(error, (), || Ok((*database).db.flush_cf(&(*family).family)?)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush_cfs(
    database: *mut Database,
    _: *const FlushSettings,
    families: *mut *mut Handle,
    count: c_int,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; there are `count` handles.
    unsafe {
        report(error, (), || {
            for &family in bytes::array(families, usize::try_from(count).unwrap_or(0)) {
                (*database).db.flush_cf(&(*family).family)?;
            }
            Ok(())
        });
    }
}

/// What was written is with the operating system already; `sync` brings it to the device.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush_wal(database: *mut Database, sync: c_uchar, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || match sync {
            0 => Ok(()),
            _ => Ok((*database).db.sync_wal()?),
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush_wal_with_options(
    database: *mut Database,
    options: *const FlushWalSettings,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe { rocksdb_flush_wal(database, (*options).sync(), error) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range(
    database: *mut Database,
    start: *const c_char,
    start_len: usize,
    limit: *const c_char,
    limit_len: usize,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_compact_range_cf(database, default, start, start_len, limit, limit_len);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range_cf(
    database: *mut Database,
    family: *mut Handle,
    start: *const c_char,
    start_len: usize,
    limit: *const c_char,
    limit_len: usize,
) {
    // SAFETY: the contract.
    unsafe {
        let (start, limit) = (bytes::bound(start, start_len), bytes::bound(limit, limit_len));
        // There is no slot for an error; background work tries again and reports by failing writes.
        let _ = survive(|| {
            let family = &(*family).family;
            Ok((*database).db.compact_range_cf(family, start, limit)?)
        });
    }
}

/// Compactions by hand go down to the deepest level that holds rows of the range, whatever the options say.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range_opt(
    database: *mut Database,
    _: *mut CompactSettings,
    start: *const c_char,
    start_len: usize,
    limit: *const c_char,
    limit_len: usize,
) {
    // SAFETY: the contract.
    unsafe { rocksdb_compact_range(database, start, start_len, limit, limit_len) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range_cf_opt(
    database: *mut Database,
    family: *mut Handle,
    _: *mut CompactSettings,
    start: *const c_char,
    start_len: usize,
    limit: *const c_char,
    limit_len: usize,
) {
    // SAFETY: the contract.
    unsafe { rocksdb_compact_range_cf(database, family, start, start_len, limit, limit_len) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_wait_for_compact(
    database: *mut Database,
    options: *mut WaitSettings,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            let (database, options) = (&*database, &*options);
            if options.flush() {
                database.db.flush()?;
            }
            database.db.wait_idle()?;
            match options.close_db() {
                true => Ok(database.db.close()?),
                false => Ok(()),
            }
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_pause_background_work(database: *mut Database, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            (*database).db.pause_background_work();
            Ok(())
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_continue_background_work(database: *mut Database, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            (*database).db.resume_background_work();
            Ok(())
        });
    }
}

/// No meaning here: closing ends background work.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cancel_all_background_work(_: *mut Database, _: c_uchar) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes(
    database: *mut Database,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    limits: *const *const c_char,
    limit_lens: *const usize,
    sizes: *mut u64,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_approximate_sizes_cf(
            database, default, count, starts, start_lens, limits, limit_lens, sizes, error,
        );
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_cf(
    database: *mut Database,
    family: *mut Handle,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    limits: *const *const c_char,
    limit_lens: *const usize,
    sizes: *mut u64,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; every list has `count` entries, `sizes` writable ones.
    unsafe {
        report(error, (), || {
            for i in 0..usize::try_from(count).unwrap_or(0) {
                let start = bytes::slice(*starts.add(i), *start_lens.add(i));
                let limit = bytes::slice(*limits.add(i), *limit_lens.add(i));
                *sizes.add(i) = (*database).db.approximate_size(&(*family).family, start, limit)?;
            }
            Ok(())
        });
    }
}

/// Memtables are always counted, whatever the flags say.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_flags(
    database: *mut Database,
    family: *mut Handle,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    limits: *const *const c_char,
    limit_lens: *const usize,
    _: u8,
    sizes: *mut u64,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        rocksdb_approximate_sizes_cf(
            database, family, count, starts, start_lens, limits, limit_lens, sizes, error,
        );
    }
}

/// RocksDB's names of settings that can change, and the engine's.
const CHANGEABLE: [(&str, &str); 7] = [
    ("write_buffer_size", "memtable_bytes"),
    ("max_write_buffer_number", "memtables_max"),
    ("level0_file_num_compaction_trigger", "level0_compaction_trigger"),
    ("level0_stop_writes_trigger", "level0_files_max"),
    ("max_bytes_for_level_base", "level_base_bytes"),
    ("max_bytes_for_level_multiplier", "level_size_multiplier"),
    ("target_file_size_base", "file_bytes"),
];

fn set_options(database: &Database, family: &Handle, changes: &[(String, String)]) -> Result<()> {
    let mut engine: Vec<(&str, &str)> = Vec::with_capacity(changes.len());
    for (name, value) in changes {
        let known = CHANGEABLE.iter().find(|(theirs, _)| theirs == name);
        engine.push(match (known, name.as_str(), value.as_str()) {
            (Some((_, ours)), _, value) => (ours, value),
            (None, "disable_auto_compactions", "true" | "1") => ("compaction_style", "manual"),
            (None, "disable_auto_compactions", "false" | "0") => ("compaction_style", "leveled"),
            _ => {
                return Err(Status::invalid(format_args!(
                    "{name} can't be set to {value} while a database is open"
                )));
            }
        });
    }
    Ok(database.db.set_family_options(&family.family, &engine)?)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_set_options(
    database: *mut Database,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let default = (&raw const (*database).default).cast_mut();
        rocksdb_set_options_cf(database, default, count, names, values, error);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_set_options_cf(
    database: *mut Database,
    family: *mut Handle,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; both lists have `count` strings.
    unsafe {
        report(error, (), || {
            let count = usize::try_from(count).unwrap_or(0);
            let text = |string: &*const c_char| bytes::text(*string).into_owned();
            let names = bytes::array(names, count).iter().map(text);
            let values = bytes::array(values, count).iter().map(text);
            set_options(&*database, &*family, &names.zip(values).collect::<Vec<_>>())
        });
    }
}
