//! Options of a database, `leveldb_options_*`, and what they become here.

use std::ffi::{c_int, c_uchar, c_void};

use esker::{ColumnFamilyOptions, Compression, IoMode, KeyOrder, Options};
use esker_compat::comparator::CComparator;
use esker_compat::{Result, Status};

use crate::objects::{Cache, FilterPolicy};

const MIB: u64 = 1 << 20;

/// LevelDB's own block cache where a program gives none.
const CACHE_BYTES: u64 = 8 * MIB;

/// For indexes and filters, which LevelDB holds beside its cache and this engine within its budget.
const TABLES_BYTES: u64 = 8 * MIB;

/// Memtables at a time: one that takes writes, two that are flushed.
const MEMTABLES: u64 = 3;

/// `leveldb_options_t`. `None`: the program said nothing, so that the engine's default holds.
pub struct Settings {
    create_if_missing: bool,
    error_if_exists: bool,
    write_buffer_bytes: u64,
    open_files: Option<c_int>,
    block_bytes: Option<usize>,
    file_bytes: Option<usize>,
    compression: Option<c_int>,
    cache_bytes: u64,
    filter_bits: Option<u32>,
    key_order: KeyOrder,
}

impl Settings {
    /// The engine's options. Sizes out of its ranges are brought into them, as LevelDB does with its own.
    pub fn to_options(&self) -> Result<Options> {
        let memtable_bytes = self.write_buffer_bytes.clamp(64 << 10, 4 << 30);
        let memtables_bytes = memtable_bytes * MEMTABLES;
        let defaults = ColumnFamilyOptions::default();
        let family = ColumnFamilyOptions {
            key_order: self.key_order.clone(),
            memtable_bytes,
            memtables_max: MEMTABLES as usize,
            filter_bits_per_key: self.filter_bits.unwrap_or(defaults.filter_bits_per_key),
            block_bytes: self
                .block_bytes
                .map_or(defaults.block_bytes, |bytes| bytes.clamp(512, 4 << 20)),
            file_bytes: self
                .file_bytes
                .map_or(defaults.file_bytes, |bytes| (bytes as u64).clamp(MIB, 4 << 30)),
            compression_per_level: match self.compression {
                None => defaults.compression_per_level.clone(),
                Some(code) => vec![compression(code)?],
            },
            level_base_bytes: (memtable_bytes * 4).clamp(16 * MIB, 512 * MIB),
            ..defaults
        };
        let defaults = Options::default();
        Ok(Options {
            create_if_missing: self.create_if_missing,
            error_if_exists: self.error_if_exists,
            memory_budget_bytes: memtables_bytes + self.cache_bytes + TABLES_BYTES,
            memtables_bytes_max: memtables_bytes,
            open_files_max: self.open_files.map_or(defaults.open_files_max, |files| {
                usize::try_from(files).unwrap_or(0).clamp(64, 1 << 20)
            }),
            // LevelDB leaves its reads to the page cache, and programs give it a small cache of its own.
            background_io: IoMode::Buffered,
            read_io: IoMode::Buffered,
            default_column_family: family,
            ..defaults
        })
    }
}

/// LevelDB's numbers of compressions.
fn compression(code: c_int) -> Result<Compression> {
    match code {
        0 => Ok(Compression::None),
        1 => Ok(Compression::Snappy),
        2 => Ok(Compression::Zstd),
        _ => Err(Status::invalid(format_args!(
            "there is no compression {code}: 0 is none, 1 snappy, 2 zstd"
        ))),
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_options_create() -> *mut Settings {
    Box::into_raw(Box::new(Settings {
        create_if_missing: false,
        error_if_exists: false,
        write_buffer_bytes: 4 * MIB,
        open_files: None,
        block_bytes: None,
        file_bytes: None,
        compression: None,
        cache_bytes: CACHE_BYTES,
        filter_bits: None,
        key_order: KeyOrder::Bytewise,
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_destroy(options: *mut Settings) {
    if !options.is_null() {
        // SAFETY: the contract; destroyed options are not used again.
        drop(unsafe { Box::from_raw(options) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_comparator(options: *mut Settings, comparator: *mut CComparator) {
    // SAFETY: the contract; options are changed by one thread at a time. Null means bytewise order.
    unsafe {
        (*options).key_order = comparator.as_ref().map_or(KeyOrder::Bytewise, CComparator::order);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_filter_policy(options: *mut Settings, policy: *mut FilterPolicy) {
    // SAFETY: as above. Null means none.
    unsafe { (*options).filter_bits = Some(policy.as_ref().map_or(0, FilterPolicy::bits_per_key)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_create_if_missing(options: *mut Settings, on: c_uchar) {
    // SAFETY: as above.
    unsafe { &mut *options }.create_if_missing = on != 0;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_error_if_exists(options: *mut Settings, on: c_uchar) {
    // SAFETY: as above.
    unsafe { &mut *options }.error_if_exists = on != 0;
}

/// No meaning here: checksums are always verified where files are opened, and recovery stops at what is damaged.
#[unsafe(no_mangle)]
extern "C" fn leveldb_options_set_paranoid_checks(_: *mut Settings, _: c_uchar) {}

/// No meaning here: there is one environment.
#[unsafe(no_mangle)]
extern "C" fn leveldb_options_set_env(_: *mut Settings, _: *mut c_void) {}

/// No meaning here: this interface can't make a logger.
#[unsafe(no_mangle)]
extern "C" fn leveldb_options_set_info_log(_: *mut Settings, _: *mut c_void) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_write_buffer_size(options: *mut Settings, bytes: usize) {
    // SAFETY: as above.
    unsafe { &mut *options }.write_buffer_bytes = bytes as u64;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_max_open_files(options: *mut Settings, files: c_int) {
    // SAFETY: as above.
    unsafe { &mut *options }.open_files = Some(files);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_cache(options: *mut Settings, cache: *mut Cache) {
    // SAFETY: as above. Null means LevelDB's own.
    unsafe {
        (*options).cache_bytes = cache
            .as_ref()
            .map_or(CACHE_BYTES, |cache| cache.capacity_bytes as u64);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_block_size(options: *mut Settings, bytes: usize) {
    // SAFETY: as above.
    unsafe { &mut *options }.block_bytes = Some(bytes);
}

/// No meaning here: blocks are searched by an array of offsets.
#[unsafe(no_mangle)]
extern "C" fn leveldb_options_set_block_restart_interval(_: *mut Settings, _: c_int) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_max_file_size(options: *mut Settings, bytes: usize) {
    // SAFETY: as above.
    unsafe { &mut *options }.file_bytes = Some(bytes);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_compression(options: *mut Settings, code: c_int) {
    // SAFETY: as above.
    unsafe { &mut *options }.compression = Some(code);
}
