//! Which compactions run, and which families somebody has for himself.

use std::collections::BTreeMap;

use crate::compaction::picker::{PickerContext, Plan, RunningJob, merge_takes_memtable};
use crate::version::{Family, View};

/// Compactions that run, so that no two get in each other's way. Whoever holds it is the only one that picks.
#[derive(Default)]
pub(super) struct Running {
    jobs: BTreeMap<u32, Vec<RunningJob>>,
    /// Families that someone compacts by hand, and how many do: nothing is picked for them.
    reserved: BTreeMap<u32, usize>,
}

impl Running {
    /// What is to be known to plan for the family; by it no table is too old.
    pub fn context(&self, family: u32) -> PickerContext<'_> {
        PickerContext {
            running: self.jobs.get(&family).map_or(&[], Vec::as_slice),
            ..PickerContext::default()
        }
    }

    /// The same where tables may be too old, and readers may ask for a merge.
    pub fn context_at(&self, family: &Family, view: &View, now_unix_seconds: u64) -> PickerContext<'_> {
        let hidden = family.hidden.get();
        let memtable = view.active.table.entries();
        // What is flushed, or should be, is merged with the rest.
        let waits = hidden > 0
            && (!view.sealed.is_empty()
                || merge_takes_memtable(&view.version, &family.options(), memtable, hidden));
        PickerContext {
            now_unix_seconds,
            hidden_rows: if waits { 0 } else { hidden },
            ..self.context(family.id)
        }
    }

    /// Makes a plan known to the next one who picks. False if another job has one of its files.
    pub fn register(&mut self, family: u32, plan: &Plan) -> bool {
        let claimed = plan.claim();
        if claimed {
            self.jobs.entry(family).or_default().push(plan.running());
        }
        claimed
    }

    pub fn unregister(&mut self, family: u32, plan: &Plan) {
        plan.release();
        self.forget(family, &plan.running());
    }

    /// Keeps other jobs from writing into a stretch of a level.
    pub fn claim(&mut self, family: u32, claim: RunningJob) {
        self.jobs.entry(family).or_default().push(claim);
    }

    /// Undoes one [`claim`](Self::claim).
    pub fn unclaim(&mut self, family: u32, claim: &RunningJob) {
        self.forget(family, claim);
    }

    fn forget(&mut self, family: u32, job: &RunningJob) {
        if let Some(jobs) = self.jobs.get_mut(&family) {
            if let Some(at) = jobs.iter().position(|other| other == job) {
                jobs.swap_remove(at);
            }
            if jobs.is_empty() {
                self.jobs.remove(&family);
            }
        }
    }

    /// Nothing is picked for the family until it is [unreserved](Self::unreserve) as often.
    pub fn reserve(&mut self, family: u32) {
        *self.reserved.entry(family).or_default() += 1;
    }

    /// Whether nothing may be picked for the family.
    pub fn is_reserved(&self, family: u32) -> bool {
        self.reserved.contains_key(&family)
    }

    /// Undoes one [`reserve`](Self::reserve).
    pub fn unreserve(&mut self, family: u32) {
        if let Some(count) = self.reserved.get_mut(&family) {
            *count -= 1;
            if *count == 0 {
                self.reserved.remove(&family);
            }
        }
    }

    /// Plans that take from sorted levels.
    pub fn below_level0(&self) -> usize {
        self.jobs
            .values()
            .flatten()
            .filter(|job| job.level_in > 0)
            .count()
    }

    /// Whether nobody compacts by hand.
    pub fn is_unreserved(&self) -> bool {
        self.reserved.is_empty()
    }

    /// Plans that run, over all families.
    pub fn count(&self) -> usize {
        self.jobs.values().map(Vec::len).sum()
    }

    /// Whether nothing runs.
    pub fn is_quiet(&self) -> bool {
        self.jobs.is_empty()
    }
}
