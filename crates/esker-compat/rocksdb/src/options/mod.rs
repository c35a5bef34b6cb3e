//! Options of a database and of column families: `rocksdb_options_*`.
//!
//! | file | what it does |
//! |---|---|
//! | `mapped` | numbers that mean something here |
//! | `ignored` | numbers that have no meaning here |
//! | `objects` | comparators, merge operators, tables, caches, filters … |
//! | `compression` | which compression at which level |
//! | `presets` | functions that set several options at once |
//! | `styles` | options of compaction styles |
//! | `engine` | what all of it becomes |

mod compression;
mod engine;
mod ignored;
mod mapped;
mod objects;
mod presets;
mod styles;

use std::ffi::c_int;
use std::sync::Arc;

use esker::{KeyOrder, MergeOperator};

use crate::cache::CacheState;
use crate::settings::{Changed, holds, object};
use crate::table::TableSettings;
use crate::transform::Prefix;
use ignored::Ignored;
use mapped::Mapped;

pub use engine::{database, family};

/// `rocksdb_options_t`.
#[derive(Clone, Default)]
pub struct Settings {
    pub mapped: Mapped,
    ignored: Ignored,
    disable_auto_compactions: bool,
    optimize_filters_for_hits: bool,
    report_bg_io_stats: bool,
    compression: Option<c_int>,
    /// By level; empty where one compression is for all.
    compression_per_level: Vec<c_int>,
    vector_memtable: bool,
    key_order: KeyOrder,
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    pub prefix: Prefix,
    table: TableSettings,
    row_cache: Option<Arc<CacheState>>,
    /// A bound over all memtables that a write buffer manager gives.
    memtables_bytes: Option<u64>,
    background_bytes_per_second: u64,
    /// What was asked for that would change results; opening says so.
    refused: Option<&'static str>,
}

impl Settings {
    /// The order of keys that the program chose.
    pub fn key_order(&self) -> KeyOrder {
        self.key_order.clone()
    }

    /// The block cache that the program gave.
    pub fn block_cache(&self) -> Option<&Arc<CacheState>> {
        self.table.cache.as_ref()
    }
}

holds!(Settings, mapped: Mapped);
holds!(Settings, ignored: Ignored);
impl Changed for Settings {}
object!(Settings, rocksdb_options_create, rocksdb_options_destroy);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_create_copy(options: *mut Settings) -> *mut Settings {
    // SAFETY: the contract.
    Box::into_raw(Box::new(unsafe { &*options }.clone()))
}
