//! Batches that are steps of a two-phase commit: what the record of each in the WAL is called, and what it means.
//!
//! | kind | the batch | the name |
//! |---|---|---|
//! | batch | is committed | none |
//! | prepare | is kept until its name is resolved | of what is prepared |
//! | carried | the same; a copy of a prepare record of an earlier segment | the same |
//! | commit | is committed behind the prepared one, which is committed, too | of what is committed |
//! | roll back | is empty | of what is forgotten |
//!
//! The name stands behind the mutations, and its length (two bytes) behind the name, so that a batch becomes a step, and a
//! plain batch again, without being moved.

use super::{BATCH_LEN_MAX, HEADER_LEN, RawBatch, SEQUENCE_LEN};
use crate::error::{Error, ErrorKind, Result};

/// The longest name of a prepared batch, in bytes.
pub const NAME_LEN_MAX: usize = 4096;

/// Bytes of a name's length.
const LEN_LEN: usize = 2;

/// Offset of the kind in the encoding.
const KIND_AT: usize = SEQUENCE_LEN;

/// What a record of the WAL does with its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Commits it.
    Batch = 0,
    /// Prepares it.
    Prepare = 1,
    /// Prepares it: a copy of what an earlier segment holds.
    Carried = 2,
    /// Commits what was prepared, and this batch behind it.
    Commit = 3,
    /// Forgets what was prepared.
    RollBack = 4,
}

impl StepKind {
    /// All of them: a kind that is not here is not read.
    pub const ALL: [Self; 5] = [
        Self::Batch,
        Self::Prepare,
        Self::Carried,
        Self::Commit,
        Self::RollBack,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// Whether these bytes of a record are those of a [carried](StepKind::Carried) batch.
pub fn is_carried(record: &[u8]) -> bool {
    record.get(KIND_AT) == Some(&(StepKind::Carried as u8))
}

impl RawBatch {
    /// What the record does.
    #[inline]
    pub fn kind(&self) -> StepKind {
        // Checked where the bytes came from.
        StepKind::from_byte(self.bytes[KIND_AT]).unwrap_or(StepKind::Batch)
    }

    /// The name that the step is about; empty for a plain batch.
    pub fn name(&self) -> &[u8] {
        let end = self.bytes.len() - LEN_LEN.min(self.name_len);
        &self.bytes[self.bytes.len() - self.name_len..end]
    }

    /// Makes a plain batch a step. Refuses a name that is empty or too long, and leaves the batch as it was.
    pub fn make_step(&mut self, kind: StepKind, name: &[u8]) -> Result<()> {
        debug_assert!(self.name_len == 0 && kind != StepKind::Batch);
        check_name(name)?;
        if self.bytes.len() + name.len() + LEN_LEN > BATCH_LEN_MAX {
            return Err(Error::invalid(format!(
                "with its name the write batch would pass its limit of {BATCH_LEN_MAX} bytes"
            )));
        }
        self.bytes[KIND_AT] = kind as u8;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.name_len = name.len() + LEN_LEN;
        Ok(())
    }

    /// Makes it a plain batch again.
    pub fn unmake_step(&mut self) {
        self.bytes.truncate(self.bytes.len() - self.name_len);
        self.bytes[KIND_AT] = StepKind::Batch as u8;
        self.name_len = 0;
    }

    /// Makes a prepare record the copy of it that later segments hold.
    pub fn carry(&mut self) {
        debug_assert!(matches!(self.kind(), StepKind::Prepare | StepKind::Carried));
        self.bytes[KIND_AT] = StepKind::Carried as u8;
    }

    /// Finds the name in bytes that came from a file.
    pub(super) fn find_name(&mut self) -> Result<()> {
        let kind = self.bytes[KIND_AT];
        let Some(kind) = StepKind::from_byte(kind) else {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a WAL record of kind {kind} is of a newer version"),
            ));
        };
        if kind == StepKind::Batch {
            return Ok(());
        }
        let behind_header = &self.bytes[HEADER_LEN..];
        let name = behind_header
            .split_last_chunk()
            .map(|(rest, len)| (rest, usize::from(u16::from_le_bytes(*len))))
            .filter(|(rest, len)| (1..=NAME_LEN_MAX.min(rest.len())).contains(len));
        let Some((_, len)) = name else {
            return Err(Error::corruption("a step of a two-phase commit has no name"));
        };
        if kind == StepKind::RollBack && self.count() > 0 {
            return Err(Error::corruption("a record that rolls back holds mutations"));
        }
        self.name_len = len + LEN_LEN;
        Ok(())
    }
}

/// Refuses what can't be the name of a prepared batch.
fn check_name(name: &[u8]) -> Result<()> {
    let len = name.len();
    if (1..=NAME_LEN_MAX).contains(&len) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the name of a prepared batch has {len} bytes; it must have 1 to {NAME_LEN_MAX}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ValueKind;

    fn batch() -> RawBatch {
        let mut batch = RawBatch::default();
        batch.push(0, ValueKind::Put, b"key", b"value").unwrap();
        batch.push(7, ValueKind::Delete, b"gone", b"").unwrap();
        batch
    }

    #[test]
    fn a_step_has_the_batch_and_its_name_and_becomes_the_batch_again() {
        let plain = batch();
        for kind in [StepKind::Prepare, StepKind::Carried, StepKind::Commit] {
            for len in [1, 136, NAME_LEN_MAX] {
                let mut step = plain.clone();
                let name = vec![0xfe; len];
                step.make_step(kind, &name).unwrap();
                step.set_sequence((1 << 56) - 1);
                let read = RawBatch::from_bytes(step.as_bytes().to_vec()).unwrap();
                assert_eq!((read.kind(), read.name()), (kind, &name[..]));
                assert_eq!(read.sequence(), (1 << 56) - 1);
                let entries: Vec<_> = read.iter().map(|entry| entry.unwrap()).collect();
                assert_eq!(
                    entries,
                    plain.iter().map(|entry| entry.unwrap()).collect::<Vec<_>>()
                );
                assert_eq!(is_carried(step.as_bytes()), kind == StepKind::Carried);
                step.unmake_step();
                step.set_sequence(0);
                assert_eq!(step, plain);
            }
        }
        assert_eq!((plain.kind(), plain.name()), (StepKind::Batch, &b""[..]));
    }

    #[test]
    fn names_have_limits_which_the_error_names() {
        for len in [0, NAME_LEN_MAX + 1] {
            let mut step = batch();
            let error = step.make_step(StepKind::Prepare, &vec![1; len]).unwrap_err();
            assert!(error.message().contains("1 to 4096"), "{error}");
            assert_eq!(step, batch());
        }
    }

    #[test]
    fn what_is_cut_or_of_a_later_version_is_refused() {
        let mut step = batch();
        step.make_step(StepKind::Prepare, &[b'x'; 300]).unwrap();
        let bytes = step.as_bytes();
        for len in HEADER_LEN..bytes.len() {
            let cut = RawBatch::from_bytes(bytes[..len].to_vec());
            assert!(
                cut.is_err() || cut.unwrap().iter().any(|entry| entry.is_err()),
                "cut to {len}"
            );
        }
        let mut later = bytes.to_vec();
        later[KIND_AT] = 5;
        assert_eq!(
            RawBatch::from_bytes(later).unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        let mut full = bytes.to_vec();
        full[KIND_AT] = StepKind::RollBack as u8;
        assert_eq!(
            RawBatch::from_bytes(full).unwrap_err().kind(),
            ErrorKind::Corruption
        );
    }
}
