//! Checkpoints on the real file system, of a log whose segments are mapped and used again.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::inspect::Inspector;
use esker::{ColumnFamilyOptions, Db, Options, ReadOptions};

const KEYS: u32 = 300;

fn options() -> Options {
    Options {
        memory_budget_bytes: 16 << 20,
        wal_segment_bytes: 256 << 10,
        wal_memory_bytes: 1 << 20,
        default_column_family: ColumnFamilyOptions {
            memtable_bytes: 200 << 10,
            file_bytes: 256 << 10,
            level_base_bytes: 1 << 20,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    }
}

/// Beside the test program, where files can be locked in memory: a memory file system may be elsewhere.
fn folder() -> tempfile::TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::tempdir_in(program.parent().unwrap()).unwrap()
}

/// Sets the keys to `round` in turns.
fn write(db: &Db, number: u32) {
    let (key, round) = (number % KEYS, number / KEYS);
    let value = [round.to_le_bytes().as_slice(), &[7; 700]].concat();
    db.put(&key.to_be_bytes(), &value).unwrap();
}

/// That the database holds the first so many writes, and no other.
fn check(db: &Db) {
    let writes = u32::try_from(db.last_sequence()).unwrap();
    let mut rows = db.iter(ReadOptions::default()).unwrap();
    rows.seek_to_first().unwrap();
    for key in 0..KEYS.min(writes) {
        assert_eq!(rows.key(), key.to_be_bytes());
        let wanted = (writes - 1 - key) / KEYS;
        assert_eq!(
            rows.value()[..4],
            wanted.to_le_bytes(),
            "key {key} of {writes} writes"
        );
        rows.next().unwrap();
    }
    assert!(!rows.valid());
}

fn damaged(dir: &Path) -> u64 {
    Inspector::new(dir).verify(|_| {}).unwrap().damaged
}

/// Ends the writer also when an assertion fails: the test would hang instead.
struct DoneAtEnd<'a>(&'a AtomicBool);

impl Drop for DoneAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_checkpoint_of_a_database_under_load_is_a_prefix_of_its_writes() {
    let dir = folder();
    let db = Db::open(dir.path().join("db"), options()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                write(&db, number);
            }
        });
        let _done_at_end = DoneAtEnd(&done);
        while db.last_sequence() < 5000 {
            std::thread::yield_now();
        }
        let mut linked = 0;
        for round in 0..12 {
            let at = dir.path().join(format!("copy{round}"));
            let made = db.checkpoint(&at).unwrap();
            linked += made.linked_files;
            assert_eq!(damaged(&at), 0);
            let copy = Db::open(&at, options()).unwrap();
            assert_eq!(copy.last_sequence(), made.sequence);
            assert_eq!(copy.recovery_report().damages, 0);
            check(&copy);
            copy.compact_range(None, None).unwrap();
            check(&copy);
        }
        assert!(linked > 0);
    });
    check(&db);
    db.close().unwrap();
    assert_eq!(damaged(&dir.path().join("db")), 0);
}

#[test]
fn a_checkpoint_takes_no_room_for_what_it_shares() {
    let dir = folder();
    let db = Db::open(dir.path().join("db"), options()).unwrap();
    for number in 0..3 * KEYS {
        write(&db, number);
    }
    db.compact_range(None, None).unwrap();
    // Nothing of what is linked is compacted away before it is counted.
    db.wait_idle().unwrap();
    let at = dir.path().join("copy");
    let made = db.checkpoint(&at).unwrap();
    assert_eq!(
        (made.copied_bytes, made.written_bytes),
        (0, 0),
        "everything was flushed"
    );
    let shared = std::fs::read_dir(&at)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().metadata().unwrap().nlink() == 2);
    assert_eq!(shared.count() as u64, made.linked_files);
}
