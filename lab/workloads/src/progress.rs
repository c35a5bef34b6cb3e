//! The connection between a running workload and whoever watches it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// How far a workload is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// `loading`, `measuring`, `settling`, …
    pub phase: String,
    /// Share of the phase that is done, 0 to 1; `None` when nobody can know.
    pub share: Option<f64>,
    /// Operations a second of late.
    pub ops_per_s: f64,
}

/// What a workload is told besides its specification.
pub struct Context<'a> {
    /// Set when the user wants to stop; what was measured so far is returned.
    pub stop: &'a AtomicBool,
    /// Told about progress, at most some times a second.
    pub tell: &'a (dyn Fn(Progress) + Sync),
    /// Folder to make the database in; it exists and is empty.
    pub dir: PathBuf,
    /// The control group that limits this process, to read its peak from.
    pub group: Option<PathBuf>,
}

impl Context<'_> {
    /// Whether the user wants to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, phase: &str, share: Option<f64>, ops_per_s: f64) {
        (self.tell)(Progress {
            phase: phase.to_owned(),
            share,
            ops_per_s,
        });
    }
}
