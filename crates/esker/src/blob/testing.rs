//! Blob files in memory that count how they are read, for tests.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_env::{CreateOptions, Env, RandomFile};

use super::*;
use crate::error::Result;
use crate::options::Compression;

pub const DATABASE: u64 = 11;

/// A file in memory that counts reads and their bytes.
#[derive(Debug, Default)]
pub struct CountingFile {
    pub bytes: Vec<u8>,
    pub reads: AtomicU64,
    pub read_bytes: AtomicU64,
}

impl CountingFile {
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

impl RandomFile for CountingFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.bytes.len());
        let len = buf.len().min(self.bytes.len() - from);
        buf[..len].copy_from_slice(&self.bytes[from..from + len]);
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.read_bytes.fetch_add(len as u64, Ordering::SeqCst);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
}

/// The bytes of a blob file with these values, and the pointers to them.
pub fn write<V: AsRef<[u8]>>(
    number: u64,
    compression: Compression,
    values: &[V],
) -> (Vec<u8>, Vec<BlobPointer>, BlobSummary) {
    let (env, _) = Env::simulated(1);
    let path = Path::new("/test.blob");
    let file = env.fs.create(path, CreateOptions::default()).expect("a file");
    let mut writer = BlobWriter::new(file, path, DATABASE, number, compression).expect("empty");
    let pointers: Vec<_> = values
        .iter()
        .map(|value| {
            let at = writer.bytes();
            let pointer = writer.add(value.as_ref()).expect("memory takes it");
            assert_eq!(at, pointer.offset);
            assert_eq!(writer.bytes(), at + pointer.bytes);
            pointer
        })
        .collect();
    assert_eq!(writer.records(), values.len() as u64);
    let summary = writer.finish(true).expect("memory takes it");
    let bytes = env.fs.read_all(path).expect("the file");
    assert_eq!(bytes.len() as u64, summary.file_bytes);
    (bytes, pointers, summary)
}

pub fn open(number: u64, bytes: Vec<u8>) -> Result<(Arc<BlobReader>, Arc<CountingFile>)> {
    let file = Arc::new(CountingFile {
        bytes,
        ..CountingFile::default()
    });
    let reader = BlobReader::open(
        Arc::clone(&file) as Arc<dyn RandomFile>,
        Path::new("test.blob"),
        DATABASE,
        number,
    )?;
    file.reads.store(0, Ordering::SeqCst);
    file.read_bytes.store(0, Ordering::SeqCst);
    Ok((Arc::new(reader), file))
}

/// Values that compress and values that don't, of many lengths.
pub fn values(count: u64, len: impl Fn(u64) -> usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| {
            let mut state = i;
            (0..len(i))
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if i % 3 == 0 { i as u8 } else { (state >> 56) as u8 }
                })
                .collect()
        })
        .collect()
}
