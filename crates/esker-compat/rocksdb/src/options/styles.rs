//! Options of compaction styles. Rows are merged in levels here, whatever the style, so these numbers have no
//! meaning; they are kept for their getters. A database with FIFO compaction is refused when it is opened.

use std::ffi::{c_int, c_uchar};

use super::Settings;
use crate::settings::{Changed, holds, object, settings};

/// `rocksdb_universal_compaction_options_t`.
#[derive(Default)]
pub struct Universal {
    numbers: UniversalNumbers,
}

holds!(Universal, numbers: UniversalNumbers);
impl Changed for Universal {}
object!(
    Universal,
    rocksdb_universal_compaction_options_create,
    rocksdb_universal_compaction_options_destroy
);

settings! {
    /// Numbers without meaning here.
    UniversalNumbers of Universal;
    allow_trivial_move: c_uchar = 0,
        rocksdb_universal_compaction_options_set_allow_trivial_move,
        rocksdb_universal_compaction_options_get_allow_trivial_move;
    compression_size_percent: c_int = -1,
        rocksdb_universal_compaction_options_set_compression_size_percent,
        rocksdb_universal_compaction_options_get_compression_size_percent;
    incremental: c_uchar = 0,
        rocksdb_universal_compaction_options_set_incremental,
        rocksdb_universal_compaction_options_get_incremental;
    max_merge_width: c_int = -1,
        rocksdb_universal_compaction_options_set_max_merge_width,
        rocksdb_universal_compaction_options_get_max_merge_width;
    max_read_amp: c_int = -1,
        rocksdb_universal_compaction_options_set_max_read_amp,
        rocksdb_universal_compaction_options_get_max_read_amp;
    max_size_amplification_percent: c_int = 200,
        rocksdb_universal_compaction_options_set_max_size_amplification_percent,
        rocksdb_universal_compaction_options_get_max_size_amplification_percent;
    min_merge_width: c_int = 2,
        rocksdb_universal_compaction_options_set_min_merge_width,
        rocksdb_universal_compaction_options_get_min_merge_width;
    reduce_file_locking: c_uchar = 1,
        rocksdb_universal_compaction_options_set_reduce_file_locking,
        rocksdb_universal_compaction_options_get_reduce_file_locking;
    size_ratio: c_int = 1,
        rocksdb_universal_compaction_options_set_size_ratio,
        rocksdb_universal_compaction_options_get_size_ratio;
    stop_style: c_int = 1,
        rocksdb_universal_compaction_options_set_stop_style,
        rocksdb_universal_compaction_options_get_stop_style;
}

/// `rocksdb_fifo_compaction_options_t`.
#[derive(Default)]
pub struct Fifo {
    numbers: FifoNumbers,
}

holds!(Fifo, numbers: FifoNumbers);
impl Changed for Fifo {}
object!(
    Fifo,
    rocksdb_fifo_compaction_options_create,
    rocksdb_fifo_compaction_options_destroy
);

settings! {
    /// Numbers without meaning here.
    FifoNumbers of Fifo;
    age_for_warm: u64 = 0,
        rocksdb_fifo_compaction_options_set_age_for_warm,
        rocksdb_fifo_compaction_options_get_age_for_warm;
    allow_compaction: c_uchar = 0,
        rocksdb_fifo_compaction_options_set_allow_compaction,
        rocksdb_fifo_compaction_options_get_allow_compaction;
    allow_trivial_copy_when_change_temperature: c_uchar = 0,
        rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature,
        rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature;
    max_data_files_size: u64 = 0,
        rocksdb_fifo_compaction_options_set_max_data_files_size,
        rocksdb_fifo_compaction_options_get_max_data_files_size;
    max_table_files_size: u64 = 1 << 30,
        rocksdb_fifo_compaction_options_set_max_table_files_size,
        rocksdb_fifo_compaction_options_get_max_table_files_size;
    trivial_copy_buffer_size: u64 = 4096,
        rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size,
        rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size;
    use_kv_ratio_compaction: c_uchar = 0,
        rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction,
        rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction;
}

/// No meaning here.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_set_universal_compaction_options(_: *mut Settings, _: *mut Universal) {}

/// No meaning here: the style itself is refused.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_set_fifo_compaction_options(_: *mut Settings, _: *mut Fifo) {}
