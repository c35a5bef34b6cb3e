//! Tests of both kinds of databases: scenarios by the names of anomalies, histories of many threads, a bank, durable commits.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

mod bank;
mod calls;
mod durable;
mod graph;
mod history;
mod script;
mod two_phase;

use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, Db, Opener, Options, Result, WriteBatch, WriteOptions,
};
use esker_env::Env;

use crate::lock::WaitingRequest;
use crate::{
    LockSettings, OptimisticDb, RunningTransaction, Transaction, TransactionDb, TransactionOptions,
    TransactionSettings,
};

/// A database of either kind.
#[derive(Clone)]
enum Database {
    Locks(TransactionDb),
    Optimistic(OptimisticDb),
}

impl Database {
    fn db(&self) -> &Db {
        match self {
            Self::Locks(db) => db.db(),
            Self::Optimistic(db) => db.db(),
        }
    }

    fn begin(&self, options: &TransactionOptions) -> Transaction {
        match self {
            Self::Locks(db) => db.begin(options),
            Self::Optimistic(db) => db.begin(options),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let family = self.family();
        match self {
            Self::Locks(db) => db.put(&family, key, value),
            Self::Optimistic(db) => db.put(&family, key, value),
        }
    }

    fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        match self {
            Self::Locks(db) => db.write(batch, &WriteOptions::default()),
            Self::Optimistic(db) => db.write(batch, &WriteOptions::default()),
        }
    }

    fn waiting(&self) -> Vec<WaitingRequest> {
        match self {
            Self::Locks(db) => db.waiting(),
            Self::Optimistic(_) => Vec::new(),
        }
    }

    fn running(&self) -> Vec<RunningTransaction> {
        match self {
            Self::Locks(db) => db.running(),
            Self::Optimistic(db) => db.running(),
        }
    }

    fn family(&self) -> ColumnFamily {
        self.db().default_column_family()
    }
}

/// An empty database on a simulated machine, which joins merged values by commas.
fn open(with_locks: bool, settings: &TransactionSettings) -> (Database, Env) {
    let env = Env::simulated(5).0;
    (open_in(&env, with_locks, settings), env)
}

/// The database of this machine, which is made if there is none.
fn open_in(env: &Env, with_locks: bool, settings: &TransactionSettings) -> Database {
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: ColumnFamilyOptions {
            merge_operator: Some(Arc::new(AppendOperator::new(*b","))),
            memtable_bytes: 64 << 10,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(env.clone()).open("db").unwrap();
    let clock = Arc::clone(&env.clock);
    if with_locks {
        Database::Locks(TransactionDb::with_clock(db, settings, clock).unwrap())
    } else {
        Database::Optimistic(OptimisticDb::with_clock(db, settings, clock).unwrap())
    }
}

/// Settings under which nobody's time is over before a test is.
fn patient() -> TransactionSettings {
    TransactionSettings {
        locks: LockSettings {
            timeout: std::time::Duration::from_secs(3600),
            ..LockSettings::default()
        },
        ..TransactionSettings::default()
    }
}
