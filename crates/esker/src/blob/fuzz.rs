//! Entry points for fuzz targets: bytes in, no panic and no wrong claim out.

use std::io;
use std::path::Path;
use std::sync::Arc;

use esker_env::RandomFile;

use super::format::{
    FOOTER_LEN, HEADER_LEN, RECORD_HEADER_LEN, RecordHeader, mend_footer, mend_header, seal_record,
};
use super::pointer::BlobPointer;
use super::reader::BlobReader;
use super::windows::{BlobWindows, WindowOptions};

/// The database and the number that [`fuzz_file`] opens a file as.
pub const FUZZ_IDS: (u64, u64) = (11, 22);

/// Takes the bytes for a pointer: what decodes encodes to the same.
pub fn fuzz_pointer(bytes: &[u8]) {
    if let Ok(pointer) = BlobPointer::decode(bytes) {
        let mut out = Vec::new();
        pointer.encode_into(&mut out);
        assert_eq!(out, bytes, "a pointer has one encoding");
    }
}

/// Takes the bytes for a pointer, and for a blob file that is opened, walked and read in every way. With `mend`,
/// ids, checksums and the footer's byte count are made right first, so that the parsers behind them are reached.
/// Gives how many records can be read.
pub fn fuzz_file(bytes: &[u8], mend: bool) -> usize {
    fuzz_pointer(bytes);
    let mut bytes = bytes.to_vec();
    if mend {
        mend_file(&mut bytes);
    }
    let file = Arc::new(Bytes(bytes));
    let Ok(reader) = BlobReader::open(file, Path::new("fuzz.blob"), FUZZ_IDS.0, FUZZ_IDS.1) else {
        return 0;
    };
    let mut records = Vec::new();
    let _ = reader.walk(|pointer, value| {
        records.push((*pointer, value.to_vec()));
        Ok(())
    });
    let mut windows = BlobWindows::new(WindowOptions::SCAN);
    for (pointer, value) in &records {
        let alone = reader.read(pointer, true);
        assert!(alone.is_ok_and(|alone| alone[..] == value[..]), "{pointer:?}");
        let windowed = windows.get(&reader, pointer, true);
        assert!(windowed.is_ok_and(|windowed| windowed == value), "{pointer:?}");
        for wrong in [
            BlobPointer {
                offset: pointer.offset + 1,
                ..*pointer
            },
            BlobPointer {
                bytes: pointer.bytes + 1,
                ..*pointer
            },
            BlobPointer {
                file: pointer.file + 1,
                ..*pointer
            },
        ] {
            assert!(reader.read(&wrong, true).is_err(), "{wrong:?} leads to nothing");
            let _ = windows.get(&reader, &wrong, false);
        }
    }
    records.len()
}

/// Makes right what stands between arbitrary bytes and the parsers of records.
fn mend_file(bytes: &mut [u8]) {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_LEN).filter(|&at| at >= HEADER_LEN) else {
        return;
    };
    let (records, footer) = bytes.split_at_mut(footer_at);
    if let Some(footer) = footer.first_chunk_mut() {
        footer[..8].copy_from_slice(&FUZZ_IDS.0.to_le_bytes());
        footer[8..16].copy_from_slice(&FUZZ_IDS.1.to_le_bytes());
        footer[24..32].copy_from_slice(&((footer_at - HEADER_LEN) as u64).to_le_bytes());
        mend_footer(footer);
    }
    if let Some(header) = records.first_chunk_mut() {
        header[8..16].copy_from_slice(&FUZZ_IDS.0.to_le_bytes());
        header[16..24].copy_from_slice(&FUZZ_IDS.1.to_le_bytes());
        mend_header(header);
    }
    let mut at = HEADER_LEN;
    while let Some(header) = RecordHeader::decode(&records[at..]) {
        let end = (at as u64 + header.record_len()) as usize;
        let Some(record) = records.get_mut(at..end) else {
            return;
        };
        debug_assert!(record.len() >= RECORD_HEADER_LEN);
        seal_record(record, b"", FUZZ_IDS.1, at as u64);
        at = end;
    }
}

/// A file in memory.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl RandomFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let len = buf.len().min(self.0.len() - from);
        buf[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}
