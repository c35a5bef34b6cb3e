//! Repair: whatever is damaged, all that does not lie in what the report says is lost is there and right.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use esker::inspect::{FileRole, Inspector};
use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, DamagedFile, Db, ErrorKind, ImportOptions,
    IngestOptions, ManifestState, Opener, Options, RepairOptions, RepairReport, TableFileWriter, WriteBatch,
    WriteOptions, repair_on,
};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{CreateOptions, Env, Fs};

const DIR: &str = "/db";
const NAMES: [&str; 2] = ["default", "other"];
const KEYS: u64 = 300;

/// Values of the default family lie in blob files from 200 bytes on; those of the other are appended to.
fn family_options(name: &str) -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions {
        memtable_bytes: 16 << 10,
        block_bytes: 512,
        level_base_bytes: 64 << 10,
        file_bytes: 16 << 10,
        level0_compaction_trigger: 2,
        blob_value_bytes_min: 0,
        ..ColumnFamilyOptions::default()
    };
    if name == "default" {
        options.blob_value_bytes_min = 200;
    } else {
        options.merge_operator = Some(std::sync::Arc::new(AppendOperator::default()));
    }
    options
}

fn env(fs: &MemFs) -> Env {
    Env::simulated_on(fs.clone(), 7)
}

fn open(fs: &MemFs) -> Db {
    let options = Options {
        memory_budget_bytes: 4 << 20,
        wal_segment_bytes: 64 << 10,
        compaction_threads: 1,
        subcompactions_max: 1,
        default_column_family: family_options("default"),
        ..Options::default()
    };
    Opener::new(options)
        .column_family("other", family_options("other"))
        .create_missing_column_families()
        .env(env(fs))
        .open(DIR)
        .unwrap()
}

fn repair(fs: &MemFs) -> RepairReport {
    repair_on(&env(fs), DIR, &RepairOptions::default()).unwrap()
}

/// What the database should hold, by family.
#[derive(Clone, Debug, Default)]
struct Oracle {
    rows: [BTreeMap<Vec<u8>, Vec<u8>>; 2],
    /// Keys that were written since the last flush of all families: their rows may be in the log only.
    logged: [BTreeSet<Vec<u8>>; 2],
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % bound
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Random writes with flushes and compactions among them; closes the database.
fn fill(fs: &MemFs, seed: u64, steps: u64) -> Oracle {
    let mut oracle = Oracle::default();
    let mut random = Random(seed);
    let db = open(fs);
    let families = NAMES.map(|name| db.column_family(name).unwrap());
    for step in 0..steps {
        let at = random.below(2) as usize;
        let (family, key_of) = (&families[at], key(random.below(KEYS)));
        let rows = &mut oracle.rows[at];
        let mut touched = vec![key_of.clone()];
        match random.below(100) {
            0..60 => {
                let len = [20, 90, 400][random.below(3) as usize];
                let mut value = format!("{step} of {seed} ").into_bytes();
                value.resize(len, b'a' + (step % 26) as u8);
                db.put_cf(family, &key_of, &value).unwrap();
                rows.insert(key_of, value);
            }
            60..80 => {
                db.delete_cf(family, &key_of).unwrap();
                rows.remove(&key_of);
            }
            80..84 => {
                let from = random.below(KEYS);
                let (from, to) = (key(from), key(from + random.below(20)));
                db.delete_range_cf(family, &from, &to).unwrap();
                touched = rows
                    .range(from.clone()..to.clone())
                    .map(|(key, _)| key.clone())
                    .collect();
                rows.retain(|key, _| !(from <= *key && *key < to));
            }
            84..96 if at == 1 => {
                let operand = format!("+{step}").into_bytes();
                db.merge_cf(family, &key_of, &operand).unwrap();
                rows.entry(key_of).or_default().extend_from_slice(&operand);
            }
            98 => {
                db.flush().unwrap();
                oracle.logged = Default::default();
                continue;
            }
            99 if step % 3 == 0 => {
                db.compact_range_cf(family, None, None).unwrap();
                continue;
            }
            _ => continue,
        }
        oracle.logged[at].extend(touched);
    }
    drop(families);
    db.sync_wal().unwrap();
    db.close().unwrap();
    oracle
}

fn files(fs: &MemFs, role: FileRole) -> Vec<PathBuf> {
    let files = Inspector::with_env(DIR, &env(fs)).files().unwrap();
    let files = files
        .into_iter()
        .filter(|file| file.role == Some(role) && file.size_bytes > 0);
    files.map(|file| file.path).collect()
}

fn write(fs: &MemFs, path: &Path, bytes: &[u8]) {
    let mut file = fs.create(path, CreateOptions::default()).unwrap();
    file.append(bytes).unwrap();
    file.finish(true).unwrap();
    fs.sync_dir(path.parent().unwrap()).unwrap();
}

/// How a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Flip,
    Cut,
    Remove,
    Zeros,
}

const DAMAGES: [Damage; 4] = [Damage::Flip, Damage::Cut, Damage::Remove, Damage::Zeros];

fn damage(fs: &MemFs, path: &Path, how: Damage, random: &mut Random) {
    let mut bytes = fs.read_all(path).unwrap();
    let at = random.below(bytes.len() as u64) as usize;
    match how {
        Damage::Remove => {
            fs.remove(path).unwrap();
            fs.sync_dir(Path::new(DIR)).unwrap();
            return;
        }
        Damage::Flip => bytes[at] ^= 1 << random.below(8),
        Damage::Cut => bytes.truncate(at),
        Damage::Zeros => {
            let end = bytes.len().min(at + 700);
            bytes[at..end].fill(0);
        }
    }
    write(fs, path, &bytes);
}

/// Whether the report says that rows of the key may be lost.
fn is_excused(report: &RepairReport, oracle: &Oracle, at: usize, key: &[u8]) -> bool {
    let in_ranges = |file: &DamagedFile| {
        file.range_deletions_lost
            // One of which nothing is known: it may have had any row.
            || (file.rows_lost.is_none() && file.lost_ranges.is_empty())
            || file.lost_ranges.iter().any(|range| {
                range.after.as_deref().is_none_or(|after| after <= key)
                    && range.before.as_deref().is_none_or(|before| key <= before)
            })
    };
    let is_own = |file: &&DamagedFile| {
        file.column_family
            .as_deref()
            .is_none_or(|name| name == NAMES[at] || !NAMES.contains(&name))
    };
    report.damaged.iter().filter(is_own).any(in_ranges)
        || ((report.log_damages > 0 || report.log_is_torn || report.log_begins_late)
            && oracle.logged[at].contains(key))
}

fn rows(db: &Db, family: &ColumnFamily) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let get = |number| {
        let key = key(number);
        let value = db.get_cf(family, &key).unwrap();
        value.map(|value| (key, value.to_vec()))
    };
    (0..KEYS + 20).filter_map(get).collect()
}

/// Opens the repaired database and holds all keys against the oracle; gives how many are not as they were.
fn check(fs: &MemFs, report: &RepairReport, oracle: &Oracle, what: &str) -> usize {
    let verified = Inspector::with_env(DIR, &env(fs)).verify(|file| {
        assert!(file.damages.is_empty(), "{what}: {:?}", file.damages);
    });
    assert_eq!(verified.unwrap().damaged, 0, "{what}");
    let db = open(fs);
    let mut wrong = 0;
    let mut values_lost: u64 = report.damaged.iter().map(|file| file.values_lost).sum();
    for (at, name) in NAMES.into_iter().enumerate() {
        let found = rows(&db, &db.column_family(name).unwrap());
        for number in 0..KEYS + 20 {
            let key = key(number);
            let (found, wanted) = (found.get(&key), oracle.rows[at].get(&key));
            if found != wanted {
                wrong += 1;
                let key_text = key.escape_ascii();
                let is_excused = is_excused(report, oracle, at, &key);
                // The key of a row whose value is lost is deleted, and counted.
                let is_valueless = !is_excused && found.is_none() && values_lost > 0;
                values_lost -= u64::from(is_valueless);
                assert!(
                    is_excused || is_valueless,
                    "{what}: {name} {key_text}: {:?} instead of {:?}\n{report:#?}",
                    found.map(|value| value.escape_ascii().to_string()),
                    wanted.map(|value| value.escape_ascii().to_string()),
                );
            }
        }
    }
    if report.is_lossless() && !report.log_is_torn {
        assert_eq!(wrong, 0, "{what}");
    }
    // It takes writes, and keeps them.
    db.put(b"new", b"row").unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = open(fs);
    assert_eq!(db.get(b"new").unwrap().unwrap(), b"row");
    db.close().unwrap();
    wrong
}

fn copy(fs: &MemFs) -> MemFs {
    fs.crash(CrashMode::KeepAll)
}

fn rounds(default: u64) -> u64 {
    std::env::var("PROPTEST_CASES").map_or(default, |cases| cases.parse::<u64>().unwrap() / 16 + 1)
}

#[test]
fn a_whole_database_is_whole_afterwards() {
    let fs = MemFs::new();
    let oracle = fill(&fs, 1, 1500);
    let report = repair(&fs);
    assert!(report.is_lossless() && report.damaged.is_empty(), "{report:#?}");
    assert_eq!(report.manifest, ManifestState::Whole);
    assert_eq!(report.families, NAMES);
    assert_eq!(check(&fs, &report, &oracle, "whole"), 0);
}

#[test]
fn any_single_damage_costs_only_what_the_report_says() {
    for round in 0..rounds(6) {
        let fs = MemFs::new();
        let oracle = fill(&fs, round, 1200);
        let mut random = Random(round);
        for role in [FileRole::Manifest, FileRole::Table, FileRole::Blob, FileRole::Wal] {
            for how in DAMAGES {
                let fs = copy(&fs);
                let found = files(&fs, role);
                if found.is_empty() {
                    continue;
                }
                let path = &found[random.below(found.len() as u64) as usize];
                damage(&fs, path, how, &mut random);
                let mut report = repair(&fs);
                // A log that ends between two batches shows nothing of those that followed.
                report.log_is_torn |= role == FileRole::Wal && how != Damage::Flip;
                let what = format!("round {round}, {how:?} of {}", path.display());
                let wrong = check(&fs, &report, &oracle, &what);
                if role == FileRole::Manifest {
                    assert_eq!(wrong, 0, "{what}\n{report:#?}");
                }
            }
        }
    }
}

#[test]
fn without_manifest_and_with_another_damage_the_newest_versions_win() {
    for round in 0..rounds(4) {
        let fs = MemFs::new();
        let oracle = fill(&fs, 100 + round, 1200);
        let mut random = Random(round);
        for role in [
            None,
            Some(FileRole::Table),
            Some(FileRole::Blob),
            Some(FileRole::Wal),
        ] {
            for how in DAMAGES {
                let fs = copy(&fs);
                for path in files(&fs, FileRole::Manifest) {
                    damage(&fs, &path, Damage::Remove, &mut random);
                }
                let mut what = format!("round {round}, no manifest");
                if let Some(role) = role {
                    let found = files(&fs, role);
                    let path = &found[random.below(found.len() as u64) as usize];
                    damage(&fs, path, how, &mut random);
                    what = format!("{what}, {how:?} of {}", path.display());
                }
                // Of a file that is gone with the manifest nobody knows any more.
                if role.is_some() && how == Damage::Remove {
                    repair(&fs);
                    open(&fs).close().unwrap();
                    continue;
                }
                let mut report = repair(&fs);
                report.log_is_torn |= role == Some(FileRole::Wal) && how != Damage::Flip;
                assert_eq!(report.manifest, ManifestState::Lost, "{what}");
                // A family is nameless if its only table was cut.
                assert!(
                    report.families == NAMES || role == Some(FileRole::Table),
                    "{what}"
                );
                check(&fs, &report, &oracle, &what);
            }
        }
    }
}

/// A table that a compaction has replaced, and the state after it.
fn with_dead_table() -> (MemFs, PathBuf, Oracle) {
    let fs = MemFs::new();
    let db = open(&fs);
    for number in 0..50 {
        db.put(&key(number), b"old").unwrap();
    }
    db.flush().unwrap();
    let dead = files(&fs, FileRole::Table).remove(0);
    let bytes = fs.read_all(&dead).unwrap();
    let mut oracle = Oracle::default();
    for number in 0..50 {
        match number % 2 {
            0 => db.delete(&key(number)).unwrap(),
            _ => {
                db.put(&key(number), b"new").unwrap();
                oracle.rows[0].insert(key(number), b"new".to_vec());
            }
        }
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    assert!(!fs.exists(&dead).unwrap());
    write(&fs, &dead, &bytes);
    (fs, dead, oracle)
}

#[test]
fn a_dropped_table_does_not_come_back_where_the_manifest_says_so() {
    let (whole, dead, oracle) = with_dead_table();
    for current in [false, true] {
        let fs = copy(&whole);
        if current {
            fs.remove(&Path::new(DIR).join("CURRENT")).unwrap();
        }
        let report = repair(&fs);
        assert_eq!(report.manifest, ManifestState::Whole);
        assert!(report.set_aside.contains(&dead), "{report:#?}");
        assert!(
            fs.exists(&Path::new(DIR).join("lost").join(dead.file_name().unwrap()))
                .unwrap()
        );
        assert_eq!(check(&fs, &report, &oracle, "dead table"), 0);
    }
}

#[test]
fn what_is_prepared_stays_prepared() {
    let fs = MemFs::new();
    let db = open(&fs);
    db.put(b"before", b"1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"prepared", b"2").unwrap();
    db.prepare(b"name", &mut batch, &WriteOptions::default()).unwrap();
    db.put(b"after", b"3").unwrap();
    db.close().unwrap();
    for lost in [FileRole::Other, FileRole::Manifest] {
        let fs = copy(&fs);
        for path in files(&fs, lost) {
            fs.remove(&path).unwrap();
        }
        let report = repair(&fs);
        assert_eq!(report.prepared, [b"name"]);
        for _ in 0..2 {
            let db = open(&fs);
            assert_eq!(db.prepared().len(), 1);
            assert!(db.get(b"prepared").unwrap().is_none());
            assert_eq!(db.get(b"after").unwrap().unwrap(), b"3");
            db.close().unwrap();
        }
        let db = open(&fs);
        db.commit_prepared(b"name", &WriteOptions::default()).unwrap();
        assert_eq!(db.get(b"prepared").unwrap().unwrap(), b"2");
        db.close().unwrap();
    }
}

/// The bytes of all files, those of the folder `lost` included, but not those of locks.
fn contents(fs: &MemFs) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for dir in [PathBuf::from(DIR), Path::new(DIR).join("lost")] {
        for name in fs.list(&dir).unwrap_or_default() {
            if name != "LOCK" && name != "lost" {
                contents.insert(dir.join(&name), fs.read_all(&dir.join(&name)).unwrap());
            }
        }
    }
    contents
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let fs = MemFs::new();
    fill(&fs, 5, 1200);
    let mut random = Random(9);
    let table = files(&fs, FileRole::Table).remove(0);
    damage(&fs, &table, Damage::Zeros, &mut random);
    let blob = files(&fs, FileRole::Blob).remove(0);
    damage(&fs, &blob, Damage::Cut, &mut random);
    let before = contents(&fs);
    let options = RepairOptions {
        dry_run: true,
        ..RepairOptions::default()
    };
    let dry = repair_on(&env(&fs), DIR, &options).unwrap();
    assert_eq!(contents(&fs), before);
    let done = repair(&fs);
    let told = |report: &RepairReport| {
        let each = |file: &DamagedFile| {
            (
                file.path.clone(),
                file.rows_kept,
                file.values_lost,
                file.lost_bytes,
            )
        };
        report.damaged.iter().map(each).collect::<Vec<_>>()
    };
    assert_eq!(told(&dry), told(&done));
    assert!(!told(&dry).is_empty() && dry.tables_written == 0 && done.tables_written > 0);
    // That a blob file has lost all its rows shows only in what is written.
    assert!(dry.set_aside.iter().all(|path| done.set_aside.contains(path)));
    let after = contents(&fs);
    for path in &done.set_aside {
        let aside = Path::new(DIR).join("lost").join(path.file_name().unwrap());
        assert_eq!(after.get(&aside), before.get(path), "{}", path.display());
        assert!(
            path.ends_with("CURRENT") || !after.contains_key(path),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_repair_that_is_cut_short_can_be_begun_again() {
    let whole = MemFs::new();
    let oracle = fill(&whole, 11, 500);
    for without_manifest in [false, true] {
        let start = copy(&whole);
        let table = files(&start, FileRole::Table).remove(0);
        damage(&start, &table, Damage::Flip, &mut Random(3));
        if without_manifest {
            for path in files(&start, FileRole::Manifest) {
                start.remove(&path).unwrap();
            }
        }
        start.sync_dir(Path::new(DIR)).unwrap();
        let first = repair(&copy(&start));
        let mut stop = 0;
        loop {
            let fs = copy(&start);
            fs.stop_after(Some(stop));
            let done = repair_on(&env(&fs), DIR, &RepairOptions::default()).is_ok();
            for mode in [
                CrashMode::KeepAll,
                CrashMode::DropUnsynced,
                CrashMode::Torn { seed: stop },
            ] {
                let fs = fs.crash(mode);
                let mut report = repair(&fs);
                // What the first one found is not found again once it is mended.
                report.damaged.extend(first.damaged.clone());
                check(
                    &fs,
                    &report,
                    &oracle,
                    &format!("stopped after {stop}, {mode:?}, {without_manifest}"),
                );
                let lost = Path::new(DIR).join("lost").join(table.file_name().unwrap());
                assert_eq!(
                    fs.read_all(&lost).unwrap(),
                    start.read_all(&table).unwrap(),
                    "stopped after {stop}, {mode:?}"
                );
            }
            if done {
                break;
            }
            stop += 5;
        }
        assert!(stop > 10, "a repair takes more operations than {stop}");
    }
}

#[test]
fn an_ingested_table_keeps_its_place() {
    let fs = MemFs::new();
    let db = open(&fs);
    for value in [&b"long before"[..], b"before"] {
        db.put(&key(1), value).unwrap();
    }
    db.flush().unwrap();
    let path = Path::new("/outside");
    let mut writer = TableFileWriter::create_on(&env(&fs), path, &family_options("default")).unwrap();
    writer.put(&key(1), b"ingested").unwrap();
    writer.put(&key(2), b"ingested").unwrap();
    writer.finish().unwrap();
    let family = db.default_column_family();
    db.ingest(
        &[(family.clone(), vec![path.to_owned()])],
        &IngestOptions::default(),
    )
    .unwrap();
    db.put(&key(2), b"after").unwrap();
    drop(family);
    db.close().unwrap();
    let known = copy(&fs);
    known.remove(&Path::new(DIR).join("CURRENT")).unwrap();
    let report = repair(&known);
    assert!(report.is_lossless());
    let db = open(&known);
    assert_eq!(db.get(&key(1)).unwrap().unwrap(), b"ingested");
    assert_eq!(db.get(&key(2)).unwrap().unwrap(), b"after");
    db.close().unwrap();
    for path in files(&fs, FileRole::Manifest) {
        fs.remove(&path).unwrap();
    }
    let report = repair(&fs);
    assert!(report.is_lossless(), "{report:#?}");
    let db = open(&fs);
    assert_eq!(db.get(&key(1)).unwrap().unwrap(), b"ingested");
    assert_eq!(db.get(&key(2)).unwrap().unwrap(), b"after");
    db.close().unwrap();
}

fn lose_manifest(fs: &MemFs) {
    for path in files(fs, FileRole::Manifest) {
        fs.remove(&path).unwrap();
    }
}

/// Makes a table of random rows, and ingests it into the default family.
fn ingest(fs: &MemFs, db: &Db, random: &mut Random, step: u64, oracle: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    let path = PathBuf::from(format!("/outside-{step}"));
    let mut writer = TableFileWriter::create_on(&env(fs), &path, &family_options("default")).unwrap();
    let first = random.below(KEYS);
    for number in (first..KEYS.min(first + 40)).step_by(3) {
        let value = format!("ingested in step {step}").into_bytes();
        writer.put(&key(number), &value).unwrap();
        oracle.insert(key(number), value);
    }
    writer.finish().unwrap();
    let files = [(db.default_column_family(), vec![path])];
    db.ingest(&files, &IngestOptions::default()).unwrap();
}

/// They counted as the oldest.
#[test]
fn without_manifest_ingested_tables_are_as_new_as_they_were() {
    for seed in 0..rounds(12) {
        let fs = MemFs::new();
        let mut random = Random(seed ^ 0x1234_5678);
        let db = open(&fs);
        if seed % 4 < 2 {
            // Else a compaction comes as a rule, the tables of which name all that was ingested.
            db.pause_background_work();
        }
        let mut oracle = BTreeMap::new();
        for step in 0..150 {
            let number = random.below(KEYS);
            match random.below(20) {
                0..12 => {
                    let value = format!("{step}")
                        .repeat(1 + random.below(100) as usize)
                        .into_bytes();
                    db.put(&key(number), &value).unwrap();
                    oracle.insert(key(number), value);
                }
                12..14 => {
                    db.delete(&key(number)).unwrap();
                    oracle.remove(&key(number));
                }
                14 => db.flush().unwrap(),
                15 if seed % 3 == 0 => db
                    .compact_range(Some(&key(number)), Some(&key(number + 50)))
                    .unwrap(),
                15..17 => {}
                _ => ingest(&fs, &db, &mut random, step, &mut oracle),
            }
        }
        if seed % 2 == 1 {
            // Two families have tables: what the last ingestion brought must be named by a later table.
            let other = db.column_family("other").unwrap();
            db.put_cf(&other, &key(1), b"of the other").unwrap();
            db.put(&key(1), b"the last").unwrap();
            oracle.insert(key(1), b"the last".to_vec());
            db.flush().unwrap();
        }
        db.close().unwrap();
        lose_manifest(&fs);
        let report = repair(&fs);
        assert!(report.is_lossless(), "{seed}: {report:#?}");
        let db = open(&fs);
        let found = rows(&db, &db.default_column_family());
        assert!(found == oracle, "{seed}");
        db.close().unwrap();
    }
}

#[test]
fn an_ingested_table_that_nothing_names_is_set_aside_where_it_may_be_of_several_families() {
    let fs = MemFs::new();
    let db = open(&fs);
    let other = db.column_family("other").unwrap();
    db.put(&key(1), b"of the first").unwrap();
    db.put_cf(&other, &key(1), b"of the other").unwrap();
    db.flush().unwrap();
    ingest(&fs, &db, &mut Random(1), 0, &mut BTreeMap::new());
    drop(other);
    db.close().unwrap();
    lose_manifest(&fs);
    let report = repair(&fs);
    assert!(!report.is_lossless());
    assert_eq!(
        (report.damaged.len(), report.set_aside.len()),
        (1, 1),
        "{report:#?}"
    );
    assert!(report.damaged[0].damage.message().contains("which column family"));
}

/// Exports what another database has in its default family, values in blob files among it; gives its rows.
fn export(fs: &MemFs) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let options = Options {
        compaction_threads: 1,
        default_column_family: family_options("default"),
        ..Options::default()
    };
    let db = Opener::new(options)
        .env(Env::simulated_on(fs.clone(), 99))
        .open("/elsewhere")
        .unwrap();
    let mut rows = BTreeMap::new();
    for round in 0..3 {
        for number in (round..60).step_by(2) {
            let value = format!("{round} of elsewhere, ").repeat(1 + 30 * (number % 2) as usize);
            db.put(&key(number), value.as_bytes()).unwrap();
            rows.insert(key(number), value.into_bytes());
        }
        db.flush().unwrap();
    }
    let family = db.default_column_family();
    assert!(db.export_column_family(&family, "/export").unwrap().blob_files > 0);
    drop(family);
    db.close().unwrap();
    rows
}

/// Its tables were set aside, and values in its blob files were lost, also where the manifest was whole.
#[test]
fn an_imported_family_comes_back() {
    for (written, has_manifest) in [(false, false), (true, false), (false, true), (true, true)] {
        let what = format!("written: {written}, manifest: {has_manifest}");
        let fs = MemFs::new();
        let mut oracle = export(&fs);
        let db = open(&fs);
        // A compaction of what came would name its family.
        db.pause_background_work();
        // Fewer files than are imported, with smaller log numbers than those of the other database.
        db.put(&key(1), &[b'v'; 500]).unwrap();
        db.flush().unwrap();
        db.put(&key(2), b"in the log").unwrap();
        let (family, _) = db
            .import_column_family("came", "/export", &ImportOptions::default())
            .unwrap();
        if written {
            let value = vec![b'n'; 700];
            db.put_cf(&family, &key(5), &value).unwrap();
            db.delete_cf(&family, &key(6)).unwrap();
            oracle.insert(key(5), value);
            oracle.remove(&key(6));
            db.flush_cf(&family).unwrap();
            // Tables of this database point into blob files of the other one then.
            let range = (key(0), key(20));
            db.compact_range_cf(&family, Some(&range.0), Some(&range.1))
                .unwrap();
        }
        drop(family);
        db.sync_wal().unwrap();
        db.close().unwrap();
        match has_manifest {
            true => fs.remove(&Path::new(DIR).join("CURRENT")).unwrap(),
            false => lose_manifest(&fs),
        }
        let report = repair(&fs);
        assert!(
            report.is_lossless() && report.damaged.is_empty(),
            "{what}: {report:#?}"
        );
        let name = match (written, has_manifest) {
            (false, false) => "default-imported-1",
            _ => "came",
        };
        let imported: &[&str] = if name == "came" { &[] } else { &[name] };
        assert_eq!(report.imported, imported, "{what}");
        let verified = Inspector::with_env(DIR, &env(&fs)).verify(|file| {
            assert!(file.damages.is_empty(), "{what}: {:?}", file.damages);
        });
        assert!(verified.unwrap().files > 0);
        let db = open(&fs);
        let family = db.column_family(name).unwrap();
        assert!(rows(&db, &family) == oracle, "{what}");
        assert_eq!(db.get(&key(1)).unwrap().unwrap(), [b'v'; 500], "{what}");
        assert_eq!(db.get(&key(2)).unwrap().unwrap(), b"in the log", "{what}");
        // What is written later does not get in the way of the numbers that rows have.
        for number in 0..20 {
            db.put_cf(&family, &key(100 + number), &[b'l'; 400]).unwrap();
            db.flush_cf(&family).unwrap();
            oracle.insert(key(100 + number), vec![b'l'; 400]);
        }
        assert!(rows(&db, &family) == oracle, "{what}");
        drop(family);
        db.close().unwrap();
    }
}

#[test]
fn what_is_no_database_or_in_use_is_left_alone() {
    let fs = MemFs::new();
    let kind = |fs: &MemFs| {
        repair_on(&env(fs), DIR, &RepairOptions::default())
            .unwrap_err()
            .kind()
    };
    assert_eq!(kind(&fs), ErrorKind::NotFound);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    write(&fs, &Path::new(DIR).join("thesis.txt"), b"years of work");
    assert_eq!(kind(&fs), ErrorKind::NotFound);
    assert_eq!(fs.list(Path::new(DIR)).unwrap(), ["thesis.txt"]);
    let fs = MemFs::new();
    let db = open(&fs);
    assert_eq!(kind(&fs), ErrorKind::Locked);
    db.close().unwrap();
}
