//! The workloads of the published reports, as code.
//!
//! - [`suite`]: the reports and their tests, and how one is run
//! - `flash`: report 004, db_bench's tests on flash storage; `txn`: transactions
//! - [`spec`]: what to run, with every number resolved
//! - `runner`, `client`: what all tests share; [`measure`] runs threads and keeps the books
//! - [`progress`]: a run's connection with whoever watches it

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

mod client;
mod flash;
mod idle;
pub mod measure;
pub mod progress;
mod runner;
pub mod spec;
pub mod suite;
mod txn;

pub use progress::{Context, Load, Progress};
pub use spec::{Scale, Spec};
pub use suite::{Suite, Test};
