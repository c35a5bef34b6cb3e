//! Options that are objects: comparators, merge operators, tables, caches, filters and the like.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use esker_compat::comparator::CComparator;

use super::Settings;
use crate::cache::Cache;
use crate::compaction_filter::CompactionFilter;
use crate::environment::{RateLimiter, WriteBufferManager};
use crate::merge_operator::{CMergeOperator, UInt64Add};
use crate::table::TableSettings;
use crate::transform::{Prefix, Transform};

/// Does not take the comparator over: the caller destroys it after the database was closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_comparator(options: *mut Settings, comparator: *mut CComparator) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { (*options).key_order = comparator.as_ref().map(CComparator::order).unwrap_or_default() };
}

/// Takes the operator over.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_merge_operator(
    options: *mut Settings,
    operator: *mut CMergeOperator,
) {
    // SAFETY: as above; an operator that was handed over is not used again.
    unsafe {
        (*options).merge_operator = match operator.is_null() {
            true => None,
            false => Some(Arc::new(*Box::from_raw(operator))),
        };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_uint64add_merge_operator(options: *mut Settings) {
    // SAFETY: as above.
    unsafe { &mut *options }.merge_operator = Some(Arc::new(UInt64Add));
}

/// Takes the transform over.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_prefix_extractor(options: *mut Settings, transform: *mut Transform) {
    // SAFETY: as above; a transform that was handed over is not used again.
    unsafe {
        (*options).prefix = match transform.is_null() {
            true => Prefix::None,
            false => Box::from_raw(transform).prefix(),
        };
    }
}

/// Copies the tables' options.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_block_based_table_factory(
    options: *mut Settings,
    table: *mut TableSettings,
) {
    // SAFETY: as above.
    unsafe {
        if let Some(table) = table.as_ref() {
            (*options).table = table.clone();
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_row_cache(options: *mut Settings, cache: *mut Cache) {
    // SAFETY: as above.
    unsafe { (*options).row_cache = cache.as_ref().map(|cache| Arc::clone(&cache.state)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_write_buffer_manager(
    options: *mut Settings,
    manager: *mut WriteBufferManager,
) {
    // SAFETY: as above.
    unsafe {
        (*options).memtables_bytes = manager
            .as_ref()
            .map(|manager| manager.buffer_bytes() as u64)
            .filter(|bytes| *bytes > 0);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_ratelimiter(options: *mut Settings, limiter: *mut RateLimiter) {
    // SAFETY: as above.
    unsafe {
        (*options).background_bytes_per_second = limiter.as_ref().map_or(0, RateLimiter::bytes_per_second);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_memtable_vector_rep(options: *mut Settings) {
    // SAFETY: as above.
    unsafe { &mut *options }.vector_memtable = true;
}

/// The hash memtables answer as the ordered one does, which is used in their place.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_hash_skip_list_rep(
    options: *mut Settings,
    _: usize,
    _: i32,
    _: i32,
) {
    // SAFETY: as above.
    unsafe { &mut *options }.vector_memtable = false;
}

/// As [`rocksdb_options_set_hash_skip_list_rep`].
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_hash_link_list_rep(options: *mut Settings, _: usize) {
    // SAFETY: as above.
    unsafe { &mut *options }.vector_memtable = false;
}

/// What a filter would drop would stay, so opening with one is refused. The filter stays the caller's.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_compaction_filter(
    options: *mut Settings,
    filter: *mut CompactionFilter,
) {
    // SAFETY: as above.
    unsafe { &mut *options }.refused = (!filter.is_null()).then_some(COMPACTION_FILTER);
}

/// As [`rocksdb_options_set_compaction_filter`], but the options take the factory over.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_compaction_filter_factory(
    options: *mut Settings,
    factory: *mut CompactionFilter,
) {
    // SAFETY: as above; a factory that was handed over is not used again.
    unsafe {
        rocksdb_options_set_compaction_filter(options, factory);
        if !factory.is_null() {
            drop(Box::from_raw(factory));
        }
    }
}

const COMPACTION_FILTER: &str = "compaction filters: rows that they would drop would stay";

macro_rules! switches {
    ($($field:ident, $set:ident, $get:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $set(options: *mut Settings, on: c_int) {
                // SAFETY: as above.
                unsafe { &mut *options }.$field = on != 0;
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $get(options: *mut Settings) -> c_uchar {
                // SAFETY: as above.
                unsafe { &*options }.$field.into()
            }
        )*
    };
}

switches! {
    disable_auto_compactions, rocksdb_options_set_disable_auto_compactions,
        rocksdb_options_get_disable_auto_compactions;
    optimize_filters_for_hits, rocksdb_options_set_optimize_filters_for_hits,
        rocksdb_options_get_optimize_filters_for_hits;
    report_bg_io_stats, rocksdb_options_set_report_bg_io_stats, rocksdb_options_get_report_bg_io_stats;
}

macro_rules! without_meaning {
    ($($name:ident($($type:ty),*);)*) => {
        $(
            /// No meaning here.
            #[unsafe(no_mangle)]
            extern "C" fn $name(_: *mut Settings, $(_: $type),*) {}
        )*
    };
}

without_meaning! {
    rocksdb_options_set_env(*mut c_void);
    rocksdb_options_set_info_log(*mut c_void);
    rocksdb_options_set_db_log_dir(*const c_char);
    rocksdb_options_set_wal_dir(*const c_char);
    rocksdb_options_set_db_paths(*const *const c_void, usize);
    rocksdb_options_set_cf_paths(*const *const c_void, usize);
    rocksdb_options_set_db_host_id(*const c_char);
    rocksdb_options_set_daily_offpeak_time_utc(*const c_char);
    rocksdb_options_set_blob_cache(*mut Cache);
    rocksdb_options_set_max_bytes_for_level_multiplier_additional(*mut c_int, usize);
    rocksdb_options_set_plain_table_factory(u32, c_int, f64, usize, usize, c_char, c_uchar, c_uchar);
    rocksdb_options_enable_statistics();
    rocksdb_options_set_statistics_level(c_int);
}

/// The engine always counts; there is one level.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_get_statistics_level(_: *mut Settings) -> c_int {
    0
}
