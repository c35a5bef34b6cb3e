//! Single values of a damaged blob file: a record proves itself, whatever became of the file's ends.

use esker_env::RandomFile;

use super::format::{RECORD_HEADER_LEN, check_record};
use super::pointer::BlobPointer;
use crate::codec::decompress;
use crate::options::Compression;

/// The value that `pointer` points to in its file; `None` if no whole record is there.
pub fn salvage_value(file: &dyn RandomFile, pointer: &BlobPointer) -> Option<Vec<u8>> {
    let end = pointer.end()?;
    // Before anything is allocated for a length that is damaged.
    if file.len().ok()? < end {
        return None;
    }
    let mut record = vec![0; usize::try_from(pointer.bytes).ok()?];
    file.read_exact_at(pointer.offset, &mut record).ok()?;
    let stored = record.get(RECORD_HEADER_LEN..)?;
    match check_record(&record, true, pointer.file, pointer.offset).ok()? {
        Compression::None => Some(stored.to_vec()),
        kind => decompress(kind, stored).map(|value| value.to_vec()),
    }
}
