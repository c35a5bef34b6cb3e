//! Circles of waiters: which of them are deadlocks, and what is told of them.

use std::error::Error as _;

use esker::ErrorKind;

use super::*;
use crate::lock::{Deadlock, LockTarget};

/// Each of `count` transactions has a key and wants the next one's. Gives what the last, who closes the circle, hears.
fn circle(manager: &Arc<LockManager>, count: u64) -> (esker::Error, Vec<bool>) {
    let mut txns: Vec<Txn> = (0..count).map(|id| Txn::new(manager, id)).collect();
    for (at, txn) in txns.iter_mut().enumerate() {
        txn.lock(&at.to_string(), Exclusive).expect("a free key");
    }
    let mut last = txns.pop().expect("a transaction");
    std::thread::scope(|scope| {
        let others: Vec<_> = txns
            .into_iter()
            .enumerate()
            .map(|(at, mut txn)| {
                until_waiting(scope, manager, at + 1, move || {
                    txn.lock(&(at + 1).to_string(), Exclusive).is_ok()
                })
            })
            .collect();
        let refused = last.lock("0", Exclusive).expect_err("it closes the circle");
        last.end();
        let others = others.into_iter().map(|other| other.join().expect("a waiter"));
        (refused, others.collect())
    })
}

#[test]
fn whoever_closes_a_circle_is_refused_and_told_of_all_of_it() {
    let (manager, _) = manager(LockSettings::default());
    let (refused, others) = circle(&manager, 3);
    assert_eq!(others, [true, true]);
    assert_eq!(refused.kind(), ErrorKind::Deadlock);
    let report = refused
        .source()
        .and_then(|source| source.downcast_ref::<Deadlock>());
    let report = report.expect("the report");
    let steps: Vec<_> = report
        .steps
        .iter()
        .map(|step| (step.transaction.0, step.waits_for.0, step.target.clone()))
        .collect();
    let key = |key: &str| LockTarget::Key(key.as_bytes().to_vec());
    assert_eq!(steps, [(2, 0, key("0")), (0, 1, key("1")), (1, 2, key("2"))]);
    assert!(
        refused
            .to_string()
            .contains("transaction 2 waits for 0 (exclusive key \"0\" in column family 0)")
    );
    assert_eq!(manager.deadlocks().len(), 1);
    assert_eq!(*manager.deadlocks()[0], *report);
}

#[test]
fn two_upgrades_are_a_deadlock_and_one_of_them_goes_on() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.lock("k", Shared).unwrap();
    b.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let first = until_waiting(scope, &manager, 1, || a.lock("k", Exclusive));
        let refused = b.lock("k", Exclusive).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Deadlock);
        // It has its shared lock still.
        assert_eq!(b.try_lock("k", Shared).unwrap(), Acquired::Held);
        b.end();
        assert_eq!(first.join().expect("the first").unwrap(), Acquired::Upgraded);
    });
}

#[test]
fn only_the_last_deadlocks_are_kept() {
    let (manager, _) = manager(LockSettings {
        deadlocks_kept: 2,
        ..LockSettings::default()
    });
    for count in [2, 3, 4] {
        circle(&manager, count);
    }
    let sizes: Vec<usize> = manager
        .deadlocks()
        .iter()
        .map(|deadlock| deadlock.steps.len())
        .collect();
    assert_eq!(sizes, [3, 4]);
    assert!(manager.is_empty());
}

#[test]
fn a_circle_deeper_than_is_looked_at_ends_by_time() {
    let (manager, env) = manager(LockSettings {
        deadlock_depth: 1,
        ..LockSettings::default()
    });
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.lock("a", Exclusive).unwrap();
    b.lock("b", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let first = until_waiting(scope, &manager, 1, || {
            let acquired = a.lock("b", Exclusive);
            a.end();
            acquired
        });
        let second = until_waiting(scope, &manager, 2, || {
            let timeout = Some(Duration::from_secs(7200));
            manager.acquire(&mut b.locks, 0, b"a", Exclusive, timeout)
        });
        env.clock.sleep(Duration::from_secs(3601));
        manager.notice_time();
        assert_eq!(
            first.join().expect("the first").unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        assert_eq!(second.join().expect("the second").unwrap(), Acquired::New);
    });
    assert!(manager.deadlocks().is_empty());
}

#[test]
fn nobody_is_refused_for_the_sake_of_the_queue() {
    // `a` holds x; `z` shares k and waits for x; `w` waits to write k. When `a` wants to read k it would stand behind `w`,
    // which waits for `z`, which waits for `a`: but `z` and `a` can share k.
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut z, mut w] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    a.lock("x", Exclusive).unwrap();
    z.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let z = until_waiting(scope, &manager, 1, move || z.lock("x", Shared).is_ok());
        let w = until_waiting(scope, &manager, 2, move || w.lock("k", Exclusive).is_ok());
        assert_eq!(a.try_lock("k", Shared).unwrap(), Acquired::New);
        assert_eq!(a.lock("k", Shared).unwrap(), Acquired::Held);
        a.end();
        assert!(z.join().expect("z") && w.join().expect("w"));
    });
    assert!(manager.deadlocks().is_empty());
}

#[test]
fn a_waiter_overtakes_where_the_queue_alone_would_close_a_circle() {
    // `h` waits to share k behind `q`, who waits to write it; `t` shares k and holds x; `q` waits for `t`. When `t` wants y,
    // which `h` holds, it waits for `h`, who could have k, were `q` not ahead.
    let (manager, _) = manager(LockSettings::default());
    let [mut t, mut q, mut h] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    t.lock("k", Shared).unwrap();
    h.lock("y", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let q = until_waiting(scope, &manager, 1, move || q.lock("k", Exclusive).is_ok());
        let h = until_waiting(scope, &manager, 2, move || h.lock("k", Shared).is_ok());
        assert_eq!(t.lock("y", Exclusive).unwrap(), Acquired::New);
        t.end();
        assert!(h.join().expect("h") && q.join().expect("q"));
    });
    assert!(manager.deadlocks().is_empty());
}

#[test]
fn who_does_not_wait_makes_no_deadlock() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.lock("a", Exclusive).unwrap();
    b.lock("b", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let first = until_waiting(scope, &manager, 1, || a.lock("b", Exclusive));
        assert_eq!(
            b.try_lock("a", Exclusive).unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        b.end();
        assert!(first.join().expect("the first").is_ok());
    });
    assert!(manager.deadlocks().is_empty());
}
