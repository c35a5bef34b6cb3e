//! One job in a process of its own: its memory, processor time and storage traffic are the engine's alone.
//!
//! The job comes as JSON on standard input. Lines on standard output begin with [`MARK`]; engines may print others.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result, cgroup};
use esker_lab_engines::{Libraries, Registry};
use esker_lab_workloads::{Context, Progress, Spec, flash};
use serde::{Deserialize, Serialize};

use crate::interrupt;

/// Begins each line that is for the parent.
pub const MARK: &str = "\u{1}lab ";

/// What a worker is to do.
#[derive(Serialize, Deserialize)]
pub struct Job {
    /// Engine's name.
    pub engine: String,
    /// Its variant.
    pub variant: String,
    /// The test.
    pub spec: Spec,
    /// An empty folder.
    pub dir: PathBuf,
    /// The control group to enter.
    pub group: Option<PathBuf>,
    /// RocksDB's library.
    pub rocksdb_lib: PathBuf,
    /// LevelDB's library.
    pub leveldb_lib: PathBuf,
}

/// What a worker says.
#[derive(Serialize, Deserialize)]
pub enum Message {
    /// How far it is.
    Progress(Progress),
    /// The measurement.
    Row(Box<Row>),
    /// This engine can't do this test, or can't run here.
    Unable(String),
    /// It failed before there was a row.
    Failed(String),
    /// Stopped before there was anything to report.
    Stopped,
}

fn say(out: &Mutex<std::io::Stdout>, message: &Message) {
    if let (Ok(json), Ok(mut out)) = (serde_json::to_string(message), out.lock()) {
        // The parent is gone if this fails; there is nobody left to tell.
        let _ = writeln!(out, "{MARK}{json}").and_then(|()| out.flush());
    }
}

fn run(out: &Mutex<std::io::Stdout>) -> Result<Row> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Error::io("standard input", &e))?;
    let job: Job = serde_json::from_str(&text).map_err(|e| {
        Error::usage(format!(
            "no job on standard input ({e}); `esker-lab run` starts workers"
        ))
    })?;
    if let Some(group) = &job.group {
        cgroup::enter(group)?;
    }
    let registry = Registry::new(&Libraries {
        rocksdb: job.rocksdb_lib,
        leveldb: job.leveldb_lib,
    });
    let context = Context {
        stop: &interrupt::STOP,
        tell: &|progress| say(out, &Message::Progress(progress)),
        dir: job.dir,
        group: job.group,
    };
    flash::run(registry.engine(&job.engine)?, &job.variant, &job.spec, &context)
}

/// Runs the job on standard input.
pub fn worker() -> ExitCode {
    interrupt::in_worker();
    let out = Mutex::new(std::io::stdout());
    let message = match run(&out) {
        Ok(row) => Message::Row(Box::new(row)),
        Err(error) => match error.kind() {
            Kind::Unsupported | Kind::Missing => Message::Unable(error.to_string()),
            Kind::Stopped => Message::Stopped,
            _ => Message::Failed(error.to_string()),
        },
    };
    say(&out, &message);
    ExitCode::SUCCESS
}
