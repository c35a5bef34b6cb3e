//! The model: sorted maps, changed one commit after the other, and the rule which commits a crash may take.
//!
//! The rule, for commits numbered from 1 in the order in which they were acknowledged:
//! - Logged commits (`Sync`, `Buffered`) survive as a prefix of the logged commits, each whole, over all families.
//!   A killed process keeps all of them. A power cut keeps at least those up to the last one that was `Sync`, or
//!   followed by `sync_wal`, or touched a family that was flushed later.
//! - Unlogged commits (`None`) are in memory only: of each family a prefix survives, at least up to its last flush.
//!   They are atomic within a family, not over families. Logged commits after a lost one are applied without it.
//! - What was open when the database was opened is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker::Durability;

/// Rows of a family in its order, as a scan gives them.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// How a family orders keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// `memcmp`.
    #[default]
    Bytewise,
    /// Its opposite.
    Reverse,
}

impl Order {
    /// Compares two keys.
    pub fn compare(self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        match self {
            Self::Bytewise => a.cmp(b),
            Self::Reverse => b.cmp(a),
        }
    }
}

/// How a family merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Merge {
    /// It doesn't.
    #[default]
    None,
    /// Concatenates, without a separator.
    Append,
    /// Adds little-endian `u64`s.
    Add,
}

/// A change of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Key and value.
    Put(Vec<u8>, Vec<u8>),
    /// Key.
    Delete(Vec<u8>),
    /// Key; see [`Family::may_single_delete`].
    SingleDelete(Vec<u8>),
    /// Start and end.
    DeleteRange(Vec<u8>, Vec<u8>),
    /// Key and operand.
    Merge(Vec<u8>, Vec<u8>),
}

/// A family's rows.
#[derive(Clone, Debug, Default)]
pub struct Family {
    order: Order,
    merge: Merge,
    rows: Arc<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Keys with a history that single deletes do not cope with: overwritten, deleted or merged since their last
    /// range delete.
    mixed: Arc<BTreeSet<Vec<u8>>>,
}

impl Family {
    /// Without rows.
    pub fn new(order: Order, merge: Merge) -> Self {
        Self {
            order,
            merge,
            ..Self::default()
        }
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.rows.get(key).map(Vec::as_slice)
    }

    /// Whether a single delete of `key` is defined.
    pub fn may_single_delete(&self, key: &[u8]) -> bool {
        self.rows.contains_key(key) && !self.mixed.contains(key)
    }

    /// All rows, in order.
    pub fn rows(&self) -> Rows {
        let rows = self.rows.iter().map(|(key, row)| (key.clone(), row.clone()));
        match self.order {
            Order::Bytewise => rows.collect(),
            Order::Reverse => rows.rev().collect(),
        }
    }

    fn apply(&mut self, mutation: &Mutation) {
        let rows = Arc::make_mut(&mut self.rows);
        let mixed = Arc::make_mut(&mut self.mixed);
        match mutation {
            Mutation::Put(key, value) => {
                if rows.insert(key.clone(), value.clone()).is_some() {
                    mixed.insert(key.clone());
                }
            }
            Mutation::Delete(key) => {
                rows.remove(key);
                mixed.insert(key.clone());
            }
            Mutation::SingleDelete(key) => {
                rows.remove(key);
            }
            Mutation::DeleteRange(start, end) => {
                let outside = |key: &[u8]| {
                    self.order.compare(key, start).is_lt() || self.order.compare(key, end).is_ge()
                };
                rows.retain(|key, _| outside(key));
                mixed.retain(|key| outside(key));
            }
            Mutation::Merge(key, operand) => {
                let base = rows.get(key).map(Vec::as_slice);
                let value = match self.merge {
                    Merge::None => panic!("a merge in a family without operator"),
                    Merge::Append => [base.unwrap_or_default(), operand].concat(),
                    Merge::Add => {
                        let sum = base.map_or(0, number).wrapping_add(number(operand));
                        sum.to_le_bytes().to_vec()
                    }
                };
                rows.insert(key.clone(), value);
                mixed.insert(key.clone());
            }
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => panic!("a value of {} bytes where numbers are added", bytes.len()),
    }
}

/// All families by id. Cheap to clone.
pub type State = BTreeMap<u32, Family>;

/// Changes that belong together: family and change.
pub type Changes = Vec<(u32, Mutation)>;

#[derive(Clone, Debug)]
struct Commit {
    changes: Changes,
    logged: bool,
}

/// The model of a database since it was last opened.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    base: State,
    current: State,
    commits: Vec<Commit>,
    /// How many commits were acknowledged.
    answered: usize,
    /// How many commits a power cut leaves at least, counting only logged ones.
    durable: usize,
    /// By family: up to which commit unlogged ones are in SSTables.
    flushed: BTreeMap<u32, usize>,
}

impl Oracle {
    /// What readers see.
    pub fn state(&self) -> &State {
        &self.current
    }

    /// A family.
    pub fn family(&self, id: u32) -> &Family {
        &self.current[&id]
    }

    /// Commits since the database was opened.
    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    /// A new family.
    pub fn create(&mut self, id: u32, family: Family) {
        self.base.insert(id, family.clone());
        self.current.insert(id, family);
    }

    /// A dropped family.
    pub fn drop_family(&mut self, id: u32) {
        self.base.remove(&id);
        self.current.remove(&id);
    }

    /// An acknowledged commit.
    pub fn commit(&mut self, changes: Changes, durability: Durability) {
        self.attempt(changes, durability);
        self.answered = self.commits.len();
        if durability == Durability::Sync {
            self.synced();
        }
    }

    /// A commit whose outcome is open until the next crash: it failed, or was never answered.
    pub fn attempt(&mut self, changes: Changes, durability: Durability) {
        apply(&mut self.current, &changes);
        self.commits.push(Commit {
            changes,
            logged: durability != Durability::None,
        });
    }

    /// All logged commits so far are durable.
    pub fn synced(&mut self) {
        self.durable = self.commits.len();
    }

    /// What was committed to a family so far is in SSTables.
    pub fn flushed(&mut self, family: u32) {
        let touches = |commit: &Commit| commit.changes.iter().any(|(id, _)| *id == family);
        let last = self.commits.iter().rposition(touches).map_or(0, |at| at + 1);
        self.durable = self.durable.max(last);
        self.flushed.insert(family, last);
    }

    /// The database was closed in good order and opened again.
    pub fn reopened(&mut self) {
        self.start_from(self.current.clone());
    }

    fn start_from(&mut self, state: State) {
        *self = Self {
            base: state.clone(),
            current: state,
            ..Self::default()
        };
    }

    /// After a crash: finds the states of the rule that fit what is there now, and goes on from there.
    pub fn crashed(&mut self, found: &BTreeMap<u32, Rows>, power_cut: bool) -> Result<(), String> {
        if !found.keys().eq(self.base.keys()) {
            return Err(format!(
                "families {:?} are there, {:?} should be",
                found.keys(),
                self.base.keys()
            ));
        }
        let least = if power_cut { self.durable } else { self.answered };
        let mut nearest = String::new();
        for logged in (least..=self.commits.len()).rev() {
            let mut state = State::new();
            for (&id, rows) in found {
                match self.family_after(id, logged, rows) {
                    Some(family) => state.insert(id, family),
                    None => {
                        nearest = format!("family {id} fits no state with {logged} commits");
                        break;
                    }
                };
            }
            if state.len() == found.len() {
                self.start_from(state);
                return Ok(());
            }
        }
        let lost: Vec<String> = found.iter().map(|(&id, rows)| self.describe(id, rows)).collect();
        Err(format!(
            "no prefix fits ({} commits, {least} must survive; {nearest}):\n{}",
            self.commits.len(),
            lost.join("\n")
        ))
    }

    /// The family after the first commits that are `logged`, and some unlogged ones, if it then has these rows.
    fn family_after(&self, id: u32, logged: usize, rows: &Rows) -> Option<Family> {
        let own = |commit: &Commit| !commit.logged && commit.changes.iter().any(|(family, _)| *family == id);
        let least = self.flushed.get(&id).copied().unwrap_or(0);
        let mut tried = None;
        for unlogged in (least..=self.commits.len()).rev() {
            // Only where it makes a difference.
            let count = self.commits[..unlogged]
                .iter()
                .filter(|commit| own(commit))
                .count();
            if tried.replace(count) == Some(count) {
                continue;
            }
            let mut state = State::from([(id, self.base[&id].clone())]);
            for (at, commit) in self.commits.iter().enumerate() {
                if at < if commit.logged { logged } else { unlogged } {
                    apply(&mut state, &commit.changes);
                }
            }
            let family = state.remove(&id)?;
            if family.rows() == *rows {
                return Some(family);
            }
        }
        None
    }

    fn describe(&self, id: u32, rows: &Rows) -> String {
        format!("family {id}: {}", difference(rows, &self.current[&id].rows()))
    }
}

fn apply(state: &mut State, changes: &Changes) {
    for (id, mutation) in changes {
        // Families that were dropped later are not part of any state.
        if let Some(family) = state.get_mut(id) {
            family.apply(mutation);
        }
    }
}

/// What is different between two scans, in a line.
pub fn difference(found: &Rows, wanted: &Rows) -> String {
    let found: BTreeMap<_, _> = found.iter().cloned().collect();
    let wanted: BTreeMap<_, _> = wanted.iter().cloned().collect();
    let mut lines = Vec::new();
    for (key, value) in &wanted {
        match found.get(key) {
            None => lines.push(format!("missing {}", show(key))),
            Some(other) if other != value => {
                lines.push(format!("{} is {}, not {}", show(key), show(other), show(value)));
            }
            Some(_) => {}
        }
    }
    for key in found.keys().filter(|key| !wanted.contains_key(*key)) {
        lines.push(format!("unexpected {}", show(key)));
    }
    if lines.is_empty() {
        return "no difference, or the order alone".to_owned();
    }
    let more = lines.len().saturating_sub(8);
    lines.truncate(8);
    format!("{} (+{more})", lines.join("; "))
}

/// Bytes for a message.
pub fn show(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    format!("'{}'[{}]", head.escape_ascii(), bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Changes {
        vec![(0, Mutation::Put(key.into(), value.into()))]
    }

    fn found(keys: &[&str]) -> BTreeMap<u32, Rows> {
        let rows = keys.iter().map(|key| (key.as_bytes().to_vec(), b"v".to_vec()));
        BTreeMap::from([(0, rows.collect())])
    }

    fn three(durabilities: [Durability; 3]) -> Oracle {
        let mut oracle = Oracle::default();
        oracle.create(0, Family::default());
        for (key, durability) in ["a", "b", "c"].iter().zip(durabilities) {
            oracle.commit(put(key, "v"), durability);
        }
        oracle
    }

    #[test]
    fn a_power_cut_takes_a_suffix_of_what_was_not_synced() {
        use Durability::{Buffered, Sync};
        let oracle = three([Buffered, Sync, Buffered]);
        for (keys, fits) in [
            (&["a", "b", "c"][..], true),
            (&["a", "b"], true),
            (&["a"], false),
            (&["b", "c"], false),
        ] {
            assert_eq!(
                oracle.clone().crashed(&found(keys), true).is_ok(),
                fits,
                "{keys:?}"
            );
        }
        assert!(oracle.clone().crashed(&found(&["a", "b"]), false).is_err());
    }

    #[test]
    fn unlogged_commits_are_lost_apart_from_logged_ones() {
        use Durability::{Buffered, None};
        let mut oracle = three([None, Buffered, None]);
        for keys in [&["a", "b", "c"][..], &["a", "b"], &["b"]] {
            assert!(oracle.clone().crashed(&found(keys), false).is_ok(), "{keys:?}");
        }
        assert!(oracle.clone().crashed(&found(&["b", "c"]), false).is_err());
        oracle.flushed(0);
        assert!(oracle.crashed(&found(&["a", "b"]), true).is_err());
    }

    #[test]
    fn a_reverse_family_deletes_and_scans_downwards() {
        let mut family = Family::new(Order::Reverse, Merge::Append);
        for key in ["a", "b", "c"] {
            family.apply(&Mutation::Merge(key.into(), b"x".to_vec()));
        }
        family.apply(&Mutation::DeleteRange(b"c".to_vec(), b"a".to_vec()));
        assert_eq!(family.rows(), [(b"a".to_vec(), b"x".to_vec())]);
        assert!(!family.may_single_delete(b"a"));
    }
}
