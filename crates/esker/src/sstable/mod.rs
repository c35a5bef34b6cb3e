//! Sorted string tables: immutable files of sorted entries, written once from front to end.
//!
//! `docs/formats/sstable.md` specifies every byte. Reading one way from the outside in:
//!
//! | file | what it does |
//! |---|---|
//! | `format` | header, footer, handles, block trailers |
//! | `block` | sorted blocks that are searched where they lie |
//! | `filter` | cache-line-blocked bloom filters |
//! | `prefix` | the keys of one prefix |
//! | `index` | partitions of separators and handles |
//! | `properties`, `tombstones` | the two small blocks of their own form |
//! | `options` | what writers, readers and cursors are told |
//! | `writer`, `filter_builder`, `collectors` | [`TableWriter`] |
//! | `write_times` | when rows were written |
//! | `file` | reads blocks: through the cache, or from a window of the file |
//! | `window` | readahead of scans, chunks of compactions |
//! | `open` | opens tables |
//! | `table` | [`Table`]: filters, estimates |
//! | `get` | point reads |
//! | `batch` | blocks of several tables, read together |
//! | `cursor` | [`TableCursor`]: ordered reads |
//! | `verify` | reads and checks everything |
//! | `salvage` | what can still be read of a damaged table |
//! | `warm` | blocks that enter the block cache as they are written, and leave it with their table |

mod batch;
mod block;
mod collectors;
mod cursor;
mod file;
mod filter;
mod filter_builder;
mod format;
mod fuzz;
mod get;
mod index;
mod open;
mod options;
mod prefix;
mod properties;
mod salvage;
mod table;
mod tombstones;
mod verify;
mod warm;
mod window;
mod write_times;
mod writer;

pub use batch::{Part, WantedBlock, read_blocks, read_parts};
pub use block::{Block, BlockBuilder, BlockKind, Found};
pub use cursor::TableCursor;
pub use filter::build_filter;
pub use format::{BlockHandle, FORMAT_VERSION, Footer};
pub use fuzz::{fuzz_block, fuzz_compression, fuzz_filter, fuzz_table};
pub use get::{Place, ValueRef};
pub use options::{CursorOptions, Purpose, TableOpenOptions, TableOptions, TableReadOptions};
pub use prefix::SamePrefix;
pub use properties::{OutsideFiles, TableFamily, TableProperties};
pub use salvage::{LostStretch, TableSalvage};
pub use table::{SplitPoint, Table};
pub use tombstones::RawRangeTombstone;
pub use warm::Warmer;
pub use write_times::WriteTimes;
pub use writer::{TableSummary, TableWriter};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
