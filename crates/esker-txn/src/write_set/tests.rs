//! Scenarios: limits, save points, memory, iterators beside writes, costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{
    ColumnFamilyOptions, Comparator, Db, Durability, ErrorKind, KeyOrder, Mutation, Opener, Options,
    ReadOptions, WriteBatch, WriteOptions,
};
use esker_env::Env;

use super::model::open;
use super::{Iter, WriteSet};

fn rows(iter: &mut Iter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next().unwrap();
    }
    rows
}

fn keys(iter: &mut Iter) -> String {
    let keys: Vec<String> = rows(iter)
        .into_iter()
        .map(|(key, _)| String::from_utf8(key).unwrap())
        .collect();
    keys.join(" ")
}

fn value(set: &WriteSet, db: &Db, key: &[u8]) -> Option<Vec<u8>> {
    let family = db.default_column_family();
    let found = set.get(db, &family, key, &ReadOptions::default()).unwrap();
    found.map(|value| value.into_vec())
}

#[test]
fn the_limit_is_exact_and_leaves_the_set_as_it_was() {
    let (db, [family, _]) = open();
    let mut set = WriteSet::new();
    set.put(&family, b"a", b"1").unwrap();
    let one = set.size_bytes();
    set.put(&family, b"b", b"2").unwrap();
    let both = set.size_bytes();
    let mut bounded = WriteSet::with_max_bytes(both);
    bounded.put(&family, b"a", b"1").unwrap();
    bounded.put(&family, b"b", b"2").unwrap();
    let error = bounded.delete(&family, b"a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteLimit);
    assert!(error.message().contains("max_write_set_bytes is 22"), "{error}");
    assert_eq!(value(&bounded, &db, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!((bounded.len(), bounded.size_bytes()), (2, both));
    bounded.set_max_bytes(one);
    let unindexed = Mutation::Put {
        family: 0,
        key: b"c",
        value: b"",
    };
    assert!(bounded.push_unindexed(unindexed).is_err());
    bounded.clear();
    bounded.put(&family, b"a", b"1").unwrap();
    assert!(bounded.put(&family, b"b", b"2").is_err());
}

#[test]
fn an_over_long_key_is_refused_and_is_not_in_the_index() {
    let (db, [family, _]) = open();
    let mut set = WriteSet::new();
    let long = vec![b'k'; (64 << 10) + 1];
    assert!(set.put(&family, &long, b"").is_err());
    assert!(set.delete_range(&family, b"a", &long).is_err());
    assert!(set.is_empty());
    assert_eq!(value(&set, &db, &long), None);
}

#[test]
fn save_points_nest_and_take_back_what_is_behind_them() {
    let (db, [family, other]) = open();
    db.put(b"k", b"0").unwrap();
    let mut set = WriteSet::new();
    let seen = |set: &WriteSet| value(set, &db, b"k").map(|value| String::from_utf8(value).unwrap());
    set.set_save_point();
    set.put(&family, b"k", b"1").unwrap();
    set.set_save_point();
    set.merge(&family, b"k", b"2").unwrap();
    set.set_save_point();
    set.delete_range(&family, b"a", b"z").unwrap();
    set.put(&other, b"k", b"elsewhere").unwrap();
    assert_eq!(seen(&set), None);
    assert!(set.roll_back_to_save_point());
    assert_eq!(seen(&set).as_deref(), Some("1,2"));
    assert!(
        set.get(&db, &other, b"k", &ReadOptions::default())
            .unwrap()
            .is_none()
    );
    assert!(set.pop_save_point());
    set.delete(&family, b"k").unwrap();
    assert_eq!(seen(&set), None);
    assert!(set.roll_back_to_save_point());
    assert_eq!(seen(&set).as_deref(), Some("0"));
    assert!(set.is_empty() && !set.roll_back_to_save_point() && !set.pop_save_point());
}

#[test]
fn a_mutation_without_index_is_committed_and_rolled_back_but_not_seen() {
    let (db, [family, _]) = open();
    let mut set = WriteSet::new();
    let unindexed = Mutation::Put {
        family: family.id(),
        key: b"hidden",
        value: b"1",
    };
    set.push_unindexed(unindexed).unwrap();
    set.set_save_point();
    set.push_unindexed(Mutation::Delete {
        family: family.id(),
        key: b"hidden",
    })
    .unwrap();
    set.put(&family, b"seen", b"2").unwrap();
    assert_eq!(value(&set, &db, b"hidden"), None);
    assert!(set.roll_back_to_save_point());
    set.put(&family, b"seen", b"3").unwrap();
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    assert_eq!(keys(&mut iter), "seen");
    let options = WriteOptions {
        durability: Some(Durability::Sync),
        ..WriteOptions::default()
    };
    set.commit(&db, &options).unwrap();
    assert_eq!(set.len(), 2, "what was committed is kept");
    assert_eq!(db.get(b"hidden").unwrap().unwrap(), b"1");
    assert_eq!(db.get(b"seen").unwrap().unwrap(), b"3");
}

#[test]
fn a_cleared_set_keeps_its_memory() {
    let (db, [family, _]) = open();
    let mut set = WriteSet::new();
    let fill = |set: &mut WriteSet| {
        for i in 0..3000_u32 {
            set.put(&family, &i.wrapping_mul(2_654_435_761).to_be_bytes(), b"value")
                .unwrap();
        }
    };
    fill(&mut set);
    let full = set.memory_bytes();
    set.set_save_point();
    set.clear();
    let index = full - set.memory_bytes();
    assert!(index <= 3000 * 20, "{index} bytes went that were not the batch's");
    assert!(set.is_empty() && !set.pop_save_point());
    assert_eq!(value(&set, &db, &0_u32.to_be_bytes()), None);
    fill(&mut set);
    assert!(set.memory_bytes() <= full * 11 / 10);
    assert!(value(&set, &db, &0_u32.to_be_bytes()).is_some());
}

#[test]
fn an_iterator_sees_the_set_as_of_its_creation_or_refresh() {
    let (db, [family, _]) = open();
    for key in [b"a", b"c", b"e"] {
        db.put(key, b"db").unwrap();
    }
    let mut set = WriteSet::new();
    set.put(&family, b"b", b"set").unwrap();
    set.set_save_point();
    set.delete(&family, b"c").unwrap();
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    iter.seek(b"b").unwrap();
    // Each of these would show, were the set looked at again.
    set.delete(&family, b"b").unwrap();
    set.put(&family, b"d", b"set").unwrap();
    set.delete_range(&family, b"a", b"z").unwrap();
    assert_eq!((iter.key(), iter.value()), (&b"b"[..], &b"set"[..]));
    assert_eq!(keys(&mut iter), "a b e");
    set.roll_back_to_save_point();
    assert_eq!(keys(&mut iter), "a b e");
    set.clear();
    assert_eq!(keys(&mut iter), "a b e");
    set.put(&family, b"z", b"set").unwrap();
    db.put(b"f", b"db").unwrap();
    assert_eq!(keys(&mut iter), "a b e");
    iter.refresh(&db, &set).unwrap();
    assert!(!iter.valid());
    assert_eq!(keys(&mut iter), "a c e f z");
}

#[test]
fn a_range_tombstone_beyond_the_prefix_does_not_lead_out_of_it() {
    let (db, [family, _]) = open();
    for key in [b"a1", b"b1", b"b2", b"b3", b"c1", b"c2"] {
        db.put(key, b"db").unwrap();
    }
    let mut set = WriteSet::new();
    set.delete_range(&family, b"a2", b"b3").unwrap();
    set.put(&family, b"b2", b"set").unwrap();
    let options = ReadOptions {
        prefix_same: true,
        ..ReadOptions::default()
    };
    let mut iter = set.iter(&db, &family, options).unwrap();
    iter.seek_for_prev(b"b9").unwrap();
    for key in [b"b3", b"b2"] {
        assert_eq!(iter.key(), key);
        iter.prev().unwrap();
    }
    assert!(!iter.valid());
    set.delete_range(&family, b"b1", b"c2").unwrap();
    iter.refresh(&db, &set).unwrap();
    iter.seek(b"b1").unwrap();
    assert!(!iter.valid());
    iter.seek(b"c").unwrap();
    assert_eq!(iter.key(), b"c2");
}

#[test]
fn turning_at_a_row_over_a_deleted_one_shows_neighbours_once() {
    let (db, [family, _]) = open();
    for key in [b"a", b"b", b"c", b"d", b"e"] {
        db.put(key, b"db").unwrap();
    }
    let mut set = WriteSet::new();
    set.delete_range(&family, b"b", b"e").unwrap();
    set.put(&family, b"c", b"set").unwrap();
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    for (forward, key) in [
        (true, b"c"),
        (false, b"a"),
        (true, b"c"),
        (true, b"e"),
        (false, b"c"),
        (true, b"e"),
    ] {
        if forward {
            iter.next().unwrap()
        } else {
            iter.prev().unwrap()
        }
        assert_eq!(iter.key(), key);
    }
}

#[test]
fn an_iterator_outlives_set_and_database_handle_as_the_engines_does() {
    let (db, [family, _]) = open();
    db.put(b"a", b"db").unwrap();
    let mut set = WriteSet::new();
    set.put(&family, b"b", b"set").unwrap();
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    drop(set);
    db.close().unwrap();
    iter.next().unwrap();
    assert_eq!((iter.key(), iter.value()), (&b"b"[..], &b"set"[..]));
    assert_eq!(iter.seek(b"a").unwrap_err().kind(), ErrorKind::Closed);
    assert!(!iter.valid());
    assert_eq!((iter.key(), iter.value()), (&b""[..], &b""[..]));
}

#[test]
fn merges_without_an_operator_fail_where_they_are_read_and_name_the_family() {
    let options = Options {
        memory_budget_bytes: 64 << 20,
        ..Options::default()
    };
    let db = Opener::new(options).env(Env::simulated(5).0).open("db").unwrap();
    let family = db.default_column_family();
    let mut set = WriteSet::new();
    set.merge(&family, b"m", b"1").unwrap();
    set.put(&family, b"a", b"1").unwrap();
    let error = set.get(&db, &family, b"m", &ReadOptions::default()).unwrap_err();
    assert_eq!(
        (error.kind(), error.column_family()),
        (ErrorKind::InvalidArgument, Some("default"))
    );
    assert!(
        set.multi_get(&db, &family, &[b"a", b"m"], &ReadOptions::default())
            .is_err()
    );
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    assert_eq!(iter.key(), b"a");
    assert!(iter.next().is_err());
    assert!(!iter.valid());
    iter.seek(b"a").unwrap();
    assert_eq!(iter.key(), b"a");
}

/// The bytes' order, which counts its comparisons.
struct Counting(AtomicU64);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "counting"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, Ordering::Relaxed);
        a.cmp(b)
    }
}

#[test]
fn lookups_and_rollbacks_cost_the_logarithm_and_a_deleted_range_a_seek() {
    let counting = Arc::new(Counting(AtomicU64::new(0)));
    let family = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::clone(&counting) as Arc<dyn Comparator>),
        ..ColumnFamilyOptions::default()
    };
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: family,
        ..Options::default()
    };
    let db = Opener::new(options).env(Env::simulated(5).0).open("db").unwrap();
    let family = db.default_column_family();
    let key = |i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes();
    let comparisons = |body: &mut dyn FnMut()| {
        let before = counting.0.load(Ordering::Relaxed);
        body();
        counting.0.load(Ordering::Relaxed) - before
    };
    let mut set = WriteSet::new();
    for i in 0..50_000 {
        set.put(&family, &key(i), b"value").unwrap();
    }
    for i in (0..50_000).step_by(101) {
        let cost = comparisons(&mut || assert!(value(&set, &db, &key(i)).is_some()));
        assert!(cost <= 19, "{cost} comparisons for a lookup");
    }
    set.set_save_point();
    for i in 50_000..50_010 {
        set.put(&family, &key(i), b"value").unwrap();
    }
    let cost = comparisons(&mut || assert!(set.roll_back_to_save_point()));
    assert!(cost <= 190, "{cost} comparisons to take back 10 of 50,000");

    let mut batch = WriteBatch::new();
    for i in 0..50_000_u32 {
        batch.put(&i.to_be_bytes(), b"value").unwrap();
    }
    db.write(&mut batch).unwrap();
    let mut set = WriteSet::new();
    set.delete_range(&family, &10_u32.to_be_bytes(), &49_990_u32.to_be_bytes())
        .unwrap();
    let mut iter = set.iter(&db, &family, ReadOptions::default()).unwrap();
    let mut found = 0;
    let cost = comparisons(&mut || found = rows(&mut iter).len());
    assert_eq!(found, 20);
    assert!(cost < 500, "{cost} comparisons to pass 49,980 deleted rows");
}

#[test]
fn sets_and_iterators_may_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<WriteSet>();
    is_send::<Iter>();
}
