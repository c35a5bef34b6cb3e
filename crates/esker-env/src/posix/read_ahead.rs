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

#[cfg(test)]
mod tests {
    use crate::posix::PosixFs;
    use crate::{AheadBatch, Fs, IoMode};

    /// Batches of one file, more than there are threads; some are not waited for.
    #[test]
    fn each_batch_brings_what_its_file_holds() {
        // Beside the build's output: on a disk, where direct I/O works.
        let beside = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let path = dir.path().join("file");
        let content: Vec<u8> = (0..300_000_usize).map(|i| (i * 7 + i / 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        for (mode, refused) in [
            (IoMode::Direct, false),
            (IoMode::Direct, true),
            (IoMode::Buffered, false),
            (IoMode::Buffered, true),
        ] {
            let fs = PosixFs::new();
            if refused {
                fs.readers().rings().refuse();
            }
            let file = fs.open(&path, mode).unwrap();
            let started: Vec<_> = (0..24_u64)
                .map(|number| {
                    let wanted: Vec<(u64, usize)> = (0..10)
                        .map(|i| ((number * 11_003 + i * 25_000) % 299_000, 1000))
                        .collect();
                    let mut batch = AheadBatch::default();
                    for &(offset, len) in &wanted {
                        batch.add(file.clone(), offset, len);
                    }
                    (wanted, fs.read_ahead(batch))
                })
                .collect();
            for (number, (wanted, ahead)) in started.into_iter().enumerate() {
                if number % 5 == 4 {
                    continue;
                }
                let batch = ahead.wait(|reads| fs.read_many(reads, crate::IoPriority::Foreground));
                for (i, (offset, len)) in wanted.into_iter().enumerate() {
                    let from = offset as usize;
                    assert!(batch.get(i, offset, len).unwrap() == &content[from..from + len]);
                }
            }
        }
    }
}
