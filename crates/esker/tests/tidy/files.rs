//! What a file may hold: its first line, its length, nothing left for later, `unsafe` only with a proof.

use crate::source::Source;

/// Lines that a file may have, those of tests not counted.
const LENGTH_MAX: usize = 500;

/// Files that are longer, and by how much they may be: the number only ever goes down, and the entry goes with the
/// seam that is found.
pub const LENGTH_EXCEPTIONS: &[(&str, usize)] = &[];

/// Where `unsafe` may stand, and what for. Everything here also runs under Miri (`make miri`), where it can.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[
    (
        "crates/esker/src/memtable/",
        "an arena that readers walk without locks",
    ),
    (
        "crates/esker-env/src/posix/",
        "aligned buffers for direct I/O, and calls that rustix does not wrap safely",
    ),
    ("crates/esker-capi/src/", "the C ABI"),
    ("crates/esker-compat/", "the C ABIs of LevelDB and RocksDB"),
    ("lab/engines/src/", "calls into the peers' C ABIs"),
];

/// Every Rust file opens with what it does.
pub fn check_first_line(source: &Source) -> Vec<String> {
    match source.lines.first() {
        Some(line) if line.starts_with("//! ") && line.len() > "//! ".len() + 8 => Vec::new(),
        _ => vec![format!(
            "{}:1: the first line does not say (`//! …`) what the file does",
            source.path
        )],
    }
}

/// Files past the limit, and exceptions that are no longer needed.
pub fn check_lengths(sources: &[Source], exceptions: &[(&str, usize)]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        let lines = source.lines_without_tests();
        let allowed = exceptions
            .iter()
            .find(|(path, _)| *path == source.path)
            .map_or(LENGTH_MAX, |(_, lines)| *lines);
        if lines > allowed {
            findings.push(format!(
                "{}: {lines} lines without tests, {allowed} are allowed: look for the seam",
                source.path
            ));
        }
    }
    for (path, allowed) in exceptions {
        let lines = sources
            .iter()
            .find(|source| source.path == *path)
            .map_or(0, Source::lines_without_tests);
        if lines <= LENGTH_MAX {
            findings.push(format!("{path}: needs no exception any more, remove it"));
        } else if lines < *allowed {
            findings.push(format!(
                "{path}: {lines} lines now, lower its exception from {allowed}"
            ));
        }
    }
    findings
}

/// Notes that promise work, macros that stand for missing code, tests that are switched off.
pub fn check_leftovers(source: &Source) -> Vec<String> {
    // Put together here, so that this file does not hold what it looks for.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let mut findings = Vec::new();
    for (number, line) in source.lines.iter().enumerate() {
        for mark in marks.iter().filter(|mark| has_word(line, mark)) {
            findings.push(format!(
                "{}:{}: `{mark}`: do it, or open an issue",
                source.path,
                number + 1
            ));
        }
    }
    for part in source.tokens.windows(3) {
        let (first, second, third) = (&part[0].text, &part[1].text, &part[2].text);
        let unfinished = ["todo", "unimplemented", "dbg"].contains(&first.as_str()) && second == "!";
        let switched_off = first == "#" && second == "[" && third == "ignore";
        if unfinished || switched_off {
            findings.push(format!(
                "{}:{}: `{first}{second}{third}` does not belong in the tree",
                source.path, part[0].line
            ));
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let is_word = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || next == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_word(line[..at].chars().next_back()) && !is_word(line[at + word.len()..].chars().next())
    })
}

/// `unsafe` outside the list, and unsafe blocks and impls without a proof.
pub fn check_unsafe(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let allowed = UNSAFE_ALLOWED
        .iter()
        .any(|(folder, _)| source.path.starts_with(folder));
    for pair in source.tokens.windows(2).filter(|pair| pair[0].text == "unsafe") {
        let line = pair[0].line;
        if !allowed {
            findings.push(format!(
                "{}:{line}: `unsafe` outside the modules that may hold it: {}",
                source.path,
                UNSAFE_ALLOWED
                    .iter()
                    .map(|(folder, _)| *folder)
                    .collect::<Vec<_>>()
                    .join(" ")
            ));
        }
        if (pair[1].text == "{" || pair[1].text == "impl") && !has_proof(&source.lines, line - 1) {
            findings.push(format!(
                "{}:{line}: no `// SAFETY:` comment says why this unsafe code is sound",
                source.path
            ));
        }
    }
    findings
}

/// Whether a safety comment stands on line `index` (from 0) or directly above the statement that it is part of.
fn has_proof(lines: &[String], index: usize) -> bool {
    let is_proof = |line: &str| {
        line.split_once("//")
            .is_some_and(|(_, comment)| comment.contains("SAFETY:"))
    };
    if is_proof(&lines[index]) {
        return true;
    }
    for line in lines[..index].iter().rev().map(|line| line.trim()) {
        if is_proof(line) {
            return true;
        }
        let comment = line.starts_with("//") || line.starts_with("#[");
        let statement_before = line.is_empty() || line.ends_with([';', '{', '}', ',']);
        if !comment && statement_before {
            return false;
        }
    }
    false
}

/// Paths that exist on one machine only.
pub fn check_machine_paths(path: &str, text: &str) -> Vec<String> {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/tmp/", "bash"),
    ];
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for place in places {
            let rooted = line.match_indices(place).any(|(at, _)| {
                !line[..at].ends_with(|before: char| {
                    before.is_alphanumeric() || ['.', '_', '-', '}'].contains(&before)
                })
            });
            if rooted {
                findings.push(format!(
                    "{path}:{}: `{place}…` exists on one machine only",
                    number + 1
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "crates/esker/src/memtable/arena.rs";

    fn source(text: &str) -> Source {
        Source::new(OPEN, text)
    }

    #[test]
    fn a_first_line_must_say_something() {
        assert!(check_first_line(&source("//! Memory that is freed all at once.\n")).is_empty());
        for text in [
            "",
            "use x;\n//! Late.\n",
            "//!\n//! Second line.\n",
            "// Not a module comment.\n",
        ] {
            assert_eq!(check_first_line(&source(text)).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_long_file_is_caught_but_not_for_its_tests() {
        let code = "fn f() {}\n".repeat(LENGTH_MAX);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert!(check_lengths(&[source(&format!("{code}{tests}"))], &[]).is_empty());
        assert_eq!(
            check_lengths(&[source(&format!("{code}\n{tests}"))], &[]).len(),
            1
        );
    }

    #[test]
    fn an_exception_only_goes_down() {
        let long = [source(&"fn f() {}\n".repeat(LENGTH_MAX + 10))];
        assert!(check_lengths(&long, &[(OPEN, LENGTH_MAX + 10)]).is_empty());
        assert!(check_lengths(&long, &[(OPEN, LENGTH_MAX + 9)])[0].contains("seam"));
        assert!(check_lengths(&long, &[(OPEN, LENGTH_MAX + 11)])[0].contains("lower"));
        assert!(check_lengths(&[source("")], &[(OPEN, LENGTH_MAX + 9)])[0].contains("remove"));
    }

    #[test]
    fn promises_and_switched_off_tests_are_caught() {
        for text in [
            concat!("// TO", "DO: later\n"),
            concat!("let x = 1; // (FIX", "ME)\n"),
            concat!("/* X", "XX */\n"),
            "fn f() { todo!() }",
            "fn f() { unimplemented!(\"x\") }",
            "fn f() { dbg!(1); }",
            "#[ignore = \"slow\"]\nfn t() {}",
            "#[cfg(test)] mod tests { #[test] #[ignore] fn t() {} }",
        ] {
            assert_eq!(check_leftovers(&source(text)).len(), 1, "{text}");
        }
        let fine =
            "// A method is not a TODOS list; mktemp takes XXXXXX.\nlet todo = \"dbg!(\"; ignore(todo);\n";
        assert!(check_leftovers(&source(fine)).is_empty());
    }

    #[test]
    fn unsafe_needs_its_place_and_its_proof() {
        let proven = "fn f() {\n    // SAFETY: the pointer is live,\n    // as above.\n    let x =\n        unsafe { g() };\n}";
        assert!(check_unsafe(&source(proven)).is_empty());
        assert_eq!(
            check_unsafe(&Source::new("crates/esker/src/wal/mod.rs", proven)).len(),
            1
        );
        for text in [
            "fn f() {\n    unsafe { g() }\n}",
            "// SAFETY: of another statement.\nh();\nunsafe { g() }",
            "// SAFETY: of another statement.\nh();\n// Not a proof.\nunsafe impl Send for X {}",
            "let x = \"SAFETY:\"; unsafe { g() }",
        ] {
            assert_eq!(check_unsafe(&source(text)).len(), 1, "{text}");
        }
        assert!(check_unsafe(&source("// unsafe { }\nlet x = \"unsafe {\";")).is_empty());
    }

    #[test]
    fn a_path_of_one_machine_is_caught() {
        let found = check_machine_paths("a.md", concat!("see /wo", "rk/notes and (/ho", "me/x)"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(check_machine_paths("a.md", "lab/work/x, $HOME/work/y, home/z, ${dir}/work/").is_empty());
    }
}
