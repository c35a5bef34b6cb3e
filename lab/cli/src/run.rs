//! `esker-lab run`: jobs in alternating order, each in a process of its own; and the result file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use esker_lab_core::cgroup::Group;
use esker_lab_core::engine::Compression;
use esker_lab_core::machine::Machine;
use esker_lab_core::schema::{Row, Run, SCHEMA, Settings};
use esker_lab_core::{Error, Result, figures, size};
use esker_lab_engines::Registry;
use esker_lab_engines::registry::Choice;
use esker_lab_workloads::{Spec, Suite};

use crate::args::{Report, ReportArgs, RunArgs, ScaleArg};
use crate::jobs::{self, Allocator};
use crate::plan;
use crate::show::Show;
use crate::worker::{Job, Message};
use crate::{interrupt, limits, server, table};

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// A run under way.
pub struct Session<'a> {
    pub args: &'a RunArgs,
    pub allocator: Allocator,
    pub run: Run,
    /// Memory limits can't be set here; said once.
    unlimited: bool,
}

impl<'a> Session<'a> {
    /// Begins one whose rows share `settings`.
    pub fn begin(args: &'a RunArgs, settings: Settings) -> Result<Session<'a>> {
        std::fs::create_dir_all(&args.dir).map_err(|e| Error::io(args.dir.display(), &e))?;
        let mut session = Session {
            args,
            allocator: Allocator::find(&args.allocator)?,
            run: Run {
                schema: SCHEMA,
                lab_version: env!("CARGO_PKG_VERSION").into(),
                started_unix_s: unix_seconds(),
                command: std::env::args()
                    .enumerate()
                    .map(|(i, arg)| if i == 0 { "esker-lab".into() } else { arg })
                    .collect::<Vec<_>>()
                    .join(" "),
                machine: Machine::look(&args.dir),
                settings,
                ..Run::default()
            },
            unlimited: false,
        };
        if session.allocator.preload.is_none() && args.allocator == "auto" {
            session.note("jemalloc is not installed: all engines use the system's allocator".into());
        }
        Ok(session)
    }

    /// Takes Ctrl-C over, and measures what the disk and the memory can do at most.
    pub fn look_at_limits(&mut self) -> Result<()> {
        interrupt::in_parent();
        if self.args.skip_limits {
            return Ok(());
        }
        let (bytes, seconds) = if self.args.scale == ScaleArg::Smoke {
            (32 << 20, 0.05)
        } else {
            (1 << 30, 1.0)
        };
        self.run.limits = Some(limits::measure(&self.args.dir, bytes, seconds)?);
        Ok(())
    }

    /// The result file.
    pub fn json(&self) -> PathBuf {
        let run = &self.run;
        self.args.json.clone().unwrap_or_else(|| {
            let (suite, scale) = (&run.settings.suite, &run.settings.scale);
            PathBuf::from(format!("results/{suite}-{scale}-{}.json", run.started_unix_s))
        })
    }

    /// Every engine under every specification, the engines in turn, as often as asked for, until the user stops it; `one` measures
    /// the pair in a repetition at its place among all. What is there is written after each, so that nothing that took an hour is lost.
    pub fn alternate<S, E>(
        &mut self,
        specs: &[S],
        engines: &[E],
        mut one: impl FnMut(&mut Self, &S, &E, u32, (usize, usize)) -> Result<()>,
    ) -> Result<()> {
        let json = self.json();
        let count = specs.len() * engines.len() * self.args.repeat as usize;
        let mut number = 0;
        'all: for spec in specs {
            for repeat in 1..=self.args.repeat {
                for engine in engines {
                    if interrupt::stopped() {
                        break 'all;
                    }
                    number += 1;
                    one(self, spec, engine, repeat, (number, count))?;
                    self.run.partial = true;
                    self.run.write(&json)?;
                }
            }
        }
        self.run.partial = interrupt::stopped();
        self.run.write(&json)?;
        if !self.args.keep {
            let _ = std::fs::remove_dir(&self.args.dir);
        }
        Ok(())
    }

    pub fn note(&mut self, note: String) {
        if !self.run.notes.contains(&note) {
            eprintln!("    note: {note}");
            self.run.notes.push(note);
        }
    }

    pub fn group(&mut self, memory_bytes: u64) -> Option<Group> {
        if self.args.no_limit || self.unlimited {
            return None;
        }
        match Group::create(&format!("esker-lab-{}", std::process::id()), memory_bytes) {
            Ok(group) => Some(group),
            Err(error) => {
                self.unlimited = true;
                self.note(format!(
                    "{error}: engines are told to use {} but nothing holds them to it, and the page cache is not \
                     limited",
                    size::display(memory_bytes as f64)
                ));
                None
            }
        }
    }

    /// Runs one job; its row, if there is one, joins the run.
    fn job(
        &mut self,
        choice: &Choice<'_>,
        spec: &Spec,
        repeat: u32,
        (number, count): (usize, usize),
    ) -> Result<()> {
        let label = format!("{}:{}", choice.engine.name(), choice.variant.name);
        let mut title = format!("{:<22} {label}", spec.test);
        if self.args.repeat > 1 {
            title.push_str(&format!(" ({repeat} of {})", self.args.repeat));
        }
        let mut show = Show::new(number, count, &title);
        let dir = self.args.dir.join(format!(
            "{}-{}-{}-{repeat}",
            std::process::id(),
            spec.test,
            label.replace(':', "-")
        ));
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(dir.display(), &e))?;
        let dir = dir.canonicalize().map_err(|e| Error::io(dir.display(), &e))?;
        let group = self.group(spec.memory_bytes);
        let job = Job {
            engine: choice.engine.name().to_owned(),
            variant: choice.variant.name.to_owned(),
            spec: spec.clone(),
            dir: dir.clone(),
            group: group.as_ref().map(|g| g.path().to_owned()),
            rocksdb_lib: self.args.libraries.rocksdb_lib.clone(),
            leveldb_lib: self.args.libraries.leveldb_lib.clone(),
            dropin_dir: self.args.libraries.dropin_dir.clone(),
            load: None,
        };
        let message = jobs::run(&job, group.as_ref(), &self.allocator, &mut |p| show.progress(p));
        if !self.args.keep {
            let _ = std::fs::remove_dir_all(&dir);
        }
        let limit = group.as_ref().map_or(0, Group::limit_bytes);
        let mut row = match message? {
            Message::Row(row) => *row,
            Message::Failed(why) => Row {
                engine: job.engine,
                variant: job.variant,
                version: choice.engine.version().unwrap_or_default(),
                workload: spec.test.clone(),
                errors: 1,
                error_messages: vec![why],
                ..Row::default()
            },
            Message::Unable(why) => {
                show.done(&format!("left out: {why}"));
                self.note(format!("{label} was left out of {}: {why}", spec.test));
                return Ok(());
            }
            Message::Stopped | Message::Progress(_) => {
                show.done("stopped before there was a result");
                return Ok(());
            }
        };
        if row.errors > 0 && group.as_ref().is_some_and(|g| g.kills() > 0) {
            row.error_messages
                .push("the kernel killed a process for want of memory".into());
        }
        row.repeat = repeat;
        row.memory_limit_bytes = limit;
        row.rerun = plan::rerun(self.args, spec, choice);
        row.engine_settings
            .push(("allocator".into(), self.allocator.name()));
        show.done(&outcome(&row));
        self.run.rows.push(row);
        Ok(())
    }
}

/// One line about a finished row.
pub fn outcome(row: &Row) -> String {
    if row.errors > 0 {
        return format!("FAILED: {}", row.error_messages.join("; "));
    }
    let mut line = format!(
        "{} ops/s, p99 {}",
        figures::count(row.ops_per_s),
        figures::micros(row.p99_us)
    );
    if row.has_writer() {
        line.push_str(&format!(", writer {} rows/s", figures::count(row.writes_per_s)));
    }
    if row.losses_per_op() > 0.0 {
        let of_thousand = figures::three_digits(row.losses_per_op() * 1e3);
        line.push_str(&format!(", {of_thousand} lost and run again for 1,000 commits"));
    }
    if row.write_amplification > 0.0 {
        line.push_str(&format!(
            ", {:.2}x written, settled in {:.1} s",
            row.write_amplification, row.settle_seconds
        ));
    }
    if row.capped {
        line.push_str(", ended by the time cap");
    }
    if row.partial {
        line.push_str(", stopped early");
    }
    line
}

/// Warns when the disk may not hold what a test needs.
fn check_space(dir: &Path, spec: &Spec) -> Result<()> {
    let needed = spec.data_bytes() * 4;
    match size::free_bytes(dir) {
        Some(free) if free < needed => Err(Error::usage(format!(
            "{} has {} free; a test of {} rows may need {} (compactions keep old and new files for a while): choose \
             fewer --rows or another --dir",
            dir.display(),
            size::display(free as f64),
            spec.rows,
            size::display(needed as f64)
        ))),
        _ => Ok(()),
    }
}

/// What `--dropin` adds where it is not chosen already: the engine set up in the ways that the libraries' figures are
/// compared with, and the libraries.
const DROPIN: [&str; 4] = [
    "esker:default",
    "esker:buffered",
    "dropin-rocksdb",
    "dropin-leveldb",
];

/// Engines that can run here, each way once; what can't is noted. Fails if none can.
fn choices<'a>(registry: &'a Registry, suite: Suite, session: &mut Session<'_>) -> Result<Vec<Choice<'a>>> {
    let mut choices: Vec<Choice<'a>> = Vec::new();
    let mut names: Vec<&str> = session.args.engines.iter().map(|name| name.trim()).collect();
    if names.is_empty() {
        names.extend(suite.engines());
    }
    if session.args.dropin && suite.has_transactions() {
        return Err(Error::usage("the drop-in libraries run in flash, not in txn"));
    }
    if session.args.dropin {
        names.extend(DROPIN);
    }
    for name in names {
        let chosen = registry.choose(name, suite.has_transactions())?;
        match chosen.first().map(|c| c.engine.version()) {
            Some(Err(error)) => session.note(format!("{name} can't run here: {error}")),
            _ => {
                for choice in chosen {
                    if !choices.iter().any(|c| c.is_same_as(&choice)) {
                        choices.push(choice);
                    }
                }
            }
        }
    }
    if choices.is_empty() {
        return Err(Error::usage(
            "none of these engines can run here; `esker-lab engines` shows what can",
        ));
    }
    Ok(choices)
}

pub fn run(args: &RunArgs) -> Result<ExitCode> {
    match args.suite.report() {
        Report::Embedded(suite) => embedded(args, suite),
        Report::Server(suite) => server::run(args, suite),
    }
}

fn embedded(args: &RunArgs, suite: Suite) -> Result<ExitCode> {
    let tests = plan::tests(args, suite)?;
    let specs = tests.iter().map(|test| plan::spec(args, suite, test));
    let specs = specs.collect::<Result<Vec<Spec>>>()?;
    let base = specs
        .first()
        .ok_or_else(|| Error::usage("no test was asked for"))?;
    let registry = Registry::new(&args.libraries.libraries());
    std::fs::create_dir_all(&args.dir).map_err(|e| Error::io(args.dir.display(), &e))?;
    check_space(&args.dir, base)?;
    let mut session = Session::begin(args, plan::settings(args, base))?;
    if cfg!(debug_assertions) {
        session.note("this is a debug build of the lab: its own engines are slow in it".into());
    }
    if args.compression == Compression::Report {
        session.note(
            "compression as in the report: zlib from level 2 on in write tests (LevelDB: snappy)".into(),
        );
    }
    let choices = choices(&registry, suite, &mut session)?;
    session.look_at_limits()?;
    session.alternate(&specs, &choices, |session, spec, choice, repeat, place| {
        session.job(choice, spec, repeat, place)
    })?;
    if suite == Suite::Txn {
        println!(
            "\n{}\n{}",
            table::transactions::results(&session.run),
            table::transactions::LEGEND
        );
    } else {
        println!("\n{}", table::results(&session.run));
        print!("{}", table::dropin(&session.run));
    }
    if args.compression == Compression::None {
        println!("No compression anywhere, so that all engines do the same work; see --compression.");
    }
    finish(&session.run, args, &session.json())
}

/// Says, under the table, what is to be known of it, and where the results are.
pub fn finish(run: &Run, args: &RunArgs, json: &Path) -> Result<ExitCode> {
    if run.rows.iter().any(|r| r.capped || r.partial) {
        println!("* ended by the time cap or by the user; the rate is of the time measured");
    }
    for row in run.rows.iter().filter(|r| r.errors > 0) {
        println!(
            "FAILED {} {}: {}",
            row.workload,
            row.label(),
            row.error_messages.join("; ")
        );
    }
    if run.partial {
        println!("Partial: the run was stopped.");
    }
    println!("Results: {}", json.display());
    if let Some(html) = &args.html {
        write_page(std::slice::from_ref(run), html)?;
    }
    let failed = run.rows.iter().any(|r| r.errors > 0);
    Ok(if failed {
        ExitCode::FAILURE
    } else if run.partial {
        ExitCode::from(130)
    } else {
        ExitCode::SUCCESS
    })
}

fn write_page(runs: &[Run], path: &Path) -> Result<()> {
    let html = esker_lab_report::render(runs)?;
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| Error::io(parent.display(), &e))?;
    }
    std::fs::write(path, html).map_err(|e| Error::io(path.display(), &e))?;
    println!("Page: {}", path.display());
    Ok(())
}

/// `esker-lab report`: result files into one page.
pub fn report(args: &ReportArgs) -> Result<ExitCode> {
    let mut files = Vec::new();
    for path in &args.results {
        if path.is_dir() {
            let entries = path.read_dir().map_err(|e| Error::io(path.display(), &e))?;
            files.extend(
                entries
                    .flatten()
                    .map(|e| e.path())
                    .filter(|p| p.extension().is_some_and(|e| e == "json")),
            );
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    let mut runs = Vec::new();
    for file in &files {
        runs.push(Run::read(file)?);
    }
    if runs.is_empty() {
        return Err(Error::usage(
            "there is no result file there; `esker-lab run flash` makes one",
        ));
    }
    runs.sort_by_key(|run| run.started_unix_s);
    write_page(&runs, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn arguments(command: &str) -> Box<RunArgs> {
        match Cli::try_parse_from(command.split_whitespace()).map(|cli| cli.command) {
            Ok(Command::Run(args)) => args,
            _ => panic!("{command}"),
        }
    }

    #[test]
    fn drop_in_libraries_run_beside_the_engine_once_each_way() {
        let names = |command: &str| {
            let args = arguments(command);
            let registry = Registry::new(&Default::default());
            let mut session = Session {
                args: &args,
                allocator: Allocator { preload: None },
                run: Run::default(),
                unlimited: false,
            };
            let choices = choices(&registry, Suite::Flash, &mut session).unwrap();
            let native = choices.iter().filter(|c| c.engine.name() == "esker");
            native.map(|c| c.variant.name).collect::<Vec<_>>()
        };
        assert_eq!(names("esker-lab run flash --engines esker"), ["default"]);
        let both = ["default", "buffered"];
        assert_eq!(names("esker-lab run flash --engines esker --dropin"), both);
        assert_eq!(names("esker-lab run flash --engines memory --dropin"), both);
        assert_eq!(
            names("esker-lab run flash --engines esker:buffered,esker:buffered --dropin"),
            ["buffered", "default"]
        );
    }
}
