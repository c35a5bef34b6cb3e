//! What a user's iterator shows: of every key the version that its snapshot sees, without deleted keys, with merges
//! folded, within bounds.
//!
//! Below lies a merging cursor over all versions of all keys, newest first within a key:
//! ```text
//!  a@9 Put   a@4 Put   b@7 Delete   b@3 Put   c@8 Merge   c@5 Put   d@6 Put      range tombstone [d, f) @7
//!  snapshot 8 shows:   a = a@4                c = c@5 + c@8
//! ```
//! Where the cursor below stands is the state of this one:
//!
//! | state | the row shown | the cursor below |
//! |---|---|---|
//! | `Row` | is the row below: key and value are slices of it | on that row, travelling forward |
//! | `Folded` | `saved` and `buffer` | on the first row not used yet; rows of `saved` may be left |
//! | `Back` | `saved` and `buffer` | travelling backward, before all rows of `saved` |
//!
//! Going forward, the newest visible version comes first: a Put is shown where it lies, without copying its value,
//! and the older versions are skipped by one comparison each with `saved`. Going backward, the newest version
//! comes last, so values are copied to `buffer` until the key changes.
//!
//! Two kinds of rows cost more than a step and are jumped over:
//! - many hidden versions of one key: after [`HIDDEN_MAX`] steps, a seek goes to the key's end;
//! - rows under range tombstones: for every [`COVERED_MAX`] of them that are stepped over, the sources whose rows
//!   are all older than the tombstones skip to the end of what is covered, so that a deleted range costs by its
//!   fragments, and by the rows in it of sources that also hold newer ones.

mod backward;
mod forward;

use std::sync::Arc;

use super::key_ends::KeyEnds;
use super::merging::{MergingCursor, SourceCursor};
use super::operands::Operands;
use crate::cache::SharedBytes;
use crate::error::{Error, Result};
use crate::key::{
    Cursor, FragmentedTombstones, KeyOrder, ParsedKey, SEQUENCE_MAX, Sequence, ValueKind,
    append_internal_key, key_head, parse_key, replace_bound, user_key,
};
use crate::merge::MergeOperator;
use crate::options::PrefixExtractor;

/// Hidden versions of one key that are stepped over before a seek skips the rest.
pub const HIDDEN_MAX: usize = 8;

/// Covered rows that are stepped over between two attempts to skip.
pub const COVERED_MAX: usize = 8;

/// Reads the value behind a pointer into a blob file.
pub type Fetch = Arc<dyn Fn(&[u8]) -> Result<SharedBytes> + Send + Sync>;

/// What an iterator shows.
#[derive(Clone, Default)]
pub struct View {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The last sequence number that is visible.
    pub sequence: Sequence,
    /// Reads the value behind a pointer, for merges into it; `None` where there are no pointers.
    pub fetch: Option<Fetch>,
    /// Folds merges. Reading a merged key without one fails.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The first user key that may be shown.
    pub lower_bound: Option<Vec<u8>>,
    /// The first user key past the end.
    pub upper_bound: Option<Vec<u8>>,
    /// Only rows are shown that have the prefix of the key that the iterator was last positioned to (for the ends:
    /// of the first row found). A key without prefix restricts nothing.
    pub prefix_same: Option<PrefixExtractor>,
}

impl View {
    /// `key_head` of a bound, for bytewise order.
    fn head(&self, bound: Option<&[u8]>) -> u64 {
        match bound {
            Some(bound) if self.order.is_bytewise() => key_head(bound),
            _ => 0,
        }
    }
}

/// Remembers a user key, which may be a slice of the cursor below, as `saved`.
macro_rules! save {
    ($self:ident, $user_key:expr) => {{
        let user_key = $user_key;
        $self.saved_ends = KeyEnds::of(user_key);
        $self.saved.clear();
        $self.saved.extend_from_slice(user_key);
    }};
}
use save;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Row,
    Folded,
    Back,
}

/// A user's iterator. Invalid before its first positioning, past either end, and after an error; a call to `next`
/// or `prev` while invalid does nothing.
pub struct VisibleCursor<C> {
    inner: MergingCursor<C>,
    view: View,
    /// `key_head` of the bounds, for bytewise order.
    lower_head: u64,
    upper_head: u64,
    tombstones: Arc<FragmentedTombstones>,
    /// Where the last search in the tombstones ended.
    finger: usize,
    /// Covered rows since the last attempt to skip.
    covered: usize,
    /// Rows stepped over without being shown since they were last asked for.
    hidden: u64,
    state: State,
    /// The user key that is shown, or that is being skipped.
    saved: Vec<u8>,
    saved_ends: KeyEnds,
    /// The value that is shown, unless it is the row's.
    buffer: Vec<u8>,
    kind: ValueKind,
    operands: Operands,
    /// The prefix that rows must have, if `prefixed`.
    prefix: Vec<u8>,
    prefixed: bool,
    /// Target of seeks.
    target: Vec<u8>,
}

/// One list for all `lists`: the list itself if only one has tombstones, else their merge. O(n log n) in the
/// fragments of those that have any; nothing if none has.
pub fn merge_tombstones(order: &KeyOrder, lists: &[Arc<FragmentedTombstones>]) -> Arc<FragmentedTombstones> {
    let mut some = lists.iter().filter(|list| !list.is_empty());
    match (some.next(), some.next()) {
        (None, _) => Arc::default(),
        (Some(only), None) => Arc::clone(only),
        _ => Arc::new(FragmentedTombstones::merge(order, lists.iter().map(Arc::as_ref))),
    }
}

impl<C: SourceCursor> VisibleCursor<C> {
    /// An iterator over what `view` shows of `inner`, not positioned yet. `tombstones` are those of all sources of
    /// `inner` (memtables, files of level 0, levels). Where more than one list has any they are merged here, at a
    /// cost of O(n log n) in their fragments.
    pub fn new(inner: MergingCursor<C>, tombstones: &[Arc<FragmentedTombstones>], view: View) -> Self {
        let tombstones = merge_tombstones(&view.order, tombstones);
        Self {
            inner,
            lower_head: view.head(view.lower_bound.as_deref()),
            upper_head: view.head(view.upper_bound.as_deref()),
            view,
            tombstones,
            finger: 0,
            covered: 0,
            hidden: 0,
            state: State::Invalid,
            saved: Vec::new(),
            saved_ends: KeyEnds::default(),
            buffer: Vec::new(),
            kind: ValueKind::Put,
            operands: Operands::default(),
            prefix: Vec::new(),
            prefixed: false,
            target: Vec::new(),
        }
    }

    /// Whether it stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.state != State::Invalid
    }

    /// The user key it stands on. Only while valid; lives until the next move.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.state {
            State::Row => user_key(self.inner.key()),
            _ => &self.saved,
        }
    }

    /// The value it stands on. Only while valid; lives until the next move.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.state {
            State::Row => self.inner.value(),
            _ => &self.buffer,
        }
    }

    /// `Put`, or `BlobPointer` if the value is the pointer to it. Only while valid.
    #[inline]
    pub fn kind(&self) -> ValueKind {
        self.kind
    }

    /// The cursor below, for its counters.
    pub fn inner(&self) -> &MergingCursor<C> {
        &self.inner
    }

    /// How many rows it has come to and not shown since this was last asked: older versions, deletions and what they delete.
    pub fn take_hidden(&mut self) -> u64 {
        std::mem::take(&mut self.hidden)
    }

    /// Leaves its row; it stands on none until it is positioned.
    pub fn invalidate(&mut self) {
        self.state = State::Invalid;
    }

    /// Changes the bounds to others, between those that the sources were chosen for. Not valid afterwards.
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.invalidate();
        self.lower_head = self.view.head(lower);
        self.upper_head = self.view.head(upper);
        replace_bound(&mut self.view.lower_bound, lower);
        replace_bound(&mut self.view.upper_bound, upper);
        self.inner.set_upper_bound(upper);
    }

    /// Moves to the first row.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.start_anywhere()?;
        if self.view.lower_bound.is_some() {
            self.target_lower_bound();
            self.inner.seek(&self.target)?;
        } else {
            self.inner.seek_to_first()?;
        }
        self.find_forward(false)?;
        self.keep_prefix_found();
        Ok(())
    }

    /// Moves to the last row.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.start_anywhere()?;
        self.seek_inner_to_end()?;
        self.find_backward()?;
        self.keep_prefix_found();
        Ok(())
    }

    /// Moves to the first row whose key is >= `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.start_at(key)?;
        if self.is_below_lower(key) {
            self.target_lower_bound();
        } else {
            self.target.clear();
            append_internal_key(&mut self.target, key, self.view.sequence, ValueKind::SEEK);
        }
        self.inner.seek(&self.target)?;
        self.find_forward(false)
    }

    /// Moves to the last row whose key is <= `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.start_at(key)?;
        if self.is_past_upper(key) {
            self.seek_inner_to_end()?;
        } else {
            self.target.clear();
            append_internal_key(&mut self.target, key, 0, ValueKind::Delete);
            self.inner.seek_for_prev(&self.target)?;
        }
        self.find_backward()
    }

    /// Moves to the row of `key`, which it has shown since it was positioned: what that restricted it to stays so.
    pub fn return_to(&mut self, key: &[u8]) -> Result<()> {
        self.state = State::Invalid;
        self.target.clear();
        append_internal_key(&mut self.target, key, self.view.sequence, ValueKind::SEEK);
        self.inner.seek(&self.target)?;
        self.find_forward(false)
    }

    /// Moves to the next row.
    #[inline]
    #[allow(clippy::should_implement_trait)] // Rows are lent, which `Iterator` can't express.
    pub fn next(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Invalid) {
            State::Row => {
                save!(self, user_key(self.inner.key()));
                self.inner.next()?;
            }
            State::Folded => {}
            State::Back => self.turn_forward()?,
            State::Invalid => return Ok(()),
        }
        self.find_forward(true)
    }

    /// Moves to the previous row.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Invalid) {
            State::Row => {
                save!(self, user_key(self.inner.key()));
                self.inner.prev()?;
                self.leave_saved_backward()?;
            }
            State::Folded => self.seek_before_saved()?,
            State::Back => {}
            State::Invalid => return Ok(()),
        }
        self.find_backward()
    }

    /// The value behind a pointer that operands are to be merged into.
    #[cold]
    fn fetch(&self, pointer: &[u8]) -> Result<SharedBytes> {
        match &self.view.fetch {
            Some(fetch) => fetch(pointer),
            None => Err(Error::corruption(
                "a pointer into a blob file where there can be none",
            )),
        }
    }

    #[inline]
    fn is_saved(&self, user_key: &[u8]) -> bool {
        self.saved_ends.are_of(&self.saved, user_key)
    }

    fn start_anywhere(&mut self) -> Result<()> {
        self.start_within(None)
    }

    fn start_at(&mut self, key: &[u8]) -> Result<()> {
        self.start_within(self.view.prefix_same.and_then(|extractor| extractor.prefix(key)))
    }

    fn start_within(&mut self, prefix: Option<&[u8]>) -> Result<()> {
        self.state = State::Invalid;
        self.covered = 0;
        self.prefixed = prefix.is_some();
        if let Some(prefix) = prefix {
            self.prefix.clear();
            self.prefix.extend_from_slice(prefix);
        }
        // Rows outside of the prefix end the iteration; in the order of bytes none of them lies among those inside,
        // so that it makes no difference whether they are there.
        match self.view.prefix_same {
            Some(extractor) if self.view.order.is_bytewise() => {
                self.inner.restrict(prefix.map(|prefix| (extractor, prefix)))
            }
            _ => Ok(()),
        }
    }

    /// After a positioning to an end: stay in the prefix of the row found.
    fn keep_prefix_found(&mut self) {
        let Some(extractor) = self.view.prefix_same else {
            return;
        };
        if !self.valid() {
            return;
        }
        let mut prefix = std::mem::take(&mut self.prefix);
        prefix.clear();
        if let Some(found) = extractor.prefix(self.key()) {
            prefix.extend_from_slice(found);
            self.prefixed = true;
        }
        self.prefix = prefix;
    }

    /// The target is `saved` with this trailer.
    fn target_saved(&mut self, sequence: Sequence, kind: ValueKind) {
        self.target.clear();
        append_internal_key(&mut self.target, &self.saved, sequence, kind);
    }

    fn target_lower_bound(&mut self) {
        self.target.clear();
        let lower = self.view.lower_bound.as_deref().unwrap_or_default();
        append_internal_key(&mut self.target, lower, self.view.sequence, ValueKind::SEEK);
    }

    fn seek_inner_to_end(&mut self) -> Result<()> {
        match &self.view.upper_bound {
            Some(upper) => {
                self.target.clear();
                append_internal_key(&mut self.target, upper, SEQUENCE_MAX, ValueKind::SEEK);
                self.inner.seek_for_prev(&self.target)
            }
            None => self.inner.seek_to_last(),
        }
    }

    #[inline]
    fn is_below_lower(&self, user_key: &[u8]) -> bool {
        let Some(lower) = &self.view.lower_bound else {
            return false;
        };
        if self.view.order.is_bytewise() {
            let head = key_head(user_key);
            if head != self.lower_head {
                return head < self.lower_head;
            }
        }
        self.view.order.compare(user_key, lower).is_lt()
    }

    #[inline]
    fn is_past_upper(&self, user_key: &[u8]) -> bool {
        let Some(upper) = &self.view.upper_bound else {
            return false;
        };
        if self.view.order.is_bytewise() {
            let head = key_head(user_key);
            if head != self.upper_head {
                return head > self.upper_head;
            }
        }
        self.view.order.compare(user_key, upper).is_ge()
    }

    #[inline]
    fn is_outside_prefix(&self, user_key: &[u8]) -> bool {
        self.prefixed
            && self
                .view
                .prefix_same
                .is_some_and(|extractor| extractor.prefix(user_key) != Some(self.prefix.as_slice()))
    }
}

/// The row that `inner` stands on.
#[inline]
fn row<C: Cursor>(inner: &MergingCursor<C>) -> Result<ParsedKey<'_>> {
    parse_key(inner.key()).ok_or_else(|| bad_key(inner.key()))
}

#[cold]
fn bad_key(key: &[u8]) -> Error {
    Error::corruption(format!(
        "an iterator met an internal key that can't be decoded: \"{}\"",
        key.escape_ascii()
    ))
}

#[cold]
fn misplaced_range_delete() -> Error {
    Error::corruption("a range tombstone among point entries")
}

#[cfg(test)]
mod tests;
