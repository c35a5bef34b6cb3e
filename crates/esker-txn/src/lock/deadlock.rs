//! Circles in the graph of who waits for whom: how they are found, and what is reported of them.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::list::LockTarget;
use super::waits::{Blocker, Waiting};
use super::{LockMode, TransactionId};

/// A circle of transactions each of which waited for the next; the first was refused its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found, by the clock of the manager.
    pub at: Duration,
    /// The members, each waiting for the one behind it, the last for the first.
    pub steps: Vec<DeadlockStep>,
}

/// A member of a [`Deadlock`], and what it waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockStep {
    /// Who waited.
    pub transaction: TransactionId,
    /// For a lock in which column family.
    pub family: u32,
    /// On what.
    pub target: LockTarget,
    /// In which mode.
    pub mode: LockMode,
    /// Who held it, or a lock in conflict with it.
    pub waits_for: TransactionId,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            write!(
                f,
                "{}transaction {} waits for {} ({} {} in column family {})",
                if index == 0 { "" } else { ", " },
                step.transaction,
                step.waits_for,
                step.mode,
                step.target,
                step.family
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Deadlock {}

/// An edge of a circle: a waiter, by its place in the queue, and for whom it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) waiter: usize,
    pub(super) blocker: Blocker,
}

/// A shortest circle through `start`, from there on, if there is one of `depth_max` transactions at most.
///
/// Breadth first: time is proportional to the waiters and edges that are reached.
pub(super) fn find_circle(queue: &[Waiting], start: TransactionId, depth_max: usize) -> Option<Vec<Edge>> {
    let places: HashMap<TransactionId, usize> = queue
        .iter()
        .enumerate()
        .map(|(place, waiting)| (waiting.txn, place))
        .collect();
    let first = *places.get(&start)?;
    // By which edge a waiter was reached.
    let mut reached_by: HashMap<usize, Edge> = HashMap::new();
    let mut level = vec![first];
    for _ in 0..depth_max {
        let mut next_level = Vec::new();
        for waiter in level {
            let blockers = queue.get(waiter).map_or(&[][..], |waiting| &waiting.blockers);
            for blocker in blockers.iter().copied() {
                let edge = Edge { waiter, blocker };
                if blocker.txn == start {
                    return Some(path_to(edge, &reached_by));
                }
                // Who does not wait goes on.
                if let Some(place) = places.get(&blocker.txn).copied()
                    && !reached_by.contains_key(&place)
                {
                    reached_by.insert(place, edge);
                    next_level.push(place);
                }
            }
        }
        if next_level.is_empty() {
            return None;
        }
        level = next_level;
    }
    None
}

/// The edges from the start up to `last`.
fn path_to(last: Edge, reached_by: &HashMap<usize, Edge>) -> Vec<Edge> {
    let mut path = vec![last];
    let mut at = last;
    while let Some(edge) = reached_by.get(&at.waiter) {
        path.push(*edge);
        at = *edge;
    }
    path.reverse();
    path
}

/// What is told of a circle.
pub(super) fn report(queue: &[Waiting], circle: &[Edge], at: Duration) -> Deadlock {
    let steps = circle.iter().filter_map(|edge| {
        let waiting = queue.get(edge.waiter)?;
        Some(DeadlockStep {
            transaction: waiting.txn,
            family: waiting.request.family,
            target: LockTarget::of(&waiting.request.target),
            mode: waiting.request.mode,
            waits_for: edge.blocker.txn,
        })
    });
    Deadlock {
        at,
        steps: steps.collect(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lock::key::StoredKey;
    use crate::lock::target::{Request, Target};
    use crate::lock::waits::{Seat, Turn};

    fn waiting(txn: u64, blockers: &[u64]) -> Waiting {
        Waiting {
            txn: TransactionId(txn),
            request: Request {
                family: 0,
                target: Target::Point {
                    hash: 0,
                    key: StoredKey::new(b""),
                },
                mode: LockMode::Exclusive,
            },
            since: Duration::ZERO,
            blockers: blockers
                .iter()
                .map(|txn| Blocker::holder(TransactionId(*txn)))
                .collect(),
            overtakes: Vec::new(),
            is_holder: false,
            overtaken: 0,
            turn: Turn::Sleeps,
            seat: Arc::new(Seat::default()),
        }
    }

    fn circle(queue: &[Waiting], start: u64, depth_max: usize) -> Option<Vec<u64>> {
        let edges = find_circle(queue, TransactionId(start), depth_max)?;
        Some(edges.iter().map(|edge| queue[edge.waiter].txn.0).collect())
    }

    #[test]
    fn the_shortest_circle_is_found_if_it_is_short_enough() {
        // 1 -> 2 -> 3 -> 4 -> 1, and 3 -> 1; 9 does not wait.
        let queue = [
            waiting(1, &[9, 2]),
            waiting(2, &[3]),
            waiting(3, &[4, 1]),
            waiting(4, &[1]),
        ];
        assert_eq!(circle(&queue, 1, 3), Some(vec![1, 2, 3]));
        assert_eq!(circle(&queue, 1, 2), None);
        assert_eq!(circle(&queue, 4, 4), Some(vec![4, 1, 2, 3]));
        assert_eq!(circle(&queue, 4, 0), None);
    }

    #[test]
    fn a_circle_elsewhere_is_not_ones_own() {
        let queue = [waiting(1, &[2]), waiting(2, &[3]), waiting(3, &[2])];
        assert_eq!(circle(&queue, 1, 64), None);
    }
}
