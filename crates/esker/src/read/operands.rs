//! Merge operands, copied out of the rows they were found in.

use crate::error::{Error, Result};
use crate::merge::MergeOperator;

/// A list of operands in one buffer, in the order in which they were found. Keeps its memory when cleared, so only
/// keys that are merged pay for it.
#[derive(Debug, Default)]
pub struct Operands {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The order in which operands were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Going forward, or from the newest source to the oldest.
    NewestFirst,
    /// Going backward.
    OldestFirst,
}

impl Operands {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a copy of `operand`.
    pub fn push(&mut self, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push(self.bytes.len());
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The operand found as number `index`; empty past the end.
    pub fn get(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or(0);
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(0),
            None => 0,
        };
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// All of them, oldest first: as operators take them.
    pub fn oldest_first(&self, found: Found) -> Vec<&[u8]> {
        let mut slices: Vec<&[u8]> = (0..self.len()).map(|index| self.get(index)).collect();
        if found == Found::NewestFirst {
            slices.reverse();
        }
        slices
    }

    /// The value after applying all of them to `base`. Fails with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is no operator, or as the operator does.
    pub fn fold(
        &self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        base: Option<&[u8]>,
        found: Found,
    ) -> Result<Vec<u8>> {
        let operator = operator.ok_or_else(|| no_operator(key))?;
        operator.full_merge(key, base, &self.oldest_first(found))
    }
}

/// The error for a merged key in a column family without a merge operator.
#[cold]
pub fn no_operator(key: &[u8]) -> Error {
    Error::invalid(format!(
        "key \"{}\" was merged, but its column family has no merge operator; set merge_operator",
        key.escape_ascii()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::AppendOperator;

    #[test]
    fn operands_fold_oldest_first_however_they_were_found() {
        let operator = AppendOperator::new(*b",");
        let mut operands = Operands::default();
        for operand in [&b"1"[..], b"", b"3"] {
            operands.push(operand);
        }
        let fold = |found| operands.fold(Some(&operator), b"k", Some(b"0"), found).unwrap();
        assert_eq!(fold(Found::OldestFirst), b"0,1,,3");
        assert_eq!(fold(Found::NewestFirst), b"0,3,,1");
        assert_eq!(operands.get(7), b"");
        operands.clear();
        assert!(operands.is_empty());
    }
}
