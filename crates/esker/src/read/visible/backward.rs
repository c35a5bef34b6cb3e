//! Going backward: the versions of a key come oldest first, so the verdict stands when the key changes.

use super::{COVERED_MAX, HIDDEN_MAX, State, VisibleCursor, misplaced_range_delete, row, save};
use crate::error::Result;
use crate::key::{Cursor, SEQUENCE_MAX, Sequence, ValueKind};
use crate::read::key_ends::KeyEnds;
use crate::read::merging::{Cover, SourceCursor};
use crate::read::operands::Found;

impl<C: SourceCursor> VisibleCursor<C> {
    /// Shows the last visible row from where the cursor below stands, which travels backward.
    pub(super) fn find_backward(&mut self) -> Result<()> {
        while self.inner.valid() {
            let row = row(&self.inner)?;
            if self.is_below_lower(row.user_key) || self.is_outside_prefix(row.user_key) {
                return Ok(());
            }
            save!(self, row.user_key);
            let cover = self.tombstones.max_covering_near(
                &self.view.order,
                &mut self.finger,
                &self.saved,
                self.view.sequence,
            );
            if self.gather_saved(cover)? {
                // One of those that were counted is shown.
                self.hidden = self.hidden.saturating_sub(1);
                self.state = State::Back;
                return Ok(());
            }
            if self.covered >= COVERED_MAX && self.inner.valid() {
                self.covered = 0;
                let cover = Cover {
                    order: &self.view.order,
                    tombstones: &self.tombstones,
                    sequence: self.view.sequence,
                };
                self.inner.skip_covered(&cover)?;
            }
        }
        Ok(())
    }

    /// Walks over the versions of `saved`, from the oldest, and leaves the cursor below before them. Answers whether
    /// the key is there; if so its value is in `buffer`.
    fn gather_saved(&mut self, cover: Sequence) -> Result<bool> {
        let mut based = false;
        let mut steps = 0;
        self.operands.clear();
        while self.inner.valid() {
            let row = row(&self.inner)?;
            if !self.is_saved(row.user_key) {
                break;
            }
            if steps == HIDDEN_MAX {
                return self.gather_by_seek(cover);
            }
            steps += 1;
            self.hidden += 1;
            if row.sequence > self.view.sequence {
                // Newer than the view, as are all that follow.
            } else if row.sequence < cover {
                self.covered += 1;
            } else {
                match row.kind {
                    ValueKind::Put | ValueKind::BlobPointer => {
                        self.buffer.clear();
                        self.buffer.extend_from_slice(self.inner.value());
                        self.kind = row.kind;
                        self.operands.clear();
                        based = true;
                    }
                    ValueKind::Delete | ValueKind::SingleDelete => {
                        self.operands.clear();
                        based = false;
                    }
                    ValueKind::Merge => self.operands.push(self.inner.value()),
                    ValueKind::RangeDelete => return Err(misplaced_range_delete()),
                }
            }
            self.inner.prev()?;
        }
        if self.operands.is_empty() {
            return Ok(based);
        }
        let fetched = match self.kind {
            ValueKind::BlobPointer if based => Some(self.fetch(&self.buffer)?),
            _ => None,
        };
        self.kind = ValueKind::Put;
        let operator = self.view.merge_operator.as_deref();
        let base = based.then(|| fetched.as_deref().unwrap_or(&self.buffer));
        self.buffer = self
            .operands
            .fold(operator, &self.saved, base, Found::OldestFirst)?;
        Ok(true)
    }

    /// [`gather_saved`](Self::gather_saved) for a key with many versions: looks at the newest visible one directly.
    fn gather_by_seek(&mut self, cover: Sequence) -> Result<bool> {
        self.target_saved(self.view.sequence, ValueKind::SEEK);
        self.inner.seek(&self.target)?;
        let mut found = false;
        if self.inner.valid() {
            let row = row(&self.inner)?;
            if self.is_saved(row.user_key) && row.sequence >= cover {
                match row.kind {
                    ValueKind::Put | ValueKind::BlobPointer => {
                        self.buffer.clear();
                        self.buffer.extend_from_slice(self.inner.value());
                        self.kind = row.kind;
                        found = true;
                    }
                    ValueKind::Delete | ValueKind::SingleDelete => {}
                    ValueKind::Merge => {
                        self.fold_forward(cover)?;
                        found = true;
                    }
                    ValueKind::RangeDelete => return Err(misplaced_range_delete()),
                }
            }
        }
        self.seek_before_saved()?;
        Ok(found)
    }

    /// Puts the cursor below on the last row before those of `saved`, travelling backward.
    pub(super) fn seek_before_saved(&mut self) -> Result<()> {
        self.target_saved(SEQUENCE_MAX, ValueKind::SEEK);
        self.inner.seek_for_prev(&self.target)
    }

    /// The cursor below has made a step backward from a row of `saved`: leaves the newer versions as well.
    pub(super) fn leave_saved_backward(&mut self) -> Result<()> {
        for _ in 0..HIDDEN_MAX {
            if !self.inner.valid() || !self.is_saved(row(&self.inner)?.user_key) {
                return Ok(());
            }
            self.inner.prev()?;
        }
        self.seek_before_saved()
    }
}
