//! What one transaction holds, in the order in which it got it.

use std::ops::Range as Span;
use std::sync::Arc;

use super::target::Range;
use super::{Acquired, Interrupter, TransactionId};

/// What a change was made to.
#[derive(Clone)]
pub(super) enum Place {
    /// A point; its key is this part of the list's bytes.
    Point { hash: u64, key: Span<usize> },
    /// A range.
    Range(Arc<Range>),
}

/// A lock that is new, or an upgrade.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) family: u32,
    pub(super) what: Acquired,
    pub(super) place: Place,
}

/// The locks of one transaction, and its savepoints among them.
///
/// It belongs to the transaction and is given to the [`LockManager`](super::LockManager) with every call. Before it is
/// dropped its locks must be given back ([`release_all`](super::LockManager::release_all)): nobody else knows of them.
/// It keeps its memory, so a thread does well to use one again: [`restart`](Self::restart).
pub struct TransactionLocks {
    id: TransactionId,
    /// In order of time.
    changes: Vec<Change>,
    /// Keys of points, one behind the other.
    keys: Vec<u8>,
    /// How many changes there were at each savepoint; never falling.
    savepoints: Vec<usize>,
    is_refused_deadlocks: bool,
    /// If anybody has asked for one.
    interrupter: Option<Interrupter>,
}

impl TransactionLocks {
    /// Of a transaction that holds nothing.
    pub fn new(id: TransactionId) -> Self {
        Self {
            id,
            changes: Vec::new(),
            keys: Vec::new(),
            savepoints: Vec::new(),
            is_refused_deadlocks: true,
            interrupter: None,
        }
    }

    /// Whose locks they are.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Whether a request of this transaction that closes a circle of waiters is refused, as it is at first. If not, it waits
    /// for its time limit, as the others in the circle do.
    pub fn set_deadlock_detection(&mut self, is_on: bool) {
        self.is_refused_deadlocks = is_on;
    }

    pub(super) fn is_refused_deadlocks(&self) -> bool {
        self.is_refused_deadlocks
    }

    /// What ends waits of this transaction, and of those after it, from other threads.
    pub fn interrupter(&mut self) -> Interrupter {
        self.interrupter.get_or_insert_default().clone()
    }

    /// Takes the interrupter of `other`, which has none then.
    pub(crate) fn take_interrupter(&mut self, other: &mut Self) {
        self.interrupter = other.interrupter.take();
    }

    pub(super) fn interrupts(&self) -> Option<&Interrupter> {
        self.interrupter.as_ref()
    }

    /// How many are held; an upgrade is not counted again.
    pub fn len(&self) -> usize {
        let new = self.changes.iter().filter(|change| change.what == Acquired::New);
        new.count()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Makes it that of another transaction; `false` and no change if locks are held.
    #[must_use]
    pub fn restart(&mut self, id: TransactionId) -> bool {
        if self.changes.is_empty() {
            self.id = id;
            self.savepoints.clear();
        }
        self.changes.is_empty()
    }

    /// Remembers what is held now, for [`roll_back_to_savepoint`](super::LockManager::roll_back_to_savepoint).
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.changes.len());
    }

    /// Forgets the last savepoint and keeps what was locked since; `false` if there is none.
    pub fn pop_savepoint(&mut self) -> bool {
        self.savepoints.pop().is_some()
    }

    pub(super) fn push_point(&mut self, family: u32, hash: u64, key: &[u8], what: Acquired) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.changes.push(Change {
            family,
            what,
            place: Place::Point {
                hash,
                key: start..self.keys.len(),
            },
        });
    }

    pub(super) fn push_range(&mut self, family: u32, range: Arc<Range>, what: Acquired) {
        self.changes.push(Change {
            family,
            what,
            place: Place::Range(range),
        });
    }

    /// The last change of a point.
    pub(super) fn rposition_point(&self, family: u32, hash: u64, key: &[u8]) -> Option<usize> {
        self.changes.iter().rposition(|change| {
            change.family == family
                && matches!(&change.place, Place::Point { hash: own, key: span }
                    if *own == hash && self.key(span) == key)
        })
    }

    /// The last change of a range.
    pub(super) fn rposition_range(&self, family: u32, range: &Range) -> Option<usize> {
        self.changes.iter().rposition(|change| {
            change.family == family && matches!(&change.place, Place::Range(own) if own.is_same(range))
        })
    }

    pub(super) fn key(&self, span: &Span<usize>) -> &[u8] {
        self.keys.get(span.clone()).unwrap_or_default()
    }

    /// The changes from number `from` on.
    pub(super) fn since(&self, from: usize) -> &[Change] {
        self.changes.get(from..).unwrap_or_default()
    }

    /// Takes the last savepoint; how many changes there were.
    pub(super) fn take_savepoint(&mut self) -> Option<usize> {
        self.savepoints.pop()
    }

    /// Forgets one change, wherever it stands.
    pub(super) fn remove(&mut self, index: usize) {
        if index < self.changes.len() {
            self.changes.remove(index);
            for savepoint in self.savepoints.iter_mut().filter(|savepoint| **savepoint > index) {
                *savepoint -= 1;
            }
            self.drop_keys();
        }
    }

    /// Forgets all changes from number `from` on.
    pub(super) fn truncate(&mut self, from: usize) {
        self.changes.truncate(from);
        self.drop_keys();
    }

    /// Forgets keys behind that of the last change.
    fn drop_keys(&mut self) {
        let last = self.changes.iter().rev().find_map(|change| match &change.place {
            Place::Point { key, .. } => Some(key.end),
            Place::Range(_) => None,
        });
        self.keys.truncate(last.unwrap_or(0));
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        debug_assert!(
            self.changes.is_empty() || std::thread::panicking(),
            "transaction {} leaves locks behind",
            self.id
        );
    }
}
