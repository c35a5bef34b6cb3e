//! Report 004: db_bench's tests on flash storage.
//!
//! Each test gets a fresh folder. What it needs loaded is loaded first, unmeasured: all rows in key order, without
//! the log, flushed, settled, closed and opened again with the test's own settings. Then the measured part; then, after
//! tests that write, the settling; then a sample of rows is read back and checked against a replay of
//! all writes. Any error, missing key or wrong byte makes the row a failed one.

mod bulk;
mod mixed;
mod read;
mod write;

use crate::suite::Test;

/// The report's threads.
const THREADS: usize = 32;

macro_rules! tests {
    ($($name:literal, $default:literal, $run:expr, $about:literal;)*) => {
        /// Every test, the report's five first and in its order.
        pub(crate) const TESTS: &[Test] = &[$(Test {
            name: $name,
            about: $about,
            default: $default,
            threads: THREADS,
            transactions: false,
            run: $run,
        }),*];
    };
}

tests! {
    "bulkload-random", true, bulk::random,
        "load in random order, unsorted and without log, then one merge (report's test 1)";
    "bulkload-sequential", true, bulk::sequential,
        "load in key order without log (report's test 2)";
    "overwrite", true, write::overwrite,
        "rewrite a loaded database in random order, log on, no sync (report's test 3)";
    "readrandom", true, read::random,
        "random reads by many threads, 4 KiB blocks, checksums on (report's test 4)";
    "readwhilewriting", true, mixed::full_speed,
        "random reads by many threads, one writer at full speed (report's test 5)";
    "readwhilewriting-paced", false, mixed::paced,
        "the same, the writer at a fixed rate";
    "fillsync", false, write::fill_sync,
        "random writes into an empty database, each on the device before the answer";
    "fillbatch", false, write::fill_batch,
        "writes in key order in batches of 1000, log on";
    "deleterandom", false, write::delete_random,
        "deletes of random keys of a loaded database";
    "updaterandom", false, write::update_random,
        "read a random row, then write it";
    "mergerandom", false, write::merge_random,
        "merges into random rows; the last operand is the value";
    "readmissing", false, read::missing,
        "random reads of keys that are not there, between those that are";
    "readhot", false, read::hot,
        "random reads of the first hundredth of the keys";
    "seekrandom", false, read::seek,
        "a new iterator, a seek to a random key, ten rows";
    "readseq", false, read::forward,
        "all rows in ascending order, one thread";
    "readseq-overwritten", false, read::forward_overwritten,
        "the same after random overwriting, settled and opened again";
    "readreverse", false, read::reverse,
        "all rows in descending order, one thread";
}
