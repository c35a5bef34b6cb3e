//! Every test of transactions runs on an engine that works, and fails on engines that lose updates or keep what was rolled back.

// Engines of this test fail after a while, told by a counter; the harness around them is made of threads.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod broken;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use broken::{Broken, BrokenDatabase};
use esker_lab_core::engine::{Compression, Durability, Engine, Profile, Session, Start};
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::transaction::{Begin, TransactionSession};
use esker_lab_core::{Error, Result};
use esker_lab_engines::{esker::Esker, memory::Memory, null::Null};
use esker_lab_workloads::{Context, Spec, Suite, suite};

fn spec(test: &str) -> Spec {
    Spec {
        suite: Suite::Txn,
        test: test.into(),
        rows: 2_000,
        key_bytes: 10,
        value_bytes: 100,
        compressibility: 0.5,
        seed: 1,
        threads: 4,
        seconds: 0.05,
        passes: 2.0,
        cap_seconds: 30.0,
        writes_per_s: 2_000.0,
        memory_bytes: 64 << 20,
        compression: Compression::None,
        interval_s: 0.01,
        idle_poll_s: 0.002,
    }
}

fn run_spec(engine: &dyn Engine, variant: &str, spec: &Spec) -> Result<Row> {
    // On the disk that holds this crate, for temporary file systems may refuse direct I/O.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let context = Context {
        stop: &AtomicBool::new(false),
        tell: &|_| (),
        dir: dir.path().to_owned(),
        load_elsewhere: None,
        group: None,
    };
    suite::run(engine, variant, spec, &context)
}

fn run(engine: &dyn Engine, variant: &str, test: &str) -> Row {
    run_spec(engine, variant, &spec(test)).unwrap()
}

/// For as long as it takes to do something a thousand times, or to fail: a busy machine does little in a short time.
fn run_often(engine: &dyn Engine, test: &str) -> Row {
    let mut spec = spec(test);
    // Few, so that each is updated again and again.
    spec.rows = 100;
    loop {
        let row = run_spec(engine, "locks", &spec).unwrap();
        if row.errors > 0 || row.ops >= 1_000 {
            return row;
        }
        spec.seconds *= 2.0;
    }
}

fn updates_of(test: &str) -> u64 {
    match test {
        "readonly" => 0,
        "readwrite" => 5,
        "hot" => 2,
        _ => 1,
    }
}

fn assert_works(engine: &dyn Engine, variant: &str) {
    for test in Suite::Txn.tests() {
        let row = run(engine, variant, test.name);
        let name = format!("{}, {variant}: {}", test.name, engine.name());
        assert!(row.is_good(), "{name}: {:?}", row.error_messages);
        assert!(
            row.ops_per_s > 0.0 && row.p50_us > 0.0 && row.cpu_us_per_op > 0.0,
            "{name}"
        );
        assert_eq!(row.threads, if test.threads == 1 { 1 } else { 4 }, "{name}");
        assert_eq!(row.control.is_empty(), !test.transactions, "{name}");
        assert_eq!(row.written_rows, row.ops * updates_of(test.name), "{name}");
        let compared = test.transactions && updates_of(test.name) > 0;
        assert_eq!(!row.plain_workload.is_empty(), compared, "{name}");
        let plain = Suite::Txn.test(&row.plain_workload);
        assert!(
            !compared || plain.is_ok_and(|plain| !plain.transactions),
            "{name}"
        );
        // All rows of tests with transactions, a sample of the others.
        let checked = if test.transactions { 2_000 } else { 1 };
        assert!(row.verified_reads >= checked || engine.name() == "null", "{name}");
    }
}

#[test]
fn every_test_runs_and_is_checked() {
    assert_works(&Memory, "locks");
}

#[test]
fn the_yardstick_runs() {
    assert_works(&Null, "locks");
}

#[test]
fn esker_runs_with_locks_and_without() {
    assert_works(&Esker, "locks");
    assert_works(&Esker, "optimistic");
}

#[test]
fn synced_commits_say_how_many_syncs_they_took() {
    for test in ["put-sync", "update-sync"] {
        let row = run(&Esker, "locks", test);
        let syncs = row.syncs_per_op.unwrap();
        assert!(syncs > 0.0 && syncs < 1.5, "{test}: {syncs}");
    }
    assert_eq!(run(&Esker, "locks", "update").syncs_per_op, None);
}

#[test]
fn what_cannot_be_run_is_said() {
    let error = |spec: &Spec, variant| run_spec(&Memory, variant, spec).unwrap_err();
    assert_eq!(error(&spec("overwrite"), "locks").kind(), Kind::Usage);
    // A variant without transactions: the row is left out, not failed.
    assert_eq!(error(&spec("update"), "default").kind(), Kind::Unsupported);
    let few = Spec {
        rows: 100,
        threads: 101,
        ..spec("put")
    };
    assert_eq!(error(&few, "locks").kind(), Kind::Usage);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let until = |phase: &str, test: &str| {
        let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let context = Context {
            stop: &stop,
            tell: &|progress| stop.store(progress.phase == phase, Ordering::Relaxed),
            dir: dir.path().to_owned(),
            load_elsewhere: None,
            group: None,
        };
        // A fifth of it goes by before; the stop comes with the first word, long before the end.
        let seconds = if phase == "measuring" { 5.0 } else { 3600.0 };
        let spec = Spec {
            seconds,
            ..spec(test)
        };
        suite::run(&Memory, "locks", &spec, &context)
    };
    for test in ["put", "update"] {
        let row = until("measuring", test).unwrap();
        assert!(row.partial && row.ops > 0 && row.errors == 0, "{test}");
        let error = until("warming up", test).unwrap_err();
        assert_eq!(error.kind(), Kind::Stopped, "{test}");
    }
}

/// How an engine's transactions are broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Some commits have no effect, but say they had.
    LosesCommits,
    /// Some commits have an effect, but say that they were in conflict.
    KeepsWhatFailed,
    /// A rolled back transaction is committed.
    KeepsWhatWasRolledBack,
    /// Reads for update show what a session saw first.
    ReadsOldVersions,
    /// A value comes back with a flipped bit now and then.
    GarblesValues,
    /// Reads now and then find nothing.
    MissesRows,
    /// Some commits fail.
    FailsCommits,
    /// Plain puts now and then have no effect.
    LosesPuts,
    /// Not broken: transactions lose now and then, in this way.
    Loses(Kind),
}

impl broken::Fault for Fault {
    fn in_profile(self, profile: Profile) -> Self {
        match self {
            // The load of all tests is whole.
            Fault::LosesPuts if profile == Profile::BulkSequential => Fault::Loses(Kind::Conflict),
            fault => fault,
        }
    }

    fn session<'a>(
        database: &'a BrokenDatabase<Self>,
        inner: Box<dyn Session + 'a>,
    ) -> Box<dyn Session + 'a> {
        Box::new(BrokenSession { inner, database })
    }

    fn transactions<'a>(
        database: &'a BrokenDatabase<Self>,
        inner: Box<dyn TransactionSession + 'a>,
    ) -> Result<Box<dyn TransactionSession + 'a>> {
        Ok(Box::new(BrokenTransactions {
            inner,
            database,
            first: HashMap::new(),
        }))
    }
}

struct BrokenSession<'a> {
    inner: Box<dyn Session + 'a>,
    database: &'a BrokenDatabase<Fault>,
}

impl Session for BrokenSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if self.database.strikes(Fault::LosesPuts) {
            return Ok(());
        }
        self.inner.put(key, value, durability)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        self.inner.put_batch(rows, durability)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.inner.get(key, found)
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.inner.delete(key, durability)
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.inner.scan(start, row)
    }
}

struct BrokenTransactions<'a> {
    inner: Box<dyn TransactionSession + 'a>,
    database: &'a BrokenDatabase<Fault>,
    first: HashMap<Vec<u8>, Vec<u8>>,
}

impl TransactionSession for BrokenTransactions<'_> {
    fn begin(&mut self, begin: Begin) -> Result<()> {
        self.inner.begin(begin)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.database.strikes(Fault::MissesRows) {
            return Ok(false);
        }
        let garble = self.database.strikes(Fault::GarblesValues);
        self.inner.get(key, &mut |value| {
            let mut value = value.to_vec();
            value[50] ^= u8::from(garble);
            found(&value);
        })
    }

    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let old = self.database.fault == Fault::ReadsOldVersions;
        let mut read = Vec::new();
        let is_there = self.get(key, &mut |value| read = value.to_vec())?;
        if is_there {
            let first = self.first.entry(key.to_vec()).or_insert_with(|| read.clone());
            found(if old { first } else { &read });
        }
        Ok(is_there)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(key, value)
    }

    fn commit(&mut self) -> Result<()> {
        if self.database.strikes(Fault::LosesCommits) {
            return self.inner.roll_back();
        }
        if self.database.strikes(Fault::FailsCommits) {
            return Err(Error::engine("the disk is on fire"));
        }
        if self.database.strikes(Fault::KeepsWhatFailed) {
            self.inner.commit()?;
            return Err(Error::new(Kind::Conflict, "somebody was faster"));
        }
        let fault = self.database.fault;
        let kind = match fault {
            Fault::Loses(kind) => kind,
            _ => Kind::Conflict,
        };
        let loses = matches!(fault, Fault::Loses(_) | Fault::KeepsWhatWasRolledBack);
        if loses && self.database.strikes(fault) {
            return Err(Error::new(kind, "somebody was faster"));
        }
        self.inner.commit()
    }

    fn roll_back(&mut self) -> Result<()> {
        if self.database.fault == Fault::KeepsWhatWasRolledBack {
            return self.inner.commit();
        }
        self.inner.roll_back()
    }
}

const WRITERS: [&str; 5] = ["update-one", "update", "update-sync", "readwrite", "hot"];

#[test]
fn broken_transactions_fail_the_run() {
    let of_all = [
        Fault::LosesCommits,
        Fault::KeepsWhatFailed,
        Fault::KeepsWhatWasRolledBack,
        Fault::ReadsOldVersions,
        Fault::GarblesValues,
        Fault::MissesRows,
        Fault::FailsCommits,
    ];
    let of_reads = [Fault::GarblesValues, Fault::MissesRows, Fault::FailsCommits];
    let cases = WRITERS
        .into_iter()
        .flat_map(|test| of_all.map(|fault| (fault, test)))
        .chain(of_reads.map(|fault| (fault, "readonly")))
        .chain(["put-one", "put", "put-sync"].map(|test| (Fault::LosesPuts, test)));
    for (fault, test) in cases {
        let row = run_often(&Broken(fault), test);
        assert!(row.errors > 0, "{fault:?} went unnoticed in {test}");
        assert!(!row.is_good() && !row.error_messages[0].is_empty());
    }
}

#[test]
fn an_update_that_is_lost_is_called_lost() {
    let row = run_often(&Broken(Fault::LosesCommits), "update");
    assert!(
        row.error_messages[0].contains("are lost"),
        "{:?}",
        row.error_messages
    );
}

#[test]
fn transactions_that_lose_are_run_again_and_counted() {
    for kind in [Kind::Conflict, Kind::Deadlock, Kind::TimedOut] {
        for test in WRITERS {
            let row = run_often(&Broken(Fault::Loses(kind)), test);
            assert!(row.is_good(), "{kind:?}, {test}: {:?}", row.error_messages);
            let counts = [row.conflicts, row.deadlocks, row.timeouts];
            let expected = match kind {
                Kind::Conflict => [true, false, false],
                Kind::Deadlock => [false, true, false],
                _ => [false, false, true],
            };
            assert_eq!(counts.map(|count| count > 0), expected, "{kind:?}, {test}");
            // Every fifth commit loses: one for four that do not.
            let share = row.losses_per_op();
            assert!((0.15..0.35).contains(&share), "{kind:?}, {test}: {share}");
        }
    }
}
