//! Options of writes: `rocksdb_writeoptions_*`.

use std::ffi::{c_int, c_uchar};

use esker::{Durability, WriteOptions};
use esker_compat::{Result, Status};

use crate::settings::{Changed, holds, settings};

/// `rocksdb_writeoptions_t`.
pub struct WriteSettings {
    numbers: WriteNumbers,
    disable_wal: bool,
    engine: WriteOptions,
}

impl WriteSettings {
    /// For the engine.
    #[inline]
    pub fn engine(&self) -> Result<&WriteOptions> {
        if self.disable_wal && self.numbers.sync != 0 {
            return Err(Status::invalid("Sync writes has to enable WAL."));
        }
        Ok(&self.engine)
    }
}

holds!(WriteSettings, numbers: WriteNumbers);

impl Changed for WriteSettings {
    fn changed(&mut self) {
        self.engine = WriteOptions {
            durability: Some(if self.disable_wal {
                Durability::None
            } else if self.numbers.sync != 0 {
                Durability::Sync
            } else {
                Durability::Buffered
            }),
            no_wait: self.numbers.no_slowdown != 0,
        };
    }
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            numbers: WriteNumbers::default(),
            disable_wal: false,
            engine: WriteOptions::durability(Durability::Buffered),
        }
    }
}

crate::settings::object!(
    WriteSettings,
    rocksdb_writeoptions_create,
    rocksdb_writeoptions_destroy
);

settings! {
    /// Numbers; `changed` above says which have a meaning here.
    WriteNumbers of WriteSettings;
    ignore_missing_column_families: c_uchar = 0,
        rocksdb_writeoptions_set_ignore_missing_column_families,
        rocksdb_writeoptions_get_ignore_missing_column_families;
    io_activity: c_int = 255, rocksdb_writeoptions_set_io_activity, rocksdb_writeoptions_get_io_activity;
    low_pri: c_uchar = 0, rocksdb_writeoptions_set_low_pri, rocksdb_writeoptions_get_low_pri;
    memtable_insert_hint_per_batch: c_uchar = 0,
        rocksdb_writeoptions_set_memtable_insert_hint_per_batch,
        rocksdb_writeoptions_get_memtable_insert_hint_per_batch;
    no_slowdown: c_uchar = 0, rocksdb_writeoptions_set_no_slowdown, rocksdb_writeoptions_get_no_slowdown;
    protection_bytes_per_key: usize = 0,
        rocksdb_writeoptions_set_protection_bytes_per_key, rocksdb_writeoptions_get_protection_bytes_per_key;
    rate_limiter_priority: c_int = 4,
        rocksdb_writeoptions_set_rate_limiter_priority, rocksdb_writeoptions_get_rate_limiter_priority;
    sync: c_uchar = 0, rocksdb_writeoptions_set_sync, rocksdb_writeoptions_get_sync;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writeoptions_disable_WAL(options: *mut WriteSettings, disable: c_int) {
    // SAFETY: the contract; options are changed by one thread at a time.
    let options = unsafe { &mut *options };
    options.disable_wal = disable != 0;
    options.changed();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writeoptions_get_disable_WAL(options: *mut WriteSettings) -> c_uchar {
    // SAFETY: as above.
    unsafe { &*options }.disable_wal.into()
}
