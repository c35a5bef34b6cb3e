//! What a source of rows can do beyond a cursor: skip rows that are deleted anyway.

use crate::error::Result;
use crate::key::{
    Cursor, FragmentedTombstones, KeyOrder, SEQUENCE_MAX, Sequence, ValueKind, append_internal_key, user_key,
};

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

/// A cursor over one source of rows (a memtable, a table, a level) that can skip rows that are deleted anyway.
///
/// Skipping is an optimisation: a source may always answer `false`. It must never pass a row that is not covered.
pub trait SourceCursor: Cursor {
    /// An upper bound of the sequence numbers of all its point rows (not of its range tombstones). The default
    /// knows none, so that nothing is skipped.
    fn sequence_max(&self) -> Sequence {
        SEQUENCE_MAX
    }

    /// While valid: if the row it stands on lies in a stretch whose tombstones are newer than all its rows, moves
    /// to the first row past the stretch and answers `true`. `scratch` is for the target's key. A source of
    /// several files overrides this to judge by the bound of the file it stands in.
    fn skip_covered(&mut self, cover: &Cover<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        skip_by_seek(self, cover, scratch)
    }

    /// [`skip_covered`](Self::skip_covered), the other way: to the last row before the stretch.
    fn skip_covered_back(&mut self, cover: &Cover<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        skip_back_by_seek(self, cover, scratch)
    }
}

/// [`SourceCursor::skip_covered`] for a source that one bound is true of.
pub fn skip_by_seek<C: SourceCursor + ?Sized>(
    cursor: &mut C,
    cover: &Cover<'_>,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    let from = user_key(cursor.key());
    let bound = cursor.sequence_max();
    let Some(end) = cover
        .tombstones
        .covered_end(cover.order, from, bound, cover.sequence)
    else {
        return Ok(false);
    };
    scratch.clear();
    append_internal_key(scratch, end, SEQUENCE_MAX, ValueKind::SEEK);
    cursor.seek(scratch)?;
    Ok(true)
}

/// [`SourceCursor::skip_covered_back`] for a source that one bound is true of.
pub fn skip_back_by_seek<C: SourceCursor + ?Sized>(
    cursor: &mut C,
    cover: &Cover<'_>,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    let from = user_key(cursor.key());
    let bound = cursor.sequence_max();
    let Some(start) = cover
        .tombstones
        .covered_start(cover.order, from, bound, cover.sequence)
    else {
        return Ok(false);
    };
    scratch.clear();
    append_internal_key(scratch, start, SEQUENCE_MAX, ValueKind::SEEK);
    cursor.seek_for_prev(scratch)?;
    Ok(true)
}
