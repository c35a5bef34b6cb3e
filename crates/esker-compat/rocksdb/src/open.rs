//! Opening, closing, destroying and repairing databases.

use std::ffi::{c_char, c_int, c_uchar};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esker::inspect::{FamilyInfo, Inspector};
use esker::{Db, ErrorKind, Follower, Opener, Options, RepairOptions};
use esker_compat::{Result, Status, bytes, folder, report, survive};

use crate::cache::CacheState;
use crate::families::Handle;
use crate::options::{self, Settings};
use crate::unnamed;

/// `rocksdb_t`.
pub struct Database {
    pub db: Db,
    pub default: Handle,
    pub path: PathBuf,
    /// Of a secondary instance.
    pub follower: Option<Follower>,
    number: u64,
    caches: Vec<Arc<CacheState>>,
    /// Ids of the families that can't take merges, so that a batch with a merge for them is refused.
    mergeless: Mutex<Vec<u32>>,
}

impl Database {
    /// A family was opened or made.
    pub fn made(&self, handle: &Handle) {
        if !handle.merges {
            let mut ids = self.mergeless.lock().unwrap_or_else(PoisonError::into_inner);
            ids.push(handle.family.id());
        }
    }

    /// Whether the family with this id can take merges.
    pub fn merges(&self, family: u32) -> bool {
        let ids = self.mergeless.lock().unwrap_or_else(PoisonError::into_inner);
        !ids.contains(&family)
    }
}

/// A family as the program names it.
pub type Named<'a> = (String, &'a Settings);

const DEFAULT: &str = "default";

/// How a database is opened.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    ReadWrite,
    ReadOnly,
    /// Beside the process that writes.
    Secondary,
}

fn open(
    settings: &Settings,
    path: PathBuf,
    families: &[Named<'_>],
    mode: Mode,
) -> Result<(Database, Vec<Handle>)> {
    folder::check_not_foreign(&path)?;
    let Some(default) = families.iter().find(|(name, _)| name == DEFAULT) else {
        return Err(Status::invalid("Default column family not specified"));
    };
    let mut all = vec![default.1];
    all.extend(
        families
            .iter()
            .filter(|(name, _)| name != DEFAULT)
            .map(|(_, settings)| *settings),
    );
    let mut database_options = options::database(settings, &all)?;
    if mode != Mode::ReadWrite {
        database_options.read_only = true;
        database_options.create_if_missing = false;
        database_options.error_if_exists = false;
    }
    check_named(&path, families, settings, &database_options)?;
    let mut opener = Opener::new(database_options.clone());
    for (name, settings) in families {
        opener = opener.column_family(name, options::family(settings)?);
    }
    match mode {
        Mode::ReadWrite => opener = opener.create_missing_column_families(),
        Mode::ReadOnly | Mode::Secondary => {
            let orders: Vec<_> = all.iter().map(|settings| settings.key_order()).collect();
            for info in unnamed(&path, families) {
                opener = opener.column_family(&info.name, unnamed::settings(&info, &orders));
            }
        }
    }
    let opened = match mode {
        Mode::Secondary => opener
            .follow(&path)
            .map(|follower| (follower.db().clone(), Some(follower))),
        _ => opener.open(&path).map(|db| (db, None)),
    };
    let (db, follower) = opened.map_err(|error| worded(error, &path, &database_options))?;
    let mut handles = Vec::with_capacity(families.len());
    for (name, settings) in families {
        handles.push(Handle::new(db.column_family(name)?, settings));
    }
    let mut caches: Vec<Arc<CacheState>> = Vec::new();
    for cache in all.iter().filter_map(|settings| settings.block_cache()) {
        if !caches.iter().any(|known| Arc::ptr_eq(known, cache)) {
            caches.push(Arc::clone(cache));
        }
    }
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    for cache in &caches {
        cache.enter(number, &db);
    }
    let default = Handle::new(db.default_column_family(), default.1);
    let database = Database {
        db,
        default,
        path,
        follower,
        number,
        caches,
        mergeless: Mutex::default(),
    };
    handles.iter().for_each(|handle| database.made(handle));
    Ok((database, handles))
}

/// The families of a database that the program does not name.
fn unnamed(path: &Path, families: &[Named<'_>]) -> Vec<FamilyInfo> {
    let known = Inspector::new(path)
        .describe()
        .map_or(Vec::new(), |info| info.families);
    let is_named = |info: &FamilyInfo| families.iter().any(|(name, _)| *name == info.name);
    known.into_iter().filter(|info| !is_named(info)).collect()
}

/// RocksDB wants every family of a database to be named when it is opened for writing, and makes those that are missing
/// only when told to. The engine is more lenient, so its manifest is asked first.
fn check_named(path: &Path, families: &[Named<'_>], settings: &Settings, options: &Options) -> Result<()> {
    let known = match folder::families(path) {
        Ok(known) => known,
        // Nothing there yet, or the engine says better what is wrong.
        Err(_) => vec![DEFAULT.to_owned()],
    };
    let is_named = |name: &String| families.iter().any(|(named, _)| named == name);
    let forgotten: Vec<_> = known.iter().filter(|name| !is_named(name)).cloned().collect();
    if !forgotten.is_empty() && !options.read_only {
        let names = forgotten.join(", ");
        return Err(Status::invalid(format_args!(
            "Column families not opened: {names}"
        )));
    }
    let missing = families.iter().find(|(name, _)| !known.contains(name));
    if let Some((name, _)) = missing
        && (settings.mapped.create_missing_column_families == 0 || options.read_only)
        && (options.create_if_missing || folder::is_database(path))
    {
        return Err(Status::invalid(format_args!("Column family not found: {name}")));
    }
    Ok(())
}

/// Words what programs look for as RocksDB does.
fn worded(error: esker::Error, path: &Path, options: &Options) -> Status {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound if options.read_only => missing(error.into(), path),
        ErrorKind::NotFound if !options.create_if_missing => Status::invalid(format_args!(
            "{shown}/CURRENT: does not exist (create_if_missing is false)"
        )),
        ErrorKind::InvalidArgument
            if options.error_if_exists && error.message().contains("error_if_exists") =>
        {
            Status::invalid(format_args!("{shown}: exists (error_if_exists is true)"))
        }
        _ => error.into(),
    }
}

/// A database that is not there, for calls that can't make one.
pub fn missing(status: Status, path: &Path) -> Status {
    match status.kind() {
        Some(ErrorKind::NotFound) => Status::Text(
            format!(
                "IO error: No such file or directory: While opening a file for sequentially reading: {}/CURRENT: No \
                 such file or directory",
                path.display()
            )
            .into(),
        ),
        _ => status,
    }
}

/// Opens a database of the default family alone.
///
/// # Safety
/// The contract.
pub unsafe fn open_default(
    settings: *const Settings,
    name: *const c_char,
    mode: Mode,
) -> Result<*mut Database> {
    // SAFETY: the caller's promise.
    unsafe {
        let settings = &*settings;
        let families = [(DEFAULT.to_owned(), settings)];
        let (database, _) = open(settings, bytes::path(name), &families, mode)?;
        Ok(Box::into_raw(Box::new(database)))
    }
}

/// # Safety
/// The contract: `count` names, options and slots for handles.
pub unsafe fn open_families(
    settings: *const Settings,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    options: *const *const Settings,
    handles: *mut *mut Handle,
    mode: Mode,
) -> Result<*mut Database> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe {
        let names = bytes::array(names, count)
            .iter()
            .map(|&name| bytes::text(name).into_owned());
        let options = bytes::array(options, count).iter().map(|&options| &*options);
        let families: Vec<Named<'_>> = names.zip(options).collect();
        let (database, made) = open(&*settings, bytes::path(name), &families, mode)?;
        for (i, handle) in made.into_iter().enumerate() {
            *handles.add(i) = Box::into_raw(Box::new(handle));
        }
        Ok(Box::into_raw(Box::new(database)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open(
    options: *const Settings,
    name: *const c_char,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_default(options, name, Mode::ReadWrite)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_for_read_only(
    options: *const Settings,
    name: *const c_char,
    _: c_uchar,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_default(options, name, Mode::ReadOnly)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_column_families(
    settings: *const Settings,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    options: *const *const Settings,
    handles: *mut *mut Handle,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_families(settings, name, count, names, options, handles, Mode::ReadWrite)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_for_read_only_column_families(
    settings: *const Settings,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    options: *const *const Settings,
    handles: *mut *mut Handle,
    _: c_uchar,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_families(settings, name, count, names, options, handles, Mode::ReadOnly)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_close(database: *mut Database) {
    if database.is_null() {
        return;
    }
    // SAFETY: the contract; a closed database is not used again.
    let database = unsafe { Box::from_raw(database) };
    for cache in &database.caches {
        cache.leave(database.number);
    }
    // There is no slot for an error; the engine has logged what it could not do.
    let _ = survive(|| Ok(database.db.close()?));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_destroy_db(_: *const Settings, name: *const c_char, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe { report(error, (), || folder::destroy(&bytes::path(name))) };
}

/// Makes it open again with all that can be read of its files; what can't be used is in the folder `lost` in it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_repair_db(
    options: *const Settings,
    name: *const c_char,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            let (settings, path) = (&*options, bytes::path(name));
            folder::check_not_foreign(&path)?;
            let options = Options {
                create_if_missing: false,
                error_if_exists: false,
                ..options::database(settings, &[settings])?
            };
            let how = RepairOptions {
                key_orders: vec![settings.key_order()],
                ..RepairOptions::default()
            };
            let repaired = esker::repair(&path, &how);
            repaired.map_err(|error| worded(error, &path, &options))?;
            Ok(())
        });
    }
}
