//! Event listeners through the database: every event with its figures, their order, and listeners that misbehave.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

mod recorder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use esker::{
    BackgroundTask, ColumnFamilyOptions, CompactionReason, DataFileKind, Db, ErrorKind, EventListener,
    FileCause, FlushEnded, IngestOptions, JobOutcome, MemtableSealed, Moment, Opener, Options,
    TableFileWriter, WriteStall,
};
use esker_env::Env;
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use recorder::{Noted, Recorder, check_order};

fn family_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        memtable_bytes: 16 << 10,
        memtables_max: 2,
        file_bytes: 32 << 10,
        level_base_bytes: 64 << 10,
        level0_compaction_trigger: 2,
        level0_files_max: 4,
        ..ColumnFamilyOptions::default()
    }
}

fn options() -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        compaction_threads: 1,
        default_column_family: family_options(),
        ..Options::default()
    }
}

fn open_with(env: &Env, listeners: &[Arc<dyn EventListener>]) -> Db {
    let opener = Opener::new(options()).env(env.clone());
    listeners
        .iter()
        .fold(opener, |opener, listener| opener.listener(Arc::clone(listener)))
        .open("/db")
        .unwrap()
}

/// A database whose events are recorded by a listener that reads at each.
fn recorded(env: &Env) -> (Db, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let db = open_with(env, &[Arc::clone(&recorder) as Arc<dyn EventListener>]);
    recorder.db.set(db.clone()).unwrap();
    (db, recorder)
}

/// The same, but that the listener reads nothing: whoever reads holds files for a moment, and those that are dead go later.
fn only_recorded(env: &Env) -> (Db, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let db = open_with(env, &[Arc::clone(&recorder) as Arc<dyn EventListener>]);
    (db, recorder)
}

fn counter(db: &Db, name: &str) -> u64 {
    let counters = db.stats().counters;
    counters.iter().find(|(known, _)| *known == name).unwrap().1
}

/// Tables and blob files in the folder, by number, with their length.
fn files(env: &Env) -> BTreeMap<u64, u64> {
    let dir = Path::new("/db");
    let names = env.fs.list(dir).unwrap().into_iter();
    names
        .filter(|name| name.ends_with(".sst") || name.ends_with(".blob"))
        .map(|name| {
            let number = name.split('.').next().unwrap().parse().unwrap();
            (number, env.fs.file_len(&dir.join(name)).unwrap())
        })
        .collect()
}

#[test]
fn a_flush_is_told_with_its_figures() {
    let env = Env::simulated(1).0;
    let (db, recorder) = recorded(&env);
    for i in 0..5_u32 {
        db.put(&i.to_be_bytes(), &[7; 100]).unwrap();
        db.put(&(100 + i).to_be_bytes(), &[7; 1000]).unwrap();
    }
    db.flush().unwrap();
    let told = recorder.take_all(&db);
    let [
        Noted::MemtableSealed(sealed),
        Noted::FlushBegun(begun),
        Noted::FileCreated(blob),
        Noted::FileCreated(table),
        Noted::FlushEnded(ended),
    ] = &told[..]
    else {
        panic!("{told:#?}");
    };
    assert_eq!((sealed.family.id, sealed.family.name.as_str()), (0, "default"));
    assert_eq!((sealed.rows, begun.rows, begun.memtables), (10, 10, 1));
    assert!(sealed.bytes > 5_500 && begun.bytes == sealed.bytes);
    assert_eq!((blob.kind, blob.level, blob.rows), (DataFileKind::Blob, None, 5));
    assert_eq!(
        (table.kind, table.level, table.rows),
        (DataFileKind::Table, Some(0), 10)
    );
    assert_eq!(table.cause, FileCause::Flush(begun.job));
    let stats = db.stats();
    assert_eq!((blob.bytes, table.bytes), (stats.blob_bytes, stats.table_bytes));
    assert_eq!(ended.job, begun.job);
    assert!(matches!(ended.outcome, JobOutcome::Done), "{ended:?}");
    let written = ended.written;
    assert_eq!((written.tables, written.blob_files, written.rows), (1, 1, 10));
    assert_eq!(written.bytes, stats.blob_bytes + stats.table_bytes);
    assert_eq!(written.bytes, counter(&db, "flush_bytes"));
    assert!(ended.took > Duration::ZERO);
    db.close().unwrap();
}

#[test]
fn compactions_are_told_with_reason_levels_and_figures() {
    let env = Env::simulated(1).0;
    let (db, recorder) = only_recorded(&env);
    db.pause_background_work();
    for round in 0..2_u8 {
        for i in 0..50_u32 {
            db.put(&i.to_be_bytes(), &[round; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    recorder.take_all(&db);
    let before = db.stats().table_bytes;
    db.compact_range(None, None).unwrap();
    let told = recorder.take_all(&db);
    let [
        Noted::CompactionBegun(begun),
        Noted::FileCreated(created),
        Noted::CompactionEnded(ended),
        Noted::FileDeleted(first),
        Noted::FileDeleted(second),
    ] = &told[..]
    else {
        panic!("{told:#?}");
    };
    let input = &begun.input;
    assert_eq!(input.reason, CompactionReason::Manual);
    assert_eq!((input.level_from, input.level_to, input.is_move), (0, 6, false));
    assert_eq!((input.tables, input.rows, input.bytes), (2, 100, before));
    assert_eq!((created.level, created.rows), (Some(6), 50));
    assert_eq!(created.cause, FileCause::Compaction(input.job));
    assert_eq!((ended.input.job, ended.written.rows), (input.job, 50));
    assert_eq!(ended.written.bytes, db.stats().table_bytes);
    assert_eq!(first.bytes + second.bytes, before);
    // Twice what was read was counted once.
    let read = counter(&db, "compaction_read_bytes");
    assert!(read <= before && read > before / 2, "{read} of {before} bytes");
    assert_eq!(counter(&db, "compaction_write_bytes"), ended.written.bytes);
    assert_eq!(counter(&db, "files_removed"), 2);
    // What the engine does by itself has other reasons.
    for i in 100..150_u32 {
        db.put(&i.to_be_bytes(), &[7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.put(&160_u32.to_be_bytes(), &[7; 100]).unwrap();
    db.flush().unwrap();
    recorder.take_all(&db);
    db.resume_background_work();
    db.wait_idle().unwrap();
    let told = recorder.take_all(&db);
    let Some(Noted::CompactionBegun(begun)) = told.first() else {
        panic!("{told:#?}");
    };
    assert_eq!(begun.input.reason, CompactionReason::Level0Full);
    db.close().unwrap();
}

#[test]
fn a_move_writes_no_file() {
    let env = Env::simulated(1).0;
    let (db, recorder) = recorded(&env);
    db.pause_background_work();
    db.set_family_options(&db.default_column_family(), &[("level0_compaction_trigger", "1")])
        .unwrap();
    db.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    recorder.take_all(&db);
    db.resume_background_work();
    db.wait_idle().unwrap();
    let told = recorder.take_all(&db);
    let [Noted::CompactionBegun(begun), Noted::CompactionEnded(ended)] = &told[..] else {
        panic!("{told:#?}");
    };
    assert!(begun.input.is_move && ended.input.is_move);
    assert_eq!((ended.written.tables, ended.written.bytes), (0, 0));
    assert!(matches!(ended.outcome, JobOutcome::Done));
    assert_eq!(
        (counter(&db, "trivial_moves"), counter(&db, "compactions")),
        (1, 0)
    );
    db.close().unwrap();
}

#[test]
fn families_ingestion_dropped_tables_checkpoints_and_snapshots_are_told() {
    let env = Env::simulated(1).0;
    let (db, recorder) = only_recorded(&env);
    // A thread that looks for work would hold the dropped table for a moment, and it would go later.
    db.pause_background_work();
    let family = db.create_column_family("users", family_options()).unwrap();
    let path = PathBuf::from("/new.sst");
    let mut writer = TableFileWriter::create_on(&env, &path, &family_options()).unwrap();
    for i in 0..10_u32 {
        writer.put(&i.to_be_bytes(), &[7; 100]).unwrap();
    }
    writer.finish().unwrap();
    db.ingest(&[(family.clone(), vec![path])], &IngestOptions::default())
        .unwrap();
    let ingested_bytes = db.stats().table_bytes;
    let dir = PathBuf::from("/copy");
    let made = db.checkpoint(&dir).unwrap();
    let (old, new) = (db.snapshot(), {
        db.put(b"key", b"value").unwrap();
        db.snapshot()
    });
    drop(old);
    drop(new);
    db.delete_files_in_ranges(&family, &[(&[0; 4], &[255; 4])])
        .unwrap();
    db.drop_column_family(&family).unwrap();
    let told = recorder.take_all(&db);
    let [
        Noted::FamilyCreated(created),
        Noted::FileCreated(file),
        Noted::TablesIngested(ingested),
        Noted::CheckpointMade(checkpoint),
        Noted::SnapshotFreed(first),
        Noted::SnapshotFreed(second),
        Noted::TablesDropped(tables),
        Noted::FileDeleted(deleted),
        Noted::FamilyDropped(dropped),
    ] = &told[..]
    else {
        panic!("{told:#?}");
    };
    assert_eq!(
        (created.family.name.as_str(), created.family.id),
        ("users", family.id())
    );
    assert_eq!(
        (file.cause, file.rows, file.level),
        (FileCause::Ingestion, 10, Some(6))
    );
    assert_eq!((ingested.tables, ingested.sequence), (1, 1));
    assert_eq!(
        (ingested.bytes, file.bytes, tables.bytes),
        (ingested_bytes, ingested_bytes, ingested_bytes)
    );
    assert_eq!((&checkpoint.dir, checkpoint.sequence), (&dir, made.sequence));
    assert_eq!(checkpoint.linked_files, 1);
    assert_eq!((first.sequence, first.oldest_left), (1, Some(2)));
    assert_eq!((second.sequence, second.oldest_left), (2, None));
    assert_eq!((tables.tables, &tables.family), (1, &created.family));
    assert_eq!((deleted.number, deleted.bytes), (file.number, file.bytes));
    assert_eq!(dropped.family, created.family);
    for (name, count) in [
        ("tables_ingested", 1),
        ("ingested_bytes", ingested_bytes),
        ("tables_dropped", 1),
        ("dropped_bytes", ingested_bytes),
        ("checkpoints", 1),
        ("files_removed", 1),
        ("events_told", 9),
        ("events_lost", 0),
    ] {
        assert_eq!(counter(&db, name), count, "{name}");
    }
    db.close().unwrap();
}

#[test]
fn writers_that_are_held_back_and_stopped_are_told() {
    let env = Env::simulated(1).0;
    let (db, recorder) = recorded(&env);
    db.pause_background_work();
    let changes = |told: Vec<Noted>| {
        let changes = told.into_iter().filter_map(|noted| match noted {
            Noted::WriteStallChanged(event) => Some(event),
            _ => None,
        });
        changes.collect::<Vec<_>>()
    };
    // Files pile up in level 0.
    for i in 0..7_u32 {
        db.put(&i.to_be_bytes(), &[7; 100]).unwrap();
        db.flush().unwrap();
        env.clock.sleep(Duration::from_secs(10));
    }
    let told = changes(recorder.take_all(&db));
    let [change] = &told[..] else { panic!("{told:#?}") };
    assert_eq!(
        (change.before, change.now),
        (WriteStall::None, WriteStall::HeldBack)
    );
    assert!(change.pressure > 0.0);
    assert_eq!(change.family.as_ref().unwrap().name, "default");
    assert_eq!(db.stats().write_stall, WriteStall::HeldBack);
    // Memory is full, and nobody flushes.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..100_u32 {
                db.put(&i.to_be_bytes(), &[7; 400]).unwrap();
            }
        });
        let stopped = |noted: &Noted| matches!(noted, Noted::WriteStallChanged(event) if event.now == WriteStall::Stopped);
        recorder.wait_for(stopped);
        assert_eq!(db.stats().write_stall, WriteStall::Stopped);
        db.resume_background_work();
    });
    let told = changes(recorder.take_all(&db));
    assert_eq!(
        (told[0].before, told[0].now),
        (WriteStall::HeldBack, WriteStall::Stopped)
    );
    assert_eq!(told[0].family.as_ref().unwrap().id, 0);
    assert_ne!(told[1].now, WriteStall::Stopped);
    for pair in told.windows(2) {
        assert_eq!(pair[0].now, pair[1].before);
        assert_ne!(pair[0].now, pair[1].now);
    }
    // Debt is paid; a write notices it.
    db.compact_range(None, None).unwrap();
    env.clock.sleep(Duration::from_secs(60));
    db.put(b"last", b"value").unwrap();
    db.flush().unwrap();
    // The flush has told admission of it when it does not run any more.
    db.pause_background_work();
    db.put(b"last", b"value").unwrap();
    assert_eq!(db.stats().write_stall, WriteStall::None);
    let stall_us = counter(&db, "stall_us");
    let waits = db.stats().histograms;
    let (_, waits) = waits.iter().find(|(name, _)| *name == "stall_wait_us").unwrap();
    assert!(waits.count() > 0 && waits.sum_us == stall_us);
    db.close().unwrap();
}

#[test]
fn errors_are_told_and_that_they_are_over() {
    let (machine, fs) = Env::simulated(1);
    let faults = FaultFs::new(Arc::new(fs));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..machine
    };
    let (db, recorder) = recorded(&env);
    db.put(b"key", b"value").unwrap();
    faults.add(Rule::new(Op::Create, Fault::Eio).on_path(".sst"));
    // It fails, unless the next attempt comes first.
    let _ = db.flush();
    recorder.wait_for(|noted| matches!(noted, Noted::BackgroundErrorOver(_)));
    let told = recorder.take_all(&db);
    let [
        Noted::MemtableSealed(_),
        Noted::FlushBegun(first),
        Noted::FlushEnded(ended),
        Noted::BackgroundError(error),
        Noted::FlushBegun(second),
        Noted::FileCreated(file),
        Noted::FlushEnded(done),
        Noted::BackgroundErrorOver(over),
    ] = &told[..]
    else {
        panic!("{told:#?}");
    };
    let JobOutcome::Failed(cause) = &ended.outcome else {
        panic!("{ended:?}")
    };
    assert_eq!(
        (cause.kind(), ended.job, ended.written.tables),
        (ErrorKind::Io, first.job, 0)
    );
    assert_eq!((error.task, error.is_final), (BackgroundTask::Flush, false));
    assert_eq!(error.error.kind(), ErrorKind::Io);
    assert!(second.job > first.job && done.job == second.job);
    assert_eq!(file.cause, FileCause::Flush(second.job));
    assert_eq!(over.task, BackgroundTask::Flush);
    // A failed sync is final, and told once.
    faults.add(Rule::new(Op::Sync, Fault::FailedSync).on_path(".wal"));
    db.put(b"key", b"value").unwrap();
    assert_eq!(db.sync_wal().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.put(b"key", b"value").unwrap_err().kind(), ErrorKind::ReadOnly);
    let told = recorder.take_all(&db);
    let [Noted::BackgroundError(error)] = &told[..] else {
        panic!("{told:#?}");
    };
    assert_eq!((error.task, error.is_final), (BackgroundTask::Log, true));
    let _ = db.close();
}

#[test]
fn what_recovery_writes_is_told_and_a_database_opened_to_be_read_tells_nothing() {
    let env = Env::simulated(1).0;
    let db = Opener::new(Options::default())
        .env(env.clone())
        .open("/db")
        .unwrap();
    for i in 0..200_u32 {
        db.put(&i.to_be_bytes(), &[7; 300]).unwrap();
    }
    db.close().unwrap();
    let recorder = Arc::new(Recorder::default());
    let listener = || Arc::clone(&recorder) as Arc<dyn EventListener>;
    let read_only = Options {
        read_only: true,
        ..options()
    };
    let opener = Opener::new(read_only).env(env.clone()).listener(listener());
    let db = opener.open("/db").unwrap();
    drop(db.snapshot());
    db.close().unwrap();
    assert_eq!(recorder.told().len(), 0);
    // Memtables are smaller than the log by now.
    let db = open_with(&env, &[listener()]);
    db.close().unwrap();
    let told = recorder.told();
    // Before all that background work does.
    let recovered = told.iter().take_while(|(_, noted)| {
        matches!(noted, Noted::FileCreated(file) if file.cause == FileCause::Recovery && file.level == Some(0))
    });
    assert!(recovered.count() > 1);
    assert_eq!(check_order(&told), files(&env));
}

/// Four writers, compactions, and families that come and go: whatever runs beside what, the order holds, and at the end what
/// was created and not deleted is what is in the folder.
#[test]
fn the_order_holds_whatever_runs_beside_what() {
    let env = Env::simulated(7).0;
    let (db, recorder) = recorded(&env);
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..6_u32 {
                    let name = format!("family {writer}");
                    let family = db.create_column_family(&name, family_options()).unwrap();
                    for i in 0..300_u32 {
                        let key = (i * 7919 % 1000 + writer).to_be_bytes();
                        db.put_cf(&family, &key, &[round as u8; 200]).unwrap();
                        db.put(&key, &vec![round as u8; if i % 3 == 0 { 600 } else { 100 }])
                            .unwrap();
                    }
                    if round % 2 == 0 {
                        db.compact_range_cf(&family, None, None).unwrap();
                    }
                    db.drop_column_family(&family).unwrap();
                }
            });
        }
    });
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // Nobody reads while the last files go.
    db.wait_for_listeners().unwrap();
    let stats = db.stats();
    db.close().unwrap();
    let told = recorder.told();
    assert_eq!(check_order(&told), files(&env));
    let count = |wanted: fn(&Noted) -> bool| told.iter().filter(|(_, noted)| wanted(noted)).count() as u64;
    let counter = |name| stats.counters.iter().find(|(known, _)| *known == name).unwrap().1;
    let done = |noted: &Noted| matches!(noted, Noted::FlushEnded(event) if matches!(event.outcome, JobOutcome::Done));
    assert_eq!(count(done), counter("flushes"));
    let merged = |noted: &Noted| {
        matches!(noted, Noted::CompactionEnded(event)
            if matches!(event.outcome, JobOutcome::Done) && !event.input.is_move)
    };
    assert_eq!(count(merged), counter("compactions"));
    assert!(counter("compactions") > 10 && counter("flushes") > 100);
    let sealed = |noted: &Noted| matches!(noted, Noted::MemtableSealed(_));
    assert_eq!(count(sealed), counter("memtables_sealed"));
    let families = |noted: &Noted| matches!(noted, Noted::FamilyDropped(_));
    assert_eq!(count(families), 24);
}

/// Panics at every other event.
#[derive(Default)]
struct Panics(AtomicU64);

impl EventListener for Panics {
    fn flush_ended(&self, _: &Moment, event: &FlushEnded) {
        let calls = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(calls % 2 == 1, "after job {}", event.job);
    }
}

#[test]
fn a_listener_that_panics_is_counted_and_harms_nobody() {
    let env = Env::simulated(1).0;
    let (panics, recorder) = (Arc::new(Panics::default()), Arc::new(Recorder::default()));
    let db = open_with(
        &env,
        &[
            Arc::clone(&panics) as Arc<dyn EventListener>,
            Arc::clone(&recorder) as Arc<dyn EventListener>,
        ],
    );
    for round in 0..4_u8 {
        db.put(b"key", &[round]).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    db.wait_for_listeners().unwrap();
    assert_eq!(panics.0.load(Ordering::Relaxed), 4, "it is called again");
    assert_eq!(counter(&db, "listener_panics"), 2);
    let ended = |(_, noted): &&(Moment, Noted)| matches!(noted, Noted::FlushEnded(_));
    assert_eq!(recorder.told().iter().filter(ended).count(), 4);
    assert_eq!(db.get(b"key").unwrap().unwrap(), [3]);
    db.close().unwrap();
    check_order(&recorder.told());
}

/// Does to the database at every sealed memtable what a listener may do, and at the last one all that it may not forget.
#[derive(Default)]
struct Busy {
    db: OnceLock<Db>,
    refused: AtomicU64,
    closed: Mutex<Option<esker::Result<()>>>,
}

impl EventListener for Busy {
    fn memtable_sealed(&self, _: &Moment, event: &MemtableSealed) {
        let Some(db) = self.db.get().filter(|_| event.family.id == 0) else {
            return;
        };
        if db.wait_for_listeners().unwrap_err().kind() == ErrorKind::InvalidArgument {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        if event.rows == 2 {
            *self.closed.lock().unwrap() = Some(db.close());
            return;
        }
        let own = match db.column_family("own") {
            Ok(own) => own,
            Err(_) => db.create_column_family("own", family_options()).unwrap(),
        };
        db.put_cf(&own, b"key", b"value").unwrap();
        db.flush_cf(&own).unwrap();
        db.compact_range_cf(&own, None, None).unwrap();
        db.wait_idle().unwrap();
        assert!(db.stats().to_string().contains("flushes"));
    }
}

#[test]
fn a_listener_may_write_flush_compact_and_close() {
    let env = Env::simulated(1).0;
    let busy = Arc::new(Busy::default());
    let db = open_with(&env, &[Arc::clone(&busy) as Arc<dyn EventListener>]);
    assert!(busy.db.set(db.clone()).is_ok());
    for round in 0..3_u8 {
        db.put(b"key", &[round]).unwrap();
        db.flush().unwrap();
        db.wait_for_listeners().unwrap();
    }
    let own = db.column_family("own").unwrap();
    assert_eq!(db.get_cf(&own, b"key").unwrap().unwrap(), b"value");
    db.put(b"key", b"a").unwrap();
    db.put(b"key", b"b").unwrap();
    // Closed meanwhile, or not yet.
    let _ = db.flush();
    db.wait_for_listeners().unwrap();
    assert!(busy.closed.lock().unwrap().take().unwrap().is_ok());
    assert_eq!(busy.refused.load(Ordering::Relaxed), 4);
    assert_eq!(db.get(b"key").unwrap_err().kind(), ErrorKind::Closed);
    drop(own);
    let db = Opener::new(options()).env(env).open("/db").unwrap();
    assert_eq!(db.get(b"key").unwrap().unwrap(), b"b");
}

/// A listener that holds a database of its own keeps it alive; closing lets the listener go.
#[test]
fn closing_lets_listeners_go() {
    let env = Env::simulated(1).0;
    let (db, recorder) = recorded(&env);
    let weak = Arc::downgrade(&recorder);
    drop(recorder);
    db.put(b"key", b"value").unwrap();
    db.close().unwrap();
    assert!(weak.upgrade().is_none());
}
