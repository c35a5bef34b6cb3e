//! The batches that are prepared and neither committed nor rolled back.
//!
//! They are in memory, as they are needed whole when they are committed and when a segment of the log begins, and each is in
//! the current segment of the log (`log.rs`).
//!
//! A name goes through these states; the caller's thread makes the first and the last step, the leader of the pipeline those
//! between, in the group that logs the record. So whatever the log says under the token, the set says, too.
//!
//! ```text
//!               prepare                     logged                commit or roll back             logged
//!     (unknown) -------> [Preparing] ------------> [Prepared] -----------------------> [Resolving] -----> (unknown)
//!         ^                   | failed                 ^                                    | failed
//!         +-------------------+                        +------------------------------------+
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::RawBatch;
use crate::error::{Error, ErrorKind, Result};

enum State {
    /// Its record is not in the log yet; it takes this many bytes.
    Preparing(u64),
    Prepared(Arc<RawBatch>),
    /// Somebody commits it or rolls it back; the log does not say so yet.
    Resolving(Arc<RawBatch>),
}

impl State {
    fn bytes(&self) -> u64 {
        match self {
            Self::Preparing(bytes) => *bytes,
            Self::Prepared(batch) | Self::Resolving(batch) => batch.as_bytes().len() as u64,
        }
    }

    /// What the log holds of it.
    fn logged(&self) -> Option<&Arc<RawBatch>> {
        match self {
            Self::Preparing(_) => None,
            Self::Prepared(batch) | Self::Resolving(batch) => Some(batch),
        }
    }
}

/// What is prepared, by name.
#[derive(Default)]
pub(super) struct PreparedSet {
    by_name: BTreeMap<Vec<u8>, State>,
    /// Sum of all states' bytes.
    bytes: u64,
}

impl PreparedSet {
    /// Takes a name for a batch that is about to be prepared, and room for its bytes.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken; `Retry` if all batches together would pass `bytes_max`. One alone may.
    pub fn reserve(&mut self, name: &[u8], bytes: u64, bytes_max: u64) -> Result<()> {
        if self.by_name.contains_key(name) {
            return Err(Error::invalid(format!(
                "a batch is prepared under the name '{}' already",
                name.escape_ascii()
            )));
        }
        if self.bytes > 0 && self.bytes.saturating_add(bytes) > bytes_max {
            return Err(Error::new(
                ErrorKind::Retry,
                format!(
                    "prepared batches take {} bytes, and {bytes} more would pass memtables_bytes_max, which is {bytes_max}",
                    self.bytes
                ),
            ));
        }
        self.insert(name.to_vec(), State::Preparing(bytes));
        Ok(())
    }

    /// Adds a batch whose prepare record is in the log, under the name that it has. As the next segments will hold it.
    pub fn add(&mut self, mut batch: RawBatch) {
        batch.carry();
        self.insert(batch.name().to_vec(), State::Prepared(Arc::new(batch)));
    }

    /// The batch that is to be committed or rolled back; nobody else gets it until it is [given back](Self::give_back).
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name; `Retry` if it is being prepared or resolved by another thread.
    pub fn take(&mut self, name: &[u8]) -> Result<Arc<RawBatch>> {
        match self.by_name.get_mut(name) {
            Some(state) => {
                let State::Prepared(batch) = state else {
                    return Err(Error::new(
                        ErrorKind::Retry,
                        format!(
                            "'{}' is being prepared, committed or rolled back by another thread",
                            name.escape_ascii()
                        ),
                    ));
                };
                let batch = Arc::clone(batch);
                *state = State::Resolving(Arc::clone(&batch));
                Ok(batch)
            }
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("no batch is prepared under the name '{}'", name.escape_ascii()),
            )),
        }
    }

    /// Forgets what the log says is resolved by `step`, and gives it.
    ///
    /// # Errors
    /// `Corruption` if nothing is prepared under the step's name: the segment should hold it.
    pub fn resolve(&mut self, step: &RawBatch) -> Result<Arc<RawBatch>> {
        let name = step.name();
        let prepared = self.take(name).map_err(|_| {
            Error::corruption(format!(
                "'{}' is committed or rolled back, and was not prepared",
                name.escape_ascii()
            ))
        })?;
        self.remove(name);
        Ok(prepared)
    }

    /// After a failure: it is prepared as it was before it was [taken](Self::take).
    pub fn give_back(&mut self, name: &[u8]) {
        if let Some(state) = self.by_name.get_mut(name)
            && let State::Resolving(batch) = state
        {
            *state = State::Prepared(Arc::clone(batch));
        }
    }

    /// Forgets a name: the log says that it is resolved, or it never came to be prepared.
    pub fn remove(&mut self, name: &[u8]) {
        if let Some(state) = self.by_name.remove(name) {
            self.bytes = self.bytes.saturating_sub(state.bytes());
        }
    }

    /// All that the log holds, by name.
    pub fn all(&self) -> Vec<Arc<RawBatch>> {
        self.by_name.values().filter_map(State::logged).cloned().collect()
    }

    /// What the log holds under this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<RawBatch>> {
        self.by_name.get(name).and_then(State::logged)
    }

    /// Forgets everything: the log is read from another place.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the log holds something of it.
    pub fn is_logged(&self) -> bool {
        self.by_name.values().any(|state| state.logged().is_some())
    }

    fn insert(&mut self, name: Vec<u8>, state: State) {
        self.remove(&name);
        self.bytes += state.bytes();
        self.by_name.insert(name, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::StepKind;
    use crate::key::ValueKind;

    fn prepared(name: &[u8]) -> RawBatch {
        let mut batch = RawBatch::default();
        batch.push(0, ValueKind::Put, b"key", &[7; 100]).unwrap();
        batch.make_step(StepKind::Prepare, name).unwrap();
        batch
    }

    #[test]
    fn a_name_is_taken_from_its_reservation_until_it_is_resolved() {
        let mut set = PreparedSet::default();
        set.reserve(b"a", 130, 1000).unwrap();
        assert_eq!(
            set.reserve(b"a", 1, 1000).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(set.take(b"a").unwrap_err().kind(), ErrorKind::Retry);
        assert!(!set.is_logged() && set.all().is_empty());
        set.add(prepared(b"a"));
        assert_eq!(set.bytes(), prepared(b"a").as_bytes().len() as u64);
        assert_eq!(set.take(b"a").unwrap().name(), b"a");
        assert_eq!(set.take(b"a").unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(set.all().len(), 1, "the log does not say that it is resolved");
        set.give_back(b"a");
        set.take(b"a").unwrap();
        set.remove(b"a");
        assert_eq!(set.take(b"a").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!((set.bytes(), set.is_logged()), (0, false));
    }

    #[test]
    fn batches_together_have_a_limit_and_one_alone_has_none() {
        let mut set = PreparedSet::default();
        set.reserve(b"large", 5000, 1000).unwrap();
        let error = set.reserve(b"small", 1, 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retry);
        assert!(
            error.message().contains("memtables_bytes_max, which is 1000"),
            "{error}"
        );
        set.remove(b"large");
        set.reserve(b"small", 400, 1000).unwrap();
        set.reserve(b"small too", 600, 1000).unwrap();
        assert!(set.reserve(b"one more", 1, 1000).is_err());
    }
}
