//! What crashes leave of writes with `Durability::None`: what the documentation of that promises, and no more.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use esker::{ColumnFamily, Db, Durability, WriteBatch, WriteOptions};
use esker_env::mem::{CrashMode, MemFs};
use esker_testkit::crash::{family_options, open};

/// Rows of a batch in each family.
const ROWS: u32 = 5;

const MODES: [CrashMode; 3] = [
    CrashMode::KeepAll,
    CrashMode::DropUnsynced,
    CrashMode::Torn { seed: 7 },
];

fn unlogged() -> WriteOptions {
    WriteOptions::durability(Durability::None)
}

fn key(batch: u32, row: u32) -> Vec<u8> {
    format!("batch{batch:04} row{row}").into_bytes()
}

/// Writes batch `number`, with rows in each of the families.
fn write(db: &Db, families: &[ColumnFamily], number: u32) {
    let mut batch = WriteBatch::new();
    for row in 0..ROWS {
        for family in families {
            batch.put_cf(family, &key(number, row), &[7; 100]).unwrap();
        }
    }
    db.write_with(&mut batch, &unlogged()).unwrap();
}

/// How many batches a family has; checks that it has them whole, and none without those before it.
fn batches(db: &Db, family: &ColumnFamily, written: u32) -> u32 {
    let rows_of = |number| {
        let there = |row: &u32| db.get_cf(family, &key(number, *row)).unwrap().is_some();
        (0..ROWS).filter(there).count() as u32
    };
    let mut whole = 0;
    while whole < written && rows_of(whole) == ROWS {
        whole += 1;
    }
    for number in whole..written {
        assert_eq!(rows_of(number), 0, "batch {number} after {whole} whole ones");
    }
    whole
}

#[test]
fn of_each_family_a_crash_leaves_the_batches_up_to_a_moment_and_at_least_those_flushed() {
    for seed in 0..6 {
        let fs = MemFs::new();
        let db = open(&fs).unwrap();
        let other = db.create_column_family("other", family_options()).unwrap();
        let families = [db.default_column_family(), other];
        let mut flushed = [0, 0];
        let written = 60 + seed * 25;
        for number in 0..written {
            // Memtables are flushed by themselves, too, as they are of 16 KiB.
            write(&db, &families, number);
            for (i, family) in families.iter().enumerate() {
                if (number + seed) % 23 == 11 * i as u32 {
                    db.flush_cf(family).unwrap();
                    flushed[i] = number + 1;
                }
            }
        }
        for mode in MODES {
            let db = open(&fs.crash(mode)).unwrap();
            assert_eq!(db.recovery_report().damages, 0);
            for (name, flushed) in ["default", "other"].iter().zip(flushed) {
                let family = db.column_family(name).unwrap();
                let left = batches(&db, &family, written);
                assert!(
                    left >= flushed,
                    "{name} has {left} of {flushed} flushed, {mode:?}"
                );
            }
        }
    }
}

#[test]
fn a_batch_over_families_is_left_in_those_that_were_flushed() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let other = db.create_column_family("other", family_options()).unwrap();
    let families = [db.default_column_family(), other];
    write(&db, &families, 0);
    db.flush_cf(&families[0]).unwrap();
    for mode in MODES {
        let db = open(&fs.crash(mode)).unwrap();
        let left = |name| batches(&db, &db.column_family(name).unwrap(), 1);
        assert_eq!((left("default"), left("other")), (1, 0), "{mode:?}");
    }
    // Once all families are flushed it is in all of them.
    db.flush().unwrap();
    for mode in MODES {
        let db = open(&fs.crash(mode)).unwrap();
        let left = |name| batches(&db, &db.column_family(name).unwrap(), 1);
        assert_eq!((left("default"), left("other")), (1, 1), "{mode:?}");
    }
}

#[test]
fn a_later_write_with_a_log_survives_earlier_ones_without_and_a_sync_of_the_log_saves_none() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let family = db.default_column_family();
    write(&db, std::slice::from_ref(&family), 0);
    db.put(b"logged", b"value").unwrap();
    db.sync_wal().unwrap();
    for mode in MODES {
        let db = open(&fs.crash(mode)).unwrap();
        assert_eq!(db.get(b"logged").unwrap().unwrap(), b"value", "{mode:?}");
        assert_eq!(batches(&db, &db.default_column_family(), 1), 0, "{mode:?}");
    }
}

#[test]
fn closing_the_database_saves_all_of_them() {
    let fs = MemFs::new();
    let db = open(&fs).unwrap();
    let other = db.create_column_family("other", family_options()).unwrap();
    let families = [db.default_column_family(), other];
    (0..10).for_each(|number| write(&db, &families, number));
    db.close().unwrap();
    for mode in MODES {
        let db = open(&fs.crash(mode)).unwrap();
        for name in ["default", "other"] {
            assert_eq!(batches(&db, &db.column_family(name).unwrap(), 10), 10, "{mode:?}");
        }
    }
}
