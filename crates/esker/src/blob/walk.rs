//! Reads a blob file from front to end on its own, without the pointers of a tree, and checks all of it.

use super::format::{HEADER_LEN, RECORD_HEADER_LEN, RecordHeader};
use super::pointer::BlobPointer;
use super::reader::BlobReader;
use super::window::Window;
use crate::codec::decompress_into;
use crate::error::Result;
use crate::options::Compression;

/// Bytes of one read.
const CHUNK_BYTES: usize = 1 << 20;

impl BlobReader {
    /// Gives every record's pointer and value to `visit`, in order, by reads of 1 MiB. Checks every checksum, that records
    /// lie without gaps, and what the footer counts. O(file); memory for two of the largest record.
    ///
    /// # Errors
    /// The first damage, with the offset of its record; what the file says; and what `visit` says.
    pub fn walk(&self, mut visit: impl FnMut(&BlobPointer, &[u8]) -> Result<()>) -> Result<()> {
        let mut window = Window::default();
        let mut raw = Vec::new();
        let (mut records, mut raw_bytes) = (0_u64, 0_u64);
        let mut offset = HEADER_LEN as u64;
        while offset < self.records_end() {
            let head = self.walked(&mut window, offset, RECORD_HEADER_LEN as u64)?;
            let len = RecordHeader::decode(head).map_or(0, |header| header.record_len());
            let record = self.walked(&mut window, offset, len)?;
            let stored = &record[RECORD_HEADER_LEN..];
            let value = match self.check(offset, record, true)? {
                Compression::None => stored,
                kind => {
                    decompress_into(kind, stored, &mut raw).ok_or_else(|| self.undecodable(offset))?;
                    &raw
                }
            };
            let pointer = BlobPointer {
                file: self.number(),
                offset,
                bytes: len,
            };
            visit(&pointer, value)?;
            records += 1;
            raw_bytes += value.len() as u64;
            offset += len;
        }
        let footer = self.footer();
        if (records, raw_bytes) != (footer.records, footer.raw_bytes) {
            return Err(self.corrupt(offset, "the blob file's footer does not count what is there"));
        }
        Ok(())
    }

    /// `len` bytes from `offset` on, which must lie in front of the footer.
    fn walked<'a>(&self, window: &'a mut Window, offset: u64, len: u64) -> Result<&'a [u8]> {
        let end = offset.saturating_add(len);
        if end > self.records_end() {
            return Err(self.corrupt(offset, "a blob record reaches beyond the last"));
        }
        if !window.holds(offset, end) {
            window.fill(self, offset, end.max(offset.saturating_add(CHUNK_BYTES as u64)))?;
        }
        window
            .get(offset, end)
            .ok_or_else(|| self.corrupt(offset, "blob record is cut short"))
    }
}
