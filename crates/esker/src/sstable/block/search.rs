//! Binary search in a block.
//!
//! The target is compared with the block's prefix once. Then suffixes are compared eight bytes at a time as numbers:
//! each suffix is followed by its 8-byte trailer, so that eight bytes can be loaded whatever its length, and what
//! lies beyond it is masked to zero. Unequal heads order the keys; only equal ones need the rest. The search halves
//! without branching on the comparison, as its outcome can't be predicted.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use super::{Block, start};
use crate::key::{KeyOrder, TRAILER_LEN, key_head};

/// Where a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first entry >= the target; the number of entries if there is none.
    pub index: usize,
    /// Whether the target begins with the block's prefix. If not, no entry has the target's user key.
    pub in_prefix: bool,
}

impl Block {
    /// The first entry >= the internal key of these parts. O(log entries). `scratch` is used only under a custom
    /// order, and then for keys to be compared.
    #[inline]
    pub fn search(&self, order: &KeyOrder, user_key: &[u8], trailer: u64, scratch: &mut Vec<u8>) -> Found {
        let prefix = self.prefix();
        match order {
            KeyOrder::Bytewise => {
                let Some(suffix) = strip_prefix(user_key, prefix) else {
                    let index = if user_key < prefix { 0 } else { self.len() };
                    return Found {
                        index,
                        in_prefix: false,
                    };
                };
                let index = if self.wide {
                    self.lower_bound::<4>(suffix, trailer)
                } else {
                    self.lower_bound::<2>(suffix, trailer)
                };
                Found {
                    index,
                    in_prefix: true,
                }
            }
            KeyOrder::Custom(_) => Found {
                index: self.lower_bound_custom(order, user_key, trailer, scratch),
                in_prefix: user_key.starts_with(prefix),
            },
        }
    }

    /// Whether entry `i` has this user key, given that the key begins with the block's prefix.
    #[inline]
    pub fn has_user_key(&self, i: usize, user_key: &[u8]) -> bool {
        let suffix = self.key_suffix(i);
        let len = suffix.len().saturating_sub(TRAILER_LEN);
        user_key
            .get(self.prefix_len as usize..)
            .is_some_and(|rest| is_equal(rest, &suffix[..len]))
    }

    fn lower_bound<const WIDTH: usize>(&self, suffix: &[u8], trailer: u64) -> usize {
        let (starts, _) = self.starts();
        let keys_at = self.values_len as usize + self.prefix_len as usize;
        let Some(keys) = self.bytes.get(keys_at..) else {
            return 0;
        };
        let head = key_head(suffix);
        let is_less = |i: usize| {
            let from = start::<WIDTH>(starts, i);
            let len = start::<WIDTH>(starts, i + 1).wrapping_sub(from + TRAILER_LEN);
            let entry_head = masked_head(keys, from, len);
            if entry_head != head {
                entry_head < head
            } else if len == suffix.len() && len <= 8 {
                let entry = keys
                    .get(from + len..)
                    .and_then(|rest| rest.first_chunk::<TRAILER_LEN>());
                entry.is_some_and(|entry| u64::from_le_bytes(*entry) > trailer)
            } else {
                rest_is_less(keys, from, len, suffix, trailer)
            }
        };
        let (mut base, mut size) = (0, self.len());
        while size > 1 {
            let half = size / 2;
            base = select_unpredictable(is_less(base + half - 1), base + half, base);
            size -= half;
        }
        base + usize::from(size == 1 && is_less(base))
    }

    fn lower_bound_custom(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        trailer: u64,
        scratch: &mut Vec<u8>,
    ) -> usize {
        let prefix_len = self.prefix_len as usize;
        scratch.clear();
        scratch.extend_from_slice(self.prefix());
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some((suffix, entry_trailer)) = self.key_suffix(middle).split_last_chunk::<TRAILER_LEN>()
            else {
                return 0;
            };
            let compared = if prefix_len == 0 {
                order.compare(suffix, user_key)
            } else {
                scratch.truncate(prefix_len);
                scratch.extend_from_slice(suffix);
                order.compare(scratch, user_key)
            };
            let less = match compared {
                Ordering::Less => true,
                Ordering::Equal => u64::from_le_bytes(*entry_trailer) > trailer,
                Ordering::Greater => false,
            };
            if less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// `a == b` for keys: short ones are compared here, eight bytes at a time, instead of by a call of `memcmp`.
#[inline]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.len(), a.first_chunk::<8>(), b.first_chunk::<8>()) {
        // The two loads overlap; together they cover all bytes.
        (..=16, Some(front), Some(other)) => front == other && a.last_chunk::<8>() == b.last_chunk::<8>(),
        (..8, ..) => a.iter().zip(b).all(|(a, b)| a == b),
        _ => a == b,
    }
}

/// `key` without `prefix`, if it begins with it.
#[inline]
fn strip_prefix<'a>(key: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (front, rest) = key.split_at_checked(prefix.len())?;
    is_equal(front, prefix).then_some(rest)
}

/// Whether the entry whose suffix lies at `keys[from..from + len]` is less than the target, given that their heads
/// are equal. Eight bytes at a time, as with heads.
#[inline(never)]
fn rest_is_less(keys: &[u8], from: usize, len: usize, suffix: &[u8], trailer: u64) -> bool {
    let mut at = 8;
    while at < len && at < suffix.len() {
        let entry = masked_head(keys, from + at, len - at);
        let target = key_head(&suffix[at..]);
        if entry != target {
            return entry < target;
        }
        at += 8;
    }
    // One is the other with nothing or with zeros behind it: the shorter is less.
    match len.cmp(&suffix.len()) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => keys
            .get(from + len..)
            .and_then(|rest| rest.first_chunk::<TRAILER_LEN>())
            .is_some_and(|entry| u64::from_le_bytes(*entry) > trailer),
    }
}

/// The eight bytes at `keys[from..]` as a number that orders as they do, with those from `len` on taken for zeros.
/// Entries end with a trailer, so that the bytes are there.
#[inline(always)]
fn masked_head(keys: &[u8], from: usize, len: usize) -> u64 {
    let Some(eight) = keys.get(from..).and_then(|rest| rest.first_chunk::<8>()) else {
        return 0;
    };
    let mask = if len >= 8 {
        u64::MAX
    } else {
        !(u64::MAX >> (8 * len))
    };
    u64::from_be_bytes(*eight) & mask
}
