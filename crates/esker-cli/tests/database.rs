//! What the scripts can't show: other processes, damaged files, sizes, pipes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use esker::{ColumnFamilyOptions, Db, MergeOperator, Opener, Options, TableFileWriter};
use support::{command, folder, json, ok, run, told};

/// A database with rows in several tables and in the log.
fn sample(dir: &Path) {
    let db = Db::open(dir, Options::default()).unwrap();
    for round in 0..3 {
        for i in 0..200 {
            db.put(format!("key{i:04}").as_bytes(), &[b'a' + round; 50])
                .unwrap();
        }
        db.delete_range(b"key0100", b"key0110").unwrap();
        db.flush().unwrap();
    }
    for i in 0..200 {
        db.put(format!("log{i:04}").as_bytes(), b"in the log").unwrap();
    }
    db.close().unwrap();
}

fn files(dir: &Path, what: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries
        .filter(|path| path.to_str().unwrap().contains(what))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {what} in {}", dir.display());
    found
}

/// Flips a bit of the byte at `at`, a fraction of the file.
fn flip(path: &Path, at: f64) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = (bytes.len() as f64 * at) as usize;
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn a_locked_database_is_read_but_not_written() {
    let dir = folder();
    sample(dir.path());
    let db = Db::open(dir.path(), Options::default()).unwrap();
    db.put(b"fresh", b"unflushed").unwrap();
    for write in [
        &["put", "a", "b"][..],
        &["delete", "a"],
        &["delete-range", "a", "b"],
        &["compact"],
        &["checkpoint", "copy"],
        &["export", "copy"],
        &["import", "name", "copy"],
        &["ingest", "x.sst"],
        &["families", "create", "x"],
    ] {
        let (code, stdout, stderr) = run(dir.path(), write);
        assert_eq!((code, stdout.as_str()), (4, ""), "{write:?}");
        assert!(
            stderr.contains("open already") && stderr.contains("beside that process"),
            "{stderr}"
        );
    }
    assert_eq!(ok(dir.path(), &["get", "fresh"]), "unflushed\n");
    assert_eq!(ok(dir.path(), &["scan", "--count"]), "391\n");
    for read in [
        &["stats"][..],
        &["verify"],
        &["dump", "manifest"],
        &["families", "list"],
    ] {
        assert!(!ok(dir.path(), read).is_empty());
    }
    db.put(b"still", b"writable").unwrap();
}

#[test]
fn a_folder_of_somebody_else_stays_as_it_is() {
    let dir = folder();
    std::fs::write(dir.path().join("thesis.txt"), "important").unwrap();
    for args in [
        &["get", "a"][..],
        &["put", "--create", "a", "b"],
        &["verify"],
        &["stats", "--json"],
    ] {
        let (code, _, stderr) = run(dir.path(), args);
        assert_eq!(code, 2, "{args:?}: {stderr}");
        assert!(stderr.contains("thesis.txt"), "{stderr}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn limits_and_wrong_usage_have_their_exit_code() {
    let dir = folder();
    ok(dir.path(), &["put", "--create", "a", "b"]);
    let (code, _, stderr) = run(dir.path(), &["put", &"k".repeat(65537), "v"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("65537 bytes") && stderr.contains("65536"),
        "{stderr}"
    );
    for args in [
        &["frobnicate"][..],
        &["put", "a"],
        &["scan", "--limit", "x"],
        &["dump", "sst"],
        &[],
    ] {
        let (code, stdout, stderr) = run(dir.path(), args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains("Usage") || stderr.contains("--help"), "{stderr}");
    }
    let mut without = command(dir.path(), &["get", "a"]);
    let (code, _, stderr) = told(&without.env_remove("ESKER_DB").output().unwrap());
    assert_eq!(code, 2);
    assert!(
        stderr.contains("--db DIR") && stderr.contains("ESKER_DB"),
        "{stderr}"
    );
}

#[test]
fn a_whole_database_is_verified_and_every_damaged_table_is_named() {
    let dir = folder();
    sample(dir.path());
    let verdicts = json(dir.path(), &["verify", "--json"]);
    assert!(verdicts.iter().all(|line| line["ok"] == true), "{verdicts:?}");
    let roles: Vec<_> = verdicts.iter().filter_map(|line| line["role"].as_str()).collect();
    assert!(roles.contains(&"sst") && roles.contains(&"wal") && roles.contains(&"manifest"));
    assert!(ok(dir.path(), &["verify"]).contains("all whole"));
    assert_eq!(ok(dir.path(), &["verify", "--quiet"]), "");

    let tables = files(dir.path(), ".sst");
    assert!(tables.len() >= 2);
    for (table, at) in [(&tables[0], 0.1), (&tables[1], 0.6)] {
        flip(table, at);
    }
    let (code, stdout, stderr) = run(dir.path(), &["verify", "--quiet"]);
    assert_eq!((code, stderr.as_str()), (3, ""));
    for table in &tables[..2] {
        assert!(stdout.contains(name(table)), "{stdout}");
    }
    assert!(
        stdout.contains("offset") && stdout.contains("2 DAMAGED"),
        "{stdout}"
    );
    let (code, stdout, _) = run(dir.path(), &["verify", "--json"]);
    let lines = stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let damaged: Vec<_> = lines
        .filter(|line| line["ok"] == false && line["type"] == "file")
        .collect();
    assert_eq!((code, damaged.len()), (3, 2));
    assert!(damaged[0]["damages"][0]["offset"].is_u64(), "{damaged:?}");
    // Nothing wrong is given out: the scan says where it had to end.
    let (code, _, stderr) = run(dir.path(), &["scan"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains(".sst") && stderr.contains("esker verify"),
        "{stderr}"
    );
}

#[test]
fn a_missing_table_is_a_damage() {
    let dir = folder();
    sample(dir.path());
    let table = files(dir.path(), ".sst").remove(0);
    std::fs::remove_file(&table).unwrap();
    let (code, stdout, _) = run(dir.path(), &["verify", "--quiet"]);
    assert_eq!(code, 3);
    assert!(
        stdout.contains(name(&table)) && stdout.contains("missing"),
        "{stdout}"
    );
}

#[test]
fn a_damaged_log_is_found_and_dumped_around() {
    let dir = folder();
    sample(dir.path());
    let segments = files(dir.path(), ".wal");
    let written = |path: &&PathBuf| {
        std::fs::read(path)
            .unwrap()
            .windows(10)
            .any(|part| part == b"in the log")
    };
    let segment = segments.iter().rfind(written).unwrap();
    let whole = json(dir.path(), &["dump", "wal", name(segment), "--json"]);
    let bytes = std::fs::read(segment).unwrap();
    let at = bytes.windows(7).position(|part| part == b"log0020").unwrap();
    flip(segment, (at as f64 + 0.5) / bytes.len() as f64);
    let (code, stdout, _) = run(dir.path(), &["verify", "--quiet"]);
    assert_eq!(code, 3, "{stdout}");
    assert!(
        stdout.contains(name(segment)) && stdout.contains("offset"),
        "{stdout}"
    );
    let (code, stdout, _) = run(dir.path(), &["dump", "wal", name(segment), "--json"]);
    assert_eq!(code, 3);
    assert!(stdout.contains("log0019") && stdout.contains("log0021") && !stdout.contains("log0020"));
    assert_eq!(stdout.lines().count(), whole.len() - 1);
    let (code, stdout, stderr) = run(dir.path(), &["get", "log0019"]);
    assert_eq!((code, stdout.as_str()), (0, "in the log\n"));
    assert!(
        stderr.contains("warning") && stderr.contains("verify"),
        "{stderr}"
    );
    // Whoever writes recovers, and keeps the segment aside.
    let (code, _, stderr) = run(dir.path(), &["put", "key", "value"]);
    assert!(code == 0 && stderr.contains("kept aside"), "{stderr}");
    let aside = files(dir.path(), "wal.damaged");
    assert_eq!(aside.len(), 1);
    let (code, stdout, _) = run(dir.path(), &["verify"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(
        stdout.contains(name(&aside[0])) && stdout.contains("kept aside"),
        "{stdout}"
    );
    let (_, stdout, _) = run(dir.path(), &["stats"]);
    assert!(
        stdout.contains("damaged log") && stdout.contains("in 1 files"),
        "{stdout}"
    );
    let stats = json(dir.path(), &["stats", "--json"]);
    assert_eq!(stats[0]["damaged_wal_files"], 1);
    let (_, stdout, _) = run(dir.path(), &["dump", "wal", name(&aside[0])]);
    assert!(
        stdout.contains("log0019") && stdout.contains("log0021"),
        "{stdout}"
    );
}

#[test]
fn a_damaged_manifest_does_not_hide_the_tables() {
    let dir = folder();
    sample(dir.path());
    let manifest = files(dir.path(), "MANIFEST").remove(0);
    flip(&manifest, 0.3);
    let (code, stdout, _) = run(dir.path(), &["verify"]);
    assert_eq!(code, 3);
    assert!(
        stdout.contains(&format!("DAMAGED  manifest {}", manifest.display())),
        "{stdout}"
    );
    assert!(stdout.contains(name(&files(dir.path(), ".sst")[0])), "{stdout}");
    for args in [
        &["get", "a"][..],
        &["put", "a", "b"],
        &["stats"],
        &["dump", "manifest"],
    ] {
        let (code, _, stderr) = run(dir.path(), args);
        assert_eq!(code, 3, "{args:?}: {stderr}");
        assert!(
            stderr.contains("MANIFEST") && stderr.contains("offset"),
            "{stderr}"
        );
    }
}

#[test]
fn every_json_output_parses_and_says_what_is_there() {
    let dir = folder();
    sample(dir.path());
    let stats = &json(dir.path(), &["stats", "--json"])[0];
    assert_eq!(stats["families"][0]["name"], "default");
    assert_eq!(stats["families"][0]["tables"], 3);
    assert_eq!(stats["families"][0]["rows_in_log"], 200);
    assert_eq!(stats["families"][0]["range_tombstones"], 3);
    let table = files(dir.path(), ".sst").remove(0);
    let dump = json(dir.path(), &["dump", "sst", table.to_str().unwrap(), "--json"]);
    assert_eq!(dump[0]["type"], "properties");
    assert_eq!(dump[1]["kind"], "range-delete");
    assert_eq!(
        (&dump[1]["key"], &dump[1]["value"]),
        (&"key0100".into(), &"key0110".into())
    );
    assert_eq!(dump[2]["key"], "key0000");
    assert_eq!(
        (&dump[2]["value_bytes"], &dump[2]["value_cut"]),
        (&50.into(), &true.into())
    );
    let full = json(
        dir.path(),
        &[
            "dump",
            "sst",
            table.to_str().unwrap(),
            "--json",
            "--full",
            "--limit",
            "1",
        ],
    );
    assert_eq!(full[2]["value"], "a".repeat(50));
    assert_eq!(full.len(), 3);
    let manifest = json(dir.path(), &["dump", "manifest", "--json"]);
    assert_eq!(manifest.iter().filter(|line| line["type"] == "table").count(), 3);
    let edits = json(dir.path(), &["dump", "manifest", "--edits", "--json"]);
    assert!(edits.iter().any(|edit| edit["create"] == "default"), "{edits:?}");
    assert_eq!(
        json(dir.path(), &["families", "list", "--json"])[0]["families"][0]["id"],
        0
    );
    let compacted = &json(dir.path(), &["compact", "--json"])[0];
    assert_eq!(
        (&compacted["tables_after"], ok(dir.path(), &["scan", "--count"])),
        (&1.into(), "390\n".to_owned())
    );
    assert!(compacted["bytes_after"].as_u64() < compacted["bytes_before"].as_u64());
}

#[test]
fn a_checkpoint_is_a_database_and_is_not_overwritten() {
    let dir = folder();
    let (db, copy) = (dir.path().join("db"), dir.path().join("copy"));
    sample(&db);
    let made = &json(&db, &["checkpoint", "--json", copy.to_str().unwrap()])[0];
    assert_eq!(made["sequence"], 803);
    assert!(made["linked_files"].as_u64() >= Some(3), "{made}");
    assert_eq!(ok(&copy, &["scan"]), ok(&db, &["scan"]));
    ok(&copy, &["put", "only", "here"]);
    ok(&copy, &["verify", "--quiet"]);
    assert_eq!(run(&db, &["get", "only"]).0, 1);
    let (code, _, stderr) = run(&db, &["checkpoint", copy.to_str().unwrap()]);
    assert!(code == 2 && stderr.contains("exists already"), "{code}: {stderr}");
}

#[test]
fn a_family_is_exported_and_imported() {
    let dir = folder();
    let (db, other) = (dir.path().join("db"), dir.path().join("other"));
    let export = dir.path().join("export");
    let path = export.to_str().unwrap();
    sample(&db);
    ok(&db, &["put", "large", &"v".repeat(2000)]);
    let made = &json(&db, &["export", "--json", path])[0];
    assert_eq!((&made["sequence"], &made["blob_files"]), (&804.into(), &1.into()));
    let (code, _, stderr) = run(&db, &["export", path]);
    assert!(code == 2 && stderr.contains("exists already"), "{code}: {stderr}");
    ok(&other, &["put", "--create", "large", &"w".repeat(2000)]);
    ok(&other, &["compact"]);
    let came = &json(&other, &["import", "--json", "users", path])[0];
    assert_eq!(
        (&came["tables"], &came["bytes"]),
        (&made["tables"], &made["bytes"])
    );
    assert_eq!(ok(&other, &["scan", "--family", "users"]), ok(&db, &["scan"]));
    ok(&other, &["verify", "--quiet"]);
    assert!(ok(&other, &["dump", "manifest"]).contains(" pointed_as "));
    let (code, _, stderr) = run(&other, &["import", "users", path]);
    assert!(code == 2 && stderr.contains("exists already"), "{code}: {stderr}");
    ok(&other, &["import", "--move", "again", path]);
    assert!(!export.exists());
    ok(&other, &["compact", "--family", "again"]);
    assert_eq!(ok(&other, &["scan", "--family", "again"]), ok(&db, &["scan"]));
    assert_eq!(ok(&other, &["get", "large"]), "w".repeat(2000) + "\n");
    let (code, _, stderr) = run(&other, &["import", "gone", path]);
    assert!(
        code == 2 && stderr.contains("no exported column family"),
        "{code}: {stderr}"
    );
}

#[test]
fn tables_are_ingested_verified_and_moved() {
    let dir = folder();
    let (db, table) = (dir.path().join("db"), dir.path().join("rows.sst"));
    sample(&db);
    let mut writer = TableFileWriter::create(&table, &ColumnFamilyOptions::default()).unwrap();
    for i in 0..300 {
        writer.put(format!("key{i:04}").as_bytes(), b"ingested").unwrap();
    }
    writer.finish().unwrap();
    let path = table.to_str().unwrap();
    let made = &json(&db, &["ingest", "--json", path])[0];
    assert_eq!((&made["tables"], &made["sequence"]), (&1.into(), &804.into()));
    assert_eq!(ok(&db, &["get", "key0105"]), "ingested\n");
    assert_eq!(ok(&db, &["scan", "--count"]), "500\n");
    ok(&db, &["verify", "--quiet"]);
    ok(&db, &["ingest", "--move", path]);
    assert!(!table.exists());
    ok(&db, &["compact"]);
    ok(&db, &["verify", "--quiet"]);
    assert_eq!(ok(&db, &["scan", "--count"]), "500\n");
}

#[test]
fn values_in_blob_files_are_shown_where_they_lie() {
    let dir = folder();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    db.put(b"large", &[b'v'; 600]).unwrap();
    db.put(b"small", b"in the table").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let (table, blob) = (
        files(dir.path(), ".sst").remove(0),
        files(dir.path(), ".blob").remove(0),
    );
    let number: u64 = name(&blob).split_once('.').unwrap().0.parse().unwrap();

    let dump = json(dir.path(), &["dump", "sst", name(&table), "--json"]);
    assert_eq!(dump[1]["kind"], "blob-pointer");
    let pointer = serde_json::json!({"file": number, "offset": 32, "bytes": 609});
    assert_eq!(
        (&dump[1]["blob"], &dump[1]["value"]),
        (&pointer, &serde_json::Value::Null)
    );
    assert_eq!(dump[2]["value"], "in the table");
    let text = ok(dir.path(), &["dump", "sst", name(&table)]);
    let shown = format!("\tlarge\tblob {number:06} offset 32 bytes 609\n");
    assert!(text.contains(&shown), "{text}");

    let manifest = json(dir.path(), &["dump", "manifest", "--json"]);
    let find = |what: &str| manifest.iter().find(|line| line["type"] == what).unwrap();
    let refs = serde_json::json!([{"file": number, "records": 1, "bytes": 609}]);
    assert_eq!(find("table")["blobs"], refs);
    let listed = find("blob");
    for (field, value) in [
        ("number", number),
        ("bytes", 705),
        ("records", 1),
        ("live_bytes", 609),
    ] {
        assert_eq!(listed[field], value, "{listed}");
    }
    let text = ok(dir.path(), &["dump", "manifest"]);
    assert!(
        text.contains(&format!(" blob {number:06} records 1 bytes 609\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "\n  blob {number:06} bytes 705 records 1 record_bytes 609 live_records 1"
        )),
        "{text}"
    );
    let edits = json(dir.path(), &["dump", "manifest", "--edits", "--json"]);
    let added = |edit: &serde_json::Value| edit["added_blobs"][0]["number"] == number;
    assert!(edits.iter().any(added), "{edits:?}");
    let text = ok(dir.path(), &["dump", "manifest", "--edits"]);
    assert!(
        text.contains(&format!("\n  add blob {number:06} bytes 705")),
        "{text}"
    );

    let stats = &json(dir.path(), &["stats", "--json"])[0];
    for part in [stats, &stats["families"][0]] {
        let numbers = ["blob_files", "blob_bytes", "blob_live_bytes"].map(|field| part[field].as_u64());
        assert_eq!(numbers, [Some(1), Some(705), Some(609)], "{part}");
    }
    let text = ok(dir.path(), &["stats"]);
    assert!(text.contains("705 B in 1 files, 609 B of them live"), "{text}");

    let verdicts = json(dir.path(), &["verify", "--json"]);
    let verdict = verdicts.iter().find(|line| line["role"] == "blob").unwrap();
    assert_eq!((&verdict["bytes"], &verdict["records"]), (&705.into(), &1.into()));
    flip(&blob, 0.5);
    let (code, stdout, _) = run(dir.path(), &["verify", "--quiet"]);
    assert_eq!(code, 3);
    assert!(
        stdout.contains("DAMAGED  blob") && stdout.contains(name(&blob)),
        "{stdout}"
    );
    std::fs::remove_file(&blob).unwrap();
    let (code, stdout, _) = run(dir.path(), &["verify", "--quiet"]);
    assert_eq!(code, 3);
    assert!(
        stdout.contains(name(&blob)) && stdout.contains("missing"),
        "{stdout}"
    );
}

#[test]
fn rows_go_from_one_database_to_another_through_a_pipe() {
    let (old, new) = (folder(), folder());
    let db = Db::open(old.path(), Options::default()).unwrap();
    for i in 0..=255_u8 {
        db.put(&[i, b'\t', i], &[b'\n', i]).unwrap();
    }
    db.close().unwrap();
    for form in [&[][..], &["--hex"]] {
        let rows = ok(old.path(), &[&["scan"], form].concat());
        let mut put = command(
            new.path(),
            &[&["put", "--lines", "--create", "--sync"], form].concat(),
        );
        let mut child = put.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(rows.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(ok(new.path(), &[&["scan"], form].concat()), rows);
        assert_eq!(rows.lines().count(), 256);
    }
    let mut put = command(new.path(), &["put", "--lines"]);
    let mut child = put.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\tb\nno tab\n").unwrap();
    let (code, _, stderr) = told(&child.wait_with_output().unwrap());
    assert_eq!(code, 2);
    assert!(stderr.contains("line 2"), "{stderr}");
}

#[test]
fn values_go_through_files_byte_for_byte() {
    let dir = folder();
    let value: Vec<u8> = (0..100_000_u32).map(|i| (i * 7) as u8).collect();
    let path = dir.path().join("value");
    std::fs::write(&path, &value).unwrap();
    let db = dir.path().join("db");
    ok(
        &db,
        &["put", "--create", "blob", "--file", path.to_str().unwrap()],
    );
    assert_eq!(
        command(&db, &["get", "blob", "--raw"]).output().unwrap().stdout,
        value
    );
    let (code, _, stderr) = run(&db, &["put", "blob", "--file", "no such file"]);
    assert_eq!(code, 4);
    assert!(stderr.contains("no such file"), "{stderr}");
}

#[test]
fn a_reader_that_goes_away_ends_a_scan_quietly() {
    let dir = folder();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    for i in 0..20_000_u32 {
        db.put(&i.to_be_bytes(), &[b'v'; 100]).unwrap();
    }
    db.close().unwrap();
    let mut scan = command(dir.path(), &["scan"]);
    let mut child = scan
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let (code, _, stderr) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn a_write_leaves_stored_settings_as_they_are() {
    let dir = folder();
    let tuned = ColumnFamilyOptions {
        file_bytes: 3 << 20,
        ..ColumnFamilyOptions::default()
    };
    let options = Options {
        default_column_family: tuned,
        ..Options::default()
    };
    Db::open(dir.path(), options).unwrap().close().unwrap();
    ok(dir.path(), &["put", "a", "b"]);
    let families = &json(dir.path(), &["families", "list", "--json"])[0];
    assert_eq!(families["families"][0]["options"]["file_bytes"], "3145728");
}

struct Longest;

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        "app.longest"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        let all = base.into_iter().chain(operands.iter().copied());
        Ok(all.max_by_key(|value| value.len()).unwrap_or_default().to_vec())
    }
}

#[test]
fn without_its_applications_operator_a_database_is_read_but_not_written() {
    let dir = folder();
    let family = ColumnFamilyOptions {
        merge_operator: Some(Arc::new(Longest)),
        ..ColumnFamilyOptions::default()
    };
    let db = Opener::new(Options::default())
        .column_family("default", family)
        .open(dir.path())
        .unwrap();
    db.put(b"plain", b"value").unwrap();
    db.merge(b"merged", b"operand").unwrap();
    db.close().unwrap();
    assert_eq!(ok(dir.path(), &["get", "plain"]), "value\n");
    for args in [&["get", "merged"][..], &["put", "a", "b"], &["compact"]] {
        let (code, _, stderr) = run(dir.path(), args);
        assert_eq!(code, 2, "{args:?}");
        assert!(stderr.contains("app.longest"), "{stderr}");
    }
}

/// Counters that somebody adds are in every form of `stats`, and say what they are.
#[test]
fn stats_show_every_counter_in_every_format() {
    let dir = folder();
    sample(dir.path());
    let stats = &json(dir.path(), &["stats", "--json"])[0];
    assert_eq!(stats, &json(dir.path(), &["stats", "--format", "json"])[0]);
    let counters = stats["counters"].as_object().unwrap();
    assert!(counters.len() > 40, "{}", counters.len());
    let text = ok(dir.path(), &["stats", "--counters"]);
    let (facts, counted) = text.split_once("\ncounted while").unwrap();
    assert_eq!(facts, ok(dir.path(), &["stats"]));
    let metrics = ok(dir.path(), &["stats", "--format", "prometheus"]);
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    for (name, count) in counters.iter().chain(stats["times"].as_object().unwrap()) {
        // The names of sections stand at the margin.
        let mut lines = counted
            .lines()
            .filter(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(name));
        let line = lines.next().unwrap_or_else(|| panic!("{name} is not shown"));
        assert!(line.ends_with('.') && line.contains("  "), "{line}");
        assert_eq!(lines.next(), None, "{name}");
        let shown = match name.strip_suffix("_us") {
            Some(name) => format!("# HELP esker_{name}_seconds "),
            None => format!("\nesker_{name}_total {count}\n"),
        };
        assert!(metrics.contains(&shown), "{shown}");
    }
    assert!(
        metrics.contains("esker_level_files{family=\"default\",level=\"0\"}"),
        "{metrics}"
    );
}

#[test]
fn a_damaged_database_is_repaired_and_what_is_lost_is_said() {
    let dir = folder();
    sample(dir.path());
    let before = ok(dir.path(), &["scan", "--count"]);
    let table = files(dir.path(), ".sst").remove(0);
    flip(&table, 0.3);
    std::fs::remove_file(dir.path().join("CURRENT")).unwrap();
    let (code, _, stderr) = run(dir.path(), &["get", "key0000"]);
    assert_eq!(code, 3);
    assert!(stderr.contains("esker repair"), "{stderr}");
    let names = || {
        let entries = std::fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let found = names();
    let (code, dry, _) = run(dir.path(), &["repair", "--dry-run"]);
    assert_eq!((code, names()), (3, found));
    assert!(
        dry.contains("manifest: whole") && dry.contains("keys between "),
        "{dry}"
    );
    let (code, stdout, _) = run(dir.path(), &["repair", "--json"]);
    assert_eq!(code, 3);
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["damaged"][0]["path"], table.display().to_string());
    assert_eq!(report["lossless"], false);
    assert!(dir.path().join("lost").join(name(&table)).exists() && !table.exists());
    ok(dir.path(), &["verify"]);
    // Newer versions of all keys are in tables above.
    assert_eq!(ok(dir.path(), &["scan", "--count"]), before);
    let (code, stdout, _) = run(dir.path(), &["repair"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("nothing lost"), "{stdout}");
}
