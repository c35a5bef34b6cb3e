//! Database settings by name, for interfaces that have them as text.

use esker_env::IoMode;

use super::text::{bad, count, flag, size};
use super::{Durability, Options, RecoveryMode};
use crate::error::Result;

impl Options {
    /// Sets one setting by its name and a value as text: a decimal number, for sizes also with `KiB`, `MiB` or `GiB`; `true` or
    /// `false`; `sync`, `buffered` or `none`; `point-in-time`, `absolute` or `skip-corrupt`; `direct` or `buffered`. A name that is none of
    /// a database's is taken for one of the family `default`. Ranges are checked by [`validate`](Self::validate).
    ///
    /// # Errors
    /// `InvalidArgument` for a name that there is not, or a value of another kind.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "create_if_missing" => self.create_if_missing = flag(name, value)?,
            "error_if_exists" => self.error_if_exists = flag(name, value)?,
            "read_only" => self.read_only = flag(name, value)?,
            "durability" => {
                self.durability = match value {
                    "sync" => Durability::Sync,
                    "buffered" => Durability::Buffered,
                    "none" => Durability::None,
                    _ => return Err(bad(name, value, "sync, buffered or none")),
                }
            }
            "recovery_mode" => {
                self.recovery_mode = match value {
                    "point-in-time" => RecoveryMode::PointInTime,
                    "absolute" => RecoveryMode::Absolute,
                    "skip-corrupt" => RecoveryMode::SkipCorrupt,
                    _ => return Err(bad(name, value, "point-in-time, absolute or skip-corrupt")),
                }
            }
            "memory_budget_bytes" => self.memory_budget_bytes = size(name, value)?,
            "memtables_bytes_max" => self.memtables_bytes_max = size(name, value)?,
            "wal_bytes_max" => self.wal_bytes_max = size(name, value)?,
            "wal_segment_bytes" => self.wal_segment_bytes = size(name, value)?,
            "wal_memory_bytes" => self.wal_memory_bytes = size(name, value)?,
            "compaction_threads" => self.compaction_threads = count(name, value)?,
            "subcompactions_max" => self.subcompactions_max = count(name, value)?,
            "background_bytes_per_second" => self.background_bytes_per_second = size(name, value)?,
            "open_files_max" => self.open_files_max = count(name, value)?,
            "background_io" => self.background_io = io_mode(name, value)?,
            "read_io" => self.read_io = io_mode(name, value)?,
            "sync_files" => self.sync_files = flag(name, value)?,
            _ => self.default_column_family.set(name, value)?,
        }
        Ok(())
    }
}

fn io_mode(name: &str, value: &str) -> Result<IoMode> {
    match value {
        "direct" => Ok(IoMode::Direct),
        "buffered" => Ok(IoMode::Buffered),
        _ => Err(bad(name, value, "direct or buffered")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_a_database_has_its_name() {
        let changes = [
            ("create_if_missing", "false"),
            ("error_if_exists", "true"),
            ("read_only", "true"),
            ("durability", "none"),
            ("recovery_mode", "skip-corrupt"),
            ("memory_budget_bytes", "11MiB"),
            ("memtables_bytes_max", "12"),
            ("wal_bytes_max", "13KiB"),
            ("wal_segment_bytes", "14"),
            ("wal_memory_bytes", "15"),
            ("compaction_threads", "16"),
            ("subcompactions_max", "17"),
            ("background_bytes_per_second", "18"),
            ("open_files_max", "19"),
            ("background_io", "buffered"),
            ("read_io", "buffered"),
            ("sync_files", "false"),
            ("block_bytes", "8KiB"),
        ];
        let mut options = Options::default();
        for (name, value) in changes {
            options.set(name, value).unwrap();
        }
        // Every field by name: a new one has to be added above.
        let Options {
            create_if_missing,
            error_if_exists,
            read_only,
            durability,
            recovery_mode,
            memory_budget_bytes,
            memtables_bytes_max,
            wal_bytes_max,
            wal_segment_bytes,
            wal_memory_bytes,
            compaction_threads,
            subcompactions_max,
            background_bytes_per_second,
            open_files_max,
            background_io,
            read_io,
            sync_files,
            default_column_family,
        } = options;
        assert_eq!(
            (create_if_missing, error_if_exists, read_only, sync_files),
            (false, true, true, false)
        );
        assert_eq!(durability, Durability::None);
        assert_eq!(recovery_mode, RecoveryMode::SkipCorrupt);
        assert_eq!(memory_budget_bytes, 11 << 20);
        assert_eq!((memtables_bytes_max, wal_bytes_max), (12, 13 << 10));
        assert_eq!((wal_segment_bytes, wal_memory_bytes), (14, 15));
        assert_eq!((compaction_threads, subcompactions_max), (16, 17));
        assert_eq!((background_bytes_per_second, open_files_max), (18, 19));
        assert_eq!((background_io, read_io), (IoMode::Buffered, IoMode::Buffered));
        assert_eq!(default_column_family.block_bytes, 8 << 10);
    }

    #[test]
    fn what_is_no_setting_or_no_value_is_refused_by_name() {
        let mut options = Options::default();
        for (name, value) in [
            ("durability", "safe"),
            ("recovery_mode", "hope"),
            ("read_io", "mapped"),
            ("read_only", "yes"),
            ("memory_budget_bytes", "much"),
            ("no_such_setting", "1"),
        ] {
            let error = options.set(name, value).unwrap_err();
            assert!(error.message().contains(name), "{error}");
        }
    }
}
