//! Calls one by one: the life of a transaction, limits, lists, batches and writes beside it.

use std::sync::Arc;
use std::time::Duration;

use esker::{ColumnFamilyOptions, ErrorKind, KeyOrder, ReadOptions, ReverseBytewiseComparator, WriteBatch};

use super::{Database, open, patient};
use crate::{Isolation, LockMode, OptimisticDb, TransactionDb, TransactionOptions, TransactionSettings};

const KINDS: [bool; 2] = [true, false];

#[test]
fn one_that_has_ended_refuses_all_but_a_restart() {
    for with_locks in KINDS {
        let (database, _env) = open(with_locks, &patient());
        let family = database.family();
        let options = TransactionOptions::default();
        let mut transaction = database.begin(&options);
        transaction.put(&family, b"k", b"1").unwrap();
        transaction.commit().unwrap();
        transaction.roll_back().unwrap();
        assert!(!transaction.is_active());
        for refused in [
            transaction.put(&family, b"k", b"2").unwrap_err(),
            transaction.put_untracked(&family, b"k", b"2").unwrap_err(),
            transaction.get(&family, b"k").map(drop).unwrap_err(),
            transaction.set_save_point().unwrap_err(),
            transaction.commit().unwrap_err(),
        ] {
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        }
        let before = transaction.id();
        transaction.restart(&options);
        assert!(transaction.id() > before);
        transaction.delete(&family, b"k").unwrap();
        // Restarted while active, and dropped while active: both roll back.
        transaction.restart(&options);
        transaction.delete(&family, b"k").unwrap();
        drop(transaction);
        assert_eq!(database.db().get(b"k").unwrap().as_deref(), Some(&b"1"[..]));
        database.put(b"k", b"2").unwrap();
    }
}

#[test]
fn what_is_too_large_is_refused_and_leaves_no_lock() {
    for with_locks in KINDS {
        let settings = TransactionSettings {
            max_write_set_bytes: 100,
            ..patient()
        };
        let (database, _env) = open(with_locks, &settings);
        let family = database.family();
        let mut transaction = database.begin(&TransactionOptions::default());
        transaction.put(&family, b"a", b"1").unwrap();
        let refused = [
            transaction.put(&family, b"b", &[0; 200]).unwrap_err(),
            transaction.delete_range(&family, &[1; 90], &[2; 90]).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::WriteLimit);
            assert!(error.message().contains("max_write_set_bytes is 100"), "{error}");
        }
        assert_eq!((transaction.lock_count(), transaction.writes().len()), (1, 1));
        transaction.commit().unwrap();
        assert!(database.db().get(b"a").unwrap().is_some());
    }
}

#[test]
fn lists_show_what_runs_and_what_it_holds() {
    let (database, env) = open(true, &patient());
    let Database::Locks(db) = &database else {
        unreachable!("opened with locks")
    };
    let family = database.family();
    let options = TransactionOptions {
        label: Some("nightly".into()),
        ..TransactionOptions::default()
    };
    let mut named = db.begin(&options);
    named.set_name([0xfe, 1]).unwrap();
    let mut other = db.begin(&TransactionOptions::default());
    named.put(&family, b"a", b"1").unwrap();
    named.get_for_update(&family, b"b", LockMode::Shared).unwrap();
    other
        .lock_range(&family, b"x", None, LockMode::Exclusive)
        .unwrap();
    env.clock.sleep(Duration::from_secs(5));
    let listed = db.running();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].id, named.id());
    assert_eq!(listed[0].label.as_deref(), Some("nightly"));
    assert_eq!(listed[0].name.as_deref(), Some(&[0xfe, 1][..]));
    assert!(!listed[0].is_prepared && listed[1].name.is_none());
    assert_eq!((listed[0].writes, listed[0].locks), (1, 2));
    assert_eq!((listed[1].writes, listed[1].locks), (0, 1));
    assert!(listed[0].age >= Duration::from_secs(5));
    assert_eq!(db.locks().len(), 3);
    named.restart(&TransactionOptions::default());
    assert_eq!((&db.running()[1].label, &db.running()[1].name), (&None, &None));
    assert_eq!((named.label(), named.name()), (None, None));
    drop((named, other));
    assert!(db.running().is_empty() && db.locks().is_empty());
}

#[test]
fn a_batch_without_a_transaction_locks_all_that_it_writes() {
    let settings = TransactionSettings::default();
    let (database, _env) = open(true, &settings);
    let Database::Locks(db) = &database else {
        unreachable!("opened with locks")
    };
    let family = database.family();
    let not_at_all = TransactionOptions {
        lock_timeout: Some(Duration::ZERO),
        ..TransactionOptions::default()
    };
    let mut transaction = db.begin(&not_at_all);
    let mut batch = WriteBatch::new();
    batch.put(b"z", b"1").unwrap();
    batch.put(b"a", b"1").unwrap();
    batch.put(b"a", b"2").unwrap();
    batch.delete_range(b"m", b"p").unwrap();
    transaction.lock_key(&family, b"n", LockMode::Shared).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.write(&mut batch, &esker::WriteOptions::default()));
        while db.waiting().is_empty() {
            std::thread::yield_now();
        }
        // In the order of keys: the first is locked, the last not yet.
        assert_eq!(
            transaction.put(&family, b"a", b"3").unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        transaction.put(&family, b"z", b"0").unwrap();
        transaction.roll_back().unwrap();
        writer.join().unwrap().unwrap();
    });
    assert!(batch.is_empty() && db.locks().is_empty());
    assert_eq!(db.db().get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(db.db().get(b"z").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_batch_locks_ranges_in_the_order_of_each_family_and_is_refused_for_one_that_is_gone() {
    let (database, _env) = open(true, &patient());
    let reverse = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        ..ColumnFamilyOptions::default()
    };
    let family = database.db().create_column_family("reverse", reverse).unwrap();
    let not_at_all = TransactionOptions {
        lock_timeout: Some(Duration::ZERO),
        ..TransactionOptions::default()
    };
    let mut transaction = database.begin(&not_at_all);
    transaction.lock_key(&family, b"n", LockMode::Shared).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_cf(&family, b"x", b"1").unwrap();
    // Of other keys in this order, of none in that of bytes.
    batch.delete_range_cf(&family, b"m", b"a").unwrap();
    database.write(&mut batch).unwrap();
    batch.put_cf(&family, b"y", b"1").unwrap();
    batch.delete_range_cf(&family, b"p", b"m").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| database.write(&mut batch));
        while database.waiting().is_empty() {
            std::thread::yield_now();
        }
        transaction.roll_back().unwrap();
        writer.join().unwrap().unwrap();
    });
    database.db().drop_column_family(&family).unwrap();
    batch.put(b"x", b"1").unwrap();
    batch.delete_range_cf(&family, b"p", b"m").unwrap();
    let error = database.write(&mut batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(batch.len(), 2);
    assert_eq!(database.db().get(b"x").unwrap(), None);
    let Database::Locks(db) = &database else {
        unreachable!("opened with locks")
    };
    assert!(db.locks().is_empty());
}

#[test]
fn reads_and_iterators_go_through_own_writes_to_the_snapshot() {
    for with_locks in KINDS {
        let (database, _env) = open(with_locks, &patient());
        let family = database.family();
        for key in [b"a", b"b", b"c"] {
            database.put(key, b"0").unwrap();
        }
        let mut transaction = database.begin(&TransactionOptions::isolation(Isolation::RepeatableRead));
        assert!(transaction.snapshot().is_none());
        transaction.put(&family, b"b", b"1").unwrap();
        assert!(transaction.snapshot().is_some());
        database.put(b"c", b"9").unwrap();
        transaction.merge(&family, b"a", b"1").unwrap();
        let values = transaction.multi_get(&family, &[b"a", b"b", b"c", b"d"]).unwrap();
        let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
        assert_eq!(values, [Some(&b"0,1"[..]), Some(b"1"), Some(b"0"), None]);
        let mut iter = transaction.iter(&family, ReadOptions::default()).unwrap();
        iter.seek_to_last().unwrap();
        assert_eq!((iter.key(), iter.value()), (&b"c"[..], &b"0"[..]));
        transaction.delete(&family, b"b").unwrap();
        iter.prev().unwrap();
        assert_eq!(iter.value(), b"1", "as it was when it was made");
        transaction.refresh(&mut iter).unwrap();
        iter.seek(b"b").unwrap();
        assert_eq!((iter.key(), iter.value()), (&b"c"[..], &b"0"[..]));
        // What others have written is in conflict, for all keys or none.
        let locks = transaction.lock_count();
        let many = transaction.multi_get_for_update(&family, &[b"d", b"c"], LockMode::Shared);
        if with_locks {
            assert_eq!(many.unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(transaction.lock_count(), locks);
            transaction.commit().unwrap();
        } else {
            assert!(many.is_ok());
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
            assert!(transaction.is_active());
        }
    }
}

#[test]
fn an_optimistic_commit_fails_for_a_range_too_and_only_for_what_was_touched() {
    let (database, _env) = open(false, &patient());
    let family = database.family();
    let begin = || {
        let mut transaction = database.begin(&TransactionOptions::default());
        transaction
            .lock_range(&family, b"b", Some(b"d"), LockMode::Shared)
            .unwrap();
        transaction.put(&family, b"x", b"1").unwrap();
        transaction
    };
    for (key, kind) in [("a", None), ("b", Some(ErrorKind::Conflict)), ("d", None)] {
        let mut transaction = begin();
        database.put(key.as_bytes(), b"1").unwrap();
        assert_eq!(
            transaction.commit().err().map(|error| error.kind()),
            kind,
            "{key}"
        );
    }
    // A batch, and untracked writes, are seen as well.
    let mut transaction = begin();
    let mut batch = WriteBatch::new();
    batch.delete_range(b"a", b"c").unwrap();
    database.write(&mut batch).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let mut transaction = begin();
    let mut untracked = database.begin(&TransactionOptions::default());
    untracked.put_untracked(&family, b"c", b"1").unwrap();
    untracked.delete_range_untracked(&family, b"y", b"z").unwrap();
    untracked.commit().unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn handles_and_transactions_may_move_between_threads() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<crate::Transaction>();
    is_shared::<TransactionDb>();
    is_shared::<OptimisticDb>();
}
