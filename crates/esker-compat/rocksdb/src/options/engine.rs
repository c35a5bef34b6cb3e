//! What a program's options become: the engine's settings of a database and of a family.

use std::ffi::c_int;
use std::sync::Arc;

use esker::{
    ColumnFamilyOptions, CompactionStyle, IoMode, MemtableKind, Options, PrefixExtractor, RecoveryMode,
};
use esker_compat::{Result, Status};

use super::Settings;
use crate::cache::CacheState;
use crate::transform::Prefix;

const MIB: u64 = 1 << 20;

/// RocksDB's own block cache where a program gives none.
const CACHE_BYTES: u64 = 32 * MIB;

/// For indexes and filters, which RocksDB holds beside its cache, if not told otherwise, and this engine within its
/// budget.
const TABLES_BYTES: u64 = 32 * MIB;

/// The settings of a family. Sizes out of the engine's ranges are brought into them.
pub fn family(settings: &Settings) -> Result<ColumnFamilyOptions> {
    if let Some(what) = settings.refused {
        return Err(Status::refused(what));
    }
    let (numbers, table) = (&settings.mapped, &settings.table);
    let defaults = ColumnFamilyOptions::default();
    let levels = count(numbers.num_levels, 2, 16);
    let trigger = count(numbers.level0_file_num_compaction_trigger, 1, 1000);
    Ok(ColumnFamilyOptions {
        key_order: settings.key_order.clone(),
        merge_operator: settings.merge_operator.clone(),
        memtable_kind: if settings.vector_memtable {
            MemtableKind::Vector
        } else {
            MemtableKind::Ordered
        },
        memtable_bytes: memtable_bytes(settings),
        memtables_max: count(numbers.max_write_buffer_number, 2, 64),
        prefix_extractor: match settings.prefix {
            Prefix::Fixed(len) => Some(PrefixExtractor::Fixed(len)),
            Prefix::None | Prefix::Own => None,
        },
        whole_key_filter: table.numbers.whole_key_filtering != 0,
        filter_bits_per_key: table.filter_bits.unwrap_or(defaults.filter_bits_per_key),
        block_bytes: table
            .block_bytes
            .map_or(defaults.block_bytes, |bytes| bytes.clamp(512, 4 << 20)),
        compression_per_level: settings
            .compressions(levels)?
            .unwrap_or_else(|| defaults.compression_per_level.clone()),
        compaction_style: compaction_style(settings)?,
        level0_compaction_trigger: trigger,
        level0_files_max: usize::try_from(numbers.level0_stop_writes_trigger)
            .unwrap_or(0)
            .max(trigger),
        level_base_bytes: numbers.max_bytes_for_level_base.max(64 << 10),
        level_size_multiplier: numbers.max_bytes_for_level_multiplier.round().clamp(2.0, 100.0) as u32,
        levels,
        file_bytes: numbers.target_file_size_base.clamp(16 << 10, 4 << 30),
        // Large values lie in blob files or not as Esker sees fit; programs can't tell.
        ..defaults
    })
}

/// The settings of a database with these families, the default one first.
pub fn database(settings: &Settings, families: &[&Settings]) -> Result<Options> {
    let numbers = &settings.mapped;
    if numbers.atomic_flush != 0 {
        return Err(Status::refused(
            "atomic_flush: families are flushed one by one, so without the log a crash may leave them apart",
        ));
    }
    let memtables = families
        .iter()
        .map(|family| {
            memtable_bytes(family) * u64::from(family.mapped.max_write_buffer_number.max(2).unsigned_abs())
        })
        .sum();
    let memtables_bytes_max = match (settings.memtables_bytes, numbers.db_write_buffer_size as u64) {
        (Some(bytes), _) | (None, bytes @ 1..) => bytes.max(MIB),
        (None, 0) => memtables,
    };
    let defaults = Options::default();
    Ok(Options {
        create_if_missing: numbers.create_if_missing != 0,
        error_if_exists: numbers.error_if_exists != 0,
        recovery_mode: match numbers.wal_recovery_mode {
            1 => RecoveryMode::Absolute,
            3 => RecoveryMode::SkipCorrupt,
            _ => RecoveryMode::PointInTime,
        },
        memory_budget_bytes: (memtables_bytes_max + cache_bytes(settings, families)).max(4 * MIB),
        memtables_bytes_max,
        wal_bytes_max: numbers.max_total_wal_size,
        compaction_threads: compaction_threads(settings),
        subcompactions_max: match numbers.max_subcompactions {
            // RocksDB's default, which nobody chose.
            1 => defaults.subcompactions_max,
            given => given.clamp(1, 64) as usize,
        },
        background_bytes_per_second: settings.background_bytes_per_second,
        open_files_max: match numbers.max_open_files {
            files if files < 0 => defaults.open_files_max,
            files => count(files, 64, 1 << 20),
        },
        background_io: io(numbers.use_direct_io_for_flush_and_compaction),
        read_io: io(numbers.use_direct_reads),
        default_column_family: match families.first() {
            Some(first) => family(first)?,
            None => family(settings)?,
        },
        ..defaults
    })
}

fn memtable_bytes(settings: &Settings) -> u64 {
    (settings.mapped.write_buffer_size as u64).clamp(64 << 10, 4 << 30)
}

/// Block caches, each counted once however many families share it; and what indexes and filters need beside them.
fn cache_bytes(settings: &Settings, families: &[&Settings]) -> u64 {
    let mut counted: Vec<&Arc<CacheState>> = Vec::new();
    let (mut bytes, mut own) = (0, false);
    for family in families {
        let table = &family.table;
        match &table.cache {
            _ if table.numbers.no_block_cache != 0 => {}
            Some(cache) if counted.iter().any(|other| Arc::ptr_eq(other, cache)) => {}
            Some(cache) => {
                counted.push(cache);
                bytes += cache.capacity();
            }
            None => own = true,
        }
    }
    if own {
        bytes += CACHE_BYTES;
    }
    if families
        .iter()
        .any(|family| family.table.numbers.cache_index_and_filter_blocks == 0)
    {
        bytes += TABLES_BYTES;
    }
    bytes + settings.row_cache.as_ref().map_or(0, |cache| cache.capacity())
}

/// RocksDB gives a quarter of its jobs to flushes. More threads than processors would only share them.
fn compaction_threads(settings: &Settings) -> usize {
    let numbers = &settings.mapped;
    let threads = if numbers.max_background_compactions > 0 {
        numbers.max_background_compactions
    } else if numbers.max_background_jobs == 2 {
        // RocksDB's default, which nobody chose: one for each processor.
        return 0;
    } else {
        numbers.max_background_jobs - numbers.max_background_jobs / 4
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    count(threads, 1, 64).min(processors)
}

fn compaction_style(settings: &Settings) -> Result<CompactionStyle> {
    match settings.mapped.compaction_style {
        _ if settings.disable_auto_compactions => Ok(CompactionStyle::Manual),
        // Universal compaction merges the same rows at other times.
        0 | 1 => Ok(CompactionStyle::Leveled),
        2 => Err(Status::refused(
            "FIFO compaction, which drops rows: this library keeps them",
        )),
        3 => Ok(CompactionStyle::Manual),
        style => Err(Status::invalid(format_args!(
            "there is no compaction style {style}"
        ))),
    }
}

fn io(direct: u8) -> IoMode {
    if direct != 0 {
        IoMode::Direct
    } else {
        IoMode::Buffered
    }
}

fn count(number: c_int, min: usize, max: usize) -> usize {
    usize::try_from(number).unwrap_or(0).clamp(min, max)
}
