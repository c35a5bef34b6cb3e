//! Every test runs on an engine that works, and fails on engines that lose or garble rows.

// Engines of this test fail after a while, told by a counter; the harness around them is made of threads.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod broken;

use std::sync::atomic::{AtomicBool, Ordering};

use broken::{Broken, BrokenDatabase};
use esker_lab_core::engine::{Compression, Durability, Engine, Session, Start};
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result};
use esker_lab_engines::{memory::Memory, null::Null};
use esker_lab_workloads::{Context, Spec, Suite, Test, suite};

const TESTS: fn() -> &'static [Test] = || Suite::Flash.tests();

fn spec(test: &str) -> Spec {
    Spec {
        suite: Suite::Flash,
        test: test.into(),
        rows: 3_000,
        key_bytes: 10,
        value_bytes: 800,
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

fn run_stoppable(engine: &dyn Engine, spec: &Spec, stop: &AtomicBool) -> Result<Row> {
    let dir = tempfile::tempdir().unwrap();
    let context = Context {
        stop,
        tell: &|_| (),
        dir: dir.path().to_owned(),
        load_elsewhere: None,
        group: None,
    };
    suite::run(engine, "default", spec, &context)
}

fn run(engine: &dyn Engine, test: &str) -> Result<Row> {
    run_stoppable(engine, &spec(test), &AtomicBool::new(false))
}

/// For longer and longer, until something is wrong: a busy machine does little in a short time.
fn run_until_it_fails(engine: &dyn Engine, test: &str) -> Row {
    let mut spec = spec(test);
    loop {
        let row = run_stoppable(engine, &spec, &AtomicBool::new(false)).unwrap();
        if row.errors > 0 || spec.seconds > 10.0 {
            return row;
        }
        spec.seconds *= 2.0;
    }
}

#[test]
fn every_test_runs_and_is_checked() {
    for test in TESTS() {
        let row = run(&Memory, test.name).unwrap();
        assert!(row.is_good(), "{}: {:?}", test.name, row.error_messages);
        assert!(
            row.ops_per_s > 0.0 && row.seconds > 0.0 && row.p50_us > 0.0,
            "{}",
            test.name
        );
        assert!(
            row.p50_us <= row.p99_us && row.p99_us <= row.max_us * 1.01,
            "{}",
            test.name
        );
        assert!(
            row.rate_curve.len() + row.interval_rates.len() > 0,
            "{}: nothing to draw",
            test.name
        );
        assert!(row.verified_reads > 0, "{}: nothing was checked", test.name);
        assert!(
            row.cpu_us_per_op > 0.0 && row.cpu_us_per_op_settled >= row.cpu_us_per_op,
            "{}",
            test.name
        );
        assert!(!row.partial && !row.capped, "{}", test.name);
    }
}

#[test]
fn every_key_has_the_length_asked_for() {
    // `Broken` has no merge, and refuses keys of other lengths.
    for (key_bytes, test) in [10, 16, 300]
        .into_iter()
        .flat_map(|key_bytes| TESTS().iter().map(move |test| (key_bytes, test.name)))
        .filter(|(_, test)| *test != "mergerandom")
    {
        let spec = Spec {
            key_bytes,
            ..spec(test)
        };
        let run = |fault| run_stoppable(&Broken(fault), &spec, &AtomicBool::new(false)).unwrap();
        let row = run(Fault::RefusesKeysOtherThan(key_bytes));
        assert!(row.is_good(), "{test}, {key_bytes}: {:?}", row.error_messages);
        let row = run(Fault::RefusesKeysOtherThan(key_bytes + 2));
        assert!(!row.is_good(), "{test}, {key_bytes}");
    }
    for key_bytes in [0, 9, (64 << 10) + 1] {
        let spec = Spec {
            key_bytes,
            ..spec("overwrite")
        };
        let error = run_stoppable(&Memory, &spec, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("from 10"), "{error}");
    }
}

#[test]
fn the_yardstick_runs_with_any_keys_values_and_seed() {
    for test in TESTS() {
        let spec = Spec {
            key_bytes: 16,
            value_bytes: 100,
            seed: 7,
            ..spec(test.name)
        };
        let row = run_stoppable(&Null, &spec, &AtomicBool::new(false)).unwrap();
        assert!(row.is_good(), "{}: {:?}", test.name, row.error_messages);
    }
}

#[test]
fn operation_bounded_tests_do_all_their_operations() {
    for (test, ops) in [
        ("bulkload-random", 3_000),
        ("bulkload-sequential", 3_000),
        ("overwrite", 6_000),
        ("fillbatch", 3_000),
        ("deleterandom", 3_000),
        ("readseq", 3_000),
        ("readseq-overwritten", 3_000),
        ("readreverse", 3_000),
    ] {
        assert_eq!(run(&Memory, test).unwrap().ops, ops, "{test}");
    }
}

/// Stops at the first word of progress in `phase` of a test that would take hours.
fn run_until(phase: &str, test: &str) -> Result<Row> {
    let spec = Spec {
        seconds: 3600.0,
        cap_seconds: 3600.0,
        passes: 1e9,
        ..spec(test)
    };
    let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let context = Context {
        stop: &stop,
        tell: &|progress| stop.store(progress.phase == phase, Ordering::Relaxed),
        dir: dir.path().to_owned(),
        load_elsewhere: None,
        group: None,
    };
    suite::run(&Null, "default", &spec, &context)
}

#[test]
fn stopping_keeps_what_was_measured() {
    let row = run_until("measuring", "overwrite").unwrap();
    assert!(row.partial && row.ops > 0 && row.ops_per_s > 0.0);
    assert_eq!(row.errors, 0);
}

#[test]
fn stopping_before_anything_was_measured_gives_no_row() {
    assert_eq!(
        run_until("warming up", "readrandom").unwrap_err().kind(),
        Kind::Stopped
    );
}

#[test]
fn the_time_cap_is_said() {
    let capped = Spec {
        cap_seconds: 0.02,
        rows: 300_000,
        passes: 1_000.0,
        ..spec("overwrite")
    };
    let row = run_stoppable(&Null, &capped, &AtomicBool::new(false)).unwrap();
    assert!(row.capped && !row.partial && row.ops > 0);
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(run(&Memory, "fillslowly").unwrap_err().kind(), Kind::Usage);
    let none = Spec {
        rows: 0,
        ..spec("overwrite")
    };
    assert_eq!(
        run_stoppable(&Memory, &none, &AtomicBool::new(false))
            .unwrap_err()
            .kind(),
        Kind::Usage
    );
}

/// How an engine is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Some writes have no effect, but say they had.
    LosesWrites,
    /// A value comes back with a flipped bit now and then.
    GarblesValues,
    /// Reads now and then find nothing.
    MissesReads,
    /// Some deletes have no effect.
    LosesDeletes,
    /// A scan leaves out a row.
    SkipsRows,
    /// Values of other rows come back.
    MixesRows,
    /// Writes fail after a while.
    FailsWrites,
    /// Keys of another length are refused; those that are read between two rows end in a dot more.
    RefusesKeysOtherThan(usize),
}

struct BrokenSession<'a> {
    inner: Box<dyn Session + 'a>,
    database: &'a BrokenDatabase<Fault>,
}

impl broken::Fault for Fault {
    fn session<'a>(
        database: &'a BrokenDatabase<Self>,
        inner: Box<dyn Session + 'a>,
    ) -> Box<dyn Session + 'a> {
        Box::new(BrokenSession { inner, database })
    }
}

impl BrokenSession<'_> {
    fn strikes(&self, fault: Fault) -> bool {
        self.database.strikes(fault)
    }

    fn check_length(&self, key: &[u8]) -> Result<()> {
        let key = key.strip_suffix(b".").unwrap_or(key);
        match self.database.fault {
            Fault::RefusesKeysOtherThan(bytes) if bytes != key.len() => {
                Err(Error::engine(format!("a key of {} bytes", key.len())))
            }
            _ => Ok(()),
        }
    }
}

impl Session for BrokenSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.check_length(key)?;
        if self.strikes(Fault::FailsWrites) {
            return Err(Error::engine("the disk is on fire"));
        }
        if self.strikes(Fault::LosesWrites) {
            return Ok(());
        }
        self.inner.put(key, value, durability)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        rows.iter()
            .try_for_each(|(key, value)| self.put(key, value, durability))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check_length(key)?;
        if self.strikes(Fault::MissesReads) {
            return Ok(false);
        }
        let garble = self.strikes(Fault::GarblesValues);
        let mut other = key.to_vec();
        if self.strikes(Fault::MixesRows) {
            other[9] = if other[9] == b'0' { b'1' } else { b'0' };
        }
        self.inner.get(&other, &mut |value| {
            let mut value = value.to_vec();
            value[700] ^= u8::from(garble);
            found(&value);
        })
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.check_length(key)?;
        if self.strikes(Fault::LosesDeletes) {
            return Ok(());
        }
        self.inner.delete(key, durability)
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if let Start::At(key) = start {
            self.check_length(key)?;
        }
        let skips = self.database.fault == Fault::SkipsRows;
        let mut seen = 0;
        self.inner.scan(start, &mut |key, value| {
            seen += 1;
            (skips && seen == 4) || row(key, value)
        })
    }
}

#[test]
fn broken_engines_fail_the_run() {
    for (fault, test) in [
        (Fault::LosesWrites, "bulkload-random"),
        (Fault::LosesWrites, "bulkload-sequential"),
        (Fault::LosesWrites, "fillbatch"),
        (Fault::LosesWrites, "overwrite"),
        (Fault::LosesWrites, "readrandom"),
        (Fault::LosesWrites, "readwhilewriting"),
        (Fault::LosesWrites, "updaterandom"),
        (Fault::GarblesValues, "readrandom"),
        (Fault::GarblesValues, "readhot"),
        (Fault::GarblesValues, "overwrite"),
        (Fault::GarblesValues, "readwhilewriting"),
        (Fault::MissesReads, "readrandom"),
        (Fault::MissesReads, "updaterandom"),
        (Fault::MixesRows, "readrandom"),
        (Fault::MixesRows, "readwhilewriting-paced"),
        (Fault::LosesDeletes, "deleterandom"),
        (Fault::SkipsRows, "seekrandom"),
        (Fault::SkipsRows, "readseq"),
        (Fault::SkipsRows, "readreverse"),
        (Fault::SkipsRows, "readseq-overwritten"),
        (Fault::LosesWrites, "readseq-overwritten"),
        (Fault::FailsWrites, "overwrite"),
        (Fault::FailsWrites, "readwhilewriting"),
    ] {
        let row = run_until_it_fails(&Broken(fault), test);
        assert!(row.errors > 0, "{fault:?} went unnoticed in {test}");
        assert!(!row.is_good() && !row.error_messages[0].is_empty());
    }
}

#[test]
fn what_an_engine_cannot_do_is_no_failure() {
    // `Broken` has no merge: the row is left out, not failed.
    assert_eq!(
        run(&Broken(Fault::SkipsRows), "mergerandom").unwrap_err().kind(),
        Kind::Unsupported
    );
}
