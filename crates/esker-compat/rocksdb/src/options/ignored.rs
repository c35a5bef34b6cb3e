//! Numbers among the options that have no meaning here: kept, so that a program gets back what it set.
//!
//! None of them changes what a read answers or what a write survives; `docs/compat.md` lists them.

use std::ffi::{c_int, c_uchar, c_uint};

use super::Settings;
use crate::settings::settings;

settings! {
    /// Numbers without meaning here.
    Ignored of Settings;
    wal_size_limit_mb: u64 = 0, rocksdb_options_set_WAL_size_limit_MB, rocksdb_options_get_WAL_size_limit_MB;
    wal_ttl_seconds: u64 = 0, rocksdb_options_set_WAL_ttl_seconds, rocksdb_options_get_WAL_ttl_seconds;
    advise_random_on_open: c_uchar = 1,
        rocksdb_options_set_advise_random_on_open, rocksdb_options_get_advise_random_on_open;
    allow_2pc: c_uchar = 0, rocksdb_options_set_allow_2pc, rocksdb_options_get_allow_2pc;
    allow_concurrent_memtable_write: c_uchar = 1,
        rocksdb_options_set_allow_concurrent_memtable_write,
        rocksdb_options_get_allow_concurrent_memtable_write;
    allow_data_in_errors: c_uchar = 0,
        rocksdb_options_set_allow_data_in_errors, rocksdb_options_get_allow_data_in_errors;
    allow_fallocate: c_uchar = 1, rocksdb_options_set_allow_fallocate, rocksdb_options_get_allow_fallocate;
    allow_ingest_behind: c_uchar = 0,
        rocksdb_options_set_allow_ingest_behind, rocksdb_options_get_allow_ingest_behind;
    allow_mmap_reads: c_uchar = 0, rocksdb_options_set_allow_mmap_reads, rocksdb_options_get_allow_mmap_reads;
    allow_mmap_writes: c_uchar = 0,
        rocksdb_options_set_allow_mmap_writes, rocksdb_options_get_allow_mmap_writes;
    arena_block_size: usize = 0, rocksdb_options_set_arena_block_size, rocksdb_options_get_arena_block_size;
    async_wal_precreate: c_uchar = 0,
        rocksdb_options_set_async_wal_precreate, rocksdb_options_get_async_wal_precreate;
    avoid_flush_during_recovery: c_uchar = 0,
        rocksdb_options_set_avoid_flush_during_recovery, rocksdb_options_get_avoid_flush_during_recovery;
    avoid_flush_during_shutdown: c_uchar = 0,
        rocksdb_options_set_avoid_flush_during_shutdown, rocksdb_options_get_avoid_flush_during_shutdown;
    avoid_unnecessary_blocking_io: c_uchar = 0,
        rocksdb_options_set_avoid_unnecessary_blocking_io, rocksdb_options_get_avoid_unnecessary_blocking_io;
    background_close_inactive_wals: c_uchar = 0,
        rocksdb_options_set_background_close_inactive_wals,
        rocksdb_options_get_background_close_inactive_wals;
    best_efforts_recovery: c_uchar = 0,
        rocksdb_options_set_best_efforts_recovery, rocksdb_options_get_best_efforts_recovery;
    bgerror_resume_retry_interval: u64 = 1_000_000,
        rocksdb_options_set_bgerror_resume_retry_interval, rocksdb_options_get_bgerror_resume_retry_interval;
    blob_compaction_readahead_size: u64 = 0,
        rocksdb_options_set_blob_compaction_readahead_size,
        rocksdb_options_get_blob_compaction_readahead_size;
    blob_compression_type: c_int = 0,
        rocksdb_options_set_blob_compression_type, rocksdb_options_get_blob_compression_type;
    blob_direct_write_partitions: u32 = 1,
        rocksdb_options_set_blob_direct_write_partitions, rocksdb_options_get_blob_direct_write_partitions;
    blob_file_size: u64 = 256 << 20, rocksdb_options_set_blob_file_size, rocksdb_options_get_blob_file_size;
    blob_file_starting_level: c_int = 0,
        rocksdb_options_set_blob_file_starting_level, rocksdb_options_get_blob_file_starting_level;
    blob_gc_age_cutoff: f64 = 0.25,
        rocksdb_options_set_blob_gc_age_cutoff, rocksdb_options_get_blob_gc_age_cutoff;
    blob_gc_force_threshold: f64 = 1.0,
        rocksdb_options_set_blob_gc_force_threshold, rocksdb_options_get_blob_gc_force_threshold;
    block_protection_bytes_per_key: u8 = 0,
        rocksdb_options_set_block_protection_bytes_per_key,
        rocksdb_options_get_block_protection_bytes_per_key;
    bloom_locality: u32 = 0, rocksdb_options_set_bloom_locality, rocksdb_options_get_bloom_locality;
    bottommost_file_compaction_delay: u32 = 0,
        rocksdb_options_set_bottommost_file_compaction_delay,
        rocksdb_options_get_bottommost_file_compaction_delay;
    bytes_per_sync: u64 = 0, rocksdb_options_set_bytes_per_sync, rocksdb_options_get_bytes_per_sync;
    cf_allow_ingest_behind: c_uchar = 0,
        rocksdb_options_set_cf_allow_ingest_behind, rocksdb_options_get_cf_allow_ingest_behind;
    compaction_pri: c_int = 3, rocksdb_options_set_compaction_pri, rocksdb_options_get_compaction_pri;
    compaction_readahead_size: usize = 2 << 20,
        rocksdb_options_compaction_readahead_size, rocksdb_options_get_compaction_readahead_size;
    compaction_verify_record_count: c_uchar = 1,
        rocksdb_options_set_compaction_verify_record_count,
        rocksdb_options_get_compaction_verify_record_count;
    compression_options_max_dict_buffer_bytes: u64 = 0,
        rocksdb_options_set_compression_options_max_dict_buffer_bytes,
        rocksdb_options_get_compression_options_max_dict_buffer_bytes;
    compression_options_parallel_threads: c_int = 1,
        rocksdb_options_set_compression_options_parallel_threads,
        rocksdb_options_get_compression_options_parallel_threads;
    compression_options_use_zstd_dict_trainer: c_uchar = 1,
        rocksdb_options_set_compression_options_use_zstd_dict_trainer,
        rocksdb_options_get_compression_options_use_zstd_dict_trainer;
    compression_options_zstd_max_train_bytes: c_int = 0,
        rocksdb_options_set_compression_options_zstd_max_train_bytes,
        rocksdb_options_get_compression_options_zstd_max_train_bytes;
    default_temperature: c_int = 0,
        rocksdb_options_set_default_temperature, rocksdb_options_get_default_temperature;
    default_write_temperature: c_int = 0,
        rocksdb_options_set_default_write_temperature, rocksdb_options_get_default_write_temperature;
    delayed_write_rate: u64 = 0,
        rocksdb_options_set_delayed_write_rate, rocksdb_options_get_delayed_write_rate;
    delete_obsolete_files_period_micros: u64 = 21093750 << 10,
        rocksdb_options_set_delete_obsolete_files_period_micros,
        rocksdb_options_get_delete_obsolete_files_period_micros;
    disallow_memtable_writes: c_uchar = 0,
        rocksdb_options_set_disallow_memtable_writes, rocksdb_options_get_disallow_memtable_writes;
    dump_malloc_stats: c_uchar = 0,
        rocksdb_options_set_dump_malloc_stats, rocksdb_options_get_dump_malloc_stats;
    enable_blob_direct_write: c_uchar = 0,
        rocksdb_options_set_enable_blob_direct_write, rocksdb_options_get_enable_blob_direct_write;
    enable_blob_files: c_uchar = 0,
        rocksdb_options_set_enable_blob_files, rocksdb_options_get_enable_blob_files;
    enable_blob_gc: c_uchar = 0, rocksdb_options_set_enable_blob_gc, rocksdb_options_get_enable_blob_gc;
    enable_pipelined_write: c_uchar = 0,
        rocksdb_options_set_enable_pipelined_write, rocksdb_options_get_enable_pipelined_write;
    enable_thread_tracking: c_uchar = 0,
        rocksdb_options_set_enable_thread_tracking, rocksdb_options_get_enable_thread_tracking;
    enable_write_thread_adaptive_yield: c_uchar = 1,
        rocksdb_options_set_enable_write_thread_adaptive_yield,
        rocksdb_options_get_enable_write_thread_adaptive_yield;
    enforce_single_del_contracts: c_uchar = 1,
        rocksdb_options_set_enforce_single_del_contracts, rocksdb_options_get_enforce_single_del_contracts;
    enforce_write_buffer_manager_during_recovery: c_uchar = 1,
        rocksdb_options_set_enforce_write_buffer_manager_during_recovery,
        rocksdb_options_get_enforce_write_buffer_manager_during_recovery;
    experimental_mempurge_threshold: f64 = 0.0,
        rocksdb_options_set_experimental_mempurge_threshold,
        rocksdb_options_get_experimental_mempurge_threshold;
    fast_sst_open: c_uchar = 0, rocksdb_options_set_fast_sst_open, rocksdb_options_get_fast_sst_open;
    flush_verify_memtable_count: c_uchar = 1,
        rocksdb_options_set_flush_verify_memtable_count, rocksdb_options_get_flush_verify_memtable_count;
    follower_catchup_retry_count: u64 = 10,
        rocksdb_options_set_follower_catchup_retry_count, rocksdb_options_get_follower_catchup_retry_count;
    follower_catchup_retry_wait_ms: u64 = 100,
        rocksdb_options_set_follower_catchup_retry_wait_ms,
        rocksdb_options_get_follower_catchup_retry_wait_ms;
    follower_refresh_catchup_period_ms: u64 = 10_000,
        rocksdb_options_set_follower_refresh_catchup_period_ms,
        rocksdb_options_get_follower_refresh_catchup_period_ms;
    force_consistency_checks: c_uchar = 1,
        rocksdb_options_set_force_consistency_checks, rocksdb_options_get_force_consistency_checks;
    hard_pending_compaction_bytes_limit: usize = 256 << 30,
        rocksdb_options_set_hard_pending_compaction_bytes_limit,
        rocksdb_options_get_hard_pending_compaction_bytes_limit;
    info_log_level: c_int = 1, rocksdb_options_set_info_log_level, rocksdb_options_get_info_log_level;
    inplace_update_num_locks: usize = 10_000,
        rocksdb_options_set_inplace_update_num_locks, rocksdb_options_get_inplace_update_num_locks;
    inplace_update_support: c_uchar = 0,
        rocksdb_options_set_inplace_update_support, rocksdb_options_get_inplace_update_support;
    is_fd_close_on_exec: c_uchar = 1,
        rocksdb_options_set_is_fd_close_on_exec, rocksdb_options_get_is_fd_close_on_exec;
    keep_log_file_num: usize = 1000,
        rocksdb_options_set_keep_log_file_num, rocksdb_options_get_keep_log_file_num;
    last_level_temperature: c_int = 0,
        rocksdb_options_set_last_level_temperature, rocksdb_options_get_last_level_temperature;
    level0_slowdown_writes_trigger: c_int = 20,
        rocksdb_options_set_level0_slowdown_writes_trigger,
        rocksdb_options_get_level0_slowdown_writes_trigger;
    level_compaction_dynamic_level_bytes: c_uchar = 1,
        rocksdb_options_set_level_compaction_dynamic_level_bytes,
        rocksdb_options_get_level_compaction_dynamic_level_bytes;
    log_file_time_to_roll: usize = 0,
        rocksdb_options_set_log_file_time_to_roll, rocksdb_options_get_log_file_time_to_roll;
    log_readahead_size: usize = 0,
        rocksdb_options_set_log_readahead_size, rocksdb_options_get_log_readahead_size;
    lowest_used_cache_tier: c_int = 2,
        rocksdb_options_set_lowest_used_cache_tier, rocksdb_options_get_lowest_used_cache_tier;
    manifest_preallocation_size: usize = 4 << 20,
        rocksdb_options_set_manifest_preallocation_size, rocksdb_options_get_manifest_preallocation_size;
    manual_wal_flush: c_uchar = 0, rocksdb_options_set_manual_wal_flush, rocksdb_options_get_manual_wal_flush;
    max_background_flushes: c_int = -1,
        rocksdb_options_set_max_background_flushes, rocksdb_options_get_max_background_flushes;
    max_bgerror_resume_count: c_int = c_int::MAX,
        rocksdb_options_set_max_bgerror_resume_count, rocksdb_options_get_max_bgerror_resume_count;
    max_compaction_bytes: u64 = 0,
        rocksdb_options_set_max_compaction_bytes, rocksdb_options_get_max_compaction_bytes;
    max_compaction_trigger_wakeup_seconds: u64 = 43_200,
        rocksdb_options_set_max_compaction_trigger_wakeup_seconds,
        rocksdb_options_get_max_compaction_trigger_wakeup_seconds;
    max_file_opening_threads: c_int = 16,
        rocksdb_options_set_max_file_opening_threads, rocksdb_options_get_max_file_opening_threads;
    max_log_file_size: usize = 0,
        rocksdb_options_set_max_log_file_size, rocksdb_options_get_max_log_file_size;
    max_manifest_file_size: usize = 1 << 30,
        rocksdb_options_set_max_manifest_file_size, rocksdb_options_get_max_manifest_file_size;
    max_manifest_space_amp_pct: c_int = 500,
        rocksdb_options_set_max_manifest_space_amp_pct, rocksdb_options_get_max_manifest_space_amp_pct;
    max_sequential_skip_in_iterations: u64 = 8,
        rocksdb_options_set_max_sequential_skip_in_iterations,
        rocksdb_options_get_max_sequential_skip_in_iterations;
    max_successive_merges: usize = 0,
        rocksdb_options_set_max_successive_merges, rocksdb_options_get_max_successive_merges;
    max_write_batch_group_size_bytes: u64 = 1 << 20,
        rocksdb_options_set_max_write_batch_group_size_bytes,
        rocksdb_options_get_max_write_batch_group_size_bytes;
    max_write_buffer_size_to_maintain: i64 = 0,
        rocksdb_options_set_max_write_buffer_size_to_maintain,
        rocksdb_options_get_max_write_buffer_size_to_maintain;
    memtable_avg_op_scan_flush_trigger: u32 = 0,
        rocksdb_options_set_memtable_avg_op_scan_flush_trigger,
        rocksdb_options_get_memtable_avg_op_scan_flush_trigger;
    memtable_batch_lookup_optimization: c_uchar = 0,
        rocksdb_options_set_memtable_batch_lookup_optimization,
        rocksdb_options_get_memtable_batch_lookup_optimization;
    memtable_huge_page_size: usize = 0,
        rocksdb_options_set_memtable_huge_page_size, rocksdb_options_get_memtable_huge_page_size;
    memtable_max_range_deletions: u32 = 0,
        rocksdb_options_set_memtable_max_range_deletions, rocksdb_options_get_memtable_max_range_deletions;
    memtable_op_scan_flush_trigger: u32 = 0,
        rocksdb_options_set_memtable_op_scan_flush_trigger,
        rocksdb_options_get_memtable_op_scan_flush_trigger;
    memtable_prefix_bloom_size_ratio: f64 = 0.0,
        rocksdb_options_set_memtable_prefix_bloom_size_ratio,
        rocksdb_options_get_memtable_prefix_bloom_size_ratio;
    memtable_protection_bytes_per_key: u32 = 0,
        rocksdb_options_set_memtable_protection_bytes_per_key,
        rocksdb_options_get_memtable_protection_bytes_per_key;
    memtable_verify_per_key_checksum_on_seek: c_uchar = 0,
        rocksdb_options_set_memtable_verify_per_key_checksum_on_seek,
        rocksdb_options_get_memtable_verify_per_key_checksum_on_seek;
    memtable_whole_key_filtering: c_uchar = 0,
        rocksdb_options_set_memtable_whole_key_filtering, rocksdb_options_get_memtable_whole_key_filtering;
    metadata_write_temperature: c_int = 0,
        rocksdb_options_set_metadata_write_temperature, rocksdb_options_get_metadata_write_temperature;
    min_blob_size: u64 = 0, rocksdb_options_set_min_blob_size, rocksdb_options_get_min_blob_size;
    min_tombstones_for_range_conversion: u32 = 0,
        rocksdb_options_set_min_tombstones_for_range_conversion,
        rocksdb_options_get_min_tombstones_for_range_conversion;
    min_write_buffer_number_to_merge: c_int = 1,
        rocksdb_options_set_min_write_buffer_number_to_merge,
        rocksdb_options_get_min_write_buffer_number_to_merge;
    open_files_async: c_uchar = 0, rocksdb_options_set_open_files_async, rocksdb_options_get_open_files_async;
    optimize_manifest_for_recovery: c_uchar = 0,
        rocksdb_options_set_optimize_manifest_for_recovery,
        rocksdb_options_get_optimize_manifest_for_recovery;
    paranoid_checks: c_uchar = 1, rocksdb_options_set_paranoid_checks, rocksdb_options_get_paranoid_checks;
    paranoid_file_checks: c_uchar = 0,
        rocksdb_options_set_paranoid_file_checks, rocksdb_options_get_paranoid_file_checks;
    paranoid_memory_checks: c_uchar = 0,
        rocksdb_options_set_paranoid_memory_checks, rocksdb_options_get_paranoid_memory_checks;
    periodic_compaction_seconds: u64 = u64::MAX - 1,
        rocksdb_options_set_periodic_compaction_seconds, rocksdb_options_get_periodic_compaction_seconds;
    persist_stats_to_disk: c_uchar = 0,
        rocksdb_options_set_persist_stats_to_disk, rocksdb_options_get_persist_stats_to_disk;
    persist_user_defined_timestamps: c_uchar = 1,
        rocksdb_options_set_persist_user_defined_timestamps,
        rocksdb_options_get_persist_user_defined_timestamps;
    preclude_last_level_data_seconds: u64 = 0,
        rocksdb_options_set_preclude_last_level_data_seconds,
        rocksdb_options_get_preclude_last_level_data_seconds;
    prefix_seek_opt_in_only: c_uchar = 0,
        rocksdb_options_set_prefix_seek_opt_in_only, rocksdb_options_get_prefix_seek_opt_in_only;
    prepopulate_blob_cache: c_int = 0,
        rocksdb_options_set_prepopulate_blob_cache, rocksdb_options_get_prepopulate_blob_cache;
    preserve_internal_time_seconds: u64 = 0,
        rocksdb_options_set_preserve_internal_time_seconds,
        rocksdb_options_get_preserve_internal_time_seconds;
    read_io_executor_threads: c_int = 1,
        rocksdb_options_set_read_io_executor_threads, rocksdb_options_get_read_io_executor_threads;
    read_triggered_compaction_threshold: f64 = 0.0,
        rocksdb_options_set_read_triggered_compaction_threshold,
        rocksdb_options_get_read_triggered_compaction_threshold;
    recycle_log_file_num: usize = 0,
        rocksdb_options_set_recycle_log_file_num, rocksdb_options_get_recycle_log_file_num;
    reuse_manifest_on_open: c_uchar = 0,
        rocksdb_options_set_reuse_manifest_on_open, rocksdb_options_get_reuse_manifest_on_open;
    sample_for_compression: u64 = 0,
        rocksdb_options_set_sample_for_compression, rocksdb_options_get_sample_for_compression;
    skip_stats_update_on_db_open: c_uchar = 0,
        rocksdb_options_set_skip_stats_update_on_db_open, rocksdb_options_get_skip_stats_update_on_db_open;
    soft_pending_compaction_bytes_limit: usize = 64 << 30,
        rocksdb_options_set_soft_pending_compaction_bytes_limit,
        rocksdb_options_get_soft_pending_compaction_bytes_limit;
    stats_dump_period_sec: c_uint = 600,
        rocksdb_options_set_stats_dump_period_sec, rocksdb_options_get_stats_dump_period_sec;
    stats_history_buffer_size: usize = 1 << 20,
        rocksdb_options_set_stats_history_buffer_size, rocksdb_options_get_stats_history_buffer_size;
    stats_persist_period_sec: c_uint = 600,
        rocksdb_options_set_stats_persist_period_sec, rocksdb_options_get_stats_persist_period_sec;
    strict_bytes_per_sync: c_uchar = 0,
        rocksdb_options_set_strict_bytes_per_sync, rocksdb_options_get_strict_bytes_per_sync;
    strict_max_successive_merges: c_uchar = 0,
        rocksdb_options_set_strict_max_successive_merges, rocksdb_options_get_strict_max_successive_merges;
    table_cache_numshardbits: c_int = 6,
        rocksdb_options_set_table_cache_numshardbits, rocksdb_options_get_table_cache_numshardbits;
    target_file_size_is_upper_bound: c_uchar = 0,
        rocksdb_options_set_target_file_size_is_upper_bound,
        rocksdb_options_get_target_file_size_is_upper_bound;
    target_file_size_multiplier: c_int = 1,
        rocksdb_options_set_target_file_size_multiplier, rocksdb_options_get_target_file_size_multiplier;
    track_and_verify_wals: c_uchar = 0,
        rocksdb_options_set_track_and_verify_wals, rocksdb_options_get_track_and_verify_wals;
    track_and_verify_wals_in_manifest: c_uchar = 0,
        rocksdb_options_set_track_and_verify_wals_in_manifest,
        rocksdb_options_get_track_and_verify_wals_in_manifest;
    ttl: u64 = u64::MAX - 1, rocksdb_options_set_ttl, rocksdb_options_get_ttl;
    two_write_queues: c_uchar = 0, rocksdb_options_set_two_write_queues, rocksdb_options_get_two_write_queues;
    uncache_aggressiveness: u32 = 0,
        rocksdb_options_set_uncache_aggressiveness, rocksdb_options_get_uncache_aggressiveness;
    unordered_write: c_uchar = 0, rocksdb_options_set_unordered_write, rocksdb_options_get_unordered_write;
    use_adaptive_mutex: c_uchar = 0,
        rocksdb_options_set_use_adaptive_mutex, rocksdb_options_get_use_adaptive_mutex;
    use_direct_io_for_compaction_reads: c_uchar = 0,
        rocksdb_options_set_use_direct_io_for_compaction_reads,
        rocksdb_options_get_use_direct_io_for_compaction_reads;
    use_fsync: c_int = 0, rocksdb_options_set_use_fsync, rocksdb_options_get_use_fsync;
    verify_manifest_content_on_close: c_uchar = 0,
        rocksdb_options_set_verify_manifest_content_on_close,
        rocksdb_options_get_verify_manifest_content_on_close;
    verify_output_flags: c_int = 0,
        rocksdb_options_set_verify_output_flags, rocksdb_options_get_verify_output_flags;
    verify_sst_unique_id_in_manifest: c_uchar = 1,
        rocksdb_options_set_verify_sst_unique_id_in_manifest,
        rocksdb_options_get_verify_sst_unique_id_in_manifest;
    wal_bytes_per_sync: u64 = 0,
        rocksdb_options_set_wal_bytes_per_sync, rocksdb_options_get_wal_bytes_per_sync;
    wal_compression: c_int = 0, rocksdb_options_set_wal_compression, rocksdb_options_get_wal_compression;
    wal_write_temperature: c_int = 0,
        rocksdb_options_set_wal_write_temperature, rocksdb_options_get_wal_write_temperature;
    writable_file_max_buffer_size: u64 = 1 << 20,
        rocksdb_options_set_writable_file_max_buffer_size, rocksdb_options_get_writable_file_max_buffer_size;
    write_dbid_to_manifest: c_uchar = 1,
        rocksdb_options_set_write_dbid_to_manifest, rocksdb_options_get_write_dbid_to_manifest;
    write_identity_file: c_uchar = 1,
        rocksdb_options_set_write_identity_file, rocksdb_options_get_write_identity_file;
    write_thread_max_yield_usec: u64 = 100,
        rocksdb_options_set_write_thread_max_yield_usec, rocksdb_options_get_write_thread_max_yield_usec;
    write_thread_slow_yield_usec: u64 = 3,
        rocksdb_options_set_write_thread_slow_yield_usec, rocksdb_options_get_write_thread_slow_yield_usec;
}
