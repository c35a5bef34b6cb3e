//! Every interleaving of those who wait for background work and those who do it.
//!
//! A wake-up that is lost would leave a thread asleep for ever, which loom reports as a deadlock.
//!
//! `scripts/loom.sh background::loom`

use std::io;
use std::sync::Arc;

use esker_env::{Env, JoinHandle, Spawn};

use super::{FlushProgress, Lane, Scheduler, Work};
use crate::sync::{AtomicU64, Ordering};

#[derive(Debug)]
struct ModelThreads;

#[derive(Debug)]
struct ModelThread(::loom::thread::JoinHandle<()>);

impl Spawn for ModelThreads {
    fn spawn(&self, _name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn JoinHandle>> {
        Ok(Box::new(ModelThread(::loom::thread::spawn(body))))
    }

    fn parallelism(&self) -> usize {
        1
    }
}

impl JoinHandle for ModelThread {
    fn join(self: Box<Self>) -> io::Result<()> {
        self.0.join().map_err(|_| io::Error::other("a thread panicked"))
    }
}

/// Jobs to do, and how many are being done.
struct Jobs {
    left: AtomicU64,
    running: AtomicU64,
}

impl Jobs {
    fn new(left: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(left),
            running: AtomicU64::new(0),
        })
    }

    fn done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}

impl Work for Jobs {
    fn run_one(&self, _: Lane) -> bool {
        self.running.fetch_add(1, Ordering::AcqRel);
        let took = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
            .is_ok();
        self.running.fetch_sub(1, Ordering::AcqRel);
        took
    }
}

fn scheduler(jobs: &Arc<Jobs>, compaction_threads: usize) -> Scheduler {
    let env = Env {
        spawn: Arc::new(ModelThreads),
        ..Env::simulated(1).0
    };
    let work = Arc::clone(jobs) as Arc<dyn Work>;
    Scheduler::start(&env, work, compaction_threads).expect("threads")
}

#[test]
fn who_waits_for_progress_hears_of_it() {
    ::loom::model(|| {
        let progress = Arc::new(FlushProgress::default());
        let flushed = Arc::new(AtomicU64::new(0));
        let waiters = [1, 2].map(|wanted| {
            let (progress, flushed) = (Arc::clone(&progress), Arc::clone(&flushed));
            ::loom::thread::spawn(move || {
                progress.wait(|| {
                    let flushed = flushed.load(Ordering::Acquire);
                    (flushed >= wanted).then_some(flushed)
                })
            })
        });
        for done in [1, 2] {
            flushed.store(done, Ordering::Release);
            progress.notify();
        }
        let [first, second] = waiters.map(|waiter| waiter.join().expect("a waiter"));
        assert!(first >= 1 && second == 2);
    });
}

#[test]
fn work_that_is_announced_is_done_and_its_end_is_heard() {
    ::loom::model(|| {
        let jobs = Jobs::new(0);
        let scheduler = scheduler(&jobs, 0);
        jobs.left.store(1, Ordering::Release);
        scheduler.wake();
        scheduler.wait_until(|| jobs.done());
        scheduler.stop();
    });
}

#[test]
fn two_threads_share_the_work() {
    ::loom::model(|| {
        let jobs = Jobs::new(2);
        let scheduler = scheduler(&jobs, 1);
        scheduler.wait_until(|| jobs.done());
        scheduler.stop();
        assert_eq!(jobs.running.load(Ordering::Acquire), 0);
    });
}

#[test]
fn while_paused_nothing_runs() {
    ::loom::model(|| {
        let jobs = Jobs::new(1);
        let scheduler = scheduler(&jobs, 0);
        scheduler.pause();
        assert_eq!(jobs.running.load(Ordering::Acquire), 0);
        jobs.left.store(1, Ordering::Release);
        scheduler.wake();
        assert_eq!(jobs.running.load(Ordering::Acquire), 0);
        assert!(!jobs.done());
        scheduler.resume();
        scheduler.wait_until(|| jobs.done());
        scheduler.stop();
    });
}

#[test]
fn an_end_wakes_those_who_wait_for_what_never_comes() {
    ::loom::model(|| {
        let jobs = Jobs::new(0);
        let scheduler = Arc::new(scheduler(&jobs, 0));
        let waiter = {
            let scheduler = Arc::clone(&scheduler);
            ::loom::thread::spawn(move || scheduler.wait_until(|| false))
        };
        scheduler.stop();
        waiter.join().expect("the waiter");
        assert!(scheduler.stopping());
    });
}
