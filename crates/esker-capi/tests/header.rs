//! The header is what the sources say. `ESKER_WRITE_HEADER=1` writes it (`scripts/header.sh`); without it the test compares.

// All of it is tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

/// The sources, in the order in which the header has them.
const SOURCES: [&str; 37] = [
    "error",
    "slice",
    "buffer",
    "list",
    "environment",
    "options",
    "family_options",
    "comparator",
    "merge_operator",
    "compaction_filter",
    "collector",
    "event",
    "listener",
    "database",
    "follower",
    "family",
    "snapshot",
    "call_options",
    "write",
    "batch",
    "read",
    "iterator",
    "maintenance",
    "family_files",
    "table_file",
    "figures",
    "family_figures",
    "tables",
    "verify",
    "repair",
    "prepared",
    "transaction_options",
    "transaction",
    "transaction_writes",
    "transaction_reads",
    "transaction_two_phase",
    "locks",
];

/// Sources without anything for C.
const WITHOUT: [&str; 4] = ["boundary", "lib", "shown", "text"];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(folder().join("src").join(format!("{name}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_header_says_what_the_sources_say() {
    let path = folder().join("include/esker.h");
    let generated = generated();
    if std::env::var_os("ESKER_WRITE_HEADER").is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    let stands = std::fs::read_to_string(&path).unwrap();
    for (number, (stands, wanted)) in stands.lines().zip(generated.lines()).enumerate() {
        assert_eq!(
            stands,
            wanted,
            "line {} of esker.h (as it stands, then as it should be); scripts/header.sh writes it",
            number + 1
        );
    }
    assert_eq!(stands.len(), generated.len(), "esker.h ends elsewhere");
}

#[test]
fn no_source_is_left_out() {
    let files: BTreeSet<String> = std::fs::read_dir(folder().join("src"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let known = SOURCES
        .iter()
        .chain(&WITHOUT)
        .map(|&name| name.to_owned())
        .collect();
    assert_eq!(files, known);
}
