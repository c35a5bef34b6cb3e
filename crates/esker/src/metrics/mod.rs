//! Counters and times of what the engine did, read by `stats`, `metrics_text`, properties and the lab.
//!
//! All are monotone and relaxed: they are statistics, never synchronisation. The table below is the registry: whoever shows
//! metrics goes through [`Metrics::entries`], so that none is forgotten. Names end with their unit (`_bytes`, `_us`), if it is
//! not a number of things.

mod histogram;

use std::sync::atomic::{AtomicU64, Ordering};

pub use histogram::{BUCKETS, Histogram, HistogramStats};

/// A metric as it is now.
#[derive(Clone, Debug)]
pub struct MetricEntry {
    /// What it is about, in one or two words.
    pub section: &'static str,
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// What it counts.
    pub help: String,
    /// How much.
    pub value: MetricValue,
}

/// What a metric says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricValue {
    /// Of a [`Counter`].
    Counter(u64),
    /// Of a [`Histogram`].
    Histogram(HistogramStats),
}

macro_rules! registry {
    ($($section:literal { $($(#[doc = $help:literal])+ $name:ident: $kind:ident,)* })*) => {
        /// The live metrics of a database.
        #[derive(Debug, Default)]
        pub struct Metrics { $($($(#[doc = $help])+ pub $name: $kind,)*)* }

        impl Metrics {
            /// Every metric, in declaration order, section by section.
            pub fn entries(&self) -> Vec<MetricEntry> {
                vec![$($(MetricEntry {
                    section: $section,
                    name: stringify!($name),
                    help: concat!($($help),+).trim().to_owned(),
                    value: self.$name.value(),
                },)*)*]
            }
        }
    };
}

impl Metrics {
    /// Every counter with its name, in declaration order.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let entries = self.entries().into_iter();
        entries
            .filter_map(|entry| match entry.value {
                MetricValue::Counter(count) => Some((entry.name, count)),
                MetricValue::Histogram(_) => None,
            })
            .collect()
    }
}

/// A monotone counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn value(&self) -> MetricValue {
        MetricValue::Counter(self.get())
    }
}

impl Histogram {
    fn value(&self) -> MetricValue {
        MetricValue::Histogram(self.stats())
    }
}

registry! {
    "writes" {
        /// Mutations committed.
        writes: Counter,
        /// Bytes of batches committed.
        write_bytes: Counter,
        /// Commit groups.
        commit_groups: Counter,
        /// Batches prepared for a two-phase commit.
        prepared: Counter,
        /// Prepared batches committed.
        prepared_committed: Counter,
        /// Prepared batches rolled back.
        prepared_rolled_back: Counter,
        /// Time that writes were held back or stopped, in microseconds.
        stall_us: Counter,
        /// How long single waits of writers took.
        stall_wait_us: Histogram,
    }
    "log" {
        /// Bytes appended to the WAL, framing included.
        wal_bytes: Counter,
        /// Syncs of the WAL.
        wal_syncs: Counter,
        /// How long syncs that writers waited for took.
        wal_sync_us: Histogram,
        /// Batches found damaged and skipped by recovery.
        recovery_skipped: Counter,
        /// WAL bytes that recovery could not use.
        recovery_lost_bytes: Counter,
    }
    "flushes" {
        /// Memtables sealed.
        memtables_sealed: Counter,
        /// Flushes finished.
        flushes: Counter,
        /// Bytes of SSTables and blob files written by flushes.
        flush_bytes: Counter,
        /// How long flushes took.
        flush_us: Histogram,
    }
    "compactions" {
        /// Compactions finished (trivial moves not counted).
        compactions: Counter,
        /// Of these, those of tables with many tombstones.
        compactions_for_tombstones: Counter,
        /// Of these, those of tables that were too old.
        compactions_for_age: Counter,
        /// Of these, those made early because readers stepped over hidden rows again and again.
        compactions_for_hidden_rows: Counter,
        /// Of these, those for space in blob files.
        compactions_for_blob_space: Counter,
        /// Files moved to another level without rewriting them.
        trivial_moves: Counter,
        /// Bytes of SSTables read by compactions.
        compaction_read_bytes: Counter,
        /// Bytes of SSTables and blob files written by compactions.
        compaction_write_bytes: Counter,
        /// How long compactions took.
        compaction_us: Histogram,
        /// Entries that compactions dropped.
        compaction_dropped: Counter,
        /// Rows that the compaction filter removed, or that had expired, in flushes and compactions.
        rows_filtered: Counter,
        /// Rows that the compaction filter gave another value, in flushes and compactions.
        rows_changed: Counter,
        /// Merges that the operator refused during compactions; their operands stay.
        merge_failures: Counter,
        /// Values that compactions moved from one blob file to another.
        blob_values_moved: Counter,
        /// Bytes of the records of these values.
        blob_moved_bytes: Counter,
    }
    "files" {
        /// SSTables ingested.
        tables_ingested: Counter,
        /// Bytes of SSTables ingested.
        ingested_bytes: Counter,
        /// SSTables dropped with a key range.
        tables_dropped: Counter,
        /// Bytes of SSTables dropped with a key range.
        dropped_bytes: Counter,
        /// Checkpoints made.
        checkpoints: Counter,
        /// SSTables and blob files removed because nobody needed them any more.
        files_removed: Counter,
    }
    "reads" {
        /// Point reads.
        gets: Counter,
        /// Point reads that found a value.
        gets_found: Counter,
        /// Iterator positionings.
        seeks: Counter,
        /// Iterators made.
        iterators_opened: Counter,
        /// Iterators dropped.
        iterators_closed: Counter,
        /// Filter checks that spared a block read.
        filter_negatives: Counter,
        /// Filter checks that did not, though the key was not in the file.
        filter_false_positives: Counter,
        /// Filter checks that spared a prefix scan a look into a table.
        prefix_filter_negatives: Counter,
    }
    "cache" {
        /// Blocks found in the block cache.
        cache_hits: Counter,
        /// Blocks read from files for users.
        cache_misses: Counter,
        /// Blocks that flushes and compactions put into the block cache as they wrote them.
        blocks_warmed: Counter,
    }
    "listeners" {
        /// Events told to listeners.
        events_told: Counter,
        /// Events not told, because listeners were too slow.
        events_lost: Counter,
        /// Calls of listeners that panicked.
        listener_panics: Counter,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_says_what_it_is_and_has_a_name_of_its_own() {
        let metrics = Metrics::default();
        metrics.write_bytes.add(7);
        let entries = metrics.entries();
        let mut names = BTreeSet::new();
        for entry in &entries {
            assert!(names.insert(entry.name), "{} is there twice", entry.name);
            assert!(entry.help.ends_with('.'), "{}: {}", entry.name, entry.help);
            let is_time = matches!(entry.value, MetricValue::Histogram(_));
            assert!(
                !is_time || entry.name.ends_with("_us"),
                "{} without a unit",
                entry.name
            );
        }
        assert!(metrics.counters().contains(&("write_bytes", 7)));
        let histograms = entries.len() - metrics.counters().len();
        assert_eq!(histograms, 4);
    }
}
