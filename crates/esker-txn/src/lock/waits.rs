//! The queue of those who wait for a lock, in order of arrival, and for whom each of them waits.
//!
//! Invariants, whenever the queue's mutex is free:
//! 1. A transaction stands in it once at most.
//! 2. `blockers` of each are those for whom it really waits. So the graph of waits is always at hand, for all shards, without
//!    looking at any.
//! 3. Who has none was called, has not asked since, and holds no other lock.
//! 4. Whoever was taken out of the queue has heard of it, or took itself out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use esker::sync::{Condvar, Mutex};

use super::deadlock::Deadlock;
use super::target::Request;
use super::view::View;
use super::{Acquired, LockMode, TransactionId};

/// What a waiter was told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Word {
    #[default]
    Wait,
    /// The lock is free for it: it may come and ask again.
    Come,
    Granted(Acquired),
}

/// Where one thread sleeps until it is its turn.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) word: Mutex<Word>,
    pub(super) wake: Condvar,
}

impl Seat {
    pub(super) fn granted(&self) -> Option<Acquired> {
        match *self.word.lock() {
            Word::Granted(acquired) => Some(acquired),
            Word::Wait | Word::Come => None,
        }
    }
}

/// What the thread of a request does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is here, and is given its lock if that is free for it.
    Asks,
    Sleeps,
    /// It is on its way, as its lock is free for it.
    Called,
}

/// One for whom somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Blocker {
    pub(super) txn: TransactionId,
    /// Whether it waits itself and is only ahead in the queue; else it holds a lock.
    pub(super) is_ahead: bool,
}

impl Blocker {
    pub(super) fn holder(txn: TransactionId) -> Self {
        Self { txn, is_ahead: false }
    }
}

/// A request in the queue.
pub(super) struct Waiting {
    pub(super) txn: TransactionId,
    pub(super) request: Request,
    pub(super) since: Duration,
    /// No transaction twice.
    pub(super) blockers: Vec<Blocker>,
    /// Of those ahead, whom it need not wait for.
    pub(super) overtakes: Vec<TransactionId>,
    /// Whether its transaction holds other locks.
    pub(super) is_holder: bool,
    /// How many that came later were let pass while it was called.
    pub(super) overtaken: usize,
    pub(super) turn: Turn,
    pub(super) seat: Arc<Seat>,
}

/// The queue, and what came of circles in it.
pub(super) struct Waits {
    /// How often one may be overtaken.
    overtakes_max: usize,
    pub(super) queue: Vec<Waiting>,
    pub(super) deadlocks: VecDeque<Arc<Deadlock>>,
}

impl Waits {
    pub(super) fn new(overtakes_max: usize) -> Self {
        Self {
            overtakes_max,
            queue: Vec::new(),
            deadlocks: VecDeque::new(),
        }
    }

    pub(super) fn find(&self, txn: TransactionId) -> Option<&Waiting> {
        self.queue.iter().find(|waiting| waiting.txn == txn)
    }

    /// Puts a request into the queue. It is granted by the next [`settle`](Self::settle), if it can be.
    pub(super) fn enter(&mut self, view: &mut View<'_>, waiting: Waiting) {
        debug_assert!(self.find(waiting.txn).is_none(), "a transaction waits once");
        let place = self.place_for(view, &waiting.request, waiting.txn);
        view.expect(&waiting.request);
        self.queue.insert(place, waiting);
    }

    /// Where in the queue a new request has its place: at the end, or before all who wait for its lock, if that is free, one of them is on
    /// its way to it, and none of them holds other locks. It is granted then before anybody else is looked at.
    fn place_for(&mut self, view: &View<'_>, request: &Request, txn: TransactionId) -> usize {
        let end = self.queue.len();
        let conflicts = |waiting: &Waiting| waiting.request.conflicts(request);
        let Some(first) = self.queue.iter().position(conflicts) else {
            return end;
        };
        let mut is_free = false;
        for waiting in self.queue.iter().filter(|waiting| conflicts(waiting)) {
            is_free |= waiting.turn == Turn::Called;
            if waiting.is_holder || waiting.overtaken >= self.overtakes_max {
                return end;
            }
        }
        if view.is_all() || !is_free {
            return end;
        }
        let mut holders = Vec::new();
        view.add_holders_against(txn, request, &mut holders);
        if !holders.is_empty() {
            return end;
        }
        for waiting in self.queue.iter_mut().filter(|waiting| conflicts(waiting)) {
            waiting.overtaken += usize::from(waiting.turn == Turn::Called);
        }
        first
    }

    /// The thread of `txn` is here, for whatever reason: it has its lock behind this, if that is free for it.
    pub(super) fn ask_again(&mut self, view: &mut View<'_>, txn: TransactionId, request: &Request) {
        self.set_turn(txn, Turn::Asks);
        self.settle(view, request);
        self.go_to_sleep(txn);
    }

    /// The thread of `txn` goes to sleep, unless its request was granted.
    pub(super) fn go_to_sleep(&mut self, txn: TransactionId) {
        if let Some(waiting) = self.set_turn(txn, Turn::Sleeps) {
            *waiting.seat.word.lock() = Word::Wait;
        }
    }

    fn set_turn(&mut self, txn: TransactionId, turn: Turn) -> Option<&Waiting> {
        let waiting = self.queue.iter_mut().find(|waiting| waiting.txn == txn)?;
        waiting.turn = turn;
        Some(waiting)
    }

    /// Takes the request of `txn` out, ungranted, and settles what it has kept from others.
    pub(super) fn leave(&mut self, view: &mut View<'_>, txn: TransactionId) -> Option<Waiting> {
        let index = self.queue.iter().position(|waiting| waiting.txn == txn)?;
        let waiting = self.queue.remove(index);
        view.give_up(&waiting.request);
        self.settle(view, &waiting.request);
        Some(waiting)
    }

    /// Grants what can be granted now, or calls who can have it, and notes for whom the others wait, after a change of the lock that `changed` is for.
    /// With one shard open these are requests for the same point: nothing else can depend on it.
    pub(super) fn settle(&mut self, view: &mut View<'_>, changed: &Request) {
        // One that overtakes changes for whom those ahead of it wait.
        while self.settle_in_order(view, changed) {}
        if view.is_all() {
            view.mark_families(&self.queue);
        }
    }

    /// One pass; whether anything was granted.
    fn settle_in_order(&mut self, view: &mut View<'_>, changed: &Request) -> bool {
        let mut granted_any = false;
        let mut index = 0;
        while let Some(waiting) = self.queue.get_mut(index) {
            if !view.is_all() && !waiting.request.is_same_target(changed) {
                index += 1;
                continue;
            }
            let mut blockers = std::mem::take(&mut waiting.blockers);
            let Some(waiting) = self.queue.get(index) else {
                break;
            };
            self.find_blockers(view, waiting, index, &mut blockers);
            let is_free = blockers.is_empty();
            let is_handed_over =
                view.is_all() || waiting.is_holder || waiting.overtaken >= self.overtakes_max;
            if is_free && (waiting.turn == Turn::Asks || is_handed_over) {
                let waiting = self.queue.remove(index);
                let acquired = view.grant(waiting.txn, &waiting.request);
                *waiting.seat.word.lock() = Word::Granted(acquired);
                view.wake_later(waiting.seat);
                granted_any = true;
                continue;
            }
            if let Some(waiting) = self.queue.get_mut(index) {
                waiting.blockers = blockers;
                if is_free && waiting.turn == Turn::Sleeps {
                    waiting.turn = Turn::Called;
                    *waiting.seat.word.lock() = Word::Come;
                    view.wake_later(Arc::clone(&waiting.seat));
                }
            }
            index += 1;
        }
        granted_any
    }

    /// Puts into `blockers` for whom the request at `index` has to wait, and nobody else.
    ///
    /// Of those ahead only as many as reach the others: an exclusive request for the same target waits for all that are ahead of it.
    fn find_blockers(&self, view: &View<'_>, waiting: &Waiting, index: usize, blockers: &mut Vec<Blocker>) {
        blockers.clear();
        view.add_holders_against(waiting.txn, &waiting.request, blockers);
        for ahead in self.queue.iter().take(index).rev() {
            if !ahead.request.conflicts(&waiting.request) || waiting.overtakes.contains(&ahead.txn) {
                continue;
            }
            blockers.push(Blocker {
                txn: ahead.txn,
                is_ahead: true,
            });
            let is_behind_all = ahead.request.mode == LockMode::Exclusive && ahead.overtakes.is_empty();
            if is_behind_all && ahead.request.is_same_target(&waiting.request) {
                break;
            }
        }
        blockers.sort_unstable();
        blockers.dedup_by_key(|blocker| blocker.txn);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::LockMode::{Exclusive, Shared};
    use crate::lock::key::StoredKey;
    use crate::lock::table::{Room, Shard};
    use crate::lock::target::{Target, hash_key};
    use crate::lock::view::Shards;
    use crossbeam_utils::CachePadded;

    /// One key, and requests for it whose threads do what the test says.
    struct OneKey {
        shards: Box<Shards>,
        waits: Waits,
    }

    impl OneKey {
        /// Transaction 1 holds it.
        fn new(overtakes: usize) -> Self {
            let shards: Box<Shards> = Box::new([CachePadded::new(Mutex::new(Shard::default()))]);
            let point = (0, hash_key(0, b"k"), &b"k"[..]);
            let _ = shards[0]
                .lock()
                .try_point(TransactionId(1), point, Exclusive, &Room::new(1));
            Self {
                shards,
                waits: Waits::new(overtakes),
            }
        }

        fn request(mode: LockMode) -> Request {
            let (hash, key) = (hash_key(0, b"k"), StoredKey::new(b"k"));
            Request {
                family: 0,
                target: Target::Point { hash, key },
                mode,
            }
        }

        fn step(&mut self, step: impl FnOnce(&mut Waits, &mut View<'_>)) {
            step(&mut self.waits, &mut View::one(self.shards[0].lock()));
        }

        /// A thread comes, and sleeps if it can't have the lock; the word it was told.
        fn come(&mut self, txn: u64, mode: LockMode) -> Word {
            self.come_with(txn, mode, false)
        }

        /// The same, of a transaction that may hold other locks.
        fn come_with(&mut self, txn: u64, mode: LockMode, is_holder: bool) -> Word {
            let seat = Arc::new(Seat::default());
            let waiting = Waiting {
                txn: TransactionId(txn),
                request: Self::request(mode),
                since: Duration::ZERO,
                blockers: Vec::new(),
                overtakes: Vec::new(),
                is_holder,
                overtaken: 0,
                turn: Turn::Asks,
                seat: Arc::clone(&seat),
            };
            self.step(|waits, view| {
                waits.enter(view, waiting);
                waits.settle(view, &Self::request(mode));
                waits.go_to_sleep(TransactionId(txn));
            });
            *seat.word.lock()
        }

        /// A thread that slept runs.
        fn wake(&mut self, txn: u64) {
            self.step(|waits, view| waits.ask_again(view, TransactionId(txn), &Self::request(Exclusive)));
        }

        fn release(&mut self, txn: u64) {
            let (hash, request) = (hash_key(0, b"k"), Self::request(Exclusive));
            self.step(|waits, view| {
                let point = (0, hash, &b"k"[..]);
                view.shard_mut(hash)
                    .take_back(TransactionId(txn), point, Acquired::New);
                waits.settle(view, &request);
            });
        }

        /// Who holds it.
        fn holders(&self) -> Vec<u64> {
            let shard = self.shards[0].lock();
            let lock = shard.find(0, hash_key(0, b"k"), b"k").expect("an entry");
            lock.holders.as_slice().iter().map(|txn| txn.0).collect()
        }

        /// Who waits, and for whom.
        fn waiting(&self) -> Vec<(u64, Vec<u64>)> {
            let blockers = |waiting: &Waiting| waiting.blockers.iter().map(|blocker| blocker.txn.0).collect();
            self.waits
                .queue
                .iter()
                .map(|waiting| (waiting.txn.0, blockers(waiting)))
                .collect()
        }
    }

    const GRANTED: Word = Word::Granted(Acquired::New);

    #[test]
    fn so_many_pass_one_that_is_on_its_way_and_then_it_is_handed_the_lock() {
        let mut key = OneKey::new(2);
        assert_eq!(key.come(2, Exclusive), Word::Wait);
        assert_eq!(key.come(3, Exclusive), Word::Wait, "the lock is held");
        key.release(1);
        assert!(key.holders().is_empty());
        assert_eq!(key.waiting(), [(2, vec![]), (3, vec![2])]);
        for late in [4, 5] {
            assert_eq!(key.come(late, Exclusive), GRANTED);
            assert_eq!(
                key.waiting(),
                [(2, vec![late]), (3, vec![2, late])],
                "it is waited for"
            );
            key.release(late);
        }
        assert_eq!(key.holders(), [2], "asleep as it is");
        assert_eq!(key.come(6, Exclusive), Word::Wait);
        key.release(2);
        // The next one's turn begins.
        assert_eq!(key.come(7, Exclusive), GRANTED);
        key.wake(3);
        assert_eq!(
            key.waiting(),
            [(3, vec![7]), (6, vec![3, 7])],
            "it came too late, and sleeps again"
        );
        key.release(7);
        key.wake(3);
        assert_eq!(key.holders(), [3]);
    }

    #[test]
    fn nobody_passes_one_that_was_passed_often_enough() {
        let mut key = OneKey::new(1);
        assert_eq!(key.come(2, Exclusive), Word::Wait);
        key.release(1);
        assert_eq!(key.come(3, Exclusive), GRANTED);
        key.wake(2);
        assert_eq!(key.come(4, Exclusive), Word::Wait, "the lock is held");
        key.release(3);
        assert_eq!(key.holders(), [2]);
        assert_eq!(key.waiting(), [(4, vec![2])]);
    }

    #[test]
    fn without_overtakes_locks_are_handed_over_in_order_of_arrival() {
        let mut key = OneKey::new(0);
        for late in [2, 3] {
            assert_eq!(key.come(late, Exclusive), Word::Wait);
        }
        for next in [2, 3] {
            key.release(next - 1);
            assert_eq!(key.holders(), [next]);
            assert!(key.come(next + 10, Exclusive) == Word::Wait);
        }
    }

    #[test]
    fn readers_are_called_together_and_a_writer_may_pass_them() {
        let mut key = OneKey::new(1);
        for late in [2, 3] {
            assert_eq!(key.come(late, Shared), Word::Wait);
        }
        key.release(1);
        assert_eq!(key.waiting(), [(2, vec![]), (3, vec![])]);
        assert_eq!(key.come(4, Exclusive), GRANTED);
        assert_eq!(key.waiting(), [(2, vec![4]), (3, vec![4])]);
        key.release(4);
        assert_eq!(key.holders(), [2, 3]);
    }

    #[test]
    fn who_holds_other_locks_is_not_passed() {
        let mut key = OneKey::new(16);
        assert_eq!(key.come_with(2, Exclusive, true), Word::Wait);
        assert_eq!(key.come(3, Exclusive), Word::Wait);
        assert_eq!(key.come_with(4, Exclusive, true), Word::Wait);
        key.release(1);
        assert_eq!(key.holders(), [2], "handed to it as it sleeps");
        key.release(2);
        assert_eq!(key.waiting(), [(3, vec![]), (4, vec![3])]);
        assert_eq!(key.come(5, Exclusive), Word::Wait, "4 would be passed too");
        key.wake(3);
        assert_eq!(key.holders(), [3]);
    }

    #[test]
    fn of_those_ahead_only_they_are_noted_by_way_of_whom_it_waits_for_all() {
        let mut key = OneKey::new(16);
        for (txn, mode) in [
            (2, Exclusive),
            (3, Shared),
            (4, Shared),
            (5, Exclusive),
            (6, Exclusive),
            (7, Shared),
        ] {
            assert_eq!(key.come(txn, mode), Word::Wait);
        }
        let noted = [
            (2, vec![1]),
            (3, vec![1, 2]),
            (4, vec![1, 2]),
            (5, vec![1, 2, 3, 4]),
            (6, vec![1, 5]),
            (7, vec![1, 6]),
        ];
        assert_eq!(key.waiting(), noted);
        // One that may overtake waits for fewer itself, so those behind it have to know of the others.
        key.waits.queue[4].overtakes = vec![TransactionId(5)];
        key.step(|waits, view| waits.settle(view, &OneKey::request(Exclusive)));
        assert_eq!(key.waiting()[4..], [(6, vec![1, 2, 3, 4]), (7, vec![1, 5, 6])]);
    }
}
