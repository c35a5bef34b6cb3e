//! Numbers among the options that mean something here; `engine.rs` says what.

use std::ffi::{c_int, c_uchar};

use super::Settings;
use crate::settings::settings;

settings! {
    /// Numbers that are mapped to the engine's options, or refused.
    Mapped of Settings;
    atomic_flush: c_uchar = 0, rocksdb_options_set_atomic_flush, rocksdb_options_get_atomic_flush;
    bottommost_compression: c_int = 255,
        rocksdb_options_set_bottommost_compression, rocksdb_options_get_bottommost_compression;
    compaction_style: c_int = 0, rocksdb_options_set_compaction_style, rocksdb_options_get_compaction_style;
    create_if_missing: c_uchar = 0,
        rocksdb_options_set_create_if_missing, rocksdb_options_get_create_if_missing;
    create_missing_column_families: c_uchar = 0,
        rocksdb_options_set_create_missing_column_families,
        rocksdb_options_get_create_missing_column_families;
    db_write_buffer_size: usize = 0,
        rocksdb_options_set_db_write_buffer_size, rocksdb_options_get_db_write_buffer_size;
    error_if_exists: c_uchar = 0, rocksdb_options_set_error_if_exists, rocksdb_options_get_error_if_exists;
    level0_file_num_compaction_trigger: c_int = 4,
        rocksdb_options_set_level0_file_num_compaction_trigger,
        rocksdb_options_get_level0_file_num_compaction_trigger;
    level0_stop_writes_trigger: c_int = 36,
        rocksdb_options_set_level0_stop_writes_trigger, rocksdb_options_get_level0_stop_writes_trigger;
    max_background_compactions: c_int = -1,
        rocksdb_options_set_max_background_compactions, rocksdb_options_get_max_background_compactions;
    max_background_jobs: c_int = 2,
        rocksdb_options_set_max_background_jobs, rocksdb_options_get_max_background_jobs;
    max_bytes_for_level_base: u64 = 256 << 20,
        rocksdb_options_set_max_bytes_for_level_base, rocksdb_options_get_max_bytes_for_level_base;
    max_bytes_for_level_multiplier: f64 = 10.0,
        rocksdb_options_set_max_bytes_for_level_multiplier,
        rocksdb_options_get_max_bytes_for_level_multiplier;
    max_open_files: c_int = -1, rocksdb_options_set_max_open_files, rocksdb_options_get_max_open_files;
    max_subcompactions: u32 = 1,
        rocksdb_options_set_max_subcompactions, rocksdb_options_get_max_subcompactions;
    max_total_wal_size: u64 = 0,
        rocksdb_options_set_max_total_wal_size, rocksdb_options_get_max_total_wal_size;
    max_write_buffer_number: c_int = 2,
        rocksdb_options_set_max_write_buffer_number, rocksdb_options_get_max_write_buffer_number;
    num_levels: c_int = 7, rocksdb_options_set_num_levels, rocksdb_options_get_num_levels;
    target_file_size_base: u64 = 64 << 20,
        rocksdb_options_set_target_file_size_base, rocksdb_options_get_target_file_size_base;
    use_direct_io_for_flush_and_compaction: c_uchar = 0,
        rocksdb_options_set_use_direct_io_for_flush_and_compaction,
        rocksdb_options_get_use_direct_io_for_flush_and_compaction;
    use_direct_reads: c_uchar = 0, rocksdb_options_set_use_direct_reads, rocksdb_options_get_use_direct_reads;
    wal_recovery_mode: c_int = 2,
        rocksdb_options_set_wal_recovery_mode, rocksdb_options_get_wal_recovery_mode;
    write_buffer_size: usize = 64 << 20,
        rocksdb_options_set_write_buffer_size, rocksdb_options_get_write_buffer_size;
}
