//! BACKGROUND: memtables that are flushed early, as what they hide costs readers more than a merge would (`version/hidden.rs`).

use std::sync::Arc;

use super::core::Core;
use crate::compaction::picker;
use crate::options::CompactionStyle;
use crate::version::Family;

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
            || !picker::merge_takes_memtable(&view.version, &options, active, hidden)
        {
            return false;
        }
        let running = self.running.lock();
        !running.is_reserved(family.id) && !running.context(family.id).level0_goes_down()
    }
}

#[cfg(test)]
mod tests {
    use esker_env::Env;

    use crate::background::{Lane, Work};
    use crate::db::Opener;
    use crate::options::Options;

    /// Level 0 went down without it, and all of it was merged once more behind the flush.
    #[test]
    fn level_0_waits_for_the_memtable_that_goes_with_it() {
        let opener = Opener::new(Options::default()).env(Env::simulated(1).0);
        let db = opener.open("/db").unwrap();
        let put = || {
            for i in 0..20_000_u32 {
                db.put(&i.to_be_bytes(), b"value").unwrap();
            }
        };
        put();
        db.compact_range(None, None).unwrap();
        db.pause_background_work();
        put();
        let core = db.core();
        let family = core.family(0).unwrap();
        core.with_token(|token| core.seal(token, &family)).unwrap();
        while core.run_one(Lane::Flush) {}
        put();
        assert!(!core.run_one(Lane::Compaction), "nobody has read it");
        family.hidden.add(1 << 20);
        core.with_token(|_| assert!(!core.run_one(Lane::Compaction), "a group is committed"));
        assert_eq!(family.view().version.level(0).len(), 1);
        assert!(core.run_one(Lane::Compaction), "the memtable is sealed");
        assert!(!core.run_one(Lane::Compaction), "it is to be flushed first");
        while core.run_one(Lane::Flush) {}
        assert_eq!(family.view().version.level(0).len(), 2);
        assert!(core.run_one(Lane::Compaction), "both go down");
        assert_eq!(family.view().version.level(0).len(), 0);
        assert_eq!(core.metrics.compactions_for_hidden_rows.get(), 1);
        assert!(!core.run_one(Lane::Compaction));
        db.resume_background_work();
        db.close().unwrap();
    }
}
