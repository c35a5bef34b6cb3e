//! Durable commits: many of them share a sync.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use esker::{ColumnFamilyOptions, Comparator, Durability, KeyOrder, Opener, Options, WriteOptions};
use esker_env::Env;

use super::Database;
use crate::{OptimisticDb, TransactionDb, TransactionOptions, TransactionSettings};

const THREADS: usize = 8;
const COMMITS: usize = 100;

thread_local! {
    static COMMITS_NOW: Cell<bool> = const { Cell::new(false) };
}

/// The order of bytes, in which the thread that commits for others lets these come first.
#[derive(Default)]
struct Gate {
    committing: AtomicUsize,
}

impl Comparator for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        // Bounded: at the end there are fewer.
        let mut patience = if COMMITS_NOW.get() { 100 } else { 0 };
        while patience > 0 && self.committing.load(Ordering::SeqCst) < THREADS {
            patience -= 1;
            std::thread::yield_now();
        }
        a.cmp(b)
    }
}

fn syncs(database: &Database) -> u64 {
    let counters = database.db().stats().counters;
    let found = counters.iter().find(|(name, _)| *name == "wal_syncs");
    found.unwrap().1
}

fn eight_threads_share_syncs(with_locks: bool, prepares: bool) {
    let gate = Arc::new(Gate::default());
    let env = Env::simulated(5).0;
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: ColumnFamilyOptions {
            key_order: KeyOrder::Custom(Arc::clone(&gate) as Arc<dyn Comparator>),
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(env).open("db").unwrap();
    let settings = TransactionSettings::default();
    let database = match with_locks {
        true => Database::Locks(TransactionDb::new(db, &settings).unwrap()),
        false => Database::Optimistic(OptimisticDb::new(db, &settings).unwrap()),
    };
    let before = syncs(&database);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, gate) = (&database, &gate);
            scope.spawn(move || {
                let options = TransactionOptions {
                    write: WriteOptions::durability(Durability::Sync),
                    ..TransactionOptions::default()
                };
                let mut transaction = database.begin(&options);
                for i in 0..COMMITS {
                    transaction.restart(&options);
                    let key = (i * THREADS + thread).to_be_bytes();
                    transaction.put(&database.family(), &key, b"value").unwrap();
                    gate.committing.fetch_add(1, Ordering::SeqCst);
                    COMMITS_NOW.set(true);
                    if prepares {
                        transaction.set_name(key).unwrap();
                        transaction.prepare().unwrap();
                    }
                    transaction.commit().unwrap();
                    COMMITS_NOW.set(false);
                    gate.committing.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    let (syncs, commits) = (syncs(&database) - before, (THREADS * COMMITS) as u64);
    let steps = if prepares { 2 * commits } else { commits };
    // How many share one is a matter of scheduling; without sharing each step would have its own.
    assert!(
        syncs > 0 && syncs * 8 <= steps * 7,
        "{syncs} syncs for {steps} steps"
    );
    println!("{syncs} syncs for {steps} steps");
}

#[test]
fn eight_threads_with_locks_share_syncs() {
    eight_threads_share_syncs(true, false);
}

#[test]
fn eight_optimistic_threads_share_syncs() {
    eight_threads_share_syncs(false, false);
}

#[test]
fn eight_threads_that_prepare_and_commit_share_syncs() {
    eight_threads_share_syncs(true, true);
}
