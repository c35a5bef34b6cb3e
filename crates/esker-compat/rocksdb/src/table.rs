//! Options of tables: `rocksdb_block_based_options_*`.

use std::ffi::{c_char, c_int, c_uchar};
use std::sync::Arc;

use crate::cache::{Cache, CacheState};
use crate::filter::FilterPolicy;
use crate::settings::{Changed, destroyed, holds, settings};

/// `rocksdb_block_based_table_options_t`.
#[derive(Clone, Default)]
pub struct TableSettings {
    pub numbers: TableNumbers,
    pub block_bytes: Option<usize>,
    pub cache: Option<Arc<CacheState>>,
    pub filter_bits: Option<u32>,
    checksum: Option<c_int>,
    format_version: Option<u32>,
}

holds!(TableSettings, numbers: TableNumbers);
impl Changed for TableSettings {}

settings! {
    /// Numbers; of these only `no_block_cache`, `cache_index_and_filter_blocks` and `whole_key_filtering` have a meaning here.
    TableNumbers of TableSettings;
    block_align: c_uchar = 0,
        rocksdb_block_based_options_set_block_align, rocksdb_block_based_options_get_block_align;
    block_restart_interval: c_int = 16,
        rocksdb_block_based_options_set_block_restart_interval,
        rocksdb_block_based_options_get_block_restart_interval;
    block_size_deviation: c_int = 10,
        rocksdb_block_based_options_set_block_size_deviation,
        rocksdb_block_based_options_get_block_size_deviation;
    cache_index_and_filter_blocks: c_uchar = 0,
        rocksdb_block_based_options_set_cache_index_and_filter_blocks,
        rocksdb_block_based_options_get_cache_index_and_filter_blocks;
    cache_index_and_filter_blocks_with_high_priority: c_uchar = 1,
        rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority,
        rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority;
    data_block_hash_table_util_ratio: f64 = 0.75,
        rocksdb_block_based_options_set_data_block_hash_table_util_ratio,
        rocksdb_block_based_options_get_data_block_hash_table_util_ratio;
    data_block_index_type: c_int = 0,
        rocksdb_block_based_options_set_data_block_index_type,
        rocksdb_block_based_options_get_data_block_index_type;
    decouple_partitioned_filters: c_uchar = 1,
        rocksdb_block_based_options_set_decouple_partitioned_filters,
        rocksdb_block_based_options_get_decouple_partitioned_filters;
    detect_filter_construct_corruption: c_uchar = 0,
        rocksdb_block_based_options_set_detect_filter_construct_corruption,
        rocksdb_block_based_options_get_detect_filter_construct_corruption;
    enable_index_compression: c_uchar = 1,
        rocksdb_block_based_options_set_enable_index_compression,
        rocksdb_block_based_options_get_enable_index_compression;
    fail_if_no_udi_on_open: c_uchar = 0,
        rocksdb_block_based_options_set_fail_if_no_udi_on_open,
        rocksdb_block_based_options_get_fail_if_no_udi_on_open;
    index_block_restart_interval: c_int = 1,
        rocksdb_block_based_options_set_index_block_restart_interval,
        rocksdb_block_based_options_get_index_block_restart_interval;
    index_block_search_type: c_int = 0,
        rocksdb_block_based_options_set_index_block_search_type,
        rocksdb_block_based_options_get_index_block_search_type;
    index_shortening: c_int = 1,
        rocksdb_block_based_options_set_index_shortening, rocksdb_block_based_options_get_index_shortening;
    index_type: c_int = 0,
        rocksdb_block_based_options_set_index_type, rocksdb_block_based_options_get_index_type;
    initial_auto_readahead_size: usize = 8192,
        rocksdb_block_based_options_set_initial_auto_readahead_size,
        rocksdb_block_based_options_get_initial_auto_readahead_size;
    max_auto_readahead_size: usize = 256 << 10,
        rocksdb_block_based_options_set_max_auto_readahead_size,
        rocksdb_block_based_options_get_max_auto_readahead_size;
    metadata_block_size: u64 = 4096,
        rocksdb_block_based_options_set_metadata_block_size,
        rocksdb_block_based_options_get_metadata_block_size;
    no_block_cache: c_uchar = 0,
        rocksdb_block_based_options_set_no_block_cache, rocksdb_block_based_options_get_no_block_cache;
    num_file_reads_for_auto_readahead: u64 = 2,
        rocksdb_block_based_options_set_num_file_reads_for_auto_readahead,
        rocksdb_block_based_options_get_num_file_reads_for_auto_readahead;
    optimize_filters_for_memory: c_uchar = 1,
        rocksdb_block_based_options_set_optimize_filters_for_memory,
        rocksdb_block_based_options_get_optimize_filters_for_memory;
    partition_filters: c_uchar = 0,
        rocksdb_block_based_options_set_partition_filters, rocksdb_block_based_options_get_partition_filters;
    pin_l0_filter_and_index_blocks_in_cache: c_uchar = 0,
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache,
        rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache;
    pin_top_level_index_and_filter: c_uchar = 1,
        rocksdb_block_based_options_set_pin_top_level_index_and_filter,
        rocksdb_block_based_options_get_pin_top_level_index_and_filter;
    prepopulate_block_cache: c_int = 0,
        rocksdb_block_based_options_set_prepopulate_block_cache,
        rocksdb_block_based_options_get_prepopulate_block_cache;
    read_amp_bytes_per_bit: u32 = 0,
        rocksdb_block_based_options_set_read_amp_bytes_per_bit,
        rocksdb_block_based_options_get_read_amp_bytes_per_bit;
    separate_key_value_in_data_block: c_uchar = 0,
        rocksdb_block_based_options_set_separate_key_value_in_data_block,
        rocksdb_block_based_options_get_separate_key_value_in_data_block;
    super_block_alignment_size: usize = 0,
        rocksdb_block_based_options_set_super_block_alignment_size,
        rocksdb_block_based_options_get_super_block_alignment_size;
    super_block_alignment_space_overhead_ratio: usize = 128,
        rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio,
        rocksdb_block_based_options_get_super_block_alignment_space_overhead_ratio;
    uniform_cv_threshold: f64 = -1.0,
        rocksdb_block_based_options_set_uniform_cv_threshold,
        rocksdb_block_based_options_get_uniform_cv_threshold;
    use_delta_encoding: c_uchar = 1,
        rocksdb_block_based_options_set_use_delta_encoding,
        rocksdb_block_based_options_get_use_delta_encoding;
    use_udi_as_primary_index: c_uchar = 0,
        rocksdb_block_based_options_set_use_udi_as_primary_index,
        rocksdb_block_based_options_get_use_udi_as_primary_index;
    verify_compression: c_uchar = 0,
        rocksdb_block_based_options_set_verify_compression,
        rocksdb_block_based_options_get_verify_compression;
    whole_key_filtering: c_uchar = 1,
        rocksdb_block_based_options_set_whole_key_filtering,
        rocksdb_block_based_options_get_whole_key_filtering;
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_block_based_options_create() -> *mut TableSettings {
    Box::into_raw(Box::default())
}

destroyed!(TableSettings, rocksdb_block_based_options_destroy);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_set_block_size(options: *mut TableSettings, bytes: usize) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.block_bytes = Some(bytes);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_get_block_size(options: *mut TableSettings) -> u64 {
    // SAFETY: as above.
    unsafe { &*options }.block_bytes.unwrap_or(4096) as u64
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_set_block_cache(
    options: *mut TableSettings,
    cache: *mut Cache,
) {
    // SAFETY: as above. The options share the cache; null means RocksDB's own.
    unsafe { (*options).cache = cache.as_ref().map(|cache| Arc::clone(&cache.state)) };
}

/// Takes the policy over.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_set_filter_policy(
    options: *mut TableSettings,
    policy: *mut FilterPolicy,
) {
    let bits = match policy.is_null() {
        true => None,
        // SAFETY: the contract; a policy that was handed over is not used again.
        false => Some(unsafe { Box::from_raw(policy) }.bits_per_key),
    };
    // SAFETY: as above.
    unsafe { &mut *options }.filter_bits = Some(bits.unwrap_or(0));
}

/// No meaning here: checksums are CRC32C.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_set_checksum(options: *mut TableSettings, kind: c_char) {
    // SAFETY: as above.
    unsafe { &mut *options }.checksum = Some(c_int::from(kind));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_get_checksum(options: *mut TableSettings) -> c_int {
    // SAFETY: as above.
    unsafe { &*options }.checksum.unwrap_or(4)
}

/// No meaning here: tables have a format of their own.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_set_format_version(
    options: *mut TableSettings,
    version: c_int,
) {
    // SAFETY: as above.
    unsafe { &mut *options }.format_version = u32::try_from(version).ok();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_block_based_options_get_format_version(options: *mut TableSettings) -> u32 {
    // SAFETY: as above.
    unsafe { &*options }.format_version.unwrap_or(7)
}

macro_rules! without_meaning {
    ($($name:ident($type:ty);)*) => {
        $(
            /// No meaning here.
            #[unsafe(no_mangle)]
            extern "C" fn $name(_: *mut TableSettings, _: $type) {}
        )*
    };
}

without_meaning! {
    rocksdb_block_based_options_set_data_block_hash_ratio(f64);
    rocksdb_block_based_options_set_partition_pinning_tier(c_int);
    rocksdb_block_based_options_set_top_level_index_pinning_tier(c_int);
    rocksdb_block_based_options_set_unpartitioned_pinning_tier(c_int);
}
