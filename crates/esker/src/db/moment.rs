//! What readers of a follower see: all families together, as of one moment.
//!
//! Where a process writes, a reader pins a view of its family and the published number after it, and snapshots keep compactions
//! from what they see. A follower gets tables from compactions that know nothing of its snapshots, and its views of several
//! families change when it catches up. So its readers take number and views from one place, and a snapshot keeps that place.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Sequence;
use crate::read::ReadOptions;
use crate::snapshot::Snapshot;
use crate::version::{Family, View};

/// One moment of the database.
#[derive(Debug, Default)]
pub(super) struct Moment {
    /// Everything up to this one is seen.
    pub sequence: Sequence,
    /// The families that there were, by id.
    pub views: BTreeMap<u32, Arc<View>>,
}

/// The moment of now.
pub(super) type Moments = ArcSwap<Moment>;

impl Moment {
    fn view(&self, family: &Family) -> Option<Arc<View>> {
        self.views.get(&family.id).cloned()
    }
}

impl Core {
    /// Pins the database as it is now.
    pub fn snapshot(&self) -> Snapshot {
        match &self.moments {
            None => self.snapshots.acquire(|| self.visible()),
            Some(moments) => {
                let moment = moments.load_full();
                self.snapshots.acquire_keeping(moment.sequence, moment)
            }
        }
    }

    /// What a read of a follower sees.
    pub fn pin_moment(
        &self,
        moments: &Moments,
        family: &Family,
        options: &ReadOptions,
    ) -> Result<(Arc<View>, Sequence)> {
        if let Some(snapshot) = &options.snapshot {
            let sequence = self.sequence_of(snapshot)?;
            return Ok((self.view_in(moments, family, snapshot)?, sequence));
        }
        let moment = moments.load();
        // A family that was dropped can be read as it was last seen.
        let view = moment.view(family).unwrap_or_else(|| family.view_owned());
        Ok((view, moment.sequence))
    }

    /// A family as a snapshot of a follower sees it.
    ///
    /// # Errors
    /// `NotFound` if the snapshot is older than the family.
    pub fn view_in(&self, moments: &Moments, family: &Family, snapshot: &Snapshot) -> Result<Arc<View>> {
        let moment = snapshot.kept::<Moment>().unwrap_or_else(|| moments.load_full());
        if let Some(view) = moment.view(family) {
            return Ok(view);
        }
        if family.dropped() {
            return Ok(family.view_owned());
        }
        Err(Error::new(
            ErrorKind::NotFound,
            "the column family is younger than the snapshot",
        )
        .in_column_family(&family.name))
    }

    /// What compares versions of rows needs a snapshot that the compactions respect.
    pub fn check_not_following(&self) -> Result<()> {
        match self.moments {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "a follower can't tell what changed since a snapshot: ask the process that writes",
            )),
        }
    }
}
