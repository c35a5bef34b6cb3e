//! Range locks beside points and beside each other.

use esker::{ErrorKind, ReverseBytewiseComparator};

use super::*;

#[test]
fn a_range_keeps_writers_from_its_keys_and_from_no_others() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    assert_eq!(a.try_range("b", Some("d"), Shared).unwrap(), Acquired::New);
    for (key, is_free) in [("a", true), ("b", false), ("cz", false), ("d", true)] {
        assert_eq!(b.try_lock(key, Exclusive).is_ok(), is_free, "{key}");
    }
    assert_eq!(b.try_lock("b", Shared).unwrap(), Acquired::New);
    assert_eq!(a.try_lock("c", Exclusive).unwrap(), Acquired::New, "its own");
    // Another family is not concerned, nor is one with the same mark.
    for family in [1, 64] {
        let acquired = manager.acquire(&mut b.locks, family, b"c", Exclusive, NOT_AT_ALL);
        assert_eq!(acquired.unwrap(), Acquired::New);
    }
    a.end();
    assert_eq!(b.try_lock("c", Exclusive).unwrap(), Acquired::New);
}

#[test]
fn a_range_waits_for_keys_in_it() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b, mut c, mut d] = [1, 2, 3, 4].map(|id| Txn::new(&manager, id));
    a.lock("b", Exclusive).unwrap();
    b.lock("x", Shared).unwrap();
    assert_eq!(
        c.try_range("a", None, Shared).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    std::thread::scope(|scope| {
        let range = until_waiting(scope, &manager, 1, || c.lock_range("a", None, Exclusive));
        assert_eq!(waits(&manager), [(3, vec![1, 2])]);
        // A key in it is not taken before it, except by those for whom it waits anyway; one outside is.
        assert!(d.try_lock("m", Exclusive).is_err());
        assert!(b.try_lock("m", Exclusive).is_ok());
        assert!(d.try_lock("A", Exclusive).is_ok());
        a.end();
        assert_eq!(waits(&manager), [(3, vec![2])]);
        b.end();
        assert_eq!(range.join().expect("the range").unwrap(), Acquired::New);
    });
    assert!(a.try_lock("m", Shared).is_err());
    c.end();
    assert!(a.try_lock("m", Shared).is_ok());
}

#[test]
fn a_key_waits_for_a_range_and_for_its_holder_afterwards() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    a.lock_range("a", Some("m"), Exclusive).unwrap();
    std::thread::scope(|scope| {
        let first = until_waiting(scope, &manager, 1, move || b.lock("c", Exclusive).map(|_| b));
        let second = until_waiting(scope, &manager, 2, move || c.lock("c", Shared).map(|_| c));
        assert_eq!(waits(&manager), [(2, vec![1]), (3, vec![1, 2])]);
        a.end();
        let first = first.join().expect("the first").unwrap();
        assert_eq!(waits(&manager), [(3, vec![2])]);
        drop(first);
        assert!(second.join().expect("the second").is_ok());
    });
    assert!(manager.is_empty());
}

#[test]
fn ranges_share_and_exclude_each_other_where_they_overlap() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.try_range("b", Some("d"), Shared).unwrap();
    assert!(b.try_range("c", Some("e"), Shared).is_ok());
    assert!(b.try_range("d", None, Exclusive).is_ok());
    assert!(b.try_range("a", Some("c"), Exclusive).is_err());
    assert!(b.try_range("a", Some("b"), Exclusive).is_ok());
    // An upgrade of the same range, which `b` overlaps.
    assert!(a.try_range("b", Some("d"), Exclusive).is_err());
    b.end();
    assert_eq!(
        a.try_range("b", Some("d"), Exclusive).unwrap(),
        Acquired::Upgraded
    );
    assert_eq!(a.try_range("b", Some("d"), Shared).unwrap(), Acquired::Held);
    assert!(b.try_range("c", None, Shared).is_err());
    let range = (&b"b"[..], Some(&b"d"[..]));
    assert_eq!(
        manager.release_one_range(&mut a.locks, 0, range),
        Some(Acquired::Upgraded)
    );
    assert!(b.try_range("c", None, Shared).is_ok());
    assert_eq!(
        manager.release_one_range(&mut a.locks, 0, range),
        Some(Acquired::New)
    );
    assert_eq!(manager.release_one_range(&mut a.locks, 0, range), None);
}

#[test]
fn a_range_is_in_the_order_of_its_family() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    let order = KeyOrder::Custom(Arc::new(ReverseBytewiseComparator));
    let mut lock = |start: &[u8], end| {
        manager.acquire_range(&mut a.locks, 0, &order, (start, end), Exclusive, NOT_AT_ALL)
    };
    assert_eq!(
        lock(b"b", Some(b"d")).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    lock(b"d", Some(b"b")).unwrap();
    for (key, is_free) in [("e", true), ("d", false), ("c", false), ("b", true)] {
        assert_eq!(b.try_lock(key, Exclusive).is_ok(), is_free, "{key}");
    }
}

#[test]
fn an_empty_range_is_refused() {
    let (manager, _) = manager(LockSettings::default());
    let mut a = Txn::new(&manager, 1);
    for (start, end) in [("a", "a"), ("b", "a")] {
        let refused = a.try_range(start, Some(end), Shared).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
    assert!(manager.is_empty());
}

#[test]
fn a_circle_through_a_range_is_a_deadlock() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.lock_range("a", Some("m"), Shared).unwrap();
    b.lock("x", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let key = until_waiting(scope, &manager, 1, || b.lock("c", Exclusive));
        let refused = a.lock_range("n", None, Shared).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Deadlock);
        assert!(refused.to_string().contains("shared keys from \"n\" on"));
        a.end();
        assert!(key.join().expect("the key").is_ok());
    });
}

#[test]
fn the_holder_of_a_range_is_not_held_up_by_those_who_wait_for_it() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b] = [1, 2].map(|id| Txn::new(&manager, id));
    a.lock_range("a", None, Exclusive).unwrap();
    std::thread::scope(|scope| {
        let key = until_waiting(scope, &manager, 1, || b.lock("c", Exclusive));
        assert_eq!(a.try_lock("c", Exclusive).unwrap(), Acquired::New);
        a.end();
        assert!(key.join().expect("the key").is_ok());
    });
    assert!(manager.deadlocks().is_empty());
}

#[test]
fn a_range_that_is_given_up_leaves_plain_points_behind() {
    let (manager, env) = manager(LockSettings::default());
    let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    a.lock("k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let range = until_waiting(scope, &manager, 1, || {
            let range = (&b"a"[..], None);
            let timeout = Some(Duration::from_secs(60));
            manager.acquire_range(&mut b.locks, 0, &KeyOrder::Bytewise, range, Shared, timeout)
        });
        let key = until_waiting(scope, &manager, 2, || c.lock("k", Exclusive));
        env.clock.sleep(Duration::from_secs(61));
        manager.notice_time();
        assert!(range.join().expect("the range").is_err());
        assert_eq!(waits(&manager), [(3, vec![1])]);
        a.end();
        assert!(key.join().expect("the key").is_ok());
    });
}
