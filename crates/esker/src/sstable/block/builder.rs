//! Builds a block into the tail of an output buffer.

use super::{BLOCK_TAIL_LEN, FLAG_WIDE};
use crate::key::TRAILER_LEN;

/// Collects the keys of one block while its values are appended to the output by the same call;
/// [`finish`](Self::finish) then appends the keys. Reused from block to block, so that nothing is allocated for a row.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    /// The internal keys, one after the other.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    value_ends: Vec<u32>,
    values_len: usize,
}

impl BlockBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// What the block would take if it were finished now and its keys shared nothing.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.values_len + self.keys.len() + 4 * self.len() + BLOCK_TAIL_LEN + 4
    }

    /// The key added last; empty if there is none.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        let from = match self.key_ends.len() {
            0 | 1 => 0,
            n => self.key_ends[n - 2] as usize,
        };
        &self.keys[from..]
    }

    /// The key added first; empty if there is none.
    pub fn first_key(&self) -> &[u8] {
        let to = self.key_ends.first().map_or(0, |&end| end as usize);
        &self.keys[..to]
    }

    /// Adds an entry: its value goes to `out` at once. Keys come in order, and all values of a block go to the same
    /// buffer with nothing between them. The caller keeps the sum of values and the sum of keys below 4 GiB.
    #[inline]
    pub fn add(&mut self, out: &mut Vec<u8>, internal_key: &[u8], value: &[u8]) {
        out.extend_from_slice(value);
        self.values_len += value.len();
        self.value_ends.push(self.values_len as u32);
        self.keys.extend_from_slice(internal_key);
        self.key_ends.push(self.keys.len() as u32);
    }

    /// Appends all but the values and starts over. `bytewise`: keys order as their bytes do, so that what the first
    /// and the last share is shared by all.
    pub fn finish(&mut self, out: &mut Vec<u8>, bytewise: bool) {
        let prefix_len = self.shared_prefix_len(bytewise);
        let count = self.len();
        let keys_len = self.keys.len() - count * prefix_len;
        out.extend_from_slice(&self.keys[..prefix_len]);
        if prefix_len == 0 {
            out.extend_from_slice(&self.keys);
        } else {
            let mut from = 0;
            for &end in &self.key_ends {
                out.extend_from_slice(&self.keys[from + prefix_len..end as usize]);
                from = end as usize;
            }
        }
        let wide = self.values_len > usize::from(u16::MAX) || keys_len > usize::from(u16::MAX);
        if wide {
            put_starts(out, &self.key_ends, prefix_len as u32, u32::to_le_bytes);
            put_starts(out, &self.value_ends, 0, u32::to_le_bytes);
        } else {
            put_starts(out, &self.key_ends, prefix_len as u32, |end| {
                (end as u16).to_le_bytes()
            });
            put_starts(out, &self.value_ends, 0, |end| (end as u16).to_le_bytes());
        }
        let packed = prefix_len as u32 | if wide { FLAG_WIDE } else { 0 };
        for word in [self.values_len as u32, count as u32, packed] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        self.clear();
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.value_ends.clear();
        self.values_len = 0;
    }

    fn shared_prefix_len(&self, bytewise: bool) -> usize {
        let first = self.first_key();
        let first = &first[..first.len().saturating_sub(TRAILER_LEN)];
        if bytewise {
            let last = self.last_key();
            return shared_len(first, &last[..last.len().saturating_sub(TRAILER_LEN)]);
        }
        let (mut from, mut shared) = (0, first.len());
        for &end in &self.key_ends {
            let key = &self.keys[from..end as usize - TRAILER_LEN];
            shared = shared_len(&first[..shared], key);
            from = end as usize;
        }
        shared
    }
}

/// Bytes that both begin with.
#[inline]
fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Appends a start array: 0, then each end less `shrink` for every entry up to it. No capacity check for each.
#[inline]
fn put_starts<const N: usize>(out: &mut Vec<u8>, ends: &[u32], shrink: u32, encode: impl Fn(u32) -> [u8; N]) {
    let at = out.len();
    out.resize(at + N * (ends.len() + 1), 0);
    let mut shrunk = 0;
    for (slot, end) in out[at + N..].chunks_exact_mut(N).zip(ends) {
        shrunk += shrink;
        slot.copy_from_slice(&encode(end - shrunk));
    }
}
