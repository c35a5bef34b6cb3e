//! Blob files: large values outside the tree, written once in key order; the tree holds pointers to them.
//!
//! `docs/formats/blob.md` specifies every byte. A flush hands values to a [`BlobWriter`] in key order and stores what it
//! answers, a [`BlobPointer`], in their place; compactions then move some twenty bytes instead of the value.
//! Because each file is in key order, whoever goes through keys in order reads each file from front to end, though
//! with gaps, where values are dead, and with several files in turn: [`BlobWindows`] makes large reads of that.
//!
//! | file | what it does |
//! |---|---|
//! | `pointer` | [`BlobPointer`]: where a value is |
//! | `format` | header, footer and records |
//! | `writer` | [`BlobWriter`] |
//! | `reader` | [`BlobReader`]: opens a file, reads single values |
//! | `batch` | [`read_values`], [`read_records`]: many at once |
//! | `walk` | reads and checks a whole file |
//! | `salvage` | single values of a damaged file |
//! | `windows`, `window` | [`BlobWindows`]: reads values of many files in key order |

mod batch;
mod format;
mod fuzz;
mod pointer;
mod reader;
mod salvage;
mod walk;
mod window;
mod windows;
mod writer;

pub use batch::{WantedValue, read_records, read_values};
pub use format::{BlobFooter, FOOTER_LEN, FORMAT_VERSION, HEADER_LEN, RECORD_HEADER_LEN, check_header};
pub use fuzz::{FUZZ_IDS, fuzz_file, fuzz_pointer};
pub use pointer::{BlobPointer, POINTER_LEN_MAX};
pub use reader::BlobReader;
pub use salvage::salvage_value;
pub use windows::{BlobWindows, GAP_BYTES_MAX, WindowOptions, WindowReads};
pub use writer::{BlobSummary, BlobWriter};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
