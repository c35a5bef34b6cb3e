//! Every byte of a segment; `docs/formats/wal.md` says the same in prose.
//!
//! A segment is a header of 64 bytes and then fragments. The file is seen as blocks of 32 KiB, the first of which
//! begins with the header; no fragment crosses a block's end, and what is too short there for a fragment's header
//! is zero. A fragment is
//!
//! ```text
//! header_checksum u32 | checksum u32 | payload_len u16 | kind u8 | payload
//! ```
//!
//! `header_checksum` is the CRC-32C of database id, segment number, offset of the fragment in the file, length and
//! kind; `checksum` continues it over the payload. Thus a fragment is valid in one place of one segment of one
//! database only: what a recycled file held before, or a block written to the wrong place, is never taken for
//! part of the log; and a length can be trusted, so that a damaged payload costs its own record only.

use crate::codec::{checksum, take_u32, take_u64};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 32 << 10;
/// Bytes of the header of a segment.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes of a fragment before its payload.
pub const FRAGMENT_HEADER_BYTES: usize = 11;
/// The format that this version writes, and the newest that it reads. 2: records may be steps of a two-phase commit.
pub const FORMAT_VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"ESKERWAL";
/// Header bytes under its checksum, which fills the rest.
const HEADER_CHECKED_BYTES: usize = SEGMENT_HEADER_BYTES - 4;
const FLAG_RECYCLED: u32 = 1;

/// Which segment of which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId {
    /// The database's id.
    pub db_id: u64,
    /// The segment's number, which is never given twice in a database.
    pub number: u64,
}

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    pub(super) id: SegmentId,
    /// The file held another segment before: what follows the log may be anything.
    pub(super) recycled: bool,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let flags = if self.recycled { FLAG_RECYCLED } else { 0 };
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&flags.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.db_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.id.number.to_le_bytes());
        let sum = checksum(&[&bytes[..HEADER_CHECKED_BYTES]]);
        bytes[HEADER_CHECKED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are not those of a header.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (checked, mut sum) = bytes.get(..SEGMENT_HEADER_BYTES)?.split_at(HEADER_CHECKED_BYTES);
        let mut fields = checked.strip_prefix(&MAGIC)?;
        if take_u32(&mut sum)? != checksum(&[checked]) {
            return None;
        }
        let version = take_u32(&mut fields)?;
        let flags = take_u32(&mut fields)?;
        Some(Self {
            version,
            id: SegmentId {
                db_id: take_u64(&mut fields)?,
                number: take_u64(&mut fields)?,
            },
            recycled: flags & FLAG_RECYCLED != 0,
        })
    }
}

/// Which segment the first bytes of a file say that it is; `None` if they are not the header of one.
pub fn segment_id(bytes: &[u8]) -> Option<SegmentId> {
    SegmentHeader::decode(bytes).map(|header| header.id)
}

/// What part of a record a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole record.
    Full = 1,
    /// The first part of a record.
    First = 2,
    /// Neither the first nor the last part.
    Middle = 3,
    /// The last part.
    Last = 4,
    /// No record: the segment was finished here. Empty.
    End = 5,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Kind::Full,
            2 => Kind::First,
            3 => Kind::Middle,
            4 => Kind::Last,
            5 => Kind::End,
            _ => return None,
        })
    }
}

/// The checksum of a fragment's header.
#[inline]
fn header_checksum(id: SegmentId, offset: u64, len: u16, kind: Kind) -> u32 {
    let mut bytes = [0; 27];
    bytes[..8].copy_from_slice(&id.db_id.to_le_bytes());
    bytes[8..16].copy_from_slice(&id.number.to_le_bytes());
    bytes[16..24].copy_from_slice(&offset.to_le_bytes());
    bytes[24..26].copy_from_slice(&len.to_le_bytes());
    bytes[26] = kind as u8;
    checksum(&[&bytes])
}

/// Appends the fragment that stands at `offset` of the segment to `out`.
/// Invariant of the caller: the fragment fits into its block, so that its length fits into 16 bits.
#[inline]
pub(super) fn put_fragment(out: &mut Vec<u8>, id: SegmentId, offset: u64, kind: Kind, payload: &[u8]) {
    debug_assert!(room_at(offset) >= FRAGMENT_HEADER_BYTES + payload.len());
    let len = payload.len() as u16;
    let header_sum = header_checksum(id, offset, len, kind);
    let sum = crc32c::crc32c_append(header_sum, payload);
    let mut header = [0; FRAGMENT_HEADER_BYTES];
    header[..4].copy_from_slice(&header_sum.to_le_bytes());
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    header[8..10].copy_from_slice(&len.to_le_bytes());
    header[10] = kind as u8;
    out.extend_from_slice(&header);
    out.extend_from_slice(payload);
}

/// A fragment's header whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentHeader {
    pub(super) kind: Kind,
    pub(super) payload_len: usize,
    header_sum: u32,
    sum: u32,
}

impl FragmentHeader {
    /// The header at the front of `bytes`, which stand at `offset`; `None` if there is none of this segment.
    #[inline]
    pub(super) fn decode(bytes: &[u8], id: SegmentId, offset: u64) -> Option<Self> {
        let header: &[u8; FRAGMENT_HEADER_BYTES] = bytes.first_chunk()?;
        // Cheapest test first: a search for fragments comes here for every byte.
        let kind = Kind::from_byte(header[10])?;
        let len = u16::from_le_bytes([header[8], header[9]]);
        let payload_len = usize::from(len);
        if FRAGMENT_HEADER_BYTES + payload_len > room_at(offset) || (kind == Kind::End && len > 0) {
            return None;
        }
        let mut sums = &header[..8];
        let (header_sum, sum) = (take_u32(&mut sums)?, take_u32(&mut sums)?);
        (header_sum == header_checksum(id, offset, len, kind)).then_some(Self {
            kind,
            payload_len,
            header_sum,
            sum,
        })
    }

    /// Whether `payload` is what was written.
    #[inline]
    pub(super) fn fits(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_len && crc32c::crc32c_append(self.header_sum, payload) == self.sum
    }
}

/// The place in `bytes`, which stand at `offset`, of the first fragment's header behind their first byte.
pub(super) fn find_header(bytes: &[u8], id: SegmentId, offset: u64) -> Option<usize> {
    /// Bytes that one vector instruction or two can rule out.
    const STRIDE: usize = 32;
    let is_kind = |byte: u8| Kind::from_byte(byte).is_some();
    // The byte of the kind is the rarest part of a header in zeros and text alike: look for it first.
    let kinds = bytes.get(FRAGMENT_HEADER_BYTES..)?;
    for (stride, group) in kinds.chunks(STRIDE).enumerate() {
        if !group.iter().fold(false, |any, &byte| any | is_kind(byte)) {
            continue;
        }
        for (i, &byte) in group.iter().enumerate() {
            let at = stride * STRIDE + i + 1;
            if is_kind(byte) && FragmentHeader::decode(&bytes[at..], id, offset + at as u64).is_some() {
                return Some(at);
            }
        }
    }
    None
}

/// Bytes from `offset` to the end of its block.
#[inline]
pub(super) fn room_at(offset: u64) -> usize {
    BLOCK_BYTES - (offset % BLOCK_BYTES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SegmentId = SegmentId {
        db_id: 0x1122_3344_5566_7788,
        number: 7,
    };

    #[test]
    fn headers_come_back_and_have_their_bytes_where_the_document_says() {
        for recycled in [false, true] {
            let header = SegmentHeader {
                version: FORMAT_VERSION,
                id: ID,
                recycled,
            };
            let bytes = header.encode();
            assert_eq!(SegmentHeader::decode(&bytes), Some(header));
            assert_eq!(&bytes[..12], b"ESKERWAL\x02\0\0\0");
            assert_eq!(bytes[12], u8::from(recycled));
            assert_eq!(bytes[16..24], ID.db_id.to_le_bytes());
            assert_eq!(bytes[24..32], ID.number.to_le_bytes());
            for bit in 0..SEGMENT_HEADER_BYTES * 8 {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(SegmentHeader::decode(&flipped), None);
            }
            assert_eq!(SegmentHeader::decode(&bytes[..63]), None);
        }
    }

    #[test]
    fn a_fragment_has_these_bytes_for_ever() {
        let mut out = Vec::new();
        put_fragment(&mut out, ID, 64, Kind::Full, b"payload");
        let mut key = Vec::new();
        for number in [ID.db_id, ID.number, 64] {
            key.extend_from_slice(&number.to_le_bytes());
        }
        key.extend_from_slice(&[7, 0, 1]);
        let mut expected = checksum(&[&key]).to_le_bytes().to_vec();
        expected.extend_from_slice(&checksum(&[&key, b"payload"]).to_le_bytes());
        expected.extend_from_slice(b"\x07\0\x01payload");
        assert_eq!(out, expected);
        assert_eq!(out[..8], GOLDEN_SUMS);
    }

    /// Written down once, so that a change of the checksums' input can't pass unseen.
    const GOLDEN_SUMS: [u8; 8] = [24, 224, 232, 94, 79, 10, 146, 70];

    #[test]
    fn a_fragment_is_valid_in_its_place_only() {
        let mut out = Vec::new();
        put_fragment(&mut out, ID, 64, Kind::Full, b"payload");
        let header = FragmentHeader::decode(&out, ID, 64).unwrap();
        assert!(header.fits(b"payload") && !header.fits(b"payloaD") && !header.fits(b"payloa"));
        let other_segment = SegmentId { number: 8, ..ID };
        let other_db = SegmentId { db_id: 1, ..ID };
        for (id, offset) in [
            (ID, 65),
            (ID, 64 + BLOCK_BYTES as u64),
            (other_segment, 64),
            (other_db, 64),
        ] {
            assert_eq!(FragmentHeader::decode(&out, id, offset), None);
        }
    }

    #[test]
    fn a_header_is_found_wherever_it_stands_behind_the_first_byte() {
        for filler in [0_u8, 1, 0xff] {
            for at in 0..150 {
                let mut bytes = vec![filler; at];
                put_fragment(&mut bytes, ID, 1000 + at as u64, Kind::First, &[filler; 3]);
                let expected = (at > 0).then_some(at);
                assert_eq!(find_header(&bytes, ID, 1000), expected);
                assert_eq!(
                    find_header(&bytes[..at + FRAGMENT_HEADER_BYTES], ID, 1000),
                    expected
                );
                assert_eq!(
                    find_header(&bytes[..at + FRAGMENT_HEADER_BYTES - 1], ID, 1000),
                    None
                );
            }
        }
    }
}
