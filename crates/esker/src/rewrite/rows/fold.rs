//! Folding the merge operands of one key and stripe.

use super::{CompactionRows, Neighbour, Value, misplaced_range_delete};
use crate::error::Result;
use crate::key::{Cursor, Sequence, ValueKind};
use crate::read::operands::Found;

/// What lies below the operands of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// The Put that the input stands on.
    Value,
    /// The value behind the pointer that the input stands on.
    Blob,
    /// Nothing: a tombstone, or the end of the key's history.
    Absent,
    /// Something that can't be seen, or not be folded, from here.
    Unknown,
}

impl<C: Cursor, B: FnMut(&[u8]) -> bool> CompactionRows<'_, C, B> {
    /// The input stands on the newest operand of its stripe. Takes all that follow directly, and leaves the input on
    /// what is below them; if that was their base it is hidden by the value that replaces them.
    #[cold]
    pub(super) fn take_merge(&mut self, newest: Sequence, cover: Sequence) -> Result<bool> {
        self.operands.clear();
        self.operand_sequences.clear();
        let mut sequence = newest;
        let base = loop {
            self.operands.push(self.input.value());
            self.operand_sequences.push(sequence);
            match self.next_in_stripe()? {
                Neighbour::OlderStripe => break Base::Unknown,
                Neighbour::EndOfKey if self.is_absent_below() => break Base::Absent,
                Neighbour::EndOfKey => break Base::Unknown,
                Neighbour::Version(older, _) if older < cover => break Base::Absent,
                Neighbour::Version(older, kind) => match kind {
                    ValueKind::Merge => sequence = older,
                    ValueKind::Put => break Base::Value,
                    ValueKind::Delete | ValueKind::SingleDelete => break Base::Absent,
                    ValueKind::BlobPointer => break Base::Blob,
                    ValueKind::RangeDelete => return Err(misplaced_range_delete()),
                },
            }
        };
        let folded = match base {
            Base::Unknown => self.fold_partly(),
            Base::Absent => self.fold_fully(None),
            Base::Value => self.fold_fully(Some(self.input.value().to_vec())),
            Base::Blob if self.rules.merge_operator.is_none() => None,
            Base::Blob => self.fold_fully(Some(self.fetch()?)),
        };
        match folded {
            Some(kind) => {
                self.set_trailer(newest, kind);
                if kind == ValueKind::Put {
                    self.dropped.folded += self.operands.len() as u64 - 1;
                    return self.give_put(ValueKind::Put, Value::Buffer);
                }
                self.dropped.folded += self.operands.len() as u64 - 1;
                self.value = Value::Buffer;
            }
            None => self.give_operand(0),
        }
        Ok(true)
    }

    /// All operands and their base become a value in `buffer`.
    fn fold_fully(&mut self, base: Option<Vec<u8>>) -> Option<ValueKind> {
        let operator = self.rules.merge_operator.as_deref()?;
        let user_key = crate::key::user_key(&self.key);
        match self
            .operands
            .fold(Some(operator), user_key, base.as_deref(), Found::NewestFirst)
        {
            Ok(value) => {
                self.buffer = value;
                Some(ValueKind::Put)
            }
            Err(_) => {
                self.dropped.merge_failures += 1;
                None
            }
        }
    }

    /// All operands become one in `buffer`.
    fn fold_partly(&mut self) -> Option<ValueKind> {
        if self.operands.len() < 2 {
            return None;
        }
        let operator = self.rules.merge_operator.as_deref()?;
        let operands = self.operands.oldest_first(Found::NewestFirst);
        self.buffer = operator.partial_merge(crate::key::user_key(&self.key), &operands)?;
        Some(ValueKind::Merge)
    }

    /// Writes the operand found as number `index` as it was.
    pub(super) fn give_operand(&mut self, index: usize) {
        let sequence = self.operand_sequences.get(index).copied().unwrap_or(0);
        self.set_trailer(sequence, ValueKind::Merge);
        self.value = Value::Operand(index);
        self.row_starts_key = false;
    }
}
