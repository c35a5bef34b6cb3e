//! `esker follow` beside a process that writes, which is this one.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use esker::{ColumnFamilyOptions, Db, Options};
use support::{command, folder, told};

/// A follower that is told a line at a time.
struct Talk {
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Talk {
    fn begin(dir: &Path, args: &[&str]) -> Self {
        let mut child = command(dir, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, hear) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            tell,
            hear: BufReader::new(hear),
        }
    }

    /// What it answers, in so many lines.
    fn ask(&mut self, line: &str, answers: usize) -> String {
        writeln!(self.tell, "{line}").unwrap();
        let mut text = String::new();
        for _ in 0..answers {
            assert!(self.hear.read_line(&mut text).unwrap() > 0, "{line}: {text}");
        }
        text
    }

    /// Exit code, the rest of stdout, stderr.
    fn end(self) -> (i32, String, String) {
        drop(self.tell);
        let mut output = self.child.wait_with_output().unwrap();
        let mut rest = self.hear;
        std::io::Read::read_to_end(&mut rest, &mut output.stdout).unwrap();
        told(&output)
    }
}

#[test]
fn a_follower_shows_one_moment_until_it_catches_up() {
    let dir = folder();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut talk = Talk::begin(dir.path(), &["follow"]);
    assert_eq!(talk.ask("get a", 1), "1\n");
    db.put(b"a", b"2").unwrap();
    db.put(b"b c", b"3").unwrap();
    db.flush().unwrap();
    assert_eq!(talk.ask("", 0), "");
    assert_eq!(talk.ask("scan", 1), "a\t1\n");
    assert_eq!(
        talk.ask("catch-up", 1),
        format!("sequence {}\n", db.last_sequence())
    );
    assert_eq!(talk.ask("scan", 2), "a\t2\nb c\t3\n");
    assert_eq!(talk.ask("  scan --reverse --limit 1 --keys-only", 1), "b c\n");
    assert_eq!(talk.ask(r"get b\x20c", 1), "3\n");
    db.close().unwrap();
    assert_eq!(talk.ask("get a", 1), "2\n");
    assert_eq!(talk.end(), (0, String::new(), String::new()));
}

#[test]
fn every_read_is_of_now_when_it_catches_up_by_itself() {
    let dir = folder();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let mut talk = Talk::begin(dir.path(), &["follow", "--catch-up", "--json"]);
    assert_eq!(talk.ask("get a", 1), "{\"found\":false,\"key\":\"a\"}\n");
    db.put(b"a", b"1").unwrap();
    assert_eq!(
        talk.ask("get a", 1),
        "{\"found\":true,\"key\":\"a\",\"value\":\"1\"}\n"
    );
    db.put(b"a", b"2").unwrap();
    assert_eq!(talk.ask("scan", 1), "{\"key\":\"a\",\"value\":\"2\"}\n");
    assert_eq!(talk.ask("catch-up", 1), "{\"batches\":0,\"sequence\":2}\n");
    assert_eq!(talk.end(), (1, String::new(), String::new()));
}

#[test]
fn a_family_that_comes_later_can_be_read() {
    let dir = folder();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let mut talk = Talk::begin(dir.path(), &["follow", "--family", "late"]);
    assert_eq!(talk.ask("catch-up", 1), "sequence 0\n");
    let family = db
        .create_column_family("late", ColumnFamilyOptions::default())
        .unwrap();
    db.put_cf(&family, b"a", b"1").unwrap();
    // Not yet.
    talk.ask("scan", 0);
    let now = format!("sequence {}\n", db.last_sequence());
    assert_eq!(talk.ask("catch-up", 1), now);
    assert_eq!(talk.ask("scan", 1), "a\t1\n");
    let (code, _, stderr) = talk.end();
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("there is no column family 'late'"), "{stderr}");
}

#[test]
fn lines_that_make_no_sense_are_told_of_and_the_next_is_read() {
    let dir = folder();
    let (code, _, stderr) = told(&command(dir.path(), &["follow"]).output().unwrap());
    assert_eq!(code, 4);
    assert!(stderr.contains("there is no database"), "{stderr}");

    let db = Db::open(dir.path(), Options::default()).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut talk = Talk::begin(dir.path(), &["follow"]);
    for wrong in ["put a 2", "get", "scan --limit many", r"get \q"] {
        assert_eq!(talk.ask(wrong, 0), "");
    }
    let help = talk.ask("help", 3);
    assert!(help.contains("get KEY"), "{help}");
    talk.ask("get nothing", 0);
    let (code, rest, stderr) = talk.end();
    assert_eq!(code, 2, "{stderr}");
    assert!(rest.contains("catch-up"), "{rest}");
    for word in ["line 1: put a 2", "line 2: get", "many", r"get \q", "'nothing'"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}
