//! `esker`: reads, writes, inspects and verifies databases from the command line; `docs/cli.md` is its guide.
//!
//! | file | what it does |
//! |---|---|
//! | `args` `family_args` | every command and option, with their help |
//! | `bytes` | keys and values as text: escapes, hex, numbers |
//! | `database` | opens a database as it was left, for reading or for writing |
//! | `failure` | what went wrong, where, what to do next, and the exit code |
//! | `output` | buffered output that ends quietly when nobody listens |
//! | `commands` | one file for each group of commands |

mod args;
mod bytes;
mod commands;
mod database;
mod failure;
mod family_args;
mod output;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Args;
use failure::{EXIT_OK, Failure};
use output::Output;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut output = Output::stdout(args.common.json);
    let result = commands::run(&args, &mut output);
    let result = result.and_then(|code| Ok(output.flush().map(|()| code)?));
    match result {
        Ok(code) => code.into(),
        // `esker scan | head` got all it wanted.
        Err(Failure::BrokenPipe) => EXIT_OK.into(),
        Err(failure) => {
            // What was found before the failure is worth having.
            let _ = output.flush();
            failure.report(args.common.json);
            failure.exit_code().into()
        }
    }
}
