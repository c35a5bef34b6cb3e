//! WRITE 3: the write-ahead log. What was appended here is there again after a crash.
//!
//! | file | what it is |
//! |---|---|
//! | `format` | every byte: segment header, fragments, checksums (specified in `docs/formats/wal.md`) |
//! | `writer` | [`WalWriter`]: frames records, one system call an append |
//! | `reader` | [`WalReader`]: gives the records back and says how the log ends |
//! | `source` | large reads under the reader |
//! | `tail` | [`WalTail`]: reads a segment that another process appends to |
//! | `recycle` | [`WalSegments`]: names, preallocation, reuse and removal of segment files |

mod format;
mod fuzz;
mod reader;
mod recycle;
mod source;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub use format::{
    BLOCK_BYTES, FORMAT_VERSION, FRAGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentId, segment_id,
};
pub use fuzz::fuzz_read;
pub use reader::{Ending, Record, Report, Skipped, WalReader};
pub use recycle::{Retired, SegmentSettings, WalHold, WalSegments, parse_segment_name, segment_name};
pub use tail::{Tailed, WalTail};
pub use writer::{Origin, WalWriter};
