//! The block of range tombstones: `varint count | (slice start, slice end, varint sequence) ...`.

use crate::codec::{put_slice, put_varint, take_slice, take_varint};
use crate::key::{SEQUENCE_MAX, Sequence};

/// A range of user keys that is gone: first key, first key past it, and when.
pub type RawRangeTombstone = (Vec<u8>, Vec<u8>, Sequence);

/// Appends the block.
pub fn encode_tombstones(tombstones: &[RawRangeTombstone], out: &mut Vec<u8>) {
    put_varint(out, tombstones.len() as u64);
    for (start, end, sequence) in tombstones {
        put_slice(out, start);
        put_slice(out, end);
        put_varint(out, *sequence);
    }
}

/// Reads the block; `None` if it is not one.
pub fn decode_tombstones(mut input: &[u8]) -> Option<Vec<RawRangeTombstone>> {
    let input = &mut input;
    let count = usize::try_from(take_varint(input)?).ok()?;
    // Each takes at least three bytes: no allocation beyond what the input can hold.
    if count > input.len() / 3 {
        return None;
    }
    let mut tombstones = Vec::with_capacity(count);
    for _ in 0..count {
        let start = take_slice(input)?.to_vec();
        let end = take_slice(input)?.to_vec();
        let sequence = take_varint(input).filter(|&sequence| sequence <= SEQUENCE_MAX)?;
        tombstones.push((start, end, sequence));
    }
    input.is_empty().then_some(tombstones)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tombstones_come_back_and_cuts_are_noticed(
            tombstones in prop::collection::vec(
                (any::<Vec<u8>>(), any::<Vec<u8>>(), 0..SEQUENCE_MAX), 0..5),
        ) {
            let mut out = Vec::new();
            encode_tombstones(&tombstones, &mut out);
            for cut in 0..out.len() {
                prop_assert_eq!(decode_tombstones(&out[..cut]), None);
            }
            prop_assert_eq!(decode_tombstones(&out), Some(tombstones));
        }

        #[test]
        fn any_bytes_are_refused_or_read_without_a_panic(bytes: Vec<u8>) {
            let _ = decode_tombstones(&bytes);
        }
    }
}
