//! What every part of the lab shares.
//!
//! - [`engine`], [`transaction`]: the traits that every engine is run through
//! - [`data`], [`zipf`]: the rows: keys, values that prove themselves, reproducible random choices
//! - [`account`], [`latency`], [`rate`], [`size`]: what is measured, and how
//! - [`cgroup`]: memory limits
//! - [`machine`], [`limits`]: where it is measured
//! - [`schema`], [`summary`]: the result file, and medians and ratios out of it
//! - [`figures`], [`published`]: figures for people, and those of the published report

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

pub mod account;
pub mod cgroup;
pub mod data;
pub mod engine;
pub mod error;
pub mod figures;
pub mod latency;
pub mod limits;
pub mod machine;
pub mod published;
pub mod rate;
pub mod schema;
pub mod size;
pub mod stats;
pub mod summary;
pub mod transaction;
pub mod zipf;

pub use error::{Error, Result};
