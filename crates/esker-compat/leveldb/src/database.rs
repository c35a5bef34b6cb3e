//! An open database: reads, writes, snapshots, and work on whole databases.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;

use esker::{ColumnFamily, Db, ErrorKind, Options, RepairOptions, Snapshot};
use esker_compat::batch::Batch;
use esker_compat::cursor::Cursor;
use esker_compat::{Result, Status, bytes, folder, memory, report, survive};

use crate::operation::{ReadSettings, WriteSettings};
use crate::options::Settings;

/// `leveldb_t`.
pub struct Database {
    pub db: Db,
    /// The only family that this interface knows.
    pub family: ColumnFamily,
    pub path: PathBuf,
}

fn open(settings: &Settings, path: PathBuf) -> Result<Database> {
    folder::check_not_foreign(&path)?;
    let db = open_with(settings.to_options()?, &path)?;
    Ok(Database {
        family: db.default_column_family(),
        db,
        path,
    })
}

/// Opens, and words what programs look for as LevelDB does.
fn open_with(options: Options, path: &PathBuf) -> Result<Db> {
    let (exists_is_error, missing_is_error) = (options.error_if_exists, !options.create_if_missing);
    Db::open(path, options).map_err(|error| {
        let shown = path.display();
        match error.kind() {
            ErrorKind::NotFound if missing_is_error => Status::invalid(format_args!(
                "{shown}: does not exist (create_if_missing is false)"
            )),
            ErrorKind::InvalidArgument if exists_is_error && error.message().contains("error_if_exists") => {
                Status::invalid(format_args!("{shown}: exists (error_if_exists is true)"))
            }
            _ => error.into(),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_open(
    options: *const Settings,
    name: *const c_char,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            Ok(Box::into_raw(Box::new(open(&*options, bytes::path(name))?)))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_close(database: *mut Database) {
    if database.is_null() {
        return;
    }
    // SAFETY: the contract; a closed database is not used again.
    let database = unsafe { Box::from_raw(database) };
    // There is no slot for an error; the engine has logged what it could not do.
    let _ = survive(|| Ok(database.db.close()?));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_put(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (key, value) = (bytes::slice(key, key_len), bytes::slice(value, value_len));
        report(error, (), || {
            Ok((*database).db.put_with(key, value, &(*options).engine)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_delete(
    database: *mut Database,
    options: *const WriteSettings,
    key: *const c_char,
    key_len: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        let (database, key) = (&*database, bytes::slice(key, key_len));
        report(error, (), || {
            Ok(database
                .db
                .delete_cf_with(&database.family, key, &(*options).engine)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_write(
    database: *mut Database,
    options: *const WriteSettings,
    batch: *mut Batch,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract; a batch is used by one thread at a time.
    unsafe {
        report(error, (), || (*batch).commit(&(*database).db, &(*options).engine));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_get(
    database: *mut Database,
    options: *const ReadSettings,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    error: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: the contract; `value_len` is writable.
    unsafe {
        *value_len = 0;
        let (database, key) = (&*database, bytes::slice(key, key_len));
        report(error, std::ptr::null_mut(), || {
            let value = database.db.get_with(&database.family, key, &(*options).engine)?;
            Ok(value.map_or(std::ptr::null_mut(), |value| {
                *value_len = value.len();
                memory::copy(&value)
            }))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_create_iterator(
    database: *mut Database,
    options: *const ReadSettings,
) -> *mut Cursor {
    // SAFETY: the contract.
    let (database, options) = unsafe { (&*database, &*options) };
    let made = survive(|| Ok(database.db.iter_cf(&database.family, options.engine.clone())?));
    Box::into_raw(Box::new(Cursor::new(made)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_create_snapshot(database: *mut Database) -> *const Snapshot {
    // SAFETY: the contract.
    Box::into_raw(Box::new(unsafe { &*database }.db.snapshot()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_release_snapshot(_: *mut Database, snapshot: *const Snapshot) {
    if !snapshot.is_null() {
        // SAFETY: the contract; a released snapshot is not used again.
        drop(unsafe { Box::from_raw(snapshot.cast_mut()) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_approximate_sizes(
    database: *mut Database,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const usize,
    limits: *const *const c_char,
    limit_lens: *const usize,
    sizes: *mut u64,
) {
    // SAFETY: the contract; every list has `count` entries, `sizes` writable ones.
    unsafe {
        let database = &*database;
        for i in 0..usize::try_from(count).unwrap_or(0) {
            let start = bytes::slice(*starts.add(i), *start_lens.add(i));
            let limit = bytes::slice(*limits.add(i), *limit_lens.add(i));
            let size = survive(|| Ok(database.db.approximate_size(&database.family, start, limit)?));
            *sizes.add(i) = size.unwrap_or(0);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_compact_range(
    database: *mut Database,
    start: *const c_char,
    start_len: usize,
    limit: *const c_char,
    limit_len: usize,
) {
    // SAFETY: the contract.
    unsafe {
        let (start, limit) = (bytes::bound(start, start_len), bytes::bound(limit, limit_len));
        // There is no slot for an error; background work tries again and reports by failing writes.
        let _ = survive(|| Ok((*database).db.compact_range(start, limit)?));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_destroy_db(_: *const Settings, name: *const c_char, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe { report(error, (), || folder::destroy(&bytes::path(name))) };
}

/// Makes it open again with all that can be read of its files; what can't be used is in the folder `lost` in it.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_repair_db(
    options: *const Settings,
    name: *const c_char,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            let path = bytes::path(name);
            folder::check_not_foreign(&path)?;
            let how = RepairOptions {
                key_orders: vec![(*options).to_options()?.default_column_family.key_order],
                ..RepairOptions::default()
            };
            esker::repair(&path, &how)?;
            Ok(())
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_free(data: *mut c_void) {
    // SAFETY: the contract.
    unsafe { memory::release(data) };
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_major_version() -> c_int {
    1
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_minor_version() -> c_int {
    23
}
