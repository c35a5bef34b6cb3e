//! `stats`: describes column families, levels, sizes and log.

use std::collections::BTreeMap;
use std::io::{self, Write};

use esker::Stats;
use esker::inspect::{BlobUseInfo, DatabaseInfo, FamilyInfo, FileEntry, FileRole, Inspector, TableInfo};
use serde_json::{Value, json};

use crate::args::{self, Common, StatsFormat};
use crate::database::{folder, reading};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, args: &args::Stats, output: &mut Output) -> Result<u8> {
    if args.format == StatsFormat::Prometheus {
        let text = reading(common, |db, _| Ok(db.metrics_text()?))?;
        output.write_all(text.as_bytes())?;
        return Ok(EXIT_OK);
    }
    let dir = Inspector::new(folder(common)?);
    let facts = reading(common, |db, _| {
        let mut families = BTreeMap::new();
        for name in db.column_family_names() {
            let property = |property| {
                Ok::<_, crate::failure::Failure>(db.property(&db.column_family(&name)?, property)?)
            };
            let live = Live {
                keys: property("estimate-keys")?.parse().unwrap_or(0),
                rows_in_log: property("entries-active-memtable")?.parse().unwrap_or(0),
                debt_bytes: property("pending-compaction-bytes")?.parse().unwrap_or(0),
            };
            families.insert(name, live);
        }
        Ok(Facts {
            info: dir.describe()?,
            files: dir.files()?,
            last_sequence: db.last_sequence(),
            families,
            stats: db.stats(),
        })
    })?;
    if output.json || args.format == StatsFormat::Json {
        output.json_line(&facts.json())?;
    } else {
        facts.print(&folder(common)?.display().to_string(), output)?;
        if args.counters {
            writeln!(output, "\ncounted while this command read the database")?;
            output.write_all(facts.stats.counters_text().as_bytes())?;
        }
    }
    Ok(EXIT_OK)
}

struct Facts {
    info: DatabaseInfo,
    files: Vec<FileEntry>,
    last_sequence: u64,
    families: BTreeMap<String, Live>,
    stats: Stats,
}

/// What only an open database knows.
#[derive(Clone, Copy, Default)]
struct Live {
    keys: u64,
    rows_in_log: u64,
    debt_bytes: u64,
}

/// What adds up over tables.
#[derive(Clone, Copy, Default)]
struct Sum {
    tables: u64,
    size_bytes: u64,
    entries: u64,
    deletions: u64,
    range_tombstones: u64,
}

impl Sum {
    fn of<'a>(tables: impl IntoIterator<Item = &'a TableInfo>) -> Self {
        tables.into_iter().fold(Self::default(), |sum, table| Self {
            tables: sum.tables + 1,
            size_bytes: sum.size_bytes + table.size_bytes,
            entries: sum.entries + table.entries,
            deletions: sum.deletions + table.deletions,
            range_tombstones: sum.range_tombstones + table.range_tombstones,
        })
    }

    fn json(&self) -> Value {
        json!({
            "tables": self.tables, "bytes": self.size_bytes, "entries": self.entries,
            "deletions": self.deletions, "range_tombstones": self.range_tombstones,
        })
    }
}

/// What is in a family's blob files: files, bytes, and bytes that tables refer to.
fn blobs(family: &FamilyInfo) -> (u64, u64, u64) {
    let add = |sum: (u64, u64, u64), used: &BlobUseInfo| {
        (
            sum.0 + 1,
            sum.1.saturating_add(used.blob.size_bytes),
            sum.2.saturating_add(used.live_bytes),
        )
    };
    family.blobs.iter().fold((0, 0, 0), add)
}

fn levels(family: &FamilyInfo) -> BTreeMap<usize, Vec<&TableInfo>> {
    let mut levels: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for table in &family.tables {
        levels.entry(table.level).or_default().push(table);
    }
    levels
}

impl Facts {
    fn files_of(&self, role: FileRole) -> (u64, u64) {
        let files = self.files.iter().filter(|file| file.role == Some(role));
        files.fold((0, 0), |(count, bytes), file| {
            (count + 1, bytes + file.size_bytes)
        })
    }

    /// Of all families.
    fn blob_live_bytes(&self) -> u64 {
        self.info.families.iter().map(|family| blobs(family).2).sum()
    }

    fn json(&self) -> Value {
        let (blob_files, blob_bytes) = self.files_of(FileRole::Blob);
        let (wal_files, wal_bytes) = self.files_of(FileRole::Wal);
        let (table_files, table_bytes) = self.files_of(FileRole::Table);
        let (damaged_files, damaged_bytes) = self.files_of(FileRole::DamagedWal);
        let families = self.info.families.iter().map(|family| {
            let live = self.families.get(&family.name).copied().unwrap_or_default();
            let levels = levels(family).into_iter().map(|(level, tables)| {
                let mut sum = Sum::of(tables).json();
                sum["level"] = level.into();
                sum
            });
            let mut fields = Sum::of(&family.tables).json();
            fields["id"] = family.id.into();
            fields["name"] = family.name.clone().into();
            fields["key_order"] = family.key_order.clone().into();
            fields["merge_operator"] = family.merge_operator.clone().into();
            fields["options"] = options_json(&family.options);
            fields["estimated_keys"] = live.keys.into();
            fields["rows_in_log"] = live.rows_in_log.into();
            fields["pending_compaction_bytes"] = live.debt_bytes.into();
            let (files, bytes, live_bytes) = blobs(family);
            fields["blob_files"] = files.into();
            fields["blob_bytes"] = bytes.into();
            fields["blob_live_bytes"] = live_bytes.into();
            fields["levels"] = levels.collect();
            fields
        });
        json!({
            "database_id": format!("{:032x}", self.info.database_id),
            "last_sequence": self.last_sequence,
            "table_files": table_files, "table_bytes": table_bytes,
            "blob_files": blob_files, "blob_bytes": blob_bytes, "blob_live_bytes": self.blob_live_bytes(),
            "wal_files": wal_files, "wal_bytes": wal_bytes,
            "damaged_wal_files": damaged_files, "damaged_wal_bytes": damaged_bytes,
            "families": families.collect::<Vec<_>>(),
            "counters": self.stats.counters.iter().copied().collect::<BTreeMap<_, _>>(),
            "times": self.times(),
        })
    }

    /// How long things took while the command read the database.
    fn times(&self) -> Value {
        let times = self.stats.histograms.iter().map(|(name, times)| {
            let facts = json!({ "count": times.count(), "sum_us": times.sum_us });
            ((*name).to_owned(), facts)
        });
        times.collect()
    }

    fn print(&self, path: &str, out: &mut Output) -> io::Result<()> {
        let (wal_files, wal_bytes) = self.files_of(FileRole::Wal);
        let (table_files, table_bytes) = self.files_of(FileRole::Table);
        writeln!(out, "database       {path}")?;
        writeln!(out, "id             {:032x}", self.info.database_id)?;
        writeln!(out, "last sequence  {}", self.last_sequence)?;
        writeln!(
            out,
            "tables         {} in {table_files} files",
            human_bytes(table_bytes)
        )?;
        let (blob_files, blob_bytes) = self.files_of(FileRole::Blob);
        if blob_files > 0 {
            writeln!(
                out,
                "blobs          {} in {blob_files} files, {} of them live",
                human_bytes(blob_bytes),
                human_bytes(self.blob_live_bytes())
            )?;
        }
        writeln!(
            out,
            "log            {} in {wal_files} files",
            human_bytes(wal_bytes)
        )?;
        let (damaged_files, damaged_bytes) = self.files_of(FileRole::DamagedWal);
        if damaged_files > 0 {
            writeln!(
                out,
                "damaged log    {} in {damaged_files} files, kept aside; `esker dump wal` reads them",
                human_bytes(damaged_bytes)
            )?;
        }
        for family in &self.info.families {
            let live = self.families.get(&family.name).copied().unwrap_or_default();
            let operator = family.merge_operator.as_deref().unwrap_or("none");
            writeln!(out, "\ncolumn family {}", family.name)?;
            writeln!(out, "  key order {}, merge operator {operator}", family.key_order)?;
            writeln!(
                out,
                "  about {} keys, {} rows only in the log",
                live.keys, live.rows_in_log
            )?;
            writeln!(out, "  {} wait for compaction", human_bytes(live.debt_bytes))?;
            let (files, bytes, live_bytes) = blobs(family);
            if files > 0 {
                writeln!(
                    out,
                    "  {} of values in {files} blob files, {} of them live",
                    human_bytes(bytes),
                    human_bytes(live_bytes)
                )?;
            }
            if family.tables.is_empty() {
                continue;
            }
            writeln!(
                out,
                "  level  tables        size      entries    deletions  range tombstones"
            )?;
            let all = Sum::of(&family.tables);
            let rows = levels(family)
                .into_iter()
                .map(|(level, tables)| (level.to_string(), Sum::of(tables)));
            for (name, sum) in rows.chain([("all".to_owned(), all)]) {
                writeln!(
                    out,
                    "  {name:>5}  {:>6}  {:>10}  {:>11}  {:>11}  {:>16}",
                    sum.tables,
                    human_bytes(sum.size_bytes),
                    sum.entries,
                    sum.deletions,
                    sum.range_tombstones
                )?;
            }
        }
        Ok(())
    }
}

/// Stored settings as an object of texts.
pub fn options_json(options: &str) -> Value {
    let pairs = options.split(';').filter_map(|part| part.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect()
}
