//! Waiting: in which order locks are handed over, and when a wait is over.

use esker::ErrorKind;

use super::*;

#[test]
fn a_reader_does_not_overtake_a_writer_that_waits() {
    let (manager, _) = manager(LockSettings::default());
    let [mut reader, mut writer, mut late] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    reader.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let writer = until_waiting(scope, &manager, 1, move || {
            writer.lock("k", Exclusive).unwrap();
            writer
        });
        assert!(late.try_lock("k", Shared).is_err());
        let late = until_waiting(scope, &manager, 2, move || late.lock("k", Shared).map(|_| late));
        assert_eq!(waits(&manager), [(2, vec![1]), (3, vec![2])]);
        reader.end();
        let mut writer = writer.join().expect("the writer");
        assert_eq!(waits(&manager), [(3, vec![2])], "the writer was first");
        writer.end();
        assert!(late.join().expect("the reader").is_ok());
    });
    assert!(manager.is_empty());
}

#[test]
fn readers_behind_a_writer_are_let_in_together() {
    let (manager, _) = manager(LockSettings::default());
    let mut writer = Txn::new(&manager, 1);
    writer.lock("k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let readers = [2, 3, 4].map(|id| {
            let mut reader = Txn::new(&manager, id);
            until_waiting(scope, &manager, id as usize - 1, move || {
                reader.lock("k", Shared).unwrap();
                reader
            })
        });
        writer.end();
        // All hold it at the same time: none has ended before all are here.
        let readers = readers.map(|reader| reader.join().expect("a reader"));
        assert_eq!(manager.held()[0].holders.len(), readers.len());
    });
}

#[test]
fn a_writer_that_gives_up_lets_readers_behind_it_pass() {
    let (manager, env) = manager(LockSettings::default());
    let [mut reader, mut writer, mut late] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    reader.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let writer = until_waiting(scope, &manager, 1, || {
            let timeout = Some(Duration::from_secs(60));
            manager.acquire(&mut writer.locks, 0, b"k", Exclusive, timeout)
        });
        let late = until_waiting(scope, &manager, 2, || late.lock("k", Shared));
        env.clock.sleep(Duration::from_secs(61));
        manager.notice_time();
        let refused = writer.join().expect("the writer").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert!(
            refused
                .message()
                .contains("within 60s; it waited for transactions 1")
        );
        assert_eq!(late.join().expect("the reader").unwrap(), Acquired::New);
    });
    assert_eq!(manager.len(), 2);
}

#[test]
fn a_wait_ends_with_the_time_of_the_settings() {
    let (manager, env) = manager(LockSettings {
        timeout: Duration::from_secs(600),
        ..LockSettings::default()
    });
    let [mut holder, mut other] = [1, 2].map(|id| Txn::new(&manager, id));
    holder.lock("k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let other = until_waiting(scope, &manager, 1, || {
            manager.acquire(&mut other.locks, 0, b"k", Shared, None)
        });
        let since = manager.waiting()[0].since;
        assert!(since <= env.clock.now());
        env.clock.sleep(Duration::from_secs(500));
        manager.notice_time();
        assert_eq!(manager.waiting().len(), 1, "not yet");
        env.clock.sleep(Duration::from_secs(100));
        manager.notice_time();
        assert_eq!(
            other.join().expect("the other").unwrap_err().kind(),
            ErrorKind::TimedOut
        );
    });
}

#[test]
fn a_wait_that_is_interrupted_fails_and_lets_those_behind_it_pass() {
    let (manager, _) = manager(LockSettings::default());
    let [mut reader, mut writer, mut late] = [1, 2, 3].map(|id| Txn::new(&manager, id));
    let interrupter = writer.locks.interrupter();
    reader.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let waits = until_waiting(scope, &manager, 1, || writer.lock("k", Exclusive));
        let late = until_waiting(scope, &manager, 2, || late.lock("k", Shared));
        interrupter.request();
        let refused = waits.join().expect("the writer").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Interrupted);
        assert!(refused.message().contains("was interrupted"), "{refused}");
        assert_eq!(late.join().expect("the reader").unwrap(), Acquired::New);
    });
    assert_eq!(manager.len(), 2);
    // It stays: what is free is granted, what is not is refused at once, and who does not wait is told why.
    assert_eq!(writer.lock("free", Exclusive).unwrap(), Acquired::New);
    assert_eq!(
        writer.lock("k", Exclusive).unwrap_err().kind(),
        ErrorKind::Interrupted
    );
    assert_eq!(
        writer.try_lock("k", Exclusive).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    interrupter.clear();
    std::thread::scope(|scope| {
        let waits = until_waiting(scope, &manager, 1, || writer.lock("k", Exclusive));
        reader.end();
        late.end();
        assert_eq!(waits.join().expect("the writer").unwrap(), Acquired::New);
    });
}

#[test]
fn a_downgrade_lets_readers_in() {
    let (manager, _) = manager(LockSettings::default());
    let [mut writer, mut reader] = [1, 2].map(|id| Txn::new(&manager, id));
    writer.lock("k", Shared).unwrap();
    writer.locks.set_savepoint();
    writer.lock("k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let reader = until_waiting(scope, &manager, 1, || reader.lock("k", Shared));
        assert!(manager.roll_back_to_savepoint(&mut writer.locks));
        assert_eq!(reader.join().expect("the reader").unwrap(), Acquired::New);
    });
}

#[test]
fn an_upgrade_goes_before_writers_that_wait_for_it_anyway() {
    let (manager, _) = manager(LockSettings::default());
    let [mut a, mut b, mut writer, mut late] = [1, 2, 3, 4].map(|id| Txn::new(&manager, id));
    a.lock("k", Shared).unwrap();
    b.lock("k", Shared).unwrap();
    std::thread::scope(|scope| {
        let writer = until_waiting(scope, &manager, 1, move || {
            writer.lock("k", Exclusive).map(|_| writer)
        });
        // Behind the writer, so that it waits for the readers only by way of it.
        let late = until_waiting(scope, &manager, 2, move || late.lock("k", Shared).map(|_| late));
        let upgrade = until_waiting(scope, &manager, 3, move || {
            a.lock("k", Exclusive).map(|acquired| (acquired, a))
        });
        assert_eq!(waits(&manager)[2], (1, vec![2]));
        b.end();
        let (acquired, a) = upgrade.join().expect("the reader").unwrap();
        assert_eq!(acquired, Acquired::Upgraded);
        drop(a);
        let writer = writer.join().expect("the writer").unwrap();
        drop(writer);
        assert!(late.join().expect("the late one").is_ok());
    });
    assert!(manager.deadlocks().is_empty());
    assert!(manager.is_empty());
}
