//! A program in C does what programs do, against this library and against the real one.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::Path;

#[test]
fn a_program_gets_the_same_answers_as_from_the_real_library() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/everything.c");
    let ours = support::output(&source, &support::ours());
    assert!(ours.ends_with("done\n"), "{ours}");
    if let Some(real) = support::real("librocksdb.so") {
        support::assert_same(&ours, &support::output(&source, &real));
    }
}
