//! What background work and the log have run into, and what that means for writers.

use arc_swap::ArcSwapOption;

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// The database's troubles. Reads are never affected.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Ends writing for good: a failed sync of WAL or manifest. What was not durable then may never be.
    fatal: ArcSwapOption<Error>,
    /// The last flush failed; writers go on until memory is full. Cleared by the next flush that succeeds.
    flush: ArcSwapOption<Error>,
    /// The last compaction failed; its inputs stay as they are.
    compaction: ArcSwapOption<Error>,
}

impl Health {
    /// Fails if the database takes no more writes.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        match &*self.fatal.load() {
            None => Ok(()),
            Some(cause) => Err(read_only(cause)),
        }
    }

    /// Turns the database read-only, because of `cause`; gives the error for the caller.
    pub fn fail(&self, cause: &Error) -> Error {
        tracing::error!(%cause, "the database is read-only from now on");
        self.fatal.store(Some(Arc::new(cause.clone())));
        read_only(cause)
    }

    pub fn flush_failed(&self, error: Error) {
        tracing::error!(%error, "a flush failed");
        self.flush.store(Some(Arc::new(error)));
    }

    pub fn flush_succeeded(&self) {
        if self.flush.load().is_some() {
            self.flush.store(None);
        }
    }

    /// Why flushes fail at the moment.
    pub fn flush_error(&self) -> Option<Error> {
        self.flush.load().as_deref().cloned()
    }

    pub fn compaction_failed(&self, error: Error) {
        tracing::error!(%error, "a compaction failed");
        self.compaction.store(Some(Arc::new(error)));
    }

    pub fn compaction_succeeded(&self) {
        if self.compaction.load().is_some() {
            self.compaction.store(None);
        }
    }

    /// Why compactions fail at the moment.
    pub fn compaction_error(&self) -> Option<Error> {
        self.compaction.load().as_deref().cloned()
    }

    /// The worst trouble there is.
    pub fn current(&self) -> Option<Error> {
        let fatal = self.fatal.load().as_deref().cloned();
        fatal
            .or_else(|| self.flush_error())
            .or_else(|| self.compaction_error())
    }
}

fn read_only(cause: &Error) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!("the database no longer takes writes, because: {cause}"),
    )
}
