//! Durable steps: those that come while another write is committed share a sync.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{ColumnFamilyOptions, Comparator, Durability, KeyOrder, Opener, Options, Result, WriteOptions};
use esker_env::Env;

use super::Database;
use crate::lock::hash_key;
use crate::{OptimisticDb, Transaction, TransactionDb, TransactionOptions, TransactionSettings};

const THREADS: usize = 8;
const ROUNDS: u64 = 20;

thread_local! {
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
}

/// The order of bytes. The insert of a thread that is held waits in it, while it leads the commits.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    is_reached: AtomicBool,
}

impl Comparator for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        while IS_HELD.get() && !self.is_open.load(Ordering::SeqCst) {
            self.is_reached.store(true, Ordering::SeqCst);
            std::thread::yield_now();
        }
        a.cmp(b)
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// Takes a step with each transaction, while another write is being committed, and lets that end when all of them wait.
fn step_together(
    database: &Database,
    gate: &Gate,
    transactions: &mut [Transaction],
    step: fn(&mut Transaction) -> Result<()>,
) {
    gate.is_open.store(false, Ordering::SeqCst);
    gate.is_reached.store(false, Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            IS_HELD.set(true);
            database.db().put(b"held", b"value").unwrap();
        });
        wait_until(|| gate.is_reached.load(Ordering::SeqCst));
        for transaction in transactions {
            scope.spawn(move || step(transaction).unwrap());
        }
        wait_until(|| database.db().stats().writers_waiting == THREADS);
        gate.is_open.store(true, Ordering::SeqCst);
    });
}

/// A key for each, of which no two hold each other up by what optimistic commits of the same shard share.
fn keys(family: u32) -> Vec<[u8; 8]> {
    let part = |key: &[u8; 8]| (hash_key(family, key) >> 61) as usize;
    let of_part = |wanted| {
        let mut keys = (0_u64..).map(u64::to_be_bytes);
        keys.find(|key| part(key) == wanted).unwrap()
    };
    (0..THREADS).map(of_part).collect()
}

fn syncs(database: &Database) -> u64 {
    let counters = database.db().stats().counters;
    let found = counters.iter().find(|(name, _)| *name == "wal_syncs");
    found.unwrap().1
}

fn steps_share_a_sync(with_locks: bool, steps: &[fn(&mut Transaction) -> Result<()>]) {
    let gate = Arc::new(Gate::default());
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: ColumnFamilyOptions {
            key_order: KeyOrder::Custom(Arc::clone(&gate) as Arc<dyn Comparator>),
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(Env::simulated(5).0).open("db").unwrap();
    // Inserts compare keys where there are some.
    db.put(b"first", b"value").unwrap();
    let settings = TransactionSettings::default();
    let database = match with_locks {
        true => Database::Locks(TransactionDb::new(db, &settings).unwrap()),
        false => Database::Optimistic(OptimisticDb::new(db, &settings).unwrap()),
    };
    let family = database.family();
    let options = TransactionOptions {
        write: WriteOptions::durability(Durability::Sync),
        ..TransactionOptions::default()
    };
    let keys = keys(family.id());
    let mut transactions: Vec<_> = keys.iter().map(|_| database.begin(&options)).collect();
    let before = syncs(&database);
    for _ in 0..ROUNDS {
        for (transaction, key) in transactions.iter_mut().zip(&keys) {
            transaction.restart(&options);
            transaction.put(&family, key, b"value").unwrap();
            if steps.len() > 1 {
                transaction.set_name(key).unwrap();
            }
        }
        for step in steps {
            step_together(&database, &gate, &mut transactions, *step);
        }
    }
    assert_eq!(syncs(&database) - before, ROUNDS * steps.len() as u64);
}

#[test]
fn eight_commits_with_locks_share_a_sync() {
    steps_share_a_sync(true, &[Transaction::commit]);
}

#[test]
fn eight_optimistic_commits_share_a_sync() {
    steps_share_a_sync(false, &[Transaction::commit]);
}

#[test]
fn eight_prepares_share_a_sync_and_so_do_their_commits() {
    steps_share_a_sync(true, &[Transaction::prepare, Transaction::commit]);
}
