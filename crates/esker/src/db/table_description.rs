//! What tables say about themselves, with what a family's collectors gathered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ColumnFamily, Db};
use crate::error::Result;
use crate::version::FileMeta;

/// A table of a column family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableDescription {
    /// The number in its name.
    pub number: u64,
    /// Its level.
    pub level: usize,
    /// Length of its file in bytes.
    pub size_bytes: u64,
    /// Bytes of the records in blob files that its rows point to.
    pub blob_bytes: u64,
    /// Puts, deletes and merges.
    pub entries: u64,
    /// Deletes among them.
    pub deletions: u64,
    /// Deletes of ranges.
    pub range_deletions: u64,
    /// Its smallest user key.
    pub smallest: Vec<u8>,
    /// Its largest user key; the end of a deleted range counts.
    pub largest: Vec<u8>,
    /// When it was written, in seconds since 1970 UTC.
    pub written_unix_seconds: u64,
    /// What the collectors said: by their name, a dot, and the name of their own.
    pub properties: BTreeMap<String, Vec<u8>>,
}

impl Db {
    /// The tables of a family that reach into the keys from `start` up to `end` (exclusive; `None`: open), level by level;
    /// what a [`PropertyCollector`](crate::PropertyCollector) gathered is for the caller to put together. Rows in
    /// memtables are in none of them yet, and tables that were written without the collector have nothing of it.
    ///
    /// Opens the tables that are not open: O(tables in the range), one read each as a rule. Errors: `Io`, `Corruption`.
    pub fn table_properties(
        &self,
        family: &ColumnFamily,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<Vec<TableDescription>> {
        let core = self.core();
        core.check_open()?;
        let version = Arc::clone(&family.family.view().version);
        let order = version.order();
        let concerned = |file: &FileMeta| {
            start.is_none_or(|start| !file.ends_before(order, start))
                && end.is_none_or(|end| order.compare(file.smallest_user_key(), end).is_lt())
        };
        let files = version.files().filter(|(_, file)| concerned(file));
        files
            .map(|(level, file)| {
                core.tables.with(file, order, |table| {
                    Ok(info(level, file, &table.properties().user))
                })
            })
            .collect()
    }
}

fn info(level: usize, file: &FileMeta, properties: &BTreeMap<Vec<u8>, Vec<u8>>) -> TableDescription {
    let properties = properties.iter().filter_map(|(name, value)| {
        // Names of collectors are text.
        Some((String::from_utf8(name.clone()).ok()?, value.clone()))
    });
    TableDescription {
        number: file.number,
        level,
        size_bytes: file.size_bytes,
        blob_bytes: file.blob_bytes(),
        entries: file.entries,
        deletions: file.deletions,
        range_deletions: file.range_tombstones,
        smallest: file.smallest_user_key().to_vec(),
        largest: file.largest_user_key().to_vec(),
        written_unix_seconds: file.created_unix_seconds,
        properties: properties.collect(),
    }
}
