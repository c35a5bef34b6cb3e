//! The workloads of the published reports, as code.
//!
//! [`flash`] is report 004: db_bench's tests on flash storage. [`spec`] says what to run, [`measure`] runs
//! threads and keeps the books, [`Context`] connects a run with whoever watches it.

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

pub mod flash;
mod idle;
pub mod measure;
pub mod progress;
pub mod spec;

pub use progress::{Context, Progress};
pub use spec::{Scale, Spec};
