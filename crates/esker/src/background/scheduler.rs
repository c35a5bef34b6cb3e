//! The scheduler: a fixed set of threads, one of which only flushes, so that a flush never waits for a compaction.
//!
//! Each thread asks the [`Work`] for a job of its lane and runs it; where there is none it sleeps until
//! [`wake`](Scheduler::wake). A wake-up is never lost: the generation counter is read before the thread asks, and
//! compared under the lock before it sleeps.
//!
//! Invariants:
//! 1. A job begins, and ends, in the list `running`, which it enters in the critical section that finds that nothing holds the
//!    lane back. So who has raised a reason to hold it back under the lock (a pause, the end of the last requested flush) and then
//!    seen `running` empty knows that none runs, nor begins, until the reason is gone.
//! 2. Of a scheduler that is off no job begins before [`turn_on`](Scheduler::turn_on) or [`drain`](Scheduler::drain) but flushes,
//!    and those while somebody [requests](Scheduler::request_flush) one. `is_off` is false from then on, and never true again.
//! 3. What takes a reason away raises the generation under the lock, as work that is announced does. So no thread sleeps on beside
//!    work that it may do, also one that waits for the time that [`Work::next_due`] gave: it asks anew if the generation
//!    is not the one of before it asked.

use std::sync::Arc;
use std::time::Duration;

use esker_env::{Env, JoinHandle};

use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Memtables to SSTables.
    Flush,
    /// SSTables to SSTables.
    Compaction,
}

/// Where jobs come from. Jobs report their own errors; the scheduler only runs them.
pub trait Work: Send + Sync + 'static {
    /// Runs one job of this lane, if there is one. False: there was nothing to do.
    fn run_one(&self, lane: Lane) -> bool;

    /// When there may be work of this lane, of which no [`wake`](Scheduler::wake) tells; `None`: not by itself.
    fn next_due(&self, lane: Lane) -> Option<Duration> {
        let _ = lane;
        None
    }
}

#[derive(Default)]
struct State {
    generation: u64,
    stopping: bool,
    pauses: usize,
    /// Jobs don't run by themselves until [`Scheduler::turn_on`].
    off: bool,
    /// The database closes: what has to be flushed is, paused or not.
    draining: bool,
    /// Callers that wait for a flush they asked for: flushes run, paused or not.
    flush_requests: usize,
    /// Jobs so far; each has the number that it began with.
    begun: u64,
    running: Vec<u64>,
}

impl State {
    fn paused(&self) -> bool {
        (self.off || self.pauses > 0) && !self.draining
    }

    fn holds_back(&self, lane: Lane) -> bool {
        self.paused() && !(lane == Lane::Flush && self.flush_requests > 0)
    }
}

struct Shared {
    state: Mutex<State>,
    /// Whether the state is off and not draining, for writers, who ask often. Changed under the lock.
    is_off: AtomicBool,
    /// Something may have changed for the workers.
    work: Condvar,
    /// A worker finished a job or went idle.
    quiet: Condvar,
}

/// Somebody waits for a flush: see [`Scheduler::request_flush`].
pub struct FlushRequest<'a> {
    shared: &'a Shared,
}

impl Drop for FlushRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.flush_requests -= 1;
        // Whoever paused relies on it that nothing runs.
        while state.holds_back(Lane::Flush) && !state.running.is_empty() {
            self.shared.quiet.wait(&mut state);
        }
    }
}

/// The threads of a database.
pub struct Scheduler {
    shared: Arc<Shared>,
    threads: Mutex<Vec<Box<dyn JoinHandle>>>,
    compactors: usize,
}

impl Scheduler {
    /// Starts one flush thread and `compaction_threads` more.
    pub fn start(env: &Env, work: Arc<dyn Work>, compaction_threads: usize) -> Result<Self> {
        Self::start_in(env, work, compaction_threads, State::default())
    }

    /// The same, where the threads do nothing by themselves until [`turn_on`](Self::turn_on).
    pub fn start_off(env: &Env, work: Arc<dyn Work>, compaction_threads: usize) -> Result<Self> {
        let state = State {
            off: true,
            ..State::default()
        };
        Self::start_in(env, work, compaction_threads, state)
    }

    fn start_in(env: &Env, work: Arc<dyn Work>, compaction_threads: usize, state: State) -> Result<Self> {
        let shared = Arc::new(Shared {
            is_off: AtomicBool::new(state.off),
            state: Mutex::new(state),
            work: Condvar::new(),
            quiet: Condvar::new(),
        });
        let scheduler = Self {
            shared,
            threads: Mutex::new(Vec::new()),
            compactors: compaction_threads,
        };
        let lanes = std::iter::once(Lane::Flush).chain((0..compaction_threads).map(|_| Lane::Compaction));
        for (i, lane) in lanes.enumerate() {
            let (shared, work) = (Arc::clone(&scheduler.shared), Arc::clone(&work));
            let name = if lane == Lane::Flush {
                "esker-flush".to_owned()
            } else {
                format!("esker-comp-{i}")
            };
            let body = Box::new(move || shared.run(lane, &*work));
            match env.spawn.spawn(&name, body) {
                Ok(thread) => scheduler.threads.lock().push(thread),
                Err(error) => {
                    scheduler.stop();
                    return Err(Error::io("can't start a background thread", error));
                }
            }
        }
        Ok(scheduler)
    }

    /// Tells the threads that there may be something to do.
    pub fn wake(&self) {
        let mut state = self.shared.state.lock();
        state.generation += 1;
        self.shared.work.notify_all();
        self.shared.quiet.notify_all();
    }

    /// Compaction threads in all.
    pub fn compactors(&self) -> usize {
        self.compactors
    }

    /// Starts no further job until [`resume`](Self::resume) was called as often, and waits for those that run. A
    /// [requested flush](Self::request_flush) is let through.
    pub fn pause(&self) {
        let mut state = self.shared.state.lock();
        state.pauses += 1;
        while !state.running.is_empty() {
            self.shared.quiet.wait(&mut state);
        }
    }

    /// Undoes one [`pause`](Self::pause).
    pub fn resume(&self) {
        let mut state = self.shared.state.lock();
        state.pauses = state.pauses.saturating_sub(1);
        state.generation += 1;
        self.shared.work.notify_all();
    }

    /// Lets jobs run from now on, but for [pauses](Self::pause).
    pub fn turn_on(&self) {
        let mut state = self.shared.state.lock();
        state.off = false;
        self.shared.is_off.store(false, Ordering::Relaxed);
        state.generation += 1;
        self.shared.work.notify_all();
    }

    /// Whether jobs don't run because nobody has [turned them on](Self::turn_on).
    #[inline]
    pub fn is_off(&self) -> bool {
        self.shared.is_off.load(Ordering::Relaxed)
    }

    /// Whether a flush that nobody asks for would not come before [`turn_on`](Self::turn_on).
    pub fn flushes_are_off(&self) -> bool {
        let state = self.shared.state.lock();
        state.off && state.holds_back(Lane::Flush)
    }

    /// Lets flushes run while jobs are paused, until the guard is dropped; that waits until they are paused again.
    pub fn request_flush(&self) -> FlushRequest<'_> {
        let mut state = self.shared.state.lock();
        state.flush_requests += 1;
        state.generation += 1;
        self.shared.work.notify_all();
        FlushRequest { shared: &self.shared }
    }

    /// Undoes all pauses, and those to come: the database is about to close, and may need a last flush.
    pub fn drain(&self) {
        let mut state = self.shared.state.lock();
        state.draining = true;
        self.shared.is_off.store(false, Ordering::Relaxed);
        state.generation += 1;
        self.shared.work.notify_all();
    }

    /// Whether jobs are held back.
    pub fn paused(&self) -> bool {
        self.shared.state.lock().paused()
    }

    /// Waits until a job ends or `done` says so; `done` is asked under no lock of the scheduler.
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) {
        loop {
            let seen = self.shared.state.lock().generation;
            if done() {
                return;
            }
            let mut state = self.shared.state.lock();
            while state.generation == seen && !state.stopping {
                self.shared.quiet.wait(&mut state);
            }
            if state.stopping {
                return;
            }
        }
    }

    /// Waits until the jobs that run now are over, and with them what they do behind their result: those who wait for a result
    /// see it before.
    pub fn wait_for_running(&self) {
        let mut state = self.shared.state.lock();
        let last = state.begun;
        while state.running.iter().any(|job| *job <= last) {
            self.shared.quiet.wait(&mut state);
        }
    }

    /// Ends the threads after the jobs that they run.
    pub fn stop(&self) {
        {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            state.generation += 1;
            self.shared.work.notify_all();
            self.shared.quiet.notify_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if let Err(error) = thread.join() {
                tracing::error!(%error, "a background thread panicked");
            }
        }
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn stopping(&self) -> bool {
        self.shared.state.lock().stopping
    }
}

impl Shared {
    fn run(&self, lane: Lane, work: &dyn Work) {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return;
            }
            let seen = state.generation;
            let (mut ran, mut due) = (false, None);
            if !state.holds_back(lane) {
                state.begun += 1;
                let job = state.begun;
                state.running.push(job);
                drop(state);
                ran = work.run_one(lane);
                if !ran {
                    due = work.next_due(lane);
                }
                state = self.state.lock();
                state.running.retain(|other| *other != job);
                if ran {
                    state.generation += 1;
                    self.work.notify_all();
                }
                self.quiet.notify_all();
            }
            if !ran {
                match due {
                    Some(due) if state.generation == seen && !state.stopping => {
                        self.work.wait_for(&mut state, due);
                    }
                    Some(_) => {}
                    None => {
                        while state.generation == seen && !state.stopping {
                            self.work.wait(&mut state);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counted {
        flushes: AtomicUsize,
        compactions: AtomicUsize,
    }
    impl Work for Counted {
        fn run_one(&self, lane: Lane) -> bool {
            let left = if lane == Lane::Flush {
                &self.flushes
            } else {
                &self.compactions
            };
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
        }
    }

    fn env() -> Env {
        esker_env::Env::simulated(1).0
    }

    #[test]
    fn all_work_is_done_and_waiting_for_it_ends() {
        let work = Arc::new(Counted {
            flushes: AtomicUsize::new(50),
            compactions: AtomicUsize::new(50),
        });
        let scheduler = Scheduler::start(&env(), Arc::clone(&work) as Arc<dyn Work>, 2).unwrap();
        scheduler.wait_until(|| {
            work.flushes.load(Ordering::SeqCst) == 0 && work.compactions.load(Ordering::SeqCst) == 0
        });
        work.compactions.store(10, Ordering::SeqCst);
        scheduler.wake();
        scheduler.wait_until(|| work.compactions.load(Ordering::SeqCst) == 0);
        scheduler.stop();
    }

    #[test]
    fn nothing_runs_while_paused() {
        let work = Arc::new(Counted {
            flushes: AtomicUsize::new(0),
            compactions: AtomicUsize::new(0),
        });
        let scheduler = Scheduler::start(&env(), Arc::clone(&work) as Arc<dyn Work>, 2).unwrap();
        scheduler.pause();
        work.compactions.store(5, Ordering::SeqCst);
        scheduler.wake();
        assert!(scheduler.paused());
        assert_eq!(work.compactions.load(Ordering::SeqCst), 5);
        scheduler.resume();
        scheduler.wait_until(|| work.compactions.load(Ordering::SeqCst) == 0);
        scheduler.stop();
    }

    #[test]
    fn what_starts_off_runs_once_it_is_turned_on_and_not_paused() {
        let work = Arc::new(Counted {
            flushes: AtomicUsize::new(1),
            compactions: AtomicUsize::new(1),
        });
        let scheduler = Scheduler::start_off(&env(), Arc::clone(&work) as Arc<dyn Work>, 1).unwrap();
        let left = || work.flushes.load(Ordering::SeqCst) + work.compactions.load(Ordering::SeqCst);
        assert!(scheduler.is_off() && scheduler.flushes_are_off() && scheduler.paused());
        // A resume that belongs to no pause turns nothing on.
        scheduler.resume();
        scheduler.wake();
        assert_eq!((left(), scheduler.shared.state.lock().running.len()), (2, 0));
        let request = scheduler.request_flush();
        assert!(scheduler.is_off() && !scheduler.flushes_are_off());
        scheduler.wait_until(|| left() == 1);
        drop(request);
        scheduler.pause();
        scheduler.turn_on();
        assert!(!scheduler.is_off() && scheduler.paused());
        assert_eq!((left(), scheduler.shared.state.lock().running.len()), (1, 0));
        scheduler.resume();
        scheduler.wait_until(|| left() == 0);
        scheduler.stop();
    }

    #[test]
    fn a_requested_flush_runs_while_paused_and_nothing_after_it() {
        let work = Arc::new(Counted {
            flushes: AtomicUsize::new(0),
            compactions: AtomicUsize::new(0),
        });
        let scheduler = Scheduler::start(&env(), Arc::clone(&work) as Arc<dyn Work>, 1).unwrap();
        scheduler.pause();
        work.flushes.store(3, Ordering::SeqCst);
        work.compactions.store(3, Ordering::SeqCst);
        let request = scheduler.request_flush();
        scheduler.wait_until(|| work.flushes.load(Ordering::SeqCst) == 0);
        drop(request);
        work.flushes.store(3, Ordering::SeqCst);
        scheduler.wake();
        assert!(scheduler.shared.state.lock().running.is_empty());
        scheduler.resume();
        scheduler.wait_until(|| {
            work.flushes.load(Ordering::SeqCst) == 0 && work.compactions.load(Ordering::SeqCst) == 0
        });
        scheduler.stop();
    }

    #[test]
    fn a_database_that_closes_is_not_paused() {
        let work = Arc::new(Counted {
            flushes: AtomicUsize::new(0),
            compactions: AtomicUsize::new(0),
        });
        let scheduler = Scheduler::start(&env(), Arc::clone(&work) as Arc<dyn Work>, 1).unwrap();
        scheduler.pause();
        work.flushes.store(1, Ordering::SeqCst);
        scheduler.drain();
        scheduler.wait_until(|| work.flushes.load(Ordering::SeqCst) == 0);
        scheduler.pause();
        assert!(!scheduler.paused());
        scheduler.stop();
    }
}
