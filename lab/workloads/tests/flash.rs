//! Every test runs on an engine that works, and fails on engines that lose or garble rows.

// Engines of this test fail after a while, told by a counter; the harness around them is made of threads.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use esker_lab_core::engine::{
    Compression, Database, Durability, Engine, OpenSettings, Session, Start, Variant,
};
use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result};
use esker_lab_engines::{memory::Memory, null::Null};
use esker_lab_workloads::flash::{self, TESTS};
use esker_lab_workloads::{Context, Spec};

fn spec(test: &str) -> Spec {
    Spec {
        test: test.into(),
        rows: 3_000,
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
    }
}

fn run_stoppable(engine: &dyn Engine, spec: &Spec, stop: &AtomicBool) -> Result<Row> {
    let dir = tempfile::tempdir().unwrap();
    let context = Context {
        stop,
        tell: &|_| (),
        dir: dir.path().to_owned(),
        group: None,
    };
    flash::run(engine, "default", spec, &context)
}

fn run(engine: &dyn Engine, test: &str) -> Result<Row> {
    run_stoppable(engine, &spec(test), &AtomicBool::new(false))
}

#[test]
fn every_test_runs_and_is_checked() {
    for test in TESTS {
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
fn operation_bounded_tests_do_all_their_operations() {
    for (test, ops) in [
        ("bulkload-random", 3_000),
        ("bulkload-sequential", 3_000),
        ("overwrite", 6_000),
        ("fillbatch", 3_000),
        ("deleterandom", 3_000),
        ("readseq", 3_000),
        ("readreverse", 3_000),
    ] {
        assert_eq!(run(&Memory, test).unwrap().ops, ops, "{test}");
    }
}

#[test]
fn the_harness_costs_little() {
    // Generous, for a debug build on a busy machine; an optimised one takes some 0.1 us.
    for test in ["overwrite", "readrandom"] {
        let row = run(&Null, test).unwrap();
        assert!(row.is_good(), "{:?}", row.error_messages);
        assert!(
            row.cpu_us_per_op < 20.0,
            "{test}: {} us an operation",
            row.cpu_us_per_op
        );
    }
}

#[test]
fn stopping_keeps_what_was_measured() {
    let stop = AtomicBool::new(false);
    let endless = Spec {
        seconds: 600.0,
        ..spec("fillsync")
    };
    let endless = Spec {
        rows: 1_000_000,
        ..endless
    };
    let row = std::thread::scope(|scope| {
        let run = scope.spawn(|| run_stoppable(&Null, &endless, &stop));
        std::thread::sleep(std::time::Duration::from_millis(30));
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    // Fast machines may finish all rows first; either way there is a row.
    let row = row.unwrap();
    assert!(row.partial || row.ops == 1_000_000);
    assert!(row.ops > 0);
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
}

struct Broken(Fault);

struct BrokenDatabase {
    inner: Box<dyn Database>,
    fault: Fault,
    calls: AtomicU64,
}

struct BrokenSession<'a> {
    inner: Box<dyn Session + 'a>,
    database: &'a BrokenDatabase,
}

const VARIANTS: &[Variant] = &[Variant {
    name: "default",
    about: "broken",
    default: true,
}];

impl Engine for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        Ok("0".into())
    }

    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let inner = Memory.open(dir, variant, settings)?;
        Ok(Box::new(BrokenDatabase {
            inner,
            fault: self.0,
            calls: AtomicU64::new(0),
        }))
    }
}

impl Database for BrokenDatabase {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(BrokenSession {
            inner: self.inner.session()?,
            database: self,
        }))
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.inner.compact_all()
    }

    fn is_idle(&self) -> Result<bool> {
        self.inner.is_idle()
    }

    fn stats(&self) -> String {
        self.inner.stats()
    }

    fn applied(&self) -> Vec<(String, String)> {
        self.inner.applied()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

impl BrokenSession<'_> {
    /// Whether `fault` strikes now: every fifth call.
    fn strikes(&self, fault: Fault) -> bool {
        self.database.fault == fault && self.database.calls.fetch_add(1, Ordering::Relaxed) % 5 == 4
    }
}

impl Session for BrokenSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
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
        if self.strikes(Fault::LosesDeletes) {
            return Ok(());
        }
        self.inner.delete(key, durability)
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
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
        (Fault::FailsWrites, "overwrite"),
        (Fault::FailsWrites, "readwhilewriting"),
    ] {
        let row = run(&Broken(fault), test).unwrap();
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
