//! One thread's transactions in terms of rows and their versions.

use esker_lab_core::data::{Key, Keys, Values};
use esker_lab_core::engine::Database;
use esker_lab_core::transaction::{Begin, TransactionSession};
use esker_lab_core::{Error, Result};

/// A session, and the buffers that keys and values are made in.
pub(super) struct TransactionClient<'a> {
    session: Box<dyn TransactionSession + 'a>,
    key: Key,
    values: &'a Values,
    value: Vec<u8>,
}

impl<'a> TransactionClient<'a> {
    pub(super) fn new(database: &'a dyn Database, keys: Keys, values: &'a Values) -> Result<Self> {
        Ok(TransactionClient {
            session: database.transactions()?,
            key: keys.first(),
            values,
            value: vec![0; values.value_bytes()],
        })
    }

    pub(super) fn begin(&mut self, begin: Begin) -> Result<()> {
        self.session.begin(begin)
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.session.commit()
    }

    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.session.roll_back()
    }

    /// The version of `row`. A row that is missing, or a value that no write made, is an error.
    pub(super) fn read(&mut self, row: u64) -> Result<u64> {
        self.version(row, false)
    }

    /// The version of `row`, which nobody else may write before this transaction has ended.
    pub(super) fn read_for_update(&mut self, row: u64) -> Result<u64> {
        self.version(row, true)
    }

    fn version(&mut self, row: u64, for_update: bool) -> Result<u64> {
        let (values, mut version) = (self.values, None);
        let (session, key) = (&mut self.session, self.key.set(row));
        let mut found = |value: &[u8]| version = values.check(row, value);
        let is_there = if for_update {
            session.get_for_update(key, &mut found)?
        } else {
            session.get(key, &mut found)?
        };
        match version {
            Some(version) => Ok(version),
            None if is_there => Err(Error::wrong(format!(
                "row {row}: the value read was never written to it"
            ))),
            None => Err(Error::wrong(format!("row {row} is missing"))),
        }
    }

    /// Writes `row` as its version `version`.
    pub(super) fn write(&mut self, row: u64, version: u64) -> Result<()> {
        self.values.write(row, version, &mut self.value);
        self.session.put(self.key.set(row), &self.value)
    }

    /// Counts `row` up by one.
    pub(super) fn update(&mut self, row: u64) -> Result<()> {
        let version = self.read_for_update(row)?;
        self.write(row, version + 1)
    }
}
