//! Every interleaving of a writer, a job and readers of one family: real memtables, flushes, tables and reads, on a
//! simulated file system.
//!
//! One key is overwritten again and again; its value is the sequence number that wrote it. So a reader knows what it
//! must find, and a flush has something to drop.
//!
//! `scripts/loom.sh version::loom`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use esker_env::{Env, IoMode};

use super::{Buffer, Family, FileKind, FileMeta, Graveyard, Tables, Version, VersionEdit, View};
use crate::batch::RawBatch;
use crate::cache::BlockCache;
use crate::commit::{CommitTarget, Pipeline, Request};
use crate::error::Result;
use crate::flush;
use crate::key::{KeyOrder, Sequence, ValueKind};
use crate::memtable::{Memtable, MemtableArenaPool};
use crate::metrics::Metrics;
use crate::options::{ColumnFamilyOptions, Durability, MemtableKind};
use crate::read::{ReadOptions, get_from_view};
use crate::rewrite::{OutputContext, Throttle};
use crate::snapshot::{Published, SnapshotList};
use crate::sync::{AtomicU64, Ordering};

const DIR: &str = "db";
const KEY: &[u8] = b"k";

struct Model {
    env: Env,
    kind: MemtableKind,
    options: ColumnFamilyOptions,
    family: Family,
    tables: Tables,
    metrics: Arc<Metrics>,
    pool: Arc<MemtableArenaPool>,
    published: Published,
    snapshots: Arc<SnapshotList>,
    graveyard: Arc<Graveyard>,
    throttle: Throttle,
    next_file_number: std::sync::atomic::AtomicU64,
    /// Numbers of files that were removed.
    removed: std::sync::Mutex<Vec<u64>>,
    /// loom reorders only what it knows: an operation on this, before a reference is dropped, makes it try the drop at
    /// each of its places among the others' operations on it.
    step: AtomicU64,
}

impl Model {
    /// An empty family, of whose tables one may be open.
    fn new(kind: MemtableKind) -> Arc<Self> {
        Self::with_open_tables(kind, 1)
    }

    fn with_open_tables(kind: MemtableKind, open_max: usize) -> Arc<Self> {
        let env = Env::simulated(1).0;
        env.fs.create_dir_all(Path::new(DIR)).expect("a folder");
        let pool = MemtableArenaPool::new(0);
        let metrics = Arc::new(Metrics::default());
        let options = ColumnFamilyOptions::default();
        let version = Arc::new(Version::empty(KeyOrder::Bytewise, 2));
        let active = buffer(kind, &pool);
        Arc::new(Self {
            family: Family::new(0, "default".to_owned(), options.clone(), version, active),
            tables: Tables::new(
                Arc::clone(&env.fs),
                PathBuf::from(DIR),
                Arc::new(BlockCache::new(1 << 16)),
                Arc::clone(&metrics),
                IoMode::Buffered,
                1,
                open_max,
            ),
            env,
            kind,
            options,
            metrics,
            pool,
            published: Published::new(0),
            snapshots: Arc::default(),
            graveyard: Arc::default(),
            throttle: Throttle::default(),
            next_file_number: std::sync::atomic::AtomicU64::new(1),
            removed: std::sync::Mutex::default(),
            step: AtomicU64::new(0),
        })
    }

    fn insert(&self, sequence: Sequence) {
        let view = self.family.view();
        view.active
            .table
            .insert(sequence, ValueKind::Put, KEY, &[sequence as u8]);
    }

    /// What a leader does for a group of one row.
    fn put(&self, sequence: Sequence) {
        self.insert(sequence);
        self.published.advance(sequence);
    }

    /// What a leader does between two groups.
    fn seal(&self) {
        self.family.replace_active(buffer(self.kind, &self.pool));
    }

    fn write_table(&self, memtables: &[Arc<Memtable>], snapshots: Vec<Sequence>, level: usize) -> FileMeta {
        let context = OutputContext {
            env: &self.env,
            dir: Path::new(DIR),
            database_id: 1,
            family: crate::sstable::TableFamily::default(),
            options: &self.options,
            level,
            io: IoMode::Buffered,
            sync: false,
            next_file_number: &self.next_file_number,
            throttle: &self.throttle,
            blobs: None,
            cache: None,
            metrics: &self.metrics,
        };
        let mut files = flush::run(memtables, snapshots, &context, false).expect("a table");
        files.tables.pop().expect("rows were left")
    }

    /// What the flush thread does when it is woken; false: there was nothing to do. `early`: the snapshots, if they
    /// were looked at too early.
    fn flush(&self, early: Option<Vec<Sequence>>) -> bool {
        let sealed = self.family.view().sealed.clone();
        if sealed.is_empty() {
            return false;
        }
        let memtables: Vec<_> = sealed.iter().map(|buffer| Arc::clone(&buffer.table)).collect();
        let snapshots = early.unwrap_or_else(|| self.snapshots.sequences());
        let mut edit = VersionEdit::of(0);
        edit.add(0, Arc::new(self.write_table(&memtables, snapshots, 0)));
        self.family
            .install(&edit, &sealed, &self.graveyard)
            .expect("an edit that fits");
        true
    }

    /// After all threads: the last write is found, in memory and in as many tables as there were flushes.
    fn check_end(self: &Arc<Self>, last: Sequence, flushes: usize) {
        let end = thread(self, move |model| {
            assert_eq!(model.get(), last);
            assert_eq!(model.family.view().version.file_count(), flushes);
            model.seal();
            model.flush(None);
            assert_eq!(model.get(), last);
            let view = model.family.view();
            assert!(view.sealed.is_empty() && view.active.table.is_empty());
            assert_eq!(view.version.file_count(), flushes + 1);
        });
        join([end]);
    }

    /// What a compaction of the only table does: another, a level below, takes its place.
    fn compact(&self) {
        let old = self.family.view().version.level(0).files()[0].number;
        let rows = buffer(MemtableKind::Vector, &self.pool);
        rows.table.insert(1, ValueKind::Put, KEY, &[1]);
        let mut edit = VersionEdit::of(0);
        edit.remove(0, old);
        let new = self.write_table(&[Arc::clone(&rows.table)], Vec::new(), 1);
        edit.add(1, Arc::new(new));
        self.step();
        self.family
            .install(&edit, &[], &self.graveyard)
            .expect("an edit that fits");
        self.step();
    }

    /// What background threads do with files that nobody needs.
    fn bury(&self) {
        for dead in self.graveyard.drain() {
            let FileKind::Table(number) = dead.file else {
                panic!("only tables are made here, not {dead:?}");
            };
            if let Some(table) = dead.table {
                table.leave_cache();
            }
            self.env.fs.remove(&path(number)).expect("a file is removed once");
            self.removed.lock().expect("a list").push(number);
        }
    }

    fn step(&self) {
        self.step.fetch_add(1, Ordering::Relaxed);
    }

    /// The write that a reader of `view` sees at `sequence`.
    fn find(&self, view: &View, sequence: Sequence) -> Option<Sequence> {
        let options = ReadOptions::default();
        let value = get_from_view(view, &self.tables, KEY, sequence, &options, None, &self.metrics);
        value.expect("a read").map(|value| Sequence::from(value[0]))
    }

    /// What a get does.
    fn get(&self) -> Sequence {
        let before = self.published.get();
        let (view, sequence) = self.family.pin(|| self.published.get());
        let found = self.find(&view, sequence).expect("the key always has a value");
        assert!(
            (before..=sequence).contains(&found),
            "{before} <= {found} <= {sequence}"
        );
        found
    }
}

fn buffer(kind: MemtableKind, pool: &Arc<MemtableArenaPool>) -> Arc<Buffer> {
    let table = Memtable::new(kind, KeyOrder::Bytewise, 0, 64 << 10, pool);
    Arc::new(Buffer::new(table, 1))
}

fn path(number: u64) -> PathBuf {
    FileKind::Table(number).path(Path::new(DIR))
}

/// A thread of a model, with a stack on which tables can be read and written.
fn thread<R: Send + 'static>(
    model: &Arc<Model>,
    body: impl FnOnce(&Model) -> R + Send + 'static,
) -> ::loom::thread::JoinHandle<R> {
    let model = Arc::clone(model);
    ::loom::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || body(&model))
        .expect("a thread")
}

fn join<const N: usize>(threads: [::loom::thread::JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().expect("a thread of the model");
    }
}

/// A reader beside a writer whose memtable is sealed and flushed, and who goes on in the next.
fn read_beside_flush(kind: MemtableKind) {
    ::loom::model(move || {
        let model = Model::new(kind);
        model.put(1);
        let writer = thread(&model, |model| {
            model.put(2);
            model.seal();
            assert!(model.flush(None));
            model.put(3);
        });
        let reader = thread(&model, |model| {
            let first = model.get();
            assert!(first <= model.get(), "reads of one thread go forward");
        });
        join([writer, reader]);
    });
}

#[test]
fn a_read_beside_a_flush_finds_what_was_published() {
    read_beside_flush(MemtableKind::Vector);
}

#[test]
fn a_read_beside_a_flush_of_an_ordered_memtable() {
    read_beside_flush(MemtableKind::Ordered);
}

#[test]
fn writer_flush_and_reader_at_once() {
    ::loom::model(|| {
        let model = Model::new(MemtableKind::Vector);
        model.put(1);
        let writer = thread(&model, |model| {
            model.put(2);
            model.seal();
            model.put(3);
        });
        let flush = thread(&model, |model| model.flush(None));
        let reader = thread(&model, |model| {
            model.get();
        });
        join([writer, reader]);
        let flushed = flush.join().expect("the flush");
        model.check_end(3, usize::from(flushed));
    });
}

#[test]
fn seals_beside_a_flush_are_not_undone() {
    ::loom::model(|| {
        let model = Model::new(MemtableKind::Vector);
        model.put(1);
        let writer = thread(&model, |model| {
            model.seal();
            model.put(2);
            model.seal();
            model.put(3);
        });
        let flush = thread(&model, |model| model.flush(None));
        join([writer]);
        let flushed = flush.join().expect("the flush");
        model.check_end(3, usize::from(flushed));
    });
}

/// The leader's side of the model: every group begins with a seal, if there is anything to be sealed.
impl CommitTarget for Model {
    type Token = Sequence;

    fn make_room(&self, _: &mut Sequence, _: usize, _: bool) -> Result<()> {
        if !self.family.view().active.table.is_empty() {
            self.seal();
        }
        Ok(())
    }

    fn check(&self, _: &mut Sequence, _: &Request) -> Result<()> {
        Ok(())
    }

    fn log(&self, _: &mut Sequence, _: &[Request]) -> Result<()> {
        Ok(())
    }

    fn apply(&self, _: &mut Sequence, request: &mut Request) -> Result<()> {
        self.insert(request.batch.sequence());
        Ok(())
    }

    fn last_sequence(&self, last: &Sequence) -> Sequence {
        *last
    }

    fn publish(&self, last: &mut Sequence, sequence: Sequence) {
        *last = sequence;
        self.published.advance(sequence);
    }
}

#[test]
fn two_writers_in_groups_read_their_own_beside_a_flush() {
    ::loom::model(|| {
        let model = Model::new(MemtableKind::Vector);
        model.put(1);
        let pipeline = Arc::new(Pipeline::<Model>::new(1));
        let writers = [(); 2].map(|()| {
            let pipeline = Arc::clone(&pipeline);
            thread(&model, move |model| {
                let mut batch = RawBatch::default();
                batch.push(0, ValueKind::Put, KEY, b"").expect("a small row");
                let request = Request {
                    batch,
                    prepared: None,
                    durability: Durability::None,
                    no_wait: false,
                };
                let (batch, result) = pipeline.commit(model, request);
                result.expect("a write");
                let own = batch.expect("the batch comes back").sequence();
                assert!(model.get() >= own, "a writer reads its own write");
            })
        });
        let flush = thread(&model, |model| model.flush(None));
        join(writers);
        let flushed = flush.join().expect("the flush");
        assert_eq!(model.published.get(), 3);
        model.check_end(3, usize::from(flushed));
    });
}

/// Runs `body`, a reader that does something in the wrong order, beside a flush, and says whether any interleaving
/// made it miss its row: the models above would notice.
fn is_lost_by(body: fn(&Model) -> Option<Sequence>, early: bool) -> bool {
    let lost = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&lost);
    ::loom::model(move || {
        let model = Model::new(MemtableKind::Vector);
        model.put(1);
        let writer = thread(&model, move |model| {
            let early = early.then(|| model.snapshots.sequences());
            model.put(2);
            model.seal();
            model.flush(early);
        });
        let seen = Arc::clone(&seen);
        let reader = thread(&model, move |model| {
            if body(model).is_none() {
                seen.store(true, Ordering::Relaxed);
            }
        });
        join([writer, reader]);
    });
    lost.load(Ordering::Relaxed)
}

fn at_snapshot(model: &Model) -> Option<Sequence> {
    let snapshot = model.snapshots.acquire(|| model.published.get());
    let (view, ()) = model.family.pin(|| ());
    let found = model.find(&view, snapshot.sequence());
    assert!(found.is_none_or(|found| found == snapshot.sequence()));
    found
}

#[test]
fn a_number_read_before_the_view_is_pinned_loses_rows() {
    let wrong = |model: &Model| {
        let sequence = model.published.get();
        model.find(&model.family.view(), sequence)
    };
    assert!(is_lost_by(wrong, false));
    let right = |model: &Model| {
        let (view, sequence) = model.family.pin(|| model.published.get());
        model.find(&view, sequence)
    };
    assert!(!is_lost_by(right, false));
}

#[test]
fn snapshots_looked_at_before_the_inputs_are_chosen_lose_rows() {
    assert!(is_lost_by(at_snapshot, true));
    assert!(!is_lost_by(at_snapshot, false));
}

#[test]
fn two_readers_open_a_table_once() {
    ::loom::model(|| {
        let model = Model::with_open_tables(MemtableKind::Vector, 2);
        let setup = thread(&model, |model| {
            model.put(1);
            model.seal();
            model.flush(None);
        });
        join([setup]);
        let readers = [(); 2].map(|()| thread(&model, |model| assert_eq!(model.get(), 1)));
        join(readers);
        assert_eq!(model.tables.open_counts(), (1, 0));
    });
}

#[test]
fn a_file_is_removed_once_and_never_under_a_reader() {
    let by_reader = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&by_reader);
    ::loom::model(move || {
        let model = Model::new(MemtableKind::Vector);
        let setup = thread(&model, |model| {
            model.put(1);
            model.seal();
            model.flush(None);
        });
        join([setup]);
        let compaction = thread(&model, |model| {
            model.compact();
            // Opens the new table, and so closes the old one, read or not: one may be open.
            assert_eq!(model.get(), 1);
            model.bury();
        });
        let seen = Arc::clone(&seen);
        let reader = thread(&model, move |model| {
            let (view, sequence) = model.family.pin(|| model.published.get());
            model.step();
            assert_eq!(model.find(&view, sequence), Some(1));
            for (_, file) in view.version.files() {
                assert!(model.env.fs.exists(&path(file.number)).expect("an answer"));
            }
            model.step();
            drop(view);
            if !model.graveyard.is_empty() {
                seen.store(true, Ordering::Relaxed);
                model.bury();
            }
        });
        join([compaction, reader]);
        model.bury();
        let left: Vec<u64> = model
            .family
            .view()
            .version
            .files()
            .map(|(_, file)| file.number)
            .collect();
        assert_eq!(*model.removed.lock().expect("a list"), [1]);
        assert_eq!(left, [2]);
        assert!(model.env.fs.exists(&path(2)).expect("an answer"));
    });
    assert!(
        by_reader.load(Ordering::Relaxed),
        "in some run the reader was the last holder"
    );
}
