//! All metrics as text for Prometheus and what else reads OpenMetrics.
//!
//! The registry of the engine is `metrics/mod.rs`; here its state of one moment is a collector of `prometheus-client`, which
//! knows the format: names, escapes, order. Names begin with `esker_` and end with the base unit (`_bytes`, `_seconds`), of
//! counters with `_total` behind it. Columns of the registry in microseconds become seconds.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::Db;
use super::stats::{FamilyStats, Stats};
use crate::error::{Error, Result};
use crate::metrics::{HistogramStats, MetricValue};

impl Db {
    /// All metrics as text in the OpenMetrics format (`application/openmetrics-text; version=1.0.0`), which Prometheus reads:
    /// every counter and time of [`stats`](Self::stats), what there is now, and that again by family and level, with the labels
    /// `family` and `level`. Counters begin at 0 when the database is opened. O(families x tables).
    ///
    /// Error: `Bug`.
    pub fn metrics_text(&self) -> Result<String> {
        let mut registry = Registry::with_prefix("esker");
        registry.register_collector(Box::new(Moment { stats: self.stats() }));
        let mut out = String::new();
        text::encode(&mut out, &registry).map_err(|_| Error::bug("metrics can't be written as text"))?;
        Ok(out)
    }
}

/// The metrics of one moment.
#[derive(Debug)]
struct Moment {
    stats: Stats,
}

impl Collector for Moment {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for entry in self.stats.entries() {
            let (name, unit) = named(entry.name);
            match &entry.value {
                MetricValue::Counter(count) => {
                    let mut metric =
                        encoder.encode_descriptor(name, &entry.help, unit.as_ref(), MetricType::Counter)?;
                    match unit {
                        Some(Unit::Seconds) => {
                            metric.encode_counter::<NoLabelSet, _, f64>(&seconds(*count), None)?;
                        }
                        _ => metric.encode_counter::<NoLabelSet, _, f64>(count, None)?,
                    }
                }
                MetricValue::Histogram(times) => encoder
                    .encode_descriptor(name, &entry.help, unit.as_ref(), MetricType::Histogram)?
                    .encode_histogram::<NoLabelSet>(
                        seconds(times.sum_us),
                        times.count(),
                        &buckets(times),
                        None,
                    )?,
            }
        }
        for gauge in self.stats.gauges() {
            let (name, unit) = named(gauge.name);
            encoder
                .encode_descriptor(name, gauge.help, unit.as_ref(), MetricType::Gauge)?
                .encode_gauge(&gauge.value)?;
        }
        self.encode_families(&mut encoder)?;
        self.encode_levels(&mut encoder)
    }
}

/// A gauge that each family, or each level, has.
struct Column<T> {
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
}

const FAMILY_COLUMNS: [Column<FamilyStats>; 8] = [
    Column {
        name: "family_memtable_bytes",
        help: "Bytes that the family's memtables hold.",
        value: |family| family.memtable_bytes as f64,
    },
    Column {
        name: "family_memtables_waiting",
        help: "Memtables of the family that wait for their flush.",
        value: |family| family.memtables_waiting as f64,
    },
    Column {
        name: "family_estimated_keys",
        help: "About how many keys the family has.",
        value: |family| family.estimated_keys as f64,
    },
    Column {
        name: "family_pending_compaction_bytes",
        help: "Bytes that compactions of the family have still to write.",
        value: |family| family.pending_compaction_bytes as f64,
    },
    Column {
        name: "family_write_pressure",
        help: "How hard the family's debt presses on writers: held back above 0, to a tenth of the rate at 1.",
        value: |family| family.write_pressure,
    },
    Column {
        name: "family_blob_files",
        help: "Blob files of the family.",
        value: |family| family.blob_files as f64,
    },
    Column {
        name: "family_blob_bytes",
        help: "Bytes of the family's blob files.",
        value: |family| family.blob_bytes as f64,
    },
    Column {
        name: "family_blob_live_bytes",
        help: "Bytes of the values in the family's blob files that its tables refer to.",
        value: |family| family.blob_live_bytes as f64,
    },
];

const LEVEL_COLUMNS: [Column<super::LevelStats>; 3] = [
    Column {
        name: "level_files",
        help: "SSTables in the level.",
        value: |level| level.files as f64,
    },
    Column {
        name: "level_bytes",
        help: "Bytes of the level's SSTables.",
        value: |level| level.bytes as f64,
    },
    Column {
        name: "level_score",
        help: "How much the level needs compaction; from 1 on it gets one.",
        value: |level| level.score,
    },
];

impl Moment {
    fn encode_families(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for column in &FAMILY_COLUMNS {
            let (name, unit) = named(column.name);
            let mut metric =
                encoder.encode_descriptor(name, column.help, unit.as_ref(), MetricType::Gauge)?;
            for family in &self.stats.families {
                let labels = [("family", family.name.as_str())];
                metric
                    .encode_family(&labels)?
                    .encode_gauge(&(column.value)(family))?;
            }
        }
        Ok(())
    }

    fn encode_levels(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for column in &LEVEL_COLUMNS {
            let (name, unit) = named(column.name);
            let mut metric =
                encoder.encode_descriptor(name, column.help, unit.as_ref(), MetricType::Gauge)?;
            for family in &self.stats.families {
                for (i, level) in family.levels.iter().enumerate() {
                    let number = i.to_string();
                    let labels = [("family", family.name.as_str()), ("level", number.as_str())];
                    metric
                        .encode_family(&labels)?
                        .encode_gauge(&(column.value)(level))?;
                }
            }
        }
        Ok(())
    }
}

/// A name of the registry without its unit, and the base unit.
fn named(name: &str) -> (&str, Option<Unit>) {
    if let Some(name) = name.strip_suffix("_us") {
        (name, Some(Unit::Seconds))
    } else if let Some(name) = name.strip_suffix("_bytes") {
        (name, Some(Unit::Bytes))
    } else {
        (name, None)
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// The buckets by where they end.
fn buckets(times: &HistogramStats) -> Vec<(f64, u64)> {
    let end = |bucket| HistogramStats::end_us(bucket).map_or(f64::INFINITY, seconds);
    times
        .counts
        .iter()
        .enumerate()
        .map(|(bucket, count)| (end(bucket), *count))
        .collect()
}
