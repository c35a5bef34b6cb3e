//! Running threads and keeping the books.
//!
//! Each worker thread runs a closed loop and times every operation with one look at the clock: an operation's end is
//! the next one's beginning, so what the harness does between two calls counts as latency, and nothing is hidden. The
//! calling thread samples rates, watches the time and the size on disk.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use esker_lab_core::account::{Account, Spent};
use esker_lab_core::latency::Latencies;
use esker_lab_core::rate::{self, Cell, Rates};
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result, size};

use crate::Context;

/// When a measured part ends: at the first of both, or when the user stops it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Operations each thread does.
    pub ops_per_thread: u64,
    /// Time for all of them; each thread does one in any case.
    pub time: Duration,
    /// Length of an interval of the rates.
    pub interval: Duration,
}

/// One thread's loop: `while let Some(i) = pacer.next() { …; pacer.done(); }`.
pub struct Pacer<'a> {
    next: u64,
    limit: u64,
    end: &'a AtomicBool,
    cell: &'a Cell,
    latencies: Latencies,
    last: Instant,
    start: Instant,
}

impl Pacer<'_> {
    /// The number of the next operation, or `None` at the end. Every thread does one at least: on a busy machine the time may be
    /// over before a thread has had any of it, and a row of nothing says nothing.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<u64> {
        let goes_on = self.next == 0 || !self.end.load(Ordering::Relaxed);
        (self.next < self.limit && goes_on).then_some(self.next)
    }

    /// Counts the operation that `next` gave out.
    #[inline]
    pub fn done(&mut self) {
        self.done_many(1);
    }

    /// Counts `ops` operations that were one call, timed as one.
    #[inline]
    pub fn done_many(&mut self, ops: u64) {
        let now = Instant::now();
        self.latencies.record(now - self.last);
        self.last = now;
        self.next += ops;
        self.cell.set(self.next);
    }

    /// Waits until operation number `i` is due at `ops_per_s`. Its latency counts from then, also when the loop is
    /// late: what waited in line is not left out.
    pub fn wait_for_turn(&mut self, i: u64, ops_per_s: f64) {
        let due = self.start + Duration::from_secs_f64(i as f64 / ops_per_s);
        loop {
            let now = Instant::now();
            if now >= due || self.end.load(Ordering::Relaxed) {
                break;
            }
            std::thread::park_timeout((due - now).min(Duration::from_millis(50)));
        }
        self.last = due;
    }
}

/// What a group of threads did.
#[derive(Default)]
pub struct Done {
    /// Operations.
    pub ops: u64,
    /// Their latencies.
    pub latencies: Latencies,
}

/// A measured part.
#[derive(Default)]
pub struct Measured {
    /// The threads that the test is about.
    pub main: Done,
    /// The thread beside them, if any.
    pub side: Done,
    /// Rates of the main threads over time.
    pub rates: Rates,
    /// Resources used.
    pub spent: Spent,
    /// Most bytes on disk seen.
    pub peak_db_bytes: u64,
    /// Ended by time rather than by operations.
    pub out_of_time: bool,
    /// Ended by the user.
    pub stopped: bool,
}

impl Measured {
    /// Puts its latencies, and its rates over time, into a row.
    pub fn shape(&self, row: &mut Row) {
        let latencies = &self.main.latencies;
        row.p50_us = latencies.percentile_us(50.0);
        row.p90_us = latencies.percentile_us(90.0);
        row.p99_us = latencies.percentile_us(99.0);
        row.p999_us = latencies.percentile_us(99.9);
        row.max_us = latencies.max_us();
        row.latency_curve = latencies.curve();
        row.interval_rates.clone_from(&self.rates.rates);
        row.rate_curve.clone_from(&self.rates.curve);
    }
}

/// A thread's work: its number and its loop.
pub type Work<'a> = &'a (dyn Fn(usize, &mut Pacer<'_>) -> Result<()> + Sync);

/// Runs `work` on `threads` threads, and `side` on one more until they are done, between two looks at the books.
/// The first error of any thread ends all of them and is returned.
pub fn run(
    context: &Context<'_>,
    phase: &str,
    bounds: Bounds,
    threads: usize,
    work: Work<'_>,
    side: Option<Work<'_>>,
) -> Result<Measured> {
    let end = AtomicBool::new(false);
    let running = AtomicUsize::new(threads);
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let cells: Vec<Cell> = (0..=threads).map(|_| Cell::default()).collect();
    let watcher = std::thread::current();
    let before = Account::now(&context.dir);
    let start = Instant::now();
    let mut measured = Measured::default();

    let one = |thread: usize, limit: u64, work: Work<'_>| -> Done {
        let now = Instant::now();
        let mut pacer = Pacer {
            next: 0,
            limit,
            end: &end,
            cell: &cells[thread],
            latencies: Latencies::default(),
            last: now,
            start: now,
        };
        if let Err(error) = work(thread, &mut pacer) {
            failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
            end.store(true, Ordering::Relaxed);
        }
        Done {
            ops: pacer.next,
            latencies: pacer.latencies,
        }
    };
    std::thread::scope(|scope| {
        let (one, running, watcher, end) = (&one, &running, &watcher, &end);
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let done = one(thread, bounds.ops_per_thread, work);
                    if running.fetch_sub(1, Ordering::AcqRel) == 1 {
                        watcher.unpark();
                    }
                    done
                })
            })
            .collect();
        let beside = side.map(|side| scope.spawn(move || one(threads, u64::MAX, side)));

        let mut last_told = (Instant::now(), 0);
        let total = || cells[..threads].iter().map(Cell::get).sum::<u64>();
        let expected = bounds.ops_per_thread.saturating_mul(threads as u64) as f64;
        measured.rates = rate::sample(
            bounds.interval,
            &mut || {
                let elapsed = start.elapsed();
                if !measured.stopped && context.stopped() {
                    measured.stopped = true;
                    end.store(true, Ordering::Relaxed);
                }
                if elapsed >= bounds.time && !end.swap(true, Ordering::Relaxed) {
                    measured.out_of_time = true;
                }
                if last_told.0.elapsed() >= Duration::from_millis(200) {
                    let ops = total();
                    let rate = (ops - last_told.1) as f64 / last_told.0.elapsed().as_secs_f64();
                    let share =
                        (ops as f64 / expected).max(elapsed.as_secs_f64() / bounds.time.as_secs_f64());
                    context.tell(phase, Some(share.min(1.0)), rate);
                    last_told = (Instant::now(), ops);
                }
                running.load(Ordering::Acquire) > 0
            },
            &total,
            &mut |_, _| {
                measured.peak_db_bytes = measured.peak_db_bytes.max(size::allocated_bytes(&context.dir));
            },
        );
        end.store(true, Ordering::Relaxed);
        let join = |into: &mut Done, worker: std::thread::ScopedJoinHandle<'_, Done>| match worker.join() {
            Ok(done) => {
                into.ops += done.ops;
                into.latencies.merge(&done.latencies);
            }
            Err(_) => {
                failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(Error::engine("a thread panicked"));
            }
        };
        for worker in workers {
            join(&mut measured.main, worker);
        }
        if let Some(beside) = beside {
            join(&mut measured.side, beside);
        }
    });
    measured.spent = Account::now(&context.dir).since(&before);
    measured.peak_db_bytes = measured.peak_db_bytes.max(size::allocated_bytes(&context.dir));
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(measured),
    }
}
