//! Why a lock was not had, as errors: their kinds say what the transaction can do next.

use std::time::Duration;

use esker::{Error, ErrorKind};

use super::deadlock::Deadlock;
use super::list::{LockTarget, shown_key};
use super::target::Request;
use super::waits::Blocker;

/// Another transaction has written `key` since this one's snapshot was taken: [`ErrorKind::Conflict`].
pub fn write_conflict(family: u32, key: &[u8]) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!(
            "write conflict: {} of column family {family} was written after the snapshot of this transaction",
            shown_key(key)
        ),
    )
}

/// As [`write_conflict`], for a range: the keys from `start` on, up to `end` without it or to the last one.
pub fn range_conflict(family: u32, start: &[u8], end: Option<&[u8]>) -> Error {
    let range = LockTarget::Range {
        start: start.to_vec(),
        end: end.map(<[u8]>::to_vec),
    };
    Error::new(
        ErrorKind::Conflict,
        format!(
            "write conflict: one of the {range} of column family {family} was written after the snapshot of this transaction"
        ),
    )
}

/// The lock was not free in time.
pub(super) fn timed_out(request: &Request, blockers: &[Blocker], timeout: Duration) -> Error {
    let others: Vec<String> = blockers.iter().map(|blocker| blocker.txn.to_string()).collect();
    Error::new(
        ErrorKind::TimedOut,
        format!(
            "a lock ({request}) was not free within {timeout:?}; it waited for transactions {}",
            others.join(", ")
        ),
    )
}

/// Somebody has interrupted the wait.
pub(super) fn interrupted(request: &Request) -> Error {
    Error::new(
        ErrorKind::Interrupted,
        format!("the wait for a lock ({request}) was interrupted"),
    )
}

/// The report can be had back as the error's source.
pub(super) fn deadlock(report: &Deadlock) -> Error {
    Error::new(ErrorKind::Deadlock, "deadlock").caused_by(report.clone())
}

/// There are too many locks.
pub(super) fn limit(max_locks: usize) -> Error {
    Error::new(
        ErrorKind::LockLimit,
        format!("there are {max_locks} locks, as many as `max_locks` allows"),
    )
}
