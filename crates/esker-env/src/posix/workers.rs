//! A few threads that do jobs in the order in which they came. They start when they are first needed and end with the pool.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

/// What threads are for.
pub(super) trait Job: Send + 'static {
    /// The threads' name.
    const NAME: &'static str;
    /// Threads at most.
    const THREADS_MAX: usize;

    /// Does it.
    fn run(self);
}

#[derive(Debug)]
struct Queue<J> {
    jobs: VecDeque<J>,
    threads: usize,
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Shared<J> {
    queue: Mutex<Queue<J>>,
    wake: Condvar,
}

/// The threads for one kind of job.
#[derive(Debug)]
pub(super) struct Workers<J>(Arc<Shared<J>>);

impl<J> Default for Workers<J> {
    fn default() -> Self {
        let queue = Queue {
            jobs: VecDeque::new(),
            threads: 0,
            idle: 0,
            closed: false,
        };
        Self(Arc::new(Shared {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
        }))
    }
}

impl<J> Drop for Workers<J> {
    fn drop(&mut self) {
        self.0.queue.lock().closed = true;
        self.0.wake.notify_all();
    }
}

impl<J: Job> Workers<J> {
    /// Has a thread do the job; where no thread can be had, the caller does it before this returns.
    pub(super) fn submit(&self, job: J) {
        let mut queue = self.0.queue.lock();
        if queue.idle <= queue.jobs.len() && queue.threads < J::THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let started = thread::Builder::new()
                .name(J::NAME.to_owned())
                .spawn(move || shared.work());
            if started.is_ok() {
                queue.threads += 1;
            } else if queue.threads == 0 {
                drop(queue);
                job.run();
                return;
            }
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.0.wake.notify_one();
    }
}

impl<J: Job> Shared<J> {
    fn work(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job.run();
                queue = self.queue.lock();
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                self.wake.wait(&mut queue);
                queue.idle -= 1;
            }
        }
    }
}
