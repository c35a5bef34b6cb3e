//! Keys as the engine orders them.
//!
//! A user key becomes an *internal key* by an 8-byte trailer:
//! ```text
//! user key | trailer: u64, little-endian = sequence << 8 | kind
//! ```
//! Internal keys order by user key ascending, then by trailer descending, so that the newest version of a key
//! comes first and a seek to `(key, snapshot, kind max)` lands on the newest version that the snapshot sees.

mod comparator;
mod cursor;
mod range_tombstone;

pub use comparator::{BytewiseComparator, Comparator, KeyOrder, ReverseBytewiseComparator};
pub use cursor::Cursor;
pub use range_tombstone::{Fragment, FragmentedTombstones, RangeTombstone};

/// Position of a write in the database's history. 56 bits.
pub type Sequence = u64;

/// The largest sequence number.
pub const SEQUENCE_MAX: Sequence = (1 << 56) - 1;

/// The longest user key, in bytes (64 KiB).
pub const KEY_LEN_MAX: usize = 64 << 10;

/// The longest value, in bytes (4 GiB - 1).
pub const VALUE_LEN_MAX: u64 = u32::MAX as u64;

/// Bytes of the trailer.
pub const TRAILER_LEN: usize = 8;

/// Sets a bound of user keys, in the memory of the one before.
pub fn replace_bound(place: &mut Option<Vec<u8>>, bound: Option<&[u8]>) {
    match (place, bound) {
        (Some(place), Some(bound)) => bound.clone_into(place),
        (place, bound) => *place = bound.map(<[u8]>::to_vec),
    }
}

/// What an entry says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// The key is gone.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// The value is an operand of the column family's merge operator.
    Merge = 2,
    /// The key, written exactly once since it was last deleted, is gone.
    SingleDelete = 3,
    /// All keys from this one up to the value (exclusive) are gone. Never stored among the point entries.
    RangeDelete = 4,
    /// The key's value lies in a blob file; the value is the pointer to it. Only in tables.
    BlobPointer = 5,
}

impl ValueKind {
    /// The kind that sorts first among equal sequence numbers; seeks use it.
    pub const SEEK: ValueKind = ValueKind::BlobPointer;

    /// The kind with this number, or `None`.
    #[inline]
    pub fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Delete,
            1 => Self::Put,
            2 => Self::Merge,
            3 => Self::SingleDelete,
            4 => Self::RangeDelete,
            5 => Self::BlobPointer,
            _ => return None,
        })
    }
}

/// The trailer of an internal key.
#[inline]
pub fn pack_trailer(sequence: Sequence, kind: ValueKind) -> u64 {
    debug_assert!(sequence <= SEQUENCE_MAX);
    sequence << 8 | kind as u64
}

/// An internal key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The user's key.
    pub user_key: &'a [u8],
    /// When it was written.
    pub sequence: Sequence,
    /// What was written.
    pub kind: ValueKind,
}

/// Takes an internal key apart; `None` if it is too short or its kind is unknown.
#[inline]
pub fn parse_key(internal_key: &[u8]) -> Option<ParsedKey<'_>> {
    let (user_key, trailer) = internal_key.split_last_chunk::<TRAILER_LEN>()?;
    let trailer = u64::from_le_bytes(*trailer);
    Some(ParsedKey {
        user_key,
        sequence: trailer >> 8,
        kind: ValueKind::from_u8(trailer as u8)?,
    })
}

/// The user key of an internal key. A key without a trailer gives an empty slice (readers check lengths when a
/// block is opened, so this does not happen on checked data).
#[inline]
pub fn user_key(internal_key: &[u8]) -> &[u8] {
    &internal_key[..internal_key.len().saturating_sub(TRAILER_LEN)]
}

/// The trailer of an internal key (0 if it has none).
#[inline]
pub fn trailer(internal_key: &[u8]) -> u64 {
    internal_key
        .last_chunk::<TRAILER_LEN>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Appends the internal key of these parts to `out`.
#[inline]
pub fn append_internal_key(out: &mut Vec<u8>, user_key: &[u8], sequence: Sequence, kind: ValueKind) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&pack_trailer(sequence, kind).to_le_bytes());
}

/// The internal key of these parts.
pub fn internal_key(user_key: &[u8], sequence: Sequence, kind: ValueKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + TRAILER_LEN);
    append_internal_key(&mut out, user_key, sequence, kind);
    out
}

/// The first eight bytes of a key as a number that orders as they do (short keys are padded with zeros): equal
/// heads say nothing, unequal heads order the keys. Only for [`KeyOrder::Bytewise`].
#[inline]
pub fn key_head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        u64::from_be_bytes(*head)
    } else {
        let mut head = [0; 8];
        head[..key.len()].copy_from_slice(key);
        u64::from_be_bytes(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn newer_versions_come_first() {
        let order = KeyOrder::Bytewise;
        let newer = internal_key(b"a", 9, ValueKind::Put);
        let older = internal_key(b"a", 8, ValueKind::Put);
        let other = internal_key(b"b", 10, ValueKind::Put);
        assert_eq!(order.compare_internal(&newer, &older), Ordering::Less);
        assert_eq!(order.compare_internal(&older, &other), Ordering::Less);
        let seek = internal_key(b"a", 9, ValueKind::SEEK);
        assert_eq!(order.compare_internal(&seek, &newer), Ordering::Less);
    }

    #[test]
    fn a_prefix_comes_before_its_extension_whatever_the_trailer() {
        let order = KeyOrder::Bytewise;
        let short = internal_key(b"a", 1, ValueKind::Put);
        let long = internal_key(b"a\0", SEQUENCE_MAX, ValueKind::Put);
        assert_eq!(order.compare_internal(&short, &long), Ordering::Less);
    }

    #[test]
    fn heads_order_as_keys() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"ab", b"abcdefgh", b"b"];
        for pair in keys.windows(2) {
            assert!(key_head(pair[0]) <= key_head(pair[1]));
        }
    }

    #[test]
    fn parsing_refuses_what_is_no_internal_key() {
        assert!(parse_key(b"short").is_none());
        assert!(parse_key(&[0xff; 9]).is_none());
        let key = internal_key(b"k", 7, ValueKind::Merge);
        let parsed = parse_key(&key).expect("well-formed");
        assert_eq!(
            (parsed.user_key, parsed.sequence, parsed.kind),
            (&b"k"[..], 7, ValueKind::Merge)
        );
    }
}
