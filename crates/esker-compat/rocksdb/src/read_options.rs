//! Options of reads: `rocksdb_readoptions_*`.

use std::ffi::{c_char, c_int, c_uchar};

use esker::{ReadOptions, Snapshot};
use esker_compat::{Result, Status, bytes};

use crate::families::Handle;
use crate::settings::{Changed, holds, object, settings};
use crate::transform::Prefix;

/// `rocksdb_readoptions_t`.
#[derive(Clone, Default)]
pub struct ReadSettings {
    numbers: ReadNumbers,
    /// For point reads as it is; iterators add their bounds.
    engine: ReadOptions,
    lower: Bound,
    upper: Bound,
    /// What was asked for that would change results; reads say so.
    refused: Option<&'static str>,
}

/// A bound of iterators, which stays the caller's: it is read when an iterator is made.
#[derive(Clone, Copy)]
struct Bound {
    data: *const c_char,
    len: usize,
}

impl Default for Bound {
    fn default() -> Self {
        Self {
            data: std::ptr::null(),
            len: 0,
        }
    }
}

impl Bound {
    /// # Safety
    /// The caller keeps the bytes while its options name them.
    unsafe fn read(self) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise.
        unsafe { bytes::bound(self.data, self.len) }.map(<[u8]>::to_vec)
    }
}

impl ReadSettings {
    /// For a point read.
    #[inline]
    pub fn point(&self) -> Result<&ReadOptions> {
        match self.refused {
            None => Ok(&self.engine),
            Some(what) => Err(Status::refused(what)),
        }
    }

    /// For an iterator over a family.
    ///
    /// # Safety
    /// The bounds that were set are still readable, as the header asks.
    pub unsafe fn scan(&self, family: &Handle) -> Result<ReadOptions> {
        let mut options = self.point()?.clone();
        if options.prefix_same && family.prefix == Prefix::Own {
            return Err(Status::refused(
                "prefix_same_as_start with a prefix of the program's own: rows beyond it would be shown",
            ));
        }
        // SAFETY: the caller's promise.
        unsafe {
            options.lower_bound = self.lower.read();
            options.upper_bound = self.upper.read();
        }
        Ok(options)
    }

    /// Whether an iterator shows what is written after it was made.
    pub fn tailing(&self) -> bool {
        self.numbers.tailing != 0
    }
}

holds!(ReadSettings, numbers: ReadNumbers);
object!(
    ReadSettings,
    rocksdb_readoptions_create,
    rocksdb_readoptions_destroy
);

impl Changed for ReadSettings {
    fn changed(&mut self) {
        let numbers = &self.numbers;
        self.engine.verify_checksums = numbers.verify_checksums != 0;
        self.engine.fill_cache = numbers.fill_cache != 0;
        self.engine.readahead_bytes = numbers.readahead_size;
        self.engine.prefix_same = numbers.prefix_same_as_start != 0 && numbers.total_order_seek == 0;
        self.refused = if numbers.read_tier != 0 {
            Some("read_tier: reads can't be kept from the storage")
        } else if numbers.ignore_range_deletions != 0 {
            Some("ignore_range_deletions: what a range deletion covers is never shown")
        } else {
            None
        };
    }
}

settings! {
    /// Numbers; `changed` above says which have a meaning here.
    ReadNumbers of ReadSettings;
    adaptive_readahead: c_uchar = 0,
        rocksdb_readoptions_set_adaptive_readahead, rocksdb_readoptions_get_adaptive_readahead;
    allow_unprepared_value: c_uchar = 0,
        rocksdb_readoptions_set_allow_unprepared_value, rocksdb_readoptions_get_allow_unprepared_value;
    async_io: c_uchar = 0, rocksdb_readoptions_set_async_io, rocksdb_readoptions_get_async_io;
    auto_prefix_mode: c_uchar = 0,
        rocksdb_readoptions_set_auto_prefix_mode, rocksdb_readoptions_get_auto_prefix_mode;
    auto_readahead_size: c_uchar = 1,
        rocksdb_readoptions_set_auto_readahead_size, rocksdb_readoptions_get_auto_readahead_size;
    auto_refresh_iterator_with_snapshot: c_uchar = 0,
        rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot,
        rocksdb_readoptions_get_auto_refresh_iterator_with_snapshot;
    background_purge_on_iterator_cleanup: c_uchar = 0,
        rocksdb_readoptions_set_background_purge_on_iterator_cleanup,
        rocksdb_readoptions_get_background_purge_on_iterator_cleanup;
    deadline: u64 = 0, rocksdb_readoptions_set_deadline, rocksdb_readoptions_get_deadline;
    fill_cache: c_uchar = 1, rocksdb_readoptions_set_fill_cache, rocksdb_readoptions_get_fill_cache;
    ignore_range_deletions: c_uchar = 0,
        rocksdb_readoptions_set_ignore_range_deletions, rocksdb_readoptions_get_ignore_range_deletions;
    io_activity: c_int = 255, rocksdb_readoptions_set_io_activity, rocksdb_readoptions_get_io_activity;
    io_timeout: u64 = 0, rocksdb_readoptions_set_io_timeout, rocksdb_readoptions_get_io_timeout;
    max_skippable_internal_keys: u64 = 0,
        rocksdb_readoptions_set_max_skippable_internal_keys,
        rocksdb_readoptions_get_max_skippable_internal_keys;
    merge_operand_count_threshold: usize = 0,
        rocksdb_readoptions_set_merge_operand_count_threshold,
        rocksdb_readoptions_get_merge_operand_count_threshold;
    optimize_multiget_for_io: c_uchar = 1,
        rocksdb_readoptions_set_optimize_multiget_for_io, rocksdb_readoptions_get_optimize_multiget_for_io;
    pin_data: c_uchar = 0, rocksdb_readoptions_set_pin_data, rocksdb_readoptions_get_pin_data;
    prefix_same_as_start: c_uchar = 0,
        rocksdb_readoptions_set_prefix_same_as_start, rocksdb_readoptions_get_prefix_same_as_start;
    rate_limiter_priority: c_int = 4,
        rocksdb_readoptions_set_rate_limiter_priority, rocksdb_readoptions_get_rate_limiter_priority;
    read_tier: c_int = 0, rocksdb_readoptions_set_read_tier, rocksdb_readoptions_get_read_tier;
    readahead_size: usize = 0, rocksdb_readoptions_set_readahead_size, rocksdb_readoptions_get_readahead_size;
    tailing: c_uchar = 0, rocksdb_readoptions_set_tailing, rocksdb_readoptions_get_tailing;
    total_order_seek: c_uchar = 0,
        rocksdb_readoptions_set_total_order_seek, rocksdb_readoptions_get_total_order_seek;
    value_size_soft_limit: u64 = u64::MAX,
        rocksdb_readoptions_set_value_size_soft_limit, rocksdb_readoptions_get_value_size_soft_limit;
    verify_checksums: c_uchar = 1,
        rocksdb_readoptions_set_verify_checksums, rocksdb_readoptions_get_verify_checksums;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_readoptions_set_snapshot(options: *mut ReadSettings, snapshot: *const Snapshot) {
    // SAFETY: the contract; the snapshot is null or was not released.
    unsafe { (*options).engine.snapshot = snapshot.as_ref().cloned() };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_readoptions_set_iterate_lower_bound(
    options: *mut ReadSettings,
    key: *const c_char,
    len: usize,
) {
    // SAFETY: the contract; the bytes are not read here.
    unsafe { &mut *options }.lower = Bound { data: key, len };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_readoptions_set_iterate_upper_bound(
    options: *mut ReadSettings,
    key: *const c_char,
    len: usize,
) {
    // SAFETY: the contract; the bytes are not read here.
    unsafe { &mut *options }.upper = Bound { data: key, len };
}
