//! Starting a worker and listening to it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use esker_lab_core::cgroup::Group;
use esker_lab_core::{Error, Result, size};
use esker_lab_workloads::Progress;

use crate::interrupt;
use crate::worker::{Job, MARK, Message};

/// Lines of a worker's complaints that are kept.
const COMPLAINTS: usize = 12;

/// The allocator that every engine runs with.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocator {
    /// A library to preload; `None` for the system's own.
    pub preload: Option<PathBuf>,
}

impl Allocator {
    /// `auto`, `system`, or a library.
    pub fn find(text: &str) -> Result<Allocator> {
        let preload = match text {
            "system" => None,
            "auto" => ["x86_64-linux-gnu", "aarch64-linux-gnu", "."]
                .iter()
                .flat_map(|arch| {
                    ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(|d| Path::new(d).join(arch))
                })
                .map(|folder| folder.join("libjemalloc.so.2"))
                .find(|path| path.exists()),
            path if Path::new(path).exists() => Some(PathBuf::from(path)),
            path => return Err(Error::usage(format!("--allocator {path}: no such file"))),
        };
        Ok(Allocator { preload })
    }

    /// For results.
    pub fn name(&self) -> String {
        self.preload.as_ref().map_or("the system's".into(), |path| {
            path.file_name()
                .map_or_else(String::new, |n| n.to_string_lossy().into_owned())
        })
    }
}

fn complaints(stderr: ChildStderr) -> std::thread::JoinHandle<VecDeque<String>> {
    std::thread::spawn(move || {
        let mut kept = VecDeque::new();
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
            if kept.len() == COMPLAINTS {
                kept.pop_front();
            }
            kept.push_back(line);
        }
        kept
    })
}

fn start(job: &Job, allocator: &Allocator) -> Result<Child> {
    let program = std::env::current_exe().map_err(|e| Error::io("finding this program", &e))?;
    let mut command = Command::new(program);
    command
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(library) = &allocator.preload {
        command.env("LD_PRELOAD", library);
    }
    let mut child = command.spawn().map_err(|e| Error::io("starting a worker", &e))?;
    let json = serde_json::to_vec(job).map_err(|e| Error::usage(e.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A worker that died already says why on standard error.
        let _ = stdin.write_all(&json);
    }
    Ok(child)
}

/// Runs `job` in a process of its own and returns its last message. `tell` hears of its progress.
pub fn run(
    job: &Job,
    group: Option<&Group>,
    allocator: &Allocator,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Message> {
    let mut child = start(job, allocator)?;
    interrupt::set_child(child.id());
    let complaints = child.stderr.take().map(complaints);
    let mut last = None;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
            let Some(json) = line.strip_prefix(MARK) else {
                continue;
            };
            match serde_json::from_str(json) {
                Ok(Message::Progress(progress)) => tell(&progress),
                Ok(message) => last = Some(message),
                Err(error) => {
                    last = Some(Message::Failed(format!(
                        "the worker's answer can't be read: {error}"
                    )));
                }
            }
        }
    }
    let status = child.wait().map_err(|e| Error::io("waiting for a worker", &e))?;
    interrupt::set_child(0);
    let complaints = complaints
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    if let Some(message) = last {
        return Ok(message);
    }
    if interrupt::stopped() {
        return Ok(Message::Stopped);
    }
    let killed = group.filter(|group| group.kills() > 0);
    let mut why = match killed {
        Some(group) => format!(
            "killed by the kernel: it needed more than the memory limit of {}",
            size::display(group.limit_bytes() as f64)
        ),
        None => format!("the worker died ({status})"),
    };
    for line in complaints {
        why.push_str("\n  ");
        why.push_str(&line);
    }
    Ok(Message::Failed(why))
}
