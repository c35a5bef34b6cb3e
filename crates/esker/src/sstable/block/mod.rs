//! A sorted block that is searched where it lies: no restart points, no key is rebuilt to be compared.
//!
//! ```text
//! values | prefix | keys (suffix, 8-byte trailer) ... | key starts | value starts | values_len count prefix+flags
//! ```
//! Values come first, so that the builder copies each exactly once, straight to its final place, although the key
//! prefix that all entries share is known only at the end; and so that a search touches only the dense tail: the
//! start arrays and the suffixes.
//!
//! # Invariants of a parsed block
//! - `values_len + prefix_len + keys_len + 2 * (count + 1) * width + BLOCK_TAIL_LEN == len`.
//! - Both start arrays begin with 0, end with the length of their area, and never fall; each key entry has at least
//!   the 8 bytes of its trailer.
//!
//! They are checked once, when the block is read; accessors then give empty slices rather than panic even if they
//! were wrong. The order of keys is *not* checked there: a block that lies about it gives wrong answers, which is
//! what its checksum is against.

mod builder;
mod search;

pub use builder::BlockBuilder;
pub use search::Found;

use crate::cache::{CachedBlock, SharedBytes};
use crate::key::TRAILER_LEN;

/// Bytes of the fixed tail: `values_len: u32 | count: u32 | prefix_len: u24 | flags: u8`.
pub const BLOCK_TAIL_LEN: usize = 12;

/// Flag: starts are 32 bits wide, not 16.
pub(super) const FLAG_WIDE: u32 = 1 << 24;

pub(super) const PREFIX_LEN_MASK: u32 = (1 << 24) - 1;

/// What a block is for; a cached block remembers it, so that a damaged handle can't make one pass for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BlockKind {
    /// Entries of the table.
    Data = 1,
    /// Separators and handles.
    Index = 2,
    /// Bits of a filter; not a sorted block.
    Filter = 3,
}

/// A parsed block. Cheap to clone: counts one reference.
#[derive(Clone, Debug, Default)]
pub struct Block {
    bytes: SharedBytes,
    values_len: u32,
    prefix_len: u32,
    count: u32,
    wide: bool,
}

impl Block {
    /// Checks the structure of a block. O(entries).
    pub fn parse(bytes: SharedBytes) -> Option<Self> {
        let word = |back: usize| {
            let at = bytes.len().checked_sub(back)?;
            bytes
                .get(at..)?
                .first_chunk::<4>()
                .map(|word| u32::from_le_bytes(*word))
        };
        let (values_len, count, packed) = (word(12)?, word(8)?, word(4)?);
        if packed & !(FLAG_WIDE | PREFIX_LEN_MASK) != 0 {
            return None;
        }
        let (wide, prefix_len) = (packed & FLAG_WIDE != 0, packed & PREFIX_LEN_MASK);
        let starts_len = (count as usize)
            .checked_add(1)?
            .checked_mul(if wide { 8 } else { 4 })?;
        let keys_len = bytes
            .len()
            .checked_sub(BLOCK_TAIL_LEN)?
            .checked_sub(starts_len)?
            .checked_sub(values_len as usize)?
            .checked_sub(prefix_len as usize)?;
        let block = Self {
            bytes,
            values_len,
            prefix_len,
            count,
            wide,
        };
        let (key_starts, value_starts) = block.starts();
        let valid = if wide {
            rising::<4>(key_starts, TRAILER_LEN, keys_len)
                && rising::<4>(value_starts, 0, values_len as usize)
        } else {
            rising::<2>(key_starts, TRAILER_LEN, keys_len)
                && rising::<2>(value_starts, 0, values_len as usize)
        };
        valid.then_some(block)
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the block, decompressed.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that the block keeps in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.backing_len()
    }

    /// What all user keys of the block begin with.
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        let at = self.values_len as usize;
        self.bytes.get(at..at + self.prefix_len as usize).unwrap_or(&[])
    }

    /// The key of entry `i` without the block's prefix: suffix of the user key, then the 8-byte trailer.
    #[inline]
    pub fn key_suffix(&self, i: usize) -> &[u8] {
        let keys = self.values_len as usize + self.prefix_len as usize;
        let (starts, _) = self.starts();
        let (from, to) = self.range(starts, i);
        self.bytes.get(keys + from..keys + to).unwrap_or(&[])
    }

    /// The same key as the front of 32 bytes that can be copied by a few instructions, with its length; `None` if it
    /// is longer than they are, or lies too near to the block's end.
    #[inline]
    pub fn key_suffix_short(&self, i: usize) -> Option<(&[u8; 32], usize)> {
        let keys = self.values_len as usize + self.prefix_len as usize;
        let (starts, _) = self.starts();
        let (from, to) = self.range(starts, i);
        let chunk = self.bytes.get(keys + from..)?.first_chunk::<32>()?;
        (to - from <= 32).then_some((chunk, to - from))
    }

    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        let (from, to) = self.value_range(i);
        self.bytes.get(from..to).unwrap_or(&[])
    }

    /// Where the value of entry `i` lies in the block.
    #[inline]
    pub fn value_range(&self, i: usize) -> (usize, usize) {
        let (_, starts) = self.starts();
        self.range(starts, i)
    }

    /// The value of entry `i`, shared.
    #[inline]
    pub fn pin_value(&self, i: usize) -> SharedBytes {
        let (from, to) = self.value_range(i);
        self.bytes.slice(from..to).unwrap_or_default()
    }

    /// Appends the internal key of entry `i`.
    pub fn append_key(&self, i: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.key_suffix(i));
    }

    /// The form in which the block cache keeps it.
    pub fn to_cached(&self, kind: BlockKind) -> CachedBlock {
        let packed = self.prefix_len | if self.wide { FLAG_WIDE } else { 0 };
        CachedBlock {
            bytes: self.bytes.clone(),
            words: [kind as u32, self.values_len, self.count, packed],
        }
    }

    /// The block that was cached, or `None` if it was cached as something else.
    #[inline]
    pub fn from_cached(cached: CachedBlock, kind: BlockKind) -> Option<Self> {
        let [cached_kind, values_len, count, packed] = cached.words;
        (cached_kind == kind as u32).then_some(Self {
            bytes: cached.bytes,
            values_len,
            prefix_len: packed & PREFIX_LEN_MASK,
            count,
            wide: packed & FLAG_WIDE != 0,
        })
    }

    /// The arrays of key starts and of value starts.
    #[inline]
    fn starts(&self) -> (&[u8], &[u8]) {
        let each = (self.count as usize + 1) * if self.wide { 4 } else { 2 };
        let bytes = &*self.bytes;
        bytes
            .len()
            .checked_sub(BLOCK_TAIL_LEN + 2 * each)
            .and_then(|at| bytes.get(at..at + 2 * each))
            .map_or((&[], &[]), |both| both.split_at(each))
    }

    #[inline]
    fn range(&self, starts: &[u8], i: usize) -> (usize, usize) {
        if self.wide {
            (start::<4>(starts, i), start::<4>(starts, i + 1))
        } else {
            (start::<2>(starts, i), start::<2>(starts, i + 1))
        }
    }
}

/// Number `i` of an array of starts that are `WIDTH` bytes wide.
#[inline(always)]
pub(super) fn start<const WIDTH: usize>(starts: &[u8], i: usize) -> usize {
    let Some(bytes) = starts
        .get(i * WIDTH..)
        .and_then(|rest| rest.first_chunk::<WIDTH>())
    else {
        return 0;
    };
    let mut word = [0; 4];
    word[..WIDTH].copy_from_slice(bytes);
    u32::from_le_bytes(word) as usize
}

/// Whether an array of starts begins with 0, ends with `end`, and rises by at least `step`.
fn rising<const WIDTH: usize>(starts: &[u8], step: usize, end: usize) -> bool {
    let count = starts.len() / WIDTH;
    let mut last = 0;
    let mut fine = start::<WIDTH>(starts, 0) == 0;
    for i in 1..count {
        let next = start::<WIDTH>(starts, i);
        fine &= last + step <= next;
        last = next;
    }
    fine && last == end
}

#[cfg(test)]
mod tests;
