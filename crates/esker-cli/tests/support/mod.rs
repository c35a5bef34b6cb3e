//! Runs the real binary.
#![allow(dead_code, reason = "each file of tests uses a part")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `esker` with these arguments, on the database in `dir`.
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(args).env("ESKER_DB", dir).stdin(Stdio::null());
    command
}

/// What a command left: exit code, stdout, stderr.
pub fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    told(&command(dir, args).output().expect("the binary runs"))
}

pub fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is text");
    let code = output.status.code().expect("not killed by a signal");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Runs a command that must succeed without complaints; gives its stdout.
pub fn ok(dir: &Path, args: &[&str]) -> String {
    let (code, stdout, stderr) = run(dir, args);
    assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}: {stdout}");
    stdout
}

/// The lines of JSON that a command prints.
pub fn json(dir: &Path, args: &[&str]) -> Vec<serde_json::Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    ok(dir, args).lines().map(parse).collect()
}

/// A folder that goes with the test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}
