//! The names of files: the durable ones, and the changes since then, in order.
//!
//! Invariants: applying `pending` to `durable`, in order, gives `current`. A change survives a crash as a whole,
//! and only with every earlier change of the names it touches, so that a rename shows its old or its new state and
//! a file whose name was durable never falls between the two. Names that have nothing to do with each other
//! survive independently.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::folders::{move_table, moved};
use super::rng::Rng;

/// What a name leads to: an index into the files of the file system.
pub(super) type FileId = u64;
pub(super) type Table = BTreeMap<PathBuf, FileId>;

#[derive(Clone, Debug)]
enum Change {
    Link(PathBuf, FileId),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, FileId),
}

impl Change {
    fn apply(&self, table: &mut Table) {
        match self {
            Change::Link(path, file) => {
                table.insert(path.clone(), *file);
            }
            Change::Unlink(path) => {
                table.remove(path);
            }
            Change::Rename(from, to, file) => {
                table.remove(from);
                table.insert(to.clone(), *file);
            }
        }
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, two) = match self {
            Change::Link(path, _) | Change::Unlink(path) => (path, None),
            Change::Rename(from, to, _) => (from, Some(to)),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path)
    }

    fn touches(&self, dir: &Path) -> bool {
        self.paths().any(|path| path.parent() == Some(dir))
    }

    fn crosses_folders(&self) -> bool {
        matches!(self, Change::Rename(from, to, _) if from.parent() != to.parent())
    }
}

/// The names of a file system.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    durable: Table,
    current: Table,
    pending: Vec<Change>,
}

impl Names {
    /// Names that are all durable.
    pub(super) fn durable(table: Table) -> Self {
        Self {
            current: table.clone(),
            durable: table,
            pending: Vec::new(),
        }
    }

    pub(super) fn current(&self) -> &Table {
        &self.current
    }

    pub(super) fn get(&self, path: &Path) -> Option<FileId> {
        self.current.get(path).copied()
    }

    pub(super) fn link(&mut self, path: &Path, file: FileId) {
        self.change(Change::Link(path.to_owned(), file));
    }

    pub(super) fn unlink(&mut self, path: &Path) {
        self.change(Change::Unlink(path.to_owned()));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, file: FileId) {
        self.change(Change::Rename(from.to_owned(), to.to_owned(), file));
    }

    /// Files in `from` are in `to` from now on, whatever a crash takes of their own changes.
    pub(super) fn move_folder(&mut self, from: &Path, to: &Path) {
        move_table(&mut self.durable, from, to);
        move_table(&mut self.current, from, to);
        let rename = |path: &mut PathBuf| {
            if let Some(new) = moved(path, from, to) {
                *path = new;
            }
        };
        for change in &mut self.pending {
            match change {
                Change::Link(path, _) | Change::Unlink(path) => rename(path),
                Change::Rename(one, two, _) => {
                    rename(one);
                    rename(two);
                }
            }
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    /// Makes the changes in `dir` durable; with a rename between two folders, all that came before it.
    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let all_before = self
            .pending
            .iter()
            .rposition(|change| change.touches(dir) && change.crosses_folders())
            .map_or(0, |at| at + 1);
        let mut later = Vec::new();
        for (at, change) in self.pending.drain(..).enumerate() {
            if at < all_before || change.touches(dir) {
                change.apply(&mut self.durable);
            } else {
                later.push(change);
            }
        }
        self.pending = later;
    }

    /// Files that a name leads to, now or after some crash.
    pub(super) fn reachable(&self) -> BTreeSet<FileId> {
        let linked = self.pending.iter().filter_map(|change| match change {
            Change::Link(_, file) | Change::Rename(_, _, file) => Some(*file),
            Change::Unlink(_) => None,
        });
        self.current
            .values()
            .chain(self.durable.values())
            .copied()
            .chain(linked)
            .collect()
    }

    /// The durable names alone.
    pub(super) fn after_losing_all(&self) -> Table {
        self.durable.clone()
    }

    /// The durable names with any of the later changes, as the invariants allow.
    pub(super) fn after_tearing(&self, rng: &mut Rng) -> Table {
        let mut table = self.durable.clone();
        let mut lost: BTreeSet<&Path> = BTreeSet::new();
        for change in &self.pending {
            if change.paths().any(|path| lost.contains(path)) || rng.one_in(2) {
                lost.extend(change.paths());
            } else {
                change.apply(&mut table);
            }
        }
        table
    }
}
