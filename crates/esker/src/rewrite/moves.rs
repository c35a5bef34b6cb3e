//! The records of emptied blob files that move to the file being written: queued as rows come, read together, and copied in
//! the order of the rows.
//!
//! A row's new pointer is known before its record is read, as a record is as long in its new place as in the old one. So
//! nobody waits for records one by one: a queue of MiBs is read with as many requests at a time as the device likes. The
//! windows of scans ([`BlobWindows`](crate::blob::BlobWindows)) wait for each window instead, which is what limited
//! collection: keys in order lie in dozens of files, so windows are short.
//!
//! Invariant: the queue's records come right behind the writer's last byte, in their order, without gaps; so whoever adds
//! anything else to the file, or ends it, carries the queue out before.

use std::sync::Arc;

use esker_env::BACKGROUND_GAP_BYTES_MAX;

use super::BlobInputs;
use crate::blob::{BlobPointer, BlobReader, BlobWriter, WantedValue, read_records};
use crate::error::{Error, Result};

/// Bytes that are read together, with what lies between them, unless one record alone has more.
const READ_BYTES_MAX: u64 = 4 << 20;

/// Records on their way.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Where they are, in the order in which they are to be written.
    queue: Vec<BlobPointer>,
    record_bytes: u64,
    /// What reading them takes, at most.
    read_bytes: u64,
    /// Where the queue's last record of each file ends.
    ends: Vec<(u64, u64)>,
}

impl Moves {
    /// Queues a record. O(files in the queue).
    pub fn push(&mut self, pointer: &BlobPointer) {
        let end = pointer.offset.saturating_add(pointer.bytes);
        let gap = match self.ends.iter_mut().find(|(file, _)| *file == pointer.file) {
            Some((_, last)) => pointer.offset.saturating_sub(std::mem::replace(last, end)),
            None => {
                self.ends.push((pointer.file, end));
                0
            }
        };
        self.queue.push(*pointer);
        self.record_bytes += pointer.bytes;
        self.read_bytes += pointer.bytes + gap.min(BACKGROUND_GAP_BYTES_MAX);
    }

    /// Queued records.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of the queued records.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Whether it is time to carry them out.
    pub fn is_full(&self) -> bool {
        self.read_bytes >= READ_BYTES_MAX
    }

    /// Copies what is queued. After an error the file must be given up.
    pub fn carry_out(&mut self, inputs: &BlobInputs<'_>, writer: &mut BlobWriter) -> Result<()> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let readers = self
            .ends
            .iter()
            .map(|&(file, _)| Ok((file, inputs.tables.blob(inputs.blobs.find(file)?)?)))
            .collect::<Result<Vec<(u64, Arc<BlobReader>)>>>()?;
        let mut places: Vec<usize> = (0..self.queue.len()).collect();
        places.sort_unstable_by_key(|&place| (self.queue[place].file, self.queue[place].offset));
        let wanted = places
            .iter()
            .map(|&place| {
                let pointer = &self.queue[place];
                let reader = readers.iter().find(|(file, _)| *file == pointer.file);
                let (_, reader) =
                    reader.ok_or_else(|| Error::bug("a blob file was not opened for its records"))?;
                Ok(WantedValue { reader, pointer })
            })
            .collect::<Result<Vec<_>>>()?;
        let records = read_records(inputs.tables.fs(), &wanted)?;
        let mut read: Vec<_> = places.iter().zip(wanted.iter().zip(&records)).collect();
        read.sort_unstable_by_key(|(place, _)| **place);
        for (_, (WantedValue { reader, pointer }, record)) in read {
            let bytes = record.buffer.get(record.at..record.at + pointer.bytes as usize);
            let bytes = bytes.ok_or_else(|| Error::bug("less of a blob file was read than was wanted"))?;
            writer.copy(reader, pointer, bytes)?;
        }
        self.clear();
        Ok(())
    }

    /// Forgets what is queued.
    pub fn clear(&mut self) {
        self.queue.clear();
        self.ends.clear();
        (self.record_bytes, self.read_bytes) = (0, 0);
    }
}
