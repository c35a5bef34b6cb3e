//! What to run: one test with every number resolved, and the scales that resolve them.

use esker_lab_core::data::{Dataset, KEY_BYTES_MAX, KEY_BYTES_MIN, Keys, ROWS_MAX, VALUE_BYTES_MIN};
use esker_lab_core::engine::Compression;
use esker_lab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::Suite;

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: shows that everything works.
    Smoke,
    /// Minutes: some 2 GB of data under 512 MiB of memory.
    Small,
    /// Hours: the report's ratio of data to memory.
    Report,
}

/// One test, with every number resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The report.
    pub suite: Suite,
    /// The test's name.
    pub test: String,
    /// Rows of the loaded database.
    pub rows: u64,
    /// Length of keys, in bytes.
    pub key_bytes: usize,
    /// Length of values, in bytes.
    pub value_bytes: usize,
    /// Share of its size that a value compresses to.
    pub compressibility: f64,
    /// Seed of data and choices.
    pub seed: u64,
    /// Threads in the tests that take several.
    pub threads: usize,
    /// Length of time-bounded tests, in seconds.
    pub seconds: f64,
    /// Times over that overwriting tests rewrite the data.
    pub passes: f64,
    /// The longest that the measured part of an operation-bounded test may take, in seconds.
    pub cap_seconds: f64,
    /// Rows a second of the paced writer.
    pub writes_per_s: f64,
    /// Memory that engines are told they have, in bytes.
    pub memory_bytes: u64,
    /// Compression.
    pub compression: Compression,
    /// Length of an interval of the rates over time, in seconds.
    pub interval_s: f64,
    /// Time between two looks whether an engine is idle, in seconds; five quiet ones in a row count.
    pub idle_poll_s: f64,
}

/// The numbers that a scale stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Rows loaded.
    pub rows: u64,
    /// Memory limit, in bytes.
    pub memory_bytes: u64,
    /// Length of time-bounded tests, in seconds.
    pub seconds: f64,
    /// Cap of operation-bounded ones, in seconds.
    pub cap_seconds: f64,
    /// Length of an interval, in seconds.
    pub interval_s: f64,
    /// Time between two looks whether an engine is idle, in seconds.
    pub idle_poll_s: f64,
}

/// The report's data, 800 GB, over its memory, 144 GB.
const REPORT_RATIO: f64 = 800.0 / 144.0;

impl Scale {
    /// The numbers for rows of `row_bytes` bytes of key and value; `memory_bytes` is the memory limit if the user gave
    /// one.
    pub fn sizes(self, suite: Suite, row_bytes: usize, memory_bytes: Option<u64>) -> Sizes {
        let sizes = self.flash_sizes(row_bytes, memory_bytes);
        match suite {
            Suite::Flash => sizes,
            // What transactions cost shows where rows are in memory.
            Suite::Txn => Sizes {
                rows: match self {
                    Scale::Smoke => sizes.rows,
                    Scale::Small => 1_000_000,
                    Scale::Report => 10_000_000,
                },
                seconds: sizes.seconds.min(60.0),
                ..sizes
            },
        }
    }

    fn flash_sizes(self, row_bytes: usize, memory_bytes: Option<u64>) -> Sizes {
        match self {
            Scale::Smoke => Sizes {
                rows: 25_000,
                memory_bytes: memory_bytes.unwrap_or(256 << 20),
                seconds: 1.0,
                cap_seconds: 10.0,
                interval_s: 0.1,
                idle_poll_s: 0.01,
            },
            Scale::Small => Sizes {
                rows: 2_500_000,
                memory_bytes: memory_bytes.unwrap_or(512 << 20),
                seconds: 15.0,
                cap_seconds: 60.0,
                interval_s: 1.0,
                idle_poll_s: 0.05,
            },
            Scale::Report => {
                let memory_bytes = memory_bytes.unwrap_or(4 << 30);
                let rows = memory_bytes as f64 * REPORT_RATIO / row_bytes as f64;
                Sizes {
                    rows: rows as u64,
                    memory_bytes,
                    seconds: 300.0,
                    cap_seconds: 3600.0,
                    interval_s: 1.0,
                    idle_poll_s: 0.05,
                }
            }
        }
    }
}

impl Spec {
    /// The rows.
    pub fn dataset(&self) -> Dataset {
        Dataset {
            rows: self.rows,
            keys: Keys::new(self.key_bytes),
            value_bytes: self.value_bytes,
            compressibility: self.compressibility,
            seed: self.seed,
        }
    }

    /// Key and value bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.dataset().row_bytes()
    }

    /// Key and value bytes of the whole database.
    pub fn data_bytes(&self) -> u64 {
        self.dataset().bytes()
    }

    /// Refuses numbers that make no sense, in words.
    pub fn validate(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::usage(why));
        if !(100..=ROWS_MAX).contains(&self.rows) {
            return refuse(format!(
                "{} rows: from 100 to 10,000,000,000 fit the keys of ten digits",
                self.rows
            ));
        }
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&self.key_bytes) {
            return refuse(format!(
                "keys of {} bytes: from {KEY_BYTES_MIN} (the digits of a row's number) to 64 KiB",
                self.key_bytes
            ));
        }
        if !(VALUE_BYTES_MIN..=1 << 20).contains(&self.value_bytes) {
            return refuse(format!(
                "values of {} bytes: from {VALUE_BYTES_MIN} to 1 MiB",
                self.value_bytes
            ));
        }
        if !(1..=4096).contains(&self.threads) {
            return refuse(format!("{} threads: from 1 to 4096", self.threads));
        }
        for (what, value) in [
            ("seconds", self.seconds),
            ("cap", self.cap_seconds),
            ("passes", self.passes),
            ("interval", self.interval_s),
            ("idle poll", self.idle_poll_s),
            ("paced writes a second", self.writes_per_s),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return refuse(format!("{what} must be above zero, not {value}"));
            }
        }
        if self.suite.has_transactions() && self.rows < self.threads as u64 {
            return refuse(format!(
                "{} threads, each with rows of its own, and {} rows",
                self.threads, self.rows
            ));
        }
        if self.memory_bytes < 32 << 20 {
            return refuse("engines need at least 32 MiB of memory".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_scale_keeps_the_ratio_of_data_to_memory() {
        let sizes = Scale::Report.sizes(Suite::Flash, 810, Some(144 << 30));
        let data = sizes.rows as f64 * 810.0;
        assert!((data / (800.0 * f64::from(1 << 30)) - 1.0).abs() < 0.001);
        let transactions = Scale::Report.sizes(Suite::Txn, 110, None);
        assert!(transactions.rows * 110 < transactions.memory_bytes / 2);
        assert_eq!(
            Scale::Small.sizes(Suite::Flash, 810, None).memory_bytes,
            512 << 20
        );
    }
}
