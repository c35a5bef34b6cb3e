//! `esker-lab`: runs the published reports on this engine and its peers, and shows the result.

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

mod args;
mod compare;
mod engines;
mod interrupt;
mod jobs;
mod limits;
mod plan;
mod run;
mod server;
mod show;
mod table;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use esker_lab_core::error::Kind;

use args::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Report(args) => run::report(&args),
        Command::Limits(args) => limits::limits(&args),
        Command::Engines(args) => engines::engines(&args),
        Command::Worker { load } => return worker::worker(load),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("esker-lab: {error}");
            // 2 for what the user can fix in the command, as clap does.
            ExitCode::from(if error.kind() == Kind::Usage { 2 } else { 1 })
        }
    }
}
