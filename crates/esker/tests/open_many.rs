//! Opening a database looks at its manifest and at nothing of its tables, however many there are.
//!
//! `ESKER_OPEN_TABLES=20000 cargo test --release -p esker --test open_many -- --nocapture` measures it on the real file
//! system.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use esker::{ColumnFamilyOptions, Db, IngestOptions, Opener, Options, TableFileWriter};
use esker_env::Env;
use esker_env::fault::{FaultFs, Op};
use esker_env::mem::MemFs;

/// Opening so many tables may take so long at most, in a release build.
const TABLES_A_SECOND: u32 = 20_000;

fn open(env: &Env, dir: &Path) -> Db {
    let opener = Opener::new(Options::default()).env(env.clone());
    opener.open(dir).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// A database of `count` tables of a row each; closed.
fn fill(env: &Env, around: &Path, count: u32) -> PathBuf {
    let dir = around.join("db");
    let made = around.join("made");
    env.fs.create_dir_all(&made).unwrap();
    let db = open(env, &dir);
    let family = db.default_column_family();
    let numbers: Vec<u32> = (0..count).collect();
    for numbers in numbers.chunks(1000) {
        let table = |&number: &u32| {
            let path = made.join(format!("{number}.sst"));
            let mut writer = TableFileWriter::create_on(env, &path, &ColumnFamilyOptions::default()).unwrap();
            writer.put(&key(number), &number.to_be_bytes()).unwrap();
            writer.finish().unwrap();
            path
        };
        let files = numbers.iter().map(table).collect();
        let options = IngestOptions {
            move_files: true,
            ..IngestOptions::default()
        };
        db.ingest(&[(family.clone(), files)], &options).unwrap();
    }
    drop(family);
    db.close().unwrap();
    dir
}

fn check_one(db: &Db, count: u32) {
    let number = count / 2;
    assert_eq!(db.get(&key(number)).unwrap().unwrap(), number.to_be_bytes()[..]);
}

/// How often an opening makes each call.
fn calls(count: u32) -> BTreeMap<String, u64> {
    let memory = MemFs::new();
    let dir = fill(&Env::simulated_on(memory.clone(), 1), Path::new("/around"), count);
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(memory, 2)
    };
    let db = open(&env, &dir);
    let calls = Op::ALL.iter().map(|&op| (format!("{op:?}"), faults.calls(op)));
    let calls = calls.collect();
    check_one(&db, count);
    db.close().unwrap();
    calls
}

#[test]
fn an_opening_makes_no_call_for_each_table() {
    let (few, many) = (calls(30), calls(600));
    assert!(few.values().sum::<u64>() > 0);
    // The manifest may be read in more parts.
    let but_reads = |mut calls: BTreeMap<String, u64>| {
        let reads = calls.remove("Read").unwrap_or(0);
        (calls, reads)
    };
    let ((few, few_reads), (many, many_reads)) = (but_reads(few), but_reads(many));
    assert_eq!(few, many);
    assert!(
        many_reads <= few_reads + 10,
        "{many_reads} reads, with few tables {few_reads}"
    );
}

#[test]
fn an_opening_takes_a_second_at_most() {
    let given = std::env::var("ESKER_OPEN_TABLES").ok();
    let count: u32 = given.as_ref().map_or(200, |count| count.parse().unwrap());
    let around = tempfile::tempdir().unwrap();
    let env = Env::posix();
    let dir = fill(&env, around.path(), count);
    let mut best = Duration::MAX;
    for round in 0..5 {
        let start = env.clock.now();
        let since = || env.clock.now() - start;
        let db = open(&env, &dir);
        let opened = since();
        check_one(&db, count);
        let read = since();
        db.close().unwrap();
        println!(
            "round {round}: {count} tables, open {opened:?}, first row {read:?}, closed {:?}",
            since()
        );
        best = best.min(opened);
    }
    // How long it takes depends on what else runs: it counts only where it is asked for.
    assert!(
        given.is_none() || best < Duration::from_secs(1) * count.div_ceil(TABLES_A_SECOND),
        "{best:?}"
    );
}
