//! Files in memory and tables in memory, for tests.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use esker_env::WriteFile;

use super::fuzz::Bytes;
use super::*;
use crate::cache::BlockCache;
use crate::error::Result;
use crate::key::KeyOrder;
use crate::metrics::Metrics;

/// A file that is written in memory; its bytes stay readable from outside.
#[derive(Clone, Debug, Default)]
pub struct MemWriter {
    pub bytes: Arc<Mutex<Vec<u8>>>,
    /// Appends that succeed before one fails.
    pub appends_left: Option<usize>,
}

impl MemWriter {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().expect("not poisoned"))
    }
}

impl WriteFile for MemWriter {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        match &mut self.appends_left {
            Some(0) => return Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some(left) => *left -= 1,
            None => {}
        }
        self.bytes.lock().expect("not poisoned").extend_from_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes.lock().expect("not poisoned").len() as u64
    }

    fn finish(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Entries in order; internal keys.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub fn small_options(order: &KeyOrder) -> TableOptions {
    let mut options = TableOptions::new(&crate::ColumnFamilyOptions::default(), 0);
    options.order = order.clone();
    options.database_id = 11;
    options.file_number = 22;
    options.creation_unix_seconds = 33;
    options
}

pub fn write(options: &TableOptions, entries: &Entries) -> (Vec<u8>, TableSummary) {
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), Path::new("test.sst"), options.clone());
    for (key, value) in entries {
        writer.add(key, value).expect("in order");
    }
    let summary = writer.finish(true).expect("memory takes it");
    let bytes = file.take();
    assert_eq!(bytes.len() as u64, summary.file_bytes);
    (bytes, summary)
}

pub fn open_with(
    bytes: Vec<u8>,
    order: &KeyOrder,
    options: &TableOpenOptions,
    cache: &Arc<BlockCache>,
) -> Result<Arc<Table>> {
    Table::open(
        Arc::new(Bytes(bytes)),
        Path::new("test.sst"),
        7,
        order.clone(),
        Arc::clone(cache),
        Arc::new(Metrics::default()),
        options,
    )
    .map(Arc::new)
}

pub fn open(bytes: Vec<u8>, order: &KeyOrder) -> Result<Arc<Table>> {
    let cache = Arc::new(BlockCache::new(4 << 20));
    open_with(bytes, order, &TableOpenOptions::default(), &cache)
}
