//! The repository as it lies on disk, without what git ignores.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Source;

/// Every text file by its path from the root.
pub struct Tree {
    root: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository that this crate stands in. What `.gitignore` names by a rooted folder (`/target/`) is
    /// left out, as are files that are not UTF-8 (seeds of fuzz corpora, golden databases).
    pub fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let ignored = fs::read_to_string(root.join(".gitignore")).expect(".gitignore");
        let mut skipped: BTreeSet<String> = ignored
            .lines()
            .filter_map(|line| line.strip_prefix('/')?.strip_suffix('/'))
            .map(str::to_owned)
            .collect();
        skipped.insert(".git".to_owned());
        let mut tree = Self {
            root,
            files: BTreeMap::new(),
        };
        tree.walk("", &skipped);
        assert!(tree.files.len() > 20, "the walk found next to nothing");
        tree
    }

    fn walk(&mut self, folder: &str, skipped: &BTreeSet<String>) {
        let entries = fs::read_dir(self.root.join(folder)).expect("a readable folder");
        for entry in entries {
            let entry = entry.expect("a readable folder");
            let name = entry.file_name();
            let path = match folder {
                "" => name.to_string_lossy().into_owned(),
                _ => format!("{folder}/{}", name.to_string_lossy()),
            };
            if skipped.contains(&path) {
                continue;
            }
            let kind = entry.file_type().expect("a file type");
            if kind.is_dir() {
                self.walk(&path, skipped);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                self.files.insert(path, text);
            }
        }
    }

    /// Every text file: its path and its text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every Rust file, taken apart; files that are declared by `#[cfg(test)] mod x;` are test code as a whole.
    pub fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<_> = self
            .texts()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| Source::new(path, text))
            .collect();
        let test_modules: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
        for source in &mut sources {
            let stem = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
            if test_modules
                .iter()
                .any(|module| stem == module || stem.starts_with(&format!("{module}/")))
            {
                source.mark_all_test();
            }
        }
        sources
    }

    /// Names of the modules that stand directly below a source folder.
    pub fn modules_below(&self, folder: &str) -> BTreeSet<String> {
        self.files
            .keys()
            .filter_map(|path| path.strip_prefix(folder))
            .filter_map(|rest| rest.split('/').next())
            .map(|name| name.trim_end_matches(".rs").to_owned())
            .filter(|name| name != "lib")
            .collect()
    }

    /// Whether a file or folder is there.
    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}
