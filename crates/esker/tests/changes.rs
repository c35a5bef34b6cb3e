//! What was written since a snapshot: the engine's word against the history, while tables are written and merged.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use esker::{
    AppendOperator, ColumnFamilyOptions, Db, ErrorKind, KeyOrder, Opener, Options, ReverseBytewiseComparator,
    Snapshot,
};
use esker_env::Env;
use esker_env::fault::{FaultFs, Op};
use proptest::prelude::*;

/// Keys that are written one by one; ranges may end behind them.
const KEYS: usize = 24;
const KEYS_AND_ENDS: usize = KEYS + 8;

fn key(i: usize) -> Vec<u8> {
    format!("{:02}{}", i / 2, ["", "/longer"][i % 2]).into_bytes()
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize),
    Delete(usize),
    Merge(usize),
    DeleteRange(usize, usize),
    Flush,
    Compact(usize, usize),
    Snapshot,
    Release(prop::sample::Index),
    Ask(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..KEYS, prop_oneof![Just(3_usize), Just(700)]).prop_map(|(key, len)| Step::Put(key, len)),
        3 => (0..KEYS).prop_map(Step::Delete),
        3 => (0..KEYS).prop_map(Step::Merge),
        1 => (0..KEYS, 0..6_usize).prop_map(|(from, width)| Step::DeleteRange(from, from + width)),
        2 => Just(Step::Flush),
        2 => (0..KEYS, 0..KEYS).prop_map(|(a, b)| Step::Compact(a, b)),
        3 => Just(Step::Snapshot),
        1 => any::<prop::sample::Index>().prop_map(Step::Release),
        4 => any::<prop::sample::Index>().prop_map(Step::Ask),
    ];
    prop::collection::vec(step, 1..120)
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A snapshot, the rows at its moment, and for each key the number of writes that had reached it by then.
struct Moment {
    snapshot: Snapshot,
    rows: Rows,
    writes: Vec<u64>,
}

struct Model {
    db: Db,
    order: KeyOrder,
    rows: Rows,
    /// How often each key was written.
    writes: Vec<u64>,
    moments: Vec<Moment>,
}

impl Model {
    fn new(order: KeyOrder) -> Self {
        let options = Options {
            memory_budget_bytes: 64 << 20,
            default_column_family: ColumnFamilyOptions {
                key_order: order.clone(),
                merge_operator: Some(Arc::new(AppendOperator::new(*b","))),
                level0_compaction_trigger: 2,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        let db = Opener::new(options).env(Env::simulated(3).0).open("db").unwrap();
        Self {
            db,
            order,
            rows: Rows::new(),
            writes: vec![0; KEYS_AND_ENDS],
            moments: Vec::new(),
        }
    }

    /// The indexes of the keys from `a` up to `b`, whichever of them comes first.
    fn span(&self, a: usize, b: usize) -> (Vec<u8>, Vec<u8>, Vec<usize>) {
        let (mut from, mut to) = (key(a), key(b));
        if self.order.compare(&from, &to).is_gt() {
            std::mem::swap(&mut from, &mut to);
        }
        let inside = |i: &usize| {
            let key = key(*i);
            self.order.compare(&key, &from).is_ge() && self.order.compare(&key, &to).is_lt()
        };
        let inside = (0..KEYS_AND_ENDS).filter(inside).collect();
        (from, to, inside)
    }

    fn run(&mut self, number: usize, step: &Step) {
        let value = |len: usize| format!("{number:0len$}").into_bytes();
        match step {
            // This key is for single deletes: put while absent, single-deleted while present.
            Step::Put(0, _) | Step::Delete(0) | Step::Merge(0) => {
                if self.rows.remove(&key(0)).is_some() {
                    self.db.single_delete(&key(0)).unwrap();
                } else {
                    self.db.put(&key(0), &value(3)).unwrap();
                    self.rows.insert(key(0), value(3));
                }
                self.writes[0] += 1;
            }
            Step::Put(at, len) => {
                self.db.put(&key(*at), &value(*len)).unwrap();
                self.rows.insert(key(*at), value(*len));
                self.writes[*at] += 1;
            }
            Step::Delete(at) => {
                self.db.delete(&key(*at)).unwrap();
                self.rows.remove(&key(*at));
                self.writes[*at] += 1;
            }
            Step::Merge(at) => {
                self.db.merge(&key(*at), &value(2)).unwrap();
                let row = self.rows.entry(key(*at));
                row.and_modify(|row| {
                    row.push(b',');
                    row.extend(value(2));
                })
                .or_insert(value(2));
                self.writes[*at] += 1;
            }
            Step::DeleteRange(a, b) => {
                let (from, to, inside) = self.span(*a, *b);
                self.db.delete_range(&from, &to).unwrap();
                for at in inside {
                    self.rows.remove(&key(at));
                    self.writes[at] += 1;
                }
            }
            Step::Flush => self.db.flush().unwrap(),
            Step::Compact(a, b) => {
                let (from, to, _) = self.span(*a, *b);
                self.db.compact_range(Some(&from), Some(&to)).unwrap();
            }
            Step::Snapshot => self.moments.push(Moment {
                snapshot: self.db.snapshot(),
                rows: self.rows.clone(),
                writes: self.writes.clone(),
            }),
            Step::Release(at) => {
                if !self.moments.is_empty() {
                    self.moments.remove(at.index(self.moments.len()));
                }
            }
            Step::Ask(at) => {
                if !self.moments.is_empty() {
                    self.ask(&self.moments[at.index(self.moments.len())], number);
                }
            }
        }
    }

    fn ask(&self, moment: &Moment, number: usize) {
        let family = self.db.default_column_family();
        // (written since, may have gone without a trace)
        let truth: Vec<(bool, bool)> = (0..KEYS_AND_ENDS)
            .map(|at| {
                let absent = |rows: &Rows| !rows.contains_key(&key(at));
                let written = self.writes[at] > moment.writes[at];
                (written, absent(&moment.rows) && absent(&self.rows))
            })
            .collect();
        for (at, (written, traceless)) in truth.iter().enumerate() {
            let changed = self
                .db
                .changed_since(&family, &key(at), &moment.snapshot)
                .unwrap();
            assert!(
                changed == *written || (*written && *traceless),
                "key {at}: {changed}"
            );
        }
        for (a, b) in [
            (0, KEYS - 1),
            (number % KEYS, number * 7 % KEYS),
            (number % KEYS, number % KEYS + 1),
        ] {
            let (from, to, inside) = self.span(a, b);
            let changed = self
                .db
                .range_changed_since(&family, &from, Some(&to), &moment.snapshot)
                .unwrap();
            let must = inside.iter().any(|at| truth[*at].0 && !truth[*at].1);
            let may = inside.iter().any(|at| truth[*at].0);
            assert!(!must || changed, "range {a} to {b}: not changed");
            assert!(!changed || may, "range {a} to {b}: changed");
        }
        let from = key(number % KEYS);
        let changed = self
            .db
            .range_changed_since(&family, &from, None, &moment.snapshot)
            .unwrap();
        let behind = |at: &usize| self.order.compare(&key(*at), &from).is_ge();
        let mut inside = (0..KEYS_AND_ENDS).filter(behind).map(|at| truth[at]);
        let may = inside.clone().any(|(written, _)| written);
        let must = inside.any(|(written, traceless)| written && !traceless);
        assert!(!must || changed, "from {} on: not changed", from.escape_ascii());
        assert!(!changed || may, "from {} on: changed", from.escape_ascii());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_changed_is_what_the_history_says(steps in steps(), reverse: bool) {
        let order = match reverse {
            true => KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
            false => KeyOrder::Bytewise,
        };
        let mut model = Model::new(order);
        for (number, step) in steps.iter().enumerate() {
            model.run(number, step);
        }
        for moment in &model.moments {
            model.ask(moment, steps.len());
        }
    }
}

/// A database whose reads are counted.
fn counted() -> (Db, FaultFs) {
    let (mut env, mem) = Env::simulated(7);
    let faults = FaultFs::new(Arc::new(mem));
    env.fs = Arc::new(faults.clone());
    let options = Options {
        memory_budget_bytes: 64 << 20,
        ..Options::default()
    };
    (
        Opener::new(options).env(env).open(Path::new("db")).unwrap(),
        faults,
    )
}

#[test]
fn old_files_are_not_read() {
    let (db, faults) = counted();
    let family = db.default_column_family();
    let row = |i: u32| format!("row{i:05}").into_bytes();
    for i in 0..2000 {
        db.put(&row(i), b"value").unwrap();
    }
    db.compact_range(None, None).unwrap();
    let snapshot = db.snapshot();
    db.put(&row(500), b"other").unwrap();
    let before = faults.calls(Op::Read) + faults.calls(Op::ReadMany);
    for i in 0..2000 {
        assert_eq!(db.changed_since(&family, &row(i), &snapshot).unwrap(), i == 500);
    }
    assert!(
        !db.range_changed_since(&family, &row(0), Some(&row(500)), &snapshot)
            .unwrap()
    );
    assert!(
        !db.range_changed_since(&family, &row(501), Some(&row(1900)), &snapshot)
            .unwrap()
    );
    assert!(
        db.range_changed_since(&family, &row(0), Some(&row(501)), &snapshot)
            .unwrap()
    );
    db.flush().unwrap();
    let flushed = faults.calls(Op::Read) + faults.calls(Op::ReadMany);
    // The new table lies inside the range: its bounds say all.
    assert!(
        db.range_changed_since(&family, &row(0), Some(&row(501)), &snapshot)
            .unwrap()
    );
    let after = faults.calls(Op::Read) + faults.calls(Op::ReadMany);
    assert_eq!((before, after), (before, flushed));
    assert!(db.changed_since(&family, &row(500), &snapshot).unwrap());
    assert!(
        db.range_changed_since(&family, &row(500), None, &snapshot)
            .unwrap()
    );
    assert!(
        !db.range_changed_since(&family, &row(501), None, &snapshot)
            .unwrap()
    );
    assert!(
        !db.range_changed_since(&family, &row(7), Some(&row(7)), &snapshot)
            .unwrap()
    );
    assert!(
        !db.range_changed_since(&family, &row(600), Some(&row(400)), &snapshot)
            .unwrap()
    );
}

/// With the snapshot held, a compaction to the bottom must not number a newer row as the oldest.
#[test]
fn a_change_survives_the_bottommost_level() {
    let (db, _) = counted();
    let family = db.default_column_family();
    for key in [b"a", b"b", b"c"] {
        db.put(key, b"1").unwrap();
    }
    let snapshot = db.snapshot();
    db.put(b"a", b"2").unwrap();
    db.delete(b"b").unwrap();
    db.put(b"new", b"1").unwrap();
    db.compact_range(None, None).unwrap();
    let changed = |key: &[u8]| db.changed_since(&family, key, &snapshot).unwrap();
    assert!(changed(b"a") && changed(b"b") && !changed(b"c") && changed(b"new"));
}

#[test]
fn a_snapshot_of_another_database_is_refused_and_so_is_a_closed_one() {
    let ((db, _), (other, _)) = (counted(), counted());
    let family = db.default_column_family();
    for result in [
        db.changed_since(&family, b"a", &other.snapshot()),
        db.range_changed_since(&family, b"a", Some(&b"b"[..]), &other.snapshot()),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let snapshot = db.snapshot();
    db.close().unwrap();
    for result in [
        db.changed_since(&family, b"a", &snapshot),
        db.range_changed_since(&family, b"a", Some(&b"b"[..]), &snapshot),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// One thread writes, flushes and compacts; another asks about keys of its own, and about the writer's.
#[test]
fn answers_stay_right_while_flushes_and_compactions_go_on() {
    let (db, _) = counted();
    let family = db.default_column_family();
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=2000_u64 {
                db.put(b"busy", &round.to_be_bytes()).unwrap();
                written.store(round, Ordering::Release);
                match round % 50 {
                    10 => db.flush().unwrap(),
                    40 => db.compact_range(None, None).unwrap(),
                    _ => {}
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut mine = 0_u64;
        while !done.load(Ordering::Acquire) {
            let old = db.snapshot();
            assert!(!db.changed_since(&family, b"mine", &old).unwrap());
            assert!(
                !db.range_changed_since(&family, b"m", Some(&b"n"[..]), &old)
                    .unwrap()
            );
            let before = written.load(Ordering::Acquire);
            mine += 1;
            db.put(b"mine", &mine.to_be_bytes()).unwrap();
            assert!(db.changed_since(&family, b"mine", &old).unwrap());
            assert!(
                db.range_changed_since(&family, b"m", Some(&b"n"[..]), &old)
                    .unwrap()
            );
            // A write that had returned before the question, and began behind the snapshot.
            if written.load(Ordering::Acquire) > before + 1 {
                assert!(db.changed_since(&family, b"busy", &old).unwrap());
                assert!(
                    db.range_changed_since(&family, b"a", Some(&b"c"[..]), &old)
                        .unwrap()
                );
            }
        }
    });
}
