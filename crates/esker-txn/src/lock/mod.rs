//! Locks on keys and ranges of keys, held by transactions: who waits for whom, until when, and who must give way.
//!
//! # The table
//!
//! A point lock is an entry of a hash table, found by column family and key. The table is cut into shards by the hash,
//! each under a mutex of its own (`table.rs`). To take a lock that nobody has, or to give one back for which nobody
//! waits, costs one round of one mutex and no allocation for keys of up to 22 bytes: they lie in the entry. What a
//! transaction holds is written down by the transaction itself ([`TransactionLocks`], `held.rs`), in the order in which
//! it got it, so that savepoints are positions in a list, and no shared map has to be kept.
//!
//! # Waiting
//!
//! Whoever can't have a lock at once stands in one queue (`waits.rs`), in order of arrival, with those for whom it waits
//! beside it: holders, and those ahead whose requests conflict with its own, as far as they are not waited for by the nearest of
//! these anyway. So a reader does not overtake a writer that waits. Whoever changes a lock for which somebody waits settles the
//! queue before it lets go of the mutexes, and notes anew for whom they all wait. Each waiter sleeps on a condition of its own, and is
//! woken when the mutexes are free again.
//!
//! A lock that becomes free is not handed to the first in the queue, who sleeps: it is *called*, and takes the lock when its thread runs.
//! Until then one that comes later and finds the lock free takes it, as nobody would work under it meanwhile
//! (docs/decisions/0013). It passes all who wait for that lock, and is noted as a holder for whom they wait. A thread that was called and
//! comes too late sleeps, and is called again. [`LockSettings::overtakes`] may pass one while that one is called, then the lock is handed to
//! it, asleep as it is. Who holds other locks is never passed, and what it waits for is handed to it: others wait for it, and one that
//! passed it might be the next to do so, which would be a deadlock. In families with range locks everything is handed over.
//! So a waiter that nobody is in the way of has been called, and its thread has not asked since.
//!
//! Mutexes are taken in this order: shards by number, the queue, the seat of one waiter. The queue's is touched only where
//! somebody waits or has to; then an operation costs time proportional to the number of all waiters.
//!
//! # Ranges
//!
//! A range lock conflicts with point locks that no single shard knows of. **Ranges are changed only under the mutexes of
//! all shards, and each shard has the list of them all.** A point is granted under the mutex of its shard, by looking at
//! the table and at that list; a range by looking at all tables. One of the two comes first, and the other sees it.
//! While a family has no range lock, its points pay one test of a word in the shard that they have open anyway.
//! Where ranges are held or wanted *and* somebody waits in that family, the family is *entangled*: whoever changes
//! anything there holds all shards while it settles. To take a range costs a look at every lock in the table.
//!
//! # Deadlocks
//!
//! The graph of who waits for whom is exact whenever the queue's mutex is free, as it changes only with the locks it speaks
//! of. A transaction waits for one lock at a time, and a request adds edges to and from its own transaction only: others
//! never come to wait for more than before, except for one that was just granted, which waits for nobody. So every circle
//! goes through the last request that was made, and a search from there (`deadlock.rs`) misses none and invents none.
//!
//! Some edges are due to fairness alone: a waiter could have its lock, were there not somebody ahead. A circle with such an
//! edge is no deadlock. It is broken by letting that waiter overtake, and only one of holders alone ends in a refusal,
//! which goes to the one that asked last. An upgrade is one case: everybody ahead waits for its holder anyway.
//!
//! # Time
//!
//! A wait ends with [`Clock`](esker_env::Clock)'s word, not the condition's; who moves a clock by hand calls
//! [`LockManager::notice_time`]. A grant and a time limit that come together are told apart under the mutexes: the waiter
//! stands in the queue still, or it was granted the lock and has it. The same holds for a wait that is interrupted
//! (`interrupt.rs`): an [`Interrupter`] has the waiter's seat while it waits, under a mutex of its own, which is taken before the seat's.

mod deadlock;
mod error;
mod held;
mod interrupt;
mod key;
mod list;
#[cfg(all(test, loom))]
mod loom;
mod manager;
mod settings;
mod table;
mod target;
#[cfg(all(test, not(loom)))]
mod tests;
mod view;
mod waits;

pub use deadlock::{Deadlock, DeadlockStep};
pub use error::{range_conflict, write_conflict};
pub use held::TransactionLocks;
pub use interrupt::Interrupter;
pub use list::{HeldLock, LockTarget, WaitingRequest};
pub use manager::LockManager;
pub use settings::LockSettings;
pub(crate) use target::hash_key;

use std::fmt;

/// The number of a transaction. No two that are open at the same time have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a lock keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Others may hold it too, in this mode.
    Shared,
    /// Nobody else holds it.
    Exclusive,
}

impl LockMode {
    /// Whether two transactions can't hold the same lock in these modes.
    fn conflicts(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        })
    }
}

/// What a request has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acquired {
    /// The transaction did not hold the lock before.
    New,
    /// It held it shared, and holds it exclusively now.
    Upgraded,
    /// It held it already, as wanted or more: nothing has changed.
    Held,
}
