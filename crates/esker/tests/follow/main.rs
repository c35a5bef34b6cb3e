//! A follower beside a writer on one simulated machine: what it shows, what it never does, and what comes between its calls.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

mod between;
mod faults;
mod overtaken;
mod shows;

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, Compression, Db, Follower, Opener, Options,
    ReadOptions, Result,
};
use esker_env::mem::MemFs;
use esker_env::{Env, Fs};

const DIR: &str = "/db";

/// Small memtables and segments that are used again.
fn options() -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        wal_segment_bytes: 64 << 10,
        wal_memory_bytes: 192 << 10,
        compaction_threads: 1,
        default_column_family: family_options(),
        ..Options::default()
    }
}

fn family_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        memtable_bytes: 16 << 10,
        file_bytes: 16 << 10,
        level_base_bytes: 64 << 10,
        blob_value_bytes_min: 400,
        compression_per_level: vec![Compression::None],
        merge_operator: Some(Arc::new(AppendOperator::default())),
        ..ColumnFamilyOptions::default()
    }
}

fn opener(fs: &Arc<dyn Fs>, options: Options) -> Opener {
    let env = Env {
        fs: Arc::clone(fs),
        ..Env::simulated(1).0
    };
    Opener::new(options).env(env)
}

fn machine() -> (MemFs, Arc<dyn Fs>) {
    let mem = MemFs::new();
    (mem.clone(), Arc::new(mem))
}

fn follow(fs: &Arc<dyn Fs>) -> Follower {
    let opener = opener(fs, options()).column_family("second", family_options());
    opener.follow(DIR).unwrap()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows_with(db: &Db, family: &ColumnFamily, options: ReadOptions) -> Result<Rows> {
    let mut iter = db.iter_cf(family, options)?;
    let mut rows = Rows::new();
    iter.seek_to_first()?;
    while iter.valid() {
        rows.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next()?;
    }
    Ok(rows)
}

/// All rows of all families by name, as of one moment.
fn all(db: &Db) -> Result<BTreeMap<String, Rows>> {
    let snapshot = db.snapshot();
    let mut all = BTreeMap::new();
    for name in db.column_family_names() {
        let options = ReadOptions {
            snapshot: Some(snapshot.clone()),
            ..ReadOptions::default()
        };
        let rows = rows_with(db, &db.column_family(&name)?, options)?;
        all.insert(name, rows);
    }
    Ok(all)
}

fn get(db: &Db, key: &[u8]) -> Option<Vec<u8>> {
    db.get(key).unwrap().map(|value| value.into_vec())
}
