//! All statistics of a database: what it is now, and what it has done since it was opened.

use std::fmt;
use std::sync::Arc;

use super::Db;
use super::core::Core;
use super::events::pressure_of;
use crate::compaction::picker;
use crate::error::Error;
use crate::hooks::WriteStall;
use crate::metrics::{HistogramStats, MetricEntry, MetricValue};
use crate::version::{Family, View};

/// A level of a column family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelStats {
    /// Files.
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// How much the level needs compaction; from 1.0 on it gets one.
    pub score: f64,
}

/// A column family now.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FamilyStats {
    /// Its name.
    pub name: String,
    /// Bytes that its memtables hold.
    pub memtable_bytes: u64,
    /// Memtables that wait for their flush.
    pub memtables_waiting: usize,
    /// About how many keys it has; overwritten ones count until a compaction meets them.
    pub estimated_keys: u64,
    /// Bytes that compactions have still to write.
    pub pending_compaction_bytes: u64,
    /// How hard its debt presses on writers: from 0 on, above which they are held back, to 1 and beyond.
    pub write_pressure: f64,
    /// Blob files.
    pub blob_files: usize,
    /// Bytes of them.
    pub blob_bytes: u64,
    /// Bytes of the values in them that tables refer to.
    pub blob_live_bytes: u64,
    /// Its levels.
    pub levels: Vec<LevelStats>,
}

/// Statistics of a database; monotone counters since it was opened, unless they say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Every counter with its name.
    pub counters: Vec<(&'static str, u64)>,
    /// How long things took, by name.
    pub histograms: Vec<(&'static str, HistogramStats)>,
    /// Bytes that memtables hold now.
    pub memtable_bytes: u64,
    /// Bytes in the block cache now.
    pub cache_bytes: u64,
    /// Bytes that the block cache may hold now.
    pub cache_capacity_bytes: u64,
    /// Bytes of indexes and filters of open tables now.
    pub table_memory_bytes: u64,
    /// Tables that are open now.
    pub open_tables: usize,
    /// Blob files that are open now.
    pub open_blob_files: usize,
    /// Snapshots alive now.
    pub snapshots: usize,
    /// Bytes of WAL segments that are needed now.
    pub wal_live_bytes: u64,
    /// Bytes of batches that are prepared and not resolved now.
    pub prepared_bytes: u64,
    /// Bytes of SSTables now, over all families.
    pub table_bytes: u64,
    /// Blob files now, over all families.
    pub blob_files: usize,
    /// Bytes of them.
    pub blob_bytes: u64,
    /// Bytes of the values in them that tables refer to, overwritten ones included that no compaction has met yet.
    pub blob_live_bytes: u64,
    /// Compactions that run now.
    pub compactions_running: usize,
    /// Writers that wait now for others' commits to end; the next one commits for all of them.
    pub writers_waiting: usize,
    /// How writers are let in now.
    pub write_stall: WriteStall,
    /// The highest [pressure](FamilyStats::write_pressure) of all families now.
    pub write_pressure: f64,
    /// The levels of each family now.
    pub levels: Vec<(String, Vec<LevelStats>)>,
    /// Each family now.
    pub families: Vec<FamilyStats>,
    /// What writers or background work run into at the moment.
    pub trouble: Option<Error>,
    /// The metrics as the registry has them, for whoever shows them.
    entries: Vec<MetricEntry>,
}

/// What a database has so much of at the moment.
pub(super) struct Gauge {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    pub help: &'static str,
    pub value: f64,
}

impl Db {
    /// All statistics. O(families x tables).
    pub fn stats(&self) -> Stats {
        let core = self.core();
        let families = core.families.load_full();
        let (open_tables, open_blob_files) = core.tables.open_counts();
        let entries = core.metrics.entries();
        let histograms = entries.iter().filter_map(|entry| match &entry.value {
            MetricValue::Counter(_) => None,
            MetricValue::Histogram(stats) => Some((entry.name, stats.clone())),
        });
        let all: Vec<FamilyStats> = families.by_id.values().map(family_stats).collect();
        let versions = families
            .by_id
            .values()
            .map(|family| Arc::clone(&family.view().version));
        Stats {
            counters: core.metrics.counters(),
            histograms: histograms.collect(),
            memtable_bytes: core.memtable_bytes(),
            cache_bytes: core.tables.block_cache().used_bytes(),
            cache_capacity_bytes: core.tables.block_cache().capacity(),
            table_memory_bytes: core.tables.memory_bytes(),
            open_tables,
            open_blob_files,
            snapshots: core.snapshots.count(),
            wal_live_bytes: core.wal.live_bytes(),
            prepared_bytes: core.prepared_bytes(),
            table_bytes: versions.map(|version| version.size_bytes()).sum(),
            blob_files: all.iter().map(|family| family.blob_files).sum(),
            blob_bytes: all.iter().map(|family| family.blob_bytes).sum(),
            blob_live_bytes: all.iter().map(|family| family.blob_live_bytes).sum(),
            compactions_running: core.running.lock().count(),
            writers_waiting: core.pipeline.waiting(),
            write_stall: core.stall(),
            write_pressure: pressure_of(&families),
            levels: all
                .iter()
                .map(|family| (family.name.clone(), family.levels.clone()))
                .collect(),
            families: all,
            trouble: core.health.current(),
            entries,
        }
    }
}

impl Core {
    fn prepared_bytes(&self) -> u64 {
        self.prepared.lock().bytes()
    }
}

fn family_stats(family: &Arc<Family>) -> FamilyStats {
    let (view, options) = (family.view_owned(), family.options());
    let version = &view.version;
    let scores = picker::scores(version, &options);
    let levels = version.levels().iter().enumerate().map(|(i, level)| LevelStats {
        files: level.len(),
        bytes: level.size_bytes(),
        score: scores
            .iter()
            .find(|score| score.level == i)
            .map_or(0.0, |score| score.score),
    });
    let buffers = view.sealed.iter().chain([&view.active]);
    FamilyStats {
        name: family.name.clone(),
        memtable_bytes: buffers
            .map(|buffer| buffer.table.approximate_bytes() as u64)
            .sum(),
        memtables_waiting: view.sealed.len(),
        estimated_keys: estimate_keys(&view),
        pending_compaction_bytes: picker::estimate_debt(version, &options),
        write_pressure: family.pressure(),
        blob_files: version.blobs().len(),
        blob_bytes: version.blobs().file_bytes(),
        blob_live_bytes: version.blobs().live_bytes(),
        levels: levels.collect(),
    }
}

/// Keys as the tables count them: what was put less what was deleted, overwrites counted twice.
pub(super) fn estimate_keys(view: &View) -> u64 {
    let mut entries: u64 = 0;
    let mut deletions: u64 = 0;
    for (_, file) in view.version.files() {
        entries += file.entries;
        deletions += file.deletions;
    }
    for buffer in view.sealed.iter().chain([&view.active]) {
        entries += buffer.table.entries();
        deletions += buffer.table.deletions();
    }
    entries.saturating_sub(2 * deletions)
}

impl Stats {
    /// Every metric of the registry, section by section.
    pub(super) fn entries(&self) -> &[MetricEntry] {
        &self.entries
    }

    /// What there is now, over all families.
    pub(super) fn gauges(&self) -> Vec<Gauge> {
        let gauge = |name, value: u64, help| Gauge {
            name,
            help,
            value: value as f64,
        };
        vec![
            gauge(
                "memtable_bytes",
                self.memtable_bytes,
                "Bytes that memtables hold.",
            ),
            gauge("cache_bytes", self.cache_bytes, "Bytes in the block cache."),
            gauge(
                "cache_capacity_bytes",
                self.cache_capacity_bytes,
                "Bytes that the block cache may hold.",
            ),
            gauge(
                "table_memory_bytes",
                self.table_memory_bytes,
                "Bytes of indexes and filters of open tables.",
            ),
            gauge("open_tables", self.open_tables as u64, "Tables that are open."),
            gauge(
                "open_blob_files",
                self.open_blob_files as u64,
                "Blob files that are open.",
            ),
            gauge(
                "snapshots",
                self.snapshots as u64,
                "Snapshots alive, those of iterators included.",
            ),
            gauge(
                "wal_live_bytes",
                self.wal_live_bytes,
                "Bytes of WAL segments that are needed.",
            ),
            gauge(
                "prepared_bytes",
                self.prepared_bytes,
                "Bytes of batches that are prepared and neither committed nor rolled back.",
            ),
            gauge("table_bytes", self.table_bytes, "Bytes of SSTables."),
            gauge("blob_files", self.blob_files as u64, "Blob files."),
            gauge("blob_bytes", self.blob_bytes, "Bytes of blob files."),
            gauge(
                "blob_live_bytes",
                self.blob_live_bytes,
                "Bytes of the values in blob files that tables refer to.",
            ),
            gauge(
                "compactions_running",
                self.compactions_running as u64,
                "Compactions that run.",
            ),
            gauge(
                "writers_waiting",
                self.writers_waiting as u64,
                "Writers that wait for others' commits to end.",
            ),
            gauge(
                "write_stall",
                self.write_stall as u64,
                "Whether writers are held back (1) or stopped (2).",
            ),
            Gauge {
                name: "write_pressure",
                help: "How hard compactions being behind presses on writers: held back above 0, to a tenth of the rate at 1.",
                value: self.write_pressure,
            },
            gauge(
                "trouble",
                u64::from(self.trouble.is_some()),
                "Whether writers or background work run into an error.",
            ),
        ]
    }

    /// What has happened since the database was opened, every metric with what it means, in sections.
    pub fn counters_text(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for entry in &self.entries {
            if entry.section != section {
                section = entry.section;
                text.push_str(section);
                text.push('\n');
            }
            let value = match &entry.value {
                MetricValue::Counter(count) => count.to_string(),
                MetricValue::Histogram(times) => described(times),
            };
            push_line(&mut text, entry.name, &value, &entry.help);
        }
        text
    }
}

fn push_line(text: &mut String, name: &str, value: &str, help: &str) {
    text.push_str(&format!("  {name:<26} {value:>14}  {help}\n"));
}

fn described(times: &HistogramStats) -> String {
    let longest = match times.longest_us() {
        _ if times.count() == 0 => return "0".to_owned(),
        Some(us) => format!("at most {us}"),
        None => "some beyond all bounds".to_owned(),
    };
    format!("{} x {} us, {longest}", times.count(), times.average_us())
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, levels) in &self.levels {
            writeln!(f, "column family {name}")?;
            writeln!(f, "  level  files        bytes  score")?;
            for (i, level) in levels.iter().enumerate().filter(|(_, level)| level.files > 0) {
                writeln!(
                    f,
                    "  {i:>5}  {:>5}  {:>11}  {:>5.2}",
                    level.files, level.bytes, level.score
                )?;
            }
        }
        let mut now = String::from("now\n");
        for gauge in self.gauges() {
            let value = match gauge.name {
                "write_pressure" => format!("{:.3}", gauge.value),
                _ => format!("{:.0}", gauge.value),
            };
            push_line(&mut now, gauge.name, &value, gauge.help);
        }
        write!(f, "{now}{}", self.counters_text())?;
        match &self.trouble {
            Some(error) => writeln!(f, "trouble {error}"),
            None => writeln!(f, "trouble none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use esker_env::Env;

    use crate::db::Opener;
    use crate::options::Options;

    #[test]
    fn every_metric_and_gauge_has_one_line_that_says_what_it_is() {
        let db = Opener::new(Options::default())
            .env(Env::simulated(1).0)
            .open("/db")
            .unwrap();
        db.put(b"key", b"value").unwrap();
        db.flush().unwrap();
        let stats = db.stats();
        let text = stats.to_string();
        let gauges = stats.gauges();
        let expected = stats
            .entries()
            .iter()
            .map(|entry| (entry.name, entry.help.as_str()))
            .chain(gauges.iter().map(|gauge| (gauge.name, gauge.help)));
        let mut shown = 0;
        for (name, help) in expected {
            let mut lines = text
                .lines()
                .filter(|line| line.split_whitespace().next() == Some(name) && line.starts_with("  "));
            let line = lines.next().unwrap_or_else(|| panic!("{name} is not shown"));
            assert!(line.ends_with(help), "{line}");
            assert_eq!(lines.next(), None, "{name} is shown twice");
            shown += 1;
        }
        assert!(shown > 60, "{shown}");
        let words = |name: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(name));
            line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!(
            (words("flushes"), words("flush_us")),
            ("1".to_owned(), "1".to_owned())
        );
        assert_eq!(
            stats.histograms.len() + stats.counters.len(),
            stats.entries().len()
        );
        assert_eq!(stats.families[0].levels, stats.levels[0].1);
    }
}
