//! Transactions over Esker.
//!
//! ```no_run
//! use esker::{Opener, Options};
//! use esker_txn::{Isolation, LockMode, TransactionDb, TransactionOptions, TransactionSettings};
//!
//! # fn main() -> esker::Result<()> {
//! let db = TransactionDb::open(Opener::new(Options::default()), "bank", &TransactionSettings::default())?;
//! let accounts = db.db().default_column_family();
//! let mut transaction = db.begin(&TransactionOptions::isolation(Isolation::RepeatableRead));
//! let stock = transaction.get_for_update(&accounts, b"stock", LockMode::Exclusive)?;
//! if stock.is_some() {
//!     transaction.delete(&accounts, b"stock")?;
//!     transaction.put(&accounts, b"sold", b"1")?;
//! }
//! match transaction.commit() {
//!     Err(error) if error.kind().is_retryable() => transaction.roll_back()?, // and run it again
//!     result => result?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The map of the crate, from the top row to the bottom:
//!
//! | what | module |
//! |---|---|
//! | databases: with locks, and without | `pessimistic` `optimistic` |
//! | what both are made of | `handle` |
//! | one transaction: its life, reads, writes, save points; what is guaranteed, and what errors mean | [`transaction`] |
//! | how transactions keep out of each other's way | `control` |
//! | what can be chosen; what runs; names, and what is prepared under them | `options` `running` `names` |
//! | who may touch which key: locks, waits, deadlocks | [`lock`] |
//! | what a transaction has written and not committed, and reading through it | [`write_set`] |
#![deny(missing_docs)]

mod control;
mod handle;
pub mod lock;
mod names;
mod optimistic;
mod options;
mod pessimistic;
mod running;
#[cfg(all(test, not(loom)))]
mod tests;
pub mod transaction;
pub mod write_set;

pub use lock::{Interrupter, LockMode, LockSettings, TransactionId};
pub use names::PreparedTransaction;
pub use optimistic::OptimisticDb;
pub use options::{Isolation, SnapshotTime, TransactionOptions, TransactionSettings};
pub use pessimistic::TransactionDb;
pub use running::RunningTransaction;
pub use transaction::Transaction;
pub use write_set::{Iter, WriteSet};
