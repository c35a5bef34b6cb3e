//! A listener that keeps what it is told, reads the database at every call, and checks the order of it all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, OnceLock};

use esker::{
    BackgroundError, BackgroundErrorOver, CheckpointMade, CompactionBegun, CompactionEnded, DataFileKind, Db,
    EventListener, EventsLost, FamilyCreated, FamilyDropped, FileCause, FileCreated, FileDeleted, FlushBegun,
    FlushEnded, JobOutcome, MemtableSealed, Moment, SnapshotFreed, TablesDropped, TablesIngested,
    WriteStallChanged,
};

macro_rules! recorder {
    ($($method:ident: $event:ident,)*) => {
        #[derive(Clone, Debug)]
        pub enum Noted { $($event($event)),* }

        impl EventListener for Recorder {
            $(fn $method(&self, moment: &Moment, event: &$event) {
                self.take(moment, Noted::$event(event.clone()));
            })*
        }
    };
}

recorder! {
    flush_begun: FlushBegun,
    flush_ended: FlushEnded,
    compaction_begun: CompactionBegun,
    compaction_ended: CompactionEnded,
    file_created: FileCreated,
    file_deleted: FileDeleted,
    memtable_sealed: MemtableSealed,
    write_stall_changed: WriteStallChanged,
    background_error: BackgroundError,
    background_error_over: BackgroundErrorOver,
    tables_ingested: TablesIngested,
    tables_dropped: TablesDropped,
    checkpoint_made: CheckpointMade,
    family_created: FamilyCreated,
    family_dropped: FamilyDropped,
    snapshot_freed: SnapshotFreed,
    events_lost: EventsLost,
}

#[derive(Default)]
pub struct Recorder {
    told: Mutex<Vec<(Moment, Noted)>>,
    changed: Condvar,
    /// Read at every call, once it is there.
    pub db: OnceLock<Db>,
}

impl Recorder {
    fn take(&self, moment: &Moment, noted: Noted) {
        if let Some(db) = self.db.get() {
            // Locks that are held would show here.
            assert!(db.stats().events_told() < moment.number);
            // Closed by now, or what anybody would read.
            if let Ok(value) = db.get(b"key") {
                assert!(value.is_none_or(|value| !value.is_empty()));
            }
        }
        self.told.lock().unwrap().push((*moment, noted));
        self.changed.notify_all();
    }

    pub fn told(&self) -> Vec<(Moment, Noted)> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until an event is told that `wanted` takes.
    pub fn wait_for(&self, wanted: impl Fn(&Noted) -> bool) {
        let mut told = self.told.lock().unwrap();
        while !told.iter().any(|(_, noted)| wanted(noted)) {
            told = self.changed.wait(told).unwrap();
        }
    }

    /// What was told since the last time, in order.
    pub fn take_all(&self, db: &Db) -> Vec<Noted> {
        db.wait_for_listeners().unwrap();
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        told.into_iter().map(|(_, noted)| noted).collect()
    }
}

trait Told {
    fn events_told(&self) -> u64;
}

impl Told for esker::Stats {
    fn events_told(&self) -> u64 {
        let found = self.counters.iter().find(|(name, _)| *name == "events_told");
        found.unwrap().1
    }
}

/// The rules of the order, on all that was told from the opening of a database on. Gives the files that are there at the end,
/// by number, with their length.
pub fn check_order(told: &[(Moment, Noted)]) -> BTreeMap<u64, u64> {
    let mut files = BTreeMap::new();
    let mut kinds: BTreeMap<u64, DataFileKind> = BTreeMap::new();
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut sealed = 0_usize;
    let mut dropped = BTreeSet::new();
    let mut running: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    for (i, (moment, noted)) in told.iter().enumerate() {
        assert_eq!(moment.number, i as u64 + 1, "{noted:?}");
        if i > 0 {
            let before = &told[i - 1].0;
            assert!(before.monotonic <= moment.monotonic && before.unix_seconds <= moment.unix_seconds);
        }
        match noted {
            Noted::MemtableSealed(event) => {
                assert!(!dropped.contains(&event.family.id), "{event:?}");
                sealed += 1;
            }
            Noted::FlushBegun(event) => {
                assert!(begun.insert(event.job), "{event:?}");
                assert!((1..=sealed).contains(&event.memtables), "{event:?}");
            }
            Noted::FlushEnded(event) => {
                assert!(begun.contains(&event.job) && ended.insert(event.job), "{event:?}");
                let written = running.remove(&event.job).unwrap_or_default();
                assert_eq!(
                    (
                        event.written.tables + event.written.blob_files,
                        event.written.bytes
                    ),
                    written
                );
                if let JobOutcome::FamilyDropped = event.outcome {
                    assert!(dropped.contains(&event.family.id), "{event:?}");
                }
            }
            Noted::CompactionBegun(event) => {
                assert!(begun.insert(event.input.job), "{event:?}");
            }
            Noted::CompactionEnded(event) => {
                let job = event.input.job;
                assert!(begun.contains(&job) && ended.insert(job), "{event:?}");
                let written = running.remove(&job).unwrap_or_default();
                assert_eq!(
                    (
                        event.written.tables + event.written.blob_files,
                        event.written.bytes
                    ),
                    written
                );
                assert!(!event.input.is_move || written == (0, 0));
            }
            Noted::FileCreated(event) => {
                assert!(!dropped.contains(&event.family.id), "{event:?}");
                assert!(files.insert(event.number, event.bytes).is_none(), "{event:?}");
                kinds.insert(event.number, event.kind);
                assert_eq!(event.level.is_some(), event.kind == DataFileKind::Table);
                if let FileCause::Flush(job) | FileCause::Compaction(job) = event.cause {
                    assert!(begun.contains(&job) && !ended.contains(&job), "{event:?}");
                    let written = running.entry(job).or_default();
                    *written = (written.0 + 1, written.1 + event.bytes);
                }
            }
            Noted::FileDeleted(event) => {
                assert_eq!(files.remove(&event.number), Some(event.bytes), "{event:?}");
                assert_eq!(kinds.get(&event.number), Some(&event.kind));
            }
            Noted::FamilyDropped(event) => {
                assert!(dropped.insert(event.family.id), "{event:?}");
            }
            Noted::EventsLost(event) => panic!("{event:?}"),
            _ => {}
        }
    }
    assert_eq!(begun, ended, "every job has an end");
    assert!(running.is_empty(), "files without the end of their job");
    files
}
