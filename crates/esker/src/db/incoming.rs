//! Table files before they are part of the database: checked, measured, and brought into its folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::core::Core;
use super::new_folder::{copy, is_refusal};
use super::table_file::STORED_SEQUENCE;
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Sequence, TRAILER_LEN, ValueKind, internal_key, pack_trailer, user_key};
use crate::metrics::Metrics;
use crate::sstable::{Table, TableOpenOptions};
use crate::version::{Family, FileKind, FileMeta, Origin, exclusive_bound};

/// Blocks of a large index pass through this much of cache while a file is checked.
const CACHE_BYTES: u64 = 4 << 20;

/// A table that comes.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The file that was given.
    pub path: PathBuf,
    /// The file that is to come in: the same, or another one with some of its rows.
    pub source: PathBuf,
    /// What is in it, with the sequence numbers that are stored; its number is 0 until it has a name in the folder.
    pub meta: FileMeta,
}

impl Incoming {
    /// The same once more.
    pub fn again(&self) -> Self {
        Self {
            path: self.path.clone(),
            source: self.source.clone(),
            meta: self.meta.renamed(self.meta.number, self.meta.origin),
        }
    }

    /// What the version knows of it when its rows have this sequence number.
    pub fn numbered(&self, sequence: Sequence) -> FileMeta {
        let meta = &self.meta;
        let shift = sequence - STORED_SEQUENCE;
        let origin = Origin {
            sequence_shift: shift,
            ..meta.origin.unwrap_or_default()
        };
        FileMeta {
            smallest: shifted(&meta.smallest, shift),
            largest: match meta.largest_is_exclusive() {
                true => meta.largest.clone(),
                false => shifted(&meta.largest, shift),
            },
            sequence_min: sequence,
            sequence_max: sequence,
            ..meta.renamed(meta.number, Some(origin))
        }
    }
}

/// An internal key with a larger sequence number.
fn shifted(key: &[u8], shift: Sequence) -> Vec<u8> {
    let mut key = key.to_vec();
    if let Some(trailer) = key.last_chunk_mut::<TRAILER_LEN>() {
        *trailer = u64::from_le_bytes(*trailer)
            .saturating_add(shift << 8)
            .to_le_bytes();
    }
    key
}

/// Reads and checks all of a file.
pub(super) fn read(core: &Core, family: &Family, path: &Path) -> Result<Incoming> {
    let io = |error| Error::io("can't open a table", error).in_file(path);
    // By whatever name: to move it would take it from the database.
    let folder = path.parent().unwrap_or(path);
    if core.env.fs.canonical(folder).map_err(io)? == core.env.fs.canonical(&core.dir).map_err(io)? {
        return Err(Error::invalid("a file in the folder of the database itself").in_file(path));
    }
    describe(core, family, path)
}

/// Opens a file apart from all tables of the database; and its length.
pub(super) fn open(core: &Core, family: &Family, path: &Path) -> Result<(Arc<Table>, u64)> {
    let io = |error| Error::io("can't open a table", error).in_file(path);
    let file = core.env.fs.open(path, core.options.background_io).map_err(io)?;
    let size_bytes = file.len().map_err(io)?;
    let table = Arc::new(Table::open(
        file,
        path,
        0,
        family.order.clone(),
        Arc::new(BlockCache::new(CACHE_BYTES)),
        Arc::new(Metrics::default()),
        &TableOpenOptions::default(),
    )?);
    Ok((table, size_bytes))
}

/// Reads all of a file and says what is in it.
pub(super) fn describe(core: &Core, family: &Family, path: &Path) -> Result<Incoming> {
    let (table, size_bytes) = open(core, family, path)?;
    let has_operator = family.options().merge_operator.is_some();
    let (mut first, mut last): (Option<Vec<u8>>, Vec<u8>) = (None, Vec::new());
    table.verify_rows(|key, _| {
        let foreign = key.sequence != STORED_SEQUENCE || key.kind == ValueKind::BlobPointer;
        let again = first.is_some() && user_key(&last) == key.user_key;
        if foreign || again {
            return Err(Error::invalid("a table that was not written to be ingested").in_file(path));
        }
        if key.kind == ValueKind::Merge && !has_operator {
            return Err(
                Error::invalid("operands for a column family without a merge operator").in_file(path),
            );
        }
        last.clear();
        last.extend_from_slice(key.user_key);
        last.extend_from_slice(&pack_trailer(key.sequence, key.kind).to_le_bytes());
        first.get_or_insert_with(|| last.clone());
        Ok(())
    })?;
    let (smallest, largest) = bounds(&table, path, &family.order, first, last)?;
    let properties = table.properties();
    let meta = FileMeta {
        number: 0,
        size_bytes,
        smallest,
        largest,
        sequence_min: STORED_SEQUENCE,
        sequence_max: STORED_SEQUENCE,
        entries: properties.entries,
        deletions: properties.deletions,
        range_tombstones: properties.range_tombstones,
        created_unix_seconds: properties.creation_unix_seconds,
        raw_bytes: properties
            .raw_key_bytes
            .saturating_add(properties.raw_value_bytes),
        origin: Some(Origin {
            database_id: table.database_id(),
            sequence_shift: 0,
        }),
        ..FileMeta::default()
    };
    Ok(Incoming {
        path: path.to_owned(),
        source: path.to_owned(),
        meta,
    })
}

/// The smallest and largest internal key, with range tombstones.
fn bounds(
    table: &Table,
    path: &Path,
    order: &KeyOrder,
    first: Option<Vec<u8>>,
    last: Vec<u8>,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut smallest, mut largest) = (first, last);
    let fragments = table.range_tombstones().fragments();
    if fragments
        .clone()
        .any(|fragment| fragment.sequences != [STORED_SEQUENCE])
    {
        return Err(Error::invalid("a table that was not written to be ingested").in_file(path));
    }
    if let (Some(front), Some(end)) = (fragments.clone().next(), fragments.clone().next_back()) {
        let (start, end) = (
            internal_key(front.start, STORED_SEQUENCE, ValueKind::RangeDelete),
            exclusive_bound(end.end),
        );
        if smallest
            .as_ref()
            .is_none_or(|key| order.compare_internal(&start, key).is_lt())
        {
            smallest = Some(start);
        }
        if largest.is_empty() || order.compare_internal(&end, &largest).is_gt() {
            largest = end;
        }
    }
    match smallest {
        Some(smallest) => Ok((smallest, largest)),
        None => Err(Error::invalid("a table without rows").in_file(path)),
    }
}

/// Files that have names in the database's folder; removed if they do not become part of it.
pub(super) struct Brought<'a> {
    core: &'a Core,
    files: Vec<FileKind>,
    copied_bytes: u64,
}

impl<'a> Brought<'a> {
    pub fn new(core: &'a Core) -> Self {
        Self {
            core,
            files: Vec::new(),
            copied_bytes: 0,
        }
    }

    /// Gives a file of `bytes` the name `kind`: a link, or a copy where there can be none.
    pub fn bring(&mut self, from: &Path, kind: FileKind, bytes: u64) -> Result<()> {
        let fs = &self.core.env.fs;
        let to = kind.path(&self.core.dir);
        self.files.push(kind);
        match fs.hard_link(from, &to) {
            // Whoever wrote it need not have synced it.
            Ok(()) => fs
                .sync_file(&to)
                .map_err(|error| Error::io("can't make a file durable", error).in_file(from)),
            Err(error) if is_refusal(&error) => {
                self.copied_bytes += bytes;
                copy(&self.core.env, from, &to, bytes)
            }
            Err(error) => Err(Error::io("can't link a file into the database", error).in_file(from)),
        }
    }

    /// Makes the names durable.
    pub fn sync(&self) -> Result<()> {
        let dir = &self.core.dir;
        let io = |error| Error::io("can't sync the folder", error).in_file(dir);
        self.core.env.fs.sync_dir(dir).map_err(io)
    }

    /// Bytes of files of which there could be no link.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Leaves them to the manifest.
    pub fn into_files(mut self) -> Vec<FileKind> {
        std::mem::take(&mut self.files)
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        self.core.remove_files(std::mem::take(&mut self.files));
    }
}

/// Gives the files names in the database's folder, durably.
pub(super) fn bring<'a, 'b>(
    core: &'a Core,
    tables: impl Iterator<Item = &'b mut Incoming>,
) -> Result<Brought<'a>> {
    let mut brought = Brought::new(core);
    for table in tables {
        let number = core.new_file_number();
        brought.bring(&table.source, FileKind::Table(number), table.meta.size_bytes)?;
        table.meta.number = number;
    }
    brought.sync()?;
    Ok(brought)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SEQUENCE_MAX;

    #[test]
    fn a_bound_gets_the_number_of_its_table() {
        let key = internal_key(b"key", STORED_SEQUENCE, ValueKind::Merge);
        assert_eq!(shifted(&key, 41), internal_key(b"key", 42, ValueKind::Merge));
        let newest = SEQUENCE_MAX - STORED_SEQUENCE;
        assert_eq!(
            shifted(&key, newest),
            internal_key(b"key", SEQUENCE_MAX, ValueKind::Merge)
        );
    }
}
