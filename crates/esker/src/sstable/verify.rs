//! Reads a whole table and checks all that can be checked.

use std::sync::Arc;

use super::filter::{filter_hash, filter_may_contain};
use super::format::{HEADER_LEN, check_header};
use super::options::{CursorOptions, Purpose, TableReadOptions};
use super::table::Table;
use crate::error::{Error, Result};
use crate::key::{Cursor, ParsedKey, ValueKind, pack_trailer, parse_key, user_key};

impl Table {
    /// Reads every block past the cache and checks checksums, structure, the order of keys across blocks, that each
    /// key can be found through index and filter, and the counts in the properties. O(file).
    ///
    /// # Errors
    /// The first damage, with its offset.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        self.verify_rows(|_, _| Ok(()))
    }

    /// As [`verify`](Self::verify), and gives key and value of every point entry to `row`, in order.
    ///
    /// # Errors
    /// As `verify`, and what `row` says.
    pub fn verify_rows(
        self: &Arc<Self>,
        mut row: impl FnMut(ParsedKey<'_>, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.verify_header()?;
        let filters = self.verify_filters()?;
        let mut cursor = self.cursor(CursorOptions {
            purpose: Purpose::Compaction,
            read: TableReadOptions::default(),
            ..CursorOptions::default()
        });
        let (mut entries, mut deletions, mut merges, mut raw_key, mut raw_value) = (0, 0, 0, 0, 0);
        let mut last: Vec<u8> = Vec::new();
        let mut scratch = Vec::new();
        cursor.seek_to_first()?;
        while cursor.valid() {
            let key = cursor.key();
            let Some(parsed) = parse_key(key).filter(|key| key.kind != ValueKind::RangeDelete) else {
                return Err(self.damage("an entry of unknown kind"));
            };
            if entries > 0 && !self.order.compare_internal(&last, key).is_lt() {
                return Err(self.damage("keys are out of order"));
            }
            match parsed.kind {
                ValueKind::Delete | ValueKind::SingleDelete => deletions += 1,
                ValueKind::Merge => merges += 1,
                _ => {}
            }
            let target = pack_trailer(parsed.sequence, ValueKind::SEEK);
            if let Some((filter, bits)) = self.filter.as_ref().zip(filters.as_ref()) {
                let ordinal = filter
                    .index
                    .search(&self.order, parsed.user_key, target, &mut scratch)
                    .index;
                let has = |part: &[u8]| {
                    bits.get(ordinal)
                        .is_some_and(|bits| filter_may_contain(bits, filter_hash(part)))
                };
                let prefix = filter
                    .prefixes
                    .and_then(|extractor| extractor.prefix(parsed.user_key));
                if filter.whole_keys && !has(parsed.user_key) || prefix.is_some_and(|prefix| !has(prefix)) {
                    return Err(self.damage("the filter denies a key that is there"));
                }
            }
            if !cursor.index_covers_current(&mut scratch) {
                return Err(self.damage("the index leads past a key that is there"));
            }
            row(parsed, cursor.value())?;
            entries += 1;
            raw_key += key.len() as u64;
            raw_value += cursor.value().len() as u64;
            last.clear();
            last.extend_from_slice(cursor.key());
            cursor.next()?;
        }
        let properties = self.properties();
        let counted = (entries, deletions, merges, raw_key, raw_value);
        let stated = (
            properties.entries,
            properties.deletions,
            properties.merges,
            properties.raw_key_bytes,
            properties.raw_value_bytes,
        );
        if counted != stated || properties.range_tombstones != self.range_tombstones_stored {
            return Err(self.damage("the properties do not count what is there"));
        }
        Ok(())
    }

    fn verify_header(&self) -> Result<()> {
        let mut header = [0; HEADER_LEN];
        super::file::read_exact(&*self.file.file, &self.file.path, 0, &mut header)?;
        let id = check_header(&header).map_err(|error| error.at_offset(0).in_file(&self.file.path))?;
        if id == self.footer.database_id {
            Ok(())
        } else {
            Err(self.file.corrupt(0, "header and footer name different databases"))
        }
    }

    /// Reads all filters; `None` if the table is read without.
    fn verify_filters(&self) -> Result<Option<Vec<crate::cache::SharedBytes>>> {
        if self.footer.filter.is_none() {
            return Ok(None);
        }
        let index = self
            .file
            .parse(self.footer.filter, self.file.read(self.footer.filter, true)?)?;
        (0..index.len())
            .map(|i| self.file.read_filter(self.handle(&index, i)?, true))
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }

    fn damage(&self, what: &str) -> Error {
        Error::corruption(what).in_file(&self.file.path)
    }

    /// The smallest and largest user key among the point entries; `None` if there are none. Two block reads.
    pub fn user_key_bounds(self: &Arc<Self>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = self.cursor(CursorOptions::default());
        cursor.seek_to_first()?;
        if !cursor.valid() {
            return Ok(None);
        }
        let first = user_key(cursor.key()).to_vec();
        cursor.seek_to_last()?;
        if !cursor.valid() {
            return Ok(None);
        }
        Ok(Some((first, user_key(cursor.key()).to_vec())))
    }
}
