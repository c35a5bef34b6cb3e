//! What can be chosen for a database of transactions, and for each of them.

use std::ffi::c_char;
use std::time::Duration;

use esker::{Error, Result};
use esker_txn::{Isolation, LockMode, SnapshotTime, TransactionOptions, TransactionSettings};

use crate::boundary::{answer, given, release};
use crate::call_options::esker_write_options;
use crate::error::esker_error;
use crate::text;

/// Settings of a database of transactions.
#[derive(Clone, Default)]
pub struct esker_transaction_settings {
    pub settings: TransactionSettings,
    pub optimistic: bool,
}

/// The defaults: transactions that lock.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_settings_create() -> Box<esker_transaction_settings> {
    Box::default()
}

/// Frees settings.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_settings_free(settings: Option<Box<esker_transaction_settings>>) {
    release(settings);
}

/// Whether transactions take no locks and find out at their commit whether others were faster. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_settings_set_optimistic(
    settings: Option<&mut esker_transaction_settings>,
    optimistic: bool,
) {
    if let Some(settings) = settings {
        settings.optimistic = optimistic;
    }
}

/// Sets a number by name: `shards` of the lock table (a power of two, 4096 at most; 64), `max_locks` (4 Mi), `lock_timeout_us` (how long a
/// request waits that says nothing else, `ESKER_TIMEOUT_NEVER` for ever; 1,000,000), `deadlock_depth` (transactions in the longest circle
/// of waiters that is looked for, 0: none; 64), `deadlocks_kept` (16), `overtakes` (how many that come later take a free key while the
/// thread wakes up whose turn it is, 0: none, in order of arrival; 16), `max_write_set_bytes` (how much one transaction may write; 1 GiB).
/// Error: `ESKER_INVALID_ARGUMENT` for an unknown name.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_settings_set(
    settings: Option<&mut esker_transaction_settings>,
    name: *const c_char,
    value: u64,
) -> Option<Box<esker_error>> {
    answer(|| {
        let settings = &mut given(settings, "settings")?.settings;
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let count = || {
            let fits = usize::try_from(value);
            fits.map_err(|_| Error::invalid(format!("{name} can't be {value}")))
        };
        match name {
            "shards" => settings.locks.shards = count()?,
            "max_locks" => settings.locks.max_locks = count()?,
            "lock_timeout_us" => settings.locks.timeout = timeout(value).unwrap_or_default(),
            "deadlock_depth" => settings.locks.deadlock_depth = count()?,
            "deadlocks_kept" => settings.locks.deadlocks_kept = count()?,
            "overtakes" => settings.locks.overtakes = count()?,
            "max_write_set_bytes" => settings.max_write_set_bytes = count()?,
            _ => {
                return Err(Error::invalid(format!(
                    "there is no setting of transactions named '{name}'"
                )));
            }
        }
        Ok(())
    })
}

/// A time limit: as the database's settings say.
pub const ESKER_TIMEOUT_DEFAULT: u64 = 0xffff_ffff_ffff_ffff;
/// A time limit: none.
pub const ESKER_TIMEOUT_NEVER: u64 = 0xffff_ffff_ffff_fffe;

/// The time limit that the number means; none for the default.
pub fn timeout(microseconds: u64) -> Option<Duration> {
    match microseconds {
        ESKER_TIMEOUT_DEFAULT => None,
        ESKER_TIMEOUT_NEVER => Some(Duration::MAX),
        _ => Some(Duration::from_micros(microseconds)),
    }
}

/// What the plain reads of a transaction see of what others commit meanwhile.
pub type esker_isolation = u32;
/// Each read sees what is committed when it begins.
pub const ESKER_READ_COMMITTED: esker_isolation = 0;
/// All reads see one snapshot, and nothing can be locked or written that others have written since: snapshot isolation.
pub const ESKER_REPEATABLE_READ: esker_isolation = 1;

/// What a lock keeps others from.
pub type esker_lock_mode = u32;
/// Others may hold it too, in this mode.
pub const ESKER_SHARED: esker_lock_mode = 0;
/// Nobody else holds it.
pub const ESKER_EXCLUSIVE: esker_lock_mode = 1;

/// What the number means.
pub fn lock_mode(mode: esker_lock_mode) -> Result<LockMode> {
    match mode {
        ESKER_SHARED => Ok(LockMode::Shared),
        ESKER_EXCLUSIVE => Ok(LockMode::Exclusive),
        _ => Err(Error::invalid(format!("there is no lock mode {mode}"))),
    }
}

/// The number of a mode.
pub fn number(mode: LockMode) -> esker_lock_mode {
    match mode {
        LockMode::Shared => ESKER_SHARED,
        LockMode::Exclusive => ESKER_EXCLUSIVE,
    }
}

/// Settings of a transaction, used again and again. Where a call takes some, null means the defaults.
#[derive(Default)]
pub struct esker_transaction_options(pub TransactionOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_create() -> Box<esker_transaction_options> {
    Box::default()
}

/// Frees settings.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_free(options: Option<Box<esker_transaction_options>>) {
    release(options);
}

/// What its reads see. Default: `ESKER_READ_COMMITTED`. Error: `ESKER_INVALID_ARGUMENT` for an unknown number.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_set_isolation(
    options: Option<&mut esker_transaction_options>,
    isolation: esker_isolation,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(options, "options")?.0.isolation = match isolation {
            ESKER_READ_COMMITTED => Isolation::ReadCommitted,
            ESKER_REPEATABLE_READ => Isolation::RepeatableRead,
            _ => return Err(Error::invalid(format!("there is no isolation {isolation}"))),
        };
        Ok(())
    })
}

/// Whether a transaction with `ESKER_REPEATABLE_READ` takes its snapshot when it begins. Default: no, with the first read, or when the first
/// lock was granted.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_set_snapshot_at_begin(
    options: Option<&mut esker_transaction_options>,
    at_begin: bool,
) {
    if let Some(options) = options {
        options.0.snapshot = match at_begin {
            true => SnapshotTime::Begin,
            false => SnapshotTime::FirstOperation,
        };
    }
}

/// How long it waits for a lock, in microseconds: 0 does not wait, `ESKER_TIMEOUT_NEVER` for ever, `ESKER_TIMEOUT_DEFAULT` as the
/// settings of the database say.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_set_lock_timeout_us(
    options: Option<&mut esker_transaction_options>,
    microseconds: u64,
) {
    if let Some(options) = options {
        options.0.lock_timeout = timeout(microseconds);
    }
}

/// Whether a request that closes a circle of waiters is refused at once; else all in the circle wait for their time limits.
/// Default: yes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_set_deadlock_detection(
    options: Option<&mut esker_transaction_options>,
    detection: bool,
) {
    if let Some(options) = options {
        options.0.deadlock_detection = detection;
    }
}

/// What lists of transactions show it as; null: nothing.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_options_set_label(
    options: Option<&mut esker_transaction_options>,
    label: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        options.0.label = match label.is_null() {
            true => None,
            // SAFETY: the contract.
            false => Some(unsafe { text::string(label, "the label") }?.into()),
        };
        Ok(())
    })
}

/// How it is committed; null: as the database's defaults say.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_options_set_write_options(
    options: Option<&mut esker_transaction_options>,
    write: Option<&esker_write_options>,
) {
    if let Some(options) = options {
        options.0.write = crate::call_options::write_options(write);
    }
}
