//! What readers of a family pay for versions that nobody has merged yet.
//!
//! An iterator that comes to a row which it does not show has made a step for nothing, and the next scan makes it again. A merge of
//! those rows costs more, but once. So the steps are counted, and when they have cost about as much as the merge would, it is made
//! (`compaction/picker/hidden.rs`): whatever is read afterwards, no more than twice what had to be spent was spent.

use crate::sync::{AtomicU64, Ordering};

/// Steps after which somebody should look whether a merge pays.
const LOOK_EVERY: u64 = 1 << 16;

/// The steps of all iterators over a family since its level 0 was last merged down. A guide only: no order with anything else.
#[derive(Debug, Default)]
pub struct HiddenRows(AtomicU64);

impl HiddenRows {
    /// Adds steps. Whether it is time to look.
    pub fn add(&self, steps: u64) -> bool {
        let before = self.0.fetch_add(steps, Ordering::Relaxed);
        before / LOOK_EVERY != before.wrapping_add(steps) / LOOK_EVERY
    }

    /// Steps so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What was stepped over has been merged.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_time_to_look_once_in_so_many_steps() {
        let hidden = HiddenRows::default();
        assert!(!hidden.add(LOOK_EVERY - 1));
        assert!(hidden.add(1));
        assert!(!hidden.add(LOOK_EVERY - 1));
        assert!(hidden.add(5 * LOOK_EVERY));
        assert_eq!(hidden.get(), 7 * LOOK_EVERY - 1);
        hidden.forget();
        assert_eq!(hidden.get(), 0);
        assert!(!hidden.add(2));
    }
}
