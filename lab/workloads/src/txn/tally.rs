//! Running transactions until they are committed, and counting what they came to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use esker_lab_core::account::Account;
use esker_lab_core::engine::{Database, Durability, Profile, Start};
use esker_lab_core::transaction::{Begin, Loss};
use esker_lab_core::{Error, Result, error::Kind};

use super::client::TransactionClient;
use crate::measure::{self, Measured, Pacer};
use crate::runner::{READ_BLOCK_BYTES, Runner, Stream};

/// More operations than fit into any time.
const UNBOUNDED: u64 = u64::MAX / 4096;

/// Threads that read all rows before anything is measured.
const READERS: u64 = 4;

/// What a test's transactions are.
pub(super) struct Shape {
    /// How each begins.
    pub(super) begin: Begin,
    /// Rows that each reads or updates, once for each time.
    pub(super) rows: u64,
    /// Of these, those that it updates.
    pub(super) updates: u64,
    /// The plain puts that its cost is compared with; empty where it writes nothing.
    pub(super) plain_workload: &'static str,
}

/// One transaction between its begin and its commit: number `i` of the stream of choices `seed`.
pub(super) type Body<'a> = &'a (dyn Fn(&mut TransactionClient<'_>, u64, u64) -> Result<()> + Sync);

/// What transactions of all threads came to.
#[derive(Default)]
struct Tally {
    committed: AtomicU64,
    conflicts: AtomicU64,
    deadlocks: AtomicU64,
    timeouts: AtomicU64,
}

impl Tally {
    fn of(&self, loss: Loss) -> &AtomicU64 {
        match loss {
            Loss::Conflict => &self.conflicts,
            Loss::Deadlock => &self.deadlocks,
            Loss::TimedOut => &self.timeouts,
        }
    }

    /// How many of these there were since this was asked last.
    fn take(&self, loss: Loss) -> u64 {
        self.of(loss).swap(0, Ordering::Relaxed)
    }
}

/// Runs a transaction until it is committed; false if the time ended before.
fn committed(
    client: &mut TransactionClient<'_>,
    pacer: &mut Pacer<'_>,
    tally: &Tally,
    begin: Begin,
    body: &mut dyn FnMut(&mut TransactionClient<'_>) -> Result<()>,
) -> Result<bool> {
    loop {
        client.begin(begin)?;
        let Err(error) = body(client).and_then(|()| client.commit()) else {
            return Ok(true);
        };
        let loss = Loss::of(error.kind()).ok_or(error)?;
        tally.of(loss).fetch_add(1, Ordering::Relaxed);
        client.roll_back()?;
        if pacer.next().is_none() {
            return Ok(false);
        }
    }
}

fn phase(
    runner: &Runner<'_>,
    database: &dyn Database,
    (name, seconds): (&str, f64),
    stream: fn(usize) -> Stream,
    (shape, body, tally): (&Shape, Body<'_>, &Tally),
) -> Result<Measured> {
    measure::run(
        runner.context,
        name,
        runner.bounds(UNBOUNDED, seconds),
        runner.spec.threads,
        &|thread, pacer| {
            let keys = runner.spec.dataset().keys;
            let mut client = TransactionClient::new(database, keys, &runner.values)?;
            let seed = runner.seed(stream(thread));
            let mut count = 0;
            while let Some(i) = pacer.next() {
                if !committed(&mut client, pacer, tally, shape.begin, &mut |client| {
                    body(client, seed, i)
                })? {
                    break;
                }
                count += 1;
                pacer.done();
            }
            tally.committed.fetch_add(count, Ordering::Relaxed);
            Ok(())
        },
        None,
    )
}

/// Reads every row once, in key order, so that what is measured begins with all rows in memory, whatever the engine's way of
/// keeping them there.
fn read_all(runner: &Runner<'_>, database: &dyn Database) -> Result<()> {
    let rows = runner.spec.rows;
    let rows_a_thread = rows.div_ceil(READERS);
    let read = measure::run(
        runner.context,
        "reading all rows",
        runner.bounds(rows_a_thread, f64::INFINITY),
        READERS as usize,
        &|thread, pacer| {
            let mut client = runner.client(database)?;
            let first = thread as u64 * rows_a_thread;
            while let Some(i) = pacer.next() {
                let row = first + i;
                if row < rows && client.read(row)? != Some(0) {
                    return Err(Error::wrong(format!("row {row} is not as it was loaded")));
                }
                pacer.done();
            }
            Ok(())
        },
        None,
    )?;
    match read.stopped {
        true => Err(Error::new(Kind::Stopped, "stopped while reading all rows")),
        false => Ok(()),
    }
}

/// Warms up, measures, settles, and checks that all updates that were committed are there, and no others.
pub(super) fn measure(runner: &mut Runner<'_>, shape: &Shape, body: Body<'_>) -> Result<()> {
    let opened = runner.loaded_for_transactions(Profile::Mixed, READ_BLOCK_BYTES)?;
    let database = opened.as_ref();
    runner.row.threads = runner.spec.threads;
    runner.row.plain_workload = shape.plain_workload.to_owned();
    let (tally, seconds) = (Tally::default(), runner.spec.seconds);
    let what = (shape, body, &tally);
    read_all(runner, database)?;
    let warmup = ("warming up", seconds / 5.0);
    if phase(runner, database, warmup, Stream::Warmup, what)?.stopped {
        // Threads that start now could do some work before they see it.
        return Err(Error::new(Kind::Stopped, "stopped while warming up"));
    }
    for loss in [Loss::Conflict, Loss::Deadlock, Loss::TimedOut] {
        tally.take(loss);
    }
    let before = Account::now(&runner.context.dir);
    let measured = phase(
        runner,
        database,
        ("measuring", seconds),
        Stream::Transactions,
        what,
    )?;
    let ended = Instant::now();
    runner.row.conflicts = tally.take(Loss::Conflict);
    runner.row.deadlocks = tally.take(Loss::Deadlock);
    runner.row.timeouts = tally.take(Loss::TimedOut);
    runner.row.written_rows = measured.main.ops * shape.updates;
    let bytes = runner.spec.row_bytes() * shape.rows;
    runner.record(&measured, measured.spent.seconds, bytes);
    if shape.begin.durability == Durability::Sync {
        runner.row.syncs_per_op = database.syncs_per_write();
    }
    runner.row.verified_reads = measured.main.ops * shape.rows;
    if shape.updates == 0 || measured.stopped {
        runner.observe(database);
    } else {
        runner.settle(database, &before, ended)?;
    }
    let updates = tally.committed.into_inner() * shape.updates;
    check_sum(runner, database, updates)?;
    opened.close()
}

/// Reads all rows and adds their versions up: as many as `updates`, or some were lost.
fn check_sum(runner: &mut Runner<'_>, database: &dyn Database, updates: u64) -> Result<()> {
    if !runner.engine.keeps_data() {
        return Ok(());
    }
    runner.context.tell("checking", None, 0.0);
    let (mut next, mut sum, mut wrong) = (0, 0, None);
    {
        let mut client = runner.client(database)?;
        let (keys, values) = client.rows();
        client.scan(Start::First, &mut |key, value| {
            let row = keys.row_of(key).filter(|&row| row == next);
            let Some(version) = row.and_then(|row| values.check(row, value)) else {
                wrong = Some(Error::wrong(format!(
                    "row {next} was next, found key {} or a value that was never written to it",
                    key.escape_ascii()
                )));
                return false;
            };
            next += 1;
            sum += version;
            true
        })?;
    }
    runner.row.verified_reads += next;
    match wrong {
        Some(error) => Err(error),
        None if next != runner.spec.rows => Err(Error::wrong(format!(
            "{next} rows are there, {} were loaded",
            runner.spec.rows
        ))),
        None if sum < updates => Err(Error::wrong(format!(
            "{} of {updates} updates that were committed are lost",
            updates - sum
        ))),
        None if sum > updates => Err(Error::wrong(format!(
            "{updates} updates were committed, {sum} are there"
        ))),
        None => Ok(()),
    }
}
