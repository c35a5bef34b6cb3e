//! Transactions over Esker.
//!
//! The map of the crate:
//!
//! | what | module |
//! |---|---|
//! | who may touch which key: locks, waits, deadlocks | [`lock`] |
//! | what a transaction has written and not committed, and reading through it | [`write_set`] |
#![deny(missing_docs)]

pub mod lock;
pub mod write_set;

pub use write_set::WriteSet;
