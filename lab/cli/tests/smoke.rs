//! The program end to end: runs, compares, makes a page; with the peers too when their libraries are there.

// A test of a program has to start it, and its helpers are test code that clippy does not see as such.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use esker_lab_core::schema::{Row, Run};

fn lab(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esker-lab"))
        .current_dir(dir)
        .args(args)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A folder on the disk that holds this crate, for temporary file systems may refuse direct I/O.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn quick<'a>(engines: &'a str, json: &'a str) -> Vec<&'a str> {
    quick_of("flash", engines, json)
}

fn quick_of<'a>(suite: &'a str, engines: &'a str, json: &'a str) -> Vec<&'a str> {
    vec![
        "run",
        suite,
        "--engines",
        engines,
        "--scale",
        "smoke",
        "--rows",
        "2000",
        "--seconds",
        "0.1",
        "--threads",
        "4",
        "--memory",
        "256MiB",
        "--json",
        json,
    ]
}

#[test]
fn runs_compares_and_reports() {
    let dir = folder();
    let mut args = quick("memory,null", "a.json");
    args.extend(["--repeat", "2", "--html", "page/index.html"]);
    let output = lab(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("readwhilewriting"), "{}", text(&output));

    let run = Run::read(&dir.path().join("a.json")).unwrap();
    assert_eq!(run.rows.len(), 5 * 2 * 2);
    assert!(!run.partial && run.limits.is_some());
    assert!(
        run.rows.iter().all(|r| r.is_good() && r.rerun.contains("--only")),
        "{:?}",
        run.rows[0]
    );
    let drawn = |row: &Row| !row.rate_curve.is_empty() || row.interval_rates.len() > 1;
    assert!(run.rows.iter().all(drawn), "every run has rates to draw");
    assert!(text(&output).contains("its writer, rows/s"), "{}", text(&output));
    // Engines alternate: A B A B.
    let order: Vec<_> = run.rows[..4]
        .iter()
        .map(|r| (r.engine.as_str(), r.repeat))
        .collect();
    assert_eq!(order, [("memory", 1), ("null", 1), ("memory", 2), ("null", 2)]);
    let limited = run.rows.iter().all(|r| r.memory_limit_bytes == 256 << 20);
    let said = run
        .notes
        .iter()
        .any(|n| n.contains("no memory limit can be set here"));
    assert!(
        limited != said,
        "a limit is set, or the run says plainly that it is not: {:?}",
        run.notes
    );
    assert!(!dir.path().join("results/work").exists(), "databases are removed");
    assert!(
        std::fs::read_to_string(dir.path().join("page/index.html"))
            .unwrap()
            .contains("overwrite")
    );

    let output = lab(dir.path(), &["compare", "a.json", "a.json", "--fail-below", "5"]);
    assert!(
        output.status.success() && text(&output).contains("+0.0%"),
        "{}",
        text(&output)
    );
    let output = lab(dir.path(), &["report", "."]);
    assert!(
        output.status.success() && dir.path().join("report/index.html").exists(),
        "{}",
        text(&output)
    );
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let dir = folder();
    for (args, code, answer) in [
        (
            vec!["run", "flash", "--engines", "oracle"],
            2,
            "there are esker, rocksdb",
        ),
        (
            vec!["run", "flash", "--engines", "memory", "--only", "fillslowly"],
            2,
            "readrandom",
        ),
        (
            vec!["run", "flash", "--engines", "memory", "--memory", "lots"],
            2,
            "512MiB",
        ),
        (
            vec!["run", "flash", "--engines", "rocksdb", "--rocksdb-lib", "no.so"],
            2,
            "make peers",
        ),
        (
            vec![
                "run",
                "flash",
                "--engines",
                "dropin-leveldb",
                "--dropin-dir",
                "no-such-folder",
            ],
            2,
            "make dropin",
        ),
        (
            vec!["run", "flash", "--engines", "memory", "--key-bytes", "9"],
            2,
            "keys of 9 bytes: from 10",
        ),
        (
            vec!["run", "flash", "--engines", "memory", "--key-bytes", "65537"],
            2,
            "to 64 KiB",
        ),
        (
            vec!["run", "txn", "--engines", "leveldb"],
            2,
            "no variant for transactions",
        ),
        (
            vec!["run", "txn", "--engines", "memory:default"],
            2,
            "it has locks",
        ),
        (
            vec!["run", "txn", "--engines", "memory", "--only", "overwrite"],
            2,
            "update-sync",
        ),
        (
            vec!["run", "txn", "--engines", "memory", "--dropin"],
            2,
            "in flash",
        ),
        (
            vec![
                "run",
                "txn",
                "--engines",
                "memory",
                "--rows",
                "100",
                "--threads",
                "200",
            ],
            2,
            "200 threads",
        ),
        (vec!["compare", "no.json", "no.json"], 1, "no.json"),
        (vec!["report", "no-such-folder"], 1, "no-such-folder"),
    ] {
        let output = lab(dir.path(), &args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(answer), "{args:?}: {}", text(&output));
    }
}

#[test]
fn peers_run_where_their_libraries_are() {
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let (rocksdb, leveldb) = (peers.join("librocksdb.so"), peers.join("libleveldb.so"));
    if !rocksdb.exists() || !leveldb.exists() {
        println!("skipped: no peers; scripts/fetch-peers.sh fetches them");
        return;
    }
    let dir = folder();
    let (rocksdb, leveldb) = (rocksdb.display().to_string(), leveldb.display().to_string());
    let run = |engines: &str, only: &str| {
        let mut args = quick(engines, "peers.json");
        args.extend([
            "--only",
            only,
            "--skip-limits",
            "--rocksdb-lib",
            &rocksdb,
            "--leveldb-lib",
            &leveldb,
        ]);
        let output = lab(dir.path(), &args);
        assert!(output.status.success(), "{}", text(&output));
        let run = Run::read(&dir.path().join("peers.json")).unwrap();
        assert!(run.rows.iter().all(|r| r.verified_reads > 0), "{}", text(&output));
        run
    };
    assert_eq!(run("rocksdb:all", "overwrite").rows.len(), 5);
    let both = run(
        "rocksdb:direct,leveldb",
        "bulkload-random,mergerandom,deleterandom,seekrandom,readreverse",
    );
    // LevelDB has no merge, which is said and no failure.
    assert_eq!(both.rows.len(), 9);
    assert!(
        both.notes
            .iter()
            .any(|n| n.contains("leveldb:default was left out of mergerandom"))
    );
}

#[test]
fn drop_in_libraries_run_as_the_originals_do() {
    let dropin = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dropin");
    if !dropin.join("librocksdb.so").exists() || !dropin.join("libleveldb.so").exists() {
        println!("skipped: no drop-in libraries; `make dropin` builds them");
        return;
    }
    let dir = folder();
    let folder = dropin.display().to_string();
    let mut args = quick("esker", "dropin.json");
    args.extend([
        "--dropin",
        "--dropin-dir",
        &folder,
        "--only",
        "bulkload-random,mergerandom,seekrandom,readreverse",
        "--skip-limits",
    ]);
    let output = lab(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output));
    let run = Run::read(&dir.path().join("dropin.json")).unwrap();
    // Esker two ways, RocksDB's interface two ways, LevelDB's, which has no merge.
    assert_eq!(run.rows.len(), 4 * 5 - 1, "{}", text(&output));
    assert!(
        run.rows.iter().all(|r| r.is_good() && r.verified_reads > 0),
        "{}",
        text(&output)
    );
    assert!(
        text(&output).contains("beside the engine without them"),
        "{}",
        text(&output)
    );
}

#[test]
fn transactions_run_compare_and_make_a_page() {
    let dir = folder();
    let mut args = quick_of("txn", "memory,null,esker", "txn.json");
    args.extend(["--repeat", "2", "--skip-limits", "--html", "txn.html"]);
    let output = lab(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output));
    let run = Run::read(&dir.path().join("txn.json")).unwrap();
    // Esker has two kinds, the others one.
    assert_eq!(run.rows.len(), 9 * 4 * 2, "{}", text(&output));
    assert!(run.rows.iter().all(Row::is_good), "{}", text(&output));
    assert_eq!(
        (run.settings.suite.as_str(), run.settings.value_bytes),
        ("txn", 100)
    );
    for figure in [
        "update-sync",
        "CPU to a put",
        "esker:optimistic",
        "Ratios are to the best RocksDB",
    ] {
        assert!(text(&output).contains(figure), "{figure}: {}", text(&output));
    }
    let commits = run
        .rows
        .iter()
        .find(|r| r.workload == "update" && r.variant == "optimistic")
        .unwrap();
    assert!(
        commits
            .rerun
            .contains("run txn --engines esker:optimistic --only update"),
        "{}",
        commits.rerun
    );
    let page = std::fs::read_to_string(dir.path().join("txn.html")).unwrap();
    assert!(page.contains("Transactions, smoke scale") && page.contains("class=\"transactions\""));
    let output = lab(
        dir.path(),
        &["compare", "txn.json", "txn.json", "--fail-below", "5"],
    );
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn rocksdbs_transactions_run_where_its_library_is() {
    let library = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers/librocksdb.so");
    if !library.exists() {
        println!("skipped: no peers; scripts/fetch-peers.sh fetches them");
        return;
    }
    let dir = folder();
    let library = library.display().to_string();
    let run = |engines: &str, only: &str| {
        let mut args = quick_of("txn", engines, "txn.json");
        args.extend(["--only", only, "--skip-limits", "--rocksdb-lib", &library]);
        let output = lab(dir.path(), &args);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("x best"), "{}", text(&output));
        Run::read(&dir.path().join("txn.json")).unwrap().rows
    };
    assert_eq!(run("rocksdb:all", "hot").len(), 8);
    let rows = run("rocksdb:committed,rocksdb:optimistic,esker", "all");
    assert_eq!(rows.len(), 9 * 4);
    let syncs = |row: &Row| row.syncs_per_op.is_some_and(|syncs| syncs > 0.0);
    assert!(
        rows.iter()
            .all(|row| row.workload.ends_with("-sync") == syncs(row))
    );
}
