//! Functions that set several options at once, as RocksDB documents them.

use std::ffi::c_int;
use std::sync::Arc;

use super::Settings;
use crate::cache::CacheState;

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_increase_parallelism(options: *mut Settings, total_threads: c_int) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.mapped.max_background_jobs = total_threads;
}

/// A block cache of so many MiB, and filters of 10 bits.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_optimize_for_point_lookup(options: *mut Settings, cache_mib: u64) {
    // SAFETY: as above.
    let table = &mut unsafe { &mut *options }.table;
    table.cache = Some(Arc::new(CacheState::new(cache_mib << 20)));
    table.filter_bits = Some(10);
}

/// Buffers of a quarter of the budget, files of an eighth, a first level of all of it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_optimize_level_style_compaction(options: *mut Settings, budget: u64) {
    // SAFETY: as above.
    let numbers = &mut unsafe { &mut *options }.mapped;
    numbers.write_buffer_size = (budget / 4) as usize;
    numbers.max_write_buffer_number = 6;
    numbers.level0_file_num_compaction_trigger = 2;
    numbers.target_file_size_base = budget / 8;
    numbers.max_bytes_for_level_base = budget;
    numbers.compaction_style = 0;
}

/// Buffers of a quarter of the budget; merged in levels all the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_optimize_universal_style_compaction(
    options: *mut Settings,
    budget: u64,
) {
    // SAFETY: as above.
    let numbers = &mut unsafe { &mut *options }.mapped;
    numbers.write_buffer_size = (budget / 4) as usize;
    numbers.max_write_buffer_number = 6;
    numbers.level0_file_num_compaction_trigger = 2;
    numbers.compaction_style = 1;
}

/// Nothing is compacted until the program asks for it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_prepare_for_bulk_load(options: *mut Settings) {
    // SAFETY: as above.
    let options = unsafe { &mut *options };
    options.disable_auto_compactions = true;
    let numbers = &mut options.mapped;
    numbers.level0_file_num_compaction_trigger = 1 << 30;
    numbers.level0_stop_writes_trigger = 1 << 30;
    numbers.num_levels = 2;
    numbers.max_write_buffer_number = 6;
    numbers.target_file_size_base = 256 << 20;
}
