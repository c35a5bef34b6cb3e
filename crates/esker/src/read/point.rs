//! A point read's verdict, taken from versions as they are found.
//!
//! The caller goes through its sources from the newest to the oldest. For each it first tells the newest range
//! tombstone there that covers the key ([`cover`](PointLookup::cover)), then the versions of the key that its
//! snapshot sees, newest first ([`push`](PointLookup::push)), then that the source holds no more
//! ([`source_done`](PointLookup::source_done)). It stops as soon as one of them answers [`Step::Done`].
//!
//! Why it may stop early: versions of one key never get older on the way from a deeper source to a newer one, so
//! (a) a Put or a Delete hides all that comes after it, and (b) a range tombstone that covers the key is newer
//! than every version in the sources below its own.

use super::operands::{Found, Operands, no_operator};
use crate::cache::SharedBytes;
use crate::error::{Error, Result};
use crate::key::{Sequence, ValueKind};
use crate::merge::MergeOperator;

/// Whether the read needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Older versions matter.
    Continue,
    /// The answer is known.
    Done,
}

/// What a point read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointValue<V> {
    /// The value as its source holds it.
    Pinned(V),
    /// A pointer into a blob file, as its source holds it.
    Blob(V),
    /// A value that the merge operator made.
    Merged(Vec<u8>),
}

#[derive(Debug)]
enum Verdict<V> {
    /// Nothing decides yet.
    Open,
    Deleted,
    Value(V),
    Blob(V),
}

/// Collects the versions of one user key into the value that a reader sees. Copies nothing and allocates nothing
/// unless the key was merged.
#[derive(Debug)]
pub struct PointLookup<V> {
    verdict: Verdict<V>,
    covering: Sequence,
    operands: Operands,
}

impl<V: AsRef<[u8]>> Default for PointLookup<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: AsRef<[u8]>> PointLookup<V> {
    /// Nothing found yet.
    pub fn new() -> Self {
        Self {
            verdict: Verdict::Open,
            covering: 0,
            operands: Operands::default(),
        }
    }

    /// The next source has a range tombstone at `sequence` that covers the key and that the reader sees (0: none).
    #[inline]
    pub fn cover(&mut self, sequence: Sequence) {
        self.covering = self.covering.max(sequence);
    }

    /// The next older version of the key. `pin` makes the value's handle; it is called only if the value is kept.
    #[inline]
    pub fn push(&mut self, sequence: Sequence, kind: ValueKind, pin: impl FnOnce() -> V) -> Result<Step> {
        debug_assert!(matches!(self.verdict, Verdict::Open), "pushed to after Done");
        self.verdict = if sequence < self.covering {
            Verdict::Deleted
        } else {
            match kind {
                ValueKind::Put => Verdict::Value(pin()),
                ValueKind::BlobPointer => Verdict::Blob(pin()),
                ValueKind::Delete | ValueKind::SingleDelete => Verdict::Deleted,
                ValueKind::Merge => {
                    self.operands.push(pin().as_ref());
                    return Ok(Step::Continue);
                }
                ValueKind::RangeDelete => {
                    return Err(Error::corruption("a range tombstone among point entries"));
                }
            }
        };
        Ok(Step::Done)
    }

    /// The source has no further versions.
    #[inline]
    pub fn source_done(&mut self) -> Step {
        if self.covering > 0 {
            self.verdict = Verdict::Deleted;
            return Step::Done;
        }
        Step::Continue
    }

    /// Whether operands were collected: `finish` will need a merge operator.
    pub fn is_merged(&self) -> bool {
        !self.operands.is_empty()
    }

    /// The pointer to the value that [`finish`](Self::finish) will need, if that lies in a blob file.
    #[inline]
    pub fn blob_pointer(&self) -> Option<&V> {
        match &self.verdict {
            Verdict::Blob(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// The value that the reader sees, or `None`. After `Done`, or when the sources are used up (the key's history
    /// ends there).
    #[inline]
    ///
    /// `fetch` reads the value behind a pointer; only a merge calls it, as what is no merge's base is for the caller
    /// to read, who may read several at once.
    pub fn finish(
        self,
        key: &[u8],
        operator: Option<&dyn MergeOperator>,
        fetch: impl FnOnce(&[u8]) -> Result<SharedBytes>,
    ) -> Result<Option<PointValue<V>>> {
        if self.operands.is_empty() {
            return Ok(match self.verdict {
                Verdict::Open | Verdict::Deleted => None,
                Verdict::Value(value) => Some(PointValue::Pinned(value)),
                Verdict::Blob(pointer) => Some(PointValue::Blob(pointer)),
            });
        }
        self.finish_merged(key, operator, fetch).map(Some)
    }

    #[cold]
    fn finish_merged(
        self,
        key: &[u8],
        operator: Option<&dyn MergeOperator>,
        fetch: impl FnOnce(&[u8]) -> Result<SharedBytes>,
    ) -> Result<PointValue<V>> {
        let fetched;
        let base = match &self.verdict {
            Verdict::Open | Verdict::Deleted => None,
            Verdict::Value(value) => Some(value.as_ref()),
            Verdict::Blob(_) if operator.is_none() => return Err(no_operator(key)),
            Verdict::Blob(pointer) => {
                fetched = fetch(pointer.as_ref())?;
                Some(&*fetched)
            }
        };
        let value = self.operands.fold(operator, key, base, Found::NewestFirst)?;
        Ok(PointValue::Merged(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::merge::AppendOperator;

    fn no_blobs(_: &[u8]) -> Result<SharedBytes> {
        Err(Error::bug("there are no blob files"))
    }

    fn comma() -> AppendOperator {
        AppendOperator::new(*b",")
    }

    fn push(
        lookup: &mut PointLookup<&'static [u8]>,
        sequence: u64,
        kind: ValueKind,
        value: &'static str,
    ) -> Step {
        lookup.push(sequence, kind, || value.as_bytes()).unwrap()
    }

    #[test]
    fn the_newest_put_is_pinned_as_it_is() {
        let mut lookup = PointLookup::new();
        assert_eq!(lookup.source_done(), Step::Continue);
        assert_eq!(push(&mut lookup, 5, ValueKind::Put, "v"), Step::Done);
        assert_eq!(
            lookup.finish(b"k", None, no_blobs).unwrap(),
            Some(PointValue::Pinned(&b"v"[..]))
        );
    }

    #[test]
    fn deletes_of_both_kinds_end_the_read_without_pinning() {
        for kind in [ValueKind::Delete, ValueKind::SingleDelete] {
            let mut lookup = PointLookup::<&[u8]>::new();
            let step = lookup.push(5, kind, || panic!("nothing to pin")).unwrap();
            assert_eq!(step, Step::Done);
            assert_eq!(lookup.finish(b"k", None, no_blobs).unwrap(), None);
        }
    }

    #[test]
    fn a_range_tombstone_hides_older_versions_only() {
        let mut lookup = PointLookup::new();
        lookup.cover(6);
        assert_eq!(push(&mut lookup, 7, ValueKind::Put, "new"), Step::Done);
        assert_eq!(
            lookup.finish(b"k", None, no_blobs).unwrap(),
            Some(PointValue::Pinned(&b"new"[..]))
        );
        let mut lookup = PointLookup::new();
        lookup.cover(6);
        assert_eq!(push(&mut lookup, 5, ValueKind::Put, "old"), Step::Done);
        assert_eq!(lookup.finish(b"k", None, no_blobs).unwrap(), None);
    }

    #[test]
    fn a_range_tombstone_spares_the_sources_below() {
        let mut lookup = PointLookup::<&[u8]>::new();
        lookup.cover(6);
        lookup.cover(2);
        assert_eq!(lookup.source_done(), Step::Done);
        assert_eq!(lookup.finish(b"k", None, no_blobs).unwrap(), None);
    }

    #[test]
    fn operands_fold_into_what_lies_below_them() {
        let merged =
            |lookup: PointLookup<&'static [u8]>| lookup.finish(b"k", Some(&comma()), no_blobs).unwrap();
        let start = || {
            let mut lookup = PointLookup::new();
            assert_eq!(push(&mut lookup, 9, ValueKind::Merge, "c"), Step::Continue);
            assert_eq!(push(&mut lookup, 8, ValueKind::Merge, "b"), Step::Continue);
            lookup
        };
        let mut on_put = start();
        assert_eq!(push(&mut on_put, 5, ValueKind::Put, "a"), Step::Done);
        assert_eq!(merged(on_put), Some(PointValue::Merged(b"a,b,c".to_vec())));
        let mut on_delete = start();
        assert_eq!(push(&mut on_delete, 5, ValueKind::Delete, ""), Step::Done);
        assert_eq!(merged(on_delete), Some(PointValue::Merged(b"b,c".to_vec())));
        let mut on_covered = start();
        on_covered.cover(6);
        assert_eq!(push(&mut on_covered, 5, ValueKind::Put, "a"), Step::Done);
        assert_eq!(merged(on_covered), Some(PointValue::Merged(b"b,c".to_vec())));
        assert_eq!(merged(start()), Some(PointValue::Merged(b"b,c".to_vec())));
    }

    #[test]
    fn operands_without_an_operator_are_the_callers_mistake() {
        let mut lookup = PointLookup::new();
        assert_eq!(push(&mut lookup, 9, ValueKind::Merge, "c"), Step::Continue);
        assert!(lookup.is_merged());
        let error = lookup.finish(b"k", None, no_blobs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_range_tombstone_as_a_point_entry_is_corruption() {
        let mut lookup = PointLookup::<&[u8]>::new();
        let error = lookup.push(1, ValueKind::RangeDelete, || &b""[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
}
