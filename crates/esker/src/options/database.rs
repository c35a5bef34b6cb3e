//! Settings of a whole database.

use esker_env::IoMode;

use super::{ColumnFamilyOptions, Durability};
use crate::error::{Error, Result};

/// What recovery does with a WAL that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoveryMode {
    /// Replay up to the first bad record and stop there: the result is a state that the database was in.
    #[default]
    PointInTime,
    /// Refuse to open unless every record is whole.
    Absolute,
    /// Skip bad records and replay what can be read after them, with a count of what was lost.
    SkipCorrupt,
}

/// Settings of a database. What can change while it is open says so.
#[derive(Clone, Debug)]
pub struct Options {
    /// Create the database if the folder holds none. Default: true.
    pub create_if_missing: bool,
    /// Refuse to open a database that exists already. Default: false.
    pub error_if_exists: bool,
    /// Open without taking writes and without changing a file. Default: false.
    pub read_only: bool,
    /// How safe a write is when it returns, unless the write says otherwise. Default: `Buffered`.
    /// Can change while running. **A power cut may take what was written since the last sync.**
    pub durability: Durability,
    /// What to do with a damaged WAL. Default: `PointInTime`.
    pub recovery_mode: RecoveryMode,
    /// One budget for memtables, block cache, indexes and filters, in bytes; at least 4 MiB. Default: 256 MiB.
    /// Give it what the process can spare, less about 64 MiB for buffers of background jobs, and less with many reading
    /// threads: `docs/tuning.md` has a figure.
    pub memory_budget_bytes: u64,
    /// The part of the budget that memtables of all column families may take before writes are slowed, in bytes.
    /// 0: half of the budget. Default: 0.
    pub memtables_bytes_max: u64,
    /// WAL bytes alive before the column family that holds the oldest is flushed; 0: twice the memtables' part.
    /// Also bounds what recoveries keep aside of damaged segments, those of the last one excepted. Default: 0.
    pub wal_bytes_max: u64,
    /// Size of one WAL segment, in bytes: 64 KiB to 4 GiB. Default: 64 MiB.
    pub wal_segment_bytes: u64,
    /// The part of the budget for WAL segments that are used again, in bytes: they stay in memory, locked, so that an
    /// append to them is a copy instead of a system call, and what is overwritten within seconds need not reach the
    /// device. Pays for writing at full speed, from about as much on as memtables hold together; further segments are
    /// new files, as are all where the process may not lock memory (`RLIMIT_MEMLOCK`), the file system is not ext4, XFS or
    /// tmpfs, or this is less than `wal_segment_bytes`. Default: 0.
    pub wal_memory_bytes: u64,
    /// Threads for compactions, 0 to 64; 0: one for each processor. One more thread flushes. Default: 0.
    pub compaction_threads: usize,
    /// Key ranges into which one compaction may be split, 1 to 64. Default: 4.
    pub subcompactions_max: usize,
    /// Write rate of background work in bytes a second; 0: no limit. Can change while running. Default: 0.
    pub background_bytes_per_second: u64,
    /// Open SSTables and blob files at most, together; at least 16. Readers keep those open that they are in, and background
    /// jobs open their own inputs beside them unless `background_io` is `read_io`. Default: 10,000.
    pub open_files_max: usize,
    /// How flushes and compactions read and write. Default: `Direct`.
    pub background_io: IoMode,
    /// How reads of users read SSTables. Default: `Direct` (hot data is in the block cache).
    pub read_io: IoMode,
    /// Whether SSTables are synced when they are complete. Turn off only for a load that can be repeated.
    /// Default: true.
    pub sync_files: bool,
    /// Settings of the column family `default` where the caller names none. Default: the defaults.
    pub default_column_family: ColumnFamilyOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            durability: Durability::Buffered,
            recovery_mode: RecoveryMode::PointInTime,
            memory_budget_bytes: 256 << 20,
            memtables_bytes_max: 0,
            wal_bytes_max: 0,
            wal_segment_bytes: 64 << 20,
            wal_memory_bytes: 0,
            compaction_threads: 0,
            subcompactions_max: 4,
            background_bytes_per_second: 0,
            open_files_max: 10_000,
            background_io: IoMode::Direct,
            read_io: IoMode::Direct,
            sync_files: true,
            default_column_family: ColumnFamilyOptions::default(),
        }
    }
}

impl Options {
    /// Checks every range; the error names the setting, its value and its range.
    pub fn validate(&self) -> Result<()> {
        in_range("memory_budget_bytes", self.memory_budget_bytes, 4 << 20, u64::MAX)?;
        in_range(
            "memtables_bytes_max",
            self.memtables_bytes_max,
            0,
            self.memory_budget_bytes,
        )?;
        in_range(
            "wal_memory_bytes",
            self.wal_memory_bytes,
            0,
            self.memory_budget_bytes,
        )?;
        in_range("wal_segment_bytes", self.wal_segment_bytes, 64 << 10, 4 << 30)?;
        in_range("compaction_threads", self.compaction_threads as u64, 0, 64)?;
        in_range("subcompactions_max", self.subcompactions_max as u64, 1, 64)?;
        in_range("open_files_max", self.open_files_max as u64, 16, 1 << 30)?;
        if self.read_only && self.error_if_exists {
            return Err(Error::invalid(
                "options read_only and error_if_exists contradict each other",
            ));
        }
        self.default_column_family.validate()
    }

    /// The memtables' part of the budget, in bytes.
    pub fn memtables_bytes_resolved(&self) -> u64 {
        if self.memtables_bytes_max == 0 {
            self.memory_budget_bytes / 2
        } else {
            self.memtables_bytes_max
        }
    }

    /// The bound on live WAL bytes.
    pub fn wal_bytes_resolved(&self) -> u64 {
        if self.wal_bytes_max == 0 {
            (self.memtables_bytes_resolved() * 2).max(2 * self.wal_segment_bytes)
        } else {
            self.wal_bytes_max
        }
    }
}

pub(super) fn in_range(name: &str, value: u64, min: u64, max: u64) -> Result<()> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "option {name} is {value}; it must lie between {min} and {max}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        Options::default().validate().expect("defaults");
    }

    #[test]
    fn an_error_names_the_setting_and_its_range() {
        let error = Options {
            memory_budget_bytes: 1,
            ..Options::default()
        }
        .validate()
        .unwrap_err();
        assert!(error.message().contains("memory_budget_bytes"), "{error}");
        assert!(error.message().contains("4194304"), "{error}");
    }
}
