//! Ends a test that hangs, with its name: a deadlock must be a failure, not a build that never ends.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How many times as long a test may take on a machine that does other things besides.
const PATIENCE: u32 = 5;

/// The longest that a hang may take to be noticed, unless a test asks for more.
const LONGEST: Duration = Duration::from_secs(1200);

/// Aborts the process unless it is dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

/// Watches the test `name` from now on. It has `limit` on a machine of its own, and more on a busy one, which can't be told from
/// this one.
pub fn watch(name: &str, limit: Duration) -> Watchdog {
    let (alive, dropped) = channel();
    let limit = limit.saturating_mul(PATIENCE).min(LONGEST.max(limit));
    let name = name.to_owned();
    let watch = move || {
        if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("watchdog: {name} hangs (no end after {limit:?})");
            std::process::abort();
        }
    };
    if let Err(error) = std::thread::Builder::new().name("watchdog".into()).spawn(watch) {
        panic!("can't start the watchdog: {error}");
    }
    Watchdog { _alive: alive }
}
