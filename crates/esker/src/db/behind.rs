//! BEHIND: what an ingestion leaves out, so that every key that has a value keeps it.
//!
//! Rows could come in at the bottom of the tree with numbers older than all. What readers see would then depend on what compactions
//! did before: a delete hides what comes in under it only while its tombstone is there; and rows at the bottom get the
//! oldest number themselves, so that nothing is older. So what is behind is decided by keys, as of one moment: rows whose keys
//! have a value are left out. The others come in as every ingested row does, newer than all, and hide nothing but deletes.
//!
//! 1. With a snapshot, the key of every row is looked up. A file of which nothing is left out comes in as it is; of another one
//!    the rest is written to a table of its own (`NNNNNN.tmp`).
//! 2. Under the leader's token, where nothing was written into the ranges of the files since the snapshot, the tables come in: the
//!    moment of the snapshot is as good as this one. Else all is done again, and after some attempts under the token.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::incoming::{self, Incoming};
use super::ingest::Part;
use super::table_file::TableFileWriter;
use crate::error::{Error, Result};
use crate::key::{Sequence, ValueKind};
use crate::read::{ReadOptions, key_changed_since, may_exist, range_changed_since};
use crate::snapshot::Snapshot;
use crate::version::{Family, FileKind};

/// Attempts beside writers before one that they wait for.
const ATTEMPTS: usize = 3;

/// What came in.
pub(super) struct CameBehind {
    /// `None` if nothing did.
    pub sequence: Option<Sequence>,
    /// The tables that did.
    pub parts: Vec<Part>,
    /// Rows that were left out.
    pub left_out: u64,
}

/// Tables without the rows that are left out.
struct Rest {
    parts: Vec<Part>,
    left_out: u64,
    /// Removed when the tables are in the database, or not to be.
    _written: Vec<TempTable>,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.tables.is_empty())
    }

    fn came(self, sequence: Option<Sequence>) -> CameBehind {
        CameBehind {
            sequence,
            parts: self.parts,
            left_out: self.left_out,
        }
    }
}

struct TempTable {
    core: Arc<Core>,
    kind: FileKind,
}

impl Drop for TempTable {
    fn drop(&mut self) {
        self.core.remove_files(vec![self.kind]);
    }
}

impl Core {
    /// Makes those rows of the tables part of the database whose keys have no value.
    pub(super) fn come_in_behind(self: &Arc<Self>, parts: &[Part]) -> Result<CameBehind> {
        parts.iter().try_for_each(check)?;
        let came = self.come_in_beside_writers(parts)?;
        if came.sequence.is_none() {
            // The values that rows were left out for, as they are with the tables if some come.
            self.make_durable(parts)?;
        }
        Ok(came)
    }

    fn come_in_beside_writers(self: &Arc<Self>, parts: &[Part]) -> Result<CameBehind> {
        for _ in 0..ATTEMPTS {
            let snapshot = self.snapshots.acquire(|| self.visible());
            let mut rest = self.rest_of(parts, &snapshot)?;
            if rest.is_empty() {
                return Ok(rest.came(None));
            }
            let unwritten = || Ok(!self.written_since(parts, &snapshot)?);
            if let Some(sequence) = self.come_in(&mut rest.parts, Some(parts), unwritten)? {
                return Ok(rest.came(Some(sequence)));
            }
        }
        let _requested = self.request_flush();
        self.with_token(|token| {
            let snapshot = self.snapshots.acquire(|| self.visible());
            let mut rest = self.rest_of(parts, &snapshot)?;
            if rest.is_empty() {
                return Ok(rest.came(None));
            }
            let brought = incoming::bring(self, rest.parts.iter_mut().flat_map(|part| &mut part.tables))?;
            self.flush_overlapping(token, parts)?;
            let sequence = self.take_in(token, &rest.parts, brought)?;
            Ok(rest.came(Some(sequence)))
        })
    }

    /// Makes durable what the families hold.
    fn make_durable(&self, parts: &[Part]) -> Result<()> {
        if self.unlogged.load(Relaxed) {
            let families: Vec<_> = parts.iter().map(|part| Arc::clone(&part.family)).collect();
            self.flush_families(&families)?;
        }
        self.with_token(|token| self.sync_wal(token))
    }

    fn rest_of(self: &Arc<Self>, parts: &[Part], snapshot: &Snapshot) -> Result<Rest> {
        let mut rest = Rest {
            parts: Vec::with_capacity(parts.len()),
            left_out: 0,
            _written: Vec::new(),
        };
        for part in parts {
            let mut tables = Vec::new();
            for table in &part.tables {
                let present = self.present_rows(&part.family, table, snapshot)?;
                let count = present.iter().filter(|present| **present).count();
                rest.left_out += count as u64;
                if count == 0 {
                    tables.push(table.again());
                } else if count < present.len() {
                    let (file, written) = self.write_rest(&part.family, table, &present)?;
                    rest._written.push(file);
                    tables.push(written);
                }
            }
            rest.parts.push(Part {
                family: Arc::clone(&part.family),
                tables,
                apart: part.apart,
            });
        }
        Ok(rest)
    }

    /// Of each row of a table, in order, whether its key has a value.
    fn present_rows(&self, family: &Arc<Family>, table: &Incoming, snapshot: &Snapshot) -> Result<Vec<bool>> {
        let read = ReadOptions {
            snapshot: Some(snapshot.clone()),
            fill_cache: false,
            ..ReadOptions::default()
        };
        let mut present = Vec::new();
        let (opened, _) = incoming::open(self, family, &table.source)?;
        opened.verify_rows(|key, _| {
            // The snapshot keeps every row that it sees, so what filters deny is not there.
            let may_exist = may_exist(&family.view(), &self.tables, key.user_key)?;
            present.push(may_exist && self.get(family, key.user_key, &read)?.is_some());
            Ok(())
        })?;
        Ok(present)
    }

    /// Writes the rows of a table that are not `present` into one of their own.
    fn write_rest(
        self: &Arc<Self>,
        family: &Arc<Family>,
        table: &Incoming,
        present: &[bool],
    ) -> Result<(TempTable, Incoming)> {
        let kind = FileKind::Temp(self.new_file_number());
        let path = kind.path(&self.dir);
        let mut writer = TableFileWriter::create_on(&self.env, &path, &family.options())?;
        let (opened, _) = incoming::open(self, family, &table.source)?;
        let mut present = present.iter();
        opened.verify_rows(|key, value| match (present.next(), key.kind) {
            (Some(false), ValueKind::Merge) => writer.merge(key.user_key, value),
            (Some(false), _) => writer.put(key.user_key, value),
            (Some(true), _) => Ok(()),
            (None, _) => Err(Error::invalid("the table was changed meanwhile").in_file(&table.source)),
        })?;
        writer.finish()?;
        let file = TempTable {
            core: Arc::clone(self),
            kind,
        };
        let rest = Incoming {
            path: PathBuf::from(&table.path),
            ..incoming::describe(self, family, &path)?
        };
        Ok((file, rest))
    }

    /// Whether anything was written into the ranges of the tables.
    fn written_since(&self, parts: &[Part], snapshot: &Snapshot) -> Result<bool> {
        let since = snapshot.sequence();
        for part in parts {
            let view = part.family.view_owned();
            for table in &part.tables {
                let (first, last) = (table.meta.smallest_user_key(), table.meta.largest_user_key());
                if range_changed_since(&view, &self.tables, (first, Some(last)), since)?
                    || key_changed_since(&view, &self.tables, last, since)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Whether the part can come in behind what is there.
fn check(part: &Part) -> Result<()> {
    let refused = |what: &str, path: &PathBuf| {
        let error = Error::invalid(what).in_file(path);
        Err(error.in_column_family(&part.family.name))
    };
    for table in &part.tables {
        if table.meta.has_tombstones() {
            return refused(
                "a table with deletes has nothing to delete behind all that is there",
                &table.path,
            );
        }
        if !part.apart {
            return refused(
                "the tables overlap; behind all that is there none can be the newer one",
                &table.path,
            );
        }
    }
    Ok(())
}
