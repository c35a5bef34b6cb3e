//! `esker-lab run sysbench` and `run insert`: engines in a database server, one server after the other.

use std::process::ExitCode;

use esker_lab_core::cgroup::Group;
use esker_lab_core::schema::{Row, Settings};
use esker_lab_core::{Error, Result};
use esker_lab_sql::catalog::Test;
use esker_lab_sql::engine::{ENGINES, Engine, Setup};
use esker_lab_sql::server::{Home, Start};
use esker_lab_sql::suite::{self, Data, Spec, Suite};
use esker_lab_sql::sysbench;
use esker_lab_workloads::Context;

use crate::args::{DataArg, RunArgs, ScaleArg};
use crate::plan::scale_name;
use crate::run::{Session, finish, outcome};
use crate::show::Show;
use crate::{interrupt, table};

/// Arguments that mean nothing here.
fn refuse_others(args: &RunArgs) -> Result<()> {
    let others = [
        ("--value-bytes", args.value_bytes.is_some()),
        ("--cap", args.cap.is_some()),
        ("--dropin", args.dropin),
    ];
    match others.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Error::usage(format!("{name} is for flash and txn"))),
        None => Ok(()),
    }
}

/// The engines that are asked for and can run; what can't is noted.
fn engines(session: &mut Session<'_>, home: &Home) -> Result<Vec<&'static Engine>> {
    let mut found = Vec::new();
    let all = ENGINES.iter().map(|e| e.name.to_owned()).collect();
    let names = if session.args.engines.is_empty() {
        all
    } else {
        session.args.engines.clone()
    };
    for name in &names {
        let engine = Engine::named(name.trim())?;
        match home.check(engine) {
            Ok(()) if found.contains(&engine) => {}
            Ok(()) => found.push(engine),
            Err(error) => session.note(format!("{name} can't run here: {error}")),
        }
    }
    if found.is_empty() {
        return Err(Error::usage("none of these engines can run here"));
    }
    Ok(found)
}

fn data(args: &RunArgs) -> Vec<Data> {
    match args.server.data.as_slice() {
        [] if args.scale == ScaleArg::Smoke => vec![Data::Cached],
        [] => vec![Data::Cached, Data::Larger],
        some => some
            .iter()
            .map(|data| match data {
                DataArg::Cached => Data::Cached,
                DataArg::Larger => Data::Larger,
            })
            .collect(),
    }
}

/// The numbers of a run on one server. Rows take some 250 bytes in sysbench, some 150 in the insert benchmark.
fn spec(args: &RunArgs, suite: Suite, tests: &[&'static Test], data: Data) -> Result<Spec> {
    const GIB: u64 = 1 << 30;
    const MILLION: u64 = 1_000_000;
    let (rows, memory_bytes, seconds) = match (args.scale, data) {
        (ScaleArg::Smoke, Data::Cached) => (20_000, GIB / 2, 1.0),
        (ScaleArg::Smoke, Data::Larger) => (4 * MILLION, GIB / 2, 1.0),
        (ScaleArg::Small, Data::Cached) => (MILLION, GIB, 10.0),
        (ScaleArg::Small, Data::Larger) => (6 * MILLION, GIB / 2, 15.0),
        (ScaleArg::Report, Data::Cached) => (10 * MILLION, 8 * GIB, 60.0),
        (ScaleArg::Report, Data::Larger) => (80 * MILLION, 4 * GIB, 600.0),
    };
    let spec = Spec {
        suite,
        tests: tests.to_vec(),
        data,
        rows: args.rows.unwrap_or(rows),
        threads: args.threads.unwrap_or(1),
        seconds: args.seconds.unwrap_or(seconds),
        interval_s: if args.scale == ScaleArg::Smoke { 0.1 } else { 1.0 },
        seed: args.seed,
        setup: Setup {
            memory_bytes: args.memory.unwrap_or(memory_bytes),
            sync: args.server.sync,
        },
    };
    if spec.rows < 1000 || !(1..=1024).contains(&spec.threads) || spec.seconds.is_nan() || spec.seconds <= 0.0
    {
        return Err(Error::usage(
            "a server's tests need 1,000 rows, 1 to 1,024 threads and some time",
        ));
    }
    if spec.setup.memory_bytes < 256 << 20 {
        return Err(Error::usage("a server needs at least 256 MiB of memory"));
    }
    Ok(spec)
}

/// The command that measures one engine's rows again.
fn rerun(args: &RunArgs, spec: &Spec, engine: &Engine) -> String {
    let mut command = format!(
        "esker-lab run {} --engines {} --data {} --scale {} --rows {} --memory {}MiB --seconds {} --threads {} --seed {}",
        spec.suite.name(),
        engine.name,
        match spec.data {
            Data::Cached => "cached",
            Data::Larger => "larger",
        },
        scale_name(args.scale),
        spec.rows,
        spec.setup.memory_bytes >> 20,
        spec.seconds,
        spec.threads,
        spec.seed,
    );
    if !args.only.is_empty() {
        command.push_str(&format!(" --only {}", args.only.join(",")));
    }
    if spec.setup.sync {
        command.push_str(" --sync");
    }
    command
}

/// Runs one engine's server; its rows join the run.
fn one(
    session: &mut Session<'_>,
    spec: &Spec,
    home: &Home,
    engine: &'static Engine,
    repeat: u32,
    place: (usize, usize),
) -> Result<()> {
    let args = session.args;
    let title = format!("{} {}", spec.data.name_of(spec.suite.name()), engine.name);
    let show = std::sync::Mutex::new(Show::new(place.0, place.1, &title));
    let dir = args.dir.join(format!(
        "{}-{}-{repeat}",
        std::process::id(),
        title.replace(' ', "-")
    ));
    std::fs::create_dir_all(&dir).map_err(|e| Error::io(dir.display(), &e))?;
    let dir = dir.canonicalize().map_err(|e| Error::io(dir.display(), &e))?;
    let group = session.group(spec.setup.memory_bytes);
    let preload = session.allocator.preload.clone();
    let start = Start {
        home,
        folder: &dir,
        engine,
        setup: spec.setup,
        preload: preload.as_deref(),
        group: group.as_ref().map(Group::path),
    };
    let context = Context {
        stop: &interrupt::STOP,
        tell: &|progress| {
            if let Ok(mut show) = show.lock() {
                show.progress(&progress);
            }
        },
        dir: dir.clone(),
        load_elsewhere: None,
        group: group.as_ref().map(|g| g.path().to_owned()),
    };
    let json = session.json();
    let allocator = session.allocator.name();
    let limit = group.as_ref().map_or(0, Group::limit_bytes);
    let rerun = rerun(args, spec, engine);
    let mut written = Ok(());
    let result = suite::run(spec, &context, &start, &mut |mut row: Row| {
        row.repeat = repeat;
        row.memory_limit_bytes = limit;
        row.rerun.clone_from(&rerun);
        row.engine_settings.push(("allocator".into(), allocator.clone()));
        if row.errors > 0 && group.as_ref().is_some_and(|g| g.kills() > 0) {
            row.error_messages
                .push("the kernel killed the server for want of memory".into());
        }
        if let Ok(show) = show.lock() {
            show.line(&format!("{:<20} {}", row.workload, outcome(&row)));
        }
        session.run.rows.push(row);
        session.run.partial = true;
        written = session.run.write(&json);
    });
    if !args.keep {
        let _ = std::fs::remove_dir_all(&dir);
    }
    let last = match &result {
        Ok(()) if interrupt::stopped() => "stopped".to_owned(),
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    };
    if let Ok(show) = show.into_inner() {
        show.done(&last);
    }
    written.and(result)
}

fn settings(args: &RunArgs, spec: &Spec) -> Settings {
    Settings {
        suite: spec.suite.name().into(),
        scale: scale_name(args.scale).into(),
        rows: spec.rows,
        memory_bytes: spec.setup.memory_bytes,
        seed: spec.seed,
        compression: "the engines' defaults".into(),
        repeat: args.repeat,
        ..Settings::default()
    }
}

pub fn run(args: &RunArgs, suite: Suite) -> Result<ExitCode> {
    refuse_others(args)?;
    let tests = suite.choose(&args.only)?;
    let home = Home::find(args.server.server_home.as_deref())?;
    let specs = data(args).into_iter().map(|data| spec(args, suite, &tests, data));
    let specs = specs.collect::<Result<Vec<Spec>>>()?;
    let base = specs
        .first()
        .ok_or_else(|| Error::usage("no data was asked for"))?;
    let mut session = Session::begin(args, settings(args, base))?;
    if suite == Suite::Sysbench {
        let version = sysbench::version()?;
        session.run.notes.push(version);
    }
    let engines = engines(&mut session, &home)?;
    session.look_at_limits()?;
    session.alternate(&specs, &engines, |session, spec, engine, repeat, place| {
        one(session, spec, &home, engine, repeat, place)
    })?;
    println!(
        "\n{}\n{}",
        table::server::results(&session.run),
        table::server::LEGEND
    );
    finish(&session.run, args, &session.json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, Report};
    use clap::Parser;

    fn arguments(command: &str) -> Box<RunArgs> {
        match Cli::try_parse_from(command.split_whitespace()).map(|cli| cli.command) {
            Ok(Command::Run(args)) => args,
            _ => panic!("{command}"),
        }
    }

    fn specs(args: &RunArgs) -> Vec<Spec> {
        let Report::Server(suite) = args.suite.report() else {
            panic!("no report of a server")
        };
        let tests = suite.choose(&args.only).unwrap();
        data(args)
            .into_iter()
            .map(|data| spec(args, suite, &tests, data).unwrap())
            .collect()
    }

    #[test]
    fn the_command_of_a_row_gives_the_same_specification() {
        for command in [
            "esker-lab run sysbench --scale small --seed 7 --sync --only insert,point-query",
            "esker-lab run insert --rows 5000 --memory 300MiB --threads 2 --seconds 3",
        ] {
            let args = arguments(command);
            let wanted = specs(&args);
            assert_eq!(wanted.len(), 2, "cached and larger");
            for spec in wanted {
                let again = arguments(&rerun(&args, &spec, &ENGINES[0]));
                assert_eq!(specs(&again), [spec]);
            }
        }
    }

    #[test]
    fn arguments_of_other_reports_are_refused() {
        assert!(refuse_others(&arguments("esker-lab run insert --cap 5")).is_err());
        assert!(refuse_others(&arguments("esker-lab run insert --rows 5000")).is_ok());
    }
}
