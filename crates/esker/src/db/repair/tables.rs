//! One table after the other: is it whole, and if not, what of it can be written to a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use esker_env::{IoMode, RandomFile};

use super::Repair;
use super::blobs::Pointed;
use super::report::DamagedFile;
use crate::blob::BlobPointer;
use crate::cache::BlockCache;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{
    FragmentedTombstones, KeyOrder, RangeTombstone, SEQUENCE_MAX, ValueKind, append_internal_key,
    internal_key, parse_key,
};
use crate::rewrite::{OutputContext, Outputs, RowSource, Written};
use crate::sstable::{Table, TableOpenOptions, TableSalvage};
use crate::version::{BlobRef, FileKind, FileMeta, Origin, exclusive_bound};

/// What was made of a table.
pub(super) enum Looked {
    /// It stays as it is.
    Whole(Arc<FileMeta>),
    /// What could be read of it is in these files; of a dry run, in none.
    Damaged(Box<DamagedFile>, Written),
    /// It is none of this database's, for this reason.
    Foreign(Error),
}

impl Repair<'_> {
    /// Reads all of a table. `origin`: where it comes from, if not from the database itself.
    pub(super) fn look_at(&self, number: u64, family: u32, origin: Option<Origin>) -> Result<Looked> {
        let path = FileKind::Table(number).path(self.dir);
        let Some(plan) = self.families.get(&family) else {
            let what = format!("table {number} belongs to column family {family}, which is not there");
            return Err(Error::corruption(what).in_file(self.dir));
        };
        let listed = self.survey.facts.tables.get(&number);
        let order = &plan.options.key_order;
        let mut damaged = DamagedFile::new(path.clone(), Error::corruption("the file is missing"));
        damaged.column_family = Some(plan.record.name.clone());
        if let Some(listed) = listed {
            damaged.rows_lost = Some(listed.meta.entries);
            damaged.lost_bytes = listed.meta.size_bytes;
            damaged.lost_ranges = vec![whole_range(&listed.meta)];
            damaged.range_deletions_lost = listed.meta.range_tombstones > 0;
        }
        let file = match self.env.fs.open(&path, IoMode::Direct) {
            Ok(file) => file,
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    damaged.damage = Error::io("can't open an SSTable", error).in_file(&path);
                }
                return Ok(Looked::Damaged(Box::new(damaged), Written::default()));
            }
        };
        let salvage = match TableSalvage::open(Arc::clone(&file), &path, number) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(error) => {
                damaged.damage = error;
                return Ok(Looked::Damaged(Box::new(damaged), Written::default()));
            }
            Ok(salvage) => salvage,
        };
        let own = self.survey.database_id as u64;
        let expected = origin.map_or(own, |origin| origin.database_id);
        if let Some(id) = salvage.database_id.filter(|&id| id != expected) {
            let error = Error::corruption(format!(
                "the table belongs to database {id:#x}, not {expected:#x}"
            ));
            return Ok(Looked::Foreign(error.in_file(&path)));
        }
        let place = Place {
            path: &path,
            number,
            origin,
            order,
            databases: &plan.databases,
        };
        match self.check(&file, &place, expected) {
            Ok(found) => match listed {
                None => return Ok(Looked::Whole(Arc::new(found))),
                Some(listed) if same(&listed.meta, &found) => {
                    return Ok(Looked::Whole(Arc::clone(&listed.meta)));
                }
                Some(_) => {
                    damaged.damage =
                        Error::corruption("a whole table, but not the one that the manifest says")
                            .in_file(&path);
                    return Ok(Looked::Damaged(Box::new(damaged), Written::default()));
                }
            },
            Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(Looked::Foreign(error)),
            Err(error) => damaged.damage = error.in_file(&path),
        }
        let context = self.output(family, plan, listed.map_or(0, |listed| usize::from(listed.level)));
        let written = self.rewrite(&salvage, &place, &context, &mut damaged)?;
        Ok(Looked::Damaged(Box::new(damaged), written))
    }

    /// Checks all of the table, and that its rows point into whole blob files; gives what the manifest is to say of it.
    fn check(&self, file: &Arc<dyn RandomFile>, place: &Place<'_>, database_id: u64) -> Result<FileMeta> {
        let table = Arc::new(open(Arc::clone(file), place, Some(database_id))?);
        let (mut smallest, mut largest) = (Vec::new(), Vec::new());
        let mut refs: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        table.verify_rows(|key, value| {
            if key.kind == ValueKind::BlobPointer {
                let pointer = BlobPointer::decode(value)?;
                if !self.blobs.holds(place.databases, &pointer) {
                    let file = pointer.file;
                    return Err(Error::corruption(format!(
                        "a row points into blob file {file}, which is damaged or missing"
                    )));
                }
                let (records, bytes) = refs.entry(pointer.file).or_default();
                *records += 1;
                *bytes = bytes.saturating_add(pointer.bytes);
            }
            largest.clear();
            append_internal_key(&mut largest, key.user_key, key.sequence, key.kind);
            if smallest.is_empty() {
                smallest.clone_from(&largest);
            }
            Ok(())
        })?;
        for (start, end, sequence) in table.range_tombstones().tombstones() {
            let (first, last) = (
                internal_key(start, sequence, ValueKind::RangeDelete),
                exclusive_bound(end),
            );
            if smallest.is_empty() || place.order.compare_internal(&first, &smallest).is_lt() {
                smallest = first;
            }
            if largest.is_empty() || place.order.compare_internal(&last, &largest).is_gt() {
                largest = last;
            }
        }
        let properties = table.properties();
        let shift = place.origin.map_or(0, |origin| origin.sequence_shift);
        let shifted = |sequence: u64| sequence.saturating_add(shift).min(SEQUENCE_MAX);
        let size_bytes = file
            .len()
            .map_err(|error| Error::io("can't read an SSTable", error).in_file(place.path))?;
        Ok(FileMeta {
            number: place.number,
            size_bytes,
            smallest,
            largest,
            sequence_min: shifted(properties.sequence_min),
            sequence_max: shifted(properties.sequence_max),
            entries: properties.entries,
            deletions: properties.deletions,
            range_tombstones: properties.range_tombstones,
            created_unix_seconds: properties.creation_unix_seconds,
            raw_bytes: properties
                .raw_key_bytes
                .saturating_add(properties.raw_value_bytes),
            blobs: refs
                .into_iter()
                .map(|(file, (records, bytes))| BlobRef { file, records, bytes })
                .collect(),
            origin: place.origin,
            ..FileMeta::default()
        })
    }

    /// Writes what can be read of a table to a new one.
    fn rewrite(
        &self,
        salvage: &TableSalvage,
        place: &Place<'_>,
        context: &OutputContext<'_>,
        damaged: &mut DamagedFile,
    ) -> Result<Written> {
        let shift = place.origin.map_or(0, |origin| origin.sequence_shift);
        let tombstones = salvage
            .tombstones
            .iter()
            .map(|(start, end, sequence)| RangeTombstone {
                start: start.clone(),
                end: end.clone(),
                sequence: sequence.saturating_add(shift).min(SEQUENCE_MAX),
            });
        let tombstones = Arc::new(FragmentedTombstones::new(place.order, tombstones));
        let write_times = salvage.properties.as_ref().map(|found| found.write_times.clone());
        let mut outputs = (!self.options.dry_run)
            .then(|| Outputs::new(context, tombstones).with_write_times(write_times.unwrap_or_default()));
        let (mut rows, mut values_lost) = (0, 0);
        let mut changed = Vec::new();
        let lost = salvage.rows(place.order, shift, |key, value| {
            rows += 1;
            let pointed = match parse_key(key) {
                Some(parsed) if parsed.kind == ValueKind::BlobPointer => {
                    let pointed = self.blobs.value(place.databases, value);
                    let kind = match &pointed {
                        Pointed::InPlace => ValueKind::BlobPointer,
                        Pointed::Value(_) => ValueKind::Put,
                        // Else an older value of the key would come back.
                        Pointed::Gone => ValueKind::Delete,
                    };
                    changed.clear();
                    append_internal_key(&mut changed, parsed.user_key, parsed.sequence, kind);
                    Some(pointed)
                }
                _ => None,
            };
            let (key, value) = match &pointed {
                None | Some(Pointed::InPlace) => (key, value),
                Some(Pointed::Value(value)) => (&changed[..], &value[..]),
                Some(Pointed::Gone) => {
                    values_lost += 1;
                    (&changed[..], &[][..])
                }
            };
            match &mut outputs {
                Some(outputs) => outputs.add(key, value, RowSource::Block { cached: false }),
                None => Ok(()),
            }
        })?;
        damaged.rows_kept = rows;
        damaged.values_lost = values_lost;
        damaged.lost_bytes = lost.iter().map(|stretch| stretch.bytes).sum();
        damaged.lost_ranges = lost;
        damaged.range_deletions_lost = salvage.tombstones_lost;
        let entries = salvage.properties.as_ref().map(|found| found.entries);
        damaged.rows_lost = entries
            .or(damaged.rows_lost)
            .map(|entries| entries.saturating_sub(rows));
        match outputs {
            Some(outputs) => outputs.finish(),
            None => Ok(Written::default()),
        }
    }

    /// Opens a table that was found to be whole, or was written.
    pub(super) fn open_table(&self, meta: &FileMeta, order: &KeyOrder) -> Result<Arc<Table>> {
        let path = FileKind::Table(meta.number).path(self.dir);
        let file = self
            .env
            .fs
            .open(&path, IoMode::Direct)
            .map_err(|error| Error::io("can't open an SSTable", error).in_file(&path))?;
        let place = Place {
            path: &path,
            number: meta.number,
            origin: meta.origin,
            order,
            databases: &BTreeSet::new(),
        };
        open(file, &place, None).map(Arc::new)
    }
}

/// Which table, and how it is read.
struct Place<'a> {
    path: &'a Path,
    number: u64,
    origin: Option<Origin>,
    order: &'a KeyOrder,
    /// Those that wrote blob files which its family was imported with.
    databases: &'a BTreeSet<u64>,
}

fn open(file: Arc<dyn RandomFile>, place: &Place<'_>, database_id: Option<u64>) -> Result<Table> {
    let options = TableOpenOptions {
        database_id,
        sequence_shift: place.origin.map_or(0, |origin| origin.sequence_shift),
        ..TableOpenOptions::default()
    };
    Table::open(
        file,
        place.path,
        place.number,
        place.order.clone(),
        Arc::new(BlockCache::new(1 << 20)),
        Arc::default(),
        &options,
    )
}

/// Whether a table that was found is the one that the manifest lists: its bounds may be wider there.
fn same(listed: &FileMeta, found: &FileMeta) -> bool {
    let counts = |meta: &FileMeta| {
        [
            meta.size_bytes,
            meta.entries,
            meta.deletions,
            meta.range_tombstones,
            meta.sequence_min,
            meta.sequence_max,
        ]
    };
    counts(listed) == counts(found) && listed.blobs == found.blobs
}

fn whole_range(meta: &FileMeta) -> super::LostRange {
    super::LostRange {
        offset: 0,
        bytes: meta.size_bytes,
        after: Some(meta.smallest_user_key().to_vec()),
        before: Some(meta.largest_user_key().to_vec()),
    }
}
