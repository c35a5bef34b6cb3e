//! Column families: `rocksdb_column_family_handle_*`, create, drop, list.

use std::ffi::{c_char, c_int};

use esker::{ColumnFamily, KeyOrder};
use esker_compat::{Result, Status, bytes, folder, memory, report};

use crate::open::Database;
use crate::options::{self, Settings};
use crate::settings::destroyed;
use crate::transform::Prefix;

/// `rocksdb_column_family_handle_t`.
#[derive(Clone)]
pub struct Handle {
    pub family: ColumnFamily,
    pub prefix: Prefix,
    /// Whether it can take merges.
    pub merges: bool,
    pub order: KeyOrder,
}

impl Handle {
    /// Of a family that was opened or made with these options.
    pub fn new(family: ColumnFamily, settings: &Settings) -> Self {
        Self {
            family,
            prefix: settings.prefix,
            merges: settings.merge_operator.is_some(),
            order: settings.key_order(),
        }
    }
}

destroyed!(Handle, rocksdb_column_family_handle_destroy);

fn create(database: &Database, settings: &Settings, name: &str) -> Result<Handle> {
    if database.db.column_family(name).is_ok() {
        return Err(Status::invalid("Column family already exists"));
    }
    let family = database
        .db
        .create_column_family(name, options::family(settings)?)?;
    let handle = Handle::new(family, settings);
    database.made(&handle);
    Ok(handle)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_family(
    database: *mut Database,
    options: *const Settings,
    name: *const c_char,
    error: *mut *mut c_char,
) -> *mut Handle {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            let handle = create(&*database, &*options, &bytes::text(name))?;
            Ok(Box::into_raw(Box::new(handle)))
        })
    }
}

/// Makes families of the same options; those made before one that can't be made are returned, and stay.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_families(
    database: *mut Database,
    options: *const Settings,
    count: c_int,
    names: *const *const c_char,
    made: *mut usize,
    error: *mut *mut c_char,
) -> *mut *mut Handle {
    let mut handles: Vec<*mut Handle> = Vec::new();
    // SAFETY: the contract; there are `count` names, and `made` is writable.
    unsafe {
        for &name in bytes::array(names, usize::try_from(count).unwrap_or(0)) {
            let handle = report(error, None, || {
                Ok(Some(create(&*database, &*options, &bytes::text(name))?))
            });
            let Some(handle) = handle else { break };
            handles.push(Box::into_raw(Box::new(handle)));
        }
        *made = handles.len();
    }
    memory::copy_array(&handles)
}

/// Frees the list, not the handles in it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_families_destroy(list: *mut *mut Handle) {
    // SAFETY: the contract; the list came from `rocksdb_create_column_families`.
    unsafe { memory::release(list.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_drop_column_family(
    database: *mut Database,
    handle: *mut Handle,
    error: *mut *mut c_char,
) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            Ok((*database).db.drop_column_family(&(*handle).family)?)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_default_column_family_handle(database: *mut Database) -> *mut Handle {
    // SAFETY: the contract.
    Box::into_raw(Box::new(unsafe { &*database }.default.clone()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_column_family_handle_get_id(handle: *mut Handle) -> u32 {
    // SAFETY: the contract.
    unsafe { &*handle }.family.id()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_column_family_handle_get_name(
    handle: *mut Handle,
    len: *mut usize,
) -> *mut c_char {
    // SAFETY: the contract; `len` is writable.
    unsafe {
        let name = (*handle).family.name();
        *len = name.len();
        memory::copy_text(name)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families(
    _: *const Settings,
    name: *const c_char,
    count: *mut usize,
    error: *mut *mut c_char,
) -> *mut *mut c_char {
    // SAFETY: the contract; `count` is writable.
    unsafe {
        let names = report(error, Vec::new(), || {
            let path = bytes::path(name);
            folder::families(&path).map_err(|status| crate::open::missing(status, &path))
        });
        *count = names.len();
        let names: Vec<*mut c_char> = names.iter().map(|name| memory::copy_text(name)).collect();
        // A list is returned also where there is none, as RocksDB does.
        memory::copy_array(&names)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, count: usize) {
    // SAFETY: the contract; the list came from `rocksdb_list_column_families`.
    unsafe {
        for &name in bytes::array(list, count) {
            memory::release(name.cast());
        }
        memory::release(list.cast());
    }
}
