//! Which rows a flush or a compaction writes: the drop rules.
//!
//! # Stripes
//! The live snapshots cut history into *stripes*:
//! ```text
//! snapshots           3           7                    none newer
//! sequences   1  2  3 | 4  5  6  7 | 8  9  10 ...
//! stripe         0          1            2 (the tip)
//! ```
//! A reader at snapshot `s` sees of each key the newest version <= `s`. Two versions of a key in the same stripe are
//! therefore seen or not seen by the same readers, and where both are seen the newer one hides the older one: **of
//! each key and stripe only the newest version decides, and all others may go.** Conversely the newest version of
//! a stripe is what the snapshot at the stripe's end sees, so it must stay or be replaced by what reads the same.
//!
//! The rule holds for all readers because of three promises of the caller:
//! 1. All sequence numbers of the input were published when the list of snapshots was taken, and a snapshot taken
//!    later is at least as new. (So it reads at the tip's end.)
//! 2. A read without a snapshot pins its files before it picks its sequence number, and keeps reading the files it
//!    pinned; it never sees the output with a sequence number from before.
//! 3. For one key, the input's versions are newer than those of all sources below it and older than those of all
//!    sources above it; the same holds for range tombstones and the keys they cover. All versions of a key that
//!    the input's files hold are in the input.
//!
//! # What happens to the newest version of a stripe
//! - **Put**: written.
//! - **Delete**: hides the sources below, so it goes only once there is nothing below to hide (the key can't exist
//!   there) and no older stripe has rows (it is in stripe 0, where "gone" and "never there" read the same).
//! - **SingleDelete**: as Delete; moreover it annihilates with a Put next below it in the same stripe: the promise
//!   that the key was written just once says that nothing else is left to hide. Where a newer Put hides a
//!   SingleDelete, the latter **stays** all the same: an even newer SingleDelete may come, annihilate with that
//!   Put, and would then uncover what the older one hides in the sources below. The promise is about Put and
//!   SingleDelete in turns; a key must not be both deleted and single-deleted, or merged and single-deleted. (If it
//!   is, reads stay right, and a compaction may bring back older values, as in other engines.)
//! - **covered** by a range tombstone of the same stripe: it goes, as if a newer Delete hid it; the tombstone
//!   itself is carried, or it is dropped at the bottom where nothing is left to hide
//!   ([`carried_tombstones`]).
//! - **Merge**: operands of one stripe are folded: into a Put if the base is met in the stripe, or the key's history
//!   ends; into one operand otherwise, if the operator can. Never across stripes: the snapshot at the stripe's end
//!   reads the base without the operands. An operator that fails leaves all as it is, to fail again when read.
//!
//! # Sequence zero
//! In a bottommost job, a Put in stripe 0 gets the sequence 0 (equal trailers compress away). That is safe: it is
//! visible to every reader before and after; no other version in stripe 0 is left, here or below, that it could
//! tie with; versions in newer stripes and sources keep larger numbers. Only range tombstones compare with it: a
//! row that is *newer* than a tombstone would fall under it. Such a tombstone would be at the same sources or
//! below by promise 3, so in the input and in stripe 0, and a bottommost job drops those. To make it plain rather
//! than subtle, a row that any tombstone of the input covers keeps its number: no job gives the number 0 to a row
//! under a range tombstone. (A tombstone that is written later is newer than the row whatever its number.) Where rows
//! expire they keep their numbers, which tell their age.

mod counters;
mod filter;
mod fold;
mod rules;
mod single_delete;
mod tombstones;

pub use counters::Dropped;
pub use filter::{Expired, RowFilter};
pub use rules::{Fetch, Rules};
pub use tombstones::carried_tombstones;

use crate::error::{Error, Result};
use crate::key::{
    Cursor, ParsedKey, SEQUENCE_MAX, Sequence, TRAILER_LEN, ValueKind, key_head, pack_trailer, parse_key,
};
use crate::read::key_ends::KeyEnds;
use crate::read::operands::Operands;

use filter::Judgement;

/// How the versions that follow in a stripe are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The next version decides.
    Open,
    /// A newer version hides them.
    Hidden,
    /// A Put hides them; single deletes stay.
    HiddenByPut,
    /// A pair annihilated: what deletes counts as if the pair had not been there.
    Annihilated,
}

/// Where the current row's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// There is no row.
    None,
    Input,
    Buffer,
    Empty,
    Operand(usize),
}

/// The rows to write, in the order of internal keys, from the rows of an input. Values pass through as slices of
/// the input; no allocation per row unless merges are folded.
///
/// `B` says whether a user key may exist in sources below the input. It is asked with ascending keys, only for
/// tombstones and operands in jobs that aren't bottommost; `true` is always safe.
pub struct CompactionRows<'r, C, B> {
    input: C,
    below: B,
    rules: Rules<'r>,
    end_head: u64,
    dropped: Dropped,
    finger: usize,
    /// The current row's internal key; its user key is also the last one taken from the input.
    key: Vec<u8>,
    ends: KeyEnds,
    has_key: bool,
    /// The input's row has been dealt with.
    used: bool,
    /// Verdict on the rest of this stripe.
    verdict: Verdict,
    stripe: usize,
    value: Value,
    /// Whether a row was given of the current user key; whether the current row is the first.
    key_written: bool,
    row_starts_key: bool,
    buffer: Vec<u8>,
    operands: Operands,
    operand_sequences: Vec<Sequence>,
}

impl<'r, C: Cursor, B: FnMut(&[u8]) -> bool> CompactionRows<'r, C, B> {
    /// The rows to write from where `input` stands (the caller has positioned it) up to the rules' end.
    pub fn new(input: C, below: B, rules: Rules<'r>) -> Self {
        debug_assert!(rules.snapshots.is_sorted());
        Self {
            input,
            below,
            end_head: rules.end.as_deref().map_or(0, key_head),
            rules,
            dropped: Dropped::default(),
            finger: 0,
            key: Vec::new(),
            ends: KeyEnds::default(),
            has_key: false,
            used: false,
            verdict: Verdict::Open,
            stripe: 0,
            value: Value::None,
            key_written: false,
            row_starts_key: false,
            buffer: Vec::new(),
            operands: Operands::default(),
            operand_sequences: Vec::new(),
        }
    }

    /// The internal key of the current row. Only after `advance` answered `true`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the current row. Only after `advance` answered `true`.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.value {
            Value::Input => self.input.value(),
            Value::Buffer => &self.buffer,
            Value::Operand(index) => self.operands.get(index),
            Value::Empty | Value::None => &[],
        }
    }

    /// Whether the current row is the first of its user key: where an output file may begin.
    #[inline]
    pub fn starts_key(&self) -> bool {
        self.row_starts_key
    }

    /// What was dropped so far, by reason.
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// The input, for its counters.
    pub fn input(&self) -> &C {
        &self.input
    }

    #[inline]
    fn user_key(&self) -> &[u8] {
        crate::key::user_key(&self.key)
    }

    /// Moves to the next row to write; `false`: there is none. After an error the rows must be given up.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if let Value::Operand(index) = self.value
            && index + 1 < self.operands.len()
        {
            self.give_operand(index + 1);
            return Ok(true);
        }
        self.value = Value::None;
        loop {
            if self.used {
                self.used = false;
                self.input.next()?;
            }
            if !self.input.valid() {
                return Ok(false);
            }
            let internal_key = self.input.key();
            let row = parse_key(internal_key).ok_or_else(|| bad_key(internal_key))?;
            let (sequence, kind) = (row.sequence, row.kind);
            let stripe = self.rules.stripe(sequence);
            if self.has_key && self.ends.are_of(self.user_key(), row.user_key) {
                if stripe != self.stripe {
                    self.verdict = Verdict::Open;
                }
                self.set_trailer(sequence, kind);
            } else {
                if self.rules.is_past_end(self.end_head, row.user_key) {
                    return Ok(false);
                }
                self.ends = KeyEnds::of(row.user_key);
                self.key.clear();
                self.key.extend_from_slice(internal_key);
                self.has_key = true;
                self.key_written = false;
                self.verdict = Verdict::Open;
            }
            self.stripe = stripe;
            if self.take(sequence, kind)? {
                self.row_starts_key = !self.key_written;
                self.key_written = true;
                return Ok(true);
            }
        }
    }

    /// Decides on the input's row, whose key is in `key`. `true`: there is a row to write.
    #[inline]
    fn take(&mut self, sequence: Sequence, kind: ValueKind) -> Result<bool> {
        let hidden = match self.verdict {
            Verdict::Open => false,
            Verdict::Hidden => true,
            Verdict::HiddenByPut => kind != ValueKind::SingleDelete,
            Verdict::Annihilated => !matches!(kind, ValueKind::Delete | ValueKind::SingleDelete),
        };
        if hidden {
            self.used = true;
            self.dropped.hidden += 1;
            return Ok(false);
        }
        let cover = self.cover();
        if sequence < cover {
            self.used = true;
            self.dropped.covered += 1;
            // A single delete under a Put may be covered; the Put still hides what follows.
            if self.verdict != Verdict::HiddenByPut {
                self.verdict = Verdict::Hidden;
            }
            return Ok(false);
        }
        match kind {
            ValueKind::Put | ValueKind::BlobPointer => {
                self.used = true;
                self.give_put(kind, Value::Input)
            }
            ValueKind::Delete => {
                self.used = true;
                Ok(self.give_delete())
            }
            ValueKind::SingleDelete => self.take_single_delete(sequence, cover),
            ValueKind::Merge => self.take_merge(sequence, cover),
            ValueKind::RangeDelete => Err(misplaced_range_delete()),
        }
    }

    /// The newest tombstone over the current key that readers of the current stripe see.
    #[inline]
    fn cover(&mut self) -> Sequence {
        if self.rules.tombstones.is_empty() {
            return 0;
        }
        let stripe_end = self.rules.snapshots.get(self.stripe).copied();
        self.rules.tombstones.max_covering_near(
            &self.rules.order,
            &mut self.finger,
            crate::key::user_key(&self.key),
            stripe_end.unwrap_or(SEQUENCE_MAX),
        )
    }

    #[inline]
    fn set_trailer(&mut self, sequence: Sequence, kind: ValueKind) {
        if let Some(trailer) = self.key.last_chunk_mut::<TRAILER_LEN>() {
            *trailer = pack_trailer(sequence, kind).to_le_bytes();
        }
    }

    /// Writes a value as the newest of its stripe. `key` holds its internal key.
    #[inline]
    fn give_put(&mut self, mut kind: ValueKind, value: Value) -> Result<bool> {
        self.value = value;
        self.verdict = Verdict::HiddenByPut;
        let at_tip = self.stripe == self.rules.snapshots.len();
        if self.rules.filter.is_some() && at_tip {
            if !self.keep_filtered(kind)? {
                return Ok(self.give_delete());
            }
            // A changed value has come in the place of a pointer.
            if self.value == Value::Buffer {
                kind = ValueKind::Put;
                let sequence = crate::key::trailer(&self.key) >> 8;
                self.set_trailer(sequence, kind);
            }
        }
        if self.rules.bottommost
            && self.stripe == 0
            && !self.rules.keep_sequences
            && !self.is_under_any_tombstone()
        {
            self.set_trailer(0, kind);
        }
        Ok(true)
    }

    fn is_under_any_tombstone(&mut self) -> bool {
        let user_key = crate::key::user_key(&self.key);
        let tombstones = &self.rules.tombstones;
        tombstones.max_covering_near(&self.rules.order, &mut self.finger, user_key, SEQUENCE_MAX) > 0
    }

    /// Asks the filter; `false`: it removes the row. A value in a blob file is read only if the key does not say enough.
    fn keep_filtered(&mut self, kind: ValueKind) -> Result<bool> {
        let Some(mut filter) = self.rules.filter.take() else {
            return Ok(true);
        };
        let sequence = crate::key::trailer(&self.key) >> 8;
        let user_key = crate::key::user_key(&self.key);
        let judgement = match filter.judge_key(&self.rules.order, user_key, sequence) {
            Some(judgement) => judgement,
            None => match self.value {
                Value::Input if kind == ValueKind::BlobPointer => filter.judge(user_key, &self.fetch()?),
                Value::Input => filter.judge(user_key, self.input.value()),
                _ => filter.judge(user_key, &self.buffer),
            },
        };
        self.rules.filter = Some(filter);
        Ok(match judgement {
            Judgement::Keep => true,
            Judgement::Change(changed) => {
                self.dropped.changed += 1;
                self.buffer = changed;
                self.value = Value::Buffer;
                true
            }
            Judgement::Remove => {
                self.dropped.removed += 1;
                self.set_trailer(sequence, ValueKind::Delete);
                false
            }
        })
    }

    /// The value behind the pointer that the input stands on.
    #[cold]
    fn fetch(&self) -> Result<Vec<u8>> {
        match &self.rules.fetch {
            Some(fetch) => fetch(self.input.value()),
            None => Err(Error::corruption(
                "a pointer into a blob file where there can be none",
            )),
        }
    }

    /// Writes the tombstone in `key` as the newest of its stripe, unless it hides nothing.
    fn give_delete(&mut self) -> bool {
        self.verdict = Verdict::Hidden;
        self.give_tombstone()
    }

    fn give_tombstone(&mut self) -> bool {
        if self.stripe == 0 && self.is_absent_below() {
            self.dropped.tombstones += 1;
            self.value = Value::None;
            return false;
        }
        self.value = Value::Empty;
        true
    }

    fn is_absent_below(&mut self) -> bool {
        self.rules.bottommost || !(self.below)(crate::key::user_key(&self.key))
    }

    /// The input moves on to an older version of the current key in the current stripe, if there is one.
    fn next_in_stripe(&mut self) -> Result<Neighbour> {
        self.input.next()?;
        if !self.input.valid() {
            return Ok(Neighbour::EndOfKey);
        }
        let internal_key = self.input.key();
        let row = parse_key(internal_key).ok_or_else(|| bad_key(internal_key))?;
        Ok(if !self.ends.are_of(self.user_key(), row.user_key) {
            Neighbour::EndOfKey
        } else if self.rules.stripe(row.sequence) != self.stripe {
            Neighbour::OlderStripe
        } else {
            let ParsedKey { sequence, kind, .. } = row;
            Neighbour::Version(sequence, kind)
        })
    }
}

/// What comes behind a version in the input.
enum Neighbour {
    /// An older version in the same stripe.
    Version(Sequence, ValueKind),
    /// An older version in an older stripe.
    OlderStripe,
    /// No older version.
    EndOfKey,
}

#[cold]
fn bad_key(key: &[u8]) -> Error {
    Error::corruption(format!(
        "a compaction met an internal key that can't be decoded: \"{}\"",
        key.escape_ascii()
    ))
}

#[cold]
fn misplaced_range_delete() -> Error {
    Error::corruption("a range tombstone among point entries")
}

#[cfg(test)]
mod tests;
