//! Every interleaving of a few writers in the pipeline, over a target that notes what is asked of it.
//!
//! `scripts/loom.sh commit::loom`

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use super::pipeline::{CommitTarget, Pipeline, Request};
use crate::batch::RawBatch;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Sequence, ValueKind};
use crate::options::Durability;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// A batch as it was logged or applied: its first sequence number, and its key.
type Written = (Sequence, Vec<u8>);

#[derive(Default)]
struct Log {
    last: Sequence,
    groups: Vec<Vec<Written>>,
    applied: Vec<Written>,
    appends: usize,
    /// Which append fails; 0: none.
    fail_at: usize,
    /// Keys of the group whose append failed.
    failed: Vec<Vec<u8>>,
}

/// What the first writer waits for, if it waits for anything.
#[derive(Default)]
struct Room {
    is_there: Mutex<bool>,
    comes: Condvar,
}

struct Target {
    /// Only where there is a room: the model that this is in.
    model: OnceLock<Weak<Model>>,
    room: Option<Room>,
    published: AtomicU64,
    /// Rows applied, for readers to compare with what is published.
    applied: AtomicU64,
    /// How many are between the append of their group and its publication, or in an exclusive section.
    inside: AtomicU64,
}

impl Target {
    fn enter(&self) {
        assert_eq!(self.inside.swap(1, Ordering::Relaxed), 0, "two hold the token");
    }

    fn leave(&self) {
        assert_eq!(self.inside.swap(0, Ordering::Relaxed), 1);
    }

    /// What a reader does: whatever is published is there.
    fn look(&self) -> Sequence {
        let published = self.published.load(Ordering::Acquire);
        assert!(
            self.applied.load(Ordering::Relaxed) >= published,
            "published before it was applied"
        );
        published
    }
}

fn would_wait() -> Error {
    Error::new(ErrorKind::Retry, "there is no room yet")
}

fn key(batch: &RawBatch) -> Vec<u8> {
    let entry = batch.iter().next().expect("one row").expect("a sound batch");
    entry.key.to_vec()
}

impl CommitTarget for Target {
    type Token = Log;

    fn make_room(&self, _: &mut Log, _: usize, no_wait: bool) -> Result<()> {
        let Some(room) = &self.room else {
            return Ok(());
        };
        let mut is_there = room.is_there.lock();
        if *is_there {
            return Ok(());
        }
        if no_wait {
            return Err(would_wait());
        }
        let model = self.model.get().and_then(Weak::upgrade);
        let model = model.expect("the model");
        let _stall = model.pipeline.stall(would_wait());
        while !*is_there {
            room.comes.wait(&mut is_there);
        }
        Ok(())
    }

    fn check(&self, _: &mut Log, request: &Request) -> Result<()> {
        if key(&request.batch) == b"refused" {
            return Err(Error::invalid("refused"));
        }
        Ok(())
    }

    fn log(&self, log: &mut Log, group: &[Request]) -> Result<()> {
        self.enter();
        let group = group.iter().filter(|request| request.batch.sequence() != 0);
        let group: Vec<Written> = group
            .map(|request| (request.batch.sequence(), key(&request.batch)))
            .collect();
        log.appends += 1;
        if log.appends == log.fail_at {
            log.failed = group.into_iter().map(|(_, key)| key).collect();
            self.leave();
            return Err(Error::new(ErrorKind::Io, "disk on fire"));
        }
        log.groups.push(group);
        Ok(())
    }

    fn apply(&self, log: &mut Log, request: &mut Request) -> Result<()> {
        let batch = &request.batch;
        log.applied.push((batch.sequence(), key(batch)));
        self.applied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn last_sequence(&self, log: &Log) -> Sequence {
        log.last
    }

    fn publish(&self, log: &mut Log, sequence: Sequence) {
        assert!(sequence > log.last, "published in order");
        log.last = sequence;
        self.published.store(sequence, Ordering::Release);
        self.leave();
    }
}

struct Model {
    pipeline: Pipeline<Target>,
    target: Target,
}

impl Model {
    /// A pipeline over a log whose append number `fail_at` fails (0: none does).
    fn new(fail_at: usize) -> Arc<Self> {
        Self::with_room(fail_at, None)
    }

    /// Writers wait for the room, if one is given.
    fn with_room(fail_at: usize, room: Option<Room>) -> Arc<Self> {
        let model = Arc::new(Self {
            pipeline: Pipeline::new(Log {
                fail_at,
                ..Log::default()
            }),
            target: Target {
                published: AtomicU64::new(0),
                applied: AtomicU64::new(0),
                inside: AtomicU64::new(0),
                model: OnceLock::new(),
                room,
            },
        });
        assert!(model.target.model.set(Arc::downgrade(&model)).is_ok());
        model
    }

    fn make_room(&self) {
        let room = self.target.room.as_ref().expect("a room");
        *room.is_there.lock() = true;
        room.comes.notify_all();
    }

    /// Writes a row; if that succeeds, its sequence number, which is visible by then.
    fn write(&self, key: &[u8]) -> Option<Sequence> {
        self.write_with(key, false).ok()
    }

    fn write_with(&self, key: &[u8], no_wait: bool) -> Result<Sequence> {
        let mut batch = RawBatch::default();
        batch.push(0, ValueKind::Put, key, b"").expect("a small row");
        let request = Request {
            batch,
            prepared: None,
            durability: Durability::Buffered,
            no_wait,
        };
        let (batch, result) = self.pipeline.commit(&self.target, request);
        let sequence = batch.expect("the batch comes back").sequence();
        result?;
        assert!(self.target.look() >= sequence, "visible on return");
        Ok(sequence)
    }

    /// The writes that succeeded, and no others, were logged once and applied once, in the order of their numbers,
    /// which have no gaps.
    fn check(&self, succeeded: &[(&[u8], Sequence)]) {
        let mut expected: Vec<Written> = succeeded
            .iter()
            .map(|(key, sequence)| (*sequence, key.to_vec()))
            .collect();
        expected.sort();
        assert!(
            expected
                .iter()
                .map(|(sequence, _)| *sequence)
                .eq(1..=expected.len() as u64)
        );
        self.pipeline.exclusive(|log| {
            assert_eq!(log.applied, expected);
            assert_eq!(log.groups.concat(), expected);
            assert_eq!(log.last, expected.len() as u64);
        });
        assert_eq!(self.target.look(), expected.len() as u64);
    }
}

type Writer = ::loom::thread::JoinHandle<Option<Sequence>>;

fn writer(model: &Arc<Model>, key: &'static [u8]) -> Writer {
    let model = Arc::clone(model);
    ::loom::thread::spawn(move || model.write(key))
}

/// Runs one writer for each key, the first of them on this thread, and gives those that succeeded.
fn run(model: &Arc<Model>, keys: &[&'static [u8]]) -> Vec<(&'static [u8], Sequence)> {
    let (first, others) = keys.split_first().expect("a writer");
    let others: Vec<(&'static [u8], Writer)> = others.iter().map(|key| (*key, writer(model, key))).collect();
    let own = model.write(first).map(|sequence| (*first, sequence));
    let others = others.into_iter().filter_map(|(key, writer)| {
        let sequence = writer.join().expect("a writer")?;
        Some((key, sequence))
    });
    own.into_iter().chain(others).collect()
}

#[test]
fn two_writers_twice_and_the_order_of_each_is_kept() {
    ::loom::model(|| {
        let model = Model::new(0);
        let other = {
            let model = Arc::clone(&model);
            ::loom::thread::spawn(move || {
                (
                    model.write(b"a1").expect("written"),
                    model.write(b"a2").expect("written"),
                )
            })
        };
        let b1 = model.write(b"b1").expect("written");
        let b2 = model.write(b"b2").expect("written");
        let (a1, a2) = other.join().expect("the other writer");
        assert!(a1 < a2 && b1 < b2);
        model.check(&[(b"a1", a1), (b"a2", a2), (b"b1", b1), (b"b2", b2)]);
    });
}

#[test]
fn three_writers_are_all_served() {
    ::loom::model(|| {
        let model = Model::new(0);
        let written = run(&model, &[b"a", b"b", b"c"]);
        assert_eq!(written.len(), 3);
        model.check(&written);
    });
}

#[test]
fn what_a_group_has_no_room_for_is_left_to_the_next() {
    let largest = Arc::new(std::sync::Mutex::new((0, 0)));
    let seen = Arc::clone(&largest);
    ::loom::model(move || {
        let model = Model::new(0);
        let written = run(&model, &[b"a", b"b", b"c", b"d"]);
        assert_eq!(written.len(), 4);
        model.check(&written);
        let groups: Vec<usize> = model
            .pipeline
            .exclusive(|log| log.groups.iter().map(Vec::len).collect());
        assert!(groups.iter().all(|rows| *rows <= 2), "{groups:?}");
        let mut seen = seen.lock().expect("a count");
        let pairs = groups.iter().filter(|rows| **rows == 2).count();
        *seen = (seen.0.max(pairs), seen.1.max(groups.len()));
    });
    let largest = *largest.lock().expect("a count");
    assert_eq!(
        largest,
        (1, 4),
        "groups of two and groups of one were among the runs"
    );
}

#[test]
fn an_exclusive_section_is_alone() {
    ::loom::model(|| {
        let model = Model::new(0);
        let others = [writer(&model, b"a"), writer(&model, b"b")];
        let last = model.pipeline.exclusive(|log| {
            model.target.enter();
            let last = log.last;
            assert_eq!(model.target.look(), last, "nothing is half done");
            model.target.leave();
            last
        });
        let [a, b] = others.map(|writer| writer.join().expect("a writer").expect("written"));
        model.check(&[(b"a", a), (b"b", b)]);
        assert!(last <= 2);
    });
}

#[test]
fn readers_see_numbers_rise_and_only_what_was_applied() {
    ::loom::model(|| {
        let model = Model::new(0);
        let others = [writer(&model, b"a"), writer(&model, b"b")];
        let first = model.target.look();
        assert!(first <= model.target.look());
        let [a, b] = others.map(|writer| writer.join().expect("a writer").expect("written"));
        model.check(&[(b"a", a), (b"b", b)]);
    });
}

/// Writers, of whose groups the append number `fail_at` fails; gives how large the failed groups were.
fn fail_append(fail_at: usize, keys: &'static [&'static [u8]]) -> BTreeSet<usize> {
    let sizes = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&sizes);
    ::loom::model(move || {
        let model = Model::new(fail_at);
        let written = run(&model, keys);
        let failed: Vec<Vec<u8>> = keys
            .iter()
            .filter(|key| written.iter().all(|(other, _)| other != *key))
            .map(|key| key.to_vec())
            .collect();
        model.pipeline.exclusive(|log| {
            log.failed.sort();
            assert_eq!(log.failed, failed);
        });
        // The numbers of the failed group went to the next: this finds no gap.
        model.check(&written);
        seen.lock().expect("a set").insert(failed.len());
    });
    let sizes = sizes.lock().expect("a set");
    sizes.clone()
}

#[test]
fn a_failed_append_fails_its_group_and_no_other() {
    let sizes = fail_append(1, &[b"a", b"b", b"c"]);
    assert_eq!(sizes, BTreeSet::from([1]), "the first to come is alone");
    let sizes = fail_append(2, &[b"a", b"b", b"c"]);
    assert_eq!(
        sizes,
        BTreeSet::from([1]),
        "a group has room for one behind its leader's own"
    );
    let sizes = fail_append(3, &[b"a", b"b", b"c", b"d"]);
    assert_eq!(
        sizes,
        BTreeSet::from([1, 2]),
        "an appointed leader takes one more along"
    );
}

#[test]
fn a_refused_request_fails_alone() {
    ::loom::model(|| {
        let model = Model::new(0);
        let written = run(&model, &[b"a", b"refused", b"c"]);
        let mut keys: Vec<&[u8]> = written.iter().map(|(key, _)| *key).collect();
        keys.sort();
        assert_eq!(keys, [b"a", b"c"]);
        model.check(&written);
    });
}

/// The room comes only when who would not wait has its answer.
#[test]
fn who_would_not_wait_does_not_wait_behind_those_who_do() {
    ::loom::model(|| {
        let model = Model::with_room(0, Some(Room::default()));
        let others = [writer(&model, b"a"), writer(&model, b"b")];
        let refused = model.write_with(b"c", true).expect_err("there is no room");
        assert_eq!(refused.kind(), ErrorKind::Retry);
        model.make_room();
        let [a, b] = others.map(|writer| writer.join().expect("a writer").expect("written"));
        let c = model.write_with(b"c", true).expect("there is room");
        model.check(&[(b"a", a), (b"b", b), (b"c", c)]);
    });
}
