//! Integers as bytes, little-endian or as LEB128 varints; checksums; compression.
//!
//! Decoding never panics: what is cut short or over-long is `None`, and the caller names the file and offset.

mod checksum;
mod compress;

pub use checksum::{checksum, place_mask};
pub use compress::{Compressor, RAW_LEN_MAX, decompress, decompress_into, raw_len};

/// The longest encoding of a `u64` varint, in bytes.
pub const VARINT_LEN_MAX: usize = 10;

/// Appends `value` as a varint (1 to 10 bytes).
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `bytes` behind their length as a varint.
#[inline]
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that `value` takes as a varint.
#[inline]
pub fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Reads a varint at the front of `input` and moves past it. Only the shortest encoding is accepted.
#[inline]
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    if first < 0x80 {
        *input = &input[1..];
        return Some(u64::from(first));
    }
    let mut value = 0_u64;
    for (i, &byte) in input.iter().take(VARINT_LEN_MAX).enumerate() {
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            if byte == 0 && i > 0 {
                return None;
            }
            *input = &input[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Reads a varint that fits in 32 bits.
#[inline]
pub fn take_varint32(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_varint(input)?).ok()
}

/// Reads `len` bytes and moves past them.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(bytes)
}

/// Reads bytes behind their varint length.
#[inline]
pub fn take_slice<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(input)?).ok()?;
    take_bytes(input, len)
}

/// Reads a byte.
#[inline]
pub fn take_u8(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}

/// Reads a little-endian `u32`.
#[inline]
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let (bytes, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_le_bytes(*bytes))
}

/// Reads a little-endian `u64`.
#[inline]
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = input.split_first_chunk::<8>()?;
    *input = rest;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_come_back(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_len(value));
            let mut input = out.as_slice();
            prop_assert_eq!(take_varint(&mut input), Some(value));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn decoding_never_panics(bytes: Vec<u8>) {
            let mut input = bytes.as_slice();
            while take_slice(&mut input).is_some() {}
            let mut input = bytes.as_slice();
            while take_varint(&mut input).is_some() {}
        }
    }

    #[test]
    fn a_cut_or_padded_varint_is_refused() {
        for bytes in [&[][..], &[0x80], &[0x80, 0], &[0xff; 10], &[0x80; 11]] {
            let mut input = bytes;
            assert_eq!(take_varint(&mut input), None, "{bytes:?}");
            assert_eq!(input, bytes, "nothing is consumed");
        }
    }
}
