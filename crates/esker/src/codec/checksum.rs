//! The one checksum of all files: CRC-32C (Castagnoli), in hardware where there is some.

/// The CRC-32C over `parts`, one after the other.
#[inline]
pub fn checksum(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part))
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
