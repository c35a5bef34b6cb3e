//! The same random statements on ESKER and on InnoDB, in one server: each must give the same rows, counts and errors.
//!
//! A seed determines two tables and all that happens to them. `ESKER_COMPARE_SEEDS=FROM-TO` chooses the seeds; the statements of one that
//! fails are left in `target/same-answers-SEED.sql`. InnoDB and the server have lost rows by some ways, which these statements don't take
//! there: joins by batches of keys, filters of row numbers, and keys of virtual columns (InnoDB stores them; ESKER does the one and the
//! other). Hash joins, which take some equal texts for different, are off for both.
//!
//! Without a server (`make mariadb`) there is nothing to test; `ESKER_REQUIRE_MARIADB=1` makes that a failure.

// A test of a server has to wait for it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use esker_lab_sql::engine::{Engine, Setup};
use esker_lab_sql::server::{Home, Server, Start};
use esker_testkit::random::Rng;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use crate::table::Table;

mod column;
mod statement;
mod table;

const STATEMENTS: usize = 150;
const SEEDS: std::ops::Range<u64> = 0..120;

fn home() -> Option<Home> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mariadb");
    let folder = std::env::var_os("ESKER_MARIADB_HOME").map_or(usual, PathBuf::from);
    match Home::find(Some(&folder)) {
        Ok(home) => Some(home),
        Err(error) => {
            assert!(std::env::var_os("ESKER_REQUIRE_MARIADB").is_none(), "{error}");
            eprintln!("left out: {error}");
            None
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(wanted) = std::env::var("ESKER_COMPARE_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = wanted.split_once('-').unwrap_or((&wanted, &wanted));
    from.parse().unwrap()..to.parse::<u64>().unwrap() + 1
}

/// What a statement gave.
#[derive(PartialEq, Debug)]
enum Answer {
    Rows(Vec<Vec<Value>>),
    Changed(u64),
    Error(u16),
    /// The server ended, and this is what its client saw.
    Lost(String),
}

/// A connection, with a database of its own, whose tables one engine has.
struct Client(Conn);

impl Client {
    fn new(server: &Server, engine: &str, settings: &str) -> Client {
        let options = OptsBuilder::new()
            .socket(server.socket().to_str())
            .user(Some("root"));
        let mut connection = Conn::new(options).unwrap();
        for statement in [
            format!("CREATE DATABASE {engine} CHARACTER SET utf8mb4"),
            format!("USE {engine}"),
            format!("SET default_storage_engine={engine}, timestamp=1700000000{settings}"),
        ] {
            connection.query_drop(statement).unwrap();
        }
        Client(connection)
    }

    fn answer(&mut self, statement: &str) -> Answer {
        self.try_answer(statement).unwrap_or_else(|error| match error {
            mysql::Error::MySqlError(error) => Answer::Error(error.code),
            error => Answer::Lost(error.to_string()),
        })
    }

    fn try_answer(&mut self, statement: &str) -> Result<Answer, mysql::Error> {
        let mut result = self.0.query_iter(statement)?;
        if result.columns().as_ref().is_empty() {
            return Ok(Answer::Changed(result.affected_rows()));
        }
        let rows = result.by_ref().map(|row| Ok(row?.unwrap()));
        Ok(Answer::Rows(rows.collect::<Result<_, mysql::Error>>()?))
    }
}

/// What of an answer engines may not differ in.
fn comparable(statement: &str, answer: Answer) -> Answer {
    match (statement.split(' ').next(), answer) {
        // Rows that are copied count, and with one algorithm or the other that is different.
        (Some("ALTER" | "TRUNCATE"), Answer::Changed(_)) => Answer::Changed(0),
        // They name the database, and an engine may have done more than another.
        (Some("ANALYZE" | "OPTIMIZE"), Answer::Rows(_)) => Answer::Changed(0),
        (_, answer) => answer,
    }
}

struct Run<'a> {
    seed: u64,
    done: Vec<String>,
    esker: &'a mut Client,
    innodb: &'a mut Client,
}

impl Run<'_> {
    /// Runs a statement on both; what they differ in, if they do.
    fn both(&mut self, statement: String) -> Result<(), String> {
        let esker = comparable(&statement, self.esker.answer(&statement));
        let stored = statement.replace(" VIRTUAL", " STORED");
        let innodb = comparable(&statement, self.innodb.answer(&stored));
        let message = format!("{statement}\nESKER  {esker:?}\nInnoDB {innodb:?}\n");
        self.done.push(statement);
        if esker == innodb { Ok(()) } else { Err(message) }
    }

    /// All indexes of ESKER have what the rows say.
    fn check(&mut self, table: &str) -> Result<(), String> {
        let statement = format!("CHECK TABLE {table} EXTENDED");
        let answer = self.esker.answer(&statement);
        self.done.push(statement);
        match &answer {
            Answer::Rows(rows) if rows.len() == 1 && rows[0].ends_with(&["status".into(), "OK".into()]) => {
                Ok(())
            }
            _ => Err(format!("{answer:?}")),
        }
    }

    fn all(&mut self) -> Result<(), String> {
        let mut rng = Rng::new(self.seed);
        let mode = rng.pick(&["STRICT_TRANS_TABLES", ""]);
        self.both(format!(
            "SET sql_mode = '{mode}', tx_isolation = 'REPEATABLE-READ'"
        ))?;
        self.both("DROP TABLE IF EXISTS t, u".into())?;
        let mut tables: Vec<Table> = ["t", "u"]
            .iter()
            .map(|name| Table::random(name, &mut rng))
            .collect();
        for table in &tables {
            self.both(table.definition.clone())?;
        }
        for _ in 0..STATEMENTS {
            let next = statement::random(&mut tables, &mut rng);
            self.both(next)?;
        }
        self.both("COMMIT".into())?;
        for table in &tables {
            self.both(format!(
                "SELECT {whole} FROM {} ORDER BY {whole}",
                table.name,
                whole = table.whole()
            ))?;
            self.check(&table.name)?;
            for key in &table.keys {
                self.both(format!("SELECT COUNT(*) FROM {} FORCE INDEX ({key})", table.name))?;
            }
        }
        Ok(())
    }

    /// Leaves the statements in a file.
    fn keep(&self) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../target/same-answers-{}.sql", self.seed));
        std::fs::write(&file, self.done.join(";\n") + ";\n").unwrap();
        file.display().to_string()
    }
}

#[test]
fn random_statements_give_what_they_give_on_innodb() {
    let Some(home) = home() else { return };
    let engine = Engine::named("esker").unwrap();
    home.check(engine).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&Start {
        home: &home,
        folder: dir.path(),
        engine,
        setup: Setup {
            memory_bytes: 256 << 20,
            sync: false,
        },
        preload: None,
        group: None,
    });
    let server = server.unwrap();
    let mut esker = Client::new(
        &server,
        "ESKER",
        ", optimizer_switch='mrr=on,mrr_cost_based=off,join_cache_hashed=off', join_cache_level=6",
    );
    let mut innodb = Client::new(&server, "InnoDB", ", optimizer_switch='rowid_filter=off'");
    let mut differences = Vec::new();
    for seed in seeds() {
        let mut run = Run {
            seed,
            done: Vec::new(),
            esker: &mut esker,
            innodb: &mut innodb,
        };
        if let Err(message) = run.all() {
            differences.push(format!(
                "seed {seed}, the last statement of {}:\n{message}",
                run.keep()
            ));
            if matches!(esker.answer("ROLLBACK"), Answer::Lost(_)) {
                let log = std::fs::read_to_string(dir.path().join("error.log")).unwrap();
                differences.push(format!("the server ended:\n{log}"));
                break;
            }
            innodb.answer("ROLLBACK");
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    server.stop().unwrap();
}
