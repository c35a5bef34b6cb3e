//! Everything in an SSTable, entry by entry.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use esker_env::IoMode;

use super::{Inspector, ValueKind, builtin_key_order};
use crate::cache::BlockCache;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Cursor, KeyOrder, parse_key};
use crate::metrics::Metrics;
use crate::sstable::{CursorOptions, Purpose, Table, TableOpenOptions, TableProperties};
use crate::version::FileKind;

/// An SSTable, open to be dumped.
#[derive(Debug)]
pub struct TableDump {
    table: Arc<Table>,
    size_bytes: u64,
}

/// An entry of a table. Several versions of a key are several entries, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When it was written.
    pub sequence: u64,
    /// What was written.
    pub kind: ValueKind,
    /// The user's key.
    pub key: &'a [u8],
    /// The value or operand; empty for deletions.
    pub value: &'a [u8],
}

/// A stretch of keys whose versions before `sequence` are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone<'a> {
    /// When it was written.
    pub sequence: u64,
    /// The first key of it.
    pub start: &'a [u8],
    /// The first key behind it.
    pub end: &'a [u8],
}

impl Inspector {
    /// Opens table `number` of the folder.
    ///
    /// # Errors
    /// As [`table_at`](Self::table_at).
    pub fn table(&self, number: u64) -> Result<TableDump> {
        self.table_at(&FileKind::Table(number).path(&self.dir))
    }

    /// Opens the table in this file, of whatever database.
    ///
    /// # Errors
    /// `NotFound`, `Corruption` with its offset, `Unsupported`, and `InvalidArgument` if its keys have an order of
    /// the user's own that was not [given](Inspector::with_key_order).
    pub fn table_at(&self, path: &Path) -> Result<TableDump> {
        let builtin = ["esker.bytewise", "esker.reverse-bytewise"];
        let builtin = builtin.into_iter().filter_map(builtin_key_order);
        let mut last = None;
        for order in self.key_orders.iter().cloned().chain(builtin) {
            match self.open_table(path, order, None) {
                Ok(dump) => return Ok(dump),
                Err(error) if error.kind() != ErrorKind::InvalidArgument => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::bug("no order of keys is built in")))
    }

    pub(super) fn open_table(
        &self,
        path: &Path,
        order: KeyOrder,
        database_id: Option<u64>,
    ) -> Result<TableDump> {
        // Past the page cache: what is on the device is what matters.
        let file = self.fs.open(path, IoMode::Direct);
        let file = file.map_err(|error| Error::io("can't open an SSTable", error).in_file(path))?;
        let len = file.len();
        let size_bytes = len.map_err(|error| Error::io("can't read an SSTable", error).in_file(path))?;
        let options = TableOpenOptions {
            database_id,
            ..TableOpenOptions::default()
        };
        let cache = Arc::new(BlockCache::new(CACHE_BYTES));
        let metrics = Arc::new(Metrics::default());
        let table = Table::open(file, path, 0, order, cache, metrics, &options)?;
        Ok(TableDump {
            table: Arc::new(table),
            size_bytes,
        })
    }
}

/// Dumps read around the cache; only partitions of large indexes pass through it.
const CACHE_BYTES: u64 = 1 << 20;

impl TableDump {
    /// The file's length in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &TableProperties {
        self.table.properties()
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Gives every point entry in order until `visit` breaks. Entries in front of a damage are given before its
    /// error.
    pub fn entries(&self, mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>) -> Result<()> {
        let mut cursor = self.table.cursor(CursorOptions {
            purpose: Purpose::Compaction,
            ..CursorOptions::default()
        });
        cursor.seek_to_first()?;
        while cursor.valid() {
            let Some(key) = parse_key(cursor.key()) else {
                return Err(Error::corruption("an entry of unknown kind").in_file(self.table.path()));
            };
            let entry = Entry {
                sequence: key.sequence,
                kind: key.kind,
                key: key.user_key,
                value: cursor.value(),
            };
            if visit(entry).is_break() {
                break;
            }
            cursor.next()?;
        }
        Ok(())
    }

    /// The range tombstones in order, cut where they overlap.
    pub fn range_tombstones(&self) -> impl Iterator<Item = Tombstone<'_>> {
        let tombstones = self.table.range_tombstones().tombstones();
        tombstones.map(|(start, end, sequence)| Tombstone { sequence, start, end })
    }
}
