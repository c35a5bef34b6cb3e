//! Report 004: db_bench's tests on flash storage.
//!
//! Each test gets a fresh folder. What it needs loaded is loaded first, unmeasured: all rows in key order, without
//! the log, flushed, settled, closed and opened again with the test's own settings. Then the measured part; then, after
//! tests that write, the settling; then a sample of rows is read back and checked against a replay of
//! all writes. Any error, missing key or wrong byte makes the row a failed one.

mod bulk;
mod client;
mod common;
mod mixed;
mod read;
mod write;

use esker_lab_core::engine::Engine;
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result};

use crate::{Context, Load, Spec};
use common::Runner;

/// One of db_bench's tests.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its name, on the command line and in results.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// One of the report's five, which run when nothing else is asked for.
    pub default: bool,
    run: fn(&mut Runner<'_>) -> Result<()>,
}

macro_rules! tests {
    ($($name:literal, $default:literal, $run:expr, $about:literal;)*) => {
        /// Every test, the report's five first and in its order.
        pub const TESTS: &[Test] = &[$(Test { name: $name, about: $about, default: $default, run: $run }),*];
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
    "readreverse", false, read::reverse,
        "all rows in descending order, one thread";
}

/// The test called `name`.
pub fn test(name: &str) -> Result<&'static Test> {
    TESTS.iter().find(|t| t.name == name).ok_or_else(|| {
        let names: Vec<_> = TESTS.iter().map(|t| t.name).collect();
        Error::usage(format!(
            "there is no test `{name}`; there are {}",
            names.join(", ")
        ))
    })
}

/// Only loads, for a test that another process will run on the same folder.
pub fn load(
    engine: &dyn Engine,
    variant: &str,
    spec: &Spec,
    context: &Context<'_>,
    load: Load,
) -> Result<()> {
    spec.validate()?;
    Runner::new(engine, variant, spec, context)?.load(load)
}

/// Runs the test that `spec` names on one engine. What goes wrong is in the row; `Err` only says that there is no row,
/// because the engine can't do this or the user stopped it before anything was measured.
pub fn run(engine: &dyn Engine, variant: &str, spec: &Spec, context: &Context<'_>) -> Result<Row> {
    spec.validate()?;
    let test = test(&spec.test)?;
    let mut runner = Runner::new(engine, variant, spec, context)?;
    let result = (test.run)(&mut runner);
    let mut row = runner.finish();
    match result {
        Ok(()) if row.partial && row.ops == 0 => {
            return Err(Error::new(Kind::Stopped, "stopped before anything was measured"));
        }
        Ok(()) => {}
        Err(error) if matches!(error.kind(), Kind::Unsupported | Kind::Missing | Kind::Usage) => {
            return Err(error);
        }
        Err(error) if error.kind() == Kind::Stopped => {
            if row.ops == 0 {
                return Err(error);
            }
            row.partial = true;
        }
        Err(error) => {
            row.errors += 1;
            row.error_messages.push(error.to_string());
        }
    }
    Ok(row)
}
