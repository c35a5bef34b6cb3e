//! What a command line asks for, as numbers; and the command that asks for one row again.

use esker_lab_core::Result;
use esker_lab_core::data::KEY_BYTES_MIN;
use esker_lab_core::schema::Settings;
use esker_lab_engines::registry::Choice;
use esker_lab_workloads::{Scale, Spec, Suite, Test};

use crate::args::{RunArgs, ScaleArg};

/// The tests that are asked for.
pub fn tests(args: &RunArgs, suite: Suite) -> Result<Vec<&'static Test>> {
    match args.only.as_slice() {
        [] => Ok(suite.tests().iter().filter(|t| t.default).collect()),
        [all] if all == "all" => Ok(suite.tests().iter().collect()),
        names => names.iter().map(|name| suite.test(name)).collect(),
    }
}

/// The numbers of a test in this run.
pub fn spec(args: &RunArgs, suite: Suite, test: &Test) -> Result<Spec> {
    let value_bytes = args.value_bytes.unwrap_or(suite.value_bytes());
    let row_bytes = args.key_bytes.saturating_add(value_bytes);
    let sizes = Scale::from(args.scale).sizes(suite, row_bytes, args.memory);
    let spec = Spec {
        suite,
        test: test.name.to_owned(),
        rows: args.rows.unwrap_or(sizes.rows),
        key_bytes: args.key_bytes,
        value_bytes,
        compressibility: 0.5,
        seed: args.seed,
        threads: test.threads(args.threads),
        seconds: args.seconds.unwrap_or(sizes.seconds),
        passes: args.passes,
        cap_seconds: args.cap.unwrap_or(sizes.cap_seconds),
        writes_per_s: args.writes_per_s,
        memory_bytes: sizes.memory_bytes,
        compression: args.compression,
        interval_s: sizes.interval_s,
        idle_poll_s: sizes.idle_poll_s,
    };
    spec.validate()?;
    Ok(spec)
}

/// Its name on the command line and in results.
pub fn scale_name(scale: ScaleArg) -> &'static str {
    match scale {
        ScaleArg::Smoke => "smoke",
        ScaleArg::Small => "small",
        ScaleArg::Report => "report",
    }
}

/// The command that measures one row again.
pub fn rerun(args: &RunArgs, spec: &Spec, choice: &Choice<'_>) -> String {
    let mut command = format!(
        "esker-lab run {} --engines {}:{} --only {} --scale {} --rows {} --memory {}MiB --seconds {} --cap {} \
         --threads {} --compression {} --seed {}",
        spec.suite.name(),
        choice.engine.name(),
        choice.variant.name,
        spec.test,
        scale_name(args.scale),
        spec.rows,
        spec.memory_bytes >> 20,
        spec.seconds,
        spec.cap_seconds,
        spec.threads,
        spec.compression.name(),
        spec.seed,
    );
    if spec.key_bytes != KEY_BYTES_MIN {
        command.push_str(&format!(" --key-bytes {}", spec.key_bytes));
    }
    if spec.value_bytes != spec.suite.value_bytes() {
        command.push_str(&format!(" --value-bytes {}", spec.value_bytes));
    }
    if spec.passes != 2.0 {
        command.push_str(&format!(" --passes {}", spec.passes));
    }
    if spec.test == "readwhilewriting-paced" {
        command.push_str(&format!(" --writes-per-s {}", spec.writes_per_s));
    }
    if args.no_limit {
        command.push_str(" --no-limit");
    }
    command
}

/// What all rows of the run share.
pub fn settings(args: &RunArgs, spec: &Spec) -> Settings {
    Settings {
        suite: spec.suite.name().into(),
        scale: scale_name(args.scale).into(),
        rows: spec.rows,
        key_bytes: spec.key_bytes,
        value_bytes: spec.value_bytes,
        compressibility: spec.compressibility,
        memory_bytes: spec.memory_bytes,
        seed: spec.seed,
        compression: spec.compression.name().into(),
        repeat: args.repeat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, Report};
    use clap::Parser;
    use esker_lab_engines::Registry;

    fn arguments(command: &str) -> Box<RunArgs> {
        match Cli::try_parse_from(command.split_whitespace()).map(|cli| cli.command) {
            Ok(Command::Run(args)) => args,
            _ => panic!("{command}"),
        }
    }

    fn of_suite(args: &RunArgs) -> Suite {
        match args.suite.report() {
            Report::Embedded(suite) => suite,
            Report::Server(suite) => panic!("{}", suite.name()),
        }
    }

    #[test]
    fn the_command_of_a_row_gives_the_same_specification() {
        let registry = Registry::new(&Default::default());
        for (suite, test) in [
            ("flash", "overwrite"),
            ("flash", "readwhilewriting-paced"),
            ("txn", "update-one"),
            ("txn", "hot"),
        ] {
            let choice = registry.choose("memory", suite == "txn").unwrap()[0];
            let args = arguments(&format!(
                "esker-lab run {suite} --scale smoke --key-bytes 16 --value-bytes 150 --passes 3.5 --writes-per-s 77 \
                 --rows 1234 --seed 9 --threads 3 --compression lz4 --seconds 2.5 --cap 7 --memory 96MiB --only {test}",
            ));
            let asked = tests(&args, of_suite(&args)).unwrap()[0];
            let wanted = spec(&args, of_suite(&args), asked).unwrap();
            assert_eq!(wanted.threads, if test == "update-one" { 1 } else { 3 });
            let again = arguments(&rerun(&args, &wanted, &choice));
            assert_eq!(again.only, [test]);
            let mut found = spec(
                &again,
                of_suite(&again),
                tests(&again, of_suite(&again)).unwrap()[0],
            )
            .unwrap();
            if test != "readwhilewriting-paced" {
                // No writer keeps to a rate there.
                found.writes_per_s = wanted.writes_per_s;
            }
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_report_has_numbers_of_its_own() {
        let of = |command: &str| {
            let args = arguments(command);
            let suite = of_suite(&args);
            let tests = tests(&args, suite).unwrap();
            let specs = tests.iter().map(|test| spec(&args, suite, test).unwrap());
            specs.collect::<Vec<_>>()
        };
        let flash = of("esker-lab run flash");
        assert_eq!(flash.len(), 5);
        assert!(flash.iter().all(|s| (s.threads, s.value_bytes) == (32, 800)));
        let transactions = of("esker-lab run txn");
        assert_eq!(transactions.len(), 9);
        assert!(
            transactions
                .iter()
                .all(|s| s.value_bytes == 100 && s.rows == 1_000_000)
        );
        let threads = |specs: &[Spec]| specs.iter().map(|s| s.threads).collect::<Vec<_>>();
        assert_eq!(threads(&transactions), [1, 1, 8, 8, 8, 8, 4, 8, 4]);
        assert_eq!(
            threads(&of("esker-lab run txn --threads 16 --only put-one,hot")),
            [1, 16]
        );
    }
}
