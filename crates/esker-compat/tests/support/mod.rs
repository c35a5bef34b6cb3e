//! What the tests of the two libraries share: where the libraries are, and C programs compiled against them.

// Each test uses a part of it, and all of it is tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The library of this package, which cargo builds before the package's tests, beside them.
pub fn ours() -> PathBuf {
    let name = format!("lib{}.so", env!("CARGO_PKG_NAME").replace('-', "_"));
    let beside = std::env::current_exe().unwrap();
    let path = beside.parent().unwrap().join(&name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// The real library, if `make peers` fetched it; said once if not. `ESKER_REQUIRE_PEERS=1` makes that an error.
pub fn real(name: &str) -> Option<PathBuf> {
    let path = root().join("peers").join(name);
    if let Ok(path) = path.canonicalize() {
        return Some(path);
    }
    assert!(
        std::env::var_os("ESKER_REQUIRE_PEERS").is_none(),
        "{} is missing; `make peers` fetches it",
        path.display()
    );
    eprintln!(
        "{} is missing: nothing to compare with; `make peers` fetches it",
        path.display()
    );
    None
}

/// The functions that a library exports whose names begin with `prefix`, by `nm`; `None` without `nm`.
pub fn symbols(library: &Path, prefix: &str) -> Option<Vec<String>> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.starts_with(prefix))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    Some(names)
}

/// Compiles a C program of the test's against a library.
pub fn compile(source: &Path, library: &Path, program: &Path) {
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/support");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(support)
        .arg(source)
        .arg(library)
        .args(["-Wl,--allow-shlib-undefined", "-lpthread", "-o"])
        .arg(program)
        .output()
        .unwrap_or_else(|error| panic!("cc: {error}; scripts/setup.sh build installs it"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles the program against the library, runs it in a fresh folder, and returns what it printed.
pub fn output(source: &Path, library: &Path) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (program, data, libraries) = (
        dir.path().join("program"),
        dir.path().join("data"),
        dir.path().join("lib"),
    );
    compile(source, library, &program);
    std::fs::create_dir(&data).unwrap();
    std::fs::create_dir(&libraries).unwrap();
    // Under the name that the program was linked with.
    for name in sonames(library) {
        std::os::unix::fs::symlink(library, libraries.join(name)).unwrap();
    }
    let path = std::env::join_paths([libraries.as_path(), library.parent().unwrap()]).unwrap();
    let output = Command::new(&program)
        .arg(&data)
        .env("LD_LIBRARY_PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Vec<&str> = text.lines().rev().take(5).collect();
    assert!(
        output.status.success(),
        "{} with {}: {}\n{}\nafter {last:?}",
        source.display(),
        library.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
    text
}

/// Names under which a program may look for the library.
fn sonames(library: &Path) -> Vec<&'static str> {
    let name = library.file_name().unwrap().to_string_lossy();
    match &*name {
        "libesker_leveldb.so" => vec!["libleveldb.so.1"],
        "libesker_rocksdb.so" => vec!["librocksdb.so.11"],
        _ => Vec::new(),
    }
}

/// Fails with the first line in which two outputs differ.
pub fn assert_same(ours: &str, real: &str) {
    for (number, (our, their)) in ours.lines().zip(real.lines()).enumerate() {
        assert_eq!(our, their, "line {} (ours, then the real library's)", number + 1);
    }
    assert_eq!(
        ours.lines().count(),
        real.lines().count(),
        "ours ends elsewhere:\n{ours}"
    );
}
