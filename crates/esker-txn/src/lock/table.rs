//! A shard of the lock table: the point locks whose hashes fall into it, and the list of all range locks.
//!
//! Invariants:
//! 1. A lock has an entry exactly while somebody holds it or waits for it.
//! 2. An exclusive lock has one holder at most. No transaction is twice among the holders.
//! 3. `ranges`, `ranged` and `entangled` are the same in all shards, and change under the mutexes of all of them.

use std::sync::Arc;

use esker::sync::{AtomicUsize, Ordering};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::key::StoredKey;
use super::target::Range;
use super::{Acquired, LockMode, TransactionId};

/// How many locks there are, and may be.
pub(super) struct Room {
    used: AtomicUsize,
    max: usize,
}

impl Room {
    pub(super) fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max,
        }
    }

    /// Takes room for one lock, if there is any.
    pub(super) fn take(&self) -> bool {
        let is_free = self.used.fetch_add(1, Ordering::Relaxed) < self.max;
        if !is_free {
            self.give_back(1);
        }
        is_free
    }

    pub(super) fn give_back(&self, locks: usize) {
        self.used.fetch_sub(locks, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Who holds a lock. One holder needs no allocation.
pub(super) enum Holders {
    None,
    One(TransactionId),
    Many(Vec<TransactionId>),
}

impl Holders {
    pub(super) fn as_slice(&self) -> &[TransactionId] {
        match self {
            Self::None => &[],
            Self::One(txn) => std::slice::from_ref(txn),
            Self::Many(txns) => txns,
        }
    }

    fn add(&mut self, txn: TransactionId) {
        match self {
            Self::None => *self = Self::One(txn),
            Self::One(first) => *self = Self::Many(vec![*first, txn]),
            Self::Many(txns) => txns.push(txn),
        }
    }

    fn remove(&mut self, txn: TransactionId) {
        match self {
            Self::One(only) if *only == txn => *self = Self::None,
            Self::Many(txns) => {
                txns.retain(|holder| *holder != txn);
                match txns.as_slice() {
                    [] => *self = Self::None,
                    [only] => *self = Self::One(*only),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// A point lock.
pub(super) struct Lock {
    pub(super) hash: u64,
    pub(super) key: StoredKey,
    pub(super) holders: Holders,
    pub(super) family: u32,
    /// Requests in the queue for exactly this point.
    pub(super) waiters: u32,
    /// Of the holders, if there are any.
    pub(super) mode: LockMode,
}

impl Lock {
    fn new(family: u32, hash: u64, key: &[u8]) -> Self {
        Self {
            hash,
            key: StoredKey::new(key),
            holders: Holders::None,
            family,
            waiters: 0,
            mode: LockMode::Shared,
        }
    }

    fn is(&self, family: u32, key: &[u8]) -> bool {
        self.family == family && self.key.as_bytes() == key
    }

    fn is_held_by(&self, txn: TransactionId) -> bool {
        self.holders.as_slice().contains(&txn)
    }

    /// Whether a holder other than `txn` keeps it from having the lock.
    pub(super) fn is_held_against(&self, txn: TransactionId, mode: LockMode) -> bool {
        self.mode.conflicts(mode) && self.holders.as_slice().iter().any(|holder| *holder != txn)
    }

    /// Makes `txn` a holder, or its lock an exclusive one. Nobody may hold it against this.
    fn hold(&mut self, txn: TransactionId, mode: LockMode) -> Acquired {
        debug_assert!(!self.is_held_against(txn, mode), "conflicting holders");
        if self.is_held_by(txn) {
            self.mode = mode;
            return Acquired::Upgraded;
        }
        self.holders.add(txn);
        self.mode = mode;
        Acquired::New
    }

    fn is_unused(&self) -> bool {
        self.waiters == 0 && matches!(self.holders, Holders::None)
    }
}

/// A range lock that is held.
#[derive(Clone)]
pub(super) struct HeldRange {
    pub(super) txn: TransactionId,
    pub(super) family: u32,
    pub(super) mode: LockMode,
    pub(super) range: Arc<Range>,
}

/// A set of families: says of none that it is not in, and of few others that they are.
#[derive(Clone, Copy, Default)]
pub(super) struct Families(u64);

impl Families {
    pub(super) fn insert(&mut self, family: u32) {
        self.0 |= 1 << (family % 64);
    }

    pub(super) fn contains(self, family: u32) -> bool {
        self.0 & (1 << (family % 64)) != 0
    }
}

/// What a request for a point comes to under the mutex of its shard.
pub(super) enum Attempt {
    Done(Acquired),
    /// It takes a place in the queue to tell.
    Unclear,
    /// There are as many locks as may be.
    Full,
}

/// What became of a lock that was given back.
#[derive(PartialEq, Eq)]
pub(super) enum Freed {
    /// Nobody waits for it.
    Quiet,
    /// Somebody does: the queue must be settled.
    Wanted,
}

/// A part of the table.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) locks: HashTable<Lock>,
    /// All range locks.
    pub(super) ranges: Arc<Vec<HeldRange>>,
    /// Families in which ranges are held or waited for.
    pub(super) ranged: Families,
    /// Those of them in which anybody waits.
    pub(super) entangled: Families,
}

impl Shard {
    /// Grants the lock if that needs no look at the queue.
    pub(super) fn try_point(
        &mut self,
        txn: TransactionId,
        (family, hash, key): (u32, u64, &[u8]),
        mode: LockMode,
        room: &Room,
    ) -> Attempt {
        if self.ranged.contains(family)
            && (self.entangled.contains(family) || self.is_in_foreign_range(txn, family, key, mode))
        {
            return Attempt::Unclear;
        }
        match self
            .locks
            .entry(hash, |lock| lock.is(family, key), |lock| lock.hash)
        {
            Entry::Vacant(vacant) => {
                if !room.take() {
                    return Attempt::Full;
                }
                let mut lock = Lock::new(family, hash, key);
                let acquired = lock.hold(txn, mode);
                vacant.insert(lock);
                Attempt::Done(acquired)
            }
            Entry::Occupied(mut occupied) => {
                let lock = occupied.get_mut();
                if lock.is_held_by(txn) {
                    return match lock.mode {
                        held if held >= mode => Attempt::Done(Acquired::Held),
                        _ if lock.waiters > 0 || lock.is_held_against(txn, mode) => Attempt::Unclear,
                        _ => Attempt::Done(lock.hold(txn, mode)),
                    };
                }
                if lock.waiters > 0 || lock.is_held_against(txn, mode) {
                    return Attempt::Unclear;
                }
                if !room.take() {
                    return Attempt::Full;
                }
                Attempt::Done(lock.hold(txn, mode))
            }
        }
    }

    fn is_in_foreign_range(&self, txn: TransactionId, family: u32, key: &[u8], mode: LockMode) -> bool {
        self.ranges.iter().any(|held| {
            held.txn != txn && held.family == family && held.mode.conflicts(mode) && held.range.contains(key)
        })
    }

    pub(super) fn find(&self, family: u32, hash: u64, key: &[u8]) -> Option<&Lock> {
        self.locks.find(hash, |lock| lock.is(family, key))
    }

    /// The mode in which `txn` holds the point.
    pub(super) fn mode_held(
        &self,
        txn: TransactionId,
        family: u32,
        hash: u64,
        key: &[u8],
    ) -> Option<LockMode> {
        let lock = self.find(family, hash, key)?;
        lock.is_held_by(txn).then_some(lock.mode)
    }

    /// Notes that somebody waits for the point.
    pub(super) fn expect(&mut self, family: u32, hash: u64, key: &[u8]) {
        let entry = self
            .locks
            .entry(hash, |lock| lock.is(family, key), |lock| lock.hash);
        entry
            .or_insert_with(|| Lock::new(family, hash, key))
            .get_mut()
            .waiters += 1;
    }

    /// One waits no longer. Gives the lock to `granted`, if that is why.
    pub(super) fn settle_one(
        &mut self,
        (family, hash, key): (u32, u64, &[u8]),
        granted: Option<(TransactionId, LockMode)>,
    ) -> Acquired {
        let Ok(mut entry) = self.locks.find_entry(hash, |lock| lock.is(family, key)) else {
            debug_assert!(false, "a point that is waited for has an entry");
            return Acquired::Held;
        };
        let lock = entry.get_mut();
        lock.waiters -= 1;
        if let Some((txn, mode)) = granted {
            return lock.hold(txn, mode);
        }
        if lock.is_unused() {
            entry.remove();
        }
        Acquired::Held
    }

    /// Takes back what `txn` was granted: the lock, or its being exclusive.
    pub(super) fn take_back(
        &mut self,
        txn: TransactionId,
        (family, hash, key): (u32, u64, &[u8]),
        change: Acquired,
    ) -> Freed {
        let Ok(mut entry) = self.locks.find_entry(hash, |lock| lock.is(family, key)) else {
            debug_assert!(false, "a lock that is held has an entry");
            return Freed::Quiet;
        };
        let lock = entry.get_mut();
        match change {
            Acquired::New => lock.holders.remove(txn),
            Acquired::Upgraded => lock.mode = LockMode::Shared,
            Acquired::Held => {}
        }
        if lock.waiters > 0 {
            return Freed::Wanted;
        }
        if lock.is_unused() {
            entry.remove();
        }
        Freed::Quiet
    }
}
