//! Rows that expire, and tables that are rewritten because they are old, on a clock that moves as it is told.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::time::Duration;

use esker::{Aging, ColumnFamilyOptions, Db, ErrorKind, Opener, Options};
use esker_env::Env;

const HOUR: u64 = 3600;

fn open(env: &Env, aging: Aging) -> Db {
    let options = Options {
        default_column_family: ColumnFamilyOptions {
            aging,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    Opener::new(options).env(env.clone()).open("/db").unwrap()
}

fn pass(env: &Env, seconds: u64) {
    env.clock.sleep(Duration::from_secs(seconds));
}

fn put(db: &Db, keys: std::ops::Range<u32>) {
    for i in keys {
        // Some values lie in blob files.
        db.put(&i.to_be_bytes(), &vec![b'v'; if i % 2 == 0 { 700 } else { 40 }])
            .unwrap();
    }
    db.flush().unwrap();
}

fn keys(db: &Db) -> Vec<u32> {
    let mut iter = db.iter(Default::default()).unwrap();
    let mut keys = Vec::new();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        keys.push(u32::from_be_bytes(iter.key().try_into().unwrap()));
        iter.next().unwrap();
    }
    keys
}

fn property(db: &Db, name: &str) -> String {
    db.property(&db.default_column_family(), name).unwrap()
}

#[test]
fn rows_expire_one_by_one_though_compactions_have_mixed_them() {
    let env = Env::simulated(1).0;
    let db = open(&env, Aging::Expire(10 * HOUR));
    // An hour's rows each, all over the key space, and all in one level after each hour.
    for hour in 0..30_u64 {
        for i in 0..20_u32 {
            db.put(&(i * 100 + hour as u32).to_be_bytes(), &[7; 600]).unwrap();
        }
        pass(&env, HOUR);
        db.compact_range(None, None).unwrap();
        let alive = |key: u32| u64::from(key % 100);
        let found = keys(&db);
        let oldest = found.iter().map(|&key| alive(key)).min().unwrap();
        let first = (hour + 1).saturating_sub(10);
        assert!(
            (first.saturating_sub(1)..=first).contains(&oldest),
            "after hour {hour} there is one of hour {oldest}"
        );
        assert!(found.len() as u64 >= 20 * (hour - first));
    }
    let (live, all) = (db.stats().blob_live_bytes, 30 * 20 * 600);
    assert!(live < all / 2, "{live} bytes of values are live");
    // Reopened it goes on where it was.
    db.close().unwrap();
    let db = open(&env, Aging::Expire(10 * HOUR));
    pass(&env, 5 * HOUR);
    db.compact_range(None, None).unwrap();
    let oldest = keys(&db).iter().map(|key| key % 100).min().unwrap();
    assert!((24..=26).contains(&oldest), "{oldest}");
}

#[test]
fn nothing_is_left_of_old_rows_though_nobody_writes_any_more() {
    let env = Env::simulated(1).0;
    let db = open(&env, Aging::Expire(2 * HOUR));
    put(&db, 0..500);
    db.compact_range(None, None).unwrap();
    put(&db, 300..600);
    db.wait_idle().unwrap();
    pass(&env, 2 * HOUR - 60);
    assert!(db.is_idle().unwrap());
    assert_eq!(keys(&db).len(), 600);
    db.pause_background_work();
    pass(&env, 120);
    assert!(!db.is_idle().unwrap(), "there are tables that are too old");
    db.resume_background_work();
    db.wait_idle().unwrap();
    assert_eq!(keys(&db), Vec::<u32>::new());
    assert_eq!(
        (property(&db, "files"), property(&db, "blob-files")),
        ("0".into(), "0".into())
    );
    let counters = db.stats().counters;
    assert!(
        counters
            .iter()
            .any(|(name, count)| *name == "compactions_for_age" && *count > 0)
    );
}

#[test]
fn an_old_value_does_not_come_to_light_when_a_newer_one_expires() {
    let env = Env::simulated(1).0;
    let db = open(&env, Aging::None);
    put(&db, 0..100);
    db.compact_range(None, None).unwrap();
    let family = db.default_column_family();
    db.set_family_options(&family, &[("aging", "expire:7200")])
        .unwrap();
    pass(&env, 600);
    put(&db, 50..100);
    let snapshot = db.snapshot();
    pass(&env, HOUR);
    // What is below is rewritten, and as young as that for all that is known.
    db.compact_range(Some(&0_u32.to_be_bytes()), Some(&10_u32.to_be_bytes()))
        .unwrap();
    pass(&env, HOUR);
    db.wait_idle().unwrap();
    assert_eq!(keys(&db).len(), 100, "a snapshot sees them");
    drop(snapshot);
    pass(&env, 3 * HOUR);
    db.wait_idle().unwrap();
    assert_eq!(keys(&db), Vec::<u32>::new());
}

#[test]
fn old_tables_are_rewritten_once_in_a_while_and_keep_their_rows() {
    let env = Env::simulated(1).0;
    let db = open(&env, Aging::Rewrite(HOUR));
    let family = db.default_column_family();
    put(&db, 0..500);
    db.compact_range(None, None).unwrap();
    for i in 0..100_u32 {
        db.delete(&i.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let deletions = || {
        let tables = db.table_properties(&family, None, None).unwrap();
        tables.iter().map(|table| table.deletions).sum::<u64>()
    };
    assert_eq!(deletions(), 100);
    for _ in 0..3 {
        let before = db.table_properties(&family, None, None).unwrap();
        pass(&env, HOUR + 1);
        db.wait_idle().unwrap();
        let after = db.table_properties(&family, None, None).unwrap();
        assert!(
            after
                .iter()
                .all(|table| before.iter().all(|old| old.number < table.number))
        );
        assert_eq!((keys(&db).len(), deletions()), (400, 0));
    }
}

#[test]
fn a_limit_that_can_not_be_is_refused() {
    let env = Env::simulated(1).0;
    let db = open(&env, Aging::None);
    let family = db.default_column_family();
    for (value, wanted) in [
        ("expire:59", "60"),
        ("rewrite", "rewrite:SECONDS"),
        ("rewrite:9999999999999", "60"),
    ] {
        let error = db.set_family_options(&family, &[("aging", value)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.message().contains("aging") && error.message().contains(wanted),
            "{error}"
        );
    }
    db.set_family_options(&family, &[("aging", "rewrite:60")])
        .unwrap();
    db.close().unwrap();
    let db = Opener::new(Options {
        default_column_family: ColumnFamilyOptions {
            aging: Aging::Rewrite(60),
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    })
    .env(env)
    .open("/db")
    .unwrap();
    assert_eq!(db.default_column_family().options().aging, Aging::Rewrite(60));
}
