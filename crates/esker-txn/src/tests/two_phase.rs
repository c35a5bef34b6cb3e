//! Two-phase commit: each call in each state, names, locks that outlive objects and openings, steps that fail.

use std::sync::Arc;
use std::time::Duration;

use esker::{
    ColumnFamily, ColumnFamilyOptions, Durability, Error, ErrorKind, KeyOrder, Opener, Options, ReadOptions,
    Result, ReverseBytewiseComparator, WriteBatch, WriteOptions,
};
use esker_env::Env;
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};

use super::{Database, open, open_in, patient};
use crate::lock::{HeldLock, LockTarget};
use crate::{
    LockMode, LockSettings, OptimisticDb, Transaction, TransactionDb, TransactionOptions, TransactionSettings,
};

/// `+`: it works. `p`: refused, as it is prepared. `e`: refused, as it has ended. `n`: refused, as it has no name.
/// `t`: refused, as it has a name.
const TABLE: &str = "
                          active  named  failed  prepared  taken  committed  rolled_back
get                       +       +      +       p         p      e          e
multi_get                 +       +      +       p         p      e          e
iter                      +       +      +       p         p      e          e
put                       +       +      +       p         p      e          e
delete_range              +       +      +       p         p      e          e
delete_range of nothing   +       +      +       p         p      e          e
merge_untracked           +       +      +       p         p      e          e
delete_range_untracked    +       +      +       p         p      e          e
get_for_update            +       +      +       p         p      e          e
multi_get_for_update      +       +      +       p         p      e          e
lock_key                  +       +      +       p         p      e          e
lock_range                +       +      +       p         p      e          e
undo_get_for_update       +       +      +       p         p      e          e
set_snapshot              +       +      +       p         p      e          e
set_save_point            +       +      +       p         p      e          e
roll_back_to_save_point   +       +      +       p         p      e          e
pop_save_point            +       +      +       p         p      e          e
set_name                  +       t      t       p         p      e          e
prepare                   n       +      +       p         p      e          e
commit                    +       +      +       +         +      e          e
roll_back                 +       +      +       +         +      +          +
";

fn call(name: &str, transaction: &mut Transaction, family: &ColumnFamily) -> Result<()> {
    let (key, end) = (&b"k"[..], Some(&b"l"[..]));
    match name {
        "get" => transaction.get(family, key).map(drop),
        "multi_get" => transaction.multi_get(family, &[key]).map(drop),
        "iter" => transaction.iter(family, ReadOptions::default()).map(drop),
        "put" => transaction.put(family, key, b"2"),
        "delete_range" => transaction.delete_range(family, key, b"l"),
        "delete_range of nothing" => transaction.delete_range(family, key, key),
        "merge_untracked" => transaction.merge_untracked(family, key, b"2"),
        "delete_range_untracked" => transaction.delete_range_untracked(family, key, b"l"),
        "get_for_update" => transaction
            .get_for_update(family, key, LockMode::Exclusive)
            .map(drop),
        "multi_get_for_update" => transaction
            .multi_get_for_update(family, &[key], LockMode::Shared)
            .map(drop),
        "lock_key" => transaction.lock_key(family, key, LockMode::Shared),
        "lock_range" => transaction.lock_range(family, key, end, LockMode::Shared),
        "undo_get_for_update" => transaction.undo_get_for_update(family, key).map(drop),
        "set_snapshot" => transaction.set_snapshot(),
        "set_save_point" => transaction.set_save_point(),
        "roll_back_to_save_point" => transaction.roll_back_to_save_point().map(drop),
        "pop_save_point" => transaction.pop_save_point().map(drop),
        "set_name" => transaction.set_name("another"),
        "prepare" => transaction.prepare(),
        "commit" => transaction.commit(),
        "roll_back" => transaction.roll_back(),
        _ => panic!("no call {name}"),
    }
}

/// A transaction that has written `k`, in this state.
fn in_state(db: &TransactionDb, state: &str) -> Transaction {
    let mut transaction = db.begin(&TransactionOptions::default());
    transaction
        .put(&db.db().default_column_family(), b"k", b"1")
        .unwrap();
    if state != "active" {
        transaction.set_name("name").unwrap();
    }
    match state {
        "active" | "named" => {}
        "failed" => {
            transaction.set_write_options(&WriteOptions::durability(Durability::None));
            let error = transaction.prepare().unwrap_err();
            assert!(error.message().contains("Durability::None"), "{error}");
            transaction.set_write_options(&WriteOptions::default());
        }
        "prepared" => transaction.prepare().unwrap(),
        "taken" => {
            transaction.prepare().unwrap();
            drop(transaction);
            return db.prepared_transaction(b"name").unwrap();
        }
        "committed" => transaction.commit().unwrap(),
        "rolled_back" => transaction.roll_back().unwrap(),
        _ => panic!("no state {state}"),
    }
    transaction
}

fn letter(result: Result<()>) -> &'static str {
    let Err(error) = result else {
        return "+";
    };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let letters = [
        ("the transaction is prepared; ", "p"),
        ("the transaction has been committed or rolled back", "e"),
        ("this one has none", "n"),
        ("the transaction has the name 'name' already", "t"),
    ];
    let found = letters.iter().find(|(words, _)| error.message().contains(words));
    found.unwrap_or_else(|| panic!("{error}")).1
}

#[test]
fn each_call_in_each_state() {
    let (db, _env) = locks(&patient());
    let family = db.db().default_column_family();
    let mut lines = TABLE.lines().skip(1);
    let states: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let mut cells = 0;
    for line in lines {
        let (name, wanted) = line.split_at(26);
        let found = states.iter().map(|state| {
            let mut transaction = in_state(&db, state);
            let found = letter(call(name.trim(), &mut transaction, &family));
            transaction.roll_back().unwrap();
            assert!(db.locks().is_empty() && db.prepared().is_empty());
            found
        });
        let found: Vec<&str> = found.collect();
        assert_eq!(found, wanted.split_whitespace().collect::<Vec<_>>(), "{name}");
        cells += found.len();
    }
    assert_eq!(cells, 21 * 7);
    let seen = db.db().get(b"k").unwrap();
    assert_eq!(seen.as_deref(), Some(&b"1"[..]), "committed from most states");
}

/// A database with locks, on a machine of its own.
fn locks(settings: &TransactionSettings) -> (TransactionDb, Env) {
    let (database, env) = open(true, settings);
    (with_locks(database), env)
}

fn with_locks(database: Database) -> TransactionDb {
    match database {
        Database::Locks(db) => db,
        Database::Optimistic(_) => panic!("opened with locks"),
    }
}

/// The database of a machine that has failed, or of one that goes on without it.
fn reopen(env: &Env, settings: &TransactionSettings) -> TransactionDb {
    with_locks(open_in(env, true, settings))
}

fn not_at_all() -> TransactionOptions {
    TransactionOptions {
        lock_timeout: Some(Duration::ZERO),
        ..TransactionOptions::default()
    }
}

/// Whether nobody else can write this now.
fn is_locked(db: &TransactionDb, family: &ColumnFamily, key: &[u8]) -> bool {
    let mut other = db.begin(&not_at_all());
    match other.put(family, key, b"other") {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            true
        }
    }
}

fn names(db: &TransactionDb) -> Vec<String> {
    let listed = db.prepared();
    let name = |name: &[u8]| name.escape_ascii().to_string();
    listed.iter().map(|prepared| name(&prepared.name)).collect()
}

fn value(db: &TransactionDb, key: &[u8]) -> Option<Vec<u8>> {
    db.db().get(key).unwrap().map(|value| value.to_vec())
}

#[test]
fn a_name_belongs_to_one_transaction_until_that_is_resolved() {
    let (db, _env) = locks(&patient());
    let family = db.db().default_column_family();
    let options = TransactionOptions::default();
    let mut other = db.begin(&options);
    let refused = |other: &mut Transaction| {
        let error = other.set_name("name").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.message().contains("another transaction has the name"),
            "{error}"
        );
    };
    for len in [0, 4097] {
        let error = other.set_name(vec![b'x'; len]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("1 to 4096"), "{error}");
    }
    let mut transaction = db.begin(&options);
    type End = (&'static str, fn(&mut Transaction));
    let ends: [End; 4] = [
        ("commit", |transaction| transaction.commit().unwrap()),
        ("roll back", |transaction| transaction.roll_back().unwrap()),
        ("commit what is prepared", |transaction| {
            transaction.prepare().unwrap();
            transaction.commit().unwrap();
        }),
        ("restart", |transaction| {
            transaction.restart(&TransactionOptions::default())
        }),
    ];
    for (how, end) in ends {
        transaction.restart(&options);
        transaction.set_name("name").unwrap();
        transaction.put(&family, b"k", b"1").unwrap();
        refused(&mut other);
        end(&mut transaction);
        assert_eq!(transaction.name(), None, "{how}");
        other.set_name("name").unwrap();
        assert_eq!(other.name(), Some(&b"name"[..]));
        other.restart(&options);
    }
    // Over the object that prepared it, and the handle.
    transaction.restart(&options);
    transaction.set_name("name").unwrap();
    transaction.prepare().unwrap();
    refused(&mut other);
    transaction.restart(&options);
    refused(&mut other);
    let taken = db.prepared_transaction(b"name").unwrap();
    refused(&mut other);
    drop(taken);
    refused(&mut other);
    // The engine's own word, where somebody has gone to the database itself.
    db.db()
        .prepare(b"direct", &mut WriteBatch::new(), &WriteOptions::default())
        .unwrap();
    assert_eq!(names(&db), ["name"], "that is no transaction's");
    let missing = db.prepared_transaction(b"direct").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::InvalidArgument);
    assert!(
        missing.message().contains("through the database itself"),
        "{missing}"
    );
    other.set_name("direct").unwrap();
    let error = other.prepare().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(other.is_active());
}

#[test]
fn locks_of_what_is_prepared_outlive_its_object_as_they_are() {
    let (db, _env) = locks(&patient());
    let family = db.db().default_column_family();
    db.put(&family, b"read", b"0").unwrap();
    let mut transaction = db.begin(&TransactionOptions::default());
    let id = transaction.id();
    transaction.set_name(b"name").unwrap();
    transaction.put(&family, b"written", b"1").unwrap();
    transaction.set_save_point().unwrap();
    transaction
        .get_for_update(&family, b"read", LockMode::Shared)
        .unwrap();
    transaction
        .lock_range(&family, b"x", Some(b"z"), LockMode::Exclusive)
        .unwrap();
    let mut iter = transaction.iter(&family, ReadOptions::default()).unwrap();
    transaction.prepare().unwrap();
    let before = db.locks();
    assert_eq!(before.len(), 3);
    let listed = &db.running()[0];
    assert!(listed.is_prepared && listed.name.as_deref() == Some(b"name"));
    assert_eq!((listed.writes, listed.locks), (1, 3));
    iter.seek(b"written").unwrap();
    assert_eq!(iter.value(), b"1", "an iterator of before sees what it saw");
    let error = transaction.refresh(&mut iter).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // The object has it, then nobody, then another object.
    for is_open in [true, false] {
        let listed = db.prepared();
        assert_eq!(listed.len(), 1);
        assert_eq!((&*listed[0].name, listed[0].id), (&b"name"[..], id));
        assert_eq!((listed[0].writes, listed[0].is_open), (1, is_open));
        assert!(listed[0].size_bytes > 0);
        if is_open {
            let error = db.prepared_transaction(b"name").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Retry);
            transaction.restart(&not_at_all());
            assert!(transaction.is_active() && transaction.id() != id);
        }
        assert_eq!(db.locks(), before);
    }
    assert_eq!(value(&db, b"written"), None);
    for (key, is) in [("written", true), ("read", true), ("y", true), ("z", false)] {
        assert_eq!(is_locked(&db, &family, key.as_bytes()), is, "{key}");
    }
    let shared = transaction.get_for_update(&family, b"read", LockMode::Shared);
    assert_eq!(shared.unwrap().as_deref(), Some(&b"0"[..]));
    drop(transaction);
    let error = db.prepared_transaction(b"nobody's").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let mut taken = db.prepared_transaction(b"name").unwrap();
    assert_eq!(
        (taken.id(), taken.lock_count(), taken.is_prepared()),
        (id, 3, true)
    );
    assert_eq!(db.running()[0].writes, 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| db.put(&family, b"written", b"2"));
        while db.waiting().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(db.waiting()[0].waits_for, [id]);
        taken.commit().unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(value(&db, b"written").as_deref(), Some(&b"2"[..]));
    assert!(db.locks().is_empty() && db.prepared().is_empty());
}

/// Three families, one in reverse order, one dropped; three transactions that are prepared, and one that is not.
fn leave_prepared(db: &TransactionDb) {
    let reverse = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        ..ColumnFamilyOptions::default()
    };
    let reverse = db.db().create_column_family("reverse", reverse).unwrap();
    let gone = ColumnFamilyOptions::default();
    let gone = db.db().create_column_family("gone", gone).unwrap();
    let family = db.db().default_column_family();
    let mut a = db.begin(&TransactionOptions::default());
    a.set_name("a").unwrap();
    a.put(&family, b"a", b"1").unwrap();
    a.put(&family, b"a", b"2").unwrap();
    a.delete_range(&reverse, b"p", b"m").unwrap();
    a.delete_range(&gone, b"a", b"z").unwrap();
    a.put(&gone, b"a", b"1").unwrap();
    a.lock_key(&family, b"only read", LockMode::Shared).unwrap();
    a.prepare().unwrap();
    let mut b = db.begin(&TransactionOptions::default());
    b.set_name("b").unwrap();
    b.merge(&family, b"b", b"1").unwrap();
    b.single_delete(&reverse, b"b").unwrap();
    b.prepare().unwrap();
    let mut empty = db.begin(&TransactionOptions::default());
    empty.set_name("empty").unwrap();
    empty.prepare().unwrap();
    let mut c = db.begin(&TransactionOptions::default());
    c.set_name("c").unwrap();
    c.put(&family, b"c", b"1").unwrap();
    db.db().drop_column_family(&gone).unwrap();
    db.db().sync_wal().unwrap();
    std::mem::forget((a, b, c, empty));
}

#[test]
fn an_opening_locks_what_is_prepared_before_anybody_can_write() {
    let fs = MemFs::new();
    let env = Env::simulated_on(fs.clone(), 1);
    let db = reopen(&env, &patient());
    leave_prepared(&db);
    let crashed = Env::simulated_on(fs.crash(CrashMode::DropUnsynced), 2);
    let options = Options {
        memory_budget_bytes: 64 << 20,
        ..Options::default()
    };
    let again = |env: &Env, settings: &TransactionSettings| {
        let order: Arc<dyn esker::Comparator> = Arc::new(ReverseBytewiseComparator);
        let opener = Opener::new(options.clone()).env(env.clone());
        let reverse = ColumnFamilyOptions {
            key_order: KeyOrder::Custom(order),
            ..ColumnFamilyOptions::default()
        };
        let opener = opener.column_family("reverse", reverse);
        TransactionDb::open(opener, "db", settings)
    };
    let few = TransactionSettings {
        locks: LockSettings {
            max_locks: 3,
            ..LockSettings::default()
        },
        ..TransactionSettings::default()
    };
    assert_eq!(again(&crashed, &few).unwrap_err().kind(), ErrorKind::LockLimit);
    let db = again(&crashed, &patient()).unwrap();
    assert_eq!(names(&db), ["a", "b", "empty"]);
    assert_eq!(db.prepared()[2].writes, 0);
    db.prepared_transaction(b"empty").unwrap().commit().unwrap();
    assert_eq!(names(&db), ["a", "b"]);
    let family = db.db().default_column_family();
    let reverse = db.db().column_family("reverse").unwrap();
    assert!(db.locks().iter().all(|lock| lock.mode == LockMode::Exclusive));
    let free = [&b"c"[..], b"only read"];
    for (family, keys, is) in [
        (&family, vec![&b"a"[..], b"b"], true),
        (&family, free.to_vec(), false),
        (&reverse, vec![&b"p"[..], b"n", b"b"], true),
        (&reverse, vec![&b"m"[..], b"q"], false),
    ] {
        for key in keys {
            assert_eq!(is_locked(&db, family, key), is, "{}", key.escape_ascii());
        }
    }
    let mut late = db.begin(&not_at_all());
    assert!(late.id() > db.prepared()[1].id, "numbers go on");
    let range = late.lock_range(&family, b"", None, LockMode::Shared);
    assert_eq!(range.unwrap_err().kind(), ErrorKind::TimedOut);
    let (mut a, mut b) = (
        db.prepared_transaction(b"a").unwrap(),
        db.prepared_transaction(b"b").unwrap(),
    );
    assert_eq!((a.lock_count(), b.lock_count()), (2, 2));
    a.roll_back().unwrap();
    b.commit().unwrap();
    assert!(db.locks().is_empty() && names(&db).is_empty());
    assert_eq!(value(&db, b"a"), None);
    late.lock_range(&family, b"", None, LockMode::Exclusive).unwrap();
    late.commit().unwrap();
    db.db().close().unwrap();
    // What was resolved is gone for good.
    let db = again(&crashed, &few).unwrap();
    assert!(db.prepared().is_empty() && db.locks().is_empty());
}

#[test]
fn what_two_have_written_untracked_is_locked_until_both_are_resolved() {
    let fs = MemFs::new();
    let db = reopen(&Env::simulated_on(fs.clone(), 1), &patient());
    let family = db.db().default_column_family();
    for (name, key) in [("a", b"1"), ("b", b"2")] {
        let mut transaction = db.begin(&TransactionOptions::default());
        transaction.set_name(name).unwrap();
        transaction.put(&family, key, b"").unwrap();
        transaction
            .put_untracked(&family, b"both", name.as_bytes())
            .unwrap();
        transaction.prepare().unwrap();
    }
    let crashed = Env::simulated_on(fs.crash(CrashMode::KeepAll), 2);
    let db = reopen(&crashed, &patient());
    let family = db.db().default_column_family();
    let both = |lock: &HeldLock| lock.target == LockTarget::Key(b"both".to_vec());
    assert_eq!(
        db.locks().iter().find(|lock| both(lock)).unwrap().holders.len(),
        2
    );
    for (name, key, is_locked_then) in [("b", b"2", true), ("a", b"1", false)] {
        assert!(is_locked(&db, &family, b"both") && is_locked(&db, &family, key));
        db.prepared_transaction(name.as_bytes())
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(is_locked(&db, &family, b"both"), is_locked_then);
        assert_eq!(value(&db, b"both").as_deref(), Some(name.as_bytes()));
    }
    assert!(db.locks().is_empty());
}

#[test]
fn what_is_resolved_through_the_database_itself_ends_with_the_next_call() {
    let (db, _env) = locks(&patient());
    let family = db.db().default_column_family();
    for at_all in [false, true] {
        let mut transaction = in_state(&db, "prepared");
        if at_all {
            drop(transaction);
            db.db()
                .roll_back_prepared(b"name", &WriteOptions::default())
                .unwrap();
            assert!(db.prepared().is_empty() && is_locked(&db, &family, b"k"));
            transaction = db.prepared_transaction(b"name").unwrap();
        } else {
            db.db()
                .commit_prepared(b"name", &WriteOptions::default())
                .unwrap();
        }
        assert_eq!(transaction.roll_back().unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!transaction.is_prepared() && db.locks().is_empty());
        transaction.roll_back().unwrap();
    }
}

#[test]
fn optimistic_transactions_are_not_prepared_and_do_not_write_under_what_is() {
    let (database, env) = open(false, &patient());
    let mut transaction = database.begin(&TransactionOptions::default());
    transaction.put(&database.family(), b"k", b"1").unwrap();
    let refused = [
        transaction.set_name("name").unwrap_err(),
        transaction.prepare().unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("use a TransactionDb"), "{error}");
    }
    transaction.commit().unwrap();
    database.db().close().unwrap();
    let db = reopen(&env, &patient());
    drop(in_state(&db, "prepared"));
    let error = OptimisticDb::new(db.db().clone(), &patient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("1 transactions are prepared"), "{error}");
    db.prepared_transaction(b"name").unwrap().commit().unwrap();
    OptimisticDb::new(db.db().clone(), &patient()).unwrap();
}

/// A machine that fails on demand.
fn failing() -> (MemFs, FaultFs, TransactionDb) {
    let fs = MemFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(fs.clone(), 1)
    };
    (fs, faults, reopen(&env, &patient()))
}

#[test]
fn a_step_that_a_full_device_refuses_leaves_the_transaction_as_it_was() {
    let (fs, faults, db) = failing();
    let family = db.db().default_column_family();
    let full = |step: &mut dyn FnMut() -> Result<()>| -> Error {
        faults.add(Rule::new(Op::Append, Fault::Enospc).on_path(".wal"));
        let error = step().unwrap_err();
        faults.clear();
        error
    };
    let mut transaction = in_state(&db, "named");
    transaction.set_save_point().unwrap();
    transaction.put(&family, b"l", b"1").unwrap();
    let error = full(&mut || transaction.prepare());
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(transaction.is_active() && transaction.name() == Some(b"name"));
    assert_eq!((transaction.lock_count(), db.prepared().len()), (2, 0));
    // With its writes and save points.
    assert_eq!(
        transaction.get(&family, b"l").unwrap().as_deref(),
        Some(&b"1"[..])
    );
    assert!(transaction.roll_back_to_save_point().unwrap());
    transaction.prepare().unwrap();
    for (step, name) in [
        (
            Transaction::commit as fn(&mut Transaction) -> Result<()>,
            "commit",
        ),
        (Transaction::roll_back, "roll_back"),
    ] {
        assert_eq!(
            full(&mut || step(&mut transaction)).kind(),
            ErrorKind::NoSpace,
            "{name}"
        );
        assert!(transaction.is_prepared() && is_locked(&db, &family, b"k"));
        assert_eq!((value(&db, b"k"), names(&db).len()), (None, 1));
    }
    transaction.commit().unwrap();
    assert_eq!(value(&db, b"k").as_deref(), Some(&b"1"[..]));
    assert_eq!((value(&db, b"l"), db.locks().len()), (None, 0));
    let db = reopen(&Env::simulated_on(fs.crash(CrashMode::KeepAll), 2), &patient());
    assert!(db.prepared().is_empty());
    assert_eq!(value(&db, b"k").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_failed_sync_leaves_the_word_to_the_next_opening() {
    // Of the first, nothing that was to be synced arrives; of the second, all.
    for (fault, arrives) in [(Fault::FailedSync, false), (Fault::Eio, true)] {
        for step in ["prepare", "commit", "roll_back"] {
            let (fs, faults, db) = failing();
            let family = db.db().default_column_family();
            let mut transaction = in_state(&db, "named");
            transaction.set_write_options(&WriteOptions::durability(Durability::Sync));
            if step != "prepare" {
                transaction.prepare().unwrap();
            }
            faults.add(Rule::new(Op::Sync, fault).on_path(".wal"));
            let error = call(step, &mut transaction, &family).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly, "{step}");
            faults.clear();
            assert_eq!(transaction.is_prepared(), step != "prepare");
            assert_eq!(transaction.lock_count(), 1);
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
            let db = reopen(&Env::simulated_on(fs.crash(CrashMode::KeepAll), 2), &patient());
            let is_prepared = (step == "prepare") == arrives;
            assert_eq!(names(&db).len(), usize::from(is_prepared), "{step}, {fault:?}");
            let family = db.db().default_column_family();
            assert_eq!(is_locked(&db, &family, b"k"), is_prepared);
            assert_eq!(value(&db, b"k").is_some(), step == "commit" && arrives);
        }
    }
}
