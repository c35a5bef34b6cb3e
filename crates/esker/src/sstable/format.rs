//! The fixed parts of the format: header, footer, block handles and block trailers.

use crate::codec::{checksum, place_mask, put_varint, take_u32, take_u64, take_varint};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Compression;

/// The first eight bytes of a table.
pub const HEADER_MAGIC: [u8; 8] = *b"EskerSST";

/// The last eight bytes of a table.
pub const FOOTER_MAGIC: [u8; 8] = *b"EskerEnd";

/// The format that this code writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes of the header.
pub const HEADER_LEN: usize = 24;

/// Bytes of the footer, in every version of the format.
pub const FOOTER_LEN: usize = 128;

/// Bytes after each block: compression, checksum.
pub const BLOCK_TRAILER_LEN: usize = 5;

/// The index handle leads to an index of index blocks.
const FLAG_INDEX_PARTITIONED: u32 = 1;

/// Where a block lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHandle {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Stored bytes, without the trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Whether there is no such block.
    pub fn is_none(&self) -> bool {
        self.size == 0
    }

    /// The first byte after the block and its trailer; `None` where that overflows.
    #[inline]
    pub fn end(&self) -> Option<u64> {
        self.offset
            .checked_add(self.size)?
            .checked_add(BLOCK_TRAILER_LEN as u64)
    }

    /// Appends the varint form, the value of index entries.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.size);
    }

    /// Reads the varint form; `None` unless `input` is exactly one handle.
    #[inline]
    pub fn parse(mut input: &[u8]) -> Option<Self> {
        let offset = take_varint(&mut input)?;
        let size = take_varint(&mut input)?;
        input.is_empty().then_some(Self { offset, size })
    }

    fn put_fixed(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
    }

    fn take_fixed(input: &mut &[u8]) -> Option<Self> {
        Some(Self {
            offset: take_u64(input)?,
            size: take_u64(input)?,
        })
    }
}

/// The header's bytes.
pub fn encode_header(database_id: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&HEADER_MAGIC);
    header[8..16].copy_from_slice(&database_id.to_le_bytes());
    header[16..20].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let sum = checksum(&[&header[..20]]);
    header[20..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Checks a header; gives the database's id.
pub fn check_header(header: &[u8]) -> Result<u64> {
    let mut rest = header
        .strip_prefix(&HEADER_MAGIC)
        .ok_or_else(|| Error::corruption("not an SSTable: the magic at its front is missing"))?;
    let (id, version, sum) = (take_u64(&mut rest), take_u32(&mut rest), take_u32(&mut rest));
    let (Some(id), Some(version), Some(sum)) = (id, version, sum) else {
        return Err(Error::corruption("the table's header is cut short"));
    };
    if sum != checksum(&[&header[..HEADER_LEN - 4]]) {
        return Err(Error::corruption("checksum mismatch in the table's header"));
    }
    check_version(version)?;
    Ok(id)
}

fn check_version(version: u32) -> Result<()> {
    if version == 0 || version > FORMAT_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("table format {version}; this version reads 1 to {FORMAT_VERSION}"),
        ));
    }
    Ok(())
}

/// What the last bytes of a table say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// The database that wrote the table.
    pub database_id: u64,
    /// The table's own id: salts its block checksums. The file number under which it was written.
    pub file_id: u64,
    /// The index, or the index of its partitions.
    pub index: BlockHandle,
    /// The index of filter partitions; size 0: no filter.
    pub filter: BlockHandle,
    /// The range tombstones; size 0: none.
    pub range_tombstones: BlockHandle,
    /// The properties.
    pub properties: BlockHandle,
    /// Whether `index` is an index of index blocks.
    pub index_partitioned: bool,
}

impl Footer {
    /// The footer's bytes.
    pub fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        out.extend_from_slice(&self.database_id.to_le_bytes());
        out.extend_from_slice(&self.file_id.to_le_bytes());
        self.index.put_fixed(&mut out);
        self.filter.put_fixed(&mut out);
        self.range_tombstones.put_fixed(&mut out);
        self.properties.put_fixed(&mut out);
        BlockHandle::default().put_fixed(&mut out);
        let flags = if self.index_partitioned {
            FLAG_INDEX_PARTITIONED
        } else {
            0
        };
        out.extend_from_slice(&flags.to_le_bytes());
        out.resize(FOOTER_LEN - 16, 0);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let sum = checksum(&[&out]);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&FOOTER_MAGIC);
        let mut footer = [0; FOOTER_LEN];
        footer.copy_from_slice(&out);
        footer
    }

    /// Reads a footer.
    ///
    /// # Errors
    /// `Corruption` if it is not one or is damaged; `Unsupported` if it is whole but newer than this code.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bytes: &[u8; FOOTER_LEN] = bytes
            .try_into()
            .map_err(|_| Error::corruption("the file is too short to be an SSTable"))?;
        let (body, end) = bytes.split_at(FOOTER_LEN - 12);
        let mut end = end;
        let sum = take_u32(&mut end);
        if end != FOOTER_MAGIC {
            return Err(Error::corruption(
                "not an SSTable: the magic at its end is missing",
            ));
        }
        if sum != Some(checksum(&[body])) {
            return Err(Error::corruption("checksum mismatch in the table's footer"));
        }
        Self::decode_body(body).ok_or_else(|| Error::corruption("the table's footer is cut short"))?
    }

    fn decode_body(mut input: &[u8]) -> Option<Result<Self>> {
        let version = input.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
        if let Err(error) = check_version(version) {
            return Some(Err(error));
        }
        let input = &mut input;
        let mut footer = Self {
            database_id: take_u64(input)?,
            file_id: take_u64(input)?,
            index: BlockHandle::take_fixed(input)?,
            filter: BlockHandle::take_fixed(input)?,
            range_tombstones: BlockHandle::take_fixed(input)?,
            properties: BlockHandle::take_fixed(input)?,
            index_partitioned: false,
        };
        let dictionary = BlockHandle::take_fixed(input)?;
        let flags = take_u32(input)?;
        if flags & !FLAG_INDEX_PARTITIONED != 0 || dictionary != BlockHandle::default() {
            return Some(Err(Error::new(
                ErrorKind::Unsupported,
                format!("the table uses features that this version does not know (flags {flags:#x})"),
            )));
        }
        footer.index_partitioned = flags & FLAG_INDEX_PARTITIONED != 0;
        Some(Ok(footer))
    }
}

/// Appends the trailer of the block `out[start..]`, which will lie at `offset`.
#[inline]
pub fn seal_block(out: &mut Vec<u8>, start: usize, compression: Compression, file_id: u64, offset: u64) {
    out.push(compression as u8);
    let sum = checksum(&[&out[start..]]) ^ place_mask(file_id, offset);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Makes the checksum of a block with its trailer right.
pub(super) fn mend_block(stored: &mut [u8], file_id: u64, offset: u64) {
    if let Some((covered, sum)) = stored.split_last_chunk_mut::<4>() {
        *sum = (checksum(&[covered]) ^ place_mask(file_id, offset)).to_le_bytes();
    }
}

/// Makes the checksums of a table's header and footer right, for bytes that are long enough to have both.
pub(super) fn mend_ends(table: &mut [u8]) {
    if table.len() < HEADER_LEN + FOOTER_LEN {
        return;
    }
    let sum = checksum(&[&table[..HEADER_LEN - 4]]);
    table[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
    let footer = table.len() - FOOTER_LEN;
    let at = table.len() - 12;
    let sum = checksum(&[&table[footer..at]]);
    table[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a block with its trailer (and, when `verify`, its checksum); gives how it is compressed.
#[inline]
pub fn check_block(stored: &[u8], verify: bool, file_id: u64, offset: u64) -> Result<Compression> {
    let (covered, sum) = stored
        .split_last_chunk::<4>()
        .ok_or_else(|| Error::corruption("block is cut short").at_offset(offset))?;
    if verify && u32::from_le_bytes(*sum) != checksum(&[covered]) ^ place_mask(file_id, offset) {
        return Err(Error::corruption("block checksum mismatch").at_offset(offset));
    }
    covered
        .last()
        .and_then(|&byte| Compression::from_u8(byte))
        .ok_or_else(|| Error::corruption("block with an unknown compression").at_offset(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> Footer {
        let handle = |n| BlockHandle {
            offset: n,
            size: n + 1,
        };
        Footer {
            database_id: 1,
            file_id: 2,
            index: handle(3),
            filter: handle(4),
            range_tombstones: handle(5),
            properties: handle(6),
            index_partitioned: true,
        }
    }

    #[test]
    fn footers_come_back_and_no_bit_of_them_may_flip() {
        let bytes = footer().encode();
        assert_eq!(Footer::decode(&bytes).expect("whole"), footer());
        for bit in 0..FOOTER_LEN * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = Footer::decode(&bytes).expect_err("flipped");
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_unsupported_not_corrupt() {
        let mut bytes = footer().encode();
        bytes[112..116].copy_from_slice(&2_u32.to_le_bytes());
        let sum = checksum(&[&bytes[..116]]);
        bytes[116..120].copy_from_slice(&sum.to_le_bytes());
        let error = Footer::decode(&bytes).expect_err("newer");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("table format 2"), "{error}");
    }

    #[test]
    fn headers_come_back_and_no_bit_of_them_may_flip() {
        let bytes = encode_header(77);
        assert_eq!(check_header(&bytes).expect("whole"), 77);
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check_header(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_block_read_at_another_place_is_noticed() {
        let mut block = b"some block".to_vec();
        seal_block(&mut block, 0, Compression::Lz4, 9, 4096);
        assert_eq!(
            check_block(&block, true, 9, 4096).expect("in place"),
            Compression::Lz4
        );
        for (file_id, offset) in [(9, 4097), (9, 0), (8, 4096), (4096, 9), (9, 4096 << 32)] {
            assert!(check_block(&block, true, file_id, offset).is_err());
        }
        block[2] ^= 1;
        assert!(check_block(&block, true, 9, 4096).is_err());
        assert!(check_block(&block, false, 9, 4096).is_ok(), "told not to verify");
    }
}
