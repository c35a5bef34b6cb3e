//! Transactions that are prepared on machines that stop at any call: the sum of a bank never changes, every transfer is all or
//! nothing, and what was prepared is prepared still, with its locks, until it is resolved.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use esker::{Durability, Error, Result, WriteOptions};
use esker_env::mem::{CrashMode, MemFs};
use esker_testkit::bank::{ACCOUNTS, Books, Families, Transfer, account, check_locked, is_locked};
use esker_testkit::crash::{check_files, open};
use esker_testkit::history::{History, crash_at_every_call};
use esker_testkit::{number_from_env, watchdog};
use esker_txn::{Transaction, TransactionDb, TransactionOptions, TransactionSettings};

/// What the bank may be found as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    books: Books,
    /// Names of transfers.
    prepared: BTreeSet<String>,
}

impl State {
    fn of(db: &TransactionDb) -> std::result::Result<Self, String> {
        let prepared = db.prepared();
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Ok(Self {
            books: Books::read(db.db())?,
            prepared: prepared.iter().map(|prepared| name(&prepared.name)).collect(),
        })
    }
}

fn reopen(fs: &MemFs) -> Result<TransactionDb> {
    TransactionDb::new(open(fs)?, &TransactionSettings::default())
}

/// The transfer of this number, between accounts that no other has at the same time.
fn transfer(name: &str, from: usize, amount: i64) -> Transfer {
    Transfer {
        name: name.to_owned(),
        from,
        to: from + 1,
        amount,
        by_range: amount % 2 == 1,
    }
}

/// A run and all states that it went through.
struct Run {
    db: TransactionDb,
    families: Families,
    /// What is prepared and has an object.
    open: BTreeMap<String, Transaction>,
    transfers: BTreeMap<String, Transfer>,
    history: History<State>,
}

impl Run {
    fn new(fs: &MemFs) -> Self {
        let db = reopen(fs).unwrap();
        Self {
            families: Families::of(db.db()).unwrap(),
            db,
            open: BTreeMap::new(),
            transfers: BTreeMap::new(),
            history: History::default(),
        }
    }

    fn next(&self) -> State {
        self.history.last().clone()
    }

    /// A transaction with all that a transfer writes.
    fn begin(&mut self, transfer: &Transfer, durability: Durability) -> Result<Transaction> {
        self.transfers.insert(transfer.name.clone(), transfer.clone());
        let mut transaction = self.db.begin(&TransactionOptions {
            lock_timeout: Some(Duration::ZERO),
            write: WriteOptions::durability(durability),
            ..TransactionOptions::default()
        });
        transfer.make(&mut transaction, &self.families)?;
        Ok(transaction)
    }

    fn write(&mut self, transfer: &Transfer, durability: Durability) -> Result<()> {
        let mut transaction = self.begin(transfer, durability)?;
        let mut next = self.next();
        next.books.add(transfer);
        self.history.step(next, durability, || transaction.commit())
    }

    /// Prepares a transfer; nobody `keeps` it, or its object.
    fn prepare(&mut self, transfer: &Transfer, durability: Durability, keeps: bool) -> Result<()> {
        let mut transaction = self.begin(transfer, durability)?;
        transaction.set_name(&transfer.name)?;
        let mut next = self.next();
        next.prepared.insert(transfer.name.clone());
        self.history.step(next, durability, || transaction.prepare())?;
        if keeps {
            self.open.insert(transfer.name.clone(), transaction);
        }
        Ok(())
    }

    fn resolve(&mut self, name: &str, commits: bool, durability: Durability) -> Result<()> {
        let mut transaction = match self.open.remove(name) {
            Some(transaction) => transaction,
            None => self.db.prepared_transaction(name.as_bytes())?,
        };
        transaction.set_write_options(&WriteOptions::durability(durability));
        let mut next = self.next();
        next.prepared.remove(name);
        if commits {
            next.books.add(&self.transfers[name]);
        }
        self.history.step(next, durability, || match commits {
            true => transaction.commit(),
            false => transaction.roll_back(),
        })
    }

    /// Steps of every kind, over flushes and more rotations of the log than there are segments to be used again.
    fn run(&mut self) -> Result<()> {
        use Durability::{Buffered, Sync};
        self.prepare(&transfer("long", 0, 11), Sync, true)?;
        self.prepare(&transfer("early", 2, 12), Buffered, false)?;
        self.write(&transfer("first", 22, 7), Buffered)?;
        self.resolve("early", true, Buffered)?;
        self.prepare(&transfer("kept", 4, 13), Buffered, false)?;
        self.db.db().flush()?;
        self.write(&transfer("second", 22, 8), Sync)?;
        for round in 0..6 {
            let name = format!("round {round}");
            let keeps = round % 2 == 0;
            self.prepare(
                &transfer(&name, 6 + 2 * round, 20 + round as i64),
                Buffered,
                keeps,
            )?;
            for number in 0..9 {
                let name = format!("transfer {round} {number}");
                self.write(&transfer(&name, 18 + 2 * (number % 3), number as i64), Buffered)?;
            }
            let durability = if keeps { Sync } else { Buffered };
            match round % 3 {
                0 => self.resolve(&name, true, durability)?,
                1 => self.resolve(&name, false, durability)?,
                _ => {}
            }
            match round {
                1 => self.db.db().flush_cf(&self.families.journal)?,
                3 => self.db.db().flush()?,
                _ => self.db.db().wait_idle()?,
            }
        }
        self.prepare(&transfer("last", 2, 14), Sync, true)?;
        self.resolve("kept", false, Buffered)?;
        self.resolve("long", true, Sync)?;
        self.write(&transfer("third", 22, 9), Buffered)?;
        self.resolve("last", false, Buffered)
    }

    /// What a crash left is one of the states that it may leave; and goes on from there.
    fn check(&self, fs: &MemFs, mode: CrashMode) -> std::result::Result<(), String> {
        let bad = |error: Error| format!("it does not open: {error:?}");
        let db = reopen(fs).map_err(bad)?;
        let found = State::of(&db)?;
        let said = |problem| format!("{problem}\nrecovery said {:?}", db.db().recovery_report());
        let told = |state: &State| format!("{state:?}");
        self.history.check(&found, mode, told).map_err(said)?;
        self.check_locks(&db, &found)?;
        check_files(fs, db.db())?;
        self.go_on(fs, &db, found)
    }

    /// What is prepared has its locks, and nothing else is locked.
    fn check_locks(&self, db: &TransactionDb, state: &State) -> std::result::Result<(), String> {
        let families = Families::of(db.db()).map_err(|error| format!("{error:?}"))?;
        let mut locked: BTreeSet<(u32, Vec<u8>)> = BTreeSet::new();
        let mut ranges = 0;
        for name in &state.prepared {
            let transfer = &self.transfers[name];
            let writes = check_locked(db, name.as_bytes())?;
            let keys = transfer.keys(&families);
            if writes != keys.len() + usize::from(transfer.by_range) {
                return Err(format!("'{name}' is prepared with {writes} writes"));
            }
            ranges += usize::from(transfer.by_range);
            locked.extend(keys);
        }
        for number in 0..ACCOUNTS {
            let is = is_locked(db, &families.accounts, &account(number))?;
            if is != locked.contains(&(families.accounts.id(), account(number))) {
                return Err(format!("account {number}: locked is {is}"));
            }
        }
        let held = db.locks().len();
        if held != locked.len() + ranges {
            return Err(format!(
                "{held} locks for {} keys and {ranges} ranges",
                locked.len()
            ));
        }
        Ok(())
    }

    /// Another crash keeps what the first left; then every name is resolved, which a third crash does not undo.
    fn go_on(&self, fs: &MemFs, db: &TransactionDb, mut state: State) -> std::result::Result<(), String> {
        let bad = |error: Error| format!("after recovery: {error:?}");
        let again = reopen(&fs.crash(CrashMode::DropUnsynced)).map_err(bad)?;
        if State::of(&again)? != state {
            return Err("another crash has changed it".to_owned());
        }
        again.db().close().map_err(bad)?;
        for (at, name) in std::mem::take(&mut state.prepared).iter().enumerate() {
            let mut transaction = db.prepared_transaction(name.as_bytes()).map_err(bad)?;
            transaction.set_write_options(&WriteOptions::durability(Durability::Sync));
            let transfer = &self.transfers[name];
            if at % 2 == 0 {
                transaction.commit().map_err(bad)?;
                state.books.add(transfer);
            } else {
                transaction.roll_back().map_err(bad)?;
            }
        }
        if !db.locks().is_empty() {
            return Err(format!("locks are left: {:?}", db.locks()));
        }
        let third = reopen(&fs.crash(CrashMode::DropUnsynced)).map_err(bad)?;
        if State::of(&third)? != state {
            return Err("what was resolved is not what another crash left".to_owned());
        }
        third.db().close().map_err(bad)?;
        db.db().close().map_err(bad)
    }
}

#[test]
fn a_crash_at_any_write_leaves_whole_transfers_and_locked_prepared_ones() {
    let _alive = watchdog::watch(
        "a_crash_at_any_write_leaves_whole_transfers",
        Duration::from_secs(400),
    );
    let mut prepared = 0;
    let (cuts, total) = crash_at_every_call(
        number_from_env("ESKER_CRASH_STRIDE", 1),
        Run::new,
        Run::run,
        |run| {
            run.open.clear();
            let _ = run.db.db().close();
            prepared += u64::from(!run.history.answered().prepared.is_empty());
        },
        Run::check,
    );
    assert!(
        prepared * 2 > cuts,
        "something is prepared at {prepared} of {cuts} cuts only"
    );
    println!("{cuts} cuts of {total} calls, four crashes each; something prepared at {prepared}");
}
