//! A program in C calls every function of the interface, against this library and against the real one.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::Path;

fn source() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/everything.c")
}

#[test]
fn a_program_gets_the_same_answers_as_from_the_real_library() {
    let ours = support::output(&source(), &support::ours());
    assert!(ours.ends_with("version: 1\n"), "{ours}");
    if let Some(real) = support::real("libleveldb.so") {
        support::assert_same(&ours, &support::output(&source(), &real));
    }
}

#[test]
fn every_function_is_exported_and_nothing_else() {
    let ours = support::symbols(&support::ours(), "").expect("nm");
    let header = std::fs::read_to_string(source().with_file_name("leveldb.h")).unwrap();
    let called = std::fs::read_to_string(source()).unwrap();
    assert_eq!(ours.len(), 68, "{ours:?}");
    for name in &ours {
        assert!(
            header.contains(&format!("{name}(")),
            "{name} is not in the header"
        );
        assert!(
            called.contains(&format!("{name}(")) || called.contains(&format!("{name},")),
            "{name} is not tested"
        );
    }
    if let Some(real) = support::real("libleveldb.so") {
        assert_eq!(ours, support::symbols(&real, "leveldb_").expect("nm"));
    }
}
