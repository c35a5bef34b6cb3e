//! The report's tests 1 and 2: bulk loads. Their time ends when all rows are in files, since nothing else keeps
//! them, and test 1's when they are merged.

use std::time::Instant;

use esker_lab_core::Result;
use esker_lab_core::account::Account;
use esker_lab_core::data::pick;
use esker_lab_core::engine::{Database, Durability, Profile};

use crate::measure::{self, Measured};
use crate::runner::{Runner, Stream, WRITE_BLOCK_BYTES};

/// Random order, with replacement as in db_bench: of n writes, 63 % of n rows remain.
pub(super) fn random(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.open(Profile::BulkRandom, WRITE_BLOCK_BYTES, false)?;
    let (before, start) = (Account::now(&runner.context.dir), Instant::now());
    let (spec, stream) = (runner.spec, runner.seed(Stream::Writes));
    let measured = measure::run(
        runner.context,
        "loading",
        runner.bounds(spec.rows, spec.cap_seconds),
        1,
        &|_, pacer| {
            let mut client = runner.client(database.as_ref())?;
            while let Some(i) = pacer.next() {
                client.put(pick(stream, i, spec.rows), i + 1, Durability::None)?;
                pacer.done();
            }
            Ok(())
        },
        None,
    )?;
    loaded(runner, database.as_ref(), &measured, &before, start)?;
    let rows = spec.rows as f64;
    let distinct = rows * -(measured.main.ops as f64 * (-1.0 / rows).ln_1p()).exp_m1();
    runner.row.live_bytes = distinct as u64 * spec.row_bytes();
    runner.verify(database.as_ref(), &runner.replay(measured.main.ops, None))?;
    database.close()
}

/// Key order.
pub(super) fn sequential(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.open(Profile::BulkSequential, WRITE_BLOCK_BYTES, false)?;
    let (before, start) = (Account::now(&runner.context.dir), Instant::now());
    let bounds = runner.bounds(runner.spec.rows, runner.spec.cap_seconds);
    let measured = runner.fill(database.as_ref(), "loading", bounds, None)?;
    loaded(runner, database.as_ref(), &measured, &before, start)?;
    runner.row.live_bytes = measured.main.ops * runner.spec.row_bytes();
    let expected = runner
        .replay(0, None)
        .into_keys()
        .map(|row| (row, (row < measured.main.ops).then_some(0)))
        .collect();
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}

/// Flushes, merges and settles.
fn loaded(
    runner: &mut Runner<'_>,
    database: &dyn Database,
    measured: &Measured,
    before: &Account,
    start: Instant,
) -> Result<()> {
    let bytes_per_op = runner.spec.row_bytes();
    runner.row.written_rows = measured.main.ops;
    runner.row.capped = measured.out_of_time;
    if measured.stopped {
        runner.record(measured, start.elapsed().as_secs_f64(), bytes_per_op);
        return Ok(());
    }
    runner.context.tell("flushing", None, 0.0);
    database.flush()?;
    let load_seconds = start.elapsed().as_secs_f64();
    let mut seconds = load_seconds;
    if runner.spec.test == "bulkload-random" {
        runner.context.tell("merging", None, 0.0);
        database.merge_bulk_load()?;
        seconds = start.elapsed().as_secs_f64();
        runner.row.merge_seconds = seconds - load_seconds;
    }
    let ended = Instant::now();
    let spent = Account::now(&runner.context.dir).since(before);
    runner.record(measured, seconds, bytes_per_op);
    runner.spent(&spent, false);
    runner.row.load_seconds = load_seconds;
    runner.settle(database, before, ended)
}
