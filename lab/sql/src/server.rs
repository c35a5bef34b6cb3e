//! A private server: a data directory, a process on a socket, connections, and what the process spends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker_lab_core::account::{self, Account};
use esker_lab_core::error::Kind;
use esker_lab_core::{Error, Result, cgroup, size};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::engine::{Engine, Setup};

/// Longest that a server may take to start (recovery, first files), and to stop (memory written out).
const PATIENCE: Duration = Duration::from_secs(120);

/// The database that tests work in.
pub const DATABASE: &str = "lab";

/// The server's packages, unpacked: what `make mariadb` makes.
#[derive(Clone, Debug)]
pub struct Home {
    prefix: PathBuf,
}

impl Home {
    /// Of the folder `home`, that of the environment's `ESKER_MARIADB_HOME`, or `target/mariadb`.
    pub fn find(home: Option<&Path>) -> Result<Home> {
        let home = home
            .map(Path::to_owned)
            .or_else(|| std::env::var_os("ESKER_MARIADB_HOME").map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from("target/mariadb"));
        let prefix = std::path::absolute(home.join("prefix")).map_err(|e| Error::io(home.display(), &e))?;
        let found = Home { prefix };
        if found.program("sbin/mariadbd").exists() {
            return Ok(found);
        }
        Err(Error::new(
            Kind::Missing,
            format!(
                "there is no server in {}: `make mariadb` fetches it and builds the plugin",
                home.display()
            ),
        ))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.prefix.join("usr").join(name)
    }

    fn plugins(&self) -> PathBuf {
        self.program("lib/mysql/plugin")
    }

    /// Fails if the plugin of `engine` is not there.
    pub fn check(&self, engine: &Engine) -> Result<()> {
        let file = self.plugins().join(format!("{}.so", engine.plugin));
        if engine.plugin.is_empty() || file.exists() {
            return Ok(());
        }
        Err(Error::new(
            Kind::Missing,
            format!("{} is not there: `make mariadb` builds it", file.display()),
        ))
    }

    /// A command of the server's, which finds the few libraries that the prefix has for it, for the data directory in `folder`. A server
    /// that starts removes all temporary tables from where it has its own, so that no two may share the place.
    fn command(&self, program: &str, folder: &Path) -> Result<Command> {
        let temporary = folder.join("tmp");
        let temporary = std::path::absolute(&temporary)
            .and_then(|path| std::fs::create_dir_all(&path).map(|()| path))
            .map_err(|e| Error::io(temporary.display(), &e))?;
        let mut command = Command::new(self.program(program));
        let mut path = std::ffi::OsString::new();
        for part in [
            "usr/lib/x86_64-linux-gnu",
            "lib/x86_64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
        ] {
            path.push(self.prefix.join(part));
            path.push(":");
        }
        path.push(std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default());
        command
            .env("LD_LIBRARY_PATH", path)
            .env("TMPDIR", temporary)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Makes the data directory of a new server in `folder`.
    fn install(&self, folder: &Path) -> Result<()> {
        let log = folder.join("install.log");
        let file = File::create(&log).map_err(|e| Error::io(log.display(), &e))?;
        let errors = file.try_clone().map_err(|e| Error::io(log.display(), &e))?;
        let status = self
            .command("bin/mariadb-install-db", folder)?
            .arg("--no-defaults")
            .arg(format!("--basedir={}", self.program("").display()))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!(
                "--lc-messages-dir={}",
                self.program("share/mysql").display()
            ))
            .args([
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--force",
            ])
            .stdout(file)
            .stderr(errors)
            .status()
            .map_err(|e| Error::io("starting mariadb-install-db", &e))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::engine(format!(
            "making a data directory failed:{}",
            tail(&log)
        )))
    }
}

/// The errors in a server's log, or else its last lines.
fn tail(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // Statements of a server that has no client yet are refused without the brackets.
    let is_error = |line: &&str| line.contains("[ERROR]") || line.starts_with("ERROR");
    let mut lines: Vec<&str> = text.lines().filter(is_error).collect();
    if lines.is_empty() {
        lines = text.lines().collect();
    }
    lines
        .iter()
        .skip(lines.len().saturating_sub(8))
        .map(|line| format!("\n  {line}"))
        .collect()
}

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// The packages.
    pub home: &'a Home,
    /// An empty folder.
    pub folder: &'a Path,
    /// What it runs.
    pub engine: &'static Engine,
    /// For how much.
    pub setup: Setup,
    /// A library that the process gets before all others: the allocator.
    pub preload: Option<&'a Path>,
    /// The control group that the process enters.
    pub group: Option<&'a Path>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: PathBuf,
    group: Option<PathBuf>,
    options: Vec<String>,
}

impl Server {
    /// Makes a data directory, starts a server on it and waits until it answers.
    pub fn start(start: &Start<'_>) -> Result<Server> {
        let (home, folder) = (start.home, start.folder);
        home.install(folder)?;
        let log = folder.join("error.log");
        let file = File::create(&log).map_err(|e| Error::io(log.display(), &e))?;
        let options = start.engine.options(&start.setup);
        let mut command = home.command("sbin/mariadbd", folder)?;
        command
            .arg("--no-defaults")
            .arg(format!("--basedir={}", home.program("").display()))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", folder.join("socket").display()))
            .arg(format!("--log-error={}", log.display()))
            .arg(format!("--log-bin={}", folder.join("binlog").display()))
            .arg(format!(
                "--lc-messages-dir={}",
                home.program("share/mysql").display()
            ))
            .arg(format!(
                "--character-sets-dir={}",
                home.program("share/mysql/charsets").display()
            ))
            .arg(format!("--plugin-dir={}", home.plugins().display()))
            .args(["--skip-networking", "--user=root"])
            .args(&options)
            .stdout(Stdio::null())
            .stderr(file);
        if let Some(library) = start.preload {
            command.env("LD_PRELOAD", library);
        }
        let child = command.spawn().map_err(|e| Error::io("starting mariadbd", &e))?;
        let mut server = Server {
            child,
            folder: folder.to_owned(),
            group: start.group.map(Path::to_owned),
            options,
        };
        if let Some(group) = start.group {
            cgroup::admit(group, server.process())?;
        }
        let begun = Instant::now();
        while server.try_connect("").is_err() {
            if server.has_ended() || begun.elapsed() > PATIENCE {
                return Err(Error::engine(format!(
                    "the server does not answer:{}",
                    tail(&log)
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server
            .connect_to("")?
            .run(&format!("CREATE DATABASE {DATABASE}"))?;
        Ok(server)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Its options, for the report.
    pub fn options(&self) -> Vec<(String, String)> {
        let parts = self.options.iter().map(|option| {
            let option = option.trim_start_matches('-');
            option.split_once('=').unwrap_or((option, ""))
        });
        parts
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn try_connect(&self, database: &str) -> std::result::Result<Conn, mysql::Error> {
        let options = OptsBuilder::new()
            .socket(self.socket().to_str())
            .user(Some("root"))
            .db_name((!database.is_empty()).then_some(database));
        Conn::new(options)
    }

    fn connect_to(&self, database: &str) -> Result<Connection> {
        self.try_connect(database)
            .map(Connection)
            .map_err(|e| failed("connecting", &e))
    }

    /// A connection to the tests' database.
    pub fn connect(&self) -> Result<Connection> {
        self.connect_to(DATABASE)
    }

    /// What it has spent.
    pub fn account(&self) -> Account {
        Account::of(self.process(), &self.folder)
    }

    /// Memory that it has resident, in bytes.
    pub fn rss_bytes(&self) -> u64 {
        account::rss_bytes_of(self.process())
    }

    /// Most memory that its control group used, in bytes; 0 without a group.
    pub fn group_peak_bytes(&self) -> u64 {
        self.group.as_deref().and_then(cgroup::peak_bytes).unwrap_or(0)
    }

    /// Bytes of the data directory, without the binary log: all of what engines store.
    pub fn data_bytes(&self) -> u64 {
        size::allocated_bytes(&self.folder.join("data"))
    }

    /// Waits until the server neither computes nor writes, for `longest` at most or until `stop`. Returns whether it came to rest.
    pub fn settle(&self, longest: Duration, stop: &AtomicBool) -> bool {
        const LOOK: Duration = Duration::from_millis(200);
        let begun = Instant::now();
        let mut quiet = 0;
        let mut before = self.account();
        while quiet < 5 {
            if begun.elapsed() > longest || stop.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(LOOK);
            let now = self.account();
            let spent = now.since(&before);
            let share = spent.cpu_us / 1e6 / spent.seconds;
            quiet = if share < 0.06 && spent.write_bytes < 256 << 10 {
                quiet + 1
            } else {
                0
            };
            before = now;
        }
        true
    }

    /// Stops it in order.
    pub fn stop(mut self) -> Result<()> {
        // A server that ended of itself has closed the connection that told it to.
        let _ = self.connect_to("").and_then(|mut c| c.run("SHUTDOWN"));
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return if status.success() {
                    Ok(())
                } else {
                    let log = tail(&self.folder.join("error.log"));
                    Err(Error::engine(format!("the server ended badly ({status}):{log}")))
                };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Error::engine("the server does not stop"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's connection.
pub struct Connection(Conn);

impl Connection {
    /// Runs a statement whose rows nobody wants.
    pub fn run(&mut self, statement: &str) -> Result<()> {
        self.0.query_drop(statement).map_err(|e| failed(statement, &e))
    }

    /// Runs a query and counts its rows.
    pub fn count(&mut self, query: &str) -> Result<u64> {
        let mut rows = 0;
        for row in self.0.query_iter(query).map_err(|e| failed(query, &e))? {
            row.map_err(|e| failed(query, &e))?;
            rows += 1;
        }
        Ok(rows)
    }

    /// The first row of a query, as texts.
    pub fn first(&mut self, query: &str) -> Result<Vec<String>> {
        let row: Option<mysql::Row> = self.0.query_first(query).map_err(|e| failed(query, &e))?;
        let row = row.ok_or_else(|| Error::wrong(format!("{query}: no row")))?;
        let text = |value| mysql::from_value_opt::<String>(value).unwrap_or_default();
        Ok(row.unwrap().into_iter().map(text).collect())
    }
}

fn failed(what: &str, error: &mysql::Error) -> Error {
    let what: String = what.chars().take(80).collect();
    Error::engine(format!("{what}: {error}"))
}
