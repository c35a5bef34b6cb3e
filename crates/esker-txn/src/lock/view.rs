//! The shards that an operation has open: one, or all of them, which is what it takes to change ranges.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use esker::sync::{Mutex, MutexGuard};

use super::table::{Families, Freed, HeldRange, Lock, Shard};
use super::target::{Request, Target};
use super::waits::{Blocker, Seat, Waiting};
use super::{Acquired, LockMode, TransactionId};

/// The lock table: a power of two of shards.
pub(super) type Shards = [CachePadded<Mutex<Shard>>];

/// The shard of a hash. The table inside of it uses the lowest and the highest bits.
pub(super) fn shard_of(shards: &Shards, hash: u64) -> &Mutex<Shard> {
    &shards[shard_index(shards.len(), hash)]
}

fn shard_index(shards: usize, hash: u64) -> usize {
    (hash >> 32) as usize & (shards - 1)
}

/// Shards under their mutexes, and who is to be woken once they are free again.
pub(super) struct View<'a> {
    /// The one whose points are looked at, or all, by number.
    guards: Vec<MutexGuard<'a, Shard>>,
    is_all: bool,
    granted: Vec<Arc<Seat>>,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.guards.clear();
        for seat in &self.granted {
            seat.wake.notify_one();
        }
    }
}

impl<'a> View<'a> {
    /// What can be seen with one shard.
    pub(super) fn one(guard: MutexGuard<'a, Shard>) -> Self {
        Self {
            guards: vec![guard],
            is_all: false,
            granted: Vec::new(),
        }
    }

    /// Everything.
    pub(super) fn all(shards: &'a Shards) -> Self {
        Self {
            guards: shards.iter().map(|shard| shard.lock()).collect(),
            is_all: true,
            granted: Vec::new(),
        }
    }

    /// What it takes to change the queue for `request`: its shard, or all where ranges play a part.
    pub(super) fn of(shards: &'a Shards, request: &Request) -> Self {
        if let Target::Point { hash, .. } = request.target {
            let guard = shard_of(shards, hash).lock();
            if !guard.ranged.contains(request.family) {
                return Self::one(guard);
            }
        }
        Self::all(shards)
    }

    pub(super) fn is_all(&self) -> bool {
        self.is_all
    }

    fn index(&self, hash: u64) -> usize {
        // With one guard this is 0.
        shard_index(self.guards.len(), hash)
    }

    fn shard(&self, hash: u64) -> &Shard {
        &self.guards[self.index(hash)]
    }

    pub(super) fn shard_mut(&mut self, hash: u64) -> &mut Shard {
        let index = self.index(hash);
        &mut self.guards[index]
    }

    fn ranges(&self) -> &[HeldRange] {
        self.guards.first().map_or(&[], |shard| &shard.ranges)
    }

    /// Changes the list of ranges, in every shard.
    fn change_ranges(&mut self, change: impl FnOnce(&mut Vec<HeldRange>)) {
        debug_assert!(self.is_all, "ranges are changed under all mutexes");
        let mut ranges = self.ranges().to_vec();
        change(&mut ranges);
        let ranges = Arc::new(ranges);
        for shard in &mut self.guards {
            shard.ranges = Arc::clone(&ranges);
        }
    }

    /// Tells all shards which families have ranges, and in which of them anybody waits.
    pub(super) fn mark_families(&mut self, queue: &[Waiting]) {
        let mut ranged = Families::default();
        let wanted = queue.iter().filter(|waiting| waiting.request.is_range());
        for family in self
            .ranges()
            .iter()
            .map(|held| held.family)
            .chain(wanted.map(|waiting| waiting.request.family))
        {
            ranged.insert(family);
        }
        let mut entangled = Families::default();
        for waiting in queue {
            if ranged.contains(waiting.request.family) {
                entangled.insert(waiting.request.family);
            }
        }
        for shard in &mut self.guards {
            (shard.ranged, shard.entangled) = (ranged, entangled);
        }
    }

    /// The mode in which `txn` holds exactly what is requested.
    pub(super) fn mode_held(&self, txn: TransactionId, request: &Request) -> Option<LockMode> {
        match &request.target {
            Target::Point { hash, key } => {
                self.shard(*hash)
                    .mode_held(txn, request.family, *hash, key.as_bytes())
            }
            Target::Range(range) => self
                .ranges()
                .iter()
                .find(|held| held.txn == txn && held.family == request.family && held.range.is_same(range))
                .map(|held| held.mode),
        }
    }

    /// Adds those who hold a lock that keeps `txn` from having what it requests.
    pub(super) fn add_holders_against(&self, txn: TransactionId, request: &Request, out: &mut Vec<Blocker>) {
        let mut add = |lock: &Lock| {
            if lock.mode.conflicts(request.mode) {
                let others = lock.holders.as_slice().iter().filter(|holder| **holder != txn);
                out.extend(others.map(|holder| Blocker::holder(*holder)));
            }
        };
        match &request.target {
            Target::Point { hash, key } => {
                if let Some(lock) = self.shard(*hash).find(request.family, *hash, key.as_bytes()) {
                    add(lock);
                }
            }
            Target::Range(range) => {
                let locks = self.guards.iter().flat_map(|shard| shard.locks.iter());
                locks
                    .filter(|lock| lock.family == request.family && range.contains(lock.key.as_bytes()))
                    .for_each(add);
            }
        }
        for held in self.ranges().iter().filter(|held| held.txn != txn) {
            let its = Request {
                family: held.family,
                target: Target::Range(Arc::clone(&held.range)),
                mode: held.mode,
            };
            if its.conflicts(request) {
                out.push(Blocker::holder(held.txn));
            }
        }
    }

    /// Notes that somebody waits for what is requested.
    pub(super) fn expect(&mut self, request: &Request) {
        if let Target::Point { hash, key } = &request.target {
            self.shard_mut(*hash)
                .expect(request.family, *hash, key.as_bytes());
        }
    }

    /// Notes that one waits no longer, without having got it.
    pub(super) fn give_up(&mut self, request: &Request) {
        if let Target::Point { hash, key } = &request.target {
            self.shard_mut(*hash)
                .settle_one((request.family, *hash, key.as_bytes()), None);
        }
    }

    /// Wakes who sits there when the mutexes are free: to wake a thread takes longer than all that is done under them.
    pub(super) fn wake_later(&mut self, seat: Arc<Seat>) {
        self.granted.push(seat);
    }

    /// Gives `txn` what it has waited for.
    pub(super) fn grant(&mut self, txn: TransactionId, request: &Request) -> Acquired {
        match &request.target {
            Target::Point { hash, key } => self
                .shard_mut(*hash)
                .settle_one((request.family, *hash, key.as_bytes()), Some((txn, request.mode))),
            Target::Range(range) => {
                let is_upgrade = self.mode_held(txn, request).is_some();
                self.change_ranges(|ranges| {
                    ranges.retain(|held| {
                        held.txn != txn || held.family != request.family || !held.range.is_same(range)
                    });
                    ranges.push(HeldRange {
                        txn,
                        family: request.family,
                        mode: request.mode,
                        range: Arc::clone(range),
                    });
                });
                if is_upgrade {
                    Acquired::Upgraded
                } else {
                    Acquired::New
                }
            }
        }
    }

    /// Takes back what `txn` was granted. The queue must be settled afterwards if that is [`Freed::Wanted`].
    pub(super) fn take_back(
        &mut self,
        txn: TransactionId,
        family: u32,
        target: &Target,
        change: Acquired,
    ) -> Freed {
        match target {
            Target::Point { hash, key } => {
                self.shard_mut(*hash)
                    .take_back(txn, (family, *hash, key.as_bytes()), change)
            }
            Target::Range(range) => {
                self.change_ranges(|ranges| {
                    let is_it = |held: &HeldRange| {
                        held.txn == txn && held.family == family && held.range.is_same(range)
                    };
                    match change {
                        Acquired::New => ranges.retain(|held| !is_it(held)),
                        Acquired::Upgraded => {
                            for held in ranges.iter_mut().filter(|held| is_it(held)) {
                                held.mode = LockMode::Shared;
                            }
                        }
                        Acquired::Held => {}
                    }
                });
                Freed::Wanted
            }
        }
    }
}
