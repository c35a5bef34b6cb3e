//! The fixed parts of the format: header, footer, and the header of a record.
//!
//! ```text
//! header | record * | footer
//! record := checksum u32 | stored length u32 | compression u8 | stored bytes
//! ```
//! The checksum is the CRC-32C of all that follows it in the record, XORed with a mask of the file's number and the
//! record's offset: a record is valid in its place only, and can be copied to another by changing four bytes.

use crate::codec::{checksum, place_mask, take_u32, take_u64};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Compression;

/// The first eight bytes of a blob file.
pub const HEADER_MAGIC: [u8; 8] = *b"EskerBlb";
/// The last eight bytes of a blob file.
pub const FOOTER_MAGIC: [u8; 8] = *b"EskerBlE";
/// The format that this code writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_LEN: usize = 32;
/// Bytes of the footer, in every version of the format.
pub const FOOTER_LEN: usize = 64;
/// Bytes of a record before its stored bytes.
pub const RECORD_HEADER_LEN: usize = 9;
/// The longest record, in bytes.
pub const RECORD_LEN_MAX: u64 = RECORD_HEADER_LEN as u64 + u32::MAX as u64;

/// Header bytes under its checksum.
const HEADER_CHECKED_LEN: usize = HEADER_LEN - 4;
/// Footer bytes under its checksum.
const FOOTER_CHECKED_LEN: usize = FOOTER_LEN - 12;

/// The header's bytes.
pub fn encode_header(database_id: u64, number: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&HEADER_MAGIC);
    header[8..16].copy_from_slice(&database_id.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    header[24..28].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    mend_header(&mut header);
    header
}

/// Makes a header's checksum right.
pub(super) fn mend_header(header: &mut [u8; HEADER_LEN]) {
    let sum = checksum(&[&header[..HEADER_CHECKED_LEN]]);
    header[HEADER_CHECKED_LEN..].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a header; gives the ids of database and file.
///
/// # Errors
/// `Corruption` if it is not one or is damaged; `Unsupported` if it is whole but newer than this code.
pub fn check_header(header: &[u8; HEADER_LEN]) -> Result<(u64, u64)> {
    let mut rest = header
        .strip_prefix(&HEADER_MAGIC)
        .ok_or_else(|| Error::corruption("not a blob file: the magic at its front is missing"))?;
    let (id, number) = (take_u64(&mut rest), take_u64(&mut rest));
    let (version, sum) = (take_u32(&mut rest), take_u32(&mut rest));
    let (Some(id), Some(number), Some(version), Some(sum)) = (id, number, version, sum) else {
        return Err(Error::corruption("the blob file's header is cut short"));
    };
    if sum != checksum(&[&header[..HEADER_CHECKED_LEN]]) {
        return Err(Error::corruption("checksum mismatch in the blob file's header"));
    }
    check_version(version)?;
    Ok((id, number))
}

fn check_version(version: u32) -> Result<()> {
    if version == 0 || version > FORMAT_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("blob file format {version}; this version reads 1 to {FORMAT_VERSION}"),
        ));
    }
    Ok(())
}

/// What the last bytes of a blob file say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobFooter {
    /// The database that wrote the file.
    pub database_id: u64,
    /// The number under which it was written.
    pub number: u64,
    /// Records in the file.
    pub records: u64,
    /// Their bytes, with headers.
    pub record_bytes: u64,
    /// Bytes of their values, before compression.
    pub raw_bytes: u64,
}

impl BlobFooter {
    /// Counts a record, and the bytes of its value before compression.
    #[inline]
    pub fn count(&mut self, record_bytes: u64, raw_bytes: usize) {
        self.records += 1;
        self.record_bytes += record_bytes;
        self.raw_bytes += raw_bytes as u64;
    }

    /// The footer's bytes.
    pub fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut footer = [0; FOOTER_LEN];
        let numbers = [
            self.database_id,
            self.number,
            self.records,
            self.record_bytes,
            self.raw_bytes,
        ];
        for (place, number) in footer.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        footer[48..52].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        footer[FOOTER_LEN - 8..].copy_from_slice(&FOOTER_MAGIC);
        mend_footer(&mut footer);
        footer
    }

    /// Reads a footer.
    ///
    /// # Errors
    /// `Corruption` if it is not one or is damaged; `Unsupported` if it is whole but newer than this code.
    pub fn decode(footer: &[u8; FOOTER_LEN]) -> Result<Self> {
        if !footer.ends_with(&FOOTER_MAGIC) {
            return Err(Error::corruption(
                "an unfinished blob file: the magic at its end is missing",
            ));
        }
        let (mut body, mut end) = footer.split_at(FOOTER_CHECKED_LEN);
        if take_u32(&mut end) != Some(checksum(&[body])) {
            return Err(Error::corruption("checksum mismatch in the blob file's footer"));
        }
        let version = body
            .last_chunk::<4>()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        check_version(version)?;
        let mut number =
            || take_u64(&mut body).ok_or_else(|| Error::corruption("the blob file's footer is cut short"));
        Ok(Self {
            database_id: number()?,
            number: number()?,
            records: number()?,
            record_bytes: number()?,
            raw_bytes: number()?,
        })
    }
}

/// Makes a footer's checksum right.
pub(super) fn mend_footer(footer: &mut [u8; FOOTER_LEN]) {
    let sum = checksum(&[&footer[..FOOTER_CHECKED_LEN]]);
    footer[FOOTER_CHECKED_LEN..FOOTER_LEN - 8].copy_from_slice(&sum.to_le_bytes());
}

/// Appends the header of a record whose stored bytes come in the same buffer, before its checksum is known.
#[inline]
pub fn open_record(out: &mut Vec<u8>, stored_len: u32, compression: Compression) {
    let mut header = [0; RECORD_HEADER_LEN];
    header[4..8].copy_from_slice(&stored_len.to_le_bytes());
    header[8] = compression as u8;
    out.extend_from_slice(&header);
}

/// Makes the checksum right of the record that stands in `record` and in `rest` behind it, and will lie at `offset`
/// of file `number`.
#[inline]
pub fn seal_record(record: &mut [u8], rest: &[u8], number: u64, offset: u64) {
    if let Some((sum, covered)) = record.split_first_chunk_mut::<4>() {
        *sum = (checksum(&[covered, rest]) ^ place_mask(number, offset)).to_le_bytes();
    }
}

/// Makes the checksum right of a whole record that comes from elsewhere, of which `record` is the front: what it covers
/// stays as it is, and so may be damaged, which the checksum then still shows.
#[inline]
pub fn move_record(record: &mut [u8], from: (u64, u64), to: (u64, u64)) {
    if let Some(sum) = record.first_chunk_mut::<4>() {
        let masks = place_mask(from.0, from.1) ^ place_mask(to.0, to.1);
        *sum = (u32::from_le_bytes(*sum) ^ masks).to_le_bytes();
    }
}

/// What the header of a record says, before it is known whether it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    checksum: u32,
    stored_len: u32,
    compression: u8,
}

impl RecordHeader {
    /// Reads the header at the front of `bytes`.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        Some(Self {
            checksum: u32::from_le_bytes(*header.first_chunk()?),
            stored_len: u32::from_le_bytes(*header[4..].first_chunk()?),
            compression: header[8],
        })
    }

    /// Bytes of the record with its header.
    #[inline]
    pub fn record_len(&self) -> u64 {
        RECORD_HEADER_LEN as u64 + u64::from(self.stored_len)
    }
}

/// Checks a record that was read from `offset` of file `number` (its checksum only when `verify`); gives how its stored
/// bytes, `record[RECORD_HEADER_LEN..]`, are compressed, or what is wrong.
#[inline]
pub fn check_record(
    record: &[u8],
    verify: bool,
    number: u64,
    offset: u64,
) -> std::result::Result<Compression, &'static str> {
    let header = RecordHeader::decode(record).ok_or("blob record is cut short")?;
    if header.record_len() != record.len() as u64 {
        return Err("the length of a blob record is not that of the pointer to it");
    }
    if verify && header.checksum != checksum(&[&record[4..]]) ^ place_mask(number, offset) {
        return Err("blob record checksum mismatch");
    }
    Compression::from_u8(header.compression).ok_or("blob record with an unknown compression")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> BlobFooter {
        BlobFooter {
            database_id: 1,
            number: 2,
            records: 3,
            record_bytes: 4,
            raw_bytes: 5,
        }
    }

    #[test]
    fn headers_come_back_and_no_bit_of_them_may_flip() {
        let bytes = encode_header(77, 88);
        assert_eq!(check_header(&bytes).expect("whole"), (77, 88));
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = check_header(&bytes).expect_err("flipped");
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
        }
    }

    #[test]
    fn footers_come_back_and_no_bit_of_them_may_flip() {
        let bytes = footer().encode();
        assert_eq!(BlobFooter::decode(&bytes).expect("whole"), footer());
        for bit in 0..FOOTER_LEN * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = BlobFooter::decode(&bytes).expect_err("flipped");
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_unsupported_not_corrupt() {
        let mut header = encode_header(1, 2);
        header[24] = 2;
        mend_header(&mut header);
        let mut end = footer().encode();
        end[48] = 2;
        mend_footer(&mut end);
        for error in [
            check_header(&header).expect_err("newer"),
            BlobFooter::decode(&end).expect_err("newer"),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("blob file format 2"), "{error}");
        }
    }

    #[test]
    fn a_record_is_valid_in_its_place_only() {
        let mut record = Vec::new();
        open_record(&mut record, 5, Compression::Lz4);
        record.extend_from_slice(b"value");
        seal_record(&mut record, b"", 9, 4096);
        assert_eq!(check_record(&record, true, 9, 4096), Ok(Compression::Lz4));
        for (number, offset) in [(9, 4097), (9, 32), (8, 4096), (4096, 9), (9, 4096 << 32)] {
            assert!(check_record(&record, true, number, offset).is_err());
        }
        for bit in 0..record.len() * 8 {
            let mut record = record.clone();
            record[bit / 8] ^= 1 << (bit % 8);
            assert!(check_record(&record, true, 9, 4096).is_err(), "bit {bit}");
        }
        record[10] ^= 1;
        assert!(
            check_record(&record, false, 9, 4096).is_ok(),
            "told not to verify"
        );
    }

    #[test]
    fn a_record_moves_with_its_checksum_and_with_its_damage() {
        let mut record = Vec::new();
        open_record(&mut record, 5, Compression::None);
        record.extend_from_slice(b"value");
        seal_record(&mut record, b"", 9, 4096);
        move_record(&mut record, (9, 4096), (10, 32));
        assert_eq!(check_record(&record, true, 10, 32), Ok(Compression::None));
        assert!(check_record(&record, true, 9, 4096).is_err());
        record[12] ^= 4;
        move_record(&mut record, (10, 32), (11, 64));
        assert!(check_record(&record, true, 11, 64).is_err());
    }

    /// Written down once, so that a change of what the checksum covers can't pass unseen.
    #[test]
    fn a_record_has_these_bytes() {
        let mut record = Vec::new();
        open_record(&mut record, 5, Compression::None);
        let mut whole = [&record[..], b"value"].concat();
        seal_record(&mut record, b"value", 22, 32);
        seal_record(&mut whole, b"", 22, 32);
        assert_eq!(whole[..9], record, "in one piece or in two");
        assert_eq!(whole[4..], *b"\x05\0\0\0\0value");
        assert_eq!(whole[..4], GOLDEN_SUM);
    }

    const GOLDEN_SUM: [u8; 4] = [193, 55, 67, 201];
}
