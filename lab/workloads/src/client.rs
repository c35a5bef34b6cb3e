//! One thread's work on a database in terms of rows: which key a row has and which value a write gives it is said
//! here, for all tests.

use esker_lab_core::data::{Key, Keys, Values};
use esker_lab_core::engine::{Database, Durability, Session, Start};
use esker_lab_core::{Error, Result};

/// A session, and the buffers that keys and values are made in.
pub(crate) struct Client<'a> {
    session: Box<dyn Session + 'a>,
    keys: Keys,
    key: Key,
    /// Room for a key between two rows.
    between: Vec<u8>,
    values: &'a Values,
    value: Vec<u8>,
    batch: Vec<(Key, Vec<u8>)>,
}

impl<'a> Client<'a> {
    pub(crate) fn new(database: &'a dyn Database, keys: Keys, values: &'a Values) -> Result<Self> {
        Ok(Client {
            session: database.session()?,
            keys,
            key: keys.first(),
            between: Vec::new(),
            values,
            value: vec![0; values.value_bytes()],
            batch: Vec::new(),
        })
    }

    /// What rows that come back are checked against.
    pub(crate) fn rows(&self) -> (Keys, &'a Values) {
        (self.keys, self.values)
    }

    /// Writes the value that write number `version` gives `row`.
    pub(crate) fn put(&mut self, row: u64, version: u64, durability: Durability) -> Result<()> {
        self.values.write(row, version, &mut self.value);
        self.session.put(self.key.set(row), &self.value, durability)
    }

    /// Writes `count` rows from `first` on as one batch, version 0.
    pub(crate) fn put_batch(&mut self, first: u64, count: usize, durability: Durability) -> Result<()> {
        let (keys, value_bytes) = (self.keys, self.values.value_bytes());
        if self.batch.len() < count {
            self.batch
                .resize_with(count, || (keys.first(), vec![0; value_bytes]));
        }
        for (row, (key, value)) in (first..).zip(self.batch.iter_mut().take(count)) {
            key.set(row);
            self.values.write(row, 0, value);
        }
        let rows: Vec<(&[u8], &[u8])> = self
            .batch
            .iter()
            .take(count)
            .map(|(key, value)| (key.bytes(), value.as_slice()))
            .collect();
        self.session.put_batch(&rows, durability)
    }

    /// Merges the value that write number `version` gives `row` into it.
    pub(crate) fn merge(&mut self, row: u64, version: u64, durability: Durability) -> Result<()> {
        self.values.write(row, version, &mut self.value);
        self.session.merge(self.key.set(row), &self.value, durability)
    }

    pub(crate) fn delete(&mut self, row: u64, durability: Durability) -> Result<()> {
        self.session.delete(self.key.set(row), durability)
    }

    /// Reads `row` and returns the version found, `None` if it is missing. A value that no write made is an error.
    pub(crate) fn read(&mut self, row: u64) -> Result<Option<u64>> {
        let (values, mut version) = (self.values, None);
        if !self.session.get(self.key.set(row), &mut |value| {
            version = values.check(row, value);
        })? {
            return Ok(None);
        }
        match version {
            Some(version) => Ok(Some(version)),
            None => Err(Error::wrong(format!(
                "row {row}: the value read was never written to it"
            ))),
        }
    }

    /// Whether there is a key between `row` and the next: its own and a dot, as in db_bench, which nobody wrote.
    pub(crate) fn reads_between(&mut self, row: u64) -> Result<bool> {
        self.between.clear();
        self.between.extend_from_slice(self.key.set(row));
        self.between.push(b'.');
        self.session.get(&self.between, &mut |_| ())
    }

    /// Visits rows in ascending order from `row` on.
    pub(crate) fn scan_from(&mut self, row: u64, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.session.scan(Start::At(self.key.set(row)), visit)
    }

    /// Visits all rows from one end.
    pub(crate) fn scan(
        &mut self,
        start: Start<'static>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.session.scan(start, visit)
    }
}
