//! Golden scripts: commands and all that they print, as a user would see it.
//!
//! In `tests/scripts/*.txt` a line `$ esker …` is a command (words as in a shell, with single quotes), and what
//! follows is what it left: lines of stdout as they are, lines of stderr behind `! `, and `= N` for an exit code other
//! than 0. `DIR` stands for the database's folder, of which each script has a fresh one that does not exist yet.
//! With `ESKER_BLESS=1` the scripts are rewritten as the binary has it now: read the difference.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use support::{folder, run};

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for next in line.chars() {
        match next {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(next),
        }
    }
    assert!(!quoted, "an open quote: {line}");
    words.extend(word);
    words
}

/// Runs the commands of a script; gives the script as it should be.
fn transcript(script: &str, dir: &Path) -> String {
    let name = dir.display().to_string();
    let mut out = String::new();
    for line in script.lines() {
        if line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
        let Some(command) = line.strip_prefix("$ esker ") else {
            continue;
        };
        writeln!(out, "{line}").unwrap();
        let words: Vec<String> = words(command)
            .iter()
            .map(|word| word.replace("DIR", &name))
            .collect();
        let (code, stdout, stderr) = run(dir, &words.iter().map(String::as_str).collect::<Vec<_>>());
        out.push_str(&stdout.replace(&name, "DIR"));
        for line in stderr.lines() {
            writeln!(out, "! {}", line.replace(&name, "DIR")).unwrap();
        }
        if code != 0 {
            writeln!(out, "= {code}").unwrap();
        }
    }
    out
}

fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scripts")
        .join(name);
    let script = std::fs::read_to_string(&path).unwrap();
    let folder = folder();
    let actual = transcript(&script, &folder.path().join("db"));
    if std::env::var_os("ESKER_BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    } else {
        assert!(script.contains("$ esker "), "{name} runs nothing");
        assert_eq!(actual, script, "{name}");
    }
}

#[test]
fn what_is_put_is_got_scanned_and_deleted() {
    check("basics.txt");
}

#[test]
fn binary_keys_are_typed_as_they_are_printed() {
    check("binary.txt");
}

#[test]
fn scans_keep_to_their_bounds_in_either_order() {
    check("scan.txt");
}

#[test]
fn families_have_their_own_keys_orders_and_operators() {
    check("families.txt");
}

#[test]
fn errors_say_what_where_and_what_next() {
    check("errors.txt");
}
