//! What the library exports is in the header, and the C program calls all of it.

// All of it is tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names of functions that stand in a text with a parenthesis behind them, outside of comments.
fn called(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut rest = line;
        while let Some(at) = rest.find("esker_") {
            let name: String = rest[at..]
                .chars()
                .take_while(|next| next.is_ascii_alphanumeric() || *next == '_')
                .collect();
            let starts =
                !rest[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_');
            rest = &rest[at + name.len()..];
            if starts && rest.starts_with('(') {
                names.insert(name);
            }
        }
    }
    names
}

fn exported() -> BTreeSet<String> {
    let beside = std::env::current_exe().unwrap();
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(beside.parent().unwrap().join("libesker_capi.so"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(str::to_owned)
        .collect()
}

fn header() -> BTreeSet<String> {
    called(&std::fs::read_to_string(folder().join("include/esker.h")).unwrap())
}

fn difference(a: &BTreeSet<String>, b: &BTreeSet<String>) -> Vec<String> {
    a.difference(b).cloned().collect()
}

#[test]
fn what_is_exported_is_what_the_header_has() {
    let (exported, header) = (exported(), header());
    assert!(header.len() > 200, "{}", header.len());
    assert_eq!(
        difference(&exported, &header),
        [""; 0],
        "exported, not in the header"
    );
    assert_eq!(
        difference(&header, &exported),
        [""; 0],
        "in the header, not exported"
    );
}

#[test]
fn the_program_calls_all_that_the_header_has() {
    let sources = std::fs::read_dir(folder().join("tests/c")).unwrap();
    let all: String = sources
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "c" || extension == "h")
        })
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(difference(&header(), &called(&all)), [""; 0], "never called");
}

#[test]
fn a_name_is_called_where_a_parenthesis_follows() {
    let names = called("esker_a(x); OK(esker_b(esker_c)); // esker_d()\nmy_esker_e(); esker_f ();");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["esker_a", "esker_b"]);
}
