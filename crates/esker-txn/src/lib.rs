//! Transactions over Esker.
//!
//! The map of the crate:
//!
//! | what | module |
//! |---|---|
//! | who may touch which key: locks, waits, deadlocks | [`lock`] |
#![deny(missing_docs)]

pub mod lock;
