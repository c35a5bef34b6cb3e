//! The published reports that run in a MariaDB server: sysbench (002) and the insert benchmark (000, 001).
//!
//! - [`engine`]: the storage engines, each set up at its best for a memory limit
//! - [`server`]: a private server for one of them, and what it spends
//! - [`sysbench`]: the program of that name, which is started and listened to
//! - [`insert`]: the insert benchmark's table, writer and queries
//! - [`catalog`]: which tests there are; [`suite`]: running them

// The engine's ban on clocks and threads keeps it simulatable; a measuring harness is made of both.
#![allow(clippy::disallowed_methods)]

pub mod catalog;
pub mod engine;
pub mod insert;
pub mod server;
pub mod suite;
pub mod sysbench;
