//! Options of reads and writes: `leveldb_readoptions_*`, `leveldb_writeoptions_*`.

use std::ffi::c_uchar;

use esker::{Durability, ReadOptions, Snapshot, WriteOptions};

/// `leveldb_readoptions_t`.
pub struct ReadSettings {
    pub engine: ReadOptions,
}

/// `leveldb_writeoptions_t`.
pub struct WriteSettings {
    pub engine: WriteOptions,
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_readoptions_create() -> *mut ReadSettings {
    Box::into_raw(Box::new(ReadSettings {
        engine: ReadOptions::default(),
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_destroy(options: *mut ReadSettings) {
    if !options.is_null() {
        // SAFETY: the contract; destroyed options are not used again.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// LevelDB verifies only when told to; here that stays on until it is switched off.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_verify_checksums(options: *mut ReadSettings, on: c_uchar) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.engine.verify_checksums = on != 0;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut ReadSettings, on: c_uchar) {
    // SAFETY: as above.
    unsafe { &mut *options }.engine.fill_cache = on != 0;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_snapshot(options: *mut ReadSettings, snapshot: *const Snapshot) {
    // SAFETY: as above; the snapshot is null or was not released.
    unsafe { (*options).engine.snapshot = snapshot.as_ref().cloned() };
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writeoptions_create() -> *mut WriteSettings {
    Box::into_raw(Box::new(WriteSettings {
        engine: WriteOptions::durability(Durability::Buffered),
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writeoptions_destroy(options: *mut WriteSettings) {
    if !options.is_null() {
        // SAFETY: the contract; destroyed options are not used again.
        drop(unsafe { Box::from_raw(options) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writeoptions_set_sync(options: *mut WriteSettings, on: c_uchar) {
    let durability = if on != 0 {
        Durability::Sync
    } else {
        Durability::Buffered
    };
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.engine = WriteOptions::durability(durability);
}
