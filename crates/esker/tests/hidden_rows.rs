//! Rows that iterators step over again and again are merged before anything else asks for it.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use esker::{CompactionEnded, CompactionReason, Db, EventListener, Moment, Opener, Options};
use esker_env::Env;

const ROWS: u32 = 20_000;

/// How many scans over [`ROWS`] hidden rows pay for a merge with as many others. A quarter of them are too few.
const SCANS: u32 = 14;

struct Ended(Mutex<Sender<CompactionReason>>);

impl EventListener for Ended {
    fn compaction_ended(&self, _: &Moment, event: &CompactionEnded) {
        // Who asked may have left.
        let _ = self.0.lock().unwrap().send(event.input.reason);
    }
}

/// A database of [`ROWS`] rows in one level, and the reasons of its compactions as they end.
fn open() -> (Db, Receiver<CompactionReason>) {
    let (sender, ended) = channel();
    let opener = Opener::new(Options::default()).env(Env::simulated(1).0);
    let db = opener
        .listener(Arc::new(Ended(Mutex::new(sender))))
        .open("/db")
        .unwrap();
    put(&db, 0);
    db.compact_range(None, None).unwrap();
    (db, ended)
}

fn put(db: &Db, version: u8) {
    for i in 0..ROWS {
        db.put(&i.to_be_bytes(), &[version; 20]).unwrap();
    }
}

fn scan(db: &Db, version: u8, forward: bool) {
    let mut iter = db.iter(Default::default()).unwrap();
    let mut count = 0;
    if forward {
        iter.seek_to_first()
    } else {
        iter.seek_to_last()
    }
    .unwrap();
    while iter.valid() {
        assert_eq!(iter.value(), [version; 20]);
        count += 1;
        if forward { iter.next() } else { iter.prev() }.unwrap();
    }
    assert_eq!(count, ROWS);
}

/// The reason of the next compaction that nobody asked for.
fn next(ended: &Receiver<CompactionReason>) -> CompactionReason {
    loop {
        let reason = ended.recv_timeout(Duration::from_secs(120)).unwrap();
        if reason != CompactionReason::Manual {
            return reason;
        }
    }
}

fn merges(db: &Db) -> u64 {
    let counters = db.stats().counters;
    let found = counters
        .iter()
        .find(|(name, _)| *name == "compactions_for_hidden_rows");
    found.unwrap().1
}

/// Rows of the memtable, and files of level 0.
fn above(db: &Db) -> (String, usize) {
    let rows = db
        .property(&db.default_column_family(), "entries-active-memtable")
        .unwrap();
    let levels = db.stats().families[0].levels.clone();
    (rows, levels[0].files)
}

#[test]
fn old_versions_under_a_memtable_are_merged_when_scans_have_paid_for_it() {
    for forward in [true, false] {
        let (db, ended) = open();
        put(&db, 1);
        for _ in 0..SCANS / 4 {
            scan(&db, 1, forward);
        }
        db.wait_idle().unwrap();
        assert_eq!((merges(&db), above(&db)), (0, (ROWS.to_string(), 0)));
        for _ in 0..SCANS {
            scan(&db, 1, forward);
        }
        assert_eq!(next(&ended), CompactionReason::HiddenRows);
        db.wait_idle().unwrap();
        assert_eq!((merges(&db), above(&db)), (1, ("0".into(), 0)));
        scan(&db, 1, forward);
    }
}

#[test]
fn tables_of_level_0_are_merged_before_there_are_many() {
    let (db, ended) = open();
    put(&db, 1);
    db.flush().unwrap();
    assert_eq!(above(&db), ("0".into(), 1));
    for _ in 0..SCANS {
        scan(&db, 1, true);
    }
    assert_eq!(next(&ended), CompactionReason::HiddenRows);
    db.wait_idle().unwrap();
    assert_eq!((merges(&db), above(&db)), (1, ("0".into(), 0)));
}

/// It stayed above, and was merged with all the rest once more a little later.
#[test]
fn a_memtable_goes_down_with_level_0() {
    let (db, ended) = open();
    put(&db, 1);
    db.flush().unwrap();
    for i in 0..ROWS / 4 {
        db.put(&i.to_be_bytes(), &[1; 20]).unwrap();
    }
    for _ in 0..SCANS {
        scan(&db, 1, true);
    }
    assert_eq!(next(&ended), CompactionReason::HiddenRows);
    db.wait_idle().unwrap();
    assert_eq!((merges(&db), above(&db)), (1, ("0".into(), 0)));
}

#[test]
fn what_a_snapshot_keeps_is_not_merged_again_and_again() {
    let (db, ended) = open();
    let before = db.snapshot();
    put(&db, 1);
    for _ in 0..SCANS {
        scan(&db, 1, true);
    }
    assert_eq!(next(&ended), CompactionReason::HiddenRows);
    // The old rows are still there, and a few new ones above them do not make a merge worth its price.
    for i in 0..ROWS / 20 {
        db.put(&i.to_be_bytes(), &[1; 20]).unwrap();
    }
    for _ in 0..3 * SCANS {
        scan(&db, 1, true);
    }
    db.wait_idle().unwrap();
    assert_eq!((merges(&db), above(&db)), (1, ((ROWS / 20).to_string(), 0)));
    drop(before);
}

#[test]
fn scans_of_what_is_not_hidden_ask_for_nothing() {
    let (db, _ended) = open();
    put(&db, 1);
    db.compact_range(None, None).unwrap();
    for i in ROWS..ROWS + ROWS / 2 {
        db.put(&i.to_be_bytes(), &[1; 20]).unwrap();
    }
    for _ in 0..SCANS * 2 {
        let mut iter = db.iter(Default::default()).unwrap();
        iter.seek_to_first().unwrap();
        while iter.valid() {
            iter.next().unwrap();
        }
    }
    db.wait_idle().unwrap();
    assert_eq!((merges(&db), above(&db)), (0, ((ROWS / 2).to_string(), 0)));
}
