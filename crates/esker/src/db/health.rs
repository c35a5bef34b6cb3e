//! What background work and the log have run into, and what that means for writers.

use arc_swap::ArcSwapOption;

use std::sync::Arc;

use crate::background::Events;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{BackgroundError, BackgroundErrorOver, BackgroundTask};

/// The database's troubles. Reads are never affected.
#[derive(Debug)]
pub(super) struct Health {
    /// Ends writing for good: a failed sync of WAL or manifest. What was not durable then may never be.
    fatal: ArcSwapOption<Error>,
    /// The last flush failed; writers go on until memory is full. Cleared by the next flush that succeeds.
    flush: ArcSwapOption<Error>,
    /// The last compaction failed; its inputs stay as they are.
    compaction: ArcSwapOption<Error>,
    /// Who is told.
    events: Arc<Events>,
}

impl Health {
    /// Without troubles.
    pub fn new(events: Arc<Events>) -> Self {
        Self {
            fatal: ArcSwapOption::default(),
            flush: ArcSwapOption::default(),
            compaction: ArcSwapOption::default(),
            events,
        }
    }

    fn note(&self, task: BackgroundTask, error: &Error) {
        self.events.note(|| BackgroundError {
            task,
            error: error.clone(),
            is_final: task == BackgroundTask::Log,
        });
    }

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
        if self.fatal.swap(Some(Arc::new(cause.clone()))).is_none() {
            self.note(BackgroundTask::Log, cause);
        }
        read_only(cause)
    }

    pub fn flush_failed(&self, error: Error) {
        tracing::error!(%error, "a flush failed");
        self.note(BackgroundTask::Flush, &error);
        self.flush.store(Some(Arc::new(error)));
    }

    pub fn flush_succeeded(&self) {
        if self.flush.load().is_some() && self.flush.swap(None).is_some() {
            let task = BackgroundTask::Flush;
            self.events.note(|| BackgroundErrorOver { task });
        }
    }

    /// Why flushes fail at the moment.
    pub fn flush_error(&self) -> Option<Error> {
        self.flush.load().as_deref().cloned()
    }

    pub fn compaction_failed(&self, error: Error) {
        tracing::error!(%error, "a compaction failed");
        self.note(BackgroundTask::Compaction, &error);
        self.compaction.store(Some(Arc::new(error)));
    }

    pub fn compaction_succeeded(&self) {
        if self.compaction.load().is_some() && self.compaction.swap(None).is_some() {
            let task = BackgroundTask::Compaction;
            self.events.note(|| BackgroundErrorOver { task });
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
