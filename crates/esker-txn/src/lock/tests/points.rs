//! Point locks that are granted or refused at once, and how they are undone.

use esker::ErrorKind;

use super::*;
use crate::lock::{HeldLock, LockTarget};

#[test]
fn readers_share_and_a_writer_is_alone() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    assert_eq!(a.try_lock("k", Shared).unwrap(), Acquired::New);
    assert_eq!(b.try_lock("k", Shared).unwrap(), Acquired::New);
    let refused = c.try_lock("k", Exclusive).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(refused.kind().is_retryable());
    assert_eq!(
        refused.to_string(),
        "a lock (exclusive key \"k\" in column family 0) was not free within 0ns; it waited for transactions 1, 2"
    );
    assert_eq!(c.try_lock("other", Exclusive).unwrap(), Acquired::New);
    a.end();
    b.end();
    assert_eq!(c.try_lock("k", Exclusive).unwrap(), Acquired::New);
    assert_eq!(c.try_lock("k", Shared).unwrap(), Acquired::Held);
    assert_eq!(a.try_lock("k", Shared).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn the_same_key_of_two_families_is_two_locks() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    for (txn, family) in [(&mut a, 1), (&mut b, 2)] {
        let acquired = manager.acquire(&mut txn.locks, family, b"k", Exclusive, NOT_AT_ALL);
        assert_eq!(acquired.unwrap(), Acquired::New);
    }
}

#[test]
fn the_only_reader_becomes_a_writer_and_a_reader_again() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    assert_eq!(a.try_lock("k", Shared).unwrap(), Acquired::New);
    assert_eq!(a.try_lock("k", Exclusive).unwrap(), Acquired::Upgraded);
    assert!(b.try_lock("k", Shared).is_err());
    assert_eq!(a.undo("k"), Some(Acquired::Upgraded));
    assert_eq!(b.try_lock("k", Shared).unwrap(), Acquired::New);
    assert!(a.try_lock("k", Exclusive).is_err());
    assert_eq!(a.undo("k"), Some(Acquired::New));
    assert_eq!(a.undo("k"), None);
    assert_eq!(b.try_lock("k", Exclusive).unwrap(), Acquired::Upgraded);
}

#[test]
fn a_savepoint_takes_back_what_came_after_it_and_nothing_else() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.try_lock("before", Exclusive).unwrap();
    a.try_lock("read", Shared).unwrap();
    a.locks.set_savepoint();
    a.try_lock("read", Exclusive).unwrap();
    a.try_lock("before", Exclusive).unwrap();
    a.locks.set_savepoint();
    a.try_lock("after", Exclusive).unwrap();
    // An undo before a savepoint does not move what it covers.
    assert_eq!(a.undo("before"), Some(Acquired::New));
    assert!(manager.roll_back_to_savepoint(&mut a.locks));
    assert_eq!(b.try_lock("after", Exclusive).unwrap(), Acquired::New);
    assert!(b.try_lock("read", Shared).is_err());
    assert!(manager.roll_back_to_savepoint(&mut a.locks));
    assert_eq!(b.try_lock("read", Shared).unwrap(), Acquired::New);
    assert!(!manager.roll_back_to_savepoint(&mut a.locks));
    assert_eq!(a.locks.len(), 1);
}

#[test]
fn a_savepoint_that_is_popped_keeps_its_locks() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.locks.set_savepoint();
    a.try_lock("k", Exclusive).unwrap();
    assert!(a.locks.pop_savepoint());
    assert!(!manager.roll_back_to_savepoint(&mut a.locks));
    assert!(b.try_lock("k", Shared).is_err());
}

#[test]
fn there_are_no_more_locks_than_may_be() {
    let (manager, _) = manager(LockSettings {
        max_locks: 2,
        ..LockSettings::default()
    });
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.try_lock("1", Shared).unwrap();
    b.try_lock("1", Shared).unwrap();
    for refused in [
        a.try_lock("2", Shared),
        a.try_range("2", None, Shared),
        b.try_lock("2", Shared),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LockLimit);
        assert!(refused.message().contains("2 locks") && refused.message().contains("max_locks"));
    }
    a.end();
    assert_eq!(manager.len(), 1);
    assert_eq!(b.try_lock("1", Exclusive).unwrap(), Acquired::Upgraded);
    b.try_lock("2", Shared).unwrap();
    b.end();
    assert!(manager.is_empty());
}

#[test]
fn locks_that_are_held_are_listed() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    let long = "k".repeat(100);
    b.try_lock(&long, Shared).unwrap();
    a.try_lock(&long, Shared).unwrap();
    a.try_lock("a", Exclusive).unwrap();
    b.try_range("x", None, Exclusive).unwrap();
    let row = |target, mode, holders: &[u64]| HeldLock {
        family: 0,
        target,
        mode,
        holders: holders.iter().map(|txn| TransactionId(*txn)).collect(),
    };
    let range = LockTarget::Range {
        start: b"x".to_vec(),
        end: None,
    };
    assert_eq!(
        manager.held(),
        [
            row(LockTarget::Key(b"a".to_vec()), Exclusive, &[1]),
            row(LockTarget::Key(long.into_bytes()), Shared, &[1, 2]),
            row(range, Exclusive, &[2]),
        ]
    );
    a.end();
    b.end();
    assert!(manager.held().is_empty());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for shards in [0, 3, 1 << 13] {
        let settings = LockSettings {
            shards,
            ..LockSettings::default()
        };
        let refused = LockManager::new(settings, Env::simulated(1).0.clock).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_write_conflict_has_its_own_kind() {
    let conflict = crate::lock::write_conflict(3, b"k\x00");
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    assert!(conflict.message().contains("\"k\\x00\" of column family 3"));
}
