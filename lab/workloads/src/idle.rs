//! Waiting until an engine's background work is done.

use std::time::{Duration, Instant};

use esker_lab_core::account::Account;
use esker_lab_core::engine::Database;
use esker_lab_core::{Error, Result, error::Kind};

use crate::Context;

const POLL: Duration = Duration::from_millis(50);

/// Quiet polls in a row that count as idle: an engine may pause between two jobs.
const QUIET_POLLS: u32 = 5;

/// Longer than any engine should need; a compaction that never ends must not hang the lab.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until the engine says that it is idle and the process stops writing. Returns when idleness began, so that
/// the polls that confirm it don't count.
pub(crate) fn wait(database: &dyn Database, context: &Context<'_>, phase: &str) -> Result<Instant> {
    let start = Instant::now();
    let mut idle_since = start;
    let mut quiet = 0;
    let mut written = Account::written();
    while quiet < QUIET_POLLS {
        if context.stopped() {
            return Err(Error::new(Kind::Stopped, format!("stopped while {phase}")));
        }
        if start.elapsed() > LONGEST {
            return Err(Error::engine(format!(
                "background work had not ended after an hour of {phase}"
            )));
        }
        std::thread::sleep(POLL);
        let now_written = Account::written();
        if database.is_idle()? && now_written == written {
            quiet += 1;
        } else {
            quiet = 0;
            idle_since = Instant::now();
            context.tell(phase, None, 0.0);
        }
        // Looked at again after telling, which may itself write (to a pipe).
        written = Account::written();
    }
    Ok(idle_since)
}
