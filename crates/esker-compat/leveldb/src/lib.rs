//! LevelDB's C interface (`leveldb/c.h`, all 68 functions) over Esker.
//!
//! | file | functions |
//! |---|---|
//! | `database` | open, close, put, get, delete, write, snapshots, compaction, sizes, destroy, repair |
//! | `property` | `leveldb_property_value` |
//! | `iterator` | `leveldb_iter_*` |
//! | `batch` | `leveldb_writebatch_*` |
//! | `options` | options of a database, and what they mean here |
//! | `operation` | options of reads and writes |
//! | `objects` | comparators, filter policies, caches, environments |
//!
//! Every function keeps the contract at the head of `esker_compat`; that is what a `SAFETY` note means by it. The
//! page `docs/compat.md` says which options are mapped and which have no meaning here.
// The functions' names are LevelDB's.
#![allow(non_snake_case)]

mod batch;
mod database;
mod iterator;
mod objects;
mod operation;
mod options;
mod property;
