//! Programs in C and C++ use the library: one calls every function, plainly and under AddressSanitizer, linked both ways.

// All of it is tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

const C: &[&str] = &[
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-O1",
    "-g",
];
const CPP: &[&str] = &[
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-O1",
    "-g",
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A library of this package, which cargo builds before the package's tests, beside them.
fn library(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Compiles sources against the library, runs the program on a fresh folder, and expects it to come to its end.
fn run(compiler: &str, flags: &[&str], sources: &[PathBuf], library: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let (program, data) = (dir.path().join("program"), dir.path().join("data"));
    let compiled = Command::new(compiler)
        .args(flags)
        .arg("-I")
        .arg(folder().join("include"))
        .args(sources)
        .arg(library)
        .args(["-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; scripts/setup.sh build installs it"));
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    std::fs::create_dir(&data).unwrap();
    // The program was linked with the library's soname.
    std::os::unix::fs::symlink(library, dir.path().join("libesker.so.0")).unwrap();
    let output = Command::new(&program)
        .arg(&data)
        .env("LD_LIBRARY_PATH", dir.path())
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stdout.ends_with(b"done\n"),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The sources of the program that calls everything.
fn everything() -> Vec<PathBuf> {
    let names = [
        "main",
        "database",
        "reads",
        "hooks",
        "listeners",
        "maintenance",
        "files",
        "transactions",
    ];
    let path = |name| folder().join(format!("tests/c/{name}.c"));
    names.into_iter().map(path).collect()
}

#[test]
fn a_program_that_calls_everything_gets_what_it_should() {
    run("cc", C, &everything(), &library("libesker_capi.so"));
}

#[test]
fn the_static_library_does_the_same() {
    run("cc", C, &everything(), &library("libesker_capi.a"));
}

#[test]
fn address_sanitizer_finds_no_bad_access_and_no_leak() {
    let flags = [C, &["-fsanitize=address", "-fno-omit-frame-pointer"]].concat();
    run("cc", &flags, &everything(), &library("libesker_capi.so"));
}

#[test]
fn a_leak_would_be_found() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("leak.c");
    let program = dir.path().join("leak");
    std::fs::write(
        &source,
        "#include <esker.h>\nint main(void) { esker_batch *batch = esker_batch_create(); \
         batch = esker_batch_create(); esker_batch_free(batch); return 0; }\n",
    )
    .unwrap();
    let library = library("libesker_capi.so");
    std::os::unix::fs::symlink(&library, dir.path().join("libesker.so.0")).unwrap();
    let compiled = Command::new("cc")
        .args(["-O0", "-g", "-fsanitize=address", "-I"])
        .arg(folder().join("include"))
        .arg(&source)
        .arg(&library)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("leak"), "{said}");
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_is_called_for_every_row_allocates_nothing() {
    let source = folder().join("tests/c/alone/allocations.c");
    run("cc", C, &[source], &library("libesker_capi.so"));
}

/// The code of a language in `docs/capi.md`, as a source file.
fn code_of_the_page(language: &str, dir: &Path) -> PathBuf {
    let page = std::fs::read_to_string(folder().join("../../docs/capi.md")).unwrap();
    let (_, code) = page.split_once(&format!("```{language}\n")).unwrap();
    let path = dir.join(format!("page.{language}"));
    std::fs::write(&path, code.split("```").next().unwrap()).unwrap();
    path
}

#[test]
fn the_programs_of_the_page_run() {
    let dir = tempfile::tempdir().unwrap();
    run(
        "cc",
        C,
        &[code_of_the_page("c", dir.path())],
        &library("libesker_capi.so"),
    );
    run(
        "c++",
        CPP,
        &[code_of_the_page("cpp", dir.path())],
        &library("libesker_capi.so"),
    );
}

#[test]
fn the_header_is_cpp_too() {
    let source = folder().join("tests/c/header.cc");
    run("c++", CPP, &[source], &library("libesker_capi.so"));
}
