//! What is told about a database: properties by name, approximate sizes.

use super::stats::estimate_keys;
use super::{ColumnFamily, Db, kept_aside};
use crate::compaction::picker;
use crate::error::{Error, Result};
use crate::read::Estimate;

/// Names that [`Db::property`] knows.
pub const PROPERTIES: [&str; 18] = [
    "memtable-bytes",
    "memtables-waiting",
    "entries-active-memtable",
    "estimate-keys",
    "table-bytes",
    "files",
    "blob-files",
    "blob-bytes",
    "blob-live-bytes",
    "levels",
    "pending-compaction-bytes",
    "compactions-running",
    "write-pressure",
    "snapshots",
    "iterators",
    "cache-bytes",
    "damaged-wal-bytes",
    "stats",
];

impl Db {
    /// A property as text. Errors: `InvalidArgument` for an unknown name, listing the known ones; `Io` for
    /// `damaged-wal-bytes` (of WAL files that recoveries kept aside) if the folder can't be listed.
    pub fn property(&self, family: &ColumnFamily, name: &str) -> Result<String> {
        let core = self.core();
        let view = family.family.view_owned();
        let options = family.family.options();
        Ok(match name {
            "memtable-bytes" => core.memtable_bytes().to_string(),
            "memtables-waiting" => view.sealed.len().to_string(),
            "entries-active-memtable" => view.active.table.entries().to_string(),
            "estimate-keys" => estimate_keys(&view).to_string(),
            "table-bytes" => view.version.size_bytes().to_string(),
            "files" => view.version.file_count().to_string(),
            "blob-files" => view.version.blobs().len().to_string(),
            "blob-bytes" => view.version.blobs().file_bytes().to_string(),
            "blob-live-bytes" => view.version.blobs().live_bytes().to_string(),
            "levels" => {
                let levels = view.version.levels().iter();
                levels
                    .map(|level| level.len().to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            "pending-compaction-bytes" => picker::estimate_debt(&view.version, &options).to_string(),
            "compactions-running" => core.running.lock().count().to_string(),
            "write-pressure" => format!("{:.3}", family.family.pressure()),
            "snapshots" => core.snapshots.count().to_string(),
            "iterators" => {
                let closed = core.metrics.iterators_closed.get();
                core.metrics
                    .iterators_opened
                    .get()
                    .saturating_sub(closed)
                    .to_string()
            }
            "cache-bytes" => core.tables.block_cache().used_bytes().to_string(),
            "damaged-wal-bytes" => {
                let segments = kept_aside::list(&*core.env.fs, &core.dir)?;
                segments.iter().map(|(_, bytes)| bytes).sum::<u64>().to_string()
            }
            "stats" => self.stats().to_string(),
            _ => {
                let known = PROPERTIES.join(", ");
                return Err(Error::invalid(format!(
                    "there is no property '{name}'; there are: {known}"
                )));
            }
        })
    }

    /// About how many bytes of SSTables, blob files and memtables hold the keys from `start` up to `end` (exclusive). Reads
    /// no data blocks; errs by up to half a block at either end of each SSTable, by compression, and as if the values in blob
    /// files were spread evenly over the rows of an SSTable that is covered in part. O(levels x log tables + tables of level 0).
    pub fn approximate_size(&self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<u64> {
        Ok(self.estimate(family, start, end)?.bytes)
    }

    /// About how many keys there are from `start` up to `end` (exclusive), in memtables and SSTables. Reads no data
    /// blocks: O(levels x log tables + tables of level 0). Errs as [`approximate_size`](Self::approximate_size) does, as if the rows of an SSTable were
    /// equally large and its deletes spread evenly; a key counts once for each memtable and table that has it, and a delete takes
    /// away one, until a compaction meets both. Deleted ranges take away nothing until then.
    pub fn approximate_count(&self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<u64> {
        Ok(self.estimate(family, start, end)?.keys())
    }

    fn estimate(&self, family: &ColumnFamily, start: &[u8], end: &[u8]) -> Result<Estimate> {
        self.core().check_open()?;
        crate::read::estimate(&family.family.view_owned(), &self.core().tables, start, end)
    }
}

#[cfg(test)]
mod tests {
    use esker_env::Env;

    use crate::db::Opener;
    use crate::options::{ColumnFamilyOptions, CompactionStyle, MemtableKind, Options};

    /// Values in blob files were left out, so that a database of large values seemed to be a few KiB.
    #[test]
    fn approximate_sizes_count_values_in_blob_files() {
        let options = Options {
            default_column_family: ColumnFamilyOptions {
                compaction_style: CompactionStyle::Manual,
                block_bytes: 512,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
        let key = |i: u32| i.to_be_bytes();
        // The first half of the rows has its values in the table.
        for i in 0..1000 {
            db.put(&key(i), &[7; 100]).unwrap();
        }
        db.flush().unwrap();
        for i in 1000..2000 {
            db.put(&key(i), &[7; 1000]).unwrap();
        }
        db.flush().unwrap();
        let (family, stats) = (db.default_column_family(), db.stats());
        assert!(stats.blob_live_bytes > 1_000_000);
        let size = |from, to| db.approximate_size(&family, &key(from), &key(to)).unwrap();
        let empty_memtable = size(5000, 5001);
        let all = size(0, 2000) - empty_memtable;
        assert_eq!(all, stats.table_bytes + stats.blob_live_bytes);
        for (from, to, live_part) in [
            (1000, 1500, 0.5),
            (1250, 1350, 0.1),
            (900, 1100, 0.1),
            (1900, 3000, 0.1),
        ] {
            let (bytes, expected) = (size(from, to), stats.blob_live_bytes as f64 * live_part);
            assert!(
                (0.9..1.4).contains(&(bytes as f64 / expected)),
                "{from} to {to}: {bytes} bytes, {expected} of values"
            );
        }
        let in_tables = size(0, 500);
        assert!((50_000..60_000).contains(&in_tables), "{in_tables}");
    }
    #[test]
    fn approximate_counts_are_near_in_memtables_and_levels() {
        let options = Options {
            default_column_family: ColumnFamilyOptions {
                block_bytes: 512,
                file_bytes: 16 << 10,
                level_base_bytes: 64 << 10,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
        let family = db.default_column_family();
        let key = |i: u32| i.to_be_bytes();
        let count = |from: u32, to: u32| db.approximate_count(&family, &key(from), &key(to)).unwrap();
        let near = |from: u32, to: u32, wanted: u64| {
            let (found, slack) = (count(from, to), wanted / 4 + 30);
            assert!(
                found.abs_diff(wanted) <= slack,
                "{from} to {to}: {found}, not {wanted}"
            );
        };
        for i in 0..20_000 {
            db.put(&key(i), &[i as u8; 90]).unwrap();
        }
        let ranges = [
            (0, 20_000),
            (0, 10),
            (5_000, 15_000),
            (19_000, 90_000),
            (777, 1_777),
        ];
        for flushed in [false, true] {
            if flushed {
                db.compact_range(None, None).unwrap();
                assert_eq!(
                    count(0, 20_000),
                    20_000,
                    "whole tables are counted, not estimated"
                );
            }
            for (from, to) in ranges {
                near(from, to, u64::from(to.min(20_000) - from));
            }
            assert_eq!((count(30_000, 40_000), count(7, 7), count(9, 3)), (0, 0, 0));
        }
        let tables: u64 = db.property(&family, "files").unwrap().parse().unwrap();
        assert!(tables > 5, "{tables}");
        for i in 0..10_000 {
            db.delete(&key(i)).unwrap();
        }
        near(0, 20_000, 10_000);
        near(12_000, 18_000, 6_000);
        db.flush().unwrap();
        near(0, 20_000, 10_000);
        assert!(count(2_000, 4_000) < 500, "{}", count(2_000, 4_000));
    }

    /// What reaches from within a block out of its table was the whole block, what reaches into it nothing.
    #[test]
    fn the_part_of_a_block_that_a_range_has_is_taken_for_half_of_it() {
        let db = Opener::new(Options::default())
            .env(Env::simulated(1).0)
            .open("/db")
            .unwrap();
        let family = db.default_column_family();
        for i in 0..100_u32 {
            db.put(&i.to_be_bytes(), b"value").unwrap();
        }
        db.flush().unwrap();
        let count = |from: u32, to: u32| {
            db.approximate_count(&family, &from.to_be_bytes(), &to.to_be_bytes())
                .unwrap()
        };
        assert_eq!(count(0, 1000), 100);
        assert!((45..=55).contains(&count(80, 1000)), "{}", count(80, 1000));
        assert!((45..=55).contains(&count(0, 20)), "{}", count(0, 20));
        assert_eq!(count(30, 60), 0, "who knows");
    }

    /// Each time that a row was written counted, while it was in a memtable.
    #[test]
    fn a_row_that_is_overwritten_in_a_memtable_counts_once() {
        for kind in [MemtableKind::Ordered, MemtableKind::Vector] {
            let options = Options {
                default_column_family: ColumnFamilyOptions {
                    memtable_kind: kind,
                    ..ColumnFamilyOptions::default()
                },
                ..Options::default()
            };
            let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
            let family = db.default_column_family();
            let key = |i: u32| i.to_be_bytes();
            let count = |from, to| db.approximate_count(&family, &key(from), &key(to)).unwrap();
            for round in 0..5_u8 {
                for i in 0..4000 {
                    db.put(&key(i), &[round; 50]).unwrap();
                }
            }
            assert_eq!(
                (count(10, 20), count(0, 1), count(5000, 6000)),
                (10, 1, 0),
                "{kind:?}"
            );
            for (from, to) in [(0, 4000), (1000, 2000), (3500, 9000)] {
                let (found, wanted) = (count(from, to), u64::from(to.min(4000) - from));
                assert!(
                    found.abs_diff(wanted) <= wanted * 2 / 5,
                    "{kind:?}, {from} to {to}: {found}, not {wanted}"
                );
            }
            // What they take is no less for it.
            let bytes = db.approximate_size(&family, &key(0), &key(4000)).unwrap();
            assert!(bytes > 5 * 4000 * 50, "{kind:?}: {bytes}");
        }
    }
}
