//! What all tests share, whatever the report: opening, loading, turning measurements into a row, checking.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use esker_lab_core::account::{Account, Spent, peak_rss_bytes};
use esker_lab_core::data::{Values, mix, pick};
use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Profile};
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result, cgroup, size};

use crate::client::Client;
use crate::measure::{self, Bounds, Measured};
use crate::{Context, Load, Spec, idle};

/// Rows that are read back after a test that wrote.
const SAMPLED_ROWS: u64 = 2_000;

/// Blocks in the report's write tests and in its read tests, in bytes.
pub(crate) const WRITE_BLOCK_BYTES: usize = 64 << 10;
pub(crate) const READ_BLOCK_BYTES: usize = 4 << 10;

const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// Streams of random choices, told apart by these numbers.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Writes,
    Sample,
    Warmup(usize),
    Reads(usize),
    Transactions(usize),
}

/// One test on one engine.
pub(crate) struct Runner<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) spec: &'a Spec,
    pub(crate) context: &'a Context<'a>,
    pub(crate) values: Values,
    pub(crate) row: Row,
    variant: &'a str,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        engine: &'a dyn Engine,
        variant: &'a str,
        spec: &'a Spec,
        context: &'a Context<'a>,
    ) -> Result<Self> {
        let row = Row {
            engine: engine.name().to_owned(),
            version: engine.version()?,
            variant: variant.to_owned(),
            workload: spec.test.clone(),
            threads: 1,
            ..Row::default()
        };
        let values = spec.dataset().values();
        Ok(Runner {
            engine,
            spec,
            context,
            values,
            row,
            variant,
        })
    }

    /// The seed of a stream.
    pub(crate) fn seed(&self, stream: Stream) -> u64 {
        let number = match stream {
            Stream::Writes => 1,
            Stream::Sample => 2,
            Stream::Warmup(thread) => 1 << 32 | thread as u64,
            Stream::Reads(thread) => 2 << 32 | thread as u64,
            Stream::Transactions(thread) => 3 << 32 | thread as u64,
        };
        mix(self.spec.seed ^ mix(number))
    }

    pub(crate) fn bounds(&self, ops_per_thread: u64, seconds: f64) -> Bounds {
        Bounds {
            ops_per_thread,
            time: Duration::try_from_secs_f64(seconds).unwrap_or(FOREVER),
            interval: Duration::from_secs_f64(self.spec.interval_s),
        }
    }

    pub(crate) fn open(
        &self,
        profile: Profile,
        block_bytes: usize,
        merge_operator: bool,
    ) -> Result<Box<dyn Database>> {
        self.open_as(profile, block_bytes, merge_operator, false)
    }

    fn open_as(
        &self,
        profile: Profile,
        block_bytes: usize,
        merge_operator: bool,
        transactions: bool,
    ) -> Result<Box<dyn Database>> {
        let settings = OpenSettings {
            profile,
            memory_bytes: self.spec.memory_bytes,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            block_bytes,
            compression: self.spec.compression,
            dataset: self.spec.dataset(),
            merge_operator,
            transactions,
        };
        self.engine.open(&self.context.dir, self.variant, &settings)
    }

    /// One thread's way to work on `database`.
    pub(crate) fn client<'c>(&'c self, database: &'c dyn Database) -> Result<Client<'c>> {
        Client::new(database, self.spec.dataset().keys, &self.values)
    }

    /// Writes all rows in key order, version 0, without the log, or `batch` rows a call.
    pub(crate) fn fill(
        &self,
        database: &dyn Database,
        phase: &str,
        bounds: Bounds,
        batch: Option<(usize, Durability)>,
    ) -> Result<Measured> {
        measure::run(
            self.context,
            phase,
            bounds,
            1,
            &|_, pacer| {
                let mut client = self.client(database)?;
                let Some((rows_a_batch, durability)) = batch else {
                    while let Some(row) = pacer.next() {
                        client.put(row, 0, Durability::None)?;
                        pacer.done();
                    }
                    return Ok(());
                };
                while let Some(first) = pacer.next() {
                    let count = (self.spec.rows - first).min(rows_a_batch as u64);
                    client.put_batch(first, count as usize, durability)?;
                    pacer.done_many(count);
                }
                Ok(())
            },
            None,
        )
    }

    /// Loads what a test needs, unmeasured, and opens it again as the test wants it.
    pub(crate) fn loaded(
        &mut self,
        profile: Profile,
        block_bytes: usize,
        merge_operator: bool,
    ) -> Result<Box<dyn Database>> {
        self.load_first(Load {
            block_bytes,
            merge_operator,
        })?;
        self.open(profile, block_bytes, merge_operator)
    }

    /// The same, opened for transactions.
    pub(crate) fn loaded_for_transactions(
        &mut self,
        profile: Profile,
        block_bytes: usize,
    ) -> Result<Box<dyn Database>> {
        let merge_operator = false;
        self.load_first(Load {
            block_bytes,
            merge_operator,
        })?;
        self.open_as(profile, block_bytes, merge_operator, true)
    }

    fn load_first(&mut self, load: Load) -> Result<()> {
        let start = Instant::now();
        match self.context.load_elsewhere {
            Some(elsewhere) => elsewhere(load)?,
            None => self.load(load)?,
        }
        self.row.load_seconds = start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Loads all rows in key order, settles and closes.
    pub(crate) fn load(&self, load: Load) -> Result<()> {
        let database = self.open(Profile::BulkSequential, load.block_bytes, load.merge_operator)?;
        let bounds = self.bounds(self.spec.rows, f64::INFINITY);
        let load = self.fill(database.as_ref(), "loading", bounds, None)?;
        if load.stopped {
            return Err(Error::new(Kind::Stopped, "stopped while loading"));
        }
        database.flush()?;
        self.wait_until_idle(database.as_ref(), "settling the load")?;
        database.close()
    }

    pub(crate) fn wait_until_idle(&self, database: &dyn Database, phase: &str) -> Result<Instant> {
        idle::wait(
            database,
            self.context,
            Duration::from_secs_f64(self.spec.idle_poll_s),
            phase,
        )
    }

    /// Puts a measured part into the row.
    pub(crate) fn record(&mut self, measured: &Measured, seconds: f64, bytes_per_op: u64) {
        let row = &mut self.row;
        measured.shape(row);
        row.ops = measured.main.ops;
        row.seconds = seconds;
        row.ops_per_s = row.ops as f64 / seconds;
        row.mb_per_s = row.ops_per_s * bytes_per_op as f64 / 1e6;
        row.interval_s = measured.rates.interval_s;
        row.slowest_interval_ratio = measured.rates.slowest_ratio().unwrap_or(0.0);
        row.peak_db_bytes = row.peak_db_bytes.max(measured.peak_db_bytes);
        row.partial |= measured.stopped;
        row.live_bytes = self.spec.data_bytes();
        self.spent(&measured.spent, false);
    }

    /// Puts resources into the row: those of the measured part, or those with the settling after it.
    pub(crate) fn spent(&mut self, spent: &Spent, settled: bool) {
        let row = &mut self.row;
        let side = row.writes_per_s * row.seconds;
        let ops = (row.ops as f64 + side).max(1.0);
        row.cpu_us_per_op_settled = spent.cpu_us / ops;
        row.write_bytes_per_op_settled = spent.write_bytes as f64 / ops;
        row.device_write_bytes_per_op = spent.device_write_bytes.map(|b| b as f64 / ops);
        if row.written_rows > 0 {
            let written = row.written_rows * self.spec.row_bytes();
            row.write_amplification = spent.write_bytes as f64 / written as f64;
        }
        if !settled {
            row.cpu_us_per_op = row.cpu_us_per_op_settled;
            row.write_bytes_per_op = row.write_bytes_per_op_settled;
            row.read_ops_per_op = spent.read_calls as f64 / ops;
            row.read_bytes_per_op = spent.read_bytes as f64 / ops;
            row.device_reads_per_op = spent.device_reads.map(|r| r as f64 / ops);
        }
    }

    /// Waits until the engine is idle and puts the time and all resources since `before` into the row.
    pub(crate) fn settle(&mut self, database: &dyn Database, before: &Account, ended: Instant) -> Result<()> {
        let idle_at = self.wait_until_idle(database, "settling")?;
        self.row.settle_seconds = idle_at.saturating_duration_since(ended).as_secs_f64();
        self.spent(&Account::now(&self.context.dir).since(before), true);
        self.observe(database);
        Ok(())
    }

    /// Notes sizes and what the engine says about itself.
    pub(crate) fn observe(&mut self, database: &dyn Database) {
        self.row.db_bytes = size::allocated_bytes(&self.context.dir);
        self.row.peak_db_bytes = self.row.peak_db_bytes.max(self.row.db_bytes);
        self.row.engine_settings = database.applied();
        self.row.engine_stats = database.stats();
    }

    /// Reads a sample of rows back. `expected` gives the version that each must have, `None` if it must be missing.
    pub(crate) fn verify(
        &mut self,
        database: &dyn Database,
        expected: &HashMap<u64, Option<u64>>,
    ) -> Result<()> {
        if !self.engine.keeps_data() {
            return Ok(());
        }
        self.context.tell("checking", None, 0.0);
        let mut client = Client::new(database, self.spec.dataset().keys, &self.values)?;
        for (&row, &version) in expected {
            let found = client.read(row)?;
            if found != version {
                let say = |v: Option<u64>| v.map_or("no row".to_owned(), |v| format!("version {v}"));
                return Err(Error::wrong(format!(
                    "row {row}: found {} where {} was written last",
                    say(found),
                    say(version)
                )));
            }
            self.row.verified_reads += 1;
        }
        Ok(())
    }

    /// Random rows, to be read back; `initial` is the version that they have before the test.
    pub(crate) fn sample(&self, initial: Option<u64>) -> HashMap<u64, Option<u64>> {
        let (rows, sample) = (self.spec.rows, self.seed(Stream::Sample));
        (0..SAMPLED_ROWS.min(rows))
            .map(|i| (pick(sample, i, rows), initial))
            .collect()
    }

    /// The versions that a sample of rows has after `writes` writes of the write stream over `initial` ones.
    pub(crate) fn replay(&self, writes: u64, initial: Option<u64>) -> HashMap<u64, Option<u64>> {
        let (rows, stream) = (self.spec.rows, self.seed(Stream::Writes));
        let mut expected = self.sample(initial);
        // Unless few rows are many writes apart, the sample holds rows of both kinds: written and not.
        for i in 0..writes {
            if let Some(version) = expected.get_mut(&pick(stream, i, rows)) {
                *version = Some(i + 1);
            }
        }
        expected
    }

    /// The version that every row has after `writes` writes of the write stream over rows as they were loaded. Four bytes a row.
    pub(crate) fn replay_all(&self, writes: u64) -> Result<Vec<u32>> {
        let (rows, stream) = (self.spec.rows, self.seed(Stream::Writes));
        let last = u32::try_from(writes)
            .map_err(|_| Error::usage(format!("{writes} writes are too many to be checked one by one")))?;
        let mut versions = vec![0; rows as usize];
        for (i, version) in (0..).zip(1..=last) {
            versions[pick(stream, i, rows) as usize] = version;
        }
        Ok(versions)
    }

    /// The row, with what is known only at the end.
    pub(crate) fn finish(mut self) -> Row {
        self.row.rss_bytes = peak_rss_bytes();
        self.row.group_peak_bytes = self
            .context
            .group
            .as_deref()
            .and_then(cgroup::peak_bytes)
            .unwrap_or(0);
        self.row
    }
}
