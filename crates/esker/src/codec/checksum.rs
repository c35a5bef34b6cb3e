//! The one checksum of all files: CRC-32C (Castagnoli), in hardware where there is some.

/// The CRC-32C over `parts`, one after the other.
#[inline]
pub fn checksum(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part))
}

/// What is XORed into the checksum of the block or record at `offset`: one that was written to, or read from,
/// another place or another file does not pass. It is apart from the CRC, so that a block can be copied whole to
/// another place by changing four bytes.
#[inline]
pub fn place_mask(file_id: u64, offset: u64) -> u32 {
    let mixed =
        (file_id ^ offset.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32 ^ mixed as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_check_value() {
        // RFC 3720, appendix B.4, and the catalogue's check value for CRC-32C.
        assert_eq!(checksum(&[b"123456789"]), 0xe306_9283);
        assert_eq!(checksum(&[b"1234", b"56789"]), 0xe306_9283);
        assert_eq!(checksum(&[&[0_u8; 32]]), 0x8a91_36aa);
    }
}
