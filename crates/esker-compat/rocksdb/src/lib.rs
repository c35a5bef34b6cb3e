//! The core of RocksDB's C interface (`rocksdb/c.h`, as of version 11.8) over Esker.
//!
//! | file | functions |
//! |---|---|
//! | `open` `unnamed` | open, close, destroy, repair |
//! | `secondary` | databases that another process writes |
//! | `families` | column families |
//! | `write` `get` `iterator` | what programs do with an open database |
//! | `batch` | `rocksdb_writebatch_*` |
//! | `maintenance` `property` | flushes, compactions, sizes, settings, figures |
//! | `options` `table` | options of databases, families and tables, and what they become here |
//! | `read_options` `write_options` `maintenance_options` | options of calls |
//! | `merge_operator` `compaction_filter` `transform` `filter` `cache` `environment` | objects that options take |
//! | `settings` | options that are plain numbers |
//!
//! Every function keeps the contract at the head of `esker_compat`; that is what a `SAFETY` note means by it. The
//! page `docs/compat.md` lists the functions that are here, and says which options are mapped, which have no meaning
//! here and which are refused.
// The functions' names and numbers of arguments are RocksDB's.
#![allow(non_snake_case, clippy::too_many_arguments)]

mod batch;
mod cache;
mod compaction_filter;
mod environment;
mod families;
mod filter;
mod get;
mod iterator;
mod maintenance;
mod maintenance_options;
mod merge_operator;
mod open;
mod options;
mod property;
mod read_options;
mod secondary;
mod settings;
mod table;
mod transform;
mod unnamed;
mod write;
mod write_options;

use std::ffi::c_void;

/// Frees what any function returned.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_free(data: *mut c_void) {
    // SAFETY: the contract.
    unsafe { esker_compat::memory::release(data) };
}
