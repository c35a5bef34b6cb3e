//! Every interleaving of those who wait for background work and those who do it, and of those who note events, hold them back, wait
//! for them and end, with the thread that tells them.
//!
//! A wake-up that is lost would leave a thread asleep for ever, which loom reports as a deadlock.
//!
//! `scripts/loom.sh background::loom`

use std::io;
use std::sync::Arc;
use std::time::Duration;

use esker_env::{Env, JoinHandle, Spawn};

use super::{Events, FlushProgress, Lane, Scheduler, Work};
use crate::hooks::{BackgroundErrorOver, BackgroundTask, EventListener, EventsLost, Moment};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

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
    /// Jobs that are over.
    over: AtomicU64,
    /// When there may be more by itself; in a model that time never comes.
    due: Option<Duration>,
}

impl Jobs {
    fn new(left: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(left),
            running: AtomicU64::new(0),
            over: AtomicU64::new(0),
            due: None,
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
        if took {
            self.over.fetch_add(1, Ordering::AcqRel);
        }
        self.running.fetch_sub(1, Ordering::AcqRel);
        took
    }

    fn next_due(&self, _: Lane) -> Option<Duration> {
        self.due
    }
}

fn env() -> Env {
    Env {
        spawn: Arc::new(ModelThreads),
        ..Env::simulated(1).0
    }
}

fn scheduler(jobs: &Arc<Jobs>, compaction_threads: usize) -> Scheduler {
    let work = Arc::clone(jobs) as Arc<dyn Work>;
    Scheduler::start(&env(), work, compaction_threads).expect("threads")
}

fn scheduler_off(jobs: &Arc<Jobs>) -> Scheduler {
    let work = Arc::clone(jobs) as Arc<dyn Work>;
    Scheduler::start_off(&env(), work, 0).expect("threads")
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

/// Its result is seen before it is over, and it is waited for beside threads that look for more.
#[test]
fn who_has_seen_the_result_of_a_job_can_wait_for_its_end() {
    ::loom::model(|| {
        let jobs = Jobs::new(1);
        let scheduler = scheduler(&jobs, 1);
        scheduler.wait_until(|| jobs.done());
        scheduler.wait_for_running();
        assert_eq!(jobs.over.load(Ordering::Acquire), 1);
        scheduler.stop();
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

#[test]
fn who_waits_for_a_time_hears_of_work_that_comes_before() {
    ::loom::model(|| {
        let jobs = Arc::new(Jobs {
            left: AtomicU64::new(0),
            running: AtomicU64::new(0),
            over: AtomicU64::new(0),
            due: Some(Duration::from_secs(3600)),
        });
        let scheduler = scheduler(&jobs, 0);
        jobs.left.store(1, Ordering::Release);
        scheduler.wake();
        scheduler.wait_until(|| jobs.done());
        // And of the end.
        scheduler.stop();
    });
}

#[test]
fn what_starts_off_runs_when_it_is_turned_on() {
    ::loom::model(|| {
        let jobs = Jobs::new(1);
        let scheduler = Arc::new(scheduler_off(&jobs));
        scheduler.wake();
        assert!(scheduler.is_off() && !jobs.done());
        let other = {
            let scheduler = Arc::clone(&scheduler);
            ::loom::thread::spawn(move || {
                scheduler.turn_on();
                assert!(!scheduler.is_off());
            })
        };
        scheduler.wait_until(|| jobs.done());
        assert!(!scheduler.is_off(), "before that nothing runs");
        other.join().expect("who turns it on");
        scheduler.stop();
    });
}

#[test]
fn of_what_is_off_only_requested_flushes_run_and_none_after_the_request() {
    ::loom::model(|| {
        let jobs = Jobs::new(1);
        let scheduler = scheduler_off(&jobs);
        let request = scheduler.request_flush();
        scheduler.wait_until(|| jobs.done());
        drop(request);
        assert_eq!(jobs.running.load(Ordering::Acquire), 0);
        jobs.left.store(1, Ordering::Release);
        scheduler.wake();
        assert!(scheduler.is_off());
        assert_eq!(jobs.running.load(Ordering::Acquire), 0);
        assert!(!jobs.done());
        scheduler.stop();
        assert!(!jobs.done(), "nor at the end");
    });
}

#[test]
fn what_is_off_is_drained_at_the_end() {
    ::loom::model(|| {
        let jobs = Jobs::new(1);
        let scheduler = scheduler_off(&jobs);
        scheduler.drain();
        assert!(!scheduler.is_off());
        scheduler.wait_until(|| jobs.done());
        scheduler.stop();
    });
}

/// What a listener was told: numbers of events, and how many were lost.
#[derive(Default)]
struct Told {
    all: Mutex<Vec<(u64, u64)>>,
    /// A step that was taken, as far as the listener could see, before each.
    step: AtomicBool,
    saw_step: Mutex<Vec<bool>>,
}

impl EventListener for Told {
    fn background_error_over(&self, moment: &Moment, _: &BackgroundErrorOver) {
        self.saw_step.lock().push(self.step.load(Ordering::Acquire));
        self.all.lock().push((moment.number, 0));
    }

    fn events_lost(&self, moment: &Moment, event: &EventsLost) {
        self.all.lock().push((moment.number, event.count));
    }
}

fn event() -> BackgroundErrorOver {
    BackgroundErrorOver {
        task: BackgroundTask::Flush,
    }
}

fn events(told: &Arc<Told>, waiting_max: usize) -> Arc<Events> {
    let env = env();
    let listener = Arc::clone(told) as Arc<dyn EventListener>;
    let events = Events::with_limit(
        vec![listener],
        Arc::clone(&env.clock),
        Arc::default(),
        waiting_max,
    );
    events.start(&env).expect("a thread");
    Arc::new(events)
}

#[test]
fn who_waits_for_listeners_finds_what_it_noted_told_in_order() {
    ::loom::model(|| {
        let told = Arc::new(Told::default());
        let events = events(&told, 10);
        let other = {
            let events = Arc::clone(&events);
            ::loom::thread::spawn(move || events.note(event))
        };
        events.note(event);
        events.wait().expect("no listener");
        let now: Vec<u64> = told.all.lock().iter().map(|&(number, _)| number).collect();
        assert!(now == [1] || now == [1, 2]);
        other.join().expect("the other");
        events.stop();
        assert_eq!(*told.all.lock(), [(1, 0), (2, 0)]);
    });
}

#[test]
fn what_is_noted_before_a_step_is_told_after_it() {
    ::loom::model(|| {
        let told = Arc::new(Told::default());
        let events = events(&told, 10);
        let hold = events.hold();
        events.note(event);
        told.step.store(true, Ordering::Release);
        drop(hold);
        events.wait().expect("no listener");
        assert_eq!(*told.saw_step.lock(), [true]);
        events.stop();
    });
}

#[test]
fn what_does_not_fit_is_told_as_lost_at_its_place() {
    ::loom::model(|| {
        let told = Arc::new(Told::default());
        let events = events(&told, 1);
        for _ in 0..3 {
            events.note(event);
        }
        events.wait().expect("no listener");
        events.stop();
        let all = told.all.lock().clone();
        let mut next = 1;
        for (number, lost) in all {
            // A loss has the number of the last event that was lost.
            next += lost.max(1);
            assert_eq!(number, next - 1, "none is missing, and none comes twice");
        }
        assert_eq!(next, 4);
    });
}

#[test]
fn an_end_beside_notes_and_waits_leaves_nothing_untold() {
    ::loom::model(|| {
        let told = Arc::new(Told::default());
        let events = events(&told, 10);
        let other = {
            let events = Arc::clone(&events);
            ::loom::thread::spawn(move || {
                events.note(event);
                events.wait().expect("no listener");
            })
        };
        let hold = events.hold();
        events.note(event);
        drop(hold);
        events.stop();
        let at_end = told.all.lock().len();
        other.join().expect("the other");
        let all = told.all.lock().clone();
        assert_eq!(all.len(), at_end, "nothing is told after the end");
        assert!(all == [(1, 0)] || all == [(1, 0), (2, 0)]);
    });
}
