//! RocksDB's options for each variant and profile, and the memory plan behind them.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use esker_lab_core::engine::{Compression, OpenSettings, Profile};
use esker_lab_core::size;

use super::api::{Api, Ptr};

const MIB: u64 = 1 << 20;

/// What is left to indexes, filters, compaction buffers and what the allocator wastes: this share of the memory …
const RESERVE_SHARE: u64 = 8;

/// … and this much for the process itself, however small the memory is.
const RESERVE_BYTES: u64 = 48 * MIB;

/// How memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    write_buffer_bytes: u64,
    write_buffers: u64,
    cache_bytes: u64,
}

impl Plan {
    /// Write buffers take up to 3/8 of the memory when writing is what is measured (half when it is all there is to
    /// do) and little when it is not; readers with direct I/O get the rest less a reserve as block cache, all
    /// others a quarter or less, because compactions or the page cache need the rest.
    fn new(memory_bytes: u64, profile: Profile, direct: bool) -> Plan {
        let (share, write_buffers, most) = match profile {
            Profile::BulkRandom => (8, 4, 256 * MIB),
            Profile::BulkSequential | Profile::Write => (8, 3, 128 * MIB),
            Profile::Mixed => (16, 3, 128 * MIB),
            Profile::Read => (32, 2, 64 * MIB),
        };
        let write_buffer_bytes = (memory_bytes / share).clamp(MIB, most);
        let taken = write_buffer_bytes * write_buffers + memory_bytes / RESERVE_SHARE + RESERVE_BYTES;
        let rest = memory_bytes.saturating_sub(taken);
        let cache_bytes = match profile {
            Profile::Read | Profile::Mixed if direct => rest,
            // Blocks are of no use to a writer; a compaction's buffers are.
            _ if direct => rest.min(memory_bytes / 4),
            Profile::Read | Profile::Mixed => rest.min(memory_bytes / 4),
            _ => rest.min(memory_bytes / 8),
        };
        Plan {
            write_buffer_bytes,
            write_buffers,
            cache_bytes: cache_bytes.max(MIB),
        }
    }
}

/// Options that own what they were made of.
pub(super) struct Setup {
    api: &'static Api,
    options: Ptr,
    table: Ptr,
    cache: Ptr,
    readahead_bytes: usize,
    applied: Vec<(String, String)>,
}

fn code(compression: Compression) -> c_int {
    match compression {
        Compression::None | Compression::Report => 0,
        Compression::Zlib => 2,
        Compression::Lz4 => 4,
        Compression::Zstd => 7,
    }
}

fn name(compression: Compression) -> String {
    compression.name().to_owned()
}

/// Calls a setter if the library has it, and notes what was done.
macro_rules! set {
    ($setup:ident, $object:expr, $function:ident($($value:expr),*), $shown:expr) => {
        let shown = match $setup.api.$function {
            // SAFETY: the object is ours and of the kind that the setter's name says; values are plain numbers, or
            // objects of ours that outlive the call.
            Some(set) => unsafe {
                set($object, $($value),*);
                $shown
            },
            None => "not offered by this library".to_owned(),
        };
        let name = stringify!($function).trim_start_matches("options_set_").trim_start_matches("block_based_");
        $setup.applied.push((name.trim_start_matches("options_set_").to_owned(), shown));
    };
    ($setup:ident, $function:ident($value:expr)) => {
        let value = $value;
        set!($setup, $setup.options, $function(value), value.to_string());
    };
    ($setup:ident, bytes $function:ident($value:expr)) => {
        let value = $value;
        set!($setup, $setup.options, $function(value), size::display(value as f64));
    };
}

impl Setup {
    pub(super) fn new(api: &'static Api, variant: &str, settings: &OpenSettings) -> Setup {
        let direct = variant.ends_with("direct");
        let plan = Plan::new(settings.memory_bytes, settings.profile, direct);
        // SAFETY: plain constructors; `drop` destroys each once.
        let (options, table) = unsafe { ((api.options_create)(), (api.block_based_options_create)()) };
        // SAFETY: as above. HyperClock sizes its entries itself when told 0.
        let cache = unsafe {
            match (api.cache_create_hyper_clock, api.cache_create_lru) {
                (Some(create), _) => create(plan.cache_bytes as usize, 0),
                (None, Some(create)) => create(plan.cache_bytes as usize),
                (None, None) => std::ptr::null_mut(),
            }
        };
        let readahead_bytes = if direct { 2 * MIB as usize } else { 0 };
        let mut setup = Setup {
            api,
            options,
            table,
            cache,
            readahead_bytes,
            applied: Vec::new(),
        };
        setup.common(settings, &plan);
        setup.levels(settings, &plan, variant == "report");
        setup.compression(settings);
        setup.tables(settings, &plan);
        if direct {
            set!(setup, options_set_use_direct_reads(1));
            set!(setup, options_set_use_direct_io_for_flush_and_compaction(1));
        } else {
            // Advised for buffered I/O: dirty pages leave steadily instead of in a burst that stalls writers.
            set!(setup, bytes options_set_bytes_per_sync(MIB));
        }
        if variant.starts_with("blob") {
            set!(setup, options_set_enable_blob_files(1));
            set!(setup, bytes options_set_min_blob_size(256));
            set!(setup, options_set_enable_blob_gc(1));
            let compression = settings.compression.levels(settings.profile).1;
            set!(
                setup,
                options,
                options_set_blob_compression_type(code(compression)),
                name(compression)
            );
        }
        if settings.merge_operator {
            setup.merge_operator();
        }
        setup
    }

    fn common(&mut self, settings: &OpenSettings, plan: &Plan) {
        let setup = self;
        // SAFETY: the options are ours.
        unsafe { (setup.api.options_set_create_if_missing)(setup.options, 1) };
        set!(setup, bytes options_set_write_buffer_size(plan.write_buffer_bytes as usize));
        set!(
            setup,
            options_set_max_write_buffer_number(plan.write_buffers as c_int)
        );
        // The report's 20 jobs on 24 processors, scaled; four is the least that lets a flush run beside compactions.
        let jobs = (settings.cpus * 20 / 24).clamp(4, 20);
        set!(setup, options_set_max_background_jobs(jobs as c_int));
        set!(
            setup,
            options_set_max_subcompactions(settings.cpus.clamp(1, 8) as u32)
        );
        set!(setup, options_set_max_open_files(-1));
    }

    fn levels(&mut self, settings: &OpenSettings, plan: &Plan, report: bool) {
        let setup = self;
        if settings.profile == Profile::BulkRandom {
            // Everything into level 0, unsorted in memory; one merge later.
            const NEVER: c_int = 1 << 30;
            set!(
                setup,
                setup.options,
                options_set_memtable_vector_rep(),
                "vector".to_owned()
            );
            set!(setup, options_set_allow_concurrent_memtable_write(0));
            set!(setup, options_set_disable_auto_compactions(1));
            set!(setup, options_set_level0_file_num_compaction_trigger(NEVER));
            set!(setup, options_set_level0_slowdown_writes_trigger(NEVER));
            set!(setup, options_set_level0_stop_writes_trigger(NEVER));
            set!(setup, options_set_num_levels(2));
            set!(setup, options_set_level_compaction_dynamic_level_bytes(0));
            set!(setup, bytes options_set_target_file_size_base((plan.write_buffer_bytes * 4).min(1024 * MIB)));
            return;
        }
        set!(setup, bytes options_set_target_file_size_base(64 * MIB));
        if report {
            let base = if settings.profile == Profile::Mixed {
                512 * MIB
            } else {
                10 * MIB
            };
            set!(setup, bytes options_set_max_bytes_for_level_base(base));
            set!(setup, options_set_level0_file_num_compaction_trigger(4));
            set!(setup, options_set_level0_slowdown_writes_trigger(8));
            set!(setup, options_set_level0_stop_writes_trigger(12));
            set!(setup, options_set_num_levels(6));
            set!(setup, options_set_level_compaction_dynamic_level_bytes(0));
        } else {
            // Level 1 as large as level 0 gets, which RocksDB's own tuning guide asks for.
            let base = (plan.write_buffer_bytes * 4).clamp(16 * MIB, 512 * MIB);
            set!(setup, bytes options_set_max_bytes_for_level_base(base));
        }
    }

    fn compression(&mut self, settings: &OpenSettings) {
        let (upper, rest) = settings.compression.levels(settings.profile);
        let levels = if settings.profile == Profile::BulkRandom {
            2
        } else {
            7
        };
        let codes: Vec<c_int> = (0..levels)
            .map(|level| code(if level < 2 { upper } else { rest }))
            .collect();
        let shown = if upper == rest {
            name(rest)
        } else {
            format!("{} in levels 0 and 1, {} below", name(upper), name(rest))
        };
        let setup = self;
        set!(
            setup,
            setup.options,
            options_set_compression(code(rest)),
            name(rest)
        );
        if upper != rest {
            set!(
                setup,
                setup.options,
                options_set_compression_per_level(codes.as_ptr(), codes.len()),
                shown
            );
        }
    }

    fn tables(&mut self, settings: &OpenSettings, plan: &Plan) {
        let setup = self;
        let block_bytes = settings.block_bytes;
        set!(
            setup,
            setup.table,
            block_based_options_set_block_size(block_bytes),
            size::display(block_bytes as f64)
        );
        if !setup.cache.is_null() {
            let kind = if setup.api.cache_create_hyper_clock.is_some() {
                "HyperClock"
            } else {
                "LRU"
            };
            let shown = format!("{} ({kind})", size::display(plan.cache_bytes as f64));
            set!(
                setup,
                setup.table,
                block_based_options_set_block_cache(setup.cache),
                shown
            );
        }
        if let Some(create) = setup.api.filterpolicy_create_bloom_full {
            // SAFETY: a plain constructor; the table options take ownership of the policy.
            let policy = unsafe { create(10.0) };
            set!(
                setup,
                setup.table,
                block_based_options_set_filter_policy(policy),
                "bloom, 10 bits a key".to_owned()
            );
        }
        // SAFETY: both are ours; the options copy what they need of the table's.
        unsafe { (setup.api.options_set_block_based_table_factory)(setup.options, setup.table) };
        setup.applied.push(("verify_checksums".into(), "1".into()));
    }

    fn merge_operator(&mut self) {
        let setup = self;
        let Some(create) = setup.api.mergeoperator_create else {
            return;
        };
        // SAFETY: the functions below keep the header's contract, need no state, and live as long as the process. The
        // options take ownership of the operator.
        let operator = unsafe {
            create(
                std::ptr::null_mut(),
                destroy,
                full_merge,
                partial_merge,
                delete_value,
                operator_name,
            )
        };
        set!(
            setup,
            setup.options,
            options_set_merge_operator(operator),
            "the last operand".to_owned()
        );
    }

    pub(super) fn options(&self) -> Ptr {
        self.options
    }

    /// How far full scans read ahead, in bytes; 0 leaves it to the kernel.
    pub(super) fn readahead_bytes(&self) -> usize {
        self.readahead_bytes
    }

    pub(super) fn applied(&self) -> &[(String, String)] {
        &self.applied
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, after the database that was opened with them.
        unsafe {
            (self.api.options_destroy)(self.options);
            (self.api.block_based_options_destroy)(self.table);
            if let (Some(destroy), false) = (self.api.cache_destroy, self.cache.is_null()) {
                destroy(self.cache);
            }
        }
    }
}

/// The value of a merged row is its last operand, as an allocation of ours that `delete_value` takes back.
///
/// # Safety
/// `operands` and `lengths` hold `count` entries, each a readable operand; `success` and `new_length` are writable.
unsafe fn last_operand(
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_length: *mut usize,
) -> *mut c_char {
    // SAFETY: the caller's promise; `last` is below `count`.
    unsafe {
        *success = u8::from(count > 0);
        *new_length = 0;
        let Some(last) = usize::try_from(count).ok().and_then(|n| n.checked_sub(1)) else {
            return std::ptr::null_mut();
        };
        let operand = crate::capi::bytes(*operands.add(last), *lengths.add(last));
        *new_length = operand.len();
        Box::into_raw(Box::<[u8]>::from(operand)).cast()
    }
}

unsafe extern "C" fn full_merge(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    _: *const c_char,
    _: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_length: *mut usize,
) -> *mut c_char {
    // SAFETY: RocksDB calls this with what `last_operand` asks for.
    unsafe { last_operand(operands, lengths, count, success, new_length) }
}

unsafe extern "C" fn partial_merge(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_length: *mut usize,
) -> *mut c_char {
    // SAFETY: RocksDB calls this with what `last_operand` asks for.
    unsafe { last_operand(operands, lengths, count, success, new_length) }
}

unsafe extern "C" fn delete_value(_: *mut c_void, value: *const c_char, length: usize) {
    if !value.is_null() {
        // SAFETY: RocksDB hands back what `last_operand` returned, with its length, once.
        drop(unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                value.cast_mut().cast::<u8>(),
                length,
            ))
        });
    }
}

unsafe extern "C" fn destroy(_: *mut c_void) {}

unsafe extern "C" fn operator_name(_: *mut c_void) -> *const c_char {
    c"esker-lab.last".as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_plan_spends_more_memory_than_there_is() {
        for memory in [128 * MIB, 512 * MIB, 144 << 30] {
            for profile in [
                Profile::BulkRandom,
                Profile::BulkSequential,
                Profile::Write,
                Profile::Read,
                Profile::Mixed,
            ] {
                for direct in [false, true] {
                    let plan = Plan::new(memory, profile, direct);
                    let spent = plan.write_buffer_bytes * plan.write_buffers + plan.cache_bytes;
                    assert!(
                        spent + 32 * MIB <= memory,
                        "{memory} {profile:?} {direct} {plan:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn direct_reads_get_most_of_the_memory_as_cache() {
        let plan = Plan::new(512 * MIB, Profile::Read, true);
        assert!(plan.cache_bytes > 350 * MIB, "{plan:?}");
    }
}
