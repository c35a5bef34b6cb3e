//! Transactions of Esker: with locks and optimistic ones, through the interface of `esker-txn`.

use esker::{ColumnFamily, Db, ErrorKind, PinnedValue};
use esker_lab_core::error::Kind;
use esker_lab_core::transaction::{Begin, Control, TransactionSession};
use esker_lab_core::{Error, Result};
use esker_txn::{
    Isolation, LockMode, OptimisticDb, SnapshotTime, Transaction, TransactionDb, TransactionOptions,
    TransactionSettings,
};

use super::durable;

/// A database that was opened for transactions of one kind.
pub(super) enum Transactions {
    Locks(TransactionDb),
    Optimistic(OptimisticDb),
}

/// An error, with the kind of what was lost, if it is one that another try mends.
fn failed(what: &str, error: &esker::Error) -> Error {
    let kind = match error.kind() {
        ErrorKind::Conflict => Kind::Conflict,
        ErrorKind::Deadlock => Kind::Deadlock,
        ErrorKind::TimedOut => Kind::TimedOut,
        _ => Kind::Engine,
    };
    Error::new(kind, format!("{what}: {error}"))
}

impl Transactions {
    /// All settings are the defaults: `applied` hears of them.
    pub(super) fn new(db: &Db, control: Control, applied: &mut Vec<(String, String)>) -> Result<Self> {
        let settings = TransactionSettings::default();
        applied.push(("transactions".to_owned(), control.name().to_owned()));
        let opened = match control {
            Control::Locks => {
                applied.push(("locks".to_owned(), format!("{:?}", settings.locks)));
                TransactionDb::new(db.clone(), &settings).map(Transactions::Locks)
            }
            Control::Optimistic => OptimisticDb::new(db.clone(), &settings).map(Transactions::Optimistic),
        };
        opened.map_err(|error| failed("opening", &error))
    }

    pub(super) fn session(&self, family: ColumnFamily) -> Box<dyn TransactionSession + '_> {
        Box::new(Work {
            database: self,
            family,
            begin: None,
            transaction: None,
        })
    }

    fn begin(&self, options: &TransactionOptions) -> Transaction {
        match self {
            Transactions::Locks(db) => db.begin(options),
            Transactions::Optimistic(db) => db.begin(options),
        }
    }
}

fn options(begin: Begin) -> TransactionOptions {
    TransactionOptions {
        isolation: if begin.snapshot {
            Isolation::RepeatableRead
        } else {
            Isolation::ReadCommitted
        },
        snapshot: SnapshotTime::Begin,
        write: durable(begin.durability),
        ..TransactionOptions::default()
    }
}

struct Work<'a> {
    database: &'a Transactions,
    family: ColumnFamily,
    /// How the last one was begun, to begin the next one like it.
    begin: Option<(Begin, TransactionOptions)>,
    /// One object for all.
    transaction: Option<Transaction>,
}

impl Work<'_> {
    fn running(transaction: &mut Option<Transaction>) -> Result<&mut Transaction> {
        transaction
            .as_mut()
            .ok_or_else(|| Error::usage("no transaction was begun"))
    }
}

/// Hands a value that was read to whoever asked for it.
fn hand(what: &str, read: esker::Result<Option<PinnedValue>>, found: &mut dyn FnMut(&[u8])) -> Result<bool> {
    let value = read.map_err(|error| failed(what, &error))?;
    if let Some(value) = &value {
        found(value);
    }
    Ok(value.is_some())
}

impl TransactionSession for Work<'_> {
    fn begin(&mut self, begin: Begin) -> Result<()> {
        if self.begin.as_ref().is_none_or(|(last, _)| *last != begin) {
            self.begin = Some((begin, options(begin)));
        }
        if let Some((_, options)) = &self.begin {
            match &mut self.transaction {
                Some(transaction) => transaction.restart(options),
                None => self.transaction = Some(self.database.begin(options)),
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let read = Self::running(&mut self.transaction)?.get(&self.family, key);
        hand("get", read, found)
    }

    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = Self::running(&mut self.transaction)?;
        let read = transaction.get_for_update(&self.family, key, LockMode::Exclusive);
        hand("get for update", read, found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Self::running(&mut self.transaction)?
            .put(&self.family, key, value)
            .map_err(|error| failed("put", &error))
    }

    fn commit(&mut self) -> Result<()> {
        Self::running(&mut self.transaction)?
            .commit()
            .map_err(|error| failed("commit", &error))
    }

    fn roll_back(&mut self) -> Result<()> {
        Self::running(&mut self.transaction)?
            .roll_back()
            .map_err(|error| failed("roll back", &error))
    }
}
