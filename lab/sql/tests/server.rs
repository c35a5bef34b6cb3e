//! Both reports in a real server, at a size of seconds. Without a server (`make mariadb`) or without sysbench there is nothing to
//! test; `ESKER_REQUIRE_MARIADB=1` makes that a failure.

// A test of a server has to wait for it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use esker_lab_core::schema::Row;
use esker_lab_sql::engine::{Engine, Setup};
use esker_lab_sql::insert;
use esker_lab_sql::server::{Home, Server, Start};
use esker_lab_sql::suite::{self, Data, Spec, Suite};
use esker_lab_sql::sysbench;
use esker_lab_workloads::Context;

fn home() -> Option<Home> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mariadb");
    let folder = std::env::var_os("ESKER_MARIADB_HOME").map_or(usual, PathBuf::from);
    match Home::find(Some(&folder)).and_then(|home| sysbench::version().map(|_| home)) {
        Ok(home) => Some(home),
        Err(error) => {
            assert!(std::env::var_os("ESKER_REQUIRE_MARIADB").is_none(), "{error}");
            eprintln!("left out: {error}");
            None
        }
    }
}

/// A folder whose path is short enough for a socket.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn setup() -> Setup {
    Setup {
        memory_bytes: 256 << 20,
        sync: false,
    }
}

fn run(suite: Suite, tests: &[&str], engine: &str) -> Option<Vec<Row>> {
    let home = home()?;
    let engine = Engine::named(engine).unwrap();
    home.check(engine).ok()?;
    let dir = folder();
    let names: Vec<String> = tests.iter().map(|t| (*t).to_owned()).collect();
    let spec = Spec {
        suite,
        tests: suite.choose(&names).unwrap(),
        data: Data::Cached,
        rows: 2_000,
        threads: 1,
        seconds: 0.3,
        interval_s: 0.1,
        seed: 5,
        setup: setup(),
    };
    let start = Start {
        home: &home,
        folder: dir.path(),
        engine,
        setup: spec.setup,
        preload: None,
        group: None,
    };
    let context = Context {
        stop: &AtomicBool::new(false),
        tell: &|_| (),
        dir: dir.path().to_owned(),
        load_elsewhere: None,
        group: None,
    };
    let mut rows = Vec::new();
    suite::run(&spec, &context, &start, &mut |row| rows.push(row)).unwrap();
    Some(rows)
}

#[test]
fn sysbench_gives_a_row_for_each_test() {
    for engine in ["innodb", "esker"] {
        let tests = ["point-query.pre", "full-scan.pre", "update-inlist", "insert"];
        let Some(rows) = run(Suite::Sysbench, &tests, engine) else {
            return;
        };
        let names: Vec<_> = rows.iter().map(|r| r.workload.as_str()).collect();
        assert_eq!(
            names,
            [
                "load",
                "point-query.pre",
                "full-scan.pre",
                "update-inlist",
                "insert"
            ]
        );
        for row in &rows {
            assert!(
                row.is_good() && row.ops_per_s > 0.0 && row.rss_bytes > 0,
                "{row:?}"
            );
            assert!(row.version.contains("MariaDB"), "{row:?}");
        }
        assert_eq!(rows[2].ops % 2_000, 0, "a scan looks at every row");
        assert!(rows[1].p99_us >= rows[1].p50_us && rows[1].p50_us > 0.0);
    }
}

#[test]
fn the_insert_benchmark_gives_a_row_for_each_step() {
    for engine in ["innodb", "esker"] {
        let Some(rows) = run(Suite::Insert, &[], engine) else {
            return;
        };
        let names: Vec<_> = rows.iter().map(|r| r.workload.as_str()).collect();
        assert_eq!(names, ["insert-load", "queries-1000", "queries-100"]);
        assert!(rows.iter().all(Row::is_good), "{rows:?}");
        assert_eq!(rows[0].ops, 2_000);
        assert!(rows[1].writes_per_s > 0.0);
    }
}

fn server(home: &Home, folder: &Path) -> Server {
    Server::start(&Start {
        home,
        folder,
        engine: Engine::named("innodb").unwrap(),
        setup: setup(),
        preload: None,
        group: None,
    })
    .unwrap()
}

#[test]
fn rows_that_are_missing_are_found() {
    let Some(home) = home() else { return };
    let dir = folder();
    let server = server(&home, dir.path());
    let mut connection = server.connect().unwrap();
    connection.run(&insert::create("InnoDB")).unwrap();
    insert::check(&mut connection, 0).unwrap();
    let error = insert::check(&mut connection, 100).unwrap_err();
    assert!(error.to_string().contains("100 were acknowledged"), "{error}");
    drop(connection);
    server.stop().unwrap();
}

/// Tests beside each other failed by chance: each server that started removed the temporary tables of all others.
#[test]
fn a_server_that_starts_leaves_the_temporary_tables_of_others() {
    let Some(home) = home() else { return };
    let (first, second) = (folder(), folder());
    let one = server(&home, first.path());
    let mut connection = one.connect().unwrap();
    connection
        .run("CREATE TEMPORARY TABLE t (a INT) ENGINE=Aria")
        .unwrap();
    connection.run("INSERT INTO t VALUES (1), (2)").unwrap();
    let two = server(&home, second.path());
    // The second name opens the table's files once more.
    assert_eq!(connection.count("SELECT * FROM t JOIN t AS s").unwrap(), 4);
    connection.run("DROP TABLE t").unwrap();
    drop(connection);
    one.stop().unwrap();
    two.stop().unwrap();
}
