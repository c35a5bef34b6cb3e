//! Moves money for ever on three threads, and says what was acknowledged, until it is killed: the child of the test
//! `kill_bank`.
//!
//! `esker-bank-child <folder> <round> <seed> <locks | optimistic>`: the transfer of a name happens by a transaction of that kind. It prints
//!
//! | line | the transfer |
//! |---|---|
//! | `c NAME` | is committed |
//! | `r NAME` | is rolled back |
//! | `p NAME` | is prepared; it will be committed or rolled back |
//! | `l NAME` | is prepared, and nobody will touch it |

use std::error::Error;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use esker::{Durability, Opener, Result, WriteOptions};
use esker_testkit::bank::{ACCOUNTS, Families, Transfer};
use esker_testkit::crash;
use esker_testkit::random::Rng;
use esker_txn::{
    Isolation, OptimisticDb, Transaction, TransactionDb, TransactionOptions, TransactionSettings,
};

const THREADS: u64 = 3;
/// Transactions that stay prepared for good: their accounts are locked for the rest of this child's life.
const LEFT_MAX: usize = 3;

enum Bank {
    Locks(TransactionDb),
    Optimistic(OptimisticDb),
}

impl Bank {
    fn db(&self) -> &esker::Db {
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
}

struct Teller<'a> {
    bank: &'a Bank,
    families: &'a Families,
    left: &'a AtomicUsize,
    rng: Rng,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, round, seed, kind] = args.as_slice() else {
        return Err("usage: esker-bank-child <folder> <round> <seed> <locks | optimistic>".into());
    };
    let (settings, opener) = (TransactionSettings::default(), Opener::new(crash::options()));
    let bank = match kind.as_str() {
        "locks" => Bank::Locks(TransactionDb::open(opener, dir, &settings)?),
        _ => Bank::Optimistic(OptimisticDb::open(opener, dir, &settings)?),
    };
    let (families, left, seed) = (
        Families::of(bank.db())?,
        AtomicUsize::new(0),
        seed.parse::<u64>()?,
    );
    std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let mut teller = Teller {
                    bank: &bank,
                    families: &families,
                    left: &left,
                    rng: Rng::new(seed * THREADS + thread),
                };
                scope.spawn(move || {
                    for number in 0_u64.. {
                        teller.transfer(format!("{round} {thread} {number}"))?;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut results = tellers.into_iter().map(|teller| {
            teller
                .join()
                .unwrap_or_else(|_| Err(esker::Error::bug("a teller panicked")))
        });
        results.try_for_each(|result| result)
    })?;
    Ok(())
}

/// The pipe is written through at once: an acknowledgement that is lost would only weaken the test.
fn say(letter: char, name: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{letter} {name}")
        .map_err(|error| esker::Error::invalid(error.to_string()))
}

impl Teller<'_> {
    fn transfer(&mut self, name: String) -> Result<()> {
        let durability = match self.rng.one_in(20) {
            true => Durability::Sync,
            false => Durability::Buffered,
        };
        let options = TransactionOptions {
            isolation: self
                .rng
                .pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead]),
            lock_timeout: Some(Duration::from_millis(5)),
            write: WriteOptions::durability(durability),
            ..TransactionOptions::default()
        };
        let from = self.rng.below(ACCOUNTS);
        let transfer = Transfer {
            name,
            from,
            to: (from + 1 + self.rng.below(ACCOUNTS - 1)) % ACCOUNTS,
            amount: 1 + self.rng.below(50) as i64,
            by_range: self.rng.one_in(4),
        };
        let mut transaction = self.bank.begin(&options);
        let made = transfer.make(&mut transaction, self.families);
        let ended = made.and_then(|()| self.end(transaction, &transfer.name));
        match ended {
            // Others were faster: it never happened.
            Err(error) if error.kind().is_retryable() => {}
            ended => ended?,
        }
        match self.rng.below(400) {
            0 => self.bank.db().flush(),
            1 => self.bank.db().compact_range(None, None),
            2 => self.bank.db().sync_wal(),
            _ => Ok(()),
        }
    }

    fn end(&mut self, mut transaction: Transaction, name: &str) -> Result<()> {
        let commits = !self.rng.one_in(4);
        if let Bank::Locks(db) = self.bank
            && self.rng.one_in(2)
        {
            transaction.set_name(name)?;
            transaction.prepare()?;
            if self.rng.one_in(20) && self.left.fetch_add(1, Ordering::Relaxed) < LEFT_MAX {
                return say('l', name);
            }
            say('p', name)?;
            if self.rng.one_in(3) {
                drop(transaction);
                transaction = db.prepared_transaction(name.as_bytes())?;
            }
        }
        if commits {
            transaction.commit()?;
            say('c', name)
        } else {
            transaction.roll_back()?;
            say('r', name)
        }
    }
}
