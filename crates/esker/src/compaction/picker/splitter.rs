//! Where the output of a merge starts a new file.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::version::FileMeta;

/// An output file may overlap this many times its target size of the level below.
pub(super) const OVERLAP_FACTOR_MAX: u64 = 10;

/// Tells a merge when to start a new output file.
///
/// A file ends at the target size; earlier, past half of it, where a file of the next level ends, so that later
/// compactions of the two meet whole files (Pebble and RocksDB found 10 % less to write); and before it overlaps more
/// than ten times the target size of the next level, so that no later compaction is a long one.
///
/// Ask once for each user key and never between two versions of one: files must not share a user key.
#[derive(Debug)]
pub struct OutputSplitter<'a> {
    order: &'a KeyOrder,
    grandparents: &'a [Arc<FileMeta>],
    target_bytes: u64,
    /// The first grandparent that does not end before the last key seen.
    next: usize,
    /// Bytes of grandparents that the current file has passed or entered.
    overlap_bytes: u64,
    entered: bool,
}

impl<'a> OutputSplitter<'a> {
    /// For files of `target_bytes`, with the files below the output level in their order.
    pub fn new(order: &'a KeyOrder, grandparents: &'a [Arc<FileMeta>], target_bytes: u64) -> Self {
        Self {
            order,
            grandparents,
            target_bytes: target_bytes.max(1),
            next: 0,
            overlap_bytes: 0,
            entered: false,
        }
    }

    /// Whether `user_key` should be the first of a new file, when the current one has `current_bytes` so far. Keys
    /// come in ascending order. Amortised O(1): a comparison with the next boundary.
    #[inline]
    pub fn should_split_before(&mut self, user_key: &[u8], current_bytes: u64) -> bool {
        let crossed = self.advance(user_key);
        if current_bytes == 0 {
            self.restart();
            return false;
        }
        let split = current_bytes >= self.target_bytes
            || (crossed && current_bytes >= self.target_bytes / 2)
            || self.overlap_bytes > self.target_bytes.saturating_mul(OVERLAP_FACTOR_MAX);
        if split {
            self.restart();
        }
        split
    }

    /// Moves to the grandparent at or after `user_key`; whether one was left behind.
    #[inline]
    fn advance(&mut self, user_key: &[u8]) -> bool {
        let mut crossed = false;
        while let Some(file) = self.grandparents.get(self.next) {
            if !file.ends_before(self.order, user_key) {
                if !self.entered
                    && self.order.compare(file.smallest_user_key(), user_key) != Ordering::Greater
                {
                    self.entered = true;
                    self.overlap_bytes = self.overlap_bytes.saturating_add(file.size_bytes);
                }
                break;
            }
            if !self.entered {
                self.overlap_bytes = self.overlap_bytes.saturating_add(file.size_bytes);
            }
            (crossed, self.entered) = (true, false);
            self.next += 1;
        }
        crossed
    }

    /// A new file starts at the last key seen: it overlaps at most the grandparent that the key is in.
    fn restart(&mut self) {
        self.overlap_bytes = match self.grandparents.get(self.next) {
            Some(file) if self.entered => file.size_bytes,
            _ => 0,
        };
    }
}
