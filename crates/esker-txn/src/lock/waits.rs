//! The queue of those who wait for a lock, in order of arrival, and for whom each of them waits.
//!
//! Invariants, whenever the queue's mutex is free:
//! 1. A transaction stands in it once at most.
//! 2. `blockers` of each are those for whom it really waits, and there are some. So the graph of waits is always at hand,
//!    for all shards, without looking at any.
//! 3. Whoever was taken out of the queue has heard of it, or took itself out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use esker::sync::{Condvar, Mutex};

use super::deadlock::Deadlock;
use super::target::Request;
use super::view::View;
use super::{Acquired, TransactionId};

/// Where one thread sleeps until it is granted its lock.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) granted: Mutex<Option<Acquired>>,
    pub(super) wake: Condvar,
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
    pub(super) seat: Arc<Seat>,
}

/// The queue, and what came of circles in it.
#[derive(Default)]
pub(super) struct Waits {
    pub(super) queue: Vec<Waiting>,
    pub(super) deadlocks: VecDeque<Arc<Deadlock>>,
}

impl Waits {
    pub(super) fn find(&self, txn: TransactionId) -> Option<&Waiting> {
        self.queue.iter().find(|waiting| waiting.txn == txn)
    }

    /// Puts a request at the end of the queue. It is granted by the next [`settle`](Self::settle), if it can be.
    pub(super) fn enter(&mut self, view: &mut View<'_>, waiting: Waiting) {
        debug_assert!(self.find(waiting.txn).is_none(), "a transaction waits once");
        view.expect(&waiting.request);
        self.queue.push(waiting);
    }

    /// Takes the request of `txn` out, ungranted, and settles what it has kept from others.
    pub(super) fn leave(&mut self, view: &mut View<'_>, txn: TransactionId) -> Option<Waiting> {
        let index = self.queue.iter().position(|waiting| waiting.txn == txn)?;
        let waiting = self.queue.remove(index);
        view.give_up(&waiting.request);
        self.settle(view, &waiting.request);
        Some(waiting)
    }

    /// Grants what can be granted now, and notes for whom the others wait, after a change of the lock that `changed` is for.
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
        while let Some(waiting) = self.queue.get(index) {
            if !view.is_all() && !waiting.request.is_same_target(changed) {
                index += 1;
                continue;
            }
            let blockers = self.blockers(view, waiting, index);
            if blockers.is_empty() {
                let waiting = self.queue.remove(index);
                let acquired = view.grant(waiting.txn, &waiting.request);
                *waiting.seat.granted.lock() = Some(acquired);
                waiting.seat.wake.notify_one();
                granted_any = true;
            } else {
                if let Some(waiting) = self.queue.get_mut(index) {
                    waiting.blockers = blockers;
                }
                index += 1;
            }
        }
        granted_any
    }

    /// For whom the request at `index` has to wait.
    fn blockers(&self, view: &View<'_>, waiting: &Waiting, index: usize) -> Vec<Blocker> {
        let mut blockers = Vec::new();
        view.add_holders_against(waiting.txn, &waiting.request, &mut blockers);
        let ahead = self.queue.iter().take(index).filter(|ahead| {
            ahead.request.conflicts(&waiting.request) && !waiting.overtakes.contains(&ahead.txn)
        });
        blockers.extend(ahead.map(|ahead| Blocker {
            txn: ahead.txn,
            is_ahead: true,
        }));
        blockers.sort_unstable();
        blockers.dedup_by_key(|blocker| blocker.txn);
        blockers
    }
}
