//! BACKGROUND: memtables that are flushed early, as what they hide costs readers more than a merge would (`version/hidden.rs`).

use std::sync::Arc;

use super::core::Core;
use crate::compaction::picker;
use crate::options::CompactionStyle;
use crate::version::Family;

/// The active memtable goes with level 0 if it has this part of the rows of both, one in so many.
const ACTIVE_PART: u64 = 4;

impl Core {
    /// Seals one family's memtable, if a merge with it pays. Not while a group is committed or the token is taken for something else,
    /// as its holder may wait for background work: then at the next look.
    pub(super) fn seal_hiding(&self) -> bool {
        let families = self.families.load_full();
        let Some(family) = families
            .by_id
            .values()
            .find(|family| self.hides_in_memtable(family))
        else {
            return false;
        };
        if self.health.check_writable().is_err() {
            return false;
        }
        let sealed = self.pipeline.try_exclusive(|token| {
            if token.wal_broken || family.dropped() {
                return false;
            }
            self.seal(token, family)
                .inspect_err(|error| tracing::warn!(%error, family = %family.name, "can't seal a memtable for its readers"))
                .is_ok()
        });
        sealed == Some(true)
    }

    fn hides_in_memtable(&self, family: &Arc<Family>) -> bool {
        let hidden = family.hidden.get();
        if hidden == 0 || family.dropped() {
            return false;
        }
        let (view, options) = (family.view(), family.options());
        let active = view.active.table.entries();
        let level0 = picker::rows_of_level(&view.version, 0);
        if active == 0 && level0 == 0 && view.sealed.is_empty() {
            // What they came to lies deeper: its levels' sizes are what brings it together.
            family.hidden.forget();
            return false;
        }
        if options.compaction_style == CompactionStyle::Manual
            || !view.sealed.is_empty()
            || active.saturating_mul(ACTIVE_PART) < active.saturating_add(level0)
            || !picker::merge_pays(&view.version, &options, active, hidden)
        {
            return false;
        }
        let running = self.running.lock();
        !running.is_reserved(family.id) && !running.context(family.id).level0_goes_down()
    }
}
