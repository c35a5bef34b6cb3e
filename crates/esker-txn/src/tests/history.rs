//! Random transactions of many threads, whose reads and writes are held against what their isolation promises.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use esker::{ReadOptions, Result};
use esker_env::Random;
use esker_env::mem::SeededRandom;

use super::graph::{Committed, Version, check};
use super::{Database, open, patient};
use crate::{Isolation, LockMode, SnapshotTime, Transaction, TransactionOptions};

const THREADS: u64 = 8;
const ROUNDS: u64 = 400;
const KEYS: u64 = 6;

#[derive(Clone, Copy)]
struct Promise {
    with_locks: bool,
    isolation: Isolation,
    /// All reads are for update, all scans of locked ranges.
    protected: bool,
}

fn version(value: Option<&[u8]>) -> Version {
    value.map_or(0, |value| std::str::from_utf8(value).unwrap().parse().unwrap())
}

/// A transaction, and what it has seen and done.
struct Recorder<'a> {
    database: &'a Database,
    transaction: Transaction,
    protected: bool,
    /// What keys held when they were first read.
    seen: BTreeMap<u8, Version>,
    written: BTreeMap<u8, Version>,
    /// Reads of a key that had changed since, which a transaction without snapshot may see.
    again: Vec<(u8, Version)>,
}

impl Recorder<'_> {
    fn note(&mut self, key: u8, version: Version) {
        if let Some(own) = self.written.get(&key) {
            assert_eq!(version, *own, "it reads its own write");
        } else if *self.seen.entry(key).or_insert(version) != version {
            self.again.push((key, version));
        }
    }

    fn read(&mut self, key: u8, mode: LockMode) -> Result<()> {
        let family = self.database.family();
        let value = match self.protected {
            true => self.transaction.get_for_update(&family, &[key], mode)?,
            false => self.transaction.get(&family, &[key])?,
        };
        self.note(key, version(value.as_deref()));
        Ok(())
    }

    fn scan(&mut self, from: u8, to: u8) -> Result<()> {
        let family = self.database.family();
        if self.protected {
            self.transaction
                .lock_range(&family, &[from], Some(&[to]), LockMode::Shared)?;
        }
        let bounds = ReadOptions {
            lower_bound: Some(vec![from]),
            upper_bound: Some(vec![to]),
            ..ReadOptions::default()
        };
        let mut iter = self.transaction.iter(&family, bounds)?;
        let mut found: BTreeMap<u8, Version> = (from..to).map(|key| (key, 0)).collect();
        iter.seek_to_last()?;
        while iter.valid() {
            found.insert(iter.key()[0], version(Some(iter.value())));
            iter.prev()?;
        }
        for (key, version) in found {
            self.note(key, version);
        }
        Ok(())
    }

    fn write(&mut self, key: u8, value: Version) -> Result<()> {
        self.read(key, LockMode::Exclusive)?;
        let text = value.to_string();
        self.transaction
            .put(&self.database.family(), &[key], text.as_bytes())?;
        self.written.insert(key, value);
        Ok(())
    }

    /// Reads a key before the other one has written it, and writes it then.
    fn meet(&mut self, both: &Barrier, last_value: &AtomicU64) -> Result<bool> {
        self.read(0, LockMode::Shared)?;
        both.wait();
        self.write(0, last_value.fetch_add(1, Ordering::Relaxed) + 1)?;
        self.transaction.commit()?;
        Ok(true)
    }

    /// Whether it was committed.
    fn run(&mut self, random: &SeededRandom, last_value: &AtomicU64) -> Result<bool> {
        let steps = 1 + random.next_u64() % 5;
        for _ in 0..steps {
            let key = (random.next_u64() % KEYS) as u8;
            match random.next_u64() % 8 {
                0 => self.scan(key, KEYS as u8)?,
                1..4 => self.read(key, LockMode::Shared)?,
                4 => {
                    // A statement that is taken back leaves nothing behind.
                    self.transaction.set_save_point()?;
                    let text = u64::MAX.to_string();
                    self.transaction
                        .put(&self.database.family(), &[key], text.as_bytes())?;
                    assert!(self.transaction.roll_back_to_save_point()?);
                }
                _ => self.write(key, last_value.fetch_add(1, Ordering::Relaxed) + 1)?,
            }
            std::thread::yield_now();
        }
        if random.next_u64().is_multiple_of(8) {
            self.transaction.roll_back().unwrap();
            return Ok(false);
        }
        self.transaction.commit()?;
        Ok(true)
    }
}

/// What the transactions of a run have done.
#[derive(Default)]
struct History {
    committed: Mutex<Vec<Committed>>,
    last_value: AtomicU64,
    given_up: AtomicU64,
}

impl History {
    /// Runs a transaction and notes it, unless it gives up.
    fn note(
        &self,
        promise: Promise,
        database: &Database,
        options: &TransactionOptions,
        run: impl FnOnce(&mut Recorder<'_>) -> Result<bool>,
    ) {
        let mut recorder = Recorder {
            database,
            transaction: database.begin(options),
            protected: promise.protected,
            seen: BTreeMap::new(),
            written: BTreeMap::new(),
            again: Vec::new(),
        };
        let is_committed = run(&mut recorder).unwrap_or_else(|error| {
            assert!(error.kind().is_retryable(), "{error}");
            self.given_up.fetch_add(1, Ordering::Relaxed);
            false
        });
        if !is_committed {
            return;
        }
        let Recorder {
            seen,
            written,
            mut again,
            ..
        } = recorder;
        assert!(
            again.is_empty() || !promise.protected && promise.isolation == Isolation::ReadCommitted,
            "a key has changed while it was read"
        );
        let writes = written.iter().map(|(key, new)| (*key, seen[key], *new));
        let writes = writes.collect();
        again.extend(seen);
        let reads = again;
        self.committed.lock().unwrap().push(Committed { reads, writes });
    }
}

/// What was committed, and how many gave up.
fn histories(promise: Promise, seed: u64) -> (Vec<Committed>, u64) {
    let (database, _env) = open(promise.with_locks, &patient());
    let history = History::default();
    // On a busy machine the threads may run one after the other. Two meet first: of them one gives up in any case.
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let options = TransactionOptions {
                    snapshot: SnapshotTime::Begin,
                    ..TransactionOptions::isolation(promise.isolation)
                };
                history.note(promise, &database, &options, |recorder| {
                    recorder.meet(&both, &history.last_value)
                });
            });
        }
    });
    assert_eq!(history.given_up.load(Ordering::Relaxed), 1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, history) = (&database, &history);
            scope.spawn(move || {
                let random = SeededRandom::new(seed * THREADS + thread + 1);
                let mut options = TransactionOptions::isolation(promise.isolation);
                for _ in 0..ROUNDS {
                    options.snapshot = match random.next_u64() % 2 {
                        0 => SnapshotTime::Begin,
                        _ => SnapshotTime::FirstOperation,
                    };
                    history.note(promise, database, &options, |recorder| {
                        recorder.run(&random, &history.last_value)
                    });
                }
            });
        }
    });
    assert!(database.running().is_empty());
    let committed = history.committed.into_inner().unwrap();
    (committed, history.given_up.into_inner())
}

fn hold(promise: Promise, serialisable: bool) {
    for seed in 1..=3 {
        let (history, given_up) = histories(promise, seed);
        check(&history, serialisable).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        assert!(
            history.len() as u64 > THREADS * ROUNDS / 10,
            "{} were committed",
            history.len()
        );
        assert!(given_up > 0, "nothing was contended");
    }
}

#[test]
fn locked_reads_are_serialisable_without_a_snapshot() {
    hold(
        Promise {
            with_locks: true,
            isolation: Isolation::ReadCommitted,
            protected: true,
        },
        true,
    );
}

#[test]
fn locked_reads_are_serialisable_with_a_snapshot() {
    hold(
        Promise {
            with_locks: true,
            isolation: Isolation::RepeatableRead,
            protected: true,
        },
        true,
    );
}

#[test]
fn plain_reads_with_locks_are_of_snapshot_isolation() {
    hold(
        Promise {
            with_locks: true,
            isolation: Isolation::RepeatableRead,
            protected: false,
        },
        false,
    );
}

#[test]
fn optimistic_reads_for_update_are_serialisable() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        hold(
            Promise {
                with_locks: false,
                isolation,
                protected: true,
            },
            true,
        );
    }
}

#[test]
fn plain_optimistic_reads_are_of_snapshot_isolation() {
    hold(
        Promise {
            with_locks: false,
            isolation: Isolation::RepeatableRead,
            protected: false,
        },
        false,
    );
}
