//! A transaction: its life, from its beginning until it is committed or rolled back, and what it is made of.
//!
//! | file | what it has |
//! |---|---|
//! | `writes` | writes, which are kept in the transaction until it is committed |
//! | `reads` | reads through own writes; reads for update, and locks without a read |
//! | `save_points` | save points |
//! | `two_phase` | names, and two-phase commit |
//!
//! # Life
//! ```text
//!                                 commit, roll_back
//! begin, restart ---> active -----------------------------> ended
//!                       |                                     ^
//!                       +---> prepared -----------------------+
//!                     prepare     ^  |    commit, roll_back
//!                                 |  | drop, restart; a crash
//!            prepared_transaction |  v
//!                               (kept by the database, with its locks)
//! ```
//! A call fails without any change: what it has locked it gives back, and the transaction goes on. So a statement of several
//! calls is made whole by a save point. By the kind of the error ([`ErrorKind`](esker::ErrorKind)):
//!
//! | kind | what now |
//! |---|---|
//! | `TimedOut`, `LockLimit` | the call may be tried again later, by the same transaction |
//! | `Deadlock` | others wait for locks of this one: roll back, to a save point before those locks at least |
//! | `Conflict` | its snapshot is too old for this key, and stays so: roll back and run it again. At an optimistic commit it is the only way out |
//! | `WriteLimit` | the transaction is as large as it may be: commit, or roll back |
//! | `Interrupted` | somebody has [interrupted](Transaction::interrupter) the wait: as its program says |
//!
//! A commit that fails has written nothing, and may be tried again, unless by `Conflict`. So may a `prepare`: the transaction
//! is active as before. A prepared one whose commit or roll back fails is prepared as before. Where it is a sync that fails, the
//! database takes no more writes: what the device has of that step, whole or not at all, shows when it is opened again.
//!
//! # What is guaranteed
//! Under [`ReadCommitted`](Isolation::ReadCommitted) there are no dirty writes and no dirty reads. Under
//! [`RepeatableRead`](Isolation::RepeatableRead) plain reads see one moment, and what is written was written by nobody else since:
//! no lost updates. Under both, transactions all of whose reads are for update (keys) or of ranges that they have locked are
//! serialisable: no write skew, no phantoms.

mod reads;
mod save_points;
mod two_phase;
mod writes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use esker::{ColumnFamily, Db, Error, ReadOptions, Result, Snapshot, WriteOptions};

use crate::control::{Control, KeyRange};
use crate::lock::{Acquired, Interrupter, LockMode, TransactionId};
use crate::names::Names;
use crate::options::{Isolation, SnapshotTime, TransactionOptions};
use crate::running::{Entry, Running};
use crate::write_set::WriteSet;
use reads::Fetched;
pub(crate) use two_phase::not_without_locks;

/// A write set that has grown larger than this gives its memory back when its transaction ends.
const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    /// The database has its writes.
    Prepared,
    Ended,
}

/// Reads and writes that others see together or not at all. Made by [`TransactionDb::begin`](crate::TransactionDb::begin)
/// and [`OptimisticDb::begin`](crate::OptimisticDb::begin). Dropped while active, it is rolled back; dropped while prepared, it stays
/// so, and [`TransactionDb::prepared_transaction`](crate::TransactionDb::prepared_transaction) gives it back.
///
/// Families that are given to it must be of its database. The module's head says what errors mean.
pub struct Transaction {
    db: Db,
    running: Arc<Running>,
    /// None where transactions can't be prepared.
    names: Option<Arc<Names>>,
    entry: Arc<Entry>,
    /// The number of this object among `running`.
    object: TransactionId,
    id: TransactionId,
    label: Option<Arc<str>>,
    /// Among `names`.
    name: Option<Arc<[u8]>>,
    state: State,
    isolation: Isolation,
    write: WriteOptions,
    max_write_set_bytes: usize,
    writes: WriteSet,
    control: Control,
    /// What is written or locked must not have been written by others since.
    since: Option<Snapshot>,
    /// Settings of reads; under `RepeatableRead` with the same snapshot.
    reads: ReadOptions,
    fetched: Fetched,
}

impl Transaction {
    /// One that has not begun: `control` is for the number `object`.
    pub(crate) fn new(
        db: Db,
        running: Arc<Running>,
        names: Option<Arc<Names>>,
        object: TransactionId,
        control: Control,
        max_write_set_bytes: usize,
    ) -> Self {
        let entry = running.add(object);
        Self {
            db,
            running,
            names,
            entry,
            object,
            id: object,
            label: None,
            name: None,
            state: State::Ended,
            isolation: Isolation::default(),
            write: WriteOptions::default(),
            max_write_set_bytes,
            writes: WriteSet::with_max_bytes(max_write_set_bytes),
            control,
            since: None,
            reads: ReadOptions::default(),
            fetched: Fetched::default(),
        }
    }

    /// Makes this object another transaction of the same database, with the memory of the one before; what that one
    /// has not committed is rolled back, or stays prepared, as if this were dropped.
    pub fn restart(&mut self, options: &TransactionOptions) {
        self.let_go();
        self.start(self.running.next_id(), options);
    }

    pub(crate) fn start(&mut self, id: TransactionId, options: &TransactionOptions) {
        self.id = id;
        self.isolation = options.isolation;
        self.write = options.write;
        self.control.restart(id, options);
        if self.label.is_some() || options.label.is_some() {
            self.label.clone_from(&options.label);
            self.entry.set_label(self.label.clone());
        }
        self.entry.begin(id, self.running.now());
        self.state = State::Active;
        if options.isolation == Isolation::RepeatableRead && options.snapshot == SnapshotTime::Begin {
            self.take_snapshot();
        }
    }

    /// Makes its writes visible to all at one moment, as durable as its options say, and ends it.
    ///
    /// # Errors
    /// Those of the database, for an optimistic transaction `Conflict` as well; nothing is written then, and it is still
    /// active, or prepared, with all its locks. For a prepared one see
    /// [`Db::commit_prepared`]: with `NotFound` it has been committed or rolled back through the database itself, and ends.
    pub fn commit(&mut self) -> Result<()> {
        if self.state == State::Prepared {
            return self.resolve(Db::commit_prepared);
        }
        self.check_active()?;
        self.control.commit(&self.db, &mut self.writes, &self.write)?;
        self.end();
        Ok(())
    }

    /// Forgets its writes, gives its locks back and ends it. Nothing to do for one that has ended.
    ///
    /// # Errors
    /// None, unless it is prepared: then as [`commit`](Self::commit), and it is prepared as before.
    pub fn roll_back(&mut self) -> Result<()> {
        match self.state {
            State::Active => self.end(),
            State::Prepared => return self.resolve(Db::roll_back_prepared),
            State::Ended => {}
        }
        Ok(())
    }

    /// This object goes, or becomes another transaction.
    fn let_go(&mut self) {
        match self.state {
            State::Active => self.end(),
            State::Prepared => self.leave(),
            State::Ended => {}
        }
    }

    fn end(&mut self) {
        self.state = State::Ended;
        self.entry.end();
        self.control.end();
        if self.name.is_some() {
            self.free_name();
        }
        if self.writes.size_bytes() > KEPT_BYTES_MAX {
            self.writes = WriteSet::with_max_bytes(self.max_write_set_bytes);
        } else {
            self.writes.clear();
        }
        self.fetched.clear();
        self.clear_snapshot();
    }

    /// Its number, which no other transaction of this handle's database has or had.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// What its options call it.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What its plain reads see.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether it has neither been prepared nor committed nor rolled back.
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// What it has written, and neither prepared nor committed.
    pub fn writes(&self) -> &WriteSet {
        &self.writes
    }

    /// Locks that it holds; of an optimistic one, keys and ranges that its commit will ask about.
    pub fn lock_count(&self) -> usize {
        self.control.len()
    }

    /// The snapshot since which nobody else may have written what it writes or locks; under `RepeatableRead` its reads see it too.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.since.as_ref()
    }

    /// Takes a snapshot of now, in place of an earlier one. Under `ReadCommitted` writes and locks are then checked against
    /// it, and reads still see what is newest.
    ///
    /// # Errors
    /// `InvalidArgument` if it is prepared or has ended.
    pub fn set_snapshot(&mut self) -> Result<()> {
        self.check_active()?;
        self.take_snapshot();
        Ok(())
    }

    /// Gives the snapshot up. Under `RepeatableRead` the next operation takes another one.
    pub fn clear_snapshot(&mut self) {
        self.since = None;
        self.reads.snapshot = None;
    }

    /// Changes how long it waits for a lock; `None`: as the settings of the database say.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.control.set_lock_timeout(timeout);
    }

    /// What ends waits for locks of this object's transactions from other threads; see there. A transaction without locks has
    /// nothing that could be ended.
    pub fn interrupter(&mut self) -> Interrupter {
        self.control.interrupter()
    }

    fn take_snapshot(&mut self) {
        let snapshot = self.db.snapshot();
        if self.isolation == Isolation::RepeatableRead {
            self.reads.snapshot = Some(snapshot.clone());
        }
        self.since = Some(snapshot);
    }

    /// Takes the snapshot that its isolation asks for, if it has none.
    #[inline]
    fn need_snapshot(&mut self) {
        if self.isolation == Isolation::RepeatableRead && self.since.is_none() {
            self.take_snapshot();
        }
    }

    #[inline]
    fn check_active(&self) -> Result<()> {
        match self.state {
            State::Active => Ok(()),
            State::Prepared => Err(Error::invalid(
                "the transaction is prepared; all that can be done with it is to commit it or roll it back",
            )),
            State::Ended => Err(Error::invalid(
                "the transaction has been committed or rolled back; restart it",
            )),
        }
    }

    /// Before something is written or read for update. The caller [counts](Self::count).
    #[inline]
    fn protect_key(&mut self, family: &ColumnFamily, key: &[u8], mode: LockMode) -> Result<Acquired> {
        self.check_active()?;
        if !self.control.waits() {
            self.need_snapshot();
        }
        let since = self.since.as_ref();
        let acquired = self.control.protect_key(&self.db, family, key, mode, since)?;
        // Behind the wait, so that what was committed meanwhile is no conflict.
        self.need_snapshot();
        Ok(acquired)
    }

    fn protect_range(
        &mut self,
        family: &ColumnFamily,
        range: KeyRange<'_>,
        mode: LockMode,
    ) -> Result<Acquired> {
        self.check_active()?;
        if !self.control.waits() {
            self.need_snapshot();
        }
        let since = self.since.as_ref();
        let acquired = self.control.protect_range(&self.db, family, range, mode, since)?;
        self.need_snapshot();
        self.count();
        Ok(acquired)
    }

    #[inline]
    fn give_back_key(&mut self, family: &ColumnFamily, key: &[u8], acquired: Acquired) {
        if acquired != Acquired::Held {
            self.control.give_back_key(family, key);
            self.count();
        }
    }

    /// Tells lists how large it is.
    #[inline]
    fn count(&self) {
        self.entry.count(self.writes.len(), self.control.len());
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.let_go();
        self.running.remove(self.object);
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("id", &self.id.0)
            .field("label", &self.label)
            .field("name", &self.name().map(|name| name.escape_ascii().to_string()))
            .field("isolation", &self.isolation)
            .field("is_active", &self.is_active())
            .field("is_prepared", &self.is_prepared())
            .field("writes", &self.writes.len())
            .field("locks", &self.control.len())
            .finish_non_exhaustive()
    }
}
