//! What reads see: the published sequence number, and snapshots, which compaction must keep visible.
//!
//! Invariant: a sequence number in the list was the published one when it was added, under the list's lock; a job
//! that takes the list (under the same lock) after it chose its inputs therefore sees every snapshot that can see
//! a version which the job may drop.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::key::Sequence;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The sequence number of the last write that readers see. A reader pins its view before it reads the number: see
/// `version/family.rs`.
#[derive(Debug)]
pub struct Published(AtomicU64);

impl Published {
    /// Everything up to `sequence` is seen.
    pub fn new(sequence: Sequence) -> Self {
        Self(AtomicU64::new(sequence))
    }

    /// The last write that is seen, with all that was written before it.
    #[inline]
    pub fn get(&self) -> Sequence {
        self.0.load(Ordering::Acquire)
    }

    /// Lets everything up to `sequence` be seen. For the leader, after the inserts.
    #[inline]
    pub fn advance(&self, sequence: Sequence) {
        self.0.store(sequence, Ordering::Release);
    }
}

/// The live snapshots of a database: sequence -> how many share it.
#[derive(Debug, Default)]
pub struct SnapshotList {
    live: Mutex<BTreeMap<Sequence, usize>>,
}

impl SnapshotList {
    /// Adds a snapshot at the sequence that `published` gives under the list's lock.
    pub fn acquire(self: &Arc<Self>, published: impl FnOnce() -> Sequence) -> Snapshot {
        self.add(published, None, None)
    }

    /// The same; `freed` is called when its last clone has left the list.
    pub fn acquire_told(self: &Arc<Self>, published: impl FnOnce() -> Sequence, freed: Freed) -> Snapshot {
        self.add(published, Some(freed), None)
    }

    /// Adds a snapshot at `sequence` that keeps what it sees: where nobody who drops versions knows the list.
    pub fn acquire_keeping(
        self: &Arc<Self>,
        sequence: Sequence,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Snapshot {
        self.add(|| sequence, None, Some(kept))
    }

    fn add(
        self: &Arc<Self>,
        published: impl FnOnce() -> Sequence,
        freed: Option<Freed>,
        kept: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Snapshot {
        let mut live = self.live.lock();
        let sequence = published();
        *live.entry(sequence).or_insert(0) += 1;
        drop(live);
        Snapshot {
            guard: Arc::new(Guard {
                list: Arc::clone(self),
                sequence,
                freed,
                kept,
            }),
        }
    }

    /// The live snapshots' sequences, ascending.
    pub fn sequences(&self) -> Vec<Sequence> {
        self.live.lock().keys().copied().collect()
    }

    /// How many snapshots are alive.
    pub fn count(&self) -> usize {
        self.live.lock().values().sum()
    }
}

/// Is told of a snapshot that is gone: its sequence, and that of the oldest one left. Called under the list's lock, so that
/// nobody sees the oldest one go back; it must not come back to the list.
pub type Freed = Box<dyn Fn(Sequence, Option<Sequence>) + Send + Sync>;

struct Guard {
    list: Arc<SnapshotList>,
    sequence: Sequence,
    freed: Option<Freed>,
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut live = self.list.live.lock();
        if let Some(count) = live.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.sequence);
            }
        }
        if let Some(freed) = &self.freed {
            freed(self.sequence, live.keys().next().copied());
        }
    }
}

/// A view of the database as it was at one moment, kept until the last clone is dropped.
#[derive(Clone)]
pub struct Snapshot {
    guard: Arc<Guard>,
}

impl Snapshot {
    /// The last sequence number that it sees.
    pub fn sequence(&self) -> Sequence {
        self.guard.sequence
    }

    /// What it keeps, if it is of this type.
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.guard.kept.as_ref()?).downcast().ok()
    }

    /// Whether it was taken from the database that owns `list`.
    pub fn belongs_to(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.guard.list, list)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({})", self.sequence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_lives_until_its_last_clone() {
        let list = Arc::new(SnapshotList::default());
        let first = list.acquire(|| 5);
        let second = list.acquire(|| 5);
        let clone = first.clone();
        drop(first);
        drop(second);
        assert_eq!(list.sequences(), [5]);
        drop(clone);
        assert!(list.sequences().is_empty());
        assert_eq!(list.count(), 0);
    }

    #[test]
    fn who_wants_to_know_is_told_when_the_last_clone_goes() {
        let list = Arc::new(SnapshotList::default());
        let told = Arc::new(Mutex::new(Vec::new()));
        let take = |sequence| {
            let told = Arc::clone(&told);
            let freed = Box::new(move |gone, oldest| told.lock().push((gone, oldest)));
            list.acquire_told(|| sequence, freed)
        };
        let (first, second) = (take(5), take(9));
        let clone = first.clone();
        drop(first);
        assert!(told.lock().is_empty());
        drop(clone);
        drop(second);
        assert_eq!(*told.lock(), [(5, Some(9)), (9, None)]);
    }
}
