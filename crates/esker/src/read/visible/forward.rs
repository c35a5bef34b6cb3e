//! Going forward: the first visible version of a key is its newest.

use super::{COVERED_MAX, HIDDEN_MAX, State, VisibleCursor, misplaced_range_delete, row, save};
use crate::cache::SharedBytes;
use crate::error::Result;
use crate::key::{Cursor, Sequence, ValueKind};
use crate::read::key_ends::KeyEnds;
use crate::read::merging::{Cover, SourceCursor};
use crate::read::operands::Found;

impl<C: SourceCursor> VisibleCursor<C> {
    /// Shows the first visible row from where the cursor below stands. While `skip`, rows of `saved` are hidden.
    pub(super) fn find_forward(&mut self, mut skip: bool) -> Result<()> {
        let mut hidden = 0;
        while self.inner.valid() {
            let row = row(&self.inner)?;
            if skip && self.is_saved(row.user_key) {
                hidden += 1;
                self.hidden += 1;
                if hidden > HIDDEN_MAX {
                    // The target is the very last version there can be, so this can't stand still twice.
                    hidden = 0;
                    self.target_saved(0, ValueKind::Delete);
                    self.inner.seek(&self.target)?;
                } else {
                    self.inner.next()?;
                }
                continue;
            }
            if self.is_past_upper(row.user_key) || self.is_outside_prefix(row.user_key) {
                return Ok(());
            }
            if row.sequence > self.view.sequence {
                save!(self, row.user_key);
                skip = false;
                self.leave_newer()?;
                continue;
            }
            let cover = self.tombstones.max_covering_near(
                &self.view.order,
                &mut self.finger,
                row.user_key,
                self.view.sequence,
            );
            if row.sequence < cover {
                save!(self, row.user_key);
                (skip, hidden) = (true, 0);
                self.leave_covered()?;
                continue;
            }
            match row.kind {
                ValueKind::Put | ValueKind::BlobPointer => {
                    self.kind = row.kind;
                    self.state = State::Row;
                    return Ok(());
                }
                ValueKind::Delete | ValueKind::SingleDelete => {
                    self.hidden += 1;
                    save!(self, row.user_key);
                    (skip, hidden) = (true, 0);
                    self.inner.next()?;
                }
                ValueKind::Merge => {
                    save!(self, row.user_key);
                    self.fold_forward(cover)?;
                    self.state = State::Folded;
                    return Ok(());
                }
                ValueKind::RangeDelete => return Err(misplaced_range_delete()),
            }
        }
        Ok(())
    }

    /// Leaves the versions of `saved` that are newer than the view.
    fn leave_newer(&mut self) -> Result<()> {
        for _ in 0..HIDDEN_MAX {
            self.inner.next()?;
            if !self.inner.valid() {
                return Ok(());
            }
            let row = row(&self.inner)?;
            if !self.is_saved(row.user_key) || row.sequence <= self.view.sequence {
                return Ok(());
            }
        }
        self.target_saved(self.view.sequence, ValueKind::SEEK);
        self.inner.seek(&self.target)
    }

    /// Leaves a covered row; now and then, what is covered behind it as well.
    fn leave_covered(&mut self) -> Result<()> {
        self.covered += 1;
        self.hidden += 1;
        if self.covered >= COVERED_MAX {
            self.covered = 0;
            let cover = Cover {
                order: &self.view.order,
                tombstones: &self.tombstones,
                sequence: self.view.sequence,
            };
            if self.inner.skip_covered(&cover)? {
                return Ok(());
            }
        }
        self.inner.next()
    }

    /// Folds the operands of `saved`, of which the cursor below stands on the newest visible one, into `buffer`.
    /// Leaves the cursor on the base, or behind the last operand if there is none. `cover` is the sequence of the
    /// tombstone over the key.
    pub(super) fn fold_forward(&mut self, cover: Sequence) -> Result<()> {
        self.kind = ValueKind::Put;
        self.operands.clear();
        let mut base = None;
        while self.inner.valid() {
            let row = row(&self.inner)?;
            if !self.is_saved(row.user_key) || row.sequence < cover {
                break;
            }
            match row.kind {
                ValueKind::Merge => {
                    self.operands.push(self.inner.value());
                    self.inner.next()?;
                }
                ValueKind::Put => {
                    base = Some(SharedBytes::from(self.inner.value()));
                    break;
                }
                ValueKind::BlobPointer => {
                    base = Some(self.fetch(self.inner.value())?);
                    break;
                }
                ValueKind::Delete | ValueKind::SingleDelete => break,
                ValueKind::RangeDelete => return Err(misplaced_range_delete()),
            }
        }
        let operator = self.view.merge_operator.as_deref();
        self.buffer = self
            .operands
            .fold(operator, &self.saved, base.as_deref(), Found::NewestFirst)?;
        Ok(())
    }

    /// From `Back`: puts the cursor below behind the rows of `saved`. Not by a step: on the way back sources may have
    /// skipped covered rows, and a memtable may have got new rows since, either of which would lie between the row
    /// below and `saved`.
    pub(super) fn turn_forward(&mut self) -> Result<()> {
        self.target_saved(0, ValueKind::Delete);
        self.inner.seek(&self.target)
    }
}
