//! One test for each bug that was found, named by what must hold.

use std::path::Path;

use esker::{Db, Opener, Options, ReadOptions};
use esker_env::Env;
use esker_testkit::crash::check_files;

fn open(env: &Env) -> Db {
    Opener::new(Options::default())
        .env(env.clone())
        .open(Path::new("/db"))
        .unwrap()
}

#[test]
fn an_iterator_that_turns_does_not_meet_rows_written_since() {
    let (env, _) = Env::simulated(1);
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.put(b"c", b"1").unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_for_prev(b"d").unwrap();
    assert_eq!(iter.key(), b"c");
    // Between the row that the iterator looked at last and the one that it shows.
    db.put(b"b", b"2").unwrap();
    iter.next().unwrap();
    assert!(!iter.valid(), "{:?}", iter.key());
}

#[test]
fn files_that_only_an_iterator_held_go_when_it_goes() {
    let (env, fs) = Env::simulated(1);
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    db.put(b"a", b"2").unwrap();
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(iter.value(), b"1");
    drop(iter);
    check_files(&fs, &db).unwrap();
}
