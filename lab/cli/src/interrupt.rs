//! Ctrl-C: the first one ends the run in order and keeps what was measured, the second one ends it at once.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// The user wants to stop.
pub static STOP: AtomicBool = AtomicBool::new(false);

static PRESSED: AtomicU32 = AtomicU32::new(0);
static CHILD: AtomicI32 = AtomicI32::new(0);

fn signal_child(signal: Signal) {
    if let Some(pid) = Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
        let _ = kill_process(pid, signal);
    }
}

/// In the process that the user started: asks the worker to stop, then kills it.
pub fn in_parent() {
    let _ = ctrlc::set_handler(|| {
        STOP.store(true, Ordering::SeqCst);
        if PRESSED.fetch_add(1, Ordering::SeqCst) == 0 {
            eprintln!("\nesker-lab: stopping; what was measured is kept (again to stop at once)");
            signal_child(Signal::INT);
        } else {
            signal_child(Signal::KILL);
        }
    });
}

/// In a worker: a flag, which the workload looks at.
pub fn in_worker() {
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::SeqCst));
}

/// The user wants to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// The worker that signals go to; 0 for none.
pub fn set_child(pid: u32) {
    CHILD.store(pid as i32, Ordering::SeqCst);
    if pid != 0 && stopped() {
        signal_child(Signal::INT);
    }
}
