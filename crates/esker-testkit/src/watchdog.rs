//! Ends a test that hangs, with its name: a deadlock must be a failure, not a build that never ends.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Aborts the process unless it is dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

/// Watches the test `name` from now on.
pub fn watch(name: &str, limit: Duration) -> Watchdog {
    let (alive, dropped) = channel();
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
