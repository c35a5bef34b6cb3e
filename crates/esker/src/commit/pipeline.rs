//! WRITE 2: the commit pipeline. Writers form groups; one leader commits a group; the rest wait for it.
//!
//! The simple story: a writer that finds nobody committing becomes the leader, commits its own batch and leaves;
//! a writer alone pays two uncontended locks and no hand-off. A writer that finds a leader at work queues its
//! batch and waits; it looks for a moment whether its turn has come, and lets other threads run, before it goes to sleep. When the
//! leader is done it takes everybody who queued meanwhile (up to [`GROUP_BYTES_MAX`]) into one group and commits that too: one WAL
//! append and one publication for all of them, and whoever wakes up finds its write done. After [`GROUPS_FOR_OTHERS_MAX`] of these, and
//! before writers that want a sync or are of another kind, it appoints the first in the queue instead, which leads the next group.
//!
//! Invariants:
//! 1. `leading` is true exactly while some thread is the leader or was appointed and not yet woken; there is never
//!    more than one. The queue is empty whenever `leading` is false.
//! 2. The [`Token`](CommitTarget::Token) (WAL writer, sequence counter, memtable switches) is touched only under its
//!    lock: by the leader for the length of a group, or by an [`exclusive`](Pipeline::exclusive) section.
//! 3. Sequence numbers are handed out under the token and published under it, after the memtable inserts: so
//!    publication is in sequence order and a reader that sees sequence n sees all writes up to n.
//! 4. A group whose log append failed is not applied and not published, and its sequence numbers are given to the
//!    next group; what it may have left in the log is the target's to fence off before it logs again.
//!
//! 5. A writer that would rather fail than wait for background work never waits behind one that does. A group holds writers of one
//!    kind, and who is about to wait with the token in hand says so ([`stall`](Pipeline::stall)): then those in the queue that
//!    would not wait are refused, and those that come while it lasts. That is the one place where the queue is locked under
//!    the token; nobody takes the token while the queue is locked.
//!
//! `loom.rs` explores what becomes of a few writers; a change of this file is tried there (`make loom`).
//!
//! Not built: handing parts of a group back to their writers for parallel memtable inserts. Each would have to be woken
//! for it, which on two cores is not expected to pay; nobody has measured it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use crate::batch::{RawBatch, StepKind};
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::options::Durability;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};

/// Bytes of batches that a leader takes into its group beyond the first one (in models as few as one batch has, so
/// that some are left to the next leader).
pub const GROUP_BYTES_MAX: usize = if cfg!(loom) { 1 } else { 1 << 20 };

/// How often the first in the queue looks whether it has been told something before it lets others run: some four microseconds, which is what
/// a group takes that is not synced. Models need not spin.
const LOOKS_BEFORE_YIELD: u32 = if cfg!(loom) { 0 } else { 100 };

/// How often a writer gives up its processor to whoever can run, and looks when it has it back, before it goes to sleep. Who sleeps has to be
/// woken, which costs the leader more than a small group. Models need not look.
const YIELDS_BEFORE_SLEEP: u32 = if cfg!(loom) { 0 } else { 16 };

/// Groups that a leader commits behind its own before it goes. An appointed leader has to wake up first, and until then nobody commits; but
/// a writer should have its own answer soon.
const GROUPS_FOR_OTHERS_MAX: usize = if cfg!(loom) { 1 } else { 4 };

/// One writer's request, as the target sees it.
#[derive(Debug)]
pub struct Request {
    /// What to write: a batch, or a step of a two-phase commit.
    pub batch: RawBatch,
    /// What was prepared before, in the step that commits it.
    pub prepared: Option<Arc<RawBatch>>,
    /// How safe it must be when the writer returns.
    pub durability: Durability,
    /// Whether the writer prefers an error to waiting for background work.
    pub no_wait: bool,
}

impl Request {
    /// Rows that it commits, each of which takes a sequence number.
    #[inline]
    pub fn rows(&self) -> u64 {
        match self.batch.kind() {
            StepKind::Batch => u64::from(self.batch.count()),
            StepKind::Commit => {
                let prepared = self.prepared.as_ref().map_or(0, |prepared| prepared.count());
                u64::from(prepared) + u64::from(self.batch.count())
            }
            StepKind::Prepare | StepKind::Carried | StepKind::RollBack => 0,
        }
    }

    /// Bytes that memtables and log come to hold.
    #[inline]
    pub fn bytes(&self) -> usize {
        let prepared = self
            .prepared
            .as_ref()
            .map_or(0, |prepared| prepared.as_bytes().len());
        self.batch.as_bytes().len() + prepared
    }
}

/// What the pipeline needs of a database; narrow, so that the pipeline is tested without one.
pub trait CommitTarget: Send + Sync {
    /// State that belongs to whoever leads.
    type Token: Send;

    /// Makes room for `bytes` more: seals full memtables, waits for background work as admission demands.
    fn make_room(&self, token: &mut Self::Token, bytes: usize, no_wait: bool) -> Result<()>;
    /// Whether this request can be applied at all (its column families exist). Failing it fails only its writer.
    fn check(&self, token: &mut Self::Token, request: &Request) -> Result<()>;
    /// Appends the group to the log, and syncs it if a member asks for that.
    fn log(&self, token: &mut Self::Token, group: &[Request]) -> Result<()>;
    /// Inserts a logged batch into the memtables, or does what the step says. Must not fail half-way for a checked batch.
    /// May keep the batch of a request, and leave an empty one.
    fn apply(&self, token: &mut Self::Token, request: &mut Request) -> Result<()>;
    /// The last sequence number handed out.
    fn last_sequence(&self, token: &Self::Token) -> Sequence;
    /// Makes everything up to `sequence` visible.
    fn publish(&self, token: &mut Self::Token, sequence: Sequence);
}

enum Turn {
    Waiting,
    Lead,
    Done(Result<()>),
}

struct Waiter {
    no_wait: bool,
    syncs: bool,
    slot: Mutex<(Option<Request>, Turn)>,
    /// Whether the turn has come, for who looks without the lock.
    is_told: AtomicBool,
    wake: Condvar,
}

impl Waiter {
    fn tell(&self, say: impl FnOnce(&mut (Option<Request>, Turn))) {
        say(&mut self.slot.lock());
        self.is_told.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Waits for a moment without sleeping.
    fn look_out(&self, is_first: bool) {
        let is_told = || self.is_told.load(Ordering::Acquire);
        // Where several spin, they keep the leader from its processor.
        for _ in 0..if is_first { LOOKS_BEFORE_YIELD } else { 0 } {
            if is_told() {
                return;
            }
            std::hint::spin_loop();
        }
        for _ in 0..YIELDS_BEFORE_SLEEP {
            if is_told() {
                return;
            }
            thread::yield_now();
        }
    }
}

#[derive(Default)]
struct Queue {
    leading: bool,
    waiting: VecDeque<Arc<Waiter>>,
    /// What writers hear that would not wait, while the holder of the token waits.
    stalled: Option<Error>,
}

impl Queue {
    /// Takes those that may join a group from the front of the queue, and their requests, until the group is large enough.
    fn take(&mut self, group: &mut Vec<Request>, may_join: impl Fn(&Waiter) -> bool) -> Vec<Arc<Waiter>> {
        let mut followers = Vec::new();
        let mut bytes = 0;
        while bytes < GROUP_BYTES_MAX
            && let Some(waiter) = self.waiting.pop_front_if(|waiter| may_join(waiter))
        {
            let request = waiter.slot.lock().0.take();
            if let Some(request) = request {
                bytes += request.batch.as_bytes().len();
                group.push(request);
                followers.push(waiter);
            }
        }
        followers
    }
}

/// The holder of the token waits for background work: see [`Pipeline::stall`].
pub struct Stall<'a> {
    queue: &'a Mutex<Queue>,
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.queue.lock().stalled = None;
    }
}

/// Gives followers their requests back, with what became of them.
fn tell_all(followers: &[Arc<Waiter>], done: impl Iterator<Item = (Request, Result<()>)>) {
    for (waiter, (request, result)) in followers.iter().zip(done) {
        waiter.tell(|slot| *slot = (Some(request), Turn::Done(result)));
    }
}

/// The pipeline of a database.
pub struct Pipeline<T: CommitTarget> {
    queue: Mutex<Queue>,
    token: Mutex<T::Token>,
}

impl<T: CommitTarget> Pipeline<T> {
    /// A pipeline that owns `token`.
    pub fn new(token: T::Token) -> Self {
        Self {
            queue: Mutex::new(Queue::default()),
            token: Mutex::new(token),
        }
    }

    /// Commits a batch; gives the (sequenced) batch back so that its memory can be used again.
    pub fn commit(&self, target: &T, request: Request) -> (Option<RawBatch>, Result<()>) {
        let mut queue = self.queue.lock();
        if request.no_wait
            && let Some(error) = &queue.stalled
        {
            return (Some(request.batch), Err(error.clone()));
        }
        if !queue.leading {
            queue.leading = true;
            drop(queue);
            let no_wait = request.no_wait;
            let mut group = [request];
            let mut results = [Ok(())];
            self.run(target, &mut group, &mut results);
            self.resign(target, no_wait);
            let ([request], [result]) = (group, results);
            return (Some(request.batch), result);
        }
        let syncs = request.durability == Durability::Sync;
        let is_first = queue.waiting.is_empty();
        let waiter = Arc::new(Waiter {
            no_wait: request.no_wait,
            syncs,
            is_told: AtomicBool::new(false),
            slot: Mutex::new((Some(request), Turn::Waiting)),
            wake: Condvar::new(),
        });
        queue.waiting.push_back(Arc::clone(&waiter));
        drop(queue);

        // A sync takes longer than anybody should look out for.
        if !syncs {
            waiter.look_out(is_first);
        }
        let mut slot = waiter.slot.lock();
        while matches!(slot.1, Turn::Waiting) {
            waiter.wake.wait(&mut slot);
        }
        if let Turn::Done(result) = std::mem::replace(&mut slot.1, Turn::Waiting) {
            return (slot.0.take().map(|request| request.batch), result);
        }
        let own = slot.0.take();
        drop(slot);
        self.lead_group(target, own)
    }

    /// Runs `section` while no group is being committed.
    pub fn exclusive<R>(&self, section: impl FnOnce(&mut T::Token) -> R) -> R {
        section(&mut self.token.lock())
    }

    /// The same, unless a group is being committed or somebody else has the token.
    pub fn try_exclusive<R>(&self, section: impl FnOnce(&mut T::Token) -> R) -> Option<R> {
        Some(section(&mut *self.token.try_lock()?))
    }

    /// Said by the holder of the token before it waits for background work: until the guard is dropped, writers that would not
    /// wait fail with `error`.
    pub fn stall(&self, error: Error) -> Stall<'_> {
        let mut queue = self.queue.lock();
        queue.stalled = Some(error.clone());
        let (refused, patient) = std::mem::take(&mut queue.waiting)
            .into_iter()
            .partition(|waiter| waiter.no_wait);
        queue.waiting = patient;
        drop(queue);
        let refused: VecDeque<Arc<Waiter>> = refused;
        for waiter in refused {
            waiter.tell(|slot| slot.1 = Turn::Done(Err(error.clone())));
        }
        Stall { queue: &self.queue }
    }

    /// Writers that wait for others' commits to end.
    pub fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }

    /// An appointed leader's turn: its own request and those queued behind it that are of its kind.
    fn lead_group(&self, target: &T, own: Option<Request>) -> (Option<RawBatch>, Result<()>) {
        let no_wait = own.as_ref().is_some_and(|request| request.no_wait);
        let mut group: Vec<Request> = own.into_iter().collect();
        let followers = {
            let mut queue = self.queue.lock();
            debug_assert!(queue.leading, "two leaders");
            queue.take(&mut group, |waiter| waiter.no_wait == no_wait)
        };
        let mut results = vec![Ok(()); group.len()];
        self.run(target, &mut group, &mut results);
        let mut done = group.into_iter().zip(results);
        let own = done.next();
        tell_all(&followers, done);
        self.resign(target, no_wait);
        match own {
            Some((request, result)) => (Some(request.batch), result),
            None => (None, Err(Error::bug("a commit leader lost its own request"))),
        }
    }

    /// Leaves the lead: commits for writers of the same kind that wait for no sync, then appoints the next leader, or notes that there is none.
    fn resign(&self, target: &T, no_wait: bool) {
        let mut queue = self.queue.lock();
        for _ in 0..GROUPS_FOR_OTHERS_MAX {
            debug_assert!(queue.leading, "two leaders");
            let mut group = Vec::new();
            let followers = queue.take(&mut group, |waiter| waiter.no_wait == no_wait && !waiter.syncs);
            if followers.is_empty() {
                break;
            }
            drop(queue);
            let mut results = vec![Ok(()); group.len()];
            self.run(target, &mut group, &mut results);
            tell_all(&followers, group.into_iter().zip(results));
            queue = self.queue.lock();
        }
        let Some(next) = queue.waiting.pop_front() else {
            queue.leading = false;
            return;
        };
        drop(queue);
        next.tell(|slot| slot.1 = Turn::Lead);
    }

    fn run(&self, target: &T, group: &mut [Request], results: &mut [Result<()>]) {
        let mut token = self.token.lock();
        let token = &mut *token;
        let bytes = group.iter().map(Request::bytes).sum();
        // All or none.
        let no_wait = group.iter().all(|request| request.no_wait);
        let mut outcome = target.make_room(token, bytes, no_wait);
        let before = target.last_sequence(token);
        let mut last = before;
        // Steps that take no sequence numbers are logged all the same.
        let mut accepted = false;
        if outcome.is_ok() {
            for (request, result) in group.iter_mut().zip(results.iter_mut()) {
                *result = target.check(token, request);
                if result.is_ok() {
                    request.batch.set_sequence(last + 1);
                    last += request.rows();
                    accepted = true;
                } else {
                    // An unsequenced batch is neither logged nor applied.
                    request.batch.set_sequence(0);
                }
            }
            if accepted {
                outcome = target.log(token, group);
            }
        }
        if outcome.is_ok() && accepted {
            for (request, result) in group.iter_mut().zip(results.iter_mut()) {
                if request.batch.sequence() != 0 {
                    *result = target.apply(token, request);
                }
            }
            if last > before {
                target.publish(token, last);
            }
        }
        if let Err(error) = outcome {
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(error.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ValueKind;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread::ThreadId;

    #[derive(Default)]
    struct Log {
        last: Sequence,
        groups: Vec<Vec<(Sequence, u32)>>,
        /// Who committed each group.
        leaders: Vec<ThreadId>,
        applied: Vec<(Sequence, Vec<u8>)>,
        fail_next: bool,
        /// What the next append waits for.
        gate: Option<mpsc::Receiver<()>>,
    }

    #[derive(Default)]
    struct Target {
        published: AtomicU64,
    }

    impl CommitTarget for Target {
        type Token = Log;

        fn make_room(&self, _: &mut Log, _: usize, _: bool) -> Result<()> {
            Ok(())
        }

        fn check(&self, _: &mut Log, request: &Request) -> Result<()> {
            match request.batch.iter().next() {
                Some(Ok(entry)) if entry.key == b"refused" => Err(Error::invalid("refused")),
                _ => Ok(()),
            }
        }

        fn log(&self, log: &mut Log, group: &[Request]) -> Result<()> {
            if std::mem::take(&mut log.fail_next) {
                return Err(Error::new(crate::ErrorKind::Io, "disk on fire"));
            }
            if let Some(gate) = log.gate.take() {
                gate.recv().expect("a signal");
            }
            log.leaders.push(thread::current().id());
            let logged = group.iter().filter(|request| request.batch.sequence() != 0);
            log.groups.push(
                logged
                    .map(|request| (request.batch.sequence(), request.batch.count()))
                    .collect(),
            );
            Ok(())
        }

        fn apply(&self, log: &mut Log, request: &mut Request) -> Result<()> {
            let batch = &request.batch;
            for (i, entry) in batch.iter().enumerate() {
                log.applied
                    .push((batch.sequence() + i as u64, entry?.key.to_vec()));
            }
            Ok(())
        }

        fn last_sequence(&self, log: &Log) -> Sequence {
            log.last
        }

        fn publish(&self, log: &mut Log, sequence: Sequence) {
            assert!(
                sequence > self.published.swap(sequence, Ordering::SeqCst),
                "published in order"
            );
            log.last = sequence;
        }
    }

    fn request(key: &[u8]) -> Request {
        let mut batch = RawBatch::default();
        batch.push(0, ValueKind::Put, key, b"v").unwrap();
        Request {
            batch,
            prepared: None,
            durability: Durability::Buffered,
            no_wait: false,
        }
    }

    #[test]
    fn a_step_without_rows_is_logged_and_takes_no_sequence() {
        let pipeline = Pipeline::<Target>::new(Log::default());
        let target = Target::default();
        let mut prepare = request(b"a");
        prepare.batch.make_step(StepKind::Prepare, b"name").unwrap();
        let (batch, result) = pipeline.commit(&target, prepare);
        result.unwrap();
        assert_eq!(target.published.load(Ordering::SeqCst), 0);
        let mut commit = request(b"b");
        commit.batch.make_step(StepKind::Commit, b"name").unwrap();
        commit.prepared = batch.map(Arc::new);
        pipeline.commit(&target, commit).1.unwrap();
        assert_eq!(target.published.load(Ordering::SeqCst), 2);
        pipeline.exclusive(|log| assert_eq!(log.groups, [[(1, 1)], [(1, 1)]]));
    }

    #[test]
    fn every_write_of_many_writers_is_logged_and_applied_once_in_order() {
        let pipeline = Pipeline::<Target>::new(Log::default());
        let target = Target::default();
        std::thread::scope(|scope| {
            for writer in 0..4_u8 {
                let (pipeline, target) = (&pipeline, &target);
                scope.spawn(move || {
                    for i in 0..200_u8 {
                        let (batch, result) = pipeline.commit(target, request(&[writer, i]));
                        result.unwrap();
                        let last = batch.unwrap().sequence();
                        assert!(
                            target.published.load(Ordering::SeqCst) >= last,
                            "visible on return"
                        );
                    }
                });
            }
        });
        pipeline.exclusive(|log| {
            assert_eq!(log.last, 800);
            let sequences: Vec<_> = log.applied.iter().map(|(sequence, _)| *sequence).collect();
            assert_eq!(sequences, (1..=800).collect::<Vec<_>>());
            let mut logged = log.groups.concat().into_iter().map(|(sequence, _)| sequence);
            assert!((1..=800).all(|sequence| logged.next() == Some(sequence)));
            for writer in 0..4_u8 {
                let own: Vec<_> = log.applied.iter().filter(|(_, key)| key[0] == writer).collect();
                assert!(
                    own.windows(2).all(|pair| pair[0].1 < pair[1].1),
                    "a writer's own order is kept"
                );
            }
        });
    }

    /// Commits `first`, and while that is being logged, `queued`, in this order; gives the groups, and by whom each was committed: 0 for
    /// who came first.
    fn lead_before(first: Request, queued: Vec<Request>) -> Vec<(usize, usize)> {
        let pipeline = Pipeline::<Target>::new(Log::default());
        let target = Target::default();
        let (open, gate) = mpsc::channel();
        pipeline.exclusive(|log| log.gate = Some(gate));
        let mut threads = Vec::new();
        thread::scope(|scope| {
            let (pipeline, target) = (&pipeline, &target);
            let mut commit = |request| {
                let writer = scope.spawn(move || pipeline.commit(target, request).1.unwrap());
                threads.push(writer.thread().id());
            };
            commit(first);
            while !pipeline.queue.lock().leading {
                thread::yield_now();
            }
            for (i, request) in queued.into_iter().enumerate() {
                commit(request);
                while pipeline.waiting() <= i {
                    thread::yield_now();
                }
            }
            open.send(()).expect("somebody waits");
        });
        let number = |id: &ThreadId| threads.iter().position(|thread| thread == id).expect("a writer");
        pipeline.exclusive(|log| {
            let leaders = log.leaders.iter().map(number);
            leaders.zip(log.groups.iter().map(Vec::len)).collect()
        })
    }

    #[test]
    fn a_leader_commits_for_those_who_queued_meanwhile() {
        let queued = vec![request(b"b"), request(b"c"), request(b"d")];
        assert_eq!(lead_before(request(b"a"), queued), [(0, 1), (0, 3)]);
    }

    #[test]
    fn a_leader_waits_for_no_sync_but_its_own() {
        let synced = |key| Request {
            durability: Durability::Sync,
            ..request(key)
        };
        let queued = vec![request(b"b"), synced(b"c"), request(b"d")];
        assert_eq!(lead_before(synced(b"a"), queued), [(0, 1), (0, 1), (2, 2)]);
    }

    #[test]
    fn a_leader_that_would_not_wait_commits_for_none_who_would() {
        let impatient = |key| Request {
            no_wait: true,
            ..request(key)
        };
        let queued = vec![impatient(b"b"), request(b"c"), request(b"d")];
        assert_eq!(lead_before(impatient(b"a"), queued), [(0, 1), (0, 1), (2, 2)]);
    }

    #[test]
    fn a_failed_append_gives_its_sequence_to_the_next_group() {
        let pipeline = Pipeline::<Target>::new(Log::default());
        let target = Target::default();
        pipeline.exclusive(|log| log.fail_next = true);
        let (_, result) = pipeline.commit(&target, request(b"a"));
        assert!(result.unwrap_err().message().contains("fire"));
        assert_eq!(target.published.load(Ordering::SeqCst), 0);
        pipeline.commit(&target, request(b"b")).1.unwrap();
        pipeline.exclusive(|log| assert_eq!(log.applied, [(1, b"b".to_vec())]));
    }

    #[test]
    fn a_refused_request_fails_alone_and_takes_no_sequence() {
        let pipeline = Pipeline::<Target>::new(Log::default());
        let target = Target::default();
        assert!(pipeline.commit(&target, request(b"refused")).1.is_err());
        pipeline.commit(&target, request(b"a")).1.unwrap();
        pipeline.exclusive(|log| assert_eq!(log.last, 1));
    }
}
