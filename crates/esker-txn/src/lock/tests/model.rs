//! Whatever needs no waiting, against a model: a list of who holds what, searched from end to end.

use esker::{ErrorKind, ReverseBytewiseComparator};
use proptest::prelude::*;

use super::*;
use crate::lock::LockTarget;

const TXNS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(u8),
    /// From a key to another without it, by the order of the family.
    Range(u8, Option<u8>),
}

#[derive(Clone, Debug)]
enum Operation {
    Lock(u32, What, LockMode),
    Undo(u32, What),
    SetSavepoint,
    RollBack,
    PopSavepoint,
    End,
}

/// Family 1 is in reverse order.
fn order(family: u32) -> KeyOrder {
    match family {
        1 => KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        _ => KeyOrder::Bytewise,
    }
}

/// All keys from first to last, by the order of the family.
fn keys_of(family: u32, what: &What) -> Vec<u8> {
    let mut keys: Vec<u8> = (0..8).collect();
    if family == 1 {
        keys.reverse();
    }
    let place = |key: u8| keys.iter().position(|other| *other == key).expect("a key");
    match what {
        What::Key(key) => vec![*key],
        What::Range(start, end) => {
            let end = end.map_or(keys.len(), place);
            keys.get(place(*start)..end).unwrap_or_default().to_vec()
        }
    }
}

#[derive(Clone, Debug)]
struct Change {
    family: u32,
    what: What,
    acquired: Acquired,
}

/// A lock: whose, of which family, on what.
type Row = (usize, u32, What, LockMode);

#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    changes: [Vec<Change>; TXNS],
    savepoints: [Vec<usize>; TXNS],
}

impl Model {
    fn own(&mut self, txn: usize, family: u32, what: &What) -> Option<&mut Row> {
        self.rows
            .iter_mut()
            .find(|row| row.0 == txn && row.1 == family && row.2 == *what)
    }

    /// `None`: it is refused.
    fn lock(&mut self, txn: usize, family: u32, what: &What, mode: LockMode) -> Option<Acquired> {
        if self.own(txn, family, what).is_some_and(|own| own.3 >= mode) {
            return Some(Acquired::Held);
        }
        let keys = keys_of(family, what);
        let is_taken = self
            .rows
            .iter()
            .any(|(other, other_family, other_what, other_mode)| {
                *other != txn
                    && *other_family == family
                    && (mode == Exclusive || *other_mode == Exclusive)
                    && keys_of(family, other_what).iter().any(|key| keys.contains(key))
            });
        if is_taken {
            return None;
        }
        let acquired = match self.own(txn, family, what) {
            Some(own) => {
                own.3 = mode;
                Acquired::Upgraded
            }
            None => {
                self.rows.push((txn, family, what.clone(), mode));
                Acquired::New
            }
        };
        self.changes[txn].push(Change {
            family,
            what: what.clone(),
            acquired,
        });
        Some(acquired)
    }

    fn take_back(&mut self, txn: usize, at: usize) -> Acquired {
        let change = self.changes[txn].remove(at);
        match change.acquired {
            Acquired::Upgraded => {
                self.own(txn, change.family, &change.what).expect("a lock").3 = Shared;
            }
            _ => self
                .rows
                .retain(|row| (row.0, row.1, &row.2) != (txn, change.family, &change.what)),
        }
        for savepoint in &mut self.savepoints[txn] {
            *savepoint -= usize::from(*savepoint > at);
        }
        change.acquired
    }

    fn undo(&mut self, txn: usize, family: u32, what: &What) -> Option<Acquired> {
        let at = self.changes[txn]
            .iter()
            .rposition(|change| change.family == family && change.what == *what)?;
        Some(self.take_back(txn, at))
    }

    fn roll_back_to(&mut self, txn: usize, savepoint: usize) {
        while self.changes[txn].len() > savepoint {
            self.take_back(txn, self.changes[txn].len() - 1);
        }
    }

    /// As the manager lists it.
    fn listed(&self) -> Vec<(u32, LockTarget, LockMode, Vec<u64>)> {
        let mut listed: Vec<(u32, LockTarget, LockMode, Vec<u64>)> = Vec::new();
        for (txn, family, what, mode) in &self.rows {
            let target = match what {
                What::Key(key) => LockTarget::Key(vec![*key]),
                What::Range(start, end) => LockTarget::Range {
                    start: vec![*start],
                    end: end.map(|end| vec![end]),
                },
            };
            let same = listed
                .iter_mut()
                .find(|row| (row.0, &row.1, row.2) == (*family, &target, *mode));
            match same {
                Some(same) => same.3.push(*txn as u64),
                None => listed.push((*family, target, *mode, vec![*txn as u64])),
            }
        }
        listed.iter_mut().for_each(|row| row.3.sort_unstable());
        listed.sort();
        listed
    }
}

fn lock(txn: &mut Txn, family: u32, what: &What, mode: LockMode) -> Result<Acquired> {
    let manager = Arc::clone(&txn.manager);
    match what {
        What::Key(key) => manager.acquire(&mut txn.locks, family, &[*key], mode, NOT_AT_ALL),
        What::Range(start, end) => {
            let end = end.map(|end| [end]);
            let range = (&[*start][..], end.as_ref().map(|end| &end[..]));
            manager.acquire_range(&mut txn.locks, family, &order(family), range, mode, NOT_AT_ALL)
        }
    }
}

fn undo(txn: &mut Txn, family: u32, what: &What) -> Option<Acquired> {
    match what {
        What::Key(key) => txn.manager.release_one(&mut txn.locks, family, &[*key]),
        What::Range(start, end) => {
            let end = end.map(|end| [end]);
            let range = (&[*start][..], end.as_ref().map(|end| &end[..]));
            txn.manager.release_one_range(&mut txn.locks, family, range)
        }
    }
}

fn check(operations: &[(usize, Operation)], shards: usize) {
    let (manager, _) = manager(LockSettings {
        shards,
        ..LockSettings::default()
    });
    let mut txns: Vec<Txn> = (0..TXNS).map(|id| Txn::new(&manager, id as u64)).collect();
    let mut model = Model::default();
    for (txn, operation) in operations {
        let (own, txn) = (&mut txns[*txn], *txn);
        match operation {
            Operation::Lock(family, what, _) if keys_of(*family, what).is_empty() => {
                let refused = lock(own, *family, what, Shared).expect_err("an empty range");
                assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
            }
            Operation::Lock(family, what, mode) => {
                let acquired = lock(own, *family, what, *mode);
                if let Err(refused) = &acquired {
                    assert_eq!(refused.kind(), ErrorKind::TimedOut);
                }
                assert_eq!(acquired.ok(), model.lock(txn, *family, what, *mode));
            }
            Operation::Undo(family, what) => {
                assert_eq!(undo(own, *family, what), model.undo(txn, *family, what));
            }
            Operation::SetSavepoint => {
                own.locks.set_savepoint();
                let count = model.changes[txn].len();
                model.savepoints[txn].push(count);
            }
            Operation::RollBack => {
                let savepoint = model.savepoints[txn].pop();
                assert_eq!(
                    manager.roll_back_to_savepoint(&mut own.locks),
                    savepoint.is_some()
                );
                if let Some(savepoint) = savepoint {
                    model.roll_back_to(txn, savepoint);
                }
            }
            Operation::PopSavepoint => {
                assert_eq!(own.locks.pop_savepoint(), model.savepoints[txn].pop().is_some());
            }
            Operation::End => {
                own.end();
                model.savepoints[txn].clear();
                model.roll_back_to(txn, 0);
            }
        }
        let held = manager.held().into_iter().map(|held| {
            let holders = held.holders.iter().map(|txn| txn.0).collect();
            (held.family, held.target, held.mode, holders)
        });
        let mut held: Vec<_> = held.collect();
        held.sort();
        assert_eq!(held, model.listed(), "after {operation:?} of {txn}");
        assert_eq!(manager.len(), model.rows.len());
        assert!(manager.waiting().is_empty());
    }
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => (0..8_u8).prop_map(What::Key),
        1 => (0..8_u8, prop::option::of(0..8_u8)).prop_map(|(start, end)| What::Range(start, end)),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let mode = prop_oneof![Just(Shared), Just(Exclusive)];
    prop_oneof![
        12 => (0..2_u32, what(), mode).prop_map(|(family, what, mode)| Operation::Lock(family, what, mode)),
        4 => (0..2_u32, what()).prop_map(|(family, what)| Operation::Undo(family, what)),
        2 => Just(Operation::SetSavepoint),
        2 => Just(Operation::RollBack),
        1 => Just(Operation::PopSavepoint),
        1 => Just(Operation::End),
    ]
}

proptest! {
    #[test]
    fn locks_are_as_in_the_model(
        operations in prop::collection::vec((0..TXNS, operation()), 0..120),
        shards in prop_oneof![Just(1_usize), Just(4), Just(64)],
    ) {
        check(&operations, shards);
    }
}
