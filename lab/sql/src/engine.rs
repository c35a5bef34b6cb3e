//! The storage engines, each set up at its best for the same memory and the same durability.

use esker_lab_core::{Error, Result};

/// What a server is set up for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Memory of the whole process, page cache included.
    pub memory_bytes: u64,
    /// Commits wait for the device; otherwise they reach the operating system, and the device within a second.
    pub sync: bool,
}

/// A storage engine of the server. There is one of each name.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Its name in SQL.
    pub sql_name: &'static str,
    /// The plugin that it comes in; empty where it is part of the server.
    pub plugin: &'static str,
    /// One line about it.
    pub about: &'static str,
    options: fn(&Setup) -> Vec<String>,
}

const MIB: u64 = 1 << 20;

/// What the server and its connections, the logs' pages and what an engine takes beyond its settings need at least: with 128 MiB the kernel
/// ended servers of InnoDB (while several clients loaded) and of MyRocks (while an index was made).
const SERVER_BYTES: u64 = 224 * MIB;

/// Memory of the engine itself: three quarters, where that leaves the server enough, and half at least.
fn engine_bytes(setup: &Setup) -> u64 {
    let rest = SERVER_BYTES.clamp(setup.memory_bytes / 4, setup.memory_bytes / 2);
    setup.memory_bytes - rest
}

/// Half of the memory for all that it takes; the page cache has the compressed files.
fn esker(setup: &Setup) -> Vec<String> {
    vec![
        format!("--esker-memory-size={}", setup.memory_bytes / 2),
        format!(
            "--esker-flush-log-at-trx-commit={}",
            if setup.sync { 1 } else { 2 }
        ),
    ]
}

/// Direct I/O, as in the reports; a log so large that pages are written when memory wants it, not because the log is full.
fn innodb(setup: &Setup) -> Vec<String> {
    vec![
        format!("--innodb-buffer-pool-size={}", engine_bytes(setup)),
        format!(
            "--innodb-log-file-size={}",
            setup.memory_bytes.clamp(256 * MIB, 4096 * MIB)
        ),
        "--innodb-flush-method=O_DIRECT".into(),
        "--innodb-flush-neighbors=0".into(),
        "--innodb-io-capacity=2000".into(),
        "--innodb-io-capacity-max=10000".into(),
        format!(
            "--innodb-flush-log-at-trx-commit={}",
            if setup.sync { 1 } else { 2 }
        ),
    ]
}

/// As the reports have it: half of the memory (two thirds of an engine's) caches blocks, the page cache has the compressed files; filters,
/// small upper levels.
fn myrocks(setup: &Setup) -> Vec<String> {
    let engine = engine_bytes(setup);
    let write_buffer = (setup.memory_bytes / 16).clamp(8 * MIB, 64 * MIB);
    vec![
        format!("--rocksdb-block-cache-size={}", engine / 3 * 2),
        format!("--rocksdb-db-write-buffer-size={}", engine / 6),
        format!(
            "--rocksdb-default-cf-options=write_buffer_size={write_buffer};target_file_size_base={write_buffer};\
             max_bytes_for_level_base={};level0_file_num_compaction_trigger=4;level_compaction_dynamic_level_bytes=true;\
             compaction_pri=kMinOverlappingRatio;optimize_filters_for_hits=true;block_based_table_factory=\
             {{cache_index_and_filter_blocks=1;filter_policy=bloomfilter:10:false;whole_key_filtering=1}}",
            write_buffer * 4
        ),
        format!("--rocksdb-max-total-wal-size={}", setup.memory_bytes / 2),
        "--rocksdb-max-background-jobs=2".into(),
        // Sorting for a new index takes four times as much as its buffer, as each record is also in a tree.
        format!(
            "--rocksdb-merge-buf-size={}",
            (setup.memory_bytes / 64).min(64 * MIB)
        ),
        format!("--rocksdb-merge-combine-read-size={}", write_buffer * 2),
        format!(
            "--rocksdb-flush-log-at-trx-commit={}",
            if setup.sync { 1 } else { 2 }
        ),
    ]
}

/// All that there are; the first is the one that the others are measured beside.
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "esker",
        sql_name: "ESKER",
        plugin: "ha_esker",
        about: "this engine, by its plugin",
        options: esker,
    },
    Engine {
        name: "innodb",
        sql_name: "InnoDB",
        plugin: "",
        about: "the server's own engine: direct I/O",
        options: innodb,
    },
    Engine {
        name: "myrocks",
        sql_name: "RocksDB",
        plugin: "ha_rocksdb",
        about: "MyRocks: RocksDB in the server, files through the page cache",
        options: myrocks,
    },
];

impl PartialEq for Engine {
    fn eq(&self, other: &Engine) -> bool {
        self.name == other.name
    }
}

impl Engine {
    /// The engine called `name`.
    pub fn named(name: &str) -> Result<&'static Engine> {
        ENGINES.iter().find(|e| e.name == name).ok_or_else(|| {
            let names: Vec<_> = ENGINES.iter().map(|e| e.name).collect();
            Error::usage(format!(
                "no engine `{name}` runs in the server; there are {}",
                names.join(", ")
            ))
        })
    }

    /// Options of the server: those of this engine, and what keeps the server's own one small where it is not measured. The binary
    /// log is on for all, in rows.
    pub fn options(&self, setup: &Setup) -> Vec<String> {
        let mut options = (self.options)(setup);
        options.extend([
            format!("--sync-binlog={}", u8::from(setup.sync)),
            "--binlog-format=ROW".into(),
            "--server-id=1".into(),
            format!("--default-storage-engine={}", self.sql_name),
        ]);
        if !self.plugin.is_empty() {
            options.extend([
                format!("--plugin-load-add={}", self.plugin),
                "--plugin-maturity=experimental".into(),
                format!("--innodb-buffer-pool-size={}", 8 * MIB),
            ]);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_what_it_needs_beside_its_engine() {
        let engine = |memory: u64| {
            let setup = Setup {
                memory_bytes: memory * MIB,
                sync: false,
            };
            engine_bytes(&setup) / MIB
        };
        assert_eq!([engine(128), engine(512), engine(4096)], [64, 288, 3072]);
    }

    #[test]
    fn engines_get_the_same_memory_and_durability() {
        let setup = |sync| Setup {
            memory_bytes: 512 * MIB,
            sync,
        };
        for engine in ENGINES {
            for (sync, at_commit, binary_log) in [(false, "=2", "=0"), (true, "=1", "=1")] {
                let options = engine.options(&setup(sync));
                let of = |part: &str| {
                    let found = options.iter().find(|o| o.contains(part));
                    found.unwrap_or_else(|| panic!("{}: {part}", engine.name))
                };
                assert!(of("flush-log-at-trx-commit").ends_with(at_commit));
                assert!(of("sync-binlog").ends_with(binary_log));
            }
            assert_eq!(Engine::named(engine.name).unwrap(), engine);
        }
        assert!(Engine::named("oracle").is_err());
    }
}
