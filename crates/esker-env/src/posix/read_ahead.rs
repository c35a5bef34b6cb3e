//! Threads that read for somebody who goes on meanwhile.

use std::sync::Arc;

use super::in_flight::Writers;
use super::pool::BufferPool;
use super::read_many::Readers;
use super::workers::{Job, Workers};
use crate::ahead::Started;
use crate::{AheadBatch, IoPriority, ReadAhead};

/// What a thread needs of the file system.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    pub(super) readers: Arc<Readers>,
    pub(super) pool: Arc<BufferPool>,
    pub(super) writers: Arc<Writers>,
}

/// A batch that is handed to a thread.
#[derive(Debug)]
struct ReadJob {
    started: Arc<Started>,
    means: Means,
}

impl Job for ReadJob {
    const NAME: &'static str = "esker-ahead";
    /// Each has up to 64 reads under way where there is io_uring; who finds all of them at work reads by itself.
    const THREADS_MAX: usize = 4;

    fn run(self) {
        if let Some(mut batch) = self.started.begin() {
            let Means {
                readers,
                pool,
                writers,
            } = &self.means;
            batch.run(|reads| readers.read_many(reads, pool, writers.traffic(), IoPriority::Background));
            self.started.complete(batch);
        }
    }
}

/// The threads of one file system.
#[derive(Debug, Default)]
pub(super) struct AheadReaders(Workers<ReadJob>);

impl AheadReaders {
    /// Has a thread read `batch`.
    pub(super) fn start(&self, batch: AheadBatch, means: Means) -> ReadAhead {
        let (ahead, started) = ReadAhead::waiting(batch);
        self.0.submit(ReadJob { started, means });
        ahead
    }
}
