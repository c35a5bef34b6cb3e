//! The fuzz target's way into the reader.

use std::io;
use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::format::{SegmentHeader, SegmentId};
use super::reader::WalReader;
use super::tail::{Tailed, WalTail};
use crate::options::RecoveryMode;

/// A file that is a byte string.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl RandomFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let count = buf.len().min(self.0.len() - start);
        buf[..count].copy_from_slice(&self.0[start..start + count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// Reads any bytes as a segment in every mode. It must end, without a panic, and give records in order whose
/// payloads lie in the file; `PointInTime` must give a prefix of what `SkipCorrupt` gives, and a tail the same as
/// `PointInTime`. The records that `SkipCorrupt` gave are returned.
///
/// # Panics
/// If one of that does not hold.
pub fn fuzz_read(bytes: &[u8]) -> u64 {
    let id = SegmentHeader::decode(bytes).map_or(SegmentId { db_id: 1, number: 1 }, |header| header.id);
    let read = |mode| {
        let file = Arc::new(Bytes(bytes.to_vec()));
        let mut reader = WalReader::new(file, Path::new("fuzz.wal"), id, mode).ok()?;
        let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut payload_bytes = 0;
        let is_whole = loop {
            match reader.next() {
                Ok(Some(record)) => {
                    payload_bytes += record.payload.len();
                    records.push((record.offset, record.payload.to_vec()));
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert!(records.is_sorted_by(|a, b| a.0 < b.0), "records out of order");
        assert!(payload_bytes <= bytes.len(), "more payload than file");
        let report = reader.report();
        assert_eq!(report.records, records.len() as u64);
        assert!(report.end_offset + report.unusable_bytes == bytes.len() as u64);
        assert!(report.skipped.bytes <= bytes.len() as u64);
        Some((records, is_whole))
    };
    let strict = read(RecoveryMode::Absolute);
    let prefix = read(RecoveryMode::PointInTime);
    let all = read(RecoveryMode::SkipCorrupt);
    let (Some((prefix, _)), Some((all, _))) = (prefix, all) else {
        return 0;
    };
    assert!(
        all.starts_with(&prefix),
        "PointInTime gave what SkipCorrupt did not"
    );
    let mut tail = WalTail::new(Arc::new(Bytes(bytes.to_vec())), Path::new("fuzz.wal"), id);
    for (_, record) in &prefix {
        assert_eq!(tail.read().ok(), Some(Tailed::Record(record)));
        tail.pass();
    }
    assert!(matches!(tail.read(), Ok(Tailed::Finished | Tailed::Waiting)));
    if let Some((strict, is_whole)) = strict {
        assert!(all.starts_with(&strict));
        assert!(
            !is_whole || strict.len() == all.len(),
            "Absolute lost records silently"
        );
    }
    all.len() as u64
}
