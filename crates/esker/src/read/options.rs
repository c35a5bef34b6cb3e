//! Settings of a read.

use crate::key::KeyOrder;
use crate::snapshot::Snapshot;

/// Settings of a read. Bounds are user keys.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// What the read sees; `None`: all that was written before it started.
    pub snapshot: Option<Snapshot>,
    /// First key an iterator may give.
    pub lower_bound: Option<Vec<u8>>,
    /// First key past the end of an iterator.
    pub upper_bound: Option<Vec<u8>>,
    /// Whether checksums of blocks are verified. Default: true.
    pub verify_checksums: bool,
    /// Whether blocks that are read enter the block cache. Default: true.
    pub fill_cache: bool,
    /// An iterator stays within the prefix of the key it was last positioned to (for the ends: of the row found), as
    /// the family's `prefix_extractor` gives it; a key without one restricts nothing. Tables whose bounds or filter tell
    /// that they have no key of the prefix are not read, if keys are in the order of bytes. Default: false.
    pub prefix_same: bool,
    /// Bytes to read ahead when scanning; 0: grows by itself. Default: 0.
    pub readahead_bytes: usize,
}

impl ReadOptions {
    /// The bounds of an iterator that is made with these options and then narrowed: the higher lower bound, the lower upper one.
    pub fn narrowed<'a>(
        &'a self,
        order: &KeyOrder,
        lower: Option<&'a [u8]>,
        upper: Option<&'a [u8]>,
    ) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        let own = (self.lower_bound.as_deref(), self.upper_bound.as_deref());
        (
            tighter(own.0, lower, |own, other| order.compare(own, other).is_ge()),
            tighter(own.1, upper, |own, other| order.compare(own, other).is_le()),
        )
    }
}

fn tighter<'a>(
    own: Option<&'a [u8]>,
    other: Option<&'a [u8]>,
    is_own: impl Fn(&[u8], &[u8]) -> bool,
) -> Option<&'a [u8]> {
    match (own, other) {
        (Some(own), Some(other)) => Some(if is_own(own, other) { own } else { other }),
        (own, other) => own.or(other),
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            snapshot: None,
            lower_bound: None,
            upper_bound: None,
            verify_checksums: true,
            fill_cache: true,
            prefix_same: false,
            readahead_bytes: 0,
        }
    }
}
