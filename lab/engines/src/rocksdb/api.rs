//! The functions of RocksDB's `c.h` that the lab calls. The optional ones are settings that a drop-in replacement may
//! not offer.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};

use crate::capi::c_functions;
use crate::common::Common;
pub(super) use crate::common::Ptr;

/// `full_merge` of a merge operator: state, key, existing value (null without one), operands, success, new length.
pub(super) type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// `partial_merge`: state, key, operands, success, new length.
pub(super) type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// `delete_value`: state, what a merge returned, its length.
pub(super) type DeleteValue = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

c_functions! {
    /// The table.
    Api on Common;
    required {
        writeoptions_disable_WAL(Ptr, c_int);
        flushoptions_create() -> Ptr;
        flushoptions_destroy(Ptr);
        merge(Ptr, Ptr, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
        get_pinned(Ptr, Ptr, *const c_char, usize, *mut *mut c_char) -> Ptr;
        pinnableslice_value(Ptr, *mut usize) -> *const c_char;
        pinnableslice_destroy(Ptr);
        flush(Ptr, Ptr, *mut *mut c_char);
        block_based_options_create() -> Ptr;
        block_based_options_destroy(Ptr);
        options_set_block_based_table_factory(Ptr, Ptr);
    }
    optional {
        options_set_write_buffer_size(Ptr, usize);
        options_set_max_write_buffer_number(Ptr, c_int);
        options_set_max_background_jobs(Ptr, c_int);
        options_set_max_subcompactions(Ptr, u32);
        options_set_max_open_files(Ptr, c_int);
        options_set_level0_file_num_compaction_trigger(Ptr, c_int);
        options_set_level0_slowdown_writes_trigger(Ptr, c_int);
        options_set_level0_stop_writes_trigger(Ptr, c_int);
        options_set_num_levels(Ptr, c_int);
        options_set_target_file_size_base(Ptr, u64);
        options_set_max_bytes_for_level_base(Ptr, u64);
        options_set_level_compaction_dynamic_level_bytes(Ptr, c_uchar);
        options_set_disable_auto_compactions(Ptr, c_int);
        options_set_memtable_vector_rep(Ptr);
        options_set_allow_concurrent_memtable_write(Ptr, c_uchar);
        options_set_use_direct_reads(Ptr, c_uchar);
        options_set_use_direct_io_for_flush_and_compaction(Ptr, c_uchar);
        options_set_bytes_per_sync(Ptr, u64);
        options_set_compression(Ptr, c_int);
        options_set_compression_per_level(Ptr, *const c_int, usize);
        options_set_enable_blob_files(Ptr, c_uchar);
        options_set_min_blob_size(Ptr, u64);
        options_set_enable_blob_gc(Ptr, c_uchar);
        options_set_blob_compression_type(Ptr, c_int);
        options_set_merge_operator(Ptr, Ptr);
        mergeoperator_create(
            Ptr,
            unsafe extern "C" fn(*mut c_void),
            FullMerge,
            PartialMerge,
            DeleteValue,
            unsafe extern "C" fn(*mut c_void) -> *const c_char
        ) -> Ptr;
        block_based_options_set_block_size(Ptr, usize);
        block_based_options_set_block_cache(Ptr, Ptr);
        block_based_options_set_filter_policy(Ptr, Ptr);
        filterpolicy_create_bloom_full(c_double) -> Ptr;
        cache_create_lru(usize) -> Ptr;
        cache_create_hyper_clock(usize, usize) -> Ptr;
        cache_destroy(Ptr);
        readoptions_set_verify_checksums(Ptr, c_uchar);
        readoptions_set_readahead_size(Ptr, usize);
    }
}

c_functions! {
    /// The functions of transactions, in a table of their own: a replacement may have none of them.
    TransactionApi;
    required {
        transactiondb_options_create() -> Ptr;
        transactiondb_options_destroy(Ptr);
        transactiondb_open(Ptr, Ptr, *const c_char, *mut *mut c_char) -> Ptr;
        transactiondb_close(Ptr);
        transactiondb_get_base_db(Ptr) -> Ptr;
        transactiondb_close_base_db(Ptr);
        optimistictransactiondb_open(Ptr, *const c_char, *mut *mut c_char) -> Ptr;
        optimistictransactiondb_close(Ptr);
        optimistictransactiondb_get_base_db(Ptr) -> Ptr;
        optimistictransactiondb_close_base_db(Ptr);
        transaction_options_create() -> Ptr;
        transaction_options_destroy(Ptr);
        transaction_options_set_set_snapshot(Ptr, c_uchar);
        transaction_begin(Ptr, Ptr, Ptr, Ptr) -> Ptr;
        optimistictransaction_options_create() -> Ptr;
        optimistictransaction_options_destroy(Ptr);
        optimistictransaction_options_set_set_snapshot(Ptr, c_uchar);
        optimistictransaction_begin(Ptr, Ptr, Ptr, Ptr) -> Ptr;
        transaction_get_pinned(Ptr, Ptr, *const c_char, usize, *mut *mut c_char) -> Ptr;
        transaction_get_pinned_for_update(Ptr, Ptr, *const c_char, usize, c_uchar, *mut *mut c_char) -> Ptr;
        transaction_put(Ptr, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
        transaction_commit(Ptr, *mut *mut c_char);
        transaction_rollback(Ptr, *mut *mut c_char);
        transaction_destroy(Ptr);
        transaction_get_snapshot(Ptr) -> Ptr;
        readoptions_set_snapshot(Ptr, Ptr);
    }
    optional {
        transactiondb_options_set_num_stripes(Ptr, usize);
        transactiondb_options_set_write_policy(Ptr, c_int);
        transactiondb_options_set_use_per_key_point_lock_mgr(Ptr, c_uchar);
        transaction_options_set_deadlock_detect(Ptr, c_uchar);
    }
}
