//! Money that moves between accounts on many threads: the sum never changes, for whoever looks and whenever.

use std::sync::atomic::{AtomicU64, Ordering};

use esker::{ReadOptions, Result};
use esker_env::Random;
use esker_env::mem::SeededRandom;

use super::{Database, open, patient};
use crate::{Isolation, LockMode, Transaction, TransactionOptions};

const ACCOUNTS: u64 = 20;
const START: u64 = 100;
const THREADS: u64 = 6;

fn account(i: u64) -> [u8; 2] {
    [b'a', i as u8]
}

fn money(value: Option<&[u8]>) -> u64 {
    u64::from_be_bytes(value.unwrap().try_into().unwrap())
}

/// All accounts, as one transaction sees them.
fn sum(transaction: &mut Transaction, database: &Database) -> u64 {
    let mut iter = transaction
        .iter(&database.family(), ReadOptions::default())
        .unwrap();
    let mut sum = 0;
    iter.seek_to_first().unwrap();
    while iter.valid() {
        sum += money(Some(iter.value()));
        iter.next().unwrap();
    }
    sum
}

/// Moves some money from one account to another.
fn transfer(transaction: &mut Transaction, database: &Database, random: &SeededRandom) -> Result<()> {
    let family = database.family();
    let from = random.next_u64() % ACCOUNTS;
    let to = (from + 1 + random.next_u64() % (ACCOUNTS - 1)) % ACCOUNTS;
    let mode = LockMode::Exclusive;
    let left = money(
        transaction
            .get_for_update(&family, &account(from), mode)?
            .as_deref(),
    );
    let amount = random.next_u64() % (left + 1);
    transaction.put(&family, &account(from), &(left - amount).to_be_bytes())?;
    let before = money(
        transaction
            .get_for_update(&family, &account(to), mode)?
            .as_deref(),
    );
    transaction.set_save_point()?;
    transaction.delete_range(&family, &account(to), &account(to + 1))?;
    if random.next_u64().is_multiple_of(2) {
        transaction.roll_back_to_save_point()?;
    }
    transaction.put(&family, &account(to), &(before + amount).to_be_bytes())?;
    let commits = !random.next_u64().is_multiple_of(10);
    if let Database::Locks(db) = database
        && random.next_u64().is_multiple_of(3)
    {
        let name = transaction.id().to_string();
        transaction.set_name(&name)?;
        transaction.prepare()?;
        if commits {
            // By another object, while this one is another transaction.
            transaction.restart(&TransactionOptions::default());
            return db.prepared_transaction(name.as_bytes())?.commit();
        }
    }
    if commits {
        transaction.commit()
    } else {
        transaction.roll_back()
    }
}

fn stress(with_locks: bool, isolation: Isolation) {
    let (database, _env) = open(with_locks, &patient());
    for i in 0..ACCOUNTS {
        database.put(&account(i), &START.to_be_bytes()).unwrap();
    }
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, done) = (&database, &done);
            scope.spawn(move || {
                let random = SeededRandom::new(thread + 1);
                let options = TransactionOptions::isolation(isolation);
                let look = TransactionOptions::isolation(Isolation::RepeatableRead);
                let mut transaction = database.begin(&options);
                for round in 0..300 {
                    transaction.restart(&options);
                    match transfer(&mut transaction, database, &random) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert!(error.kind().is_retryable(), "{error}");
                            0
                        }
                    };
                    if round % 10 == 0 {
                        transaction.restart(&look);
                        assert_eq!(sum(&mut transaction, database), ACCOUNTS * START);
                    }
                }
            });
        }
    });
    assert!(done.into_inner() > 0);
    assert!(database.running().is_empty());
    if let Database::Locks(db) = &database {
        assert!(db.locks().is_empty() && db.waiting().is_empty() && db.prepared().is_empty());
    }
    let mut last = database.begin(&TransactionOptions::default());
    assert_eq!(sum(&mut last, &database), ACCOUNTS * START);
}

#[test]
fn the_sum_stays_under_locks() {
    stress(true, Isolation::ReadCommitted);
    stress(true, Isolation::RepeatableRead);
}

#[test]
fn the_sum_stays_without_locks() {
    stress(false, Isolation::ReadCommitted);
    stress(false, Isolation::RepeatableRead);
}
