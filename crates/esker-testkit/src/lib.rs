//! What the engine is tested against: a naive model, machines that crash and fail, and the runners between them.
//!
//! | module | what it is |
//! |---|---|
//! | `oracle` | the model: sorted maps, and which commits a crash may take |
//! | `scan` | the model of an iterator |
//! | `crash` | a scripted run that ends at any write, and what must hold then |
//! | `history` | states of a run that a crash may leave, and runs that crash at each of their calls |
//! | `bank` | transactions that move money, and what must hold of the accounts |
//! | `kill` | what is written by a process that is killed |
//! | `follow` | what is written by a process that others follow |
//! | `operation` | one step of a random run, and how steps are drawn |
//! | `settings` | random settings of databases and families, as small as they may be |
//! | `runner` | carries steps out on the engine and on the model, and compares |
//! | `shrink` | the smallest run that still fails |
//! | `random` | random numbers that a seed determines |
//! | `watchdog` | ends a test that hangs, with its name |
#![deny(missing_docs)]

pub mod bank;
pub mod crash;
pub mod follow;
pub mod history;
pub mod kill;
pub mod operation;
pub mod oracle;
pub mod random;
pub mod runner;
pub mod scan;
pub mod settings;
pub mod shrink;
pub mod watchdog;

/// The number in this environment variable, or `default` if there is none.
pub fn number_from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => panic!("{name}={text} is no number"),
        },
        Err(_) => default,
    }
}
