//! Which functions are there: those that the page names, those that the lab needs, none that RocksDB has not.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;

fn exported() -> BTreeSet<String> {
    support::symbols(&support::ours(), "")
        .expect("nm")
        .into_iter()
        .collect()
}

/// The names in a fenced list of `docs/compat.md`, without their prefix there.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, rest) = page.split_once(heading).expect("the heading");
    let list = rest.split("```").nth(1).expect("a fenced list");
    list.split_whitespace()
        .filter(|word| *word != "text")
        .map(|name| format!("rocksdb_{name}"))
        .collect()
}

#[test]
fn the_page_lists_what_is_exported() {
    let page = std::fs::read_to_string(support::root().join("docs/compat.md")).expect("docs/compat.md");
    let (exported, listed) = (exported(), listed(&page, "### Functions that are there"));
    let unlisted: Vec<_> = exported.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&exported).collect();
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "not listed: {unlisted:#?}, not exported: {gone:#?}"
    );
}

#[test]
fn every_function_is_one_of_the_real_library_and_the_page_accounts_for_the_others() {
    let Some(real) = support::real("librocksdb.so") else {
        return;
    };
    let exported = exported();
    let real: BTreeSet<_> = support::symbols(&real, "rocksdb_")
        .expect("nm")
        .into_iter()
        .collect();
    let invented: Vec<_> = exported.difference(&real).collect();
    assert!(invented.is_empty(), "{invented:?}");
    let page = std::fs::read_to_string(support::root().join("docs/compat.md")).expect("docs/compat.md");
    let beginnings = listed(&page, "### Functions that are not there");
    let unaccounted: Vec<_> = real
        .difference(&exported)
        .filter(|name| {
            !beginnings
                .iter()
                .any(|beginning| match beginning.strip_suffix('*') {
                    Some(beginning) => name.starts_with(beginning),
                    None => *name == beginning,
                })
        })
        .collect();
    assert!(
        unaccounted.is_empty(),
        "neither there nor named as missing: {unaccounted:#?}"
    );
}

#[test]
fn the_lab_finds_all_that_it_needs_and_all_settings_but_those_of_blob_files() {
    let table = |file: &str| {
        let path = support::root().join("lab/engines/src").join(file);
        let source = std::fs::read_to_string(path).expect("the lab's table of functions");
        let (_, table) = source.split_once("required {").expect("the table");
        let (table, _) = table.split_once("\n}").expect("the table's end");
        table.to_owned()
    };
    let names: Vec<String> = [table("common.rs"), table("rocksdb/api.rs")]
        .concat()
        .lines()
        .map(str::trim)
        .filter_map(|line| line.split_once('(').map(|(name, _)| name))
        .filter(|name| !name.is_empty() && name.chars().all(|next| next.is_alphanumeric() || next == '_'))
        .map(|name| format!("rocksdb_{name}"))
        .collect();
    assert!(names.len() > 60, "{names:?}");
    let exported = exported();
    let missing: Vec<_> = names.iter().filter(|name| !exported.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
