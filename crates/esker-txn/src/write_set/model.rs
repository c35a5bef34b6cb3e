//! Random transactions against a model: a list of writes over a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, Db, KeyOrder, Opener, Options, PrefixExtractor,
    ReadOptions, ReverseBytewiseComparator, Snapshot, WriteOptions,
};
use esker_env::Env;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Iter, WriteSet};

pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn open() -> (Db, [ColumnFamily; 2]) {
    let settings = |key_order| ColumnFamilyOptions {
        key_order,
        merge_operator: Some(Arc::new(AppendOperator::new(*b","))),
        prefix_extractor: Some(PrefixExtractor::Fixed(1)),
        level0_compaction_trigger: 2,
        ..ColumnFamilyOptions::default()
    };
    let options = Options {
        memory_budget_bytes: 64 << 20,
        default_column_family: settings(KeyOrder::Bytewise),
        ..Options::default()
    };
    let db = Opener::new(options).env(Env::simulated(5).0).open("db").unwrap();
    let reverse = KeyOrder::Custom(Arc::new(ReverseBytewiseComparator));
    let other = db.create_column_family("other", settings(reverse)).unwrap();
    (db.clone(), [db.default_column_family(), other])
}

const KEYS: usize = 16;

/// The first is written as single deletes need it: put while absent, single-deleted while present. The empty one has no prefix.
fn key(i: usize) -> Vec<u8> {
    match i % KEYS {
        0 => b"b3".to_vec(),
        1 => Vec::new(),
        i => format!("{}{}", ["a", "b", "c"][i % 3], "x".repeat(i / 3)).into_bytes(),
    }
}

#[derive(Clone, Debug)]
enum Write {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Write {
    /// A write that the family allows for: ranges the right way round, single deletes where they belong.
    fn new(order: &KeyOrder, rows: &Rows, what: u8, at: usize, other: usize, number: usize) -> Self {
        let value = match number % 4 {
            0 => format!("{number:0700}"),
            _ => format!("{number:03}"),
        }
        .into_bytes();
        let (key, other) = (key(at), key(other));
        if what == 0 {
            return match order.compare(&key, &other).is_gt() {
                true => Self::DeleteRange(other, key),
                false => Self::DeleteRange(key, other),
            };
        }
        if at == 0 {
            return match rows.contains_key(&key) {
                true => Self::SingleDelete(key),
                false => Self::Put(key, value),
            };
        }
        match what {
            1..=3 => Self::Delete(key),
            4..=7 => Self::Merge(key, format!("{number}").into_bytes()),
            _ => Self::Put(key, value),
        }
    }

    fn apply(&self, order: &KeyOrder, rows: &mut Rows) {
        match self {
            Self::Put(key, value) => drop(rows.insert(key.clone(), value.clone())),
            Self::Delete(key) | Self::SingleDelete(key) => drop(rows.remove(key)),
            Self::Merge(key, operand) => match rows.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend(operand);
                }
                None => drop(rows.insert(key.clone(), operand.clone())),
            },
            Self::DeleteRange(start, end) => {
                rows.retain(|key, _| order.compare(key, start).is_lt() || order.compare(key, end).is_ge());
            }
        }
    }

    fn write_to_set(&self, set: &mut WriteSet, family: &ColumnFamily) {
        match self {
            Self::Put(key, value) => set.put(family, key, value),
            Self::Delete(key) => set.delete(family, key),
            Self::SingleDelete(key) => set.single_delete(family, key),
            Self::Merge(key, operand) => set.merge(family, key, operand),
            Self::DeleteRange(start, end) => set.delete_range(family, start, end),
        }
        .unwrap();
    }

    fn write_to_database(&self, db: &Db, family: &ColumnFamily) {
        match self {
            Self::Put(key, value) => db.put_cf(family, key, value),
            Self::Delete(key) => db.delete_cf(family, key),
            Self::SingleDelete(key) => db.single_delete_cf_with(family, key, &WriteOptions::default()),
            Self::Merge(key, operand) => db.merge_cf(family, key, operand),
            Self::DeleteRange(start, end) => db.delete_range_cf(family, start, end),
        }
        .unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    First,
    Last,
    Seek(usize),
    SeekForPrev(usize),
    Next,
    Prev,
    Narrow(Option<usize>, Option<usize>),
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        family: usize,
        what: u8,
        at: usize,
        other: usize,
    },
    WriteBeside {
        family: usize,
        what: u8,
        at: usize,
        other: usize,
    },
    SetSavePoint,
    RollBack,
    PopSavePoint,
    Get,
    Open {
        family: usize,
        bounds: [Option<usize>; 2],
        prefix_same: bool,
    },
    Move(Index, Vec<Move>),
    Refresh(Index),
    Close(Index),
    Commit,
    Abandon,
    Flush,
    Compact,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (0..KEYS).prop_map(Move::Seek),
        2 => (0..KEYS).prop_map(Move::SeekForPrev),
        6 => Just(Move::Next),
        6 => Just(Move::Prev),
        1 => (prop::option::of(0..KEYS), prop::option::of(0..KEYS)).prop_map(|(lower, upper)| Move::Narrow(lower, upper)),
    ];
    prop::collection::vec(one, 1..20)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = || (0..2_usize, 0..14_u8, 0..KEYS, 0..KEYS);
    let step = prop_oneof![
        16 => write().prop_map(|(family, what, at, other)| Step::Write { family, what, at, other }),
        8 => write().prop_map(|(family, what, at, other)| Step::WriteBeside { family, what, at, other }),
        3 => Just(Step::SetSavePoint),
        2 => Just(Step::RollBack),
        1 => Just(Step::PopSavePoint),
        4 => Just(Step::Get),
        4 => (0..2_usize, prop::array::uniform2(prop::option::weighted(0.3, 0..KEYS)), prop::bool::weighted(0.3))
            .prop_map(|(family, bounds, prefix_same)| Step::Open { family, bounds, prefix_same }),
        10 => (any::<Index>(), moves()).prop_map(|(at, moves)| Step::Move(at, moves)),
        1 => any::<Index>().prop_map(Step::Refresh),
        1 => any::<Index>().prop_map(Step::Close),
        1 => Just(Step::Commit),
        1 => Just(Step::Abandon),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..80)
}

/// An iterator, and what it is to show.
struct Open {
    iter: Iter,
    family: usize,
    options: ReadOptions,
    /// Within the bounds of the options.
    all: Vec<(Vec<u8>, Vec<u8>)>,
    /// Those of `all` within the bounds that are in force.
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// Those of `rows` that have the prefix, if there is one.
    shown: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

struct Model {
    db: Db,
    families: [ColumnFamily; 2],
    committed: [Rows; 2],
    /// What the transaction sees of the database.
    snapshot: Snapshot,
    seen: [Rows; 2],
    set: WriteSet,
    writes: Vec<(usize, Write)>,
    save_points: Vec<usize>,
    open: Vec<Open>,
}

impl Model {
    fn new() -> Self {
        let (db, families) = open();
        Self {
            snapshot: db.snapshot(),
            db,
            families,
            committed: Default::default(),
            seen: Default::default(),
            set: WriteSet::new(),
            writes: Vec::new(),
            save_points: Vec::new(),
            open: Vec::new(),
        }
    }

    fn order(&self, family: usize) -> &KeyOrder {
        self.families[family].key_order()
    }

    /// What the transaction reads.
    fn rows(&self, family: usize) -> Rows {
        let mut rows = self.seen[family].clone();
        for (_, write) in self.writes.iter().filter(|(of, _)| *of == family) {
            write.apply(self.order(family), &mut rows);
        }
        rows
    }

    fn begin(&mut self) {
        self.set.clear();
        self.writes.clear();
        self.save_points.clear();
        self.snapshot = self.db.snapshot();
        self.seen = self.committed.clone();
    }

    fn options(&self) -> ReadOptions {
        ReadOptions {
            snapshot: Some(self.snapshot.clone()),
            ..ReadOptions::default()
        }
    }

    fn run(&mut self, number: usize, step: &Step) {
        match step {
            Step::Write {
                family,
                what,
                at,
                other,
            } => {
                let write = Write::new(
                    self.order(*family),
                    &self.rows(*family),
                    *what,
                    *at,
                    *other,
                    number,
                );
                write.write_to_set(&mut self.set, &self.families[*family]);
                self.writes.push((*family, write));
            }
            Step::WriteBeside {
                family,
                what,
                at,
                other,
            } => {
                // The key of single deletes is the transaction's.
                let at = (*at).max(1);
                let write = Write::new(self.order(*family), &Rows::new(), *what, at, *other, number);
                write.write_to_database(&self.db, &self.families[*family]);
                let order = self.families[*family].key_order();
                write.apply(order, &mut self.committed[*family]);
            }
            Step::SetSavePoint => {
                self.set.set_save_point();
                self.save_points.push(self.writes.len());
            }
            Step::RollBack => {
                let point = self.save_points.pop();
                assert_eq!(self.set.roll_back_to_save_point(), point.is_some());
                self.writes.truncate(point.unwrap_or(usize::MAX));
            }
            Step::PopSavePoint => {
                assert_eq!(self.set.pop_save_point(), self.save_points.pop().is_some());
            }
            Step::Get => self.check_gets(),
            Step::Open {
                family,
                bounds,
                prefix_same,
            } => {
                let bound = |at: Option<usize>| at.map(key);
                let options = ReadOptions {
                    lower_bound: bound(bounds[0]),
                    upper_bound: bound(bounds[1]),
                    prefix_same: *prefix_same,
                    ..self.options()
                };
                let family_handle = &self.families[*family];
                let iter = self.set.iter(&self.db, family_handle, options.clone()).unwrap();
                let rows = self.expected(*family, &options);
                self.open.push(Open {
                    iter,
                    family: *family,
                    options,
                    all: rows.clone(),
                    rows,
                    shown: Vec::new(),
                    at: None,
                });
            }
            Step::Move(at, moves) => {
                if !self.open.is_empty() {
                    let at = at.index(self.open.len());
                    let order = self.families[self.open[at].family].key_order();
                    for one in moves {
                        self.open[at].go(order, *one);
                    }
                }
            }
            Step::Refresh(at) => {
                if !self.open.is_empty() {
                    let at = at.index(self.open.len());
                    // The options keep the snapshot, so only the set may differ, and only within one transaction.
                    let same = self.open[at].options.snapshot.as_ref().map(Snapshot::sequence);
                    if same == Some(self.snapshot.sequence()) {
                        let rows = self.expected(self.open[at].family, &self.open[at].options);
                        let open = &mut self.open[at];
                        open.iter.refresh(&self.db, &self.set).unwrap();
                        assert!(!open.iter.valid());
                        (open.all, open.rows, open.at) = (rows.clone(), rows, None);
                    }
                }
            }
            Step::Close(at) => {
                if !self.open.is_empty() {
                    self.open.remove(at.index(self.open.len()));
                }
            }
            Step::Commit => {
                self.set.commit(&self.db, &WriteOptions::default()).unwrap();
                for (family, write) in &self.writes {
                    let order = self.families[*family].key_order();
                    write.apply(order, &mut self.committed[*family]);
                }
                self.begin();
            }
            Step::Abandon => self.begin(),
            Step::Flush => self.db.flush().unwrap(),
            Step::Compact => self.families.iter().for_each(|family| {
                self.db.compact_range_cf(family, None, None).unwrap();
            }),
        }
        assert_eq!(self.set.len(), self.writes.len());
    }

    /// The rows within bounds, in the order of the family.
    fn expected(&self, family: usize, options: &ReadOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
        let order = self.order(family);
        let mut rows: Vec<_> = self.rows(family).into_iter().collect();
        rows.sort_by(|a, b| order.compare(&a.0, &b.0));
        let (lower, upper) = (&options.lower_bound, &options.upper_bound);
        rows.retain(|(key, _)| {
            !lower
                .as_ref()
                .is_some_and(|lower| order.compare(key, lower).is_lt())
                && !upper
                    .as_ref()
                    .is_some_and(|upper| order.compare(key, upper).is_ge())
        });
        rows
    }

    fn check_gets(&self) {
        let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for (at, family) in self.families.iter().enumerate() {
            let rows = self.rows(at);
            let several = self
                .set
                .multi_get(&self.db, family, &slices, &self.options())
                .unwrap();
            for (key, of_several) in keys.iter().zip(several) {
                let one = self.set.get(&self.db, family, key, &self.options()).unwrap();
                let expected = rows.get(key).map(Vec::as_slice);
                assert_eq!(one.as_deref(), expected, "{at}: {key:?}");
                assert_eq!(of_several.as_deref(), expected, "{at}: {key:?}");
            }
        }
    }
}

impl Open {
    fn go(&mut self, order: &KeyOrder, one: Move) {
        let prefix = |key: &[u8]| self.options.prefix_same.then(|| key.first().copied()).flatten();
        let within = |prefix: Option<u8>| -> Vec<_> {
            let rows = self.rows.iter();
            rows.filter(|row| prefix.is_none_or(|prefix| row.0.first() == Some(&prefix)))
                .cloned()
                .collect()
        };
        match one {
            Move::First => {
                self.iter.seek_to_first().unwrap();
                self.shown = within(self.rows.first().and_then(|row| prefix(&row.0)));
                self.at = Some(0);
            }
            Move::Last => {
                self.iter.seek_to_last().unwrap();
                self.shown = within(self.rows.last().and_then(|row| prefix(&row.0)));
                self.at = self.shown.len().checked_sub(1);
            }
            Move::Seek(at) => {
                self.iter.seek(&key(at)).unwrap();
                self.shown = within(prefix(&key(at)));
                self.at = Some(
                    self.shown
                        .partition_point(|row| order.compare(&row.0, &key(at)).is_lt()),
                );
            }
            Move::SeekForPrev(at) => {
                self.iter.seek_for_prev(&key(at)).unwrap();
                self.shown = within(prefix(&key(at)));
                let upto = self
                    .shown
                    .partition_point(|row| order.compare(&row.0, &key(at)).is_le());
                self.at = upto.checked_sub(1);
            }
            Move::Next => {
                self.iter.next().unwrap();
                self.at = self.at.map(|at| at + 1);
            }
            Move::Prev => {
                self.iter.prev().unwrap();
                self.at = self.at.and_then(|at| at.checked_sub(1));
            }
            Move::Narrow(lower, upper) => {
                let (lower, upper) = (lower.map(key), upper.map(key));
                self.iter.set_bounds(lower.as_deref(), upper.as_deref());
                self.rows.clone_from(&self.all);
                self.rows.retain(|(key, _)| {
                    lower
                        .as_ref()
                        .is_none_or(|lower| order.compare(key, lower).is_ge())
                        && upper
                            .as_ref()
                            .is_none_or(|upper| order.compare(key, upper).is_lt())
                });
                self.at = None;
            }
        }
        self.at = self.at.filter(|at| *at < self.shown.len());
        let expected = self
            .at
            .map(|at| (self.shown[at].0.as_slice(), self.shown[at].1.as_slice()));
        let found = self.iter.valid().then(|| (self.iter.key(), self.iter.value()));
        assert_eq!(found, expected, "after {one:?}");
        if found.is_none() {
            assert!(self.iter.key().is_empty() && self.iter.value().is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_the_model_says(steps in steps()) {
        let mut model = Model::new();
        for (number, step) in steps.iter().enumerate() {
            model.run(number, step);
        }
        model.check_gets();
        let sweep: Vec<Move> = [Move::First].into_iter().chain([Move::Next; KEYS]).chain([Move::Last]).chain([Move::Prev; KEYS]).collect();
        for family in 0..2 {
            for prefix_same in [false, true] {
                model.run(steps.len(), &Step::Open { family, bounds: [None, None], prefix_same });
                let order = model.families[family].key_order();
                let open = model.open.last_mut().unwrap();
                for one in &sweep {
                    open.go(order, *one);
                }
            }
        }
    }
}
