//! Waiting until an engine's background work is done.

use std::time::{Duration, Instant};

use esker_lab_core::account::Account;
use esker_lab_core::engine::Database;
use esker_lab_core::{Error, Result, error::Kind};

use crate::Context;

/// Quiet polls in a row that count as idle: an engine may pause between two jobs.
const QUIET_POLLS: u32 = 5;

/// Longer than any engine should need; a compaction that never ends must not hang the lab.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits until the engine says that it is idle and the process stops writing. Returns when idleness began, so that
/// the polls that confirm it don't count.
pub(crate) fn wait(
    database: &dyn Database,
    context: &Context<'_>,
    poll: Duration,
    phase: &str,
) -> Result<Instant> {
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
        std::thread::sleep(poll);
        // In this order: what is written while an engine that waits for the answer works counts as work.
        let idle = database.is_idle()?;
        if idle && Account::written() == written {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use esker_lab_core::engine::Session;

    /// Works off what it owes while it is asked, and is idle then.
    struct Owing {
        file: std::fs::File,
        jobs: Mutex<u32>,
        done: Mutex<Instant>,
    }

    impl Database for Owing {
        fn session(&self) -> Result<Box<dyn Session + '_>> {
            Err(Error::unsupported("nobody writes"))
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }

        fn compact_all(&self) -> Result<()> {
            Ok(())
        }

        fn is_idle(&self) -> Result<bool> {
            let mut jobs = self.jobs.lock().unwrap();
            for _ in 0..std::mem::take(&mut *jobs) {
                (&self.file).write_all(&[7; 1000]).unwrap();
                *self.done.lock().unwrap() = Instant::now();
            }
            Ok(true)
        }

        fn stats(&self) -> String {
            String::new()
        }

        fn applied(&self) -> Vec<(String, String)> {
            Vec::new()
        }

        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    /// If nothing was written between the start and the first question, all that was done while the answer was waited
    /// for did not count: an engine settled in no time.
    #[test]
    fn idleness_begins_after_what_was_done_while_waiting_for_the_answer() {
        let dir = tempfile::tempdir().unwrap();
        let database = Owing {
            file: std::fs::File::create(dir.path().join("file")).unwrap(),
            jobs: Mutex::new(100),
            done: Mutex::new(Instant::now()),
        };
        let context = Context {
            stop: &AtomicBool::new(false),
            tell: &|_| (),
            dir: dir.path().to_owned(),
            load_elsewhere: None,
            group: None,
        };
        let idle_at = wait(&database, &context, Duration::from_millis(1), "settling").unwrap();
        assert!(idle_at >= *database.done.lock().unwrap());
    }
}
