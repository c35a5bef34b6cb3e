//! The result file: one JSON document a run, version 1.
//!
//! `{"schema":1,"machine":{…},"settings":{…},"limits":{…},"rows":[…]}` with flat rows. Fields keep their names and
//! units for ever; new ones may come, and a reader ignores those that it does not know and defaults those that are
//! missing. Units are the last word of a name: `_us` microseconds, `_s` or `seconds` seconds, `_bytes` bytes.

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::machine::Machine;
use crate::{Error, Result};

/// The version written, and the only one read.
pub const SCHEMA: u32 = 1;

/// One run of the lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the lab that wrote it.
    pub lab_version: String,
    /// When it started, as seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The command that started it.
    pub command: String,
    /// Where.
    pub machine: Machine,
    /// With what.
    pub settings: Settings,
    /// What the disk and memory can do at most, when that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Stopped before its end: the rows are what was finished.
    pub partial: bool,
    /// Things worth knowing: a limit that could not be set, an engine that was left out.
    pub notes: Vec<String>,
    /// The measurements.
    pub rows: Vec<Row>,
}

/// The settings that all rows of a run share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// `flash`, `txn`, `sysbench`, `insert`.
    pub suite: String,
    /// `smoke`, `small`, `report`.
    pub scale: String,
    /// Rows loaded.
    pub rows: u64,
    /// Length of keys, in bytes.
    pub key_bytes: usize,
    /// Length of values, in bytes.
    pub value_bytes: usize,
    /// Size that values compress to, as a share of their own.
    pub compressibility: f64,
    /// Memory that engines are told they have, in bytes.
    pub memory_bytes: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// `none`, `report`, `lz4`, `zstd`, `zlib`.
    pub compression: String,
    /// Times each row was measured.
    pub repeat: u32,
}

/// One measurement: an engine, set up one way, in one workload, once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Engine's name.
    pub engine: String,
    /// Engine's version.
    pub version: String,
    /// How it was set up.
    pub variant: String,
    /// Workload's name.
    pub workload: String,
    /// Which repetition, from 1.
    pub repeat: u32,
    /// Threads that issued operations (readers, in mixed workloads).
    pub threads: usize,
    /// Operations finished in the measured part.
    pub ops: u64,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Average throughput.
    pub ops_per_s: f64,
    /// Key and value bytes moved, in millions of bytes a second.
    pub mb_per_s: f64,
    /// Median response time.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Percent and microseconds, for drawing.
    pub latency_curve: Vec<(f64, f64)>,
    /// Length of an interval of `interval_rates`, in seconds.
    pub interval_s: f64,
    /// Operations a second in each whole interval of the measured part.
    pub interval_rates: Vec<f64>,
    /// Of runs with fewer than 20 whole intervals, for drawing: seconds since the beginning of the measured part, and
    /// operations a second since the point before; points are a tenth of `interval_s` apart, the last is the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rate_curve: Vec<(f64, f64)>,
    /// Slowest interval over the average of all; 0 when there was no whole interval.
    pub slowest_interval_ratio: f64,
    /// Processor time (user and system, all threads) an operation in the measured part.
    pub cpu_us_per_op: f64,
    /// The same with the settling after it.
    pub cpu_us_per_op_settled: f64,
    /// Read calls an operation.
    pub read_ops_per_op: f64,
    /// Bytes from storage an operation.
    pub read_bytes_per_op: f64,
    /// Bytes to storage an operation in the measured part.
    pub write_bytes_per_op: f64,
    /// The same with the settling after it.
    pub write_bytes_per_op_settled: f64,
    /// Reads that the device served, an operation; everyone's on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_reads_per_op: Option<f64>,
    /// Bytes that the device wrote, an operation, settling included; everyone's on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_write_bytes_per_op: Option<f64>,
    /// From the end of the measured part until background work was idle.
    pub settle_seconds: f64,
    /// Bulk loads: until all rows were in files.
    pub load_seconds: f64,
    /// Bulk loads: the merge after it.
    pub merge_seconds: f64,
    /// Mixed workloads: rows a second that the writer wrote.
    pub writes_per_s: f64,
    /// Mixed workloads: the writer's 99th percentile.
    pub write_p99_us: f64,
    /// How transactions keep out of each other's way: `locks`, `optimistic`; empty in workloads that have none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub control: String,
    /// Transactions: the workload of plain writes that the cost of a commit is compared with; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plain_workload: String,
    /// Transactions: those that were rolled back and run again because others wrote what they had read or wanted to write.
    #[serde(skip_serializing_if = "is_zero")]
    pub conflicts: u64,
    /// Because they waited for each other in a circle.
    #[serde(skip_serializing_if = "is_zero")]
    pub deadlocks: u64,
    /// Because a lock did not come free in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeouts: u64,
    /// Syncs of the log for each commit, or plain write, since the database was opened, where the engine tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syncs_per_op: Option<f64>,
    /// Rows that scans returned, in all.
    pub scanned_rows: u64,
    /// Size on disk at the end.
    pub db_bytes: u64,
    /// Largest size on disk seen (looked at once an interval).
    pub peak_db_bytes: u64,
    /// Live keys and values at the end, for space amplification.
    pub live_bytes: u64,
    /// Peak resident memory of the process.
    pub rss_bytes: u64,
    /// Peak memory of its control group, page cache included; 0 without a group.
    pub group_peak_bytes: u64,
    /// Memory limit that was enforced; 0 if none was.
    pub memory_limit_bytes: u64,
    /// Errors: a row with any is a failed one, and its other figures mean nothing.
    pub errors: u64,
    /// The first of them.
    pub error_messages: Vec<String>,
    /// Rows written in the measured part.
    pub written_rows: u64,
    /// Bytes to storage, settling included, over key and value bytes written; 0 where nothing was written.
    pub write_amplification: f64,
    /// Reads of which every byte was checked.
    pub verified_reads: u64,
    /// The user stopped it.
    pub partial: bool,
    /// The time cap ended it before all operations were done; the rate stands.
    pub capped: bool,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// Settings that the engine applied.
    pub engine_settings: Vec<(String, String)>,
    /// What the engine said about itself at the end.
    pub engine_stats: String,
    /// The command that measures this row again.
    pub rerun: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Row {
    /// `rocksdb:direct`, or only the engine's name when it has one way.
    pub fn label(&self) -> String {
        if self.variant.is_empty() || self.variant == "default" {
            self.engine.clone()
        } else {
            format!("{}:{}", self.engine, self.variant)
        }
    }

    /// Whether one thread wrote beside those that are measured: `writes_per_s` counts, also when it is zero.
    pub fn has_writer(&self) -> bool {
        self.workload.starts_with("readwhilewriting") || self.workload.starts_with("queries-")
    }

    /// Transactions that were rolled back and run again, for each that was committed.
    pub fn losses_per_op(&self) -> f64 {
        (self.conflicts + self.deadlocks + self.timeouts) as f64 / self.ops.max(1) as f64
    }

    /// Whether its figures mean something.
    pub fn is_good(&self) -> bool {
        self.errors == 0 && self.ops > 0
    }
}

impl Run {
    /// Reads a result file, refusing other schema versions in words.
    pub fn read(path: &std::path::Path) -> Result<Run> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path.display(), &e))?;
        let run: Run = serde_json::from_str(&text)
            .map_err(|e| Error::usage(format!("{} is not a result file: {e}", path.display())))?;
        if run.schema != SCHEMA {
            return Err(Error::usage(format!(
                "{} has schema {}, this lab reads schema {SCHEMA}",
                path.display(),
                run.schema
            )));
        }
        Ok(run)
    }

    /// Writes the result file, whole or not at all.
    pub fn write(&self, path: &std::path::Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::usage(format!("the results can't be written as JSON: {e}")))?;
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|e| Error::io(parent.display(), &e))?;
        }
        let draft = path.with_extension("json.tmp");
        std::fs::write(&draft, text + "\n").map_err(|e| Error::io(draft.display(), &e))?;
        std::fs::rename(&draft, path).map_err(|e| Error::io(path.display(), &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_survive_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/run.json");
        let run = Run {
            schema: SCHEMA,
            rows: vec![Row {
                engine: "null".into(),
                ops: 3,
                interval_rates: vec![1.5],
                ..Row::default()
            }],
            ..Run::default()
        };
        run.write(&path).unwrap();
        assert_eq!(Run::read(&path).unwrap(), run);
    }

    #[test]
    fn fields_keep_their_names() {
        // The names that lab.md promises to everyone who reads result files.
        let json = serde_json::to_value(Row::default()).unwrap();
        for name in [
            "engine",
            "version",
            "variant",
            "workload",
            "threads",
            "ops",
            "seconds",
            "ops_per_s",
            "mb_per_s",
            "p50_us",
            "p99_us",
            "p999_us",
            "max_us",
            "interval_s",
            "interval_rates",
            "cpu_us_per_op",
            "read_ops_per_op",
            "read_bytes_per_op",
            "write_bytes_per_op",
            "db_bytes",
            "peak_db_bytes",
            "rss_bytes",
            "errors",
        ] {
            assert!(json.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn later_fields_are_ignored_and_missing_ones_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        std::fs::write(
            &path,
            r#"{"schema":1,"future":true,"rows":[{"engine":"x","more":{}}]}"#,
        )
        .unwrap();
        assert_eq!(Run::read(&path).unwrap().rows[0].engine, "x");
        std::fs::write(&path, r#"{"schema":2}"#).unwrap();
        assert!(Run::read(&path).unwrap_err().to_string().contains("schema 2"));
    }
}
