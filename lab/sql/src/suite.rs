//! Running the tests: one server for an engine, the tests one after the other on its table.

use std::path::Path;
use std::time::Duration;

use esker_lab_core::account::{Account, Spent};
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result};
use esker_lab_workloads::measure::{self, Bounds};
use esker_lab_workloads::{Context, Progress};

use crate::catalog::{Counted, INSERT, READ_WRITE, SYSBENCH, Test, Work};
use crate::engine::Setup;
use crate::insert;
use crate::server::{Connection, Server, Start};
use crate::sysbench::{self, Call};

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Report 002.
    Sysbench,
    /// Reports 000 and 001.
    Insert,
}

/// How the data stands to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// All of it fits.
    Cached,
    /// It is larger.
    Larger,
}

/// Longest wait for background work, after a test that writes.
const SETTLE_MAX: Duration = Duration::from_secs(120);

impl Suite {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Sysbench => "sysbench",
            Suite::Insert => "insert",
        }
    }

    /// Its tests, in the order in which they run.
    pub fn tests(self) -> &'static [Test] {
        match self {
            Suite::Sysbench => SYSBENCH,
            Suite::Insert => INSERT,
        }
    }

    /// Those that are called so, in the suite's order; all without names. The insert benchmark's queries need its rows, so its load
    /// runs always.
    pub fn choose(self, names: &[String]) -> Result<Vec<&'static Test>> {
        for name in names {
            if name != "all" && !self.tests().iter().any(|t| t.name == name) {
                let all: Vec<_> = self.tests().iter().map(|t| t.name).collect();
                return Err(Error::usage(format!(
                    "{} has no test `{name}`; it has {}",
                    self.name(),
                    all.join(", ")
                )));
            }
        }
        let wanted = |test: &&Test| {
            names.is_empty()
                || test.work == Work::Load
                || names.iter().any(|name| name == "all" || name == test.name)
        };
        Ok(self.tests().iter().filter(wanted).collect())
    }
}

impl Data {
    /// A test's name with this data.
    pub fn name_of(self, test: &str) -> String {
        match self {
            Data::Cached => test.to_owned(),
            Data::Larger => format!("{test}.larger"),
        }
    }
}

/// What to run on one server, with every number resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The report.
    pub suite: Suite,
    /// Its tests.
    pub tests: Vec<&'static Test>,
    /// How rows and memory stand to each other.
    pub data: Data,
    /// Rows of the table.
    pub rows: u64,
    /// Clients.
    pub threads: usize,
    /// Length of a test, in seconds.
    pub seconds: f64,
    /// Length of an interval of the rates, in seconds.
    pub interval_s: f64,
    /// Seed of data and choices.
    pub seed: u64,
    /// The server's.
    pub setup: Setup,
}

/// A run under way.
struct Session<'a> {
    spec: &'a Spec,
    context: &'a Context<'a>,
    start: &'a Start<'a>,
    server: Server,
    version: String,
    rows: u64,
}

/// Runs the tests on a server of their own; `done` gets each row. What goes wrong is in the rows, but for a server that does not start.
pub fn run(spec: &Spec, context: &Context<'_>, start: &Start<'_>, done: &mut dyn FnMut(Row)) -> Result<()> {
    let server = Server::start(start)?;
    let mut connection = server.connect()?;
    let version = version(&mut connection, start.engine.sql_name)?;
    let mut session = Session {
        spec,
        context,
        start,
        server,
        version,
        rows: 0,
    };
    let result = session.tests(&mut connection, done);
    if let Err(error) = result
        && error.kind() != Kind::Stopped
    {
        let mut row = session.row("check");
        row.errors = 1;
        row.error_messages.push(error.to_string());
        done(row);
        // It may not be able to stop any more; it is killed.
        return Ok(());
    }
    drop(connection);
    session.server.stop()
}

fn version(connection: &mut Connection, engine: &str) -> Result<String> {
    let found = connection.first(&format!(
        "SELECT VERSION(), PLUGIN_AUTH_VERSION FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'STORAGE ENGINE' \
         AND PLUGIN_NAME = '{engine}'"
    ))?;
    Ok(format!("{} in MariaDB {}", found[1], found[0]))
}

/// Fails unless `figures` are the same by every index, and the first of them is `rows` where that is known.
pub(crate) fn same_in_all(
    connection: &mut Connection,
    table: &str,
    indexes: &[&str],
    figures: &str,
    rows: Option<u64>,
) -> Result<()> {
    let mut first: Option<Vec<String>> = None;
    for index in indexes {
        let found = connection.first(&format!("SELECT {figures} FROM {table} FORCE INDEX ({index})"))?;
        let expected = first.get_or_insert_with(|| found.clone());
        if *expected != found {
            return Err(Error::wrong(format!(
                "{table} has {} by {} and {} by {index}",
                expected.join(", "),
                indexes[0],
                found.join(", ")
            )));
        }
        if rows.is_some_and(|rows| found[0] != rows.to_string()) {
            return Err(Error::wrong(format!(
                "{table} has {} rows by {index}, and {} were acknowledged",
                found[0],
                rows.unwrap_or(0)
            )));
        }
    }
    Ok(())
}

const LOADED: &str = "load";

impl Session<'_> {
    fn tests(&mut self, connection: &mut Connection, done: &mut dyn FnMut(Row)) -> Result<()> {
        if self.spec.suite == Suite::Sysbench {
            done(self.prepare(connection)?);
        } else {
            connection.run(&insert::create(self.start.engine.sql_name))?;
        }
        for test in &self.spec.tests {
            if self.context.stopped() {
                return Err(Error::new(Kind::Stopped, "stopped"));
            }
            let row = match test.work {
                Work::Script { .. } => self.script(test, connection)?,
                Work::Load => {
                    let row = self.load(test)?;
                    // Which reads all of every index, so that engines begin alike.
                    insert::check(connection, self.rows)?;
                    row
                }
                Work::Queries { writes_per_s } => self.queries(test, writes_per_s)?,
            };
            done(row);
        }
        match self.spec.suite {
            Suite::Sysbench => same_in_all(
                connection,
                "sbtest1",
                &["PRIMARY", "k_1"],
                "COUNT(*), SUM(id), SUM(k)",
                None,
            ),
            Suite::Insert => insert::check(connection, self.rows),
        }
    }

    fn tell(&self, phase: &str, ops_per_s: f64) {
        (self.context.tell)(Progress {
            phase: phase.to_owned(),
            share: None,
            ops_per_s,
        });
    }

    /// A row without figures.
    fn row(&self, test: &str) -> Row {
        Row {
            engine: self.start.engine.name.into(),
            version: self.version.clone(),
            workload: self.spec.data.name_of(test),
            threads: self.spec.threads,
            interval_s: self.spec.interval_s,
            engine_settings: self.server.options(),
            ..Row::default()
        }
    }

    /// Puts in what was spent since `before` on `ops` operations; after writes it waits for what is left to do and counts that too.
    fn finish(&self, row: &mut Row, ops: u64, before: &Account, measured: &Spent, writes: bool) {
        let each = |figure: f64| figure / ops.max(1) as f64;
        row.ops = ops;
        row.ops_per_s = if row.seconds > 0.0 {
            ops as f64 / row.seconds
        } else {
            0.0
        };
        row.cpu_us_per_op = each(measured.cpu_us);
        row.write_bytes_per_op = each(measured.write_bytes as f64);
        if writes {
            let from = std::time::Instant::now();
            if !self.server.settle(SETTLE_MAX, self.context.stop) {
                row.notes.push("background work did not end in time".into());
            }
            row.settle_seconds = from.elapsed().as_secs_f64();
        }
        let all = self.server.account().since(before);
        row.cpu_us_per_op_settled = each(all.cpu_us);
        row.write_bytes_per_op_settled = each(all.write_bytes as f64);
        row.read_bytes_per_op = each(measured.read_bytes as f64);
        row.read_ops_per_op = each(measured.read_calls as f64);
        row.device_reads_per_op = measured.device_reads.map(|n| each(n as f64));
        row.device_write_bytes_per_op = all.device_write_bytes.map(|n| each(n as f64));
        row.db_bytes = self.server.data_bytes();
        row.rss_bytes = self.server.rss_bytes();
        row.group_peak_bytes = self.server.group_peak_bytes();
        if !row.interval_rates.is_empty() && row.ops_per_s > 0.0 {
            let least = row.interval_rates.iter().copied().fold(f64::MAX, f64::min);
            let average = row.interval_rates.iter().sum::<f64>() / row.interval_rates.len() as f64;
            row.slowest_interval_ratio = least / average;
        }
    }

    fn folder(&self) -> &Path {
        self.start.folder
    }

    fn sysbench(&self, script: &str, options: &[&str], command: &str, phase: &str) -> Result<sysbench::Said> {
        let call = Call {
            script,
            options,
            command,
            engine: self.start.engine.sql_name,
            rows: self.spec.rows,
            threads: self.spec.threads,
            seconds: self.spec.seconds,
            seed: self.spec.seed,
        };
        sysbench::call(
            &self.server,
            self.folder(),
            &call,
            self.context.stop,
            &mut |rate| {
                self.tell(phase, rate);
            },
        )
    }

    /// Makes sysbench's table, and reads all of it once, so that engines begin alike.
    fn prepare(&mut self, connection: &mut Connection) -> Result<Row> {
        let before = self.server.account();
        self.tell("loading", 0.0);
        self.sysbench(READ_WRITE, &[], "prepare", "loading")?;
        let spent = self.server.account().since(&before);
        let mut row = self.row(LOADED);
        row.threads = 1;
        row.seconds = spent.seconds;
        self.rows = self.spec.rows;
        self.finish(&mut row, self.rows, &before, &spent, true);
        connection.run("ANALYZE TABLE sbtest1")?;
        connection.first("SELECT SUM(LENGTH(pad)) FROM sbtest1 FORCE INDEX (PRIMARY)")?;
        connection.first("SELECT SUM(k) FROM sbtest1 FORCE INDEX (k_1)")?;
        Ok(row)
    }

    /// A test that sysbench runs.
    fn script(&mut self, test: &Test, connection: &mut Connection) -> Result<Row> {
        let Work::Script {
            name,
            options,
            counted,
            writes,
        } = test.work
        else {
            return Err(Error::usage(format!("{} is no script", test.name)));
        };
        let rows = match counted {
            Counted::Queries => 1,
            Counted::Rows => connection.first("SELECT COUNT(*) FROM sbtest1")?[0]
                .parse()
                .map_err(|_| Error::wrong("COUNT(*) is no number"))?,
        };
        let mut row = self.row(test.name);
        let before = self.server.account();
        let said = match self.sysbench(name, options, "run", test.name) {
            Ok(said) => said,
            Err(error) if error.kind() == Kind::Engine => {
                row.errors = 1;
                row.error_messages.push(error.to_string());
                return Ok(row);
            }
            Err(error) => return Err(error),
        };
        let spent = self.server.account().since(&before);
        row.seconds = said.seconds;
        row.interval_s = 1.0;
        row.interval_rates = said.rates.iter().map(|rate| rate * rows as f64).collect();
        let percentile = |percent| said.percentile_us(percent);
        (row.p50_us, row.p90_us, row.p99_us) = (percentile(50.0), percentile(90.0), percentile(99.0));
        (row.p999_us, row.max_us) = (percentile(99.9), percentile(100.0));
        row.conflicts = said.ignored_errors;
        self.finish(&mut row, said.queries * rows, &before, &spent, writes);
        if rows > 1 {
            row.notes.push(format!(
                "an operation is one of the {rows} rows that a query looks at"
            ));
        }
        Ok(row)
    }

    /// Rows into the insert benchmark's table.
    fn load(&mut self, test: &Test) -> Result<Row> {
        let threads = self.spec.threads as u64;
        let each = (self.spec.rows / threads).div_ceil(insert::ROWS_PER_COMMIT) * insert::ROWS_PER_COMMIT;
        let before = self.server.account();
        let (server, seed) = (&self.server, self.spec.seed);
        let measured = measure::run(
            self.context,
            test.name,
            Bounds {
                ops_per_thread: each,
                time: Duration::from_secs(24 * 3600),
                interval: Duration::from_secs_f64(self.spec.interval_s),
            },
            self.spec.threads,
            &|thread, pacer| insert::write(server, pacer, seed, thread as u64 * each, None),
            None,
        )?;
        let spent = self.server.account().since(&before);
        self.rows += measured.main.ops;
        let mut row = self.row(test.name);
        shape(&mut row, &measured);
        row.partial = measured.stopped;
        self.finish(&mut row, measured.main.ops, &before, &spent, true);
        Ok(row)
    }

    /// Queries beside a writer.
    fn queries(&mut self, test: &Test, writes_per_s: f64) -> Result<Row> {
        let before = self.server.account();
        let (server, seed, rows) = (&self.server, self.spec.seed, self.rows);
        let measured = measure::run(
            self.context,
            test.name,
            Bounds {
                ops_per_thread: u64::MAX,
                time: Duration::from_secs_f64(self.spec.seconds),
                interval: Duration::from_secs_f64(self.spec.interval_s),
            },
            self.spec.threads,
            &|thread, pacer| insert::read(server, pacer, seed ^ thread as u64, rows),
            Some(&|_, pacer| insert::write(server, pacer, seed, rows, Some(writes_per_s))),
        )?;
        let spent = self.server.account().since(&before);
        self.rows += measured.side.ops;
        let mut row = self.row(test.name);
        shape(&mut row, &measured);
        row.writes_per_s = measured.side.ops as f64 / row.seconds;
        row.write_p99_us = measured.side.latencies.percentile_us(99.0);
        row.partial = measured.stopped;
        self.finish(&mut row, measured.main.ops, &before, &spent, true);
        Ok(row)
    }
}

/// Times and rates of what the lab itself measured.
fn shape(row: &mut Row, measured: &measure::Measured) {
    measured.shape(row);
    row.seconds = measured.spent.seconds;
    row.written_rows = measured.side.ops;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_chosen_by_name_and_run_in_order() {
        let chosen = |suite: Suite, names: &[&str]| -> Result<Vec<&str>> {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            Ok(suite.choose(&names)?.iter().map(|t| t.name).collect())
        };
        assert_eq!(
            chosen(Suite::Sysbench, &["insert", "point-query.pre"]).unwrap(),
            ["point-query.pre", "insert"]
        );
        assert_eq!(
            chosen(Suite::Insert, &["queries-100"]).unwrap(),
            ["insert-load", "queries-100"]
        );
        assert_eq!(chosen(Suite::Sysbench, &[]).unwrap().len(), SYSBENCH.len());
        assert!(chosen(Suite::Insert, &["point-query"]).is_err());
        let names: std::collections::HashSet<_> = SYSBENCH.iter().map(|t| t.name).collect();
        assert_eq!(names.len(), SYSBENCH.len());
    }
}
