//! Where a value is: what the tree holds in its place.

use super::format::{HEADER_LEN, RECORD_HEADER_LEN, RECORD_LEN_MAX};
use crate::codec::{put_varint, take_varint};
use crate::error::{Error, Result};

/// The longest encoding of a pointer, in bytes: 10 for the file, 9 for the offset, 5 for the length.
pub const POINTER_LEN_MAX: usize = 24;

/// Offsets are below this: what a signed file offset can reach.
const OFFSET_END: u64 = 1 << 63;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobPointer {
    /// Number of the blob file.
    pub file: u64,
    /// Offset of the record in it.
    pub offset: u64,
    /// Length of the record with its header, in bytes. (A value of 4 GiB - 1 does not fit in 32 bits with it.)
    pub bytes: u64,
}

impl BlobPointer {
    /// Appends the pointer: three varints, at most [`POINTER_LEN_MAX`] bytes.
    #[inline]
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        put_varint(out, self.file);
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
    }

    /// Reads a pointer.
    ///
    /// # Errors
    /// `Corruption` unless `bytes` are exactly one pointer to where a record could be.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| Error::corruption("a pointer to a blob file is malformed"))
    }

    fn parse(mut input: &[u8]) -> Option<Self> {
        let pointer = Self {
            file: take_varint(&mut input)?,
            offset: take_varint(&mut input)?,
            bytes: take_varint(&mut input)?,
        };
        let fits = input.is_empty()
            && pointer.offset >= HEADER_LEN as u64
            && pointer.bytes >= RECORD_HEADER_LEN as u64
            && pointer.bytes <= RECORD_LEN_MAX
            && pointer.end().is_some_and(|end| end < OFFSET_END);
        fits.then_some(pointer)
    }

    /// The first byte behind the record; `None` where that overflows.
    #[inline]
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn encoded(pointer: BlobPointer) -> Vec<u8> {
        let mut out = Vec::new();
        pointer.encode_into(&mut out);
        out
    }

    proptest! {
        #[test]
        fn pointers_come_back(file: u64, offset in 32..1_u64 << 62, bytes in 9..RECORD_LEN_MAX) {
            let pointer = BlobPointer { file, offset, bytes };
            let out = encoded(pointer);
            prop_assert!(out.len() <= POINTER_LEN_MAX);
            prop_assert_eq!(BlobPointer::decode(&out).expect("whole"), pointer);
            for cut in 0..out.len() {
                prop_assert!(BlobPointer::decode(&out[..cut]).is_err());
            }
            let longer = [&out[..], &[0]].concat();
            prop_assert!(BlobPointer::decode(&longer).is_err());
        }

        #[test]
        fn what_decodes_encodes_to_the_same(bytes in prop::collection::vec(any::<u8>(), 0..26)) {
            if let Ok(pointer) = BlobPointer::decode(&bytes) {
                prop_assert_eq!(encoded(pointer), bytes);
            }
        }
    }

    #[test]
    fn the_longest_pointer_is_as_long_as_it_may_be() {
        let bytes = RECORD_LEN_MAX;
        let pointer = BlobPointer {
            file: u64::MAX,
            offset: OFFSET_END - 1 - bytes,
            bytes,
        };
        let out = encoded(pointer);
        assert_eq!(out.len(), POINTER_LEN_MAX);
        assert_eq!(BlobPointer::decode(&out).expect("just fits"), pointer);
    }

    #[test]
    fn pointers_to_where_no_record_can_be_are_corrupt() {
        let good = BlobPointer {
            file: 7,
            offset: 32,
            bytes: 9,
        };
        assert!(BlobPointer::decode(&encoded(good)).is_ok());
        for bad in [
            BlobPointer { offset: 31, ..good },
            BlobPointer { bytes: 8, ..good },
            BlobPointer {
                bytes: RECORD_LEN_MAX + 1,
                ..good
            },
            BlobPointer {
                offset: OFFSET_END - 9,
                ..good
            },
            BlobPointer {
                offset: u64::MAX,
                ..good
            },
        ] {
            let error = BlobPointer::decode(&encoded(bad)).expect_err("nothing can be there");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{bad:?}");
        }
    }
}
