//! Every interleaving of a few transactions. A wake-up that is lost leaves a thread asleep for ever, which loom reports as
//! a deadlock of its own.
//!
//! `scripts/loom.sh lock::loom`

use std::sync::Arc;
use std::time::Duration;

use esker::sync::{AtomicBool, AtomicU64, Ordering};
use esker::{ErrorKind, KeyOrder, Result};
use esker_env::Clock;

use super::LockMode::{Exclusive, Shared};
use super::{Acquired, LockManager, LockMode, LockSettings, TransactionId, TransactionLocks};

/// A clock that a model sets.
#[derive(Debug)]
struct ModelClock(AtomicU64);

impl Clock for ModelClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Acquire))
    }

    fn unix_seconds(&self) -> u64 {
        self.now().as_secs()
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_secs(), Ordering::AcqRel);
    }
}

struct Model {
    manager: LockManager,
    clock: Arc<ModelClock>,
    /// How often each of two keys is being written, by its holder's word.
    writing: [AtomicU64; 2],
}

impl Model {
    fn new(shards: usize) -> Arc<Self> {
        let clock = Arc::new(ModelClock(AtomicU64::new(0)));
        let settings = LockSettings {
            shards,
            ..LockSettings::default()
        };
        let manager = LockManager::new(settings, Arc::clone(&clock) as Arc<dyn Clock>);
        Arc::new(Self {
            manager: manager.expect("settings that make sense"),
            clock,
            writing: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn lock(&self, locks: &mut TransactionLocks, key: u8, mode: LockMode) -> Result<Acquired> {
        self.manager.acquire(locks, 0, &[key], mode, Some(Duration::MAX))
    }

    /// Writes a key under its lock.
    fn write(&self, key: usize) {
        assert_eq!(
            self.writing[key].swap(1, Ordering::Relaxed),
            0,
            "two write at once"
        );
        assert_eq!(self.writing[key].swap(0, Ordering::Relaxed), 1);
    }

    fn end(&self, mut locks: TransactionLocks) {
        self.manager.release_all(&mut locks);
    }

    fn check_empty(&self) {
        assert!(self.manager.is_empty() && self.manager.held().is_empty());
        assert!(self.manager.waiting().is_empty());
    }
}

fn locks(id: u64) -> TransactionLocks {
    TransactionLocks::new(TransactionId(id))
}

/// Runs both at the same time, the second on this thread.
fn both<A: 'static, B>(
    model: &Arc<Model>,
    first: impl FnOnce(&Model) -> A + 'static,
    second: impl FnOnce(&Model) -> B,
) -> (A, B) {
    let other = Arc::clone(model);
    let first = ::loom::thread::spawn(move || first(&other));
    let second = second(model);
    (first.join().expect("the first"), second)
}

/// Locks one key after the other; whether it had both.
fn cross(model: &Model, id: u64, keys: [u8; 2]) -> bool {
    let mut locks = locks(id);
    let mut had_both = true;
    for key in keys {
        match model.lock(&mut locks, key, Exclusive) {
            Ok(_) => model.write(usize::from(key)),
            Err(refused) => {
                assert_eq!(refused.kind(), ErrorKind::Deadlock);
                had_both = false;
                break;
            }
        }
    }
    model.end(locks);
    had_both
}

#[test]
fn of_two_that_cross_one_is_refused_at_most() {
    let refused = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = Arc::clone(&refused);
    ::loom::model(move || {
        let model = Model::new(1);
        let (a, b) = both(
            &model,
            |model| cross(model, 1, [0, 1]),
            |model| cross(model, 2, [1, 0]),
        );
        assert!(a || b, "both were refused");
        let deadlocks = model.manager.deadlocks().len();
        assert_eq!(deadlocks, usize::from(!(a && b)));
        seen.fetch_add(deadlocks as u64, Ordering::Relaxed);
        model.check_empty();
    });
    assert_ne!(refused.load(Ordering::Relaxed), 0, "they never met");
}

/// The first key is held at first, so that who waits for it is called and may be passed by the other.
#[test]
fn of_two_that_cross_behind_a_third_one_is_refused_at_most() {
    let refused = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = Arc::clone(&refused);
    ::loom::model(move || {
        let model = Model::new(1);
        let third = holder(&model, Exclusive);
        let (a, b) = both(
            &model,
            |model| cross(model, 2, [1, 0]),
            |model| {
                model.end(third);
                cross(model, 3, [0, 1])
            },
        );
        assert!(a || b, "both were refused");
        let deadlocks = model.manager.deadlocks().len();
        assert_eq!(deadlocks, usize::from(!(a && b)));
        seen.fetch_add(deadlocks as u64, Ordering::Relaxed);
        model.check_empty();
    });
    assert_ne!(refused.load(Ordering::Relaxed), 0, "they never met");
}

#[test]
fn of_two_upgrades_one_is_refused_at_most() {
    let upgrade = |model: &Model, id| {
        let mut locks = locks(id);
        model.lock(&mut locks, 0, Shared).expect("a shared lock");
        let upgraded = model.lock(&mut locks, 0, Exclusive);
        if upgraded.is_ok() {
            model.write(0);
        }
        model.end(locks);
        upgraded.is_ok()
    };
    ::loom::model(move || {
        let model = Model::new(1);
        let (a, b) = both(&model, move |model| upgrade(model, 1), |model| upgrade(model, 2));
        assert!(a || b, "both were refused");
        model.check_empty();
    });
}

#[test]
fn a_lock_is_handed_on_to_all_who_wait() {
    let write = |model: &Model, id| {
        let mut locks = locks(id);
        assert_eq!(
            model.lock(&mut locks, 0, Exclusive).expect("granted"),
            Acquired::New
        );
        model.write(0);
        model.end(locks);
    };
    ::loom::model(move || {
        let model = Model::new(1);
        let others = [1, 2].map(|id| {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || write(&model, id))
        });
        write(&model, 3);
        for other in others {
            other.join().expect("a writer");
        }
        model.check_empty();
    });
}

/// Whoever is passed on its way, and has to lie down again, is called once more.
#[test]
fn who_was_passed_is_let_in_behind_it() {
    // Of the second lock of the holder: behind the waiter's, and before it.
    let orders = Arc::new(std::sync::Mutex::new([0, 0]));
    let seen = Arc::clone(&orders);
    ::loom::model(move || {
        let model = Model::new(1);
        let first = holder(&model, Exclusive);
        let waiter = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                let mut locks = locks(2);
                model.lock(&mut locks, 0, Exclusive).expect("granted");
                model.write(0);
                model.clock.0.store(1, Ordering::Relaxed);
                model.end(locks);
            })
        };
        model.end(first);
        let mut second = locks(3);
        model.lock(&mut second, 0, Exclusive).expect("granted");
        let is_behind = model.clock.0.load(Ordering::Relaxed) == 1;
        model.write(0);
        model.end(second);
        waiter.join().expect("the waiter");
        seen.lock().expect("counts")[usize::from(!is_behind)] += 1;
        model.check_empty();
    });
    let orders = *orders.lock().expect("counts");
    assert!(orders[0] > 0 && orders[1] > 0, "{orders:?}");
}

#[test]
fn a_range_and_a_point_do_not_miss_each_other() {
    ::loom::model(|| {
        let model = Model::new(2);
        both(
            &model,
            |model| {
                let mut locks = locks(1);
                let range = (&[0][..], None);
                let acquired = model.manager.acquire_range(
                    &mut locks,
                    0,
                    &KeyOrder::Bytewise,
                    range,
                    Exclusive,
                    Some(Duration::MAX),
                );
                assert_eq!(acquired.expect("granted"), Acquired::New);
                model.write(0);
                model.write(1);
                model.end(locks);
            },
            |model| {
                for key in [0, 1] {
                    let mut locks = locks(2);
                    model.lock(&mut locks, key, Exclusive).expect("granted");
                    model.write(usize::from(key));
                    model.end(locks);
                }
            },
        );
        model.check_empty();
    });
}

#[test]
fn a_time_limit_and_a_grant_that_come_together_are_told_apart() {
    let outcomes = Arc::new(std::sync::Mutex::new([0, 0]));
    let seen = Arc::clone(&outcomes);
    ::loom::model(move || {
        let model = Model::new(1);
        let mut holder = locks(1);
        model.lock(&mut holder, 0, Exclusive).expect("granted");
        let waiter = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                let mut locks = locks(2);
                let timeout = Some(Duration::from_secs(1));
                let acquired = model.manager.acquire(&mut locks, 0, &[0], Exclusive, timeout);
                match &acquired {
                    Ok(_) => model.write(0),
                    Err(refused) => assert_eq!(refused.kind(), ErrorKind::TimedOut),
                }
                model.end(locks);
                acquired.is_ok()
            })
        };
        let clock = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                model.clock.sleep(Duration::from_secs(5));
                model.manager.notice_time();
            })
        };
        model.end(holder);
        clock.join().expect("the clock");
        let was_granted = waiter.join().expect("the waiter");
        seen.lock().expect("counts")[usize::from(was_granted)] += 1;
        model.check_empty();
    });
    let outcomes = *outcomes.lock().expect("counts");
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn an_interruption_and_a_grant_that_come_together_are_told_apart() {
    let outcomes = Arc::new(std::sync::Mutex::new([0, 0]));
    let seen = Arc::clone(&outcomes);
    ::loom::model(move || {
        let model = Model::new(1);
        let mut holder = locks(1);
        model.lock(&mut holder, 0, Exclusive).expect("granted");
        let mut waiting = locks(2);
        let interrupter = waiting.interrupter();
        let waiter = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                let acquired = model.lock(&mut waiting, 0, Exclusive);
                match &acquired {
                    Ok(_) => model.write(0),
                    Err(refused) => assert_eq!(refused.kind(), ErrorKind::Interrupted),
                }
                model.end(waiting);
                acquired.is_ok()
            })
        };
        let killer = ::loom::thread::spawn(move || interrupter.request());
        model.end(holder);
        killer.join().expect("who interrupts");
        let was_granted = waiter.join().expect("the waiter");
        seen.lock().expect("counts")[usize::from(was_granted)] += 1;
        model.check_empty();
    });
    let outcomes = *outcomes.lock().expect("counts");
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

/// One that holds key 0.
fn holder(model: &Model, mode: LockMode) -> TransactionLocks {
    let mut holder = locks(1);
    model.lock(&mut holder, 0, mode).expect("granted");
    holder
}

/// A writer that waits for key 0 until it is refused, which is for this reason.
fn refused_writer(
    model: &Arc<Model>,
    mut waiting: TransactionLocks,
    timeout: Duration,
    reason: ErrorKind,
) -> ::loom::thread::JoinHandle<()> {
    let model = Arc::clone(model);
    ::loom::thread::spawn(move || {
        let refused = model
            .manager
            .acquire(&mut waiting, 0, &[0], Exclusive, Some(timeout));
        assert_eq!(refused.expect_err("refused").kind(), reason);
        model.end(waiting);
    })
}

/// The holder stays, so a wake-up that is lost leaves the waiter asleep for ever.
#[test]
fn an_interruption_ends_every_wait() {
    ::loom::model(|| {
        let model = Model::new(1);
        let holder = holder(&model, Exclusive);
        let mut waiting = locks(2);
        let interrupter = waiting.interrupter();
        let writer = refused_writer(&model, waiting, Duration::MAX, ErrorKind::Interrupted);
        interrupter.request();
        writer.join().expect("the writer");
        model.end(holder);
        model.check_empty();
    });
}

/// As a database server does it: the reason is told first, and who begins a statement clears what an earlier one was asked.
#[test]
fn an_interruption_that_is_cleared_has_told_its_reason() {
    ::loom::model(|| {
        let interrupter = locks(1).interrupter();
        let is_killed = Arc::new(AtomicBool::new(false));
        let killer = {
            let (interrupter, is_killed) = (interrupter.clone(), Arc::clone(&is_killed));
            ::loom::thread::spawn(move || {
                is_killed.store(true, Ordering::Relaxed);
                interrupter.request();
            })
        };
        interrupter.clear();
        let is_seen = is_killed.load(Ordering::Relaxed);
        killer.join().expect("the killer");
        assert!(is_seen || interrupter.is_requested());
    });
}

/// The same of a time limit.
#[test]
fn time_ends_every_wait() {
    ::loom::model(|| {
        let model = Model::new(1);
        let holder = holder(&model, Exclusive);
        let writer = refused_writer(&model, locks(2), Duration::from_secs(1), ErrorKind::TimedOut);
        // Time that passes before the wait begins does not end it.
        while model.manager.waiting().is_empty() {
            ::loom::thread::yield_now();
        }
        model.clock.sleep(Duration::from_secs(5));
        model.manager.notice_time();
        writer.join().expect("the writer");
        model.end(holder);
        model.check_empty();
    });
}

/// The reader that holds the lock stays, so whoever stands behind the writer waits for that alone.
#[test]
fn who_gives_up_lets_those_behind_it_pass() {
    ::loom::model(|| {
        let model = Model::new(1);
        let holder = holder(&model, Shared);
        let mut waiting = locks(2);
        let interrupter = waiting.interrupter();
        let writer = refused_writer(&model, waiting, Duration::MAX, ErrorKind::Interrupted);
        let reader = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                let mut late = locks(3);
                model.lock(&mut late, 0, Shared).expect("granted");
                model.end(late);
            })
        };
        interrupter.request();
        writer.join().expect("the writer");
        reader.join().expect("the reader");
        model.end(holder);
        model.check_empty();
    });
}
