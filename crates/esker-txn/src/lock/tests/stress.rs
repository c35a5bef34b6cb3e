//! Many threads: locks exclude each other, nobody sleeps for ever, and every deadlock is resolved.
//!
//! No wait has a time limit that could hide a wake-up that is lost: such a run would never end.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use esker::ErrorKind;
use esker_env::Random;
use esker_env::mem::SeededRandom;

use super::*;

const THREADS: u64 = 8;
const KEYS: usize = 6;
/// What a writer adds for itself, so that readers can be told from it.
const WRITER: i64 = 1 << 32;

/// Who is at a key, by its own count.
#[derive(Default)]
struct Guarded {
    inside: [AtomicI64; KEYS],
    deadlocks: AtomicU64,
    granted: AtomicU64,
}

impl Guarded {
    /// Goes in and out of the keys that are locked.
    fn visit(&self, keys: &[usize], mode: LockMode) {
        let own = if mode == Exclusive { WRITER } else { 1 };
        for key in keys {
            let before = self.inside[*key].fetch_add(own, Ordering::SeqCst);
            match mode {
                Exclusive => assert_eq!(before, 0, "a writer is not alone"),
                Shared => assert!((0..WRITER).contains(&before), "a reader beside a writer"),
            }
        }
        std::thread::yield_now();
        for key in keys {
            self.inside[*key].fetch_sub(own, Ordering::SeqCst);
        }
    }
}

/// A transaction of a few random locks. Gives up at a deadlock.
fn transact(txn: &mut Txn, random: &SeededRandom, with_ranges: bool, guarded: &Guarded) {
    for _ in 0..1 + random.next_u64() % 4 {
        let mode = if random.next_u64().is_multiple_of(2) {
            Shared
        } else {
            Exclusive
        };
        let start = (random.next_u64() % KEYS as u64) as usize;
        let end = (start + 1 + (random.next_u64() % 3) as usize).min(KEYS);
        let manager = Arc::clone(&txn.manager);
        let as_range = with_ranges && random.next_u64().is_multiple_of(3);
        let (keys, acquired): (Vec<usize>, _) = if as_range {
            let end_key = [end as u8];
            let range = (&[start as u8][..], (end < KEYS).then_some(&end_key[..]));
            (
                (start..end).collect(),
                manager.acquire_range(
                    &mut txn.locks,
                    0,
                    &KeyOrder::Bytewise,
                    range,
                    mode,
                    Some(Duration::MAX),
                ),
            )
        } else {
            (
                vec![start],
                manager.acquire(&mut txn.locks, 0, &[start as u8], mode, Some(Duration::MAX)),
            )
        };
        match acquired {
            Ok(_) => guarded.visit(&keys, mode),
            Err(refused) => {
                assert_eq!(refused.kind(), ErrorKind::Deadlock);
                guarded.deadlocks.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        guarded.granted.fetch_add(1, Ordering::Relaxed);
        if random.next_u64().is_multiple_of(8) {
            txn.locks.set_savepoint();
        }
        if random.next_u64().is_multiple_of(8) {
            manager.roll_back_to_savepoint(&mut txn.locks);
        }
    }
}

/// Two threads, each of which has what the other one wants: a circle however they are scheduled.
fn cross(txn: &mut Txn, own: u8, both: &Barrier, guarded: &Guarded) {
    let manager = Arc::clone(&txn.manager);
    let mut lock = |key: u8| manager.acquire(&mut txn.locks, 0, &[key], Exclusive, Some(Duration::MAX));
    lock(own).expect("nobody wants it yet");
    both.wait();
    match lock(1 - own) {
        Ok(_) => guarded.visit(&[0, 1], Exclusive),
        Err(refused) => {
            assert_eq!(refused.kind(), ErrorKind::Deadlock);
            guarded.deadlocks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn stress(with_ranges: bool, shards: usize, rounds: u64) {
    let (manager, _) = manager(LockSettings {
        shards,
        deadlocks_kept: usize::MAX,
        deadlock_depth: usize::MAX,
        ..LockSettings::default()
    });
    let guarded = Guarded::default();
    // On a busy machine the threads may run one after the other: this much is contended all the same.
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for own in 0..2 {
            let (manager, guarded, both) = (&manager, &guarded, &both);
            scope.spawn(move || {
                let mut txn = Txn::new(manager, rounds * THREADS + u64::from(own));
                cross(&mut txn, own, both, guarded);
            });
        }
    });
    assert_eq!(guarded.deadlocks.load(Ordering::Relaxed), 1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, guarded) = (&manager, &guarded);
            scope.spawn(move || {
                let random = SeededRandom::new(thread + 1);
                for round in 0..rounds {
                    let mut txn = Txn::new(manager, round * THREADS + thread);
                    transact(&mut txn, &random, with_ranges, guarded);
                }
            });
        }
    });
    assert!(manager.is_empty() && manager.held().is_empty() && manager.waiting().is_empty());
    let deadlocks = manager.deadlocks();
    assert_eq!(deadlocks.len() as u64, guarded.deadlocks.load(Ordering::Relaxed));
    assert!(!deadlocks.is_empty(), "nothing was contended");
    assert!(guarded.granted.load(Ordering::Relaxed) > THREADS * rounds / 2);
    for deadlock in &deadlocks {
        // A circle: each waits for the next, and nobody is in it twice.
        let steps = &deadlock.steps;
        assert!(steps.len() >= 2, "{deadlock}");
        let behind = steps.iter().cycle().skip(1);
        for (step, next) in steps.iter().zip(behind) {
            assert_eq!(step.waits_for, next.transaction, "{deadlock}");
        }
        let mut members: Vec<_> = steps.iter().map(|step| step.transaction).collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), steps.len(), "{deadlock}");
    }
}

#[test]
fn points_under_eight_threads() {
    stress(false, 4, 1500);
}

#[test]
fn points_and_ranges_under_eight_threads() {
    stress(true, 4, 1000);
}

#[test]
fn locks_in_one_order_never_deadlock() {
    let (manager, _) = manager(LockSettings::default());
    let guarded = Guarded::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, guarded) = (&manager, &guarded);
            scope.spawn(move || {
                let random = SeededRandom::new(thread + 1);
                for round in 0..1000 {
                    let mut txn = Txn::new(manager, round * THREADS + thread);
                    let chosen = random.next_u64();
                    for key in (0..KEYS).filter(|key| chosen >> key & 1 == 1) {
                        // The mode of a key is fixed: an upgrade would be another order.
                        let mode = if chosen >> (key + 8) & 1 == 1 {
                            Shared
                        } else {
                            Exclusive
                        };
                        let acquired =
                            manager.acquire(&mut txn.locks, 0, &[key as u8], mode, Some(Duration::MAX));
                        assert_eq!(acquired.expect("no deadlock"), Acquired::New);
                        guarded.visit(&[key], mode);
                    }
                }
            });
        }
    });
    assert!(manager.is_empty() && manager.deadlocks().is_empty());
}
