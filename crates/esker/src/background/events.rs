//! Events on their way to listeners: a queue, and the thread that empties it.
//!
//! Whoever notes an event may hold any lock of the engine, so that the order of events is the order in which they took effect;
//! the queue's lock is a leaf, and nothing is called under it. Listeners are called by the thread alone, under no lock.
//!
//! Invariants:
//! 1. Events have consecutive numbers, given under the queue's lock, and wait in that order.
//! 2. The thread takes all that waits at once. So nothing is accepted behind an event that was lost until the thread has taken
//!    those before, and it tells of the loss right behind them: at its place.
//! 3. `told` is the number up to which all was told or lost. It is raised after the calls, under the lock, so whoever waits for
//!    a number misses no wake-up.
//! 4. What is noted while somebody holds the events back is numbered and waited for, and told when he lets go. So an event can be
//!    noted before its step, so that nobody who sees the step misses it, and be told after it.
//! 5. After [`stop`](Events::stop) began, nothing is noted; all that was noted before is told, or its loss is, before the thread ends.
//! 6. Nobody waits for the thread on the thread: it is told from others by a mark of its own (`TELLS`).

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use esker_env::{Clock, Env, JoinHandle};

use crate::error::{Error, Result};
use crate::hooks::{EVENTS_WAITING_MAX, Event, EventListener, EventsLost, Moment};
use crate::metrics::Metrics;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

#[cfg(not(loom))]
thread_local! {
    /// The queue that this thread empties, by its address; 0: none.
    static TELLS: Cell<usize> = const { Cell::new(0) };
}

// The threads of a model share those of the machine.
#[cfg(loom)]
::loom::thread_local! {
    static TELLS: Cell<usize> = Cell::new(0);
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Moment, Event)>,
    /// The number of the last event.
    noted: u64,
    told: u64,
    /// Events lost behind those that wait.
    lost: u64,
    /// [`Held`] that there are.
    holds: usize,
    stopping: bool,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to tell, or an end.
    work: Condvar,
    /// `told` was raised.
    progress: Condvar,
    waiting_max: usize,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

type Listeners = Vec<Arc<dyn EventListener>>;

/// The listeners of a database and what they are still to be told. Without listeners nothing is noted.
pub struct Events {
    shared: Arc<Shared>,
    is_on: bool,
    jobs: AtomicU64,
    /// Until the thread has them.
    listeners: Mutex<Listeners>,
    thread: Mutex<Option<Box<dyn JoinHandle>>>,
}

impl Events {
    /// For these listeners; nothing is told until [`start`](Self::start).
    pub fn new(listeners: Listeners, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        Self::with_limit(listeners, clock, metrics, EVENTS_WAITING_MAX)
    }

    pub(super) fn with_limit(
        listeners: Listeners,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        waiting_max: usize,
    ) -> Self {
        let shared = Shared {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            progress: Condvar::new(),
            waiting_max,
            clock,
            metrics,
        };
        Self {
            shared: Arc::new(shared),
            is_on: !listeners.is_empty(),
            jobs: AtomicU64::new(0),
            listeners: Mutex::new(listeners),
            thread: Mutex::new(None),
        }
    }

    /// Starts the thread, if there is somebody to tell.
    pub fn start(&self, env: &Env) -> Result<()> {
        if !self.is_on {
            return Ok(());
        }
        let listeners = std::mem::take(&mut *self.listeners.lock());
        let shared = Arc::clone(&self.shared);
        let body = Box::new(move || shared.run(listeners));
        let thread = env
            .spawn
            .spawn("esker-events", body)
            .map_err(|error| Error::io("can't start the thread that calls listeners", error))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Whether anybody listens.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// A number for a job.
    pub fn next_job(&self) -> u64 {
        self.jobs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes an event, which is made only if somebody listens. Calls nobody; any lock but those of leaves may be held.
    #[inline]
    pub fn note<E: Into<Event>>(&self, make: impl FnOnce() -> E) {
        if self.is_on {
            self.shared.note(make().into());
        }
    }

    /// Holds back what is noted until the guard is dropped; for the length of a step that does not wait for anybody.
    pub fn hold(&self) -> Held<'_> {
        if self.is_on {
            self.shared.state.lock().holds += 1;
        }
        Held { events: self }
    }

    /// Waits until listeners were told all that happened before this call. At once after the end.
    ///
    /// # Errors
    /// `InvalidArgument` for a listener: it would wait for itself.
    pub fn wait(&self) -> Result<()> {
        if !self.is_on {
            return Ok(());
        }
        if self.is_own_thread() {
            return Err(Error::invalid("a listener can't wait for listeners"));
        }
        let mut state = self.shared.state.lock();
        let until = state.noted;
        while state.told < until {
            self.shared.progress.wait(&mut state);
        }
        Ok(())
    }

    /// Tells what is left, waits for that except on the thread itself, and lets the listeners go. Nothing is noted any more.
    pub fn stop(&self) {
        {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            self.shared.work.notify_all();
        }
        let thread = self.thread.lock().take();
        match thread {
            // It goes on until it has told everything.
            Some(_) if self.is_own_thread() => {}
            Some(thread) => {
                if let Err(error) = thread.join() {
                    tracing::error!(%error, "the thread that calls listeners panicked");
                }
            }
            None => drop(std::mem::take(&mut *self.listeners.lock())),
        }
    }

    fn is_own_thread(&self) -> bool {
        TELLS.with(Cell::get) == Arc::as_ptr(&self.shared) as usize
    }
}

/// Keeps events from being told: see [`Events::hold`].
pub struct Held<'a> {
    events: &'a Events,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.events.is_on {
            self.events.shared.state.lock().holds -= 1;
            self.events.shared.work.notify_all();
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("is_on", &self.is_on).finish()
    }
}

impl Shared {
    fn note(&self, event: Event) {
        let mut state = self.state.lock();
        if state.stopping {
            return;
        }
        state.noted += 1;
        if state.waiting.len() >= self.waiting_max {
            state.lost += 1;
            self.metrics.events_lost.add(1);
            return;
        }
        let moment = self.moment(state.noted);
        state.waiting.push_back((moment, event));
        self.work.notify_all();
    }

    fn moment(&self, number: u64) -> Moment {
        Moment {
            number,
            monotonic: self.clock.now(),
            unix_seconds: self.clock.unix_seconds(),
        }
    }

    fn run(&self, listeners: Listeners) {
        TELLS.with(|tells| tells.set(std::ptr::from_ref(self) as usize));
        loop {
            let (waiting, lost, last) = {
                let mut state = self.state.lock();
                while state.waiting.is_empty() || state.holds > 0 {
                    if state.stopping && state.waiting.is_empty() {
                        return;
                    }
                    self.work.wait(&mut state);
                }
                let taken = std::mem::take(&mut state.waiting);
                (taken, std::mem::take(&mut state.lost), state.noted)
            };
            for (moment, event) in waiting {
                self.tell(&listeners, &moment, &event);
                self.have_told(moment.number);
            }
            if lost > 0 {
                let event = Event::from(EventsLost { count: lost });
                self.tell(&listeners, &self.moment(last), &event);
                self.have_told(last);
            }
        }
    }

    fn tell(&self, listeners: &Listeners, moment: &Moment, event: &Event) {
        for listener in listeners {
            // What it leaves broken is its own.
            if catch_unwind(AssertUnwindSafe(|| event.tell(&**listener, moment))).is_err() {
                self.metrics.listener_panics.add(1);
                tracing::error!(?event, "a listener panicked");
            }
        }
        self.metrics.events_told.add(1);
    }

    fn have_told(&self, number: u64) {
        self.state.lock().told = number;
        self.progress.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{BackgroundErrorOver, BackgroundTask};

    fn event() -> BackgroundErrorOver {
        BackgroundErrorOver {
            task: BackgroundTask::Flush,
        }
    }

    /// Waits at every event for `gate`.
    #[derive(Default)]
    struct Slow {
        gate: Mutex<()>,
        entered: Mutex<bool>,
        has_entered: Condvar,
        told: Mutex<Vec<(u64, u64)>>,
    }

    impl EventListener for Slow {
        fn background_error_over(&self, moment: &Moment, _: &BackgroundErrorOver) {
            *self.entered.lock() = true;
            self.has_entered.notify_all();
            drop(self.gate.lock());
            self.told.lock().push((moment.number, 0));
        }

        fn events_lost(&self, moment: &Moment, event: &EventsLost) {
            self.told.lock().push((moment.number, event.count));
        }
    }

    #[test]
    fn what_a_slow_listener_misses_is_told_at_its_place() {
        let env = Env::simulated(1).0;
        let (slow, metrics) = (Arc::new(Slow::default()), Arc::new(Metrics::default()));
        let listeners: Listeners = vec![Arc::clone(&slow) as Arc<dyn EventListener>];
        let events = Events::with_limit(listeners, Arc::clone(&env.clock), Arc::clone(&metrics), 3);
        events.start(&env).unwrap();
        let gate = slow.gate.lock();
        events.note(event);
        let mut entered = slow.entered.lock();
        while !*entered {
            slow.has_entered.wait(&mut entered);
        }
        drop(entered);
        // Three may wait, so the last two are lost.
        for _ in 0..5 {
            events.note(event);
        }
        drop(gate);
        events.wait().unwrap();
        events.note(event);
        events.stop();
        let told = slow.told.lock().clone();
        assert_eq!(told, [(1, 0), (2, 0), (3, 0), (4, 0), (6, 2), (7, 0)]);
        assert_eq!(metrics.events_lost.get(), 2);
        assert_eq!(metrics.events_told.get(), 6);
        events.note(event);
        events.wait().unwrap();
    }

    #[test]
    fn what_is_held_back_is_told_when_the_last_hold_ends() {
        let env = Env::simulated(1).0;
        let slow = Arc::new(Slow::default());
        let listeners: Listeners = vec![Arc::clone(&slow) as Arc<dyn EventListener>];
        let events = Events::new(listeners, Arc::clone(&env.clock), Arc::default());
        events.start(&env).unwrap();
        let holds = (events.hold(), events.hold());
        events.note(event);
        drop(holds.0);
        events.note(event);
        assert!(!*slow.entered.lock(), "it has waited");
        drop(holds.1);
        events.wait().unwrap();
        assert_eq!(*slow.told.lock(), [(1, 0), (2, 0)]);
        let hold = events.hold();
        events.note(event);
        std::thread::scope(|scope| {
            scope.spawn(|| events.stop());
            drop(hold);
        });
        assert_eq!(slow.told.lock().len(), 3, "also at the end");
    }

    #[test]
    fn where_nobody_listens_no_event_is_made_and_no_thread_started() {
        let env = Env::simulated(1).0;
        let events = Events::new(Vec::new(), Arc::clone(&env.clock), Arc::default());
        events.start(&env).unwrap();
        assert!(events.thread.lock().is_none());
        events.note(|| -> Event { panic!("an event was made") });
        events.wait().unwrap();
        assert_eq!((events.next_job(), events.next_job()), (1, 2));
    }

    #[test]
    fn what_was_noted_before_the_start_is_told_and_a_queue_that_never_starts_ends() {
        let env = Env::simulated(1).0;
        let slow = Arc::new(Slow::default());
        let make = || {
            let listeners: Listeners = vec![Arc::clone(&slow) as Arc<dyn EventListener>];
            Events::new(listeners, Arc::clone(&env.clock), Arc::default())
        };
        let events = make();
        events.note(event);
        events.start(&env).unwrap();
        drop(events);
        assert_eq!(*slow.told.lock(), [(1, 0)]);
        let events = make();
        events.note(event);
        drop(events);
        assert_eq!(slow.told.lock().len(), 1);
        assert_eq!(Arc::strong_count(&slow), 1);
    }
}
