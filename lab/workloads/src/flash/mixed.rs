//! The report's test 5: reads by many threads beside one writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use esker_lab_core::account::Account;
use esker_lab_core::data::pick;
use esker_lab_core::engine::{Durability, Profile};
use esker_lab_core::{Error, Result};

use crate::measure;
use crate::runner::{READ_BLOCK_BYTES, Runner, Stream};

/// The writer writes as fast as it can.
pub(super) fn full_speed(runner: &mut Runner<'_>) -> Result<()> {
    read_while_writing(runner, None)
}

/// The writer keeps to a rate; its latencies count from when a write was due.
pub(super) fn paced(runner: &mut Runner<'_>) -> Result<()> {
    read_while_writing(runner, Some(runner.spec.writes_per_s))
}

fn read_while_writing(runner: &mut Runner<'_>, writes_per_s: Option<f64>) -> Result<()> {
    let database = runner.loaded(Profile::Mixed, READ_BLOCK_BYTES, false)?;
    runner.row.threads = runner.spec.threads;
    let spec = runner.spec;
    let before;
    // Writes handed to the engine so far: a reader may find any of their versions, and none above.
    let issued = AtomicU64::new(0);
    let measured = {
        let (runner, writes) = (&*runner, runner.seed(Stream::Writes));
        let keeps_data = runner.engine.keeps_data();
        let read = |stream: fn(usize) -> Stream| {
            let (database, issued) = (&database, &issued);
            move |thread: usize, pacer: &mut measure::Pacer<'_>| {
                let mut client = runner.client(database.as_ref())?;
                let seed = runner.seed(stream(thread));
                while let Some(i) = pacer.next() {
                    let row = pick(seed, i, spec.rows);
                    let version = client
                        .read(row)?
                        .ok_or_else(|| Error::wrong(format!("row {row} is missing")))?;
                    if version != 0
                        && keeps_data
                        && (version > issued.load(Ordering::Acquire)
                            || pick(writes, version - 1, spec.rows) != row)
                    {
                        return Err(Error::wrong(format!(
                            "row {row}: version {version} was not written yet"
                        )));
                    }
                    pacer.done();
                }
                Ok(())
            }
        };
        let bounds = |seconds| runner.bounds(u64::MAX / 4096, seconds);
        let warm = read(Stream::Warmup);
        measure::run(
            runner.context,
            "warming up",
            bounds(spec.seconds / 5.0),
            spec.threads,
            &warm,
            None,
        )?;
        before = Account::now(&runner.context.dir);
        let main = read(Stream::Reads);
        let write = |_: usize, pacer: &mut measure::Pacer<'_>| {
            let mut client = runner.client(database.as_ref())?;
            while let Some(i) = pacer.next() {
                if let Some(writes_per_s) = writes_per_s {
                    pacer.wait_for_turn(i, writes_per_s);
                    if pacer.next().is_none() {
                        break;
                    }
                }
                issued.store(i + 1, Ordering::Release);
                client.put(pick(writes, i, spec.rows), i + 1, Durability::Buffered)?;
                pacer.done();
            }
            Ok(())
        };
        measure::run(
            runner.context,
            "measuring",
            bounds(spec.seconds),
            spec.threads,
            &main,
            Some(&write),
        )?
    };
    let ended = Instant::now();
    let seconds = measured.spent.seconds;
    runner.row.written_rows = measured.side.ops;
    runner.row.writes_per_s = measured.side.ops as f64 / seconds;
    runner.row.write_p99_us = measured.side.latencies.percentile_us(99.0);
    // Set before, since the figures per operation count the writer's too.
    runner.row.seconds = seconds;
    runner.record(&measured, seconds, spec.row_bytes());
    runner.row.verified_reads = measured.main.ops;
    if measured.stopped {
        runner.observe(database.as_ref());
        return Ok(());
    }
    runner.settle(database.as_ref(), &before, ended)?;
    let expected = runner.replay(measured.side.ops, Some(0));
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}
