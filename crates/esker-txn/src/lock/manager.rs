//! Taking locks and giving them back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use esker::sync::Mutex;
use esker::{Error, KeyOrder, Result};
use esker_env::Clock;

use super::deadlock::{Deadlock, find_circle, report};
use super::held::{Place, TransactionLocks};
use super::key::StoredKey;
use super::settings::LockSettings;
use super::table::{Attempt, Freed, Room};
use super::target::{Range, Request, Target, hash_key};
use super::view::{Shards, View, shard_of};
use super::waits::{Seat, Turn, Waiting, Waits, Word};
use super::{Acquired, Interrupter, LockMode, TransactionId, error};

/// The locks of all transactions of a database.
///
/// A transaction has a [`TransactionLocks`], which notes what it holds. It makes one call at a time; different ones call
/// from as many threads as they like.
pub struct LockManager {
    settings: LockSettings,
    clock: Arc<dyn Clock>,
    shards: Box<Shards>,
    waits: Mutex<Waits>,
    room: CachePadded<Room>,
}

/// Where a request has come to.
enum Standing {
    Granted(Acquired),
    /// In the queue.
    Waits,
    /// There is a circle, and more must be seen to tell what to do about it.
    NeedsAll,
}

/// What a request does about those in its way.
#[derive(Clone, Copy)]
struct Patience {
    /// Whether it waits at all.
    waits: bool,
    /// Whether it is refused where it closes a circle.
    is_refused_deadlocks: bool,
}

impl LockManager {
    /// A manager without locks; settings that make no sense are refused.
    pub fn new(settings: LockSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            shards: (0..settings.shards).map(|_| CachePadded::default()).collect(),
            waits: Mutex::new(Waits::new(settings.overtakes)),
            room: CachePadded::new(Room::new(settings.max_locks)),
            settings,
            clock,
        })
    }

    /// Locks `key`, and waits for it up to `timeout` (zero: not at all; none: as the settings say;
    /// [`Duration::MAX`]: without end).
    ///
    /// Fails without any change with the kinds [`TimedOut`](esker::ErrorKind::TimedOut),
    /// [`Interrupted`](esker::ErrorKind::Interrupted),
    /// [`Deadlock`](esker::ErrorKind::Deadlock), whose source is a [`Deadlock`], and
    /// [`LockLimit`](esker::ErrorKind::LockLimit).
    pub fn acquire(
        &self,
        locks: &mut TransactionLocks,
        family: u32,
        key: &[u8],
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<Acquired> {
        let hash = hash_key(family, key);
        let attempt = {
            let mut shard = shard_of(&self.shards, hash).lock();
            shard.try_point(locks.id(), (family, hash, key), mode, &self.room)
        };
        let acquired = match attempt {
            Attempt::Done(acquired) => acquired,
            Attempt::Full => return Err(error::limit(self.settings.max_locks)),
            Attempt::Unclear => {
                let key = StoredKey::new(key);
                let target = Target::Point { hash, key };
                self.queue_up(locks, Request { family, target, mode }, timeout)?
            }
        };
        if acquired != Acquired::Held {
            locks.push_point(family, hash, key, acquired);
        }
        Ok(acquired)
    }

    /// Locks the keys from `start` on, up to `end` without it (none: to the last key), in the order of their family,
    /// whether they are there or not. A range that has no keys is refused.
    ///
    /// All ranges of a family must come with the same order. A range is upgraded by a request for exactly the same; others
    /// are locks of their own, and own locks are never in the way. Waits and fails as [`acquire`](Self::acquire) does. Takes
    /// time proportional to the locks that are held by all.
    pub fn acquire_range(
        &self,
        locks: &mut TransactionLocks,
        family: u32,
        order: &KeyOrder,
        (start, end): (&[u8], Option<&[u8]>),
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<Acquired> {
        let range = Arc::new(new_range(order, start, end)?);
        let target = Target::Range(Arc::clone(&range));
        let acquired = self.queue_up(locks, Request { family, target, mode }, timeout)?;
        if acquired != Acquired::Held {
            locks.push_range(family, range, acquired);
        }
        Ok(acquired)
    }

    /// Takes back the last change of the transaction's lock on `key`: an upgrade becomes shared again, else the lock is given
    /// back. `None` if it holds none. For an [`acquire`](Self::acquire) that has answered other than
    /// [`Held`](Acquired::Held). Takes time proportional to the locks that were taken since.
    pub fn release_one(&self, locks: &mut TransactionLocks, family: u32, key: &[u8]) -> Option<Acquired> {
        let index = locks.rposition_point(family, hash_key(family, key), key)?;
        self.take_back_one(locks, index)
    }

    /// [`release_one`](Self::release_one) for the range `start` to `end`.
    pub fn release_one_range(
        &self,
        locks: &mut TransactionLocks,
        family: u32,
        (start, end): (&[u8], Option<&[u8]>),
    ) -> Option<Acquired> {
        // Ranges are the same if their ends are the same bytes; the order is not asked.
        let range = Range {
            order: KeyOrder::Bytewise,
            start: start.into(),
            end: end.map(Into::into),
        };
        let index = locks.rposition_range(family, &range)?;
        self.take_back_one(locks, index)
    }

    /// Takes back whatever was locked since the last savepoint, which goes with it; `false` if there is none.
    pub fn roll_back_to_savepoint(&self, locks: &mut TransactionLocks) -> bool {
        let Some(savepoint) = locks.take_savepoint() else {
            return false;
        };
        self.take_back(locks, savepoint, usize::MAX);
        locks.truncate(savepoint);
        true
    }

    /// Gives all locks back.
    pub fn release_all(&self, locks: &mut TransactionLocks) {
        self.take_back(locks, 0, usize::MAX);
        locks.truncate(0);
        while locks.pop_savepoint() {}
    }

    /// Lets all who wait look at the clock again: for clocks that do not go with the machine's.
    pub fn notice_time(&self) {
        for waiting in &self.waits.lock().queue {
            // Who has looked already is asleep once its seat can be had.
            drop(waiting.seat.word.lock());
            waiting.seat.wake.notify_one();
        }
    }

    /// Locks that are held or waited for.
    pub fn len(&self) -> usize {
        self.room.used()
    }

    /// Whether no lock is held or waited for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(super) fn waits(&self) -> &Mutex<Waits> {
        &self.waits
    }

    /// A request that could not be granted at once.
    fn queue_up(
        &self,
        locks: &TransactionLocks,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Acquired> {
        let txn = locks.id();
        let timeout = timeout.unwrap_or(self.settings.timeout);
        let since = self.clock.now();
        let seat = Arc::new(Seat::default());
        let mut view = View::of(&self.shards, &request);
        let is_new = match view.mode_held(txn, &request) {
            Some(held) if held >= request.mode => return Ok(Acquired::Held),
            held => held.is_none(),
        };
        if is_new && !self.room.take() {
            return Err(error::limit(self.settings.max_locks));
        }
        let waiting = |seat: &Arc<Seat>| Waiting {
            txn,
            request: request.clone(),
            since,
            blockers: Vec::new(),
            overtakes: Vec::new(),
            is_holder: !locks.is_empty(),
            overtaken: 0,
            turn: Turn::Asks,
            seat: Arc::clone(seat),
        };
        let patience = Patience {
            waits: !timeout.is_zero(),
            is_refused_deadlocks: locks.is_refused_deadlocks(),
        };
        let mut standing = self.stand(&mut view, waiting(&seat), patience);
        if matches!(standing, Ok(Standing::NeedsAll)) {
            drop(view);
            view = View::all(&self.shards);
            standing = self.stand(&mut view, waiting(&seat), patience);
        }
        drop(view);
        let outcome = match standing {
            Ok(Standing::Granted(acquired)) => Ok(acquired),
            Ok(_) => {
                let interrupter = locks.interrupts();
                interrupter.inspect(|interrupter| interrupter.watch(Some(&seat)));
                let waited = self.wait(locks, &request, &seat, since, timeout);
                interrupter.inspect(|interrupter| interrupter.watch(None));
                waited
            }
            Err(error) => Err(error),
        };
        if is_new && outcome.is_err() {
            self.room.give_back(1);
        }
        outcome
    }

    /// Puts a request into the queue, and takes it out again if it is granted or closes a circle.
    fn stand(&self, view: &mut View<'_>, waiting: Waiting, patience: Patience) -> Result<Standing> {
        let (txn, request, seat) = (waiting.txn, waiting.request.clone(), Arc::clone(&waiting.seat));
        let is_holder = waiting.is_holder;
        let mut waits = self.waits.lock();
        waits.enter(view, waiting);
        waits.settle(view, &request);
        // Nobody waits for one that holds nothing and came last.
        let standing = match seat.granted() {
            None if is_holder => self.break_circles(&mut waits, view, (txn, &request, &seat), patience),
            None => Ok(Standing::Waits),
            Some(acquired) => Ok(Standing::Granted(acquired)),
        };
        waits.go_to_sleep(txn);
        standing
    }

    /// Where a request that stands in the queue has come to, once no circle goes through it or none can be broken.
    fn break_circles(
        &self,
        waits: &mut Waits,
        view: &mut View<'_>,
        (txn, request, seat): (TransactionId, &Request, &Seat),
        patience: Patience,
    ) -> Result<Standing> {
        loop {
            if let Some(acquired) = seat.granted() {
                return Ok(Standing::Granted(acquired));
            }
            let Some(circle) = find_circle(&waits.queue, txn, self.settings.deadlock_depth) else {
                return Ok(Standing::Waits);
            };
            // Who does not wait is no part of a deadlock, and moves nobody but itself.
            if !patience.waits && circle.first().is_some_and(|edge| !edge.blocker.is_ahead) {
                return Ok(Standing::Waits);
            }
            // A circle that fairness alone has made is broken all the same.
            if !patience.is_refused_deadlocks && circle.iter().all(|edge| !edge.blocker.is_ahead) {
                return Ok(Standing::Waits);
            }
            if !view.is_all() {
                waits.leave(view, txn);
                return Ok(Standing::NeedsAll);
            }
            let Some(fair) = circle.iter().find(|edge| edge.blocker.is_ahead) else {
                let found = report(&waits.queue, &circle, self.clock.now());
                waits.leave(view, txn);
                let error = error::deadlock(&found);
                self.keep(waits, found);
                return Err(error);
            };
            if let Some(waiting) = waits.queue.get_mut(fair.waiter) {
                waiting.overtakes.push(fair.blocker.txn);
            }
            waits.settle(view, request);
        }
    }

    /// Keeps a deadlock for the list.
    fn keep(&self, waits: &mut Waits, found: Deadlock) {
        waits.deadlocks.push_back(Arc::new(found));
        while waits.deadlocks.len() > self.settings.deadlocks_kept {
            waits.deadlocks.pop_front();
        }
    }

    /// Sleeps until the request, which stands in the queue, is granted, its time is over, or it is interrupted.
    fn wait(
        &self,
        locks: &TransactionLocks,
        request: &Request,
        seat: &Seat,
        since: Duration,
        timeout: Duration,
    ) -> Result<Acquired> {
        // What can't be added up never comes.
        let deadline = since.checked_add(timeout);
        let is_interrupted = || locks.interrupts().is_some_and(Interrupter::is_requested);
        let mut word = seat.word.lock();
        loop {
            match *word {
                Word::Granted(acquired) => return Ok(acquired),
                Word::Come => {
                    drop(word);
                    let mut view = View::of(&self.shards, request);
                    self.waits.lock().ask_again(&mut view, locks.id(), request);
                    drop(view);
                    word = seat.word.lock();
                    continue;
                }
                Word::Wait => {}
            }
            if !timeout.is_zero() && is_interrupted() {
                break;
            }
            let left = match deadline {
                Some(_) if timeout.is_zero() => Duration::ZERO,
                Some(deadline) => deadline.saturating_sub(self.clock.now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                break;
            }
            seat.wake.wait_for(&mut word, left);
        }
        drop(word);
        let mut view = View::of(&self.shards, request);
        let mut waits = self.waits.lock();
        // It may be free in the last moment.
        waits.ask_again(&mut view, locks.id(), request);
        if let Some(acquired) = seat.granted() {
            return Ok(acquired);
        }
        match waits.leave(&mut view, locks.id()) {
            Some(_) if !timeout.is_zero() && is_interrupted() => Err(error::interrupted(request)),
            Some(waiting) => Err(error::timed_out(request, &waiting.blockers, timeout)),
            None => Err(Error::bug("a request that was not granted has left the queue")),
        }
    }

    fn take_back_one(&self, locks: &mut TransactionLocks, index: usize) -> Option<Acquired> {
        let what = locks.since(index).first()?.what;
        self.take_back(locks, index, 1);
        locks.remove(index);
        Some(what)
    }

    /// Takes back `count` changes at most from number `from` on. They stay written down.
    fn take_back(&self, locks: &TransactionLocks, from: usize, count: usize) {
        let changes = locks.since(from);
        let changes = changes.get(..count).unwrap_or(changes);
        let mut new = 0;
        // The newest first, so that an upgrade goes before its lock.
        for (index, change) in changes.iter().enumerate().rev() {
            new += usize::from(change.what == Acquired::New);
            let is_done = match &change.place {
                Place::Point { hash, key } => {
                    self.take_back_point(locks.id(), (change.family, *hash, locks.key(key)), change.what)
                }
                Place::Range(_) => false,
            };
            if !is_done {
                // This one and the rest at once, as each would need all shards.
                let rest = changes.get(..=index).unwrap_or_default();
                self.take_back_together(locks, rest);
                let rest = changes.get(..index).unwrap_or_default();
                new += rest.iter().filter(|change| change.what == Acquired::New).count();
                break;
            }
        }
        self.room.give_back(new);
    }

    /// Takes back a point; `false` if all shards are needed for it.
    fn take_back_point(&self, txn: TransactionId, point: (u32, u64, &[u8]), what: Acquired) -> bool {
        let (family, hash, key) = point;
        let mut shard = shard_of(&self.shards, hash).lock();
        if shard.entangled.contains(family) {
            return false;
        }
        if shard.take_back(txn, point, what) == Freed::Wanted {
            let target = Target::Point {
                hash,
                key: StoredKey::new(key),
            };
            let mode = LockMode::Exclusive;
            let mut view = View::one(shard);
            self.waits
                .lock()
                .settle(&mut view, &Request { family, target, mode });
        }
        true
    }

    /// Takes back changes under all mutexes, and settles the queue once.
    fn take_back_together(&self, locks: &TransactionLocks, changes: &[super::held::Change]) {
        let mut view = View::all(&self.shards);
        let mut last = None;
        for change in changes.iter().rev() {
            let target = match &change.place {
                Place::Point { hash, key } => Target::Point {
                    hash: *hash,
                    key: StoredKey::new(locks.key(key)),
                },
                Place::Range(range) => Target::Range(Arc::clone(range)),
            };
            view.take_back(locks.id(), change.family, &target, change.what);
            last = Some(Request {
                family: change.family,
                target,
                mode: LockMode::Exclusive,
            });
        }
        if let Some(changed) = last {
            self.waits.lock().settle(&mut view, &changed);
        }
    }
}

/// A range with keys in it.
fn new_range(order: &KeyOrder, start: &[u8], end: Option<&[u8]>) -> Result<Range> {
    if end.is_some_and(|end| order.compare(start, end).is_ge()) {
        return Err(Error::invalid("a range to lock must start before its end"));
    }
    Ok(Range {
        order: order.clone(),
        start: start.into(),
        end: end.map(Into::into),
    })
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("settings", &self.settings)
            .field("locks", &self.len())
            .finish_non_exhaustive()
    }
}
