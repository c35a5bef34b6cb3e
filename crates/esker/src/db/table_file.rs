//! Writes SSTables outside of any database, to be ingested.
//!
//! All rows have the sequence number [`STORED_SEQUENCE`]. The number that they get when the table is ingested stands in
//! the manifest, as a difference that readers add, so that the file never has to be written again.

use std::path::{Path, PathBuf};

use esker_env::{CreateOptions, Env, IoMode};

use super::new_folder::folder_around;
use crate::error::{Error, Result};
use crate::key::{Sequence, ValueKind, internal_key};
use crate::options::ColumnFamilyOptions;
use crate::sstable::{TableOptions, TableWriter};

/// The sequence number of all rows in a table that was made to be ingested. Not 0, so that a reader of before the
/// ingestion can ask for something that is older than all of the table.
pub(super) const STORED_SEQUENCE: Sequence = 1;

/// The database id in the header of such a table.
const NO_DATABASE: u64 = 0;

/// Writes a table for [`Db::ingest`](crate::Db::ingest), row by row in ascending order of keys. Needs no database.
/// Dropped before [`finish`](Self::finish), it removes the file.
#[derive(Debug)]
pub struct TableFileWriter {
    env: Env,
    path: PathBuf,
    options: ColumnFamilyOptions,
    /// `None` once finished.
    writer: Option<TableWriter>,
    last_key: Option<Vec<u8>>,
    finished: bool,
}

/// What is in a table file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableFileSummary {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Puts, deletes and merges.
    pub entries: u64,
    /// Deletions of ranges.
    pub range_deletions: u64,
}

impl TableFileWriter {
    /// Begins a table in the new file `path`. Of the options the key order must be that of the column family which will
    /// ingest the table; those of blocks, filters and compression (that of the deepest level) say how it is written.
    ///
    /// Errors: `InvalidArgument` if the file exists or an option is out of range; `Io`.
    pub fn create(path: impl AsRef<Path>, options: &ColumnFamilyOptions) -> Result<Self> {
        Self::create_on(&Env::posix(), path, options)
    }

    /// The same on this machine instead of the real one: for tests and simulations.
    pub fn create_on(env: &Env, path: impl AsRef<Path>, options: &ColumnFamilyOptions) -> Result<Self> {
        options.validate()?;
        let path = path.as_ref();
        let io = |error| Error::io("can't create a table", error).in_file(path);
        if env.fs.exists(path).map_err(io)? {
            return Err(Error::invalid("the file exists already").in_file(path));
        }
        let create = CreateOptions {
            mode: IoMode::Buffered,
            buffer_bytes: 1 << 20,
            ..CreateOptions::default()
        };
        let file = env.fs.create(path, create).map_err(io)?;
        let table = TableOptions {
            database_id: NO_DATABASE,
            // Salts the checksums of blocks, so that those of another file are never taken for this one's.
            file_number: env.random.next_u64(),
            creation_unix_seconds: env.clock.unix_seconds(),
            ..TableOptions::new(options, options.levels.saturating_sub(1))
        };
        Ok(Self {
            env: env.clone(),
            path: path.to_owned(),
            options: options.clone(),
            writer: Some(TableWriter::new(file, path, table)),
            last_key: None,
            finished: false,
        })
    }

    /// Sets `key`, which must come behind all keys before it.
    ///
    /// Errors: `InvalidArgument` if it does not, or key or value is too long: nothing was written then; `Io`, after which
    /// nothing more can be.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(ValueKind::Put, key, value)
    }

    /// Removes `key` from the database. As [`put`](Self::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.add(ValueKind::Delete, key, &[])
    }

    /// Applies `operand` to what the database has of `key`. As [`put`](Self::put).
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(ValueKind::Merge, key, operand)
    }

    /// Removes all keys from `start` up to `end` (exclusive) that the database has; not those of this file. In any
    /// order. Error: `InvalidArgument` if `start` lies behind `end`.
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        if self.options.key_order.compare(start, end).is_gt() {
            return Err(Error::invalid("a range that ends before it starts").in_file(&self.path));
        }
        self.open()?.add_range_tombstone(start, end, STORED_SEQUENCE);
        Ok(())
    }

    /// About what the file would take if it were finished now, in bytes.
    pub fn estimated_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, TableWriter::estimated_bytes)
    }

    /// Completes the file and makes it durable. Error: `InvalidArgument` if nothing was written to it.
    pub fn finish(mut self) -> Result<TableFileSummary> {
        self.open()?;
        let Some(writer) = self.writer.take().filter(|writer| !writer.is_empty()) else {
            return Err(Error::invalid("a table without rows").in_file(&self.path));
        };
        let summary = writer.finish(true)?;
        let around = folder_around(&self.path);
        let io = |error| Error::io("can't make a table durable", error).in_file(&self.path);
        self.env.fs.sync_dir(around).map_err(io)?;
        self.finished = true;
        Ok(TableFileSummary {
            file_bytes: summary.file_bytes,
            entries: summary.properties.entries,
            range_deletions: summary.properties.range_tombstones,
        })
    }

    fn open(&mut self) -> Result<&mut TableWriter> {
        let writer = self.writer.as_mut();
        writer.ok_or_else(|| Error::bug("a table file was finished already").in_file(&self.path))
    }

    fn add(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(last) = &self.last_key
            && self.options.key_order.compare(last, key).is_ge()
        {
            let message = if last == key {
                "a key that was written already"
            } else {
                "keys out of order"
            };
            return Err(Error::invalid(message).in_file(&self.path));
        }
        check_lengths(key, value).map_err(|error| error.in_file(&self.path))?;
        self.open()?
            .add(&internal_key(key, STORED_SEQUENCE, kind), value)?;
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }
}

impl Drop for TableFileWriter {
    fn drop(&mut self) {
        if !self.finished {
            drop(self.writer.take());
            if let Err(error) = self.env.fs.remove(&self.path) {
                tracing::warn!(%error, path = %self.path.display(), "an unfinished table stays");
            }
        }
    }
}

/// As a write to the database would.
fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    let (key_max, value_max) = (crate::key::KEY_LEN_MAX, crate::key::VALUE_LEN_MAX);
    if key.len() > key_max || value.len() as u64 > value_max {
        return Err(Error::invalid(format!(
            "a key of {} and a value of {} bytes; at most {key_max} and {value_max}",
            key.len(),
            value.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn disorder_is_refused_and_costs_only_itself() {
        let (env, _) = Env::simulated(1);
        let path = Path::new("/table");
        let options = ColumnFamilyOptions::default();
        let mut writer = TableFileWriter::create_on(&env, path, &options).unwrap();
        writer.put(b"b", b"1").unwrap();
        for key in [&b"a"[..], b"b"] {
            let error = writer.put(key, b"2").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
        assert!(writer.delete_range(b"z", b"a").is_err());
        assert!(writer.put(&vec![b'c'; 70_000], b"").is_err());
        writer.delete(b"c").unwrap();
        writer.delete_range(b"x", b"y").unwrap();
        let summary = writer.finish().unwrap();
        assert_eq!((summary.entries, summary.range_deletions), (2, 1));
        assert_eq!(env.fs.file_len(path).unwrap(), summary.file_bytes);
        let exists = TableFileWriter::create_on(&env, path, &options).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn what_is_not_finished_or_empty_leaves_no_file() {
        let (env, _) = Env::simulated(1);
        let path = Path::new("/table");
        let create = || TableFileWriter::create_on(&env, path, &ColumnFamilyOptions::default()).unwrap();
        let mut writer = create();
        writer.put(b"a", b"1").unwrap();
        drop(writer);
        assert!(!env.fs.exists(path).unwrap());
        assert_eq!(create().finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(!env.fs.exists(path).unwrap());
    }
}
