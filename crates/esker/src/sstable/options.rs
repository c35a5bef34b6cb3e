//! What writers, readers and cursors of tables are told.

use super::properties::TableFamily;
use super::write_times::WriteTimes;
use crate::hooks::Hooks;
use crate::key::KeyOrder;
use crate::options::{ColumnFamilyOptions, Compression, PrefixExtractor};

/// Settings of a table that is written.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The order of keys.
    pub order: KeyOrder,
    /// Compression of data blocks. Index and filter blocks are stored as they are: they are searched in memory.
    pub compression: Compression,
    /// Size at which a data block is complete, in bytes before compression.
    pub block_bytes: usize,
    /// Prefixes for the filter.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Whether the filter holds whole keys.
    pub whole_key_filter: bool,
    /// Bits of filter for each key or prefix; 0: no filter.
    pub filter_bits_per_key: u32,
    /// Size at which an index partition is complete, in bytes.
    pub index_partition_bytes: usize,
    /// Size at which a filter partition is complete, in bytes.
    pub filter_partition_bytes: usize,
    /// The database that writes the table.
    pub database_id: u64,
    /// The table's number; salts its checksums and stays in the file when the file is renamed.
    pub file_number: u64,
    /// When the table's data was created, in seconds since 1970 UTC.
    pub creation_unix_seconds: u64,
    /// What is known about when its rows were written.
    pub write_times: WriteTimes,
    /// The column family that it is written for.
    pub family: Option<TableFamily>,
    /// The collectors of user properties.
    pub hooks: Hooks,
}

impl TableOptions {
    /// The settings of a table of `level` in a column family. The caller sets id, number and time.
    pub fn new(family: &ColumnFamilyOptions, level: usize) -> Self {
        Self {
            order: family.key_order.clone(),
            compression: family.compression(level),
            block_bytes: family.block_bytes,
            prefix_extractor: family.prefix_extractor,
            whole_key_filter: family.whole_key_filter,
            filter_bits_per_key: family.filter_bits_per_key,
            index_partition_bytes: 32 << 10,
            filter_partition_bytes: 32 << 10,
            database_id: 0,
            file_number: 0,
            creation_unix_seconds: 0,
            write_times: WriteTimes::default(),
            family: None,
            hooks: family.hooks.clone(),
        }
    }
}

/// What is expected of a table that is opened, and what it may keep in memory.
#[derive(Clone, Debug)]
pub struct TableOpenOptions {
    /// The database it must belong to; `None`: any (a table to be ingested).
    pub database_id: Option<u64>,
    /// Index partitions of up to so many bytes in all stay in memory with the table; larger ones go through the
    /// block cache.
    pub index_pinned_bytes_max: u64,
    /// The same for filter partitions.
    pub filter_pinned_bytes_max: u64,
    /// What is added to the sequence number of everything in the table.
    pub sequence_shift: u64,
}

impl Default for TableOpenOptions {
    fn default() -> Self {
        Self {
            database_id: None,
            index_pinned_bytes_max: 512 << 10,
            filter_pinned_bytes_max: 512 << 10,
            sequence_shift: 0,
        }
    }
}

/// Settings of a point read.
#[derive(Clone, Copy, Debug)]
pub struct TableReadOptions {
    /// Whether checksums of blocks read from the file are verified.
    pub verify_checksums: bool,
    /// Whether blocks read from the file enter the block cache.
    pub fill_cache: bool,
}

impl Default for TableReadOptions {
    fn default() -> Self {
        Self {
            verify_checksums: true,
            fill_cache: true,
        }
    }
}

/// Who reads through a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Purpose {
    /// A user: through the block cache, with readahead once a scan shows itself.
    #[default]
    User,
    /// A compaction: front to end in large aligned chunks, past the block cache, which is only asked what it has.
    Compaction,
}

/// Settings of a cursor.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    /// Checksums and cache.
    pub read: TableReadOptions,
    /// Bytes to read ahead of a scan; 0: grows by itself from 16 KiB to 256 KiB.
    pub readahead_bytes: usize,
    /// A user key past which nothing will be read: readahead stops there. The cursor itself does not.
    pub upper_bound: Option<Vec<u8>>,
    /// Who reads.
    pub purpose: Purpose,
}
