//! What a source of rows can do beyond a cursor: skip rows that are deleted anyway.

use crate::error::Result;
use crate::key::{
    Cursor, FragmentedTombstones, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, append_internal_key, user_key,
};
use crate::options::PrefixExtractor;

/// The tombstones in force for a reader, handed to sources that may skip what they cover.
#[derive(Clone, Copy)]
pub struct Cover<'a> {
    /// The order of user keys.
    pub order: &'a KeyOrder,
    /// All range tombstones of the view.
    pub tombstones: &'a FragmentedTombstones,
    /// The reader's sequence: newer tombstones are invisible to it.
    pub sequence: Sequence,
}

impl Cover<'_> {
    /// If `user_key` is in a stretch whose tombstones are newer than `newer_than`: its end (exclusive), or, going
    /// `backward`, its first key.
    pub fn far_end(&self, user_key: &[u8], newer_than: Sequence, backward: bool) -> Option<&[u8]> {
        let (order, tombstones) = (self.order, self.tombstones);
        if backward {
            tombstones.covered_start(order, user_key, newer_than, self.sequence)
        } else {
            tombstones.covered_end(order, user_key, newer_than, self.sequence)
        }
    }
}

/// A cursor over one source of rows (a memtable, a table, a level) that can skip rows that are deleted anyway.
///
/// Skipping is an optimisation: a source may always answer `false`. It must never pass a row that is not covered.
pub trait SourceCursor: Cursor {
    /// An upper bound of the sequence numbers of all its point rows (not of its range tombstones). The default
    /// knows none, so that nothing is skipped.
    fn sequence_max(&self) -> Sequence {
        SEQUENCE_MAX
    }

    /// From now on only rows are asked for of whose keys the extractor gives this prefix (`None`: all rows), and the
    /// order is that of bytes. A source that knows, without reading them, that some of its rows are others may leave
    /// those out. Not to be read or moved before it was positioned again.
    fn restrict(&mut self, _prefix: Option<(PrefixExtractor, &[u8])>) -> Result<()> {
        Ok(())
    }

    /// From now on no row at or past this user key is asked for. A source need not stop there, but reads nothing ahead beyond it.
    fn set_upper_bound(&mut self, _upper_bound: Option<&[u8]>) {}

    /// While valid: if the row it stands on lies in a stretch whose tombstones are newer than all its rows, moves
    /// past the stretch, to the first row behind it or, `backward`, to the last one before it, and answers `true`.
    /// `scratch` is for the target's key. A source of several files overrides this to judge by the bound of the file
    /// it stands in.
    fn skip_covered(&mut self, cover: &Cover<'_>, backward: bool, scratch: &mut Vec<u8>) -> Result<bool> {
        skip_by_seek(self, cover, backward, scratch)
    }
}

/// [`SourceCursor::skip_covered`] for a source that one bound is true of.
pub fn skip_by_seek<C: SourceCursor + ?Sized>(
    cursor: &mut C,
    cover: &Cover<'_>,
    backward: bool,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    match cover.far_end(user_key(cursor.key()), cursor.sequence_max(), backward) {
        None => Ok(false),
        Some(end) => seek_past(cursor, end, backward, scratch).map(|()| true),
    }
}

/// Moves to the first row at or behind user key `end`, or, `backward`, to the last one before it.
pub fn seek_past<C: Cursor + ?Sized>(
    cursor: &mut C,
    end: &[u8],
    backward: bool,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    scratch.clear();
    append_internal_key(scratch, end, SEQUENCE_MAX, ValueKind::SEEK);
    if backward {
        cursor.seek_for_prev(scratch)
    } else {
        cursor.seek(scratch)
    }
}
