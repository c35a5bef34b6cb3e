//! WRITE 1: an atomic group of mutations, encoded as it goes into the WAL.
//!
//! ```text
//! sequence u56 | kind u8 | count u32 | entry * | [name | length of the name u16]
//! entry = tag u8 (kind, plus 0x80 if a column family id follows) | [family varint] | key slice | [value slice]
//! ```
//! A slice is a varint length and the bytes. Delete and single delete have no value; a range delete's key is the
//! start of the range and its value the end (exclusive). The sequence is that of the first entry; each entry takes
//! the next one. Kind and name make the batch a step of a two-phase commit (`step.rs`); a plain one has kind 0 and no name.

mod fuzz;
mod step;

pub use fuzz::fuzz_decode;
pub use step::{NAME_LEN_MAX, StepKind, is_carried};

use crate::codec::{put_slice, put_varint, take_slice, take_u8, take_varint32};
use crate::error::{Error, Result};
use crate::key::{KEY_LEN_MAX, Sequence, VALUE_LEN_MAX, ValueKind};

/// Bytes before the first entry.
pub const HEADER_LEN: usize = 12;

/// The column family id of `default`.
pub const DEFAULT_COLUMN_FAMILY: u32 = 0;

const FAMILY_FLAG: u8 = 0x80;

/// Bytes of the sequence number; sequence numbers are below 2^56, as internal keys hold no more.
const SEQUENCE_LEN: usize = 7;

/// The largest batch, in bytes (what a WAL record can carry).
pub const BATCH_LEN_MAX: usize = u32::MAX as usize - HEADER_LEN;

/// Mutations that become visible, and durable, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBatch {
    bytes: Vec<u8>,
    /// Whether an entry may name a family other than the default one.
    names_families: bool,
    /// Bytes behind the last entry: those of the name.
    name_len: usize,
}

impl Default for RawBatch {
    fn default() -> Self {
        Self {
            bytes: vec![0; HEADER_LEN],
            names_families: false,
            name_len: 0,
        }
    }
}

/// Where a batch ended at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    len: usize,
    count: u32,
    names_families: bool,
}

/// One mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The column family's id.
    pub family: u32,
    /// What happens to the key.
    pub kind: ValueKind,
    /// The key, or the start of the range.
    pub key: &'a [u8],
    /// The value, the operand, or the end of the range; empty for deletes.
    pub value: &'a [u8],
}

impl RawBatch {
    /// Takes encoded bytes as they are found in the WAL; checks the header and the name only. `Unsupported` if the kind is of
    /// a later version.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        if bytes.len() < HEADER_LEN {
            return Err(Error::corruption(format!(
                "a write batch of {} bytes has no header",
                bytes.len()
            )));
        }
        let mut batch = Self {
            bytes,
            names_families: true,
            name_len: 0,
        };
        batch.find_name()?;
        Ok(batch)
    }

    /// Empties it; keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_LEN);
        self.bytes[..HEADER_LEN].fill(0);
        self.names_families = false;
        self.name_len = 0;
    }

    /// Whether an entry may name a family other than the default one; false is certain.
    #[inline]
    pub fn names_families(&self) -> bool {
        self.names_families
    }

    /// The encoding.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of mutations.
    #[inline]
    pub fn count(&self) -> u32 {
        u32::from_le_bytes([self.bytes[8], self.bytes[9], self.bytes[10], self.bytes[11]])
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The sequence number of its first entry (0 until it is committed).
    #[inline]
    pub fn sequence(&self) -> Sequence {
        let mut sequence = [0; 8];
        sequence[..SEQUENCE_LEN].copy_from_slice(&self.bytes[..SEQUENCE_LEN]);
        u64::from_le_bytes(sequence)
    }

    /// Sets the sequence number of its first entry.
    #[inline]
    pub fn set_sequence(&mut self, sequence: Sequence) {
        self.bytes[..SEQUENCE_LEN].copy_from_slice(&sequence.to_le_bytes()[..SEQUENCE_LEN]);
    }

    /// Adds a mutation; refuses keys, values and batches past their limits and leaves the batch as it was.
    pub fn push(&mut self, family: u32, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        debug_assert!(self.name_len == 0, "a mutation behind the name of a step");
        if key.len() > KEY_LEN_MAX || (kind == ValueKind::RangeDelete && value.len() > KEY_LEN_MAX) {
            let len = if key.len() > KEY_LEN_MAX {
                key.len()
            } else {
                value.len()
            };
            return Err(Error::invalid(format!(
                "a key of {len} bytes; the limit is {KEY_LEN_MAX}"
            )));
        }
        if value.len() as u64 > VALUE_LEN_MAX {
            let len = value.len();
            return Err(Error::invalid(format!(
                "a value of {len} bytes; the limit is {VALUE_LEN_MAX}"
            )));
        }
        // Tag, family and two lengths take 16 bytes at most.
        if self.bytes.len() + key.len() + value.len() + 16 > BATCH_LEN_MAX {
            return Err(Error::invalid(format!(
                "the write batch would pass its limit of {BATCH_LEN_MAX} bytes"
            )));
        }
        self.bytes.reserve(key.len() + value.len() + 16);
        if family == DEFAULT_COLUMN_FAMILY {
            self.bytes.push(kind as u8);
        } else {
            self.names_families = true;
            self.bytes.push(kind as u8 | FAMILY_FLAG);
            put_varint(&mut self.bytes, u64::from(family));
        }
        put_slice(&mut self.bytes, key);
        if has_value(kind) {
            put_slice(&mut self.bytes, value);
        }
        let count = self.count() + 1;
        self.bytes[8..HEADER_LEN].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }

    /// Adds all mutations of `other` behind its own.
    pub fn append(&mut self, other: &RawBatch) -> Result<()> {
        if self.bytes.len() + other.bytes.len() > BATCH_LEN_MAX {
            return Err(Error::invalid(format!(
                "the write batch would pass its limit of {BATCH_LEN_MAX} bytes"
            )));
        }
        let count = self.count() + other.count();
        self.names_families |= other.names_families;
        self.bytes.extend_from_slice(other.entries());
        self.bytes[8..HEADER_LEN].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }

    /// Where it ends now.
    pub fn mark(&self) -> Mark {
        Mark {
            len: self.bytes.len(),
            count: self.count(),
            names_families: self.names_families,
        }
    }

    /// Takes back what was added since `mark`, which must be this batch's, made since it was last cleared.
    pub fn roll_back_to(&mut self, mark: Mark) {
        debug_assert!(mark.len <= self.bytes.len() && mark.count <= self.count());
        self.bytes.truncate(mark.len);
        self.bytes[8..HEADER_LEN].copy_from_slice(&mark.count.to_le_bytes());
        self.names_families = mark.names_families;
    }

    /// The mutation that begins at `offset` of the encoding, where the batch ended when it was pushed. At any other offset there
    /// is none, or one that nobody pushed.
    #[inline]
    pub fn entry_at(&self, offset: usize) -> Option<Entry<'_>> {
        let rest = self.entries().get(offset.max(HEADER_LEN) - HEADER_LEN..)?;
        Entries { rest, left: 1 }.decode()
    }

    /// The mutations in order.
    #[inline]
    pub fn iter(&self) -> Entries<'_> {
        Entries {
            rest: self.entries(),
            left: self.count(),
        }
    }

    /// The encoding of the mutations.
    #[inline]
    fn entries(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..self.bytes.len() - self.name_len]
    }
}

fn has_value(kind: ValueKind) -> bool {
    !matches!(kind, ValueKind::Delete | ValueKind::SingleDelete)
}

/// The mutations of a batch; an `Err` item ends it.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Entries<'a> {
    #[inline]
    fn decode(&mut self) -> Option<Entry<'a>> {
        let input = &mut self.rest;
        let tag = take_u8(input)?;
        let kind = ValueKind::from_u8(tag & !FAMILY_FLAG)?;
        let family = if tag & FAMILY_FLAG == 0 {
            DEFAULT_COLUMN_FAMILY
        } else {
            take_varint32(input)?
        };
        let key = take_slice(input)?;
        let value = if has_value(kind) { take_slice(input)? } else { &[] };
        let value_len_max = match kind {
            ValueKind::RangeDelete => KEY_LEN_MAX as u64,
            _ => VALUE_LEN_MAX,
        };
        (key.len() <= KEY_LEN_MAX && value.len() as u64 <= value_len_max).then_some(Entry {
            family,
            kind,
            key,
            value,
        })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            if self.rest.is_empty() {
                return None;
            }
            self.rest = &[];
            return Some(Err(Error::corruption(
                "a write batch has bytes behind its last entry",
            )));
        }
        self.left -= 1;
        match self.decode() {
            Some(entry) => Some(Ok(entry)),
            None => {
                self.left = 0;
                self.rest = &[];
                Some(Err(Error::corruption(
                    "a write batch holds an entry that can't be decoded",
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = ValueKind> {
        (0_u8..=5).prop_filter_map("a kind", ValueKind::from_u8)
    }

    proptest! {
        #[test]
        fn entries_come_back(
            entries in prop::collection::vec((any::<u32>(), kind(), any::<Vec<u8>>(), any::<Vec<u8>>()), 0..20)
        ) {
            let mut batch = RawBatch::default();
            for (family, kind, key, value) in &entries {
                batch.push(*family, *kind, key, value).unwrap();
            }
            let mut offset = HEADER_LEN;
            for entry in batch.iter().map(|entry| entry.unwrap()) {
                prop_assert_eq!(batch.entry_at(offset), Some(entry));
                let mut prefix = RawBatch::default();
                prefix.push(entry.family, entry.kind, entry.key, entry.value).unwrap();
                offset += prefix.as_bytes().len() - HEADER_LEN;
            }
            prop_assert_eq!(batch.entry_at(offset), None);
            batch.set_sequence(77);
            let again = RawBatch::from_bytes(batch.as_bytes().to_vec()).unwrap();
            prop_assert_eq!(again.sequence(), 77);
            let read: Vec<_> = again.iter().map(|entry| entry.unwrap()).collect();
            prop_assert_eq!(read.len(), entries.len());
            for (entry, (family, kind, key, value)) in read.iter().zip(&entries) {
                prop_assert_eq!(entry.family, *family);
                prop_assert_eq!(entry.kind, *kind);
                prop_assert_eq!(entry.key, key.as_slice());
                prop_assert_eq!(entry.value, if has_value(*kind) { value.as_slice() } else { &[] });
            }
        }

        #[test]
        fn decoding_never_panics(mut bytes in prop::collection::vec(any::<u8>(), HEADER_LEN..200)) {
            // Of a kind that there is, mostly.
            bytes[SEQUENCE_LEN] %= 6;
            if let Ok(batch) = RawBatch::from_bytes(bytes) {
                prop_assert!(batch.iter().count() <= batch.count() as usize + 1);
            }
        }
    }

    #[test]
    fn an_over_long_key_is_refused_and_names_the_limit() {
        let mut batch = RawBatch::default();
        let error = batch
            .push(0, ValueKind::Put, &vec![0; KEY_LEN_MAX + 1], b"")
            .unwrap_err();
        assert!(error.message().contains("65536"), "{error}");
        assert!(batch.is_empty());
        let error = batch
            .push(0, ValueKind::RangeDelete, b"a", &vec![0; KEY_LEN_MAX + 1])
            .unwrap_err();
        assert!(error.message().contains("65537"), "{error}");
    }

    #[test]
    fn what_can_not_be_pushed_is_not_decoded() {
        let long = vec![0; KEY_LEN_MAX + 1];
        for (kind, key, value) in [
            (ValueKind::Put, &long, &vec![]),
            (ValueKind::RangeDelete, &vec![], &long),
        ] {
            let mut bytes = vec![0; HEADER_LEN];
            bytes[8] = 1;
            bytes.push(kind as u8);
            put_slice(&mut bytes, key);
            put_slice(&mut bytes, value);
            let batch = RawBatch::from_bytes(bytes).unwrap();
            let entries: Vec<_> = batch.iter().collect();
            assert!(matches!(entries.as_slice(), [Err(_)]), "{kind:?}");
        }
    }

    #[test]
    fn a_cut_batch_is_an_error_not_an_end() {
        let mut batch = RawBatch::default();
        batch.push(0, ValueKind::Put, b"key", b"value").unwrap();
        let bytes = batch.as_bytes();
        for len in HEADER_LEN..bytes.len() {
            let cut = RawBatch::from_bytes(bytes[..len].to_vec()).unwrap();
            assert!(cut.iter().any(|entry| entry.is_err()), "cut to {len}");
        }
    }
}
