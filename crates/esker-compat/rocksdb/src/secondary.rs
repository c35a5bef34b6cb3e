//! Secondary instances: a database that another process writes, read beside it, on the engine's followers.

use std::ffi::{c_char, c_int};

use esker_compat::{Status, report};

use crate::families::Handle;
use crate::open::{Database, Mode, open_default, open_families};
use crate::options::Settings;

/// The folder of its own that RocksDB's instance logs into is not used: nothing is written.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_as_secondary(
    options: *const Settings,
    name: *const c_char,
    _: *const c_char,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_default(options, name, Mode::Secondary)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    settings: *const Settings,
    name: *const c_char,
    _: *const c_char,
    count: c_int,
    names: *const *const c_char,
    options: *const *const Settings,
    handles: *mut *mut Handle,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the contract.
    unsafe {
        report(error, std::ptr::null_mut(), || {
            open_families(settings, name, count, names, options, handles, Mode::Secondary)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_try_catch_up_with_primary(database: *mut Database, error: *mut *mut c_char) {
    // SAFETY: the contract.
    unsafe {
        report(error, (), || {
            let follower = (*database).follower.as_ref();
            let follower = follower.ok_or_else(|| Status::refused("Supported only by secondary instance"))?;
            follower.catch_up()?;
            Ok(())
        });
    }
}
