//! What the drop rules need to know about a job.

use std::sync::Arc;

use super::filter::RowFilter;
use crate::error::Result;
use crate::key::{FragmentedTombstones, KeyOrder, Sequence, key_head};
use crate::merge::MergeOperator;

/// Reads the value behind a pointer into a blob file.
pub type Fetch<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<u8>> + Send + 'a>;

/// What the drop rules need to know about the job.
#[derive(Default)]
pub struct Rules<'a> {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The live snapshots, ascending.
    pub snapshots: Vec<Sequence>,
    /// Nothing older than the input exists for any key of its range.
    pub bottommost: bool,
    /// The range tombstones of all inputs.
    pub tombstones: Arc<FragmentedTombstones>,
    /// The user key at which to stop (exclusive).
    pub end: Option<Vec<u8>>,
    /// Folds operands; without one they are kept as they are.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Asked about each Put, and folded merge, that no snapshot sees.
    pub filter: Option<RowFilter>,
    /// Rows keep their numbers where they could get the number 0: the age of a row is told by its number.
    pub keep_sequences: bool,
    /// Values behind pointers, for folds and the filter; `None` where the input has no pointers.
    pub fetch: Option<Fetch<'a>>,
}

impl Rules<'_> {
    /// The stripe of `sequence`.
    #[inline]
    pub(super) fn stripe(&self, sequence: Sequence) -> usize {
        stripe_of(&self.snapshots, sequence)
    }

    /// Whether the job ends before `user_key`; `end_head` is the `key_head` of its end.
    #[inline]
    pub(super) fn is_past_end(&self, end_head: u64, user_key: &[u8]) -> bool {
        let Some(end) = &self.end else {
            return false;
        };
        if self.order.is_bytewise() {
            let head = key_head(user_key);
            if head != end_head {
                return head > end_head;
            }
        }
        self.order.compare(user_key, end).is_ge()
    }
}

/// The number of snapshots that don't see `sequence`.
#[inline]
pub(super) fn stripe_of(snapshots: &[Sequence], sequence: Sequence) -> usize {
    match snapshots {
        [] => 0,
        [.., last] if sequence > *last => snapshots.len(),
        _ => snapshots.partition_point(|&snapshot| snapshot < sequence),
    }
}
