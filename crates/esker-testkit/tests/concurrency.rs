//! Many threads on one database: what must hold at every moment, whoever writes, flushes, compacts or closes.
//!
//! `ESKER_TEST_SCALE` (default 1) multiplies the number of operations.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker::{Db, ErrorKind, Opener, ReadOptions, WriteBatch};
use esker_env::Env;
use esker_testkit::crash::{DIR, family_options, options};
use esker_testkit::random::Rng;
use esker_testkit::{number_from_env, watchdog};

const ACCOUNTS: usize = 40;
const START: u64 = 1000;

fn account(number: usize) -> Vec<u8> {
    // Long keys, so that memtables fill up.
    format!("account {number:04} {}", "-".repeat(100)).into_bytes()
}

fn amount(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn value(amount: u64) -> Vec<u8> {
    [amount.to_le_bytes().as_slice(), &[b'x'; 100]].concat()
}

fn open() -> Db {
    Opener::new(options()).env(Env::simulated(1).0).open(DIR).unwrap()
}

fn scale() -> u64 {
    number_from_env("ESKER_TEST_SCALE", 1)
}

#[test]
fn the_sum_of_all_accounts_is_the_same_in_every_view() {
    let _alive = watchdog::watch("the_sum_of_all_accounts", Duration::from_secs(120));
    let db = open();
    let savings = db.create_column_family("savings", family_options()).unwrap();
    for number in 0..ACCOUNTS {
        let mut batch = WriteBatch::new();
        batch.put(&account(number), &value(START)).unwrap();
        batch.put_cf(&savings, &account(number), &value(START)).unwrap();
        db.write(&mut batch).unwrap();
    }
    let total = 2 * START * ACCOUNTS as u64;
    let done = AtomicBool::new(false);
    let transfers = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for writer in 0..3_usize {
            let (db, savings, transfers) = (db.clone(), savings.clone(), &transfers);
            // Each writer has accounts of its own, so that it needs no lock to read and write them.
            writers.push(scope.spawn(move || {
                let mut rng = Rng::new(writer as u64);
                let own = |rng: &mut Rng| rng.below(ACCOUNTS / 3) * 3 + writer;
                for _ in 0..1500 * scale() {
                    let (from, to) = (account(own(&mut rng)), account(own(&mut rng)));
                    let have = amount(&db.get(&from).unwrap().unwrap());
                    let other = amount(&db.get_cf(&savings, &to).unwrap().unwrap());
                    let moved = rng.below(have as usize + 1) as u64;
                    let mut batch = WriteBatch::new();
                    if rng.one_in(10) {
                        batch.delete_range(&from, &[&from[..], b"x"].concat()).unwrap();
                    }
                    batch.put(&from, &value(have - moved)).unwrap();
                    batch.put_cf(&savings, &to, &value(other + moved)).unwrap();
                    if rng.one_in(2) && have > 0 {
                        // And some of it back, within the same batch.
                        batch.put(&from, &value(have - moved + moved / 2)).unwrap();
                        batch
                            .put_cf(&savings, &to, &value(other + moved - moved / 2))
                            .unwrap();
                    }
                    db.write(&mut batch).unwrap();
                    transfers.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for reader in 0..3_usize {
            let (db, savings, done) = (db.clone(), savings.clone(), &done);
            scope.spawn(move || {
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) || rounds < 3 {
                    rounds += 1;
                    let snapshot = db.snapshot();
                    let options = ReadOptions {
                        snapshot: Some(snapshot),
                        ..ReadOptions::default()
                    };
                    let default = db.default_column_family();
                    let mut sum = 0;
                    match reader {
                        0 => {
                            for family in [&default, &savings] {
                                let keys: Vec<_> = (0..ACCOUNTS).map(account).collect();
                                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                                let values = db.multi_get(family, &keys, &options).unwrap();
                                sum += values
                                    .into_iter()
                                    .map(|value| amount(&value.unwrap()))
                                    .sum::<u64>();
                            }
                        }
                        1 => {
                            for mut iter in db.iter_many(&[&default, &savings], &options).unwrap() {
                                iter.seek_to_first().unwrap();
                                while iter.valid() {
                                    sum += amount(iter.value());
                                    iter.next().unwrap();
                                }
                            }
                        }
                        _ => {
                            // Without a snapshot of its own: the iterators are of one moment together.
                            for mut iter in db
                                .iter_many(&[&default, &savings], &ReadOptions::default())
                                .unwrap()
                            {
                                iter.seek_to_last().unwrap();
                                while iter.valid() {
                                    sum += amount(iter.value());
                                    iter.prev().unwrap();
                                }
                            }
                        }
                    }
                    assert_eq!(sum, total, "reader {reader}, round {rounds}");
                }
            });
        }
        {
            let (db, savings, done) = (db.clone(), savings.clone(), &done);
            scope.spawn(move || {
                let mut rng = Rng::new(9);
                while !done.load(Ordering::Relaxed) {
                    match rng.below(6) {
                        0 => db.flush().unwrap(),
                        1 => db.flush_cf(&savings).unwrap(),
                        2 => db
                            .compact_range(None, Some(&account(rng.below(ACCOUNTS))))
                            .unwrap(),
                        3 => db.compact_range_cf(&savings, None, None).unwrap(),
                        4 => {
                            let name = format!("passing {}", rng.bits());
                            let family = db.create_column_family(&name, family_options()).unwrap();
                            db.put_cf(&family, b"a", b"b").unwrap();
                            if rng.one_in(2) {
                                db.flush_cf(&family).unwrap();
                            }
                            db.drop_column_family(&family).unwrap();
                        }
                        _ => db.sync_wal().unwrap(),
                    }
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(transfers.load(Ordering::Relaxed), 3 * 1500 * scale());
    db.wait_idle().unwrap();
    assert_eq!(db.column_family_names(), ["default", "savings"]);
}

#[test]
fn a_counter_never_goes_back() {
    let _alive = watchdog::watch("a_counter_never_goes_back", Duration::from_secs(120));
    let db = open();
    db.put(b"counter", &value(0)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (db, done) = (db.clone(), &done);
            scope.spawn(move || {
                let mut last = 0;
                let mut iter = db.iter(ReadOptions::default()).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let now = amount(&db.get(b"counter").unwrap().unwrap());
                    assert!(now >= last, "{now} after {last}");
                    // What was read is there for whoever looks later.
                    iter.refresh().unwrap();
                    iter.seek(b"counter").unwrap();
                    let seen = amount(iter.value());
                    assert!(seen >= now, "{seen} in an iterator after {now}");
                    last = seen;
                }
            });
        }
        let (db, done) = (db.clone(), &done);
        scope.spawn(move || {
            for number in 1..4000 * scale() {
                db.put(b"counter", &value(number)).unwrap();
                assert_eq!(
                    amount(&db.get(b"counter").unwrap().unwrap()),
                    number,
                    "its own write"
                );
                if number % 500 == 0 {
                    db.compact_range(None, None).unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn closing_under_load_ends_every_call() {
    for round in 0..10 {
        let _alive = watchdog::watch("closing_under_load", Duration::from_secs(60));
        let db = open();
        let pause = round % 2 == 1;
        let started = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..5_u64 {
                let (db, started) = (db.clone(), &started);
                scope.spawn(move || {
                    for number in 0_u64.. {
                        started.fetch_add(1, Ordering::Relaxed);
                        let result = match thread {
                            // With jobs paused these wait for memory that never comes, until the database closes.
                            0 | 1 => db.put(&(number * 5 + thread).to_le_bytes(), &[1; 500]),
                            2 => db.get(b"key").map(drop),
                            3 if pause => db.get(b"key").map(drop),
                            3 => db.flush(),
                            _ => db
                                .iter(ReadOptions::default())
                                .and_then(|mut iter| iter.seek_to_first()),
                        };
                        if let Err(error) = result {
                            assert_eq!(error.kind(), ErrorKind::Closed, "thread {thread}: {error:?}");
                            break;
                        }
                    }
                });
            }
            if pause {
                db.pause_background_work();
            }
            while started.load(Ordering::Relaxed) < 2000 {
                std::thread::yield_now();
            }
            db.close().unwrap();
        });
    }
}

#[test]
fn a_database_can_be_dropped_under_its_iterators() {
    let _alive = watchdog::watch("a_database_can_be_dropped", Duration::from_secs(60));
    let (env, _) = Env::simulated(1);
    let open = || Opener::new(options()).env(env.clone()).open(DIR).unwrap();
    let db = open();
    for number in 0..300_u32 {
        db.put(&number.to_be_bytes(), &[b'v'; 200]).unwrap();
    }
    db.flush().unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let snapshot = db.snapshot();
    let value = db.get(&7_u32.to_be_bytes()).unwrap().unwrap();
    drop(db);
    assert_eq!(iter.key(), 0_u32.to_be_bytes());
    assert_eq!(iter.seek_to_last().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(value, [b'v'; 200]);
    // The folder is free again, although the iterator is still there.
    let db = open();
    db.compact_range(None, None).unwrap();
    drop((iter, snapshot));
    assert_eq!(db.get(&7_u32.to_be_bytes()).unwrap().unwrap(), [b'v'; 200]);
}

#[test]
fn a_folder_that_was_let_go_is_left_alone() {
    let _alive = watchdog::watch("a_folder_that_was_let_go", Duration::from_secs(120));
    let (env, fs) = Env::simulated(1);
    let open = || Opener::new(options()).env(env.clone()).open(DIR).unwrap();
    let key = |number: u64| format!("key{:04}", number % 200).into_bytes();
    let mut rng = Rng::new(1);
    let mut db = open();
    for round in 0..30_u64 {
        for number in 0..200 {
            db.put(&key(number), &value(round)).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let db = db.clone();
                scope.spawn(move || {
                    let closed = (0..).find_map(|_| db.compact_range(None, None).err());
                    assert_eq!(closed.unwrap().kind(), ErrorKind::Closed);
                });
            }
            for number in 0..rng.below(400) as u64 {
                db.put(&key(number), &value(round)).unwrap();
            }
            // Those who compact are in the middle of it, and somebody opens the folder at once.
            db.close().unwrap();
            db = open();
            db.compact_range(None, None).unwrap();
        });
        for number in 0..200 {
            assert_eq!(amount(&db.get(&key(number)).unwrap().unwrap()), round);
        }
        db.wait_idle().unwrap();
        esker_testkit::crash::check_files(&fs, &db).unwrap();
    }
}
