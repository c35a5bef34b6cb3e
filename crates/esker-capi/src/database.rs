//! An open database: how it is opened, closed and removed, and what recovery found.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use ::esker_env::Clock;
use esker::inspect::Inspector;
use esker::{ColumnFamily, Db, Follower};
use esker_compat::folder;
use esker_txn::{OptimisticDb, TransactionDb};

use crate::boundary::{answer, given, made, put, release};
use crate::environment::{esker_env, machine};
use crate::error::esker_error;
use crate::family::esker_family;
use crate::list::{List, Texts, esker_names};
use crate::options::esker_options;
use crate::slice::esker_slice;
use crate::text;
use crate::transaction_options::esker_transaction_settings;

/// An open database, with transactions or without. All calls may be made from any thread.
pub struct esker_db {
    pub db: Db,
    pub default: ColumnFamily,
    pub layer: Layer,
    pub clock: Arc<dyn Clock>,
}

/// What stands between a program and the database.
pub enum Layer {
    /// Nothing.
    Plain,
    /// Transactions that lock.
    Locking(TransactionDb),
    /// Transactions that look at their commit.
    Optimistic(OptimisticDb),
    /// Another process, which writes.
    Following(Box<Follower>),
}

impl esker_db {
    /// The family given, or `default`.
    #[inline]
    pub fn family<'a>(&'a self, family: Option<&'a esker_family>) -> &'a ColumnFamily {
        family.map_or(&self.default, |family| &family.0)
    }
}

/// Opens the database in the folder `path`, without transactions. Options: null for the defaults.
/// Errors: `ESKER_LOCKED` (another process has it open), `ESKER_NOT_FOUND` (none there, and not to be created),
/// `ESKER_INVALID_ARGUMENT` (the folder holds something else; settings out of range or incompatible), `ESKER_UNSUPPORTED` (written by a
/// newer version), `ESKER_CORRUPTION`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_open(
    path: *const c_char,
    options: Option<&esker_options>,
    db: Option<&mut MaybeUninit<Option<Box<esker_db>>>>,
) -> Option<Box<esker_error>> {
    made(db, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let options = options.cloned().unwrap_or_default();
        let db = options.opener().open(path)?;
        Ok(esker_db {
            default: db.default_column_family(),
            layer: Layer::Plain,
            clock: options.env().clock,
            db,
        })
    })
}

/// Opens the database in the folder `path` for transactions. Settings: null for the defaults, which lock. Writes without a
/// transaction go through the same locks, or checks, for the length of the call.
/// What is prepared in the database has its locks again.
/// Errors: as `esker_db_open`, and `ESKER_INVALID_ARGUMENT` for settings that make no sense, or optimistic ones where something is
/// prepared; `ESKER_LOCK_LIMIT` if what is prepared takes more locks than may be.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_open_transactional(
    path: *const c_char,
    options: Option<&esker_options>,
    settings: Option<&esker_transaction_settings>,
    db: Option<&mut MaybeUninit<Option<Box<esker_db>>>>,
) -> Option<Box<esker_error>> {
    made(db, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let options = options.cloned().unwrap_or_default();
        let settings = settings.cloned().unwrap_or_default();
        let clock = options.env().clock;
        let db = options.opener().open(path)?;
        let layer = if settings.optimistic {
            let clock = Arc::clone(&clock);
            Layer::Optimistic(OptimisticDb::with_clock(db.clone(), &settings.settings, clock)?)
        } else {
            let clock = Arc::clone(&clock);
            Layer::Locking(TransactionDb::with_clock(db.clone(), &settings.settings, clock)?)
        };
        Ok(esker_db {
            default: db.default_column_family(),
            layer,
            clock,
            db,
        })
    })
}

/// Closes the database and frees the handle, whatever the answer: an error says that what was written without the log could not be
/// flushed, or the log not be closed. Nobody may use the handle any more. What was made from it (families, iterators, transactions,
/// snapshots, values) may still be freed in any order; other calls on it fail with `ESKER_CLOSED`. Null is nothing.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_close(db: Option<Box<esker_db>>) -> Option<Box<esker_error>> {
    let result = answer(|| db.as_ref().map_or(Ok(()), |db| db.db.close()));
    release(db);
    result
}

/// Makes all writes so far durable.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_sync(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| given(db, "db")?.db.sync_wal())
}

/// The sequence number of the last write that readers see; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_last_sequence(db: Option<&esker_db>) -> u64 {
    db.map_or(0, |db| db.db.last_sequence())
}

/// What recovery found when a database was opened.
#[repr(C)]
pub struct esker_recovery {
    /// Batches replayed.
    pub batches: u64,
    /// Damaged stretches that were skipped or at which replay stopped; a torn tail is none.
    pub damages: u64,
    /// Bytes of log that could not be used, torn tails included.
    pub lost_bytes: u64,
    /// Log files that were kept aside, as bytes of their paths.
    pub kept_aside: *const esker_slice<'static>,
    /// How many.
    pub kept_aside_count: usize,
    /// Files that earlier recoveries had kept aside and that were removed.
    pub given_up: *const esker_slice<'static>,
    /// How many.
    pub given_up_count: usize,
}

/// A recovery's report.
pub struct esker_recovery_report(List<esker_recovery, Paths>);

/// The paths that it points to.
struct Paths {
    kept_aside: Texts,
    given_up: Texts,
}

/// What recovery found when the database was opened. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_recovery_report(
    db: Option<&esker_db>,
    report: Option<&mut MaybeUninit<Option<Box<esker_recovery_report>>>>,
) -> Option<Box<esker_error>> {
    made(report, || {
        let found = given(db, "db")?.db.recovery_report();
        let paths = Paths {
            kept_aside: Texts::of_paths(&found.kept_aside),
            given_up: Texts::of_paths(&found.given_up),
        };
        // SAFETY: slices and bytes stay where they are.
        let list = unsafe {
            List::new(paths, |paths| {
                let (kept_aside, kept_aside_count) = paths.kept_aside.slices();
                let (given_up, given_up_count) = paths.given_up.slices();
                vec![esker_recovery {
                    batches: found.batches,
                    damages: found.damages,
                    lost_bytes: found.lost_bytes,
                    kept_aside,
                    kept_aside_count,
                    given_up,
                    given_up_count,
                }]
            })
        };
        Ok(esker_recovery_report(list))
    })
}

/// What the report says, until it is freed; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_recovery_report_get(report: Option<&esker_recovery_report>) -> *const esker_recovery {
    report.map_or(std::ptr::null(), |report| List::array(Some(&report.0), None))
}

/// Frees a report.
#[unsafe(no_mangle)]
pub extern "C" fn esker_recovery_report_free(report: Option<Box<esker_recovery_report>>) {
    release(report);
}

/// The names of the column families of the database in `path`, which need not be open; env: null for the real machine. To be freed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_list_families(
    env: Option<&esker_env>,
    path: *const c_char,
    names: Option<&mut MaybeUninit<Option<Box<esker_names>>>>,
) -> Option<Box<esker_error>> {
    made(names, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let described = Inspector::with_env(path, &machine(env)).describe()?;
        let names = described.families.into_iter().map(|family| family.name);
        Ok(esker_names::new(names.collect()))
    })
}

/// Removes the database in `path`, and the folder if nothing else is in it; without a database there is nothing to do. env: null for
/// the real machine. Error: `ESKER_LOCKED` if it is open.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_destroy(
    env: Option<&esker_env>,
    path: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        folder::remove(&machine(env), &path)
    })
}

/// Whether the database was opened for transactions, and of which kind.
pub type esker_transaction_kind = u32;
/// Without transactions.
pub const ESKER_NO_TRANSACTIONS: esker_transaction_kind = 0;
/// With transactions that lock.
pub const ESKER_LOCKING: esker_transaction_kind = 1;
/// With transactions that look at their commit whether others were faster.
pub const ESKER_OPTIMISTIC: esker_transaction_kind = 2;

/// Which transactions the database has.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_transaction_kind(
    db: Option<&esker_db>,
    kind: Option<&mut MaybeUninit<esker_transaction_kind>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let of = match given(db, "db")?.layer {
            Layer::Plain | Layer::Following(_) => ESKER_NO_TRANSACTIONS,
            Layer::Locking(_) => ESKER_LOCKING,
            Layer::Optimistic(_) => ESKER_OPTIMISTIC,
        };
        put(kind, of);
        Ok(())
    })
}
