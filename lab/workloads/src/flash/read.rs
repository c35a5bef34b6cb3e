//! Tests that only read: readrandom (the report's test 4) and db_bench's other readers.
//!
//! Time-bounded ones warm up for a fifth of their time first, unmeasured and with other choices, so that a short run
//! does not measure empty caches. Every value's bytes are checked; the check counts as the harness's cost.

use std::ops::ControlFlow;

use esker_lab_core::data::{Keys, Values, pick};
use esker_lab_core::engine::{Database, Profile, Start};
use esker_lab_core::{Error, Result, error::Kind};

use crate::client::Client;
use crate::measure::{self, Measured};
use crate::runner::{READ_BLOCK_BYTES, Runner, Stream};

use super::write;

/// Rows that follow each seek.
const ROWS_A_SEEK: u64 = 10;

/// One read of a random row. Returns how many rows a scan gave, 0 for point reads.
type Read<'a> = &'a (dyn Fn(&mut Client<'_>, u64) -> Result<u64> + Sync);

/// Random reads of rows below `rows` by all threads, after a warm-up.
fn measure_reads(runner: &mut Runner<'_>, rows: u64, bytes_per_op: u64, read: Read<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Read, READ_BLOCK_BYTES, false)?;
    let seconds = runner.spec.seconds;
    let (warmup, _) = reads(
        runner,
        database.as_ref(),
        "warming up",
        seconds / 5.0,
        rows,
        Stream::Warmup,
        read,
    )?;
    if warmup.stopped {
        // Threads that start now could do some work before they see it.
        return Err(Error::new(Kind::Stopped, "stopped while warming up"));
    }
    let (measured, scanned) = reads(
        runner,
        database.as_ref(),
        "measuring",
        seconds,
        rows,
        Stream::Reads,
        read,
    )?;
    finish(runner, database, &measured, bytes_per_op, scanned)
}

fn finish(
    runner: &mut Runner<'_>,
    database: Box<dyn Database>,
    measured: &Measured,
    bytes_per_op: u64,
    scanned_rows: u64,
) -> Result<()> {
    runner.record(measured, measured.spent.seconds, bytes_per_op);
    runner.row.scanned_rows = scanned_rows;
    runner.row.verified_reads = if scanned_rows > 0 {
        scanned_rows
    } else {
        measured.main.ops
    };
    runner.observe(database.as_ref());
    database.close()
}

fn reads(
    runner: &mut Runner<'_>,
    database: &dyn Database,
    phase: &str,
    seconds: f64,
    rows: u64,
    stream: fn(usize) -> Stream,
    read: Read<'_>,
) -> Result<(Measured, u64)> {
    runner.row.threads = runner.spec.threads;
    let runner = &*runner;
    let scanned = std::sync::atomic::AtomicU64::new(0);
    let measured = measure::run(
        runner.context,
        phase,
        runner.bounds(u64::MAX / 4096, seconds),
        runner.spec.threads,
        &|thread, pacer| {
            let mut client = runner.client(database)?;
            let seed = runner.seed(stream(thread));
            let mut rows_scanned = 0;
            while let Some(i) = pacer.next() {
                rows_scanned += read(&mut client, pick(seed, i, rows))?;
                pacer.done();
            }
            scanned.fetch_add(rows_scanned, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        },
        None,
    )?;
    Ok((measured, scanned.into_inner()))
}

/// Reads a row that was loaded and never written again.
fn read_loaded(client: &mut Client<'_>, row: u64) -> Result<u64> {
    match client.read(row)? {
        Some(0) => Ok(0),
        Some(version) => Err(Error::wrong(format!(
            "row {row}: found version {version}, loaded was 0"
        ))),
        None => Err(Error::wrong(format!("row {row} is missing"))),
    }
}

/// The report's test 4.
pub(super) fn random(runner: &mut Runner<'_>) -> Result<()> {
    let (rows, bytes) = (runner.spec.rows, runner.spec.row_bytes());
    measure_reads(runner, rows, bytes, &read_loaded)
}

/// The first hundredth of the keys.
pub(super) fn hot(runner: &mut Runner<'_>) -> Result<()> {
    let (rows, bytes) = (runner.spec.rows / 100, runner.spec.row_bytes());
    measure_reads(runner, rows, bytes, &read_loaded)
}

/// Keys between those that exist.
pub(super) fn missing(runner: &mut Runner<'_>) -> Result<()> {
    let keeps_data = runner.engine.keeps_data();
    measure_reads(runner, runner.spec.rows, 0, &|client, row| {
        if client.reads_between(row)? && keeps_data {
            return Err(Error::wrong(format!(
                "a key after row {row} was found that nobody wrote"
            )));
        }
        Ok(0)
    })
}

/// Checks the rows of a scan: each must be the row expected next, as it was written last.
struct Checked<'a> {
    keys: Keys,
    values: &'a Values,
    /// The version of each row; none: as loaded.
    versions: &'a [u32],
    next: Option<u64>,
    step: i64,
    seen: u64,
    wrong: Option<Error>,
}

impl Checked<'_> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let row = self.keys.row_of(key);
        let found = row.and_then(|row| self.values.check(row, value));
        if row.is_none() || row != self.next || found != row.map(|row| version_of(self.versions, row)) {
            let expected = self.next.map_or("the end".to_owned(), |row| {
                format!("row {row} of version {}", version_of(self.versions, row))
            });
            self.wrong = Some(Error::wrong(format!(
                "scan: {expected} was next, found key {}",
                key.escape_ascii()
            )));
            return ControlFlow::Break(());
        }
        self.seen += 1;
        self.next = self.next.and_then(|row| row.checked_add_signed(self.step));
        ControlFlow::Continue(())
    }
}

fn version_of(versions: &[u32], row: u64) -> u64 {
    versions.get(row as usize).copied().map_or(0, u64::from)
}

/// A seek and ten rows.
pub(super) fn seek(runner: &mut Runner<'_>) -> Result<()> {
    let rows = runner.spec.rows;
    let bytes = runner.spec.row_bytes() * ROWS_A_SEEK;
    runner.row.notes.push(format!(
        "an operation is a new iterator, a seek and {ROWS_A_SEEK} rows"
    ));
    measure_reads(runner, rows, bytes, &|client, row| {
        let expected = ROWS_A_SEEK.min(rows - row);
        let (keys, values) = client.rows();
        let mut checked = Checked {
            keys,
            values,
            versions: &[],
            next: Some(row),
            step: 1,
            seen: 0,
            wrong: None,
        };
        client.scan_from(row, &mut |key, value| {
            checked.row(key, value).is_continue() && checked.seen < expected
        })?;
        match checked.wrong {
            Some(error) => Err(error),
            None if checked.seen < expected => {
                Err(Error::wrong(format!("scan: rows after {row} are missing")))
            }
            None => Ok(checked.seen),
        }
    })
}

/// All rows once, which have these versions (none: as loaded).
fn iterate(
    runner: &mut Runner<'_>,
    database: Box<dyn Database>,
    versions: &[u32],
    start: Start<'static>,
) -> Result<()> {
    let spec = runner.spec;
    let measured = measure::run(
        runner.context,
        "measuring",
        runner.bounds(spec.rows, spec.cap_seconds),
        1,
        &|_, pacer| {
            let mut client = runner.client(database.as_ref())?;
            let (keys, values) = client.rows();
            let (next, step) = if start == Start::Last {
                (spec.rows - 1, -1)
            } else {
                (0, 1)
            };
            let mut checked = Checked {
                keys,
                values,
                versions,
                next: Some(next),
                step,
                seen: 0,
                wrong: None,
            };
            client.scan(start, &mut |key, value| {
                let good = checked.row(key, value).is_continue();
                pacer.done();
                good && pacer.next().is_some()
            })?;
            match checked.wrong {
                Some(error) => Err(error),
                None if checked.seen < spec.rows && pacer.next().is_some() => Err(Error::wrong(format!(
                    "the scan ended after {} of {} rows",
                    checked.seen, spec.rows
                ))),
                None => Ok(()),
            }
        },
        None,
    )?;
    runner.row.capped = measured.out_of_time;
    let bytes = runner.spec.row_bytes();
    finish(runner, database, &measured, bytes, measured.main.ops)
}

/// Ascending.
pub(super) fn forward(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Read, READ_BLOCK_BYTES, false)?;
    iterate(runner, database, &[], Start::First)
}

/// Descending.
pub(super) fn reverse(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Read, READ_BLOCK_BYTES, false)?;
    iterate(runner, database, &[], Start::Last)
}

/// Ascending, over what overwriting leaves behind once it has settled.
pub(super) fn forward_overwritten(runner: &mut Runner<'_>) -> Result<()> {
    let database = runner.loaded(Profile::Write, READ_BLOCK_BYTES, false)?;
    let written = write::rewrite_and_settle(runner, database)?;
    let versions = match runner.engine.keeps_data() {
        true => runner.replay_all(written)?,
        false => Vec::new(),
    };
    let database = runner.open(Profile::Read, READ_BLOCK_BYTES, false)?;
    iterate(runner, database, &versions, Start::First)
}
