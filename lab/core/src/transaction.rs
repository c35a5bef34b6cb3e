//! Transactions, as every engine that has them is run through them.
//!
//! One thread runs its transactions one after the other through a [`TransactionSession`], which may keep an object and its
//! memory from one to the next. What a transaction may lose against others comes back as an error whose kind says how
//! ([`Loss::of`]); it is then rolled back and run again.

use crate::Result;
use crate::engine::Durability;
use crate::error::Kind;

/// How transactions keep out of each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// By locks on keys, taken by writes and reads for update, held until the end.
    Locks,
    /// By a look at the commit whether others were faster.
    Optimistic,
}

impl Control {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Control::Locks => "locks",
            Control::Optimistic => "optimistic",
        }
    }
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// What its commit survives.
    pub durability: Durability,
    /// All its reads see the moment at which it begins; else each sees what is committed then.
    pub snapshot: bool,
}

/// What a transaction can lose against others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Others wrote what it has read or wants to write.
    Conflict,
    /// It waited for others that waited for it.
    Deadlock,
    /// A lock did not come free in time.
    TimedOut,
}

impl Loss {
    /// What an error of `kind` says; `None` if it is a failure, which no second try mends.
    pub fn of(kind: Kind) -> Option<Loss> {
        match kind {
            Kind::Conflict => Some(Loss::Conflict),
            Kind::Deadlock => Some(Loss::Deadlock),
            Kind::TimedOut => Some(Loss::TimedOut),
            _ => None,
        }
    }
}

/// One thread's way to run transactions. Between [`begin`](Self::begin) and the [`commit`](Self::commit) or
/// [`roll_back`](Self::roll_back) that ends it, a transaction sees its own writes.
///
/// Reads for update, writes and commits may fail with what [`Loss::of`] knows; the transaction then still has to be rolled back.
pub trait TransactionSession {
    /// Begins a transaction. The one before has ended.
    fn begin(&mut self, begin: Begin) -> Result<()>;

    /// Reads a row: calls `found` with its value and returns true, or returns false. Waits for nobody.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// The same for a row that nobody else may write before this transaction has ended.
    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Writes a row, for others to see from the commit on.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Makes all writes visible at once, as durable as it was begun to be.
    fn commit(&mut self) -> Result<()>;

    /// Forgets all writes.
    fn roll_back(&mut self) -> Result<()>;
}
