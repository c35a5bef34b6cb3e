//! The figures that report 004 published (RocksDB and LevelDB, 2013), to stand beside ours.
//!
//! They were measured on 12 cores with 144 GB of memory and 800 GB of data on two flash cards: the ratio between the
//! two engines is comparable with ours, the absolute figures are not.

/// What one engine reached in one of the report's tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// As printed.
    pub text: &'static str,
    /// Rows or operations a second, as printed or computed from the time printed.
    pub ops_per_s: f64,
}

/// One of the report's five tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Its number in the report.
    pub number: u32,
    /// Its title there.
    pub title: &'static str,
    /// Our workload.
    pub workload: &'static str,
    /// RocksDB.
    pub rocksdb: Figure,
    /// LevelDB.
    pub leveldb: Figure,
}

/// The five tests.
pub const FLASH: [Published; 5] = [
    Published {
        number: 1,
        title: "Bulk load of keys in random order",
        workload: "bulkload-random",
        rocksdb: Figure {
            text: "103 minutes, 80 MB/s",
            ops_per_s: 1e9 / (103.0 * 60.0),
        },
        leveldb: Figure {
            text: "200 million rows in 20 hours",
            ops_per_s: 200e6 / (20.0 * 3600.0),
        },
    },
    Published {
        number: 2,
        title: "Bulk load of keys in sequential order",
        workload: "bulkload-sequential",
        rocksdb: Figure {
            text: "36 minutes, 370 MB/s",
            ops_per_s: 1e9 / (36.0 * 60.0),
        },
        leveldb: Figure {
            text: "91 minutes, 146 MB/s",
            ops_per_s: 1e9 / (91.0 * 60.0),
        },
    },
    Published {
        number: 3,
        title: "Random write",
        workload: "overwrite",
        rocksdb: Figure {
            text: "56.3 us/op, 13.8 MB/s",
            ops_per_s: 1e6 / 56.295,
        },
        leveldb: Figure {
            text: "600 us/op, 1.3 MB/s",
            ops_per_s: 1e6 / 600.0,
        },
    },
    Published {
        number: 4,
        title: "Random read",
        workload: "readrandom",
        rocksdb: Figure {
            text: "8 us/op, checksums on",
            ops_per_s: 126_000.0,
        },
        leveldb: Figure {
            text: "12 us/op, checksums off",
            ops_per_s: 83_000.0,
        },
    },
    Published {
        number: 5,
        title: "Multi-threaded read and single-threaded write",
        workload: "readwhilewriting",
        rocksdb: Figure {
            text: "9.64 us/read",
            ops_per_s: 103_734.0,
        },
        // 32 threads read 134,217,728 keys each, which for RocksDB's 11 h 30 gives the rate that it printed.
        leveldb: Figure {
            text: "20 h 28 min",
            ops_per_s: 32.0 * 134_217_728.0 / (20.0 * 3600.0 + 28.0 * 60.0),
        },
    },
];

/// The report's figures for `workload`.
pub fn flash(workload: &str) -> Option<&'static Published> {
    FLASH.iter().find(|p| p.workload == workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_agree_with_the_times_printed() {
        // The report prints 17K operations and 103,734 reads a second; the latter follows from 11 h 30 in the same way
        // in which LevelDB's rate is computed here.
        let overwrite = flash("overwrite").unwrap();
        assert_eq!((overwrite.rocksdb.ops_per_s / 1000.0).floor(), 17.0);
        let reads = 32.0 * 134_217_728.0 / (11.5 * 3600.0);
        assert!((reads / flash("readwhilewriting").unwrap().rocksdb.ops_per_s - 1.0).abs() < 0.001);
        assert!(flash("compact").is_none());
    }
}
