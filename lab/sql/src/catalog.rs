//! The tests that there are: report 002's by sysbench's scripts, and the three steps of reports 000 and 001.

/// What an operation of a test is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counted {
    /// Queries that the client sends.
    Queries,
    /// Rows that a query looks at: all of the table.
    Rows,
}

/// How a test is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// A script of sysbench's.
    Script {
        /// Its name.
        name: &'static str,
        /// Its own options.
        options: &'static [&'static str],
        /// What its rate is of.
        counted: Counted,
        /// Something may be left to do behind it.
        writes: bool,
    },
    /// Rows into the insert benchmark's table, as fast as they go.
    Load,
    /// Queries, beside a writer of so many rows a second.
    Queries {
        /// The writer's rate.
        writes_per_s: f64,
    },
}

/// One test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Its name on the command line and in results.
    pub name: &'static str,
    pub(crate) work: Work,
}

const fn reads(name: &'static str, script: &'static str, options: &'static [&'static str]) -> Test {
    Test {
        name,
        work: Work::Script {
            name: script,
            options,
            counted: Counted::Queries,
            writes: false,
        },
    }
}

const fn writes(name: &'static str, script: &'static str, options: &'static [&'static str]) -> Test {
    Test {
        name,
        work: Work::Script {
            name: script,
            options,
            counted: Counted::Queries,
            writes: true,
        },
    }
}

const fn scans(name: &'static str) -> Test {
    Test {
        name,
        work: Work::Script {
            name: "lab_full_scan.lua",
            options: &[],
            counted: Counted::Rows,
            writes: false,
        },
    }
}

const POINT: &str = "oltp_point_select";
const READ_ONLY: &str = "oltp_read_only";
pub(crate) const READ_WRITE: &str = "oltp_read_write";
const IN_LIST: &str = "lab_in_list.lua";
const SHORT: &[&str] = &["--range-size=100"];
const LONG: &[&str] = &["--range-size=10000"];

/// Report 002's, in its order: reads, writes, the same reads.
pub(crate) const SYSBENCH: &[Test] = &[
    reads("point-query.pre", POINT, &[]),
    reads("read-only-100.pre", READ_ONLY, SHORT),
    reads("read-only-10000.pre", READ_ONLY, LONG),
    reads("random-points.pre", IN_LIST, &[]),
    scans("full-scan.pre"),
    writes("update-inlist", IN_LIST, &["--update=on"]),
    writes("update-one", "oltp_update_non_index", &["--table-size=1"]),
    writes("update-index", "oltp_update_index", &[]),
    writes("update-nonindex", "oltp_update_non_index", &[]),
    writes("delete", "oltp_delete", &[]),
    writes("read-write-100", READ_WRITE, SHORT),
    writes("read-write-10000", READ_WRITE, LONG),
    writes("insert", "oltp_insert", &[]),
    reads("point-query", POINT, &[]),
    reads("read-only-100", READ_ONLY, SHORT),
    reads("read-only-10000", READ_ONLY, LONG),
    reads("random-points", IN_LIST, &[]),
    reads("hot-points", IN_LIST, &["--same-ids=on"]),
    scans("full-scan"),
];

/// Report 000's three steps.
pub(crate) const INSERT: &[Test] = &[
    Test {
        name: "insert-load",
        work: Work::Load,
    },
    Test {
        name: "queries-1000",
        work: Work::Queries { writes_per_s: 1000.0 },
    },
    Test {
        name: "queries-100",
        work: Work::Queries { writes_per_s: 100.0 },
    },
];
