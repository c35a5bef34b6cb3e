//! Single deletes: gone together with the Put that they meet.

use super::{CompactionRows, Neighbour, Verdict, misplaced_range_delete};
use crate::error::Result;
use crate::key::{Cursor, Sequence, ValueKind};

impl<C: Cursor, B: FnMut(&[u8]) -> bool> CompactionRows<'_, C, B> {
    /// The input stands on a single delete that no newer version hides, or only a Put. Looks at the next older
    /// version, and leaves the input there.
    pub(super) fn take_single_delete(&mut self, sequence: Sequence, cover: Sequence) -> Result<bool> {
        if let Neighbour::Version(older, kind) = self.next_in_stripe()?
            && older >= cover
        {
            match kind {
                ValueKind::Put | ValueKind::BlobPointer => {
                    self.used = true;
                    self.dropped.annihilated += 2;
                    if self.verdict != Verdict::HiddenByPut {
                        self.verdict = Verdict::Annihilated;
                    }
                    return Ok(false);
                }
                // Two in a row: the older one says it all.
                ValueKind::SingleDelete => {
                    self.dropped.hidden += 1;
                    return Ok(false);
                }
                ValueKind::Delete if self.verdict != Verdict::HiddenByPut => {
                    self.dropped.hidden += 1;
                    return Ok(false);
                }
                // Not a legal use: what hides all of the key's history is safest.
                ValueKind::Delete | ValueKind::Merge => self.set_trailer(sequence, ValueKind::Delete),
                ValueKind::RangeDelete => return Err(misplaced_range_delete()),
            }
        }
        if self.verdict != Verdict::HiddenByPut {
            self.verdict = Verdict::Hidden;
        }
        Ok(self.give_tombstone())
    }
}
