//! Options of flushes, compactions by hand and waits. Of them only the waits' `flush` and `close_db` and the log's `sync` have
//! a meaning here.

use std::ffi::{c_int, c_uchar};

use crate::settings::{Changed, holds, object, settings};

/// `rocksdb_flushoptions_t`.
#[derive(Default)]
pub struct FlushSettings {
    numbers: FlushNumbers,
}

holds!(FlushSettings, numbers: FlushNumbers);
impl Changed for FlushSettings {}
object!(
    FlushSettings,
    rocksdb_flushoptions_create,
    rocksdb_flushoptions_destroy
);

settings! {
    /// Numbers without meaning here: a flush is waited for.
    FlushNumbers of FlushSettings;
    allow_write_stall: c_uchar = 0,
        rocksdb_flushoptions_set_allow_write_stall, rocksdb_flushoptions_get_allow_write_stall;
    force_atomic_flush: c_uchar = 0,
        rocksdb_flushoptions_set_force_atomic_flush, rocksdb_flushoptions_get_force_atomic_flush;
    listener_wait: c_uchar = 0,
        rocksdb_flushoptions_set_listener_wait, rocksdb_flushoptions_get_listener_wait;
    wait: c_uchar = 1, rocksdb_flushoptions_set_wait, rocksdb_flushoptions_get_wait;
}

/// `rocksdb_flushwaloptions_t`.
#[derive(Default)]
pub struct FlushWalSettings {
    numbers: FlushWalNumbers,
}

impl FlushWalSettings {
    /// Whether the log is brought to the device.
    pub fn sync(&self) -> c_uchar {
        self.numbers.sync
    }
}

holds!(FlushWalSettings, numbers: FlushWalNumbers);
impl Changed for FlushWalSettings {}
object!(
    FlushWalSettings,
    rocksdb_flushwaloptions_create,
    rocksdb_flushwaloptions_destroy
);

settings! {
    /// Numbers.
    FlushWalNumbers of FlushWalSettings;
    sync: c_uchar = 0, rocksdb_flushwaloptions_set_sync, rocksdb_flushwaloptions_get_sync;
    rate_limiter_priority: c_int = 4,
        rocksdb_flushwaloptions_set_rate_limiter_priority, rocksdb_flushwaloptions_get_rate_limiter_priority;
}

/// `rocksdb_compactoptions_t`.
#[derive(Default)]
pub struct CompactSettings {
    numbers: CompactNumbers,
}

holds!(CompactSettings, numbers: CompactNumbers);
impl Changed for CompactSettings {}
object!(
    CompactSettings,
    rocksdb_compactoptions_create,
    rocksdb_compactoptions_destroy
);

settings! {
    /// Numbers without meaning here.
    CompactNumbers of CompactSettings;
    allow_write_stall: c_uchar = 0,
        rocksdb_compactoptions_set_allow_write_stall, rocksdb_compactoptions_get_allow_write_stall;
    blob_garbage_collection_age_cutoff: f64 = -1.0,
        rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff,
        rocksdb_compactoptions_get_blob_garbage_collection_age_cutoff;
    blob_garbage_collection_policy: c_int = 2,
        rocksdb_compactoptions_set_blob_garbage_collection_policy,
        rocksdb_compactoptions_get_blob_garbage_collection_policy;
    bottommost_level_compaction: c_uchar = 1,
        rocksdb_compactoptions_set_bottommost_level_compaction,
        rocksdb_compactoptions_get_bottommost_level_compaction;
    change_level: c_uchar = 0,
        rocksdb_compactoptions_set_change_level, rocksdb_compactoptions_get_change_level;
    exclusive_manual_compaction: c_uchar = 0,
        rocksdb_compactoptions_set_exclusive_manual_compaction,
        rocksdb_compactoptions_get_exclusive_manual_compaction;
    max_subcompactions: c_int = 0,
        rocksdb_compactoptions_set_max_subcompactions, rocksdb_compactoptions_get_max_subcompactions;
    target_level: c_int = -1,
        rocksdb_compactoptions_set_target_level, rocksdb_compactoptions_get_target_level;
    target_path_id: c_int = 0,
        rocksdb_compactoptions_set_target_path_id, rocksdb_compactoptions_get_target_path_id;
}

/// `rocksdb_wait_for_compact_options_t`.
#[derive(Default)]
pub struct WaitSettings {
    numbers: WaitNumbers,
}

impl WaitSettings {
    /// Whether memtables are flushed first.
    pub fn flush(&self) -> bool {
        self.numbers.flush != 0
    }

    /// Whether the database is closed afterwards.
    pub fn close_db(&self) -> bool {
        self.numbers.close_db != 0
    }
}

holds!(WaitSettings, numbers: WaitNumbers);
impl Changed for WaitSettings {}
object!(
    WaitSettings,
    rocksdb_wait_for_compact_options_create,
    rocksdb_wait_for_compact_options_destroy
);

settings! {
    /// Numbers.
    WaitNumbers of WaitSettings;
    abort_on_pause: c_uchar = 0,
        rocksdb_wait_for_compact_options_set_abort_on_pause,
        rocksdb_wait_for_compact_options_get_abort_on_pause;
    close_db: c_uchar = 0,
        rocksdb_wait_for_compact_options_set_close_db, rocksdb_wait_for_compact_options_get_close_db;
    flush: c_uchar = 0,
        rocksdb_wait_for_compact_options_set_flush, rocksdb_wait_for_compact_options_get_flush;
    timeout: u64 = 0,
        rocksdb_wait_for_compact_options_set_timeout, rocksdb_wait_for_compact_options_get_timeout;
    wait_for_purge: c_uchar = 0,
        rocksdb_wait_for_compact_options_set_wait_for_purge,
        rocksdb_wait_for_compact_options_get_wait_for_purge;
}
