//! Values of several blob files, read together: what many keys wait for is one batch, not one value after another.
//!
//! Values that lie side by side in a file, or nearly, are one request ([`read_ranges`]). They are copied out of what
//! that brought, so that a value never keeps its neighbours alive.

use esker_env::{Fs, IoPriority, ReadRange, WantedRange, read_ranges};

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

impl<'r> WantedValue<'r> {
    /// Where its record is stored, after its pointer was checked against the file.
    fn range(&self) -> Result<WantedRange<'r>> {
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
    let ranges = ranges(wanted)?;
    let read = read_ranges(fs, &ranges, IoPriority::Foreground);
    let values = wanted.iter().zip(&ranges).zip(read);
    values
        .map(|((WantedValue { reader, pointer }, range), read)| {
            let read = read.map_err(|error| reader.unreadable(error, pointer.offset))?;
            reader.value(pointer, range.len, &read, verify)
        })
        .collect()
}

/// Reads whole records, as they are stored and unchecked, for somebody who copies them in the background: more bytes between
/// them are read along. Their order is as for [`read_values`].
///
/// # Errors
/// As [`BlobReader::read`], of the first record that can't be read.
pub fn read_records(fs: &dyn Fs, wanted: &[WantedValue<'_>]) -> Result<Vec<ReadRange>> {
    let read = read_ranges(fs, &ranges(wanted)?, IoPriority::Background);
    let records = wanted.iter().zip(read);
    records
        .map(|(wanted, read)| read.map_err(|error| wanted.reader.unreadable(error, wanted.pointer.offset)))
        .collect()
}

fn ranges<'r>(wanted: &[WantedValue<'r>]) -> Result<Vec<WantedRange<'r>>> {
    wanted.iter().map(WantedValue::range).collect()
}
