//! A bank over transactions: money moves between accounts, and each transfer leaves a row in a journal. So whatever is left of
//! a run, the sum is what it was, and the accounts are what the journal makes of them: each transfer happened as a whole or
//! not at all.
//!
//! An account without a row has what it had at first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use esker::{ColumnFamily, Db, ErrorKind, Mutation, ReadOptions, Result};
use esker_txn::{LockMode, Transaction, TransactionDb, TransactionOptions};

use crate::crash::family_options;
use crate::runner::scan;

/// How many accounts there are.
pub const ACCOUNTS: usize = 24;

/// What an account has at first.
pub const START: i64 = 1000;

/// Money that moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// No other transfer has it; a transaction is prepared under it.
    pub name: String,
    /// The account that pays.
    pub from: usize,
    /// Another one.
    pub to: usize,
    /// How much.
    pub amount: i64,
    /// Whether the account that is paid into is removed as a range and made anew.
    pub by_range: bool,
}

/// The families of a bank: accounts, journal.
pub struct Families {
    /// Balances by account.
    pub accounts: ColumnFamily,
    /// Transfers by name.
    pub journal: ColumnFamily,
}

impl Families {
    /// Those of this database, which are made if they are missing.
    pub fn of(db: &Db) -> Result<Self> {
        let journal = match db.column_family("journal") {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                db.create_column_family("journal", family_options())?
            }
            found => found?,
        };
        Ok(Self {
            accounts: db.default_column_family(),
            journal,
        })
    }
}

/// The key of an account.
pub fn account(number: usize) -> Vec<u8> {
    format!("account{number:04}").into_bytes()
}

/// A balance and some weight, so that memtables fill.
fn balance_row(balance: i64) -> Vec<u8> {
    format!("{balance} {}", "x".repeat(200)).into_bytes()
}

fn balance(row: Option<&[u8]>) -> i64 {
    let Some(row) = row else {
        return START;
    };
    let text = String::from_utf8_lossy(row);
    let number = text.split(' ').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("an account holds '{text}'"))
}

impl Transfer {
    /// Makes all its reads and writes.
    pub fn make(&self, transaction: &mut Transaction, families: &Families) -> Result<()> {
        let Families { accounts, journal } = families;
        let mut read = |number: usize| -> Result<i64> {
            let row = transaction.get_for_update(accounts, &account(number), LockMode::Exclusive)?;
            Ok(balance(row.as_deref()))
        };
        let (left, before) = (read(self.from)? - self.amount, read(self.to)?);
        transaction.put(accounts, &account(self.from), &balance_row(left))?;
        if self.by_range {
            let (start, mut end) = (account(self.to), account(self.to));
            end.push(0);
            transaction.delete_range(accounts, &start, &end)?;
        }
        let row = balance_row(before + self.amount);
        transaction.put(accounts, &account(self.to), &row)?;
        let row = format!("{} {} {}", self.from, self.to, self.amount);
        transaction.put(journal, self.name.as_bytes(), row.as_bytes())
    }

    /// The keys that it writes, with the numbers of their families.
    pub fn keys(&self, families: &Families) -> Vec<(u32, Vec<u8>)> {
        let accounts = families.accounts.id();
        vec![
            (accounts, account(self.from)),
            (accounts, account(self.to)),
            (families.journal.id(), self.name.clone().into_bytes()),
        ]
    }
}

/// What the bank holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// By account; those that differ from [`START`].
    pub balances: BTreeMap<usize, i64>,
    /// Names of the transfers that have happened.
    pub journal: BTreeSet<String>,
}

impl Books {
    /// What they come to be by a transfer.
    pub fn add(&mut self, transfer: &Transfer) {
        self.journal.insert(transfer.name.clone());
        self.change(transfer.from, -transfer.amount);
        self.change(transfer.to, transfer.amount);
    }

    fn change(&mut self, number: usize, by: i64) {
        let balance = self.balances.entry(number).or_insert(START);
        *balance += by;
        if *balance == START {
            self.balances.remove(&number);
        }
    }

    /// What a database holds. It is an error if the sum is not what it was, or the accounts are not what the journal
    /// makes of them.
    pub fn read(db: &Db) -> std::result::Result<Self, String> {
        let bad = |error: esker::Error| format!("the books can't be read: {error:?}");
        let families = Families::of(db).map_err(bad)?;
        let rows = |family| scan(db, family, ReadOptions::default()).map_err(bad);
        let mut found = Self::default();
        for (key, row) in rows(&families.accounts)? {
            let text = String::from_utf8_lossy(&key).into_owned();
            let number = text
                .strip_prefix("account")
                .and_then(|number| number.parse().ok());
            let number = number.ok_or_else(|| format!("there is an account '{text}'"))?;
            if balance(Some(&row)) != START {
                found.balances.insert(number, balance(Some(&row)));
            }
        }
        let mut journal = Self::default();
        for (key, row) in rows(&families.journal)? {
            let name = String::from_utf8_lossy(&key).into_owned();
            let text = String::from_utf8_lossy(&row).into_owned();
            let numbers: Vec<i64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [from, to, amount] = numbers[..] else {
                return Err(format!("the journal says '{text}' of '{name}'"));
            };
            journal.add(&Transfer {
                name,
                from: from as usize,
                to: to as usize,
                amount,
                by_range: false,
            });
        }
        let sum: i64 = found.balances.values().map(|balance| balance - START).sum();
        if sum != 0 {
            return Err(format!("there is {sum} more than at first"));
        }
        found.journal.clone_from(&journal.journal);
        if found != journal {
            return Err(format!(
                "the accounts are {:?}, and by the journal {:?}",
                found.balances, journal.balances
            ));
        }
        Ok(found)
    }
}

/// Every key that a prepared transaction would write can be written by nobody else; what it removes as a range as well. How many
/// keys and ranges these are.
pub fn check_locked(db: &TransactionDb, name: &[u8]) -> std::result::Result<usize, String> {
    let shown = name.escape_ascii();
    let Some(batch) = db.db().prepared_named(name) else {
        return Err(format!("'{shown}' is not prepared"));
    };
    for mutation in batch.mutations() {
        let (family, key) = match mutation {
            Mutation::Put { family, key, .. } => (family, key),
            Mutation::DeleteRange { family, start, .. } => (family, start),
            other => return Err(format!("no transfer makes {other:?}")),
        };
        let family = db.db().column_family_by_id(family);
        let family = family.map_err(|error| format!("{error:?}"))?;
        if !is_locked(db, &family, key)? {
            return Err(format!(
                "{} is written by '{shown}', which is prepared, and is not locked",
                key.escape_ascii()
            ));
        }
    }
    Ok(batch.len())
}

/// Whether a key can't be written now.
pub fn is_locked(db: &TransactionDb, family: &ColumnFamily, key: &[u8]) -> std::result::Result<bool, String> {
    let not_at_all = TransactionOptions {
        lock_timeout: Some(Duration::ZERO),
        ..TransactionOptions::default()
    };
    match db.begin(&not_at_all).put(family, key, b"") {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(true),
        Err(error) => Err(format!("{error:?}")),
    }
}
