//! One job in a process of its own: its memory, processor time and storage traffic are the engine's alone.
//!
//! The job comes as JSON on standard input. Lines on standard output begin with [`MARK`]; engines may print others.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;

use esker_lab_core::error::Kind;
use esker_lab_core::schema::Row;
use esker_lab_core::{Error, Result, cgroup};
use esker_lab_engines::{Libraries, Registry};
use esker_lab_workloads::{Context, Load, Progress, Spec, suite};
use serde::{Deserialize, Serialize};

use crate::interrupt;

/// Begins each line that is for the parent.
pub const MARK: &str = "\u{1}lab ";

/// What a worker is to do.
#[derive(Clone, Serialize, Deserialize)]
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
    /// Folder of the drop-in libraries.
    pub dropin_dir: PathBuf,
    /// Only load; another worker runs the test.
    pub load: Option<Load>,
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

/// Loads in a worker of this worker, which inherits the control group and speaks to the same parent.
fn load_elsewhere(job: &Job, load: Load) -> Result<()> {
    let program = std::env::current_exe().map_err(|e| Error::io("finding this program", &e))?;
    let mut child = Command::new(program)
        .args(["worker", "--load"])
        .stdin(Stdio::piped())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Error::io("starting a loading process", &e))?;
    let job = Job {
        load: Some(load),
        group: None,
        ..job.clone()
    };
    let json = serde_json::to_vec(&job).map_err(|e| Error::usage(e.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that died already says why on standard error.
        let _ = stdin.write_all(&json);
    }
    interrupt::set_child(child.id());
    let output = child
        .wait_with_output()
        .map_err(|e| Error::io("waiting for a loading process", &e))?;
    interrupt::set_child(0);
    if interrupt::stopped() {
        return Err(Error::new(Kind::Stopped, "stopped while loading"));
    }
    if output.status.success() {
        return Ok(());
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    Err(Error::engine(format!(
        "loading failed ({}): {}",
        output.status,
        complaints.trim()
    )))
}

/// Does the job on standard input; a job that only loads has no answer.
fn run(out: &Mutex<std::io::Stdout>) -> Result<Option<Message>> {
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
        rocksdb: job.rocksdb_lib.clone(),
        leveldb: job.leveldb_lib.clone(),
        dropin: job.dropin_dir.clone(),
    });
    let elsewhere = |load| load_elsewhere(&job, load);
    let context = Context {
        stop: &interrupt::STOP,
        tell: &|progress| say(out, &Message::Progress(progress)),
        dir: job.dir.clone(),
        load_elsewhere: Some(&elsewhere),
        group: job.group.clone(),
    };
    let engine = registry.engine(&job.engine)?;
    if let Some(load) = job.load {
        return suite::load(engine, &job.variant, &job.spec, &context, load).map(|()| None);
    }
    suite::run(engine, &job.variant, &job.spec, &context).map(|row| Some(Message::Row(Box::new(row))))
}

/// Runs the job on standard input. One that is only `loading` answers by its exit code and standard error.
pub fn worker(loading: bool) -> ExitCode {
    interrupt::in_worker();
    let out = Mutex::new(std::io::stdout());
    let message = match run(&out) {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(message)) => message,
        Err(error) if loading => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
        Err(error) => match error.kind() {
            Kind::Unsupported | Kind::Missing => Message::Unable(error.to_string()),
            Kind::Stopped => Message::Stopped,
            _ => Message::Failed(error.to_string()),
        },
    };
    say(&out, &message);
    ExitCode::SUCCESS
}
