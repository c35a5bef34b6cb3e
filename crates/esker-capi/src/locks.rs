//! What can be listed of transactions: those that run, the locks they hold, the requests that wait, the last deadlocks.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use esker_txn::lock::{Deadlock, HeldLock, LockTarget, WaitingRequest};
use esker_txn::{RunningTransaction, TransactionId};

use crate::boundary::{given, made, micros, release};
use crate::database::{Layer, esker_db};
use crate::error::esker_error;
use crate::list::{List, lend};
use crate::slice::esker_slice;
use crate::transaction_options::{esker_lock_mode, number};

/// What a lock is on: a key, or the keys from one on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_lock_target {
    /// The key, or the first key of the range.
    pub start: esker_slice<'static>,
    /// The first key behind the range; data is null for one to the last key.
    pub end: esker_slice<'static>,
    /// The number of the family.
    pub family: u32,
    /// The mode.
    pub mode: esker_lock_mode,
    /// Whether it is a range.
    pub is_range: bool,
}

/// A target whose keys stay where they are while a list owns them.
///
/// # Safety
/// The target outlives what is returned, without being changed.
unsafe fn target(target: &LockTarget, family: u32, mode: esker_lock_mode) -> esker_lock_target {
    let (start, end, is_range) = match target {
        LockTarget::Key(key) => (key, None, false),
        LockTarget::Range { start, end } => (start, end.as_ref(), true),
    };
    // SAFETY: the caller's promise.
    let (start, end) = unsafe {
        let end = end.map_or(esker_slice::NONE, |end| lend(end));
        (lend(start), end)
    };
    esker_lock_target {
        start,
        end,
        family,
        mode,
        is_range,
    }
}

/// Numbers of transactions, as C has them.
fn ids(ids: &[TransactionId]) -> Vec<u64> {
    ids.iter().map(|id| id.0).collect()
}

/// A lock that is held.
#[repr(C)]
pub struct esker_lock {
    /// On what, and in which mode.
    pub target: esker_lock_target,
    /// The numbers of the transactions that hold it, in rising order.
    pub holders: *const u64,
    /// How many.
    pub holder_count: usize,
}

/// Locks that are held.
pub struct esker_locks(List<esker_lock, Vec<(HeldLock, Vec<u64>)>>);

/// All locks that are held, by family and key; none in a database whose transactions take none. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_locks(
    db: Option<&esker_db>,
    locks: Option<&mut MaybeUninit<Option<Box<esker_locks>>>>,
) -> Option<Box<esker_error>> {
    made(locks, || {
        let held = match &given(db, "db")?.layer {
            Layer::Locking(db) => db.locks(),
            _ => Vec::new(),
        };
        let held: Vec<_> = held
            .into_iter()
            .map(|lock| {
                let holders = ids(&lock.holders);
                (lock, holders)
            })
            .collect();
        // SAFETY: keys and numbers are on the heap, owned by what the list owns.
        Ok(esker_locks(unsafe {
            List::new(held, |held| {
                let items = held.iter().map(|(lock, holders)| esker_lock {
                    target: target(&lock.target, lock.family, number(lock.mode)),
                    holders: holders.as_ptr(),
                    holder_count: holders.len(),
                });
                items.collect()
            })
        }))
    })
}

/// The locks, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_locks_items(
    locks: Option<&esker_locks>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_lock {
    List::array(locks.map(|locks| &locks.0), count)
}

/// Frees a list of locks.
#[unsafe(no_mangle)]
pub extern "C" fn esker_locks_free(locks: Option<Box<esker_locks>>) {
    release(locks);
}

/// A request that waits for a lock.
#[repr(C)]
pub struct esker_wait {
    /// On what, and in which mode.
    pub target: esker_lock_target,
    /// The number of the transaction that waits.
    pub transaction: u64,
    /// For how long, in microseconds.
    pub waited_us: u64,
    /// The numbers of those for whom it waits, in rising order: holders, and those ahead of it, as far as they are not waited for by
    /// the nearest of these anyway.
    pub waits_for: *const u64,
    /// How many.
    pub waits_for_count: usize,
}

/// Requests that wait for a lock.
pub struct esker_waits(List<esker_wait, Vec<(WaitingRequest, Vec<u64>)>>);

/// All requests that wait for a lock, in the order in which they came. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_waits(
    db: Option<&esker_db>,
    waits: Option<&mut MaybeUninit<Option<Box<esker_waits>>>>,
) -> Option<Box<esker_error>> {
    made(waits, || {
        let db = given(db, "db")?;
        let waiting = match &db.layer {
            Layer::Locking(db) => db.waiting(),
            _ => Vec::new(),
        };
        let waiting: Vec<_> = waiting
            .into_iter()
            .map(|request| {
                let waits_for = ids(&request.waits_for);
                (request, waits_for)
            })
            .collect();
        let now = db.clock.now();
        // SAFETY: as for locks.
        Ok(esker_waits(unsafe {
            List::new(waiting, |waiting| {
                let items = waiting.iter().map(|(request, waits_for)| esker_wait {
                    target: target(&request.target, request.family, number(request.mode)),
                    transaction: request.transaction.0,
                    waited_us: micros(now.saturating_sub(request.since)),
                    waits_for: waits_for.as_ptr(),
                    waits_for_count: waits_for.len(),
                });
                items.collect()
            })
        }))
    })
}

/// The requests, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_waits_items(
    waits: Option<&esker_waits>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_wait {
    List::array(waits.map(|waits| &waits.0), count)
}

/// Frees a list of requests.
#[unsafe(no_mangle)]
pub extern "C" fn esker_waits_free(waits: Option<Box<esker_waits>>) {
    release(waits);
}

/// A member of a deadlock, and what it waited for.
#[repr(C)]
pub struct esker_deadlock_step {
    /// On what, and in which mode.
    pub target: esker_lock_target,
    /// The number of the transaction that waited.
    pub transaction: u64,
    /// The number of the one that held it, or a lock in conflict with it.
    pub waits_for: u64,
}

/// A circle of transactions each of which waited for the next, the last for the first; the first was refused its lock.
#[repr(C)]
pub struct esker_deadlock {
    /// The members.
    pub steps: *const esker_deadlock_step,
    /// How many.
    pub step_count: usize,
    /// How long ago it was found, in microseconds; 0 where an error tells of it.
    pub age_us: u64,
}

/// Deadlocks.
pub struct esker_deadlocks(List<esker_deadlock, Circles>);

/// Deadlocks, and their members as C has them: on the heap both.
struct Circles {
    _deadlocks: Vec<Arc<Deadlock>>,
    steps: Vec<(Vec<esker_deadlock_step>, u64)>,
}

impl esker_deadlocks {
    /// A list of deadlocks; their age if the time is given.
    pub fn new(deadlocks: Vec<Arc<Deadlock>>, now: Option<Duration>) -> Self {
        let steps = deadlocks.iter().map(|deadlock| {
            let age = now.map_or(0, |now| micros(now.saturating_sub(deadlock.at)));
            let steps = deadlock.steps.iter().map(|step| esker_deadlock_step {
                // SAFETY: a deadlock is shared and never changes, and is held beside its steps.
                target: unsafe { target(&step.target, step.family, number(step.mode)) },
                transaction: step.transaction.0,
                waits_for: step.waits_for.0,
            });
            (steps.collect(), age)
        });
        let circles = Circles {
            steps: steps.collect(),
            _deadlocks: deadlocks,
        };
        // SAFETY: the arrays of steps are on the heap.
        Self(unsafe {
            List::new(circles, |circles| {
                let items = circles.steps.iter().map(|(steps, age_us)| esker_deadlock {
                    steps: steps.as_ptr(),
                    step_count: steps.len(),
                    age_us: *age_us,
                });
                items.collect()
            })
        })
    }
}

/// The last deadlocks, as many as the settings keep, the oldest first. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_deadlocks(
    db: Option<&esker_db>,
    deadlocks: Option<&mut MaybeUninit<Option<Box<esker_deadlocks>>>>,
) -> Option<Box<esker_error>> {
    made(deadlocks, || {
        let db = given(db, "db")?;
        let found = match &db.layer {
            Layer::Locking(db) => db.deadlocks(),
            _ => Vec::new(),
        };
        Ok(esker_deadlocks::new(found, Some(db.clock.now())))
    })
}

/// The deadlocks, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_deadlocks_items(
    deadlocks: Option<&esker_deadlocks>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_deadlock {
    List::array(deadlocks.map(|deadlocks| &deadlocks.0), count)
}

/// Frees a list of deadlocks.
#[unsafe(no_mangle)]
pub extern "C" fn esker_deadlocks_free(deadlocks: Option<Box<esker_deadlocks>>) {
    release(deadlocks);
}

/// A transaction that runs.
#[repr(C)]
pub struct esker_running {
    /// Its number.
    pub id: u64,
    /// What its options call it; data is null if they don't.
    pub label: esker_slice<'static>,
    /// The name that it was given, under which it is prepared; data is null without one.
    pub name: esker_slice<'static>,
    /// Whether it is prepared.
    pub is_prepared: bool,
    /// Time since it began, in microseconds.
    pub age_us: u64,
    /// Mutations that it would commit.
    pub writes: u64,
    /// Locks that it holds; without locks: keys and ranges that its commit will ask about.
    pub locks: u64,
}

/// Transactions that run.
pub struct esker_running_list(List<esker_running, Vec<RunningTransaction>>);

/// The transactions that run, in the order in which they began. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_running(
    db: Option<&esker_db>,
    running: Option<&mut MaybeUninit<Option<Box<esker_running_list>>>>,
) -> Option<Box<esker_error>> {
    made(running, || {
        let all = match &given(db, "db")?.layer {
            Layer::Plain | Layer::Following(_) => Vec::new(),
            Layer::Locking(db) => db.running(),
            Layer::Optimistic(db) => db.running(),
        };
        // SAFETY: labels and names are shared, and held by what the list owns.
        Ok(esker_running_list(unsafe {
            List::new(all, |all| {
                let items = all.iter().map(|one| esker_running {
                    id: one.id.0,
                    label: one
                        .label
                        .as_ref()
                        .map_or(esker_slice::NONE, |label| lend(label.as_bytes())),
                    name: one.name.as_ref().map_or(esker_slice::NONE, |name| lend(name)),
                    is_prepared: one.is_prepared,
                    age_us: micros(one.age),
                    writes: one.writes,
                    locks: one.locks,
                });
                items.collect()
            })
        }))
    })
}

/// The transactions, until the list is freed; `count` is set to how many they are.
#[unsafe(no_mangle)]
pub extern "C" fn esker_running_items(
    running: Option<&esker_running_list>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const esker_running {
    List::array(running.map(|running| &running.0), count)
}

/// Frees a list of transactions that run.
#[unsafe(no_mangle)]
pub extern "C" fn esker_running_free(running: Option<Box<esker_running_list>>) {
    release(running);
}
