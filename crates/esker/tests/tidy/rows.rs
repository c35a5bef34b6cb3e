//! Which module of the engine may use which: only those of rows below its own.

use std::collections::BTreeSet;

use crate::source::{Source, Token};

struct Row {
    modules: &'static [&'static str],
    /// Whether modules of the row may use each other.
    mutual: bool,
}

const fn row(modules: &'static [&'static str]) -> Row {
    Row {
        modules,
        mutual: false,
    }
}

/// The layers from the top down. Below the last row stands the crate `esker-env`, which all may use.
const ROWS: &[Row] = &[
    row(&["db", "inspect"]),
    row(&["background"]),
    row(&["commit", "flush", "compaction"]),
    row(&["rewrite"]),
    row(&["read"]),
    row(&["snapshot", "version"]),
    row(&["memtable", "wal", "sstable", "blob"]),
    row(&["batch", "cache"]),
    Row {
        modules: &["key", "codec", "metrics", "options", "hooks", "merge", "error"],
        mutual: true,
    },
    row(&["sync"]),
];

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.modules.contains(&module))
}

/// Finds uses that go up or sideways, and uses of the crate's public names in place of a module's.
pub fn check(source: &Source) -> Vec<String> {
    let Some(rest) = source.path.strip_prefix("crates/esker/src/") else {
        return Vec::new();
    };
    if rest == "lib.rs" {
        return Vec::new();
    }
    let module: Vec<&str> = rest
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .split('/')
        .collect();
    let Some(own) = row_of(module[0]) else {
        // The map's own check says that the module has no row.
        return Vec::new();
    };
    references(&source.code(), module.len())
        .into_iter()
        .filter_map(|reference| {
            crossing(own, module[0], reference.0)
                .map(|what| format!("{}:{}: {what}", source.path, reference.1))
        })
        .collect()
}

/// What is wrong with module `user`, of row `own`, using `crate::used`.
fn crossing(own: usize, user: &str, used: &str) -> Option<String> {
    if used == user {
        return None;
    }
    let Some(other) = row_of(used) else {
        return Some(format!(
            "`crate::{used}` is no module of the map: inside the crate a name is used by its module's path \
             (`crate::error::Error`, not `crate::Error`)"
        ));
    };
    if other > own || (other == own && ROWS[own].mutual) {
        return None;
    }
    let crossed = if other == own {
        "its own row, whose modules do not use each other"
    } else {
        "a row above its own"
    };
    Some(format!(
        "`{user}` uses `crate::{used}`, which crosses into {crossed}: | {} |\n  `{user}` stands in the row | {} | \
         and may use only the rows below it",
        ROWS[other].modules.join("  "),
        ROWS[own].modules.join("  "),
    ))
}

/// The first names, with their lines, of all paths that start at the crate's root, in the code of a module that
/// lies `depth` below it.
fn references<'a>(code: &[&'a Token], depth: usize) -> Vec<(&'a str, usize)> {
    let text = |index: usize| code.get(index).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    let mut braces = 0_usize;
    // Brace depths at which inline modules opened.
    let mut inline: Vec<usize> = Vec::new();
    let mut index = 0;
    while index < code.len() {
        match text(index) {
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                inline.retain(|opened| *opened < braces + 1);
            }
            "mod" if text(index + 2) == "{" => inline.push(braces + 1),
            "crate" if text(index + 1) == "::" => {
                first_names(code, index + 2, &mut found);
                index += 1;
            }
            "super" => {
                let mut supers = 1;
                while text(index + 1) == "::" && text(index + 2) == "super" {
                    index += 2;
                    supers += 1;
                }
                if text(index + 1) == "::" && supers == depth + inline.len() {
                    first_names(code, index + 2, &mut found);
                }
            }
            _ => {}
        }
        index += 1;
    }
    found
}

/// The names that can follow `crate::`: one, or the first of each path of a group.
fn first_names<'a>(code: &[&'a Token], start: usize, found: &mut Vec<(&'a str, usize)>) {
    let Some(first) = code.get(start) else { return };
    if first.text != "{" {
        found.push((&first.text, first.line));
        return;
    }
    let mut depth = 0_usize;
    for pair in code[start..].windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
        let opens_path = depth == 1 && (pair[0].text == "{" || pair[0].text == ",");
        if opens_path && pair[1].text != "}" {
            found.push((&pair[1].text, pair[1].line));
        }
    }
}

/// Finds modules that have no row here, or that the map at the head of `lib.rs` does not show in that row.
pub fn check_map(modules: &BTreeSet<String>, lib: &str) -> Vec<String> {
    let shown: Vec<BTreeSet<&str>> = lib
        .lines()
        .filter(|line| line.starts_with("//! |"))
        .map(|line| line.split('`').skip(1).step_by(2).collect::<BTreeSet<_>>())
        .filter(|names| !names.is_empty())
        .collect();
    let mut findings = Vec::new();
    for module in modules {
        let Some(row) = row_of(module) else {
            findings.push(format!(
                "crates/esker/src/{module}: has no row; decide what it may use and enter it in the table of rows"
            ));
            continue;
        };
        if !shown.iter().any(|names| names.contains(module.as_str())) {
            findings.push(format!(
                "crates/esker/src/lib.rs: the map does not show `{module}`"
            ));
        }
        for names in shown.iter().filter(|names| names.contains(module.as_str())) {
            if let Some(stranger) = names.iter().find(|name| row_of(name) != Some(row)) {
                findings.push(format!(
                    "crates/esker/src/lib.rs: the map shows `{module}` in one row with `{stranger}`, its row is | {} |",
                    ROWS[row].modules.join("  ")
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text))
    }

    #[test]
    fn going_down_is_fine() {
        for (path, text) in [
            (
                "db/open.rs",
                "use crate::{background::Pool, commit, error::{Error, Result}};",
            ),
            (
                "sstable/mod.rs",
                "use crate::batch::RawBatch; use esker_env::Fs; use self::block::Own;",
            ),
            (
                "sstable/block/reader.rs",
                "use super::super::filter::Filter; use crate::sstable::index::Index;",
            ),
            ("key/mod.rs", "use crate::error::Result; use crate::codec;"),
            (
                "wal/mod.rs",
                "//! See [`crate::db`].\nconst A: &str = \"crate::db\"; pub(crate) fn f() {}",
            ),
            ("wal/mod.rs", "#[cfg(test)] mod tests { use crate::db::Db; }"),
            ("error.rs", "mod inner { use super::Error; }"),
        ] {
            assert_eq!(
                findings(&format!("crates/esker/src/{path}"), text),
                [""; 0],
                "{path}: {text}"
            );
        }
    }

    #[test]
    fn going_up_is_caught_and_the_row_is_shown() {
        let found = findings(
            "crates/esker/src/compaction/job.rs",
            "\nuse crate::commit::Pipeline;",
        );
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/esker/src/compaction/job.rs:2:"),
            "{found:?}"
        );
        assert!(found[0].contains("| commit  flush  compaction |"), "{found:?}");
        let found = findings("crates/esker/src/wal/reader.rs", "fn f() { crate::db::open() }");
        assert!(
            found[0].contains("crosses into a row above its own: | db  inspect |"),
            "{found:?}"
        );
    }

    #[test]
    fn every_way_of_writing_a_crossing_is_caught() {
        for text in [
            "use crate::read::View;",
            "use crate::{error::Error, read::{View, Iter}};",
            "use crate::{\n    cache::{self},\n    read,\n};",
            "fn f(view: &crate::read::View) {}",
            "macro_rules! m { () => { $crate::read::f() } }",
            "use super::super::read::View;",
            "mod inner { use super::super::super::read::View; }",
            "mod inner { } use super::super::read;",
        ] {
            let found = findings("crates/esker/src/version/edit.rs", text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("| read |"), "{text}: {found:?}");
        }
    }

    #[test]
    fn modules_of_one_row_do_not_use_each_other_but_for_the_words() {
        assert_eq!(
            findings("crates/esker/src/memtable/mod.rs", "use crate::wal::Writer;").len(),
            1
        );
        assert_eq!(
            findings(
                "crates/esker/src/version/mod.rs",
                "use crate::snapshot::Snapshot;"
            )
            .len(),
            1
        );
        assert_eq!(
            findings(
                "crates/esker/src/options/mod.rs",
                "use crate::merge::MergeOperator;"
            )
            .len(),
            0
        );
    }

    #[test]
    fn public_names_and_globs_of_the_root_are_caught() {
        assert_eq!(
            findings("crates/esker/src/wal/mod.rs", "use crate::Error;").len(),
            1
        );
        assert_eq!(findings("crates/esker/src/wal/mod.rs", "use crate::*;").len(), 1);
        assert_eq!(
            findings("crates/esker/src/wal/mod.rs", "use super::Error;").len(),
            1
        );
    }

    #[test]
    fn a_module_without_row_or_place_in_the_map_is_caught() {
        let modules = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let lib = "//! | words | `key` `error` |\n//! | parts | `batch` |";
        assert!(check_map(&modules(&["key", "error", "batch"]), lib).is_empty());
        assert!(check_map(&modules(&["helpers"]), lib)[0].contains("has no row"));
        assert!(check_map(&modules(&["wal"]), lib)[0].contains("does not show"));
        assert!(check_map(&modules(&["key"]), "//! | words | `key` `db` |")[0].contains("`db`"));
    }
}
