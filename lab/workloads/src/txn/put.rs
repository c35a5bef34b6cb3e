//! Plain puts, which the cost of a commit is compared with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use esker_lab_core::account::Account;
use esker_lab_core::data::pick;
use esker_lab_core::engine::{Database, Durability, Profile};
use esker_lab_core::{Error, Result, error::Kind};

use crate::measure::{self, Measured};
use crate::runner::{READ_BLOCK_BYTES, Runner, Stream};

/// The rows of each thread: those whose number leaves the thread's when divided by the number of threads.
struct Puts {
    durability: Durability,
    threads: u64,
    rows_per_thread: u64,
    /// How many each thread has done.
    done: Vec<AtomicU64>,
}

impl Puts {
    /// The row of put number `i` of a thread.
    fn row(&self, seed: u64, thread: usize, i: u64) -> u64 {
        pick(seed, i, self.rows_per_thread) * self.threads + thread as u64
    }

    /// Goes on with each thread where it stopped.
    fn phase(
        &self,
        runner: &Runner<'_>,
        database: &dyn Database,
        name: &str,
        seconds: f64,
    ) -> Result<Measured> {
        measure::run(
            runner.context,
            name,
            runner.bounds(u64::MAX / 4096, seconds),
            self.done.len(),
            &|thread, pacer| {
                let mut client = runner.client(database)?;
                let seed = runner.seed(Stream::Transactions(thread));
                let start = self.done[thread].load(Ordering::Relaxed);
                let mut end = start;
                while let Some(i) = pacer.next() {
                    end = start + i + 1;
                    client.put(self.row(seed, thread, end - 1), end, self.durability)?;
                    pacer.done();
                }
                self.done[thread].store(end, Ordering::Relaxed);
                Ok(())
            },
            None,
        )
    }
}

pub(super) fn buffered(runner: &mut Runner<'_>) -> Result<()> {
    puts(runner, Durability::Buffered)
}

pub(super) fn synced(runner: &mut Runner<'_>) -> Result<()> {
    puts(runner, Durability::Sync)
}

fn puts(runner: &mut Runner<'_>, durability: Durability) -> Result<()> {
    let database = runner.loaded(Profile::Mixed, READ_BLOCK_BYTES, false)?;
    let (threads, seconds) = (runner.spec.threads, runner.spec.seconds);
    runner.row.threads = threads;
    let puts = Puts {
        durability,
        threads: threads as u64,
        rows_per_thread: runner.spec.rows / threads as u64,
        done: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    if puts
        .phase(runner, database.as_ref(), "warming up", seconds / 5.0)?
        .stopped
    {
        return Err(Error::new(Kind::Stopped, "stopped while warming up"));
    }
    let before = Account::now(&runner.context.dir);
    let measured = puts.phase(runner, database.as_ref(), "measuring", seconds)?;
    let ended = Instant::now();
    runner.row.written_rows = measured.main.ops;
    runner.record(&measured, measured.spent.seconds, runner.spec.row_bytes());
    if durability == Durability::Sync {
        runner.row.syncs_per_op = database.syncs_per_write();
    }
    if measured.stopped {
        runner.observe(database.as_ref());
        return Ok(());
    }
    runner.settle(database.as_ref(), &before, ended)?;
    let mut expected = runner.sample(Some(0));
    for (thread, done) in puts.done.iter().enumerate() {
        let seed = runner.seed(Stream::Transactions(thread));
        for i in 0..done.load(Ordering::Relaxed) {
            if let Some(version) = expected.get_mut(&puts.row(seed, thread, i)) {
                *version = Some(i + 1);
            }
        }
    }
    runner.verify(database.as_ref(), &expected)?;
    database.close()
}
