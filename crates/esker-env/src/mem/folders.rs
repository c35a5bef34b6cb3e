//! Renames of folders that are not durable yet.
//!
//! The names of files are kept as if every rename had happened; a crash takes back those that it loses, the last first,
//! with all that is in the folder by then.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::names::Table;
use super::rng::Rng;

/// Renames in the order in which they happened: from, to.
#[derive(Clone, Debug, Default)]
pub(super) struct FolderRenames(Vec<(PathBuf, PathBuf)>);

impl FolderRenames {
    pub(super) fn push(&mut self, from: &Path, to: &Path) {
        self.0.push((from.to_owned(), to.to_owned()));
    }

    /// Makes the renames into `dir` durable, and all that came before them.
    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let last = self.0.iter().rposition(|(_, to)| to.parent() == Some(dir));
        if let Some(last) = last {
            self.0.drain(..=last);
        }
    }

    /// Takes back all renames.
    pub(super) fn lose_all(&self, table: &mut Table, folders: &mut BTreeSet<PathBuf>) {
        self.lose_from(0, table, folders);
    }

    /// Takes back the last ones, any number of them.
    pub(super) fn tear(&self, rng: &mut Rng, table: &mut Table, folders: &mut BTreeSet<PathBuf>) {
        let kept = self.0.iter().take_while(|_| rng.one_in(2)).count();
        self.lose_from(kept, table, folders);
    }

    fn lose_from(&self, kept: usize, table: &mut Table, folders: &mut BTreeSet<PathBuf>) {
        for (from, to) in self.0[kept..].iter().rev() {
            // A folder that was made anew under the old name proves that the rename came through.
            if !folders.contains(from) {
                move_table(table, to, from);
                move_folders(folders, to, from);
            }
        }
    }
}

/// The path in `to` of what was in `from`.
pub(super) fn moved(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(from).ok()?;
    Some(to.components().chain(inside.components()).collect())
}

pub(super) fn move_table(table: &mut Table, from: &Path, to: &Path) {
    let inside: Vec<PathBuf> = table
        .keys()
        .filter(|path| path.starts_with(from))
        .cloned()
        .collect();
    for path in inside {
        if let (Some(file), Some(new)) = (table.remove(&path), moved(&path, from, to)) {
            table.insert(new, file);
        }
    }
}

pub(super) fn move_folders(folders: &mut BTreeSet<PathBuf>, from: &Path, to: &Path) {
    let inside: Vec<PathBuf> = folders
        .iter()
        .filter(|path| path.starts_with(from))
        .cloned()
        .collect();
    for path in inside {
        folders.remove(&path);
        folders.extend(moved(&path, from, to));
    }
}
