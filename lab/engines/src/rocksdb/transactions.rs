//! RocksDB's transactions: a `TransactionDB` or an `OptimisticTransactionDB`, opened instead of the plain database.
//!
//! Both lend the plain database under them, which is what flushes, scans and tells properties. What the interface says of
//! a transaction that lost against others is a sentence; [`lost`] knows the sentences.

use std::ffi::{c_char, c_int};
use std::path::Path;

use esker_lab_core::error::Kind;
use esker_lab_core::transaction::{Begin, Control, TransactionSession};
use esker_lab_core::{Error, Result};

use super::Writes;
use super::api::{Api, Ptr, TransactionApi};
use super::session::{Pinned, verified};
use crate::capi::{ErrorSlot, c_path};
use crate::common::{Connection, ReadOptions};

/// Parts of the lock table, in place of 16: more let more threads lock at the same time.
const STRIPES: usize = 1024;

const WRITE_PREPARED: c_int = 1;

/// The functions that a database with transactions needs.
#[derive(Clone, Copy)]
pub(super) struct Apis {
    pub(super) plain: &'static Api,
    pub(super) transactions: &'static TransactionApi,
}

/// A database with transactions; closes it when it is dropped, after what it lent.
pub(super) struct TransactionDatabase {
    apis: Apis,
    control: Control,
    database: Ptr,
}

/// Made by one function of the library, destroyed by another.
struct Object {
    object: Ptr,
    destroy: unsafe extern "C" fn(Ptr),
}

impl Object {
    /// # Safety
    /// `create` makes an object that `destroy` takes back.
    unsafe fn new(create: unsafe extern "C" fn() -> Ptr, destroy: unsafe extern "C" fn(Ptr)) -> Object {
        // SAFETY: a plain constructor, the caller's promise.
        let object = unsafe { create() };
        Object { object, destroy }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        unsafe { (self.destroy)(self.object) };
    }
}

/// The settings of a `TransactionDB`; `applied` hears of those that are not the defaults.
fn locking(
    api: &'static TransactionApi,
    variant: &str,
    applied: &mut Vec<(String, String)>,
) -> Result<Object> {
    let lacks = |what: &str| Error::unsupported(format!("this library does not offer {what}"));
    let mut note = |name: &str, value: String| applied.push((name.to_owned(), value));
    // SAFETY: options of our own, and plain numbers.
    unsafe {
        let options = Object::new(
            api.transactiondb_options_create,
            api.transactiondb_options_destroy,
        );
        match api.transactiondb_options_set_num_stripes {
            Some(set) => {
                set(options.object, STRIPES);
                note("num_stripes", STRIPES.to_string());
            }
            None => note("num_stripes", "not offered by this library".to_owned()),
        }
        if variant.starts_with("prepared") {
            let set = api.transactiondb_options_set_write_policy;
            set.ok_or_else(|| lacks("write policies"))?(options.object, WRITE_PREPARED);
            note("write_policy", "write prepared".to_owned());
        } else {
            note("write_policy", "write committed".to_owned());
        }
        if variant.starts_with("per-key") {
            let set = api.transactiondb_options_set_use_per_key_point_lock_mgr;
            set.ok_or_else(|| lacks("locks with a queue for each key"))?(options.object, 1);
            note("use_per_key_point_lock_mgr", "1".to_owned());
        }
        Ok(options)
    }
}

impl TransactionDatabase {
    /// Opens the database in `dir`, and what it lends of the plain database.
    ///
    /// # Safety
    /// `options` are the library's, complete, and outlive the database.
    pub(super) unsafe fn open(
        apis: Apis,
        control: Control,
        variant: &str,
        options: Ptr,
        dir: &Path,
        applied: &mut Vec<(String, String)>,
    ) -> Result<(Self, Connection)> {
        let (path, api) = (c_path(dir)?, apis.transactions);
        let mut error = ErrorSlot::new();
        // SAFETY: the caller's promise; the path is NUL-terminated; the library copies the settings.
        let database = unsafe {
            match control {
                Control::Locks => {
                    let settings = locking(api, variant, applied)?;
                    (api.transactiondb_open)(options, settings.object, path.as_ptr(), error.out())
                }
                Control::Optimistic => {
                    (api.optimistictransactiondb_open)(options, path.as_ptr(), error.out())
                }
            }
        };
        error.check("opening", apis.plain.free)?;
        applied.push(("transactions".to_owned(), control.name().to_owned()));
        if control == Control::Locks && api.transaction_options_set_deadlock_detect.is_some() {
            applied.push(("deadlock_detect".to_owned(), "1".to_owned()));
        }
        let opened = TransactionDatabase {
            apis,
            control,
            database,
        };
        // SAFETY: the database is open; what it lends is given back, by the function for it, before it is closed.
        let lent = unsafe {
            let (base, give_back) = match control {
                Control::Locks => (
                    (api.transactiondb_get_base_db)(database),
                    api.transactiondb_close_base_db,
                ),
                Control::Optimistic => (
                    (api.optimistictransactiondb_get_base_db)(database),
                    api.optimistictransactiondb_close_base_db,
                ),
            };
            Connection::lent(&apis.plain.base, base, give_back)
        };
        Ok((opened, lent))
    }

    pub(super) fn session<'a>(&'a self, writes: &'a Writes) -> Box<dyn TransactionSession + 'a> {
        Box::new(Work::new(self, writes))
    }
}

impl Drop for TransactionDatabase {
    fn drop(&mut self) {
        let api = self.apis.transactions;
        // SAFETY: opened successfully, closed once.
        unsafe {
            match self.control {
                Control::Locks => (api.transactiondb_close)(self.database),
                Control::Optimistic => (api.optimistictransactiondb_close)(self.database),
            }
        }
    }
}

/// The same error, with the kind of what a transaction lost against others, if it says that.
fn lost(error: Error) -> Error {
    let text = error.to_string();
    let says = |words: &str| text.contains(words);
    let kind = if says("Deadlock") {
        Kind::Deadlock
    } else if says("Operation timed out") {
        Kind::TimedOut
    } else if says("lock limit") || says("max_num_locks") {
        Kind::Engine
    } else if says("Resource busy") || says("Try again") {
        Kind::Conflict
    } else {
        Kind::Engine
    };
    Error::new(kind, text)
}

/// One thread's transactions, in one object of the library.
struct Work<'a> {
    database: &'a TransactionDatabase,
    writes: &'a Writes,
    /// How to begin, without a snapshot and with one.
    begins: [Object; 2],
    newest: ReadOptions,
    /// With the snapshot of the transaction.
    of_snapshot: ReadOptions,
    has_snapshot: bool,
    /// Null before the first.
    transaction: Ptr,
}

impl<'a> Work<'a> {
    fn new(database: &'a TransactionDatabase, writes: &'a Writes) -> Self {
        let (plain, api) = (database.apis.plain, database.apis.transactions);
        let begins = [0, 1].map(|snapshot| {
            // SAFETY: options of our own. Detection of deadlocks is off by default, and then each would cost a second.
            unsafe {
                if database.control == Control::Optimistic {
                    let begin = Object::new(
                        api.optimistictransaction_options_create,
                        api.optimistictransaction_options_destroy,
                    );
                    (api.optimistictransaction_options_set_set_snapshot)(begin.object, snapshot);
                    return begin;
                }
                let begin = Object::new(api.transaction_options_create, api.transaction_options_destroy);
                (api.transaction_options_set_set_snapshot)(begin.object, snapshot);
                if let Some(set) = api.transaction_options_set_deadlock_detect {
                    set(begin.object, 1);
                }
                begin
            }
        });
        Work {
            database,
            writes,
            begins,
            newest: verified(plain),
            of_snapshot: verified(plain),
            has_snapshot: false,
            transaction: std::ptr::null_mut(),
        }
    }

    fn running(&self) -> Result<Ptr> {
        if self.transaction.is_null() {
            return Err(Error::usage("no transaction was begun"));
        }
        Ok(self.transaction)
    }

    fn reads(&self) -> &ReadOptions {
        if self.has_snapshot {
            &self.of_snapshot
        } else {
            &self.newest
        }
    }

    fn check(&self, what: &str, error: ErrorSlot) -> Result<()> {
        error.check(what, self.database.apis.plain.free).map_err(lost)
    }

    /// Hands a value that was read to whoever asked for it.
    fn hand(&self, what: &str, slice: Ptr, error: ErrorSlot, found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // SAFETY: null, or a value that the library made for us.
        let pinned = unsafe { Pinned::new(self.database.apis.plain, slice) };
        self.check(what, error)?;
        if let Some(pinned) = &pinned {
            found(pinned.value());
        }
        Ok(pinned.is_some())
    }
}

impl TransactionSession for Work<'_> {
    fn begin(&mut self, begin: Begin) -> Result<()> {
        let api = self.database.apis.transactions;
        let options = self.begins[usize::from(begin.snapshot)].object;
        let writes = self.writes.get(begin.durability).raw();
        // SAFETY: the database is open, options are ours; the object of the transaction before, or null, is used again. The
        // snapshot's shell is ours to free, the snapshot in it belongs to the transaction, and no read follows its end.
        unsafe {
            let (database, last) = (self.database.database, self.transaction);
            self.transaction = match self.database.control {
                Control::Locks => (api.transaction_begin)(database, writes, options, last),
                Control::Optimistic => (api.optimistictransaction_begin)(database, writes, options, last),
            };
            self.has_snapshot = begin.snapshot;
            if begin.snapshot {
                let snapshot = (api.transaction_get_snapshot)(self.transaction);
                (api.readoptions_set_snapshot)(self.of_snapshot.raw(), snapshot);
                (self.database.apis.plain.free)(snapshot);
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (transaction, mut error) = (self.running()?, ErrorSlot::new());
        // SAFETY: the transaction is ours and runs; the key is readable for the length given.
        let slice = unsafe {
            let get = self.database.apis.transactions.transaction_get_pinned;
            let options = self.reads().raw();
            get(transaction, options, key.as_ptr().cast(), key.len(), error.out())
        };
        self.hand("get", slice, error, found)
    }

    fn get_for_update(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (transaction, mut error) = (self.running()?, ErrorSlot::new());
        // SAFETY: as above.
        let slice = unsafe {
            let get = self.database.apis.transactions.transaction_get_pinned_for_update;
            let (options, key_bytes) = (self.reads().raw(), key.len());
            get(
                transaction,
                options,
                key.as_ptr().cast(),
                key_bytes,
                1,
                error.out(),
            )
        };
        self.hand("get for update", slice, error, found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (transaction, mut error) = (self.running()?, ErrorSlot::new());
        let (key_at, value_at): (*const c_char, *const c_char) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: as above, and so is the value.
        unsafe {
            let put = self.database.apis.transactions.transaction_put;
            put(transaction, key_at, key.len(), value_at, value.len(), error.out());
        }
        self.check("put", error)
    }

    fn commit(&mut self) -> Result<()> {
        let (transaction, mut error) = (self.running()?, ErrorSlot::new());
        // SAFETY: the transaction is ours and runs.
        unsafe { (self.database.apis.transactions.transaction_commit)(transaction, error.out()) };
        self.check("commit", error)
    }

    fn roll_back(&mut self) -> Result<()> {
        let (transaction, mut error) = (self.running()?, ErrorSlot::new());
        // SAFETY: as above.
        unsafe { (self.database.apis.transactions.transaction_rollback)(transaction, error.out()) };
        self.check("roll back", error)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !self.transaction.is_null() {
            // SAFETY: ours, destroyed once, before the database, which is borrowed. What was not committed is rolled back.
            unsafe { (self.database.apis.transactions.transaction_destroy)(self.transaction) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_sentences_are_known() {
        for (sentence, kind) in [
            ("Resource busy: Deadlock", Kind::Deadlock),
            ("Operation timed out: Timeout waiting to lock key", Kind::TimedOut),
            ("Resource busy: ", Kind::Conflict),
            (
                "Operation failed. Try again.: the memtable is too new",
                Kind::Conflict,
            ),
            (
                "Resource busy: Failed to acquire lock due to max_num_locks limit",
                Kind::Engine,
            ),
            ("IO error: No space left on device", Kind::Engine),
        ] {
            let error = lost(Error::engine(format!("commit: {sentence}")));
            assert_eq!(error.kind(), kind, "{sentence}");
            assert!(error.to_string().contains(sentence));
        }
    }
}
