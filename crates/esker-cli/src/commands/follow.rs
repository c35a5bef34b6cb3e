//! `follow`: reads a database that another process writes, as the lines of the standard input say.

use std::io::{self, BufRead, Write};

use clap::{Parser, Subcommand};
use esker::Follower;

use super::{get, scan};
use crate::args::{Common, Follow, Get, Scan};
use crate::database::{family, follow};
use crate::failure::{EXIT_OK, Failure, Result};
use crate::output::Output;

/// What a line of the standard input may say.
#[derive(Debug, Parser)]
#[command(
    name = "follow",
    no_binary_name = true,
    disable_help_flag = true,
    subcommand_help_heading = "Lines"
)]
struct Line {
    #[command(subcommand)]
    step: Step,
}

/// What `follow` is told to do.
#[derive(Debug, Subcommand)]
#[command(override_usage = "get KEY | scan [OPTIONS] | catch-up")]
enum Step {
    /// Print the value of a key
    Get(Get),
    /// Print keys and values in the order of keys
    Scan(Scan),
    /// Move on to all that was committed until now, and print the last sequence number
    CatchUp,
}

pub fn run(common: &Common, options: &Follow, output: &mut Output) -> Result<u8> {
    let follower = follow(common)?;
    let mut first_failed = None;
    for (at, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::Io("can't read the standard input".to_owned(), error))?;
        let code = match step(common, options, &follower, &line, output) {
            Ok(code) => code,
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
            Err(failure) => {
                output.flush()?;
                // Which one it was, where lines come from a file.
                if !common.json {
                    eprintln!("esker: line {}: {line}", at + 1);
                }
                failure.report(common.json);
                failure.exit_code()
            }
        };
        // Whoever typed it waits for the answer.
        output.flush()?;
        if code != EXIT_OK {
            first_failed.get_or_insert(code);
        }
    }
    Ok(first_failed.unwrap_or(EXIT_OK))
}

/// Does what a line says; gives the exit code of it.
fn step(
    common: &Common,
    options: &Follow,
    follower: &Follower,
    line: &str,
    output: &mut Output,
) -> Result<u8> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() {
        return Ok(EXIT_OK);
    }
    let step = match Line::try_parse_from(words) {
        Ok(line) => line.step,
        // The help that was asked for.
        Err(help) if !help.use_stderr() => {
            write!(output, "{help}")?;
            return Ok(EXIT_OK);
        }
        Err(error) => {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let message = text.split("\n\n").next().unwrap_or_default().trim();
            return Err(Failure::usage(
                message,
                "a line is 'get KEY', 'scan', with their options, or 'catch-up'; 'help' says more",
            ));
        }
    };
    if options.catch_up && !matches!(step, Step::CatchUp) {
        follower.catch_up()?;
    }
    let db = follower.db();
    match &step {
        Step::Get(get) => get::show(common, get, output, |key| {
            Ok(db.get_cf(&family(db, common)?, key)?)
        }),
        Step::Scan(scan) => scan::print(common, scan, output, || Ok(db.clone())),
        Step::CatchUp => {
            let caught = follower.catch_up()?;
            if output.json {
                let batches = caught.batches;
                writeln!(
                    output,
                    "{{\"batches\":{batches},\"sequence\":{}}}",
                    caught.sequence
                )?;
            } else {
                writeln!(output, "sequence {}", caught.sequence)?;
            }
            Ok(EXIT_OK)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Line::command().debug_assert();
    }
}
