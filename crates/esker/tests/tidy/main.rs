//! The house rules, checked like any other behaviour: which module may use which, what a file may hold, and
//! whether the documents still tell the truth about the tree.
//!
//! Each check is a function from text to findings, so that its own tests can feed it a bad snippet and see it
//! caught; the tests below run it over the tree.

mod docs;
mod files;
mod rows;
mod source;
mod tree;

use source::Source;
use tree::Tree;

/// Fails with every finding, one a line, rather than with the first.
fn assert_tidy(findings: &[String]) {
    assert!(
        findings.is_empty(),
        "{} untidy:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

fn check_sources(check: impl Fn(&Source) -> Vec<String>) {
    let tree = Tree::load();
    assert_tidy(&tree.sources().iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn modules_use_only_rows_below_their_own() {
    check_sources(rows::check);
}

#[test]
fn every_module_has_its_row_in_the_map() {
    let tree = Tree::load();
    let lib = tree.text("crates/esker/src/lib.rs").expect("the engine's root");
    assert_tidy(&rows::check_map(&tree.modules_below("crates/esker/src/"), lib));
}

#[test]
fn every_file_says_what_it_does_in_its_first_line() {
    check_sources(files::check_first_line);
}

#[test]
fn files_stay_small() {
    let tree = Tree::load();
    assert_tidy(&files::check_lengths(&tree.sources(), files::LENGTH_EXCEPTIONS));
}

#[test]
fn nothing_is_left_for_later() {
    check_sources(files::check_leftovers);
}

#[test]
fn unsafe_stays_in_its_modules_and_proves_itself() {
    check_sources(files::check_unsafe);
}

#[test]
fn no_path_of_one_machine_is_in_the_tree() {
    let tree = Tree::load();
    assert_tidy(
        &tree
            .texts()
            .flat_map(|(path, text)| files::check_machine_paths(path, text))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn documents_name_only_what_exists() {
    let tree = Tree::load();
    let documents = tree.texts().filter(|(path, _)| path.ends_with(".md"));
    assert_tidy(
        &documents
            .flat_map(|(path, text)| docs::check_paths(path, text, |named| tree.exists(named)))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_document_can_be_found() {
    assert_tidy(&docs::check_mentions(&Tree::load().texts().collect::<Vec<_>>()));
}

#[test]
fn every_dependency_has_its_reason() {
    let tree = Tree::load();
    let manifests: Vec<_> = tree
        .texts()
        .filter(|(path, _)| path.ends_with("Cargo.toml"))
        .collect();
    let reasons = tree.text("docs/dependencies.md").expect("docs/dependencies.md");
    assert_tidy(&docs::check_dependencies(&manifests, reasons));
}

#[test]
fn every_setting_is_explained() {
    let tree = Tree::load();
    let read = |path| tree.text(path).expect("a file of the settings");
    let options = [
        read("crates/esker/src/options/database.rs"),
        read("crates/esker/src/options/column_family.rs"),
    ];
    assert_tidy(&docs::check_settings(&options.concat(), read("docs/tuning.md")));
}

#[test]
fn every_limit_is_explained() {
    let tree = Tree::load();
    let sources = tree
        .texts()
        .filter(|(path, _)| path.starts_with("crates/esker/src/") && path.ends_with(".rs"));
    let guide = tree.text("docs/tuning.md").expect("docs/tuning.md");
    assert_tidy(&docs::check_limits(sources.map(|(_, text)| text), guide));
}
