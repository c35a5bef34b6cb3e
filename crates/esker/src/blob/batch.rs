//! Values of several blob files, read together: what many keys wait for is one batch, not one value after another.
//!
//! Values that lie side by side in a file, or nearly, are one request ([`read_ranges`]). They are copied out of what
//! that brought, so that a value never keeps its neighbours alive.

use esker_env::{Fs, WantedRange, read_ranges};

use super::pointer::BlobPointer;
use super::reader::BlobReader;
use crate::cache::SharedBytes;
use crate::error::Result;

/// A value that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedValue<'r> {
    /// The open file.
    pub reader: &'r BlobReader,
    /// Where in it.
    pub pointer: &'r BlobPointer,
}

impl WantedValue<'_> {
    /// Where its record is stored, after its pointer was checked against the file.
    fn range(&self) -> Result<WantedRange<'_>> {
        Ok(WantedRange {
            file: self.reader.file(),
            number: self.reader.number(),
            offset: self.pointer.offset,
            len: self.reader.checked_len(self.pointer)?,
        })
    }
}

/// Reads values in the order in which they are given; neighbours are found if that is by file and offset. `verify` as in
/// [`BlobReader::read`].
///
/// # Errors
/// As [`BlobReader::read`], of the first value for which there is one.
pub fn read_values(fs: &dyn Fs, wanted: &[WantedValue<'_>], verify: bool) -> Result<Vec<SharedBytes>> {
    let ranges = wanted
        .iter()
        .map(WantedValue::range)
        .collect::<Result<Vec<_>>>()?;
    let read = read_ranges(fs, &ranges);
    let values = wanted.iter().zip(&ranges).zip(read);
    values
        .map(|((WantedValue { reader, pointer }, range), read)| {
            let read = read.map_err(|error| reader.unreadable(error, pointer.offset))?;
            reader.value(pointer, range.len, &read, verify)
        })
        .collect()
}
