//! What can be listed: locks that are held, requests that wait, the last deadlocks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::manager::LockManager;
use super::target::{Request, Target};
use super::{Deadlock, LockMode, TransactionId};

/// What a lock is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockTarget {
    /// A key.
    Key(Vec<u8>),
    /// The keys from `start` on, up to `end` without it, or to the last one; in the order of the family.
    Range {
        /// The first key.
        start: Vec<u8>,
        /// The first key behind it.
        end: Option<Vec<u8>>,
    },
}

impl LockTarget {
    pub(super) fn of(target: &Target) -> Self {
        match target {
            Target::Point { key, .. } => Self::Key(key.as_bytes().to_vec()),
            Target::Range(range) => Self::Range {
                start: range.start.to_vec(),
                end: range.end.as_deref().map(<[u8]>::to_vec),
            },
        }
    }
}

/// A key as text.
pub(super) fn shown_key(key: &[u8]) -> String {
    format!("key \"{}\"", key.escape_ascii())
}

impl fmt::Display for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(&shown_key(key)),
            Self::Range { start, end } => {
                write!(f, "keys from \"{}\"", start.escape_ascii())?;
                match end {
                    Some(end) => write!(f, " to \"{}\"", end.escape_ascii()),
                    None => f.write_str(" on"),
                }
            }
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = LockTarget::of(&self.target);
        write!(f, "{} {target} in column family {}", self.mode, self.family)
    }
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The number of the column family.
    pub family: u32,
    /// On what.
    pub target: LockTarget,
    /// In which mode.
    pub mode: LockMode,
    /// By whom, in rising order.
    pub holders: Vec<TransactionId>,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRequest {
    /// Who waits.
    pub transaction: TransactionId,
    /// The number of the column family.
    pub family: u32,
    /// For a lock on what.
    pub target: LockTarget,
    /// In which mode.
    pub mode: LockMode,
    /// Since when, by the clock of the manager.
    pub since: Duration,
    /// For whom: holders of locks in conflict with it, and requests ahead in the queue, but not those for whom the last of these waits itself.
    /// In rising order. Nobody, if its thread is on its way to a lock that is free.
    pub waits_for: Vec<TransactionId>,
}

impl LockManager {
    /// All locks that are held, by family and target. One shard after another is listed, each as it is at that moment.
    pub fn held(&self) -> Vec<HeldLock> {
        let mut locks = Vec::new();
        let mut ranges = Arc::default();
        for shard in self.shards() {
            let shard = shard.lock();
            ranges = Arc::clone(&shard.ranges);
            for lock in &shard.locks {
                let mut holders = lock.holders.as_slice().to_vec();
                holders.sort_unstable();
                if !holders.is_empty() {
                    locks.push(HeldLock {
                        family: lock.family,
                        target: LockTarget::Key(lock.key.as_bytes().to_vec()),
                        mode: lock.mode,
                        holders,
                    });
                }
            }
        }
        // A range is a row for each mode, with all who hold it.
        let mut by_range: BTreeMap<(u32, LockTarget, LockMode), Vec<TransactionId>> = BTreeMap::new();
        for held in ranges.iter() {
            let target = LockTarget::of(&Target::Range(Arc::clone(&held.range)));
            by_range
                .entry((held.family, target, held.mode))
                .or_default()
                .push(held.txn);
        }
        locks.extend(by_range.into_iter().map(|((family, target, mode), mut holders)| {
            holders.sort_unstable();
            HeldLock {
                family,
                target,
                mode,
                holders,
            }
        }));
        locks.sort_by(|a, b| (a.family, &a.target).cmp(&(b.family, &b.target)));
        locks
    }

    /// All requests that wait, in the order in which they came.
    pub fn waiting(&self) -> Vec<WaitingRequest> {
        let waits = self.waits().lock();
        let listed = waits.queue.iter().map(|waiting| WaitingRequest {
            transaction: waiting.txn,
            family: waiting.request.family,
            target: LockTarget::of(&waiting.request.target),
            mode: waiting.request.mode,
            since: waiting.since,
            waits_for: waiting.blockers.iter().map(|blocker| blocker.txn).collect(),
        });
        listed.collect()
    }

    /// The last deadlocks, as many as the settings keep, the oldest first.
    pub fn deadlocks(&self) -> Vec<Arc<Deadlock>> {
        self.waits().lock().deadlocks.iter().map(Arc::clone).collect()
    }
}
