//! Tests that write: overwrite (the report's test 3) and db_bench's other writers. One thread, as there.

use std::collections::HashMap;
use std::time::Instant;

use esker_lab_core::account::Account;
use esker_lab_core::data::pick;
use esker_lab_core::engine::{Database, Durability, Profile};
use esker_lab_core::{Error, Result, error::Kind};

use crate::client::Client;
use crate::measure::{self, Bounds, Measured};
use crate::runner::{READ_BLOCK_BYTES, Runner, Stream, WRITE_BLOCK_BYTES};

/// Rows of a batch in `fillbatch`, as in db_bench.
const BATCH_ROWS: usize = 1000;

/// One write: the row's number, and the version that this write gives it.
type Write<'a> = &'a (dyn Fn(&mut Client<'_>, u64, u64) -> Result<()> + Sync);

/// Random writes of the write stream, one thread.
fn writes(
    runner: &Runner<'_>,
    database: &dyn Database,
    phase: &str,
    bounds: Bounds,
    write: Write<'_>,
) -> Result<Measured> {
    let (rows, stream) = (runner.spec.rows, runner.seed(Stream::Writes));
    measure::run(
        runner.context,
        phase,
        bounds,
        1,
        &|_, pacer| {
            let mut client = runner.client(database)?;
            while let Some(i) = pacer.next() {
                write(&mut client, pick(stream, i, rows), i + 1)?;
                pacer.done();
            }
            Ok(())
        },
        None,
    )
}

/// Measures random writes, settles and checks. `initial` is the version that rows have before.
fn measure_writes(
    runner: &mut Runner<'_>,
    database: Box<dyn Database>,
    bounds: Bounds,
    initial: Option<u64>,
    write: Write<'_>,
) -> Result<()> {
    let before = Account::now(&runner.context.dir);
    let measured = writes(runner, database.as_ref(), "measuring", bounds, write)?;
    let ended = Instant::now();
    wrote(runner, database.as_ref(), &measured, &before, ended)?;
    let expected = runner.replay(measured.main.ops, initial);
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}

fn wrote(
    runner: &mut Runner<'_>,
    database: &dyn Database,
    measured: &Measured,
    before: &Account,
    ended: Instant,
) -> Result<()> {
    runner.row.written_rows = measured.main.ops;
    runner.row.capped = measured.out_of_time;
    runner.record(measured, measured.spent.seconds, runner.spec.row_bytes());
    if measured.stopped {
        runner.observe(database);
        return Ok(());
    }
    runner.settle(database, before, ended)
}

/// Operations of a test that rewrites the data `passes` times over.
fn rewrites(runner: &Runner<'_>) -> Bounds {
    let ops = (runner.spec.rows as f64 * runner.spec.passes).ceil() as u64;
    runner.bounds(ops.max(1), runner.spec.cap_seconds)
}

/// Rewrites the data, unmeasured, waits until the engine is idle, and closes it. Gives how many writes there were.
pub(super) fn rewrite_and_settle(runner: &Runner<'_>, database: Box<dyn Database>) -> Result<u64> {
    let rewritten = writes(
        runner,
        database.as_ref(),
        "overwriting",
        rewrites(runner),
        &|client, row, version| client.put(row, version, Durability::Buffered),
    )?;
    if rewritten.stopped {
        return Err(Error::new(Kind::Stopped, "stopped while overwriting"));
    }
    database.flush()?;
    runner.wait_until_idle(database.as_ref(), "settling")?;
    database.close()?;
    Ok(rewritten.main.ops)
}

/// The report's test 3.
pub(super) fn overwrite(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Write, WRITE_BLOCK_BYTES, false)?;
    let bounds = rewrites(runner);
    measure_writes(runner, database, bounds, Some(0), &|client, row, version| {
        client.put(row, version, Durability::Buffered)
    })
}

/// Bounded by time: what one device sync costs decides how many fit.
pub(super) fn fill_sync(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.open(Profile::Write, WRITE_BLOCK_BYTES, false)?;
    let bounds = runner.bounds(runner.spec.rows, runner.spec.seconds);
    measure_writes(runner, database, bounds, None, &|client, row, version| {
        client.put(row, version, Durability::Sync)
    })?;
    runner.row.capped = false;
    let rows = runner.spec.rows as f64;
    let distinct = rows * -(runner.row.ops as f64 * (-1.0 / rows).ln_1p()).exp_m1();
    runner.row.live_bytes = distinct as u64 * runner.spec.row_bytes();
    Ok(())
}

/// Batches in key order with the log on.
pub(super) fn fill_batch(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.open(Profile::BulkSequential, WRITE_BLOCK_BYTES, false)?;
    let before = Account::now(&runner.context.dir);
    let bounds = runner.bounds(runner.spec.rows, runner.spec.cap_seconds);
    let batch = Some((BATCH_ROWS, Durability::Buffered));
    let measured = runner.fill(database.as_ref(), "measuring", bounds, batch)?;
    wrote(runner, database.as_ref(), &measured, &before, Instant::now())?;
    runner.row.live_bytes = measured.main.ops * runner.spec.row_bytes();
    runner
        .row
        .notes
        .push(format!("latencies are of batches of {BATCH_ROWS} rows"));
    let expected = runner
        .replay(0, None)
        .into_keys()
        .map(|row| (row, (row < measured.main.ops).then_some(0)))
        .collect();
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}

/// As many deletes as there are rows, with replacement.
pub(super) fn delete_random(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Write, WRITE_BLOCK_BYTES, false)?;
    let bounds = runner.bounds(runner.spec.rows, runner.spec.cap_seconds);
    let before = Account::now(&runner.context.dir);
    let measured = writes(
        runner,
        database.as_ref(),
        "measuring",
        bounds,
        &|client, row, _| client.delete(row, Durability::Buffered),
    )?;
    wrote(runner, database.as_ref(), &measured, &before, Instant::now())?;
    // A delete writes no value, so bytes and amplification would be of nothing.
    runner.row.written_rows = 0;
    runner.row.mb_per_s = 0.0;
    runner.row.write_amplification = 0.0;
    let rows = runner.spec.rows as f64;
    let left = rows * (measured.main.ops as f64 * (-1.0 / rows).ln_1p()).exp();
    runner.row.live_bytes = left as u64 * runner.spec.row_bytes();
    let expected: HashMap<u64, Option<u64>> = runner
        .replay(measured.main.ops, Some(0))
        .into_iter()
        .map(|(row, version)| (row, version.filter(|&v| v == 0)))
        .collect();
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}

/// A read and a write of the same row, timed as one.
pub(super) fn update_random(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Mixed, READ_BLOCK_BYTES, false)?;
    let bounds = rewrites(runner);
    measure_writes(runner, database, bounds, Some(0), &|client, row, version| {
        if client.read(row)?.is_none() {
            return Err(Error::wrong(format!("row {row} is missing")));
        }
        client.put(row, version, Durability::Buffered)
    })
}

/// Merges, which need no read.
pub(super) fn merge_random(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Write, WRITE_BLOCK_BYTES, true)?;
    let bounds = rewrites(runner);
    measure_writes(runner, database, bounds, Some(0), &|client, row, version| {
        client.merge(row, version, Durability::Buffered)
    })
}
