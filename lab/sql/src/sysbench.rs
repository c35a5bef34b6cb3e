//! The program sysbench: starting it with its stock scripts and ours, and reading what it says.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use esker_lab_core::error::Kind;
use esker_lab_core::{Error, Result};

use crate::server::{DATABASE, Server};

/// Its version; an error that says how to get it if it is not there.
pub fn version() -> Result<String> {
    let output = Command::new("sysbench").arg("--version").output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Err(Error::new(
            Kind::Missing,
            "sysbench is not installed: `scripts/setup.sh sql` installs it",
        )),
    }
}

/// Scripts for what the stock ones do not have.
const OWN_SCRIPTS: &[(&str, &str)] = &[
    ("lab_in_list.lua", include_str!("../lua/in_list.lua")),
    ("lab_full_scan.lua", include_str!("../lua/full_scan.lua")),
];

/// One run of the program.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// A stock script's name, or one of ours.
    pub script: &'a str,
    /// The script's own options.
    pub options: &'a [&'a str],
    /// `prepare` or `run`.
    pub command: &'a str,
    /// The engine's name in SQL.
    pub engine: &'a str,
    /// Rows of the table.
    pub rows: u64,
    /// Clients.
    pub threads: usize,
    /// Length, in seconds.
    pub seconds: f64,
    /// Seed of its choices.
    pub seed: u64,
}

/// What it said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Queries, and events, which are what the script does once: a query, a transaction.
    pub queries: u64,
    /// Events.
    pub events: u64,
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// Queries a second, each second.
    pub rates: Vec<f64>,
    /// Milliseconds of an event, and how many events took about as long.
    pub histogram: Vec<(f64, u64)>,
    /// Statements that failed and were run again.
    pub ignored_errors: u64,
}

fn number(word: &str) -> Option<f64> {
    word.trim_matches(|c: char| !c.is_ascii_digit() && c != '.')
        .parse()
        .ok()
}

/// The number behind `name:` in `line`.
fn named(line: &str, name: &str) -> Option<f64> {
    number(line.trim().strip_prefix(name)?.split_whitespace().next()?)
}

impl Said {
    /// Takes one line of its output.
    fn line(&mut self, line: &str) {
        if let Some(value) = named(line, "queries:") {
            self.queries = value as u64;
        } else if let Some(value) = named(line, "total time:") {
            self.seconds = value;
        } else if let Some(value) = named(line, "total number of events:") {
            self.events = value as u64;
        } else if let Some(value) = named(line, "ignored errors:") {
            self.ignored_errors = value as u64;
        } else if let Some((_, rest)) = line.split_once(" qps: ") {
            self.rates.extend(rest.split_whitespace().next().and_then(number));
        } else if let Some((value, rest)) = line.split_once('|') {
            let count = rest.split_whitespace().last().and_then(|word| word.parse().ok());
            if let (Ok(value), Some(count)) = (value.trim().parse(), count) {
                self.histogram.push((value, count));
            }
        }
    }

    /// Time that `percent` of events stay within, in microseconds.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let total: u64 = self.histogram.iter().map(|(_, count)| count).sum();
        let wanted = percent / 100.0 * total as f64;
        let mut seen = 0;
        for (value, count) in &self.histogram {
            seen += count;
            if seen as f64 >= wanted {
                return value * 1e3;
            }
        }
        0.0
    }
}

fn script(folder: &Path, name: &str) -> Result<PathBuf> {
    let Some((_, text)) = OWN_SCRIPTS.iter().find(|(own, _)| *own == name) else {
        // The program finds its own by their names.
        return Ok(PathBuf::from(name));
    };
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| Error::io(path.display(), &e))?;
    Ok(path)
}

fn start(server: &Server, folder: &Path, call: &Call<'_>) -> Result<Child> {
    let mut command = Command::new("sysbench");
    command
        .arg(script(folder, call.script)?)
        .arg("--db-driver=mysql")
        .arg(format!("--mysql-socket={}", server.socket().display()))
        .args(["--mysql-user=root", &format!("--mysql-db={DATABASE}")])
        .arg(format!("--mysql-storage-engine={}", call.engine))
        .args([
            "--tables=1",
            "--rand-type=uniform",
            "--histogram=on",
            "--report-interval=1",
        ])
        .arg(format!("--table-size={}", call.rows))
        .arg(format!("--threads={}", call.threads))
        // Whole seconds only; no end by number of events.
        .arg(format!("--time={}", call.seconds.ceil().max(1.0)))
        .arg("--events=0")
        .arg(format!("--rand-seed={}", call.seed))
        .args(call.options)
        .arg(call.command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().map_err(|e| Error::io("starting sysbench", &e))
}

/// Runs it to its end, or until `stop`; `tell` hears the rate of each second.
pub fn call(
    server: &Server,
    folder: &Path,
    call: &Call<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(f64),
) -> Result<Said> {
    let mut child = start(server, folder, call)?;
    let mut said = Said::default();
    let mut complaints = Vec::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(std::io::Result::ok) {
            said.line(&line);
            if line.contains("FATAL") || line.contains("error ") {
                complaints.push(line);
            }
            if let Some(rate) = said.rates.last() {
                tell(*rate);
            }
            if stop.load(Ordering::Relaxed) {
                let _ = child.kill();
            }
        }
    }
    let status = child.wait().map_err(|e| Error::io("waiting for sysbench", &e))?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::Stopped, "stopped"));
    }
    if !status.success() || !complaints.is_empty() {
        complaints.truncate(3);
        return Err(Error::engine(format!(
            "sysbench {} failed ({status}): {}",
            call.script,
            complaints.join("; ")
        )));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_read() {
        let text = "\
[ 1s ] thds: 1 tps: 799.64 qps: 15992.85 (r/w/o: 11194.99/3198.57/1599.28) lat (ms,95%): 1.47 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 1 tps: 801.07 qps: 16021.35 (r/w/o: 11214.95/3204.27/1602.13) lat (ms,95%): 1.44 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.981 |****                                     90
       1.021 |**                                       9
      44.173 |                                         1

SQL statistics:
    queries performed:
        read:                            1400
    transactions:                        100    (800.36 per sec.)
    queries:                             2000   (16007.14 per sec.)
    ignored errors:                      3      (0.00 per sec.)

General statistics:
    total time:                          2.0012s
    total number of events:              100
";
        let mut said = Said::default();
        text.lines().for_each(|line| said.line(line));
        assert_eq!((said.queries, said.events, said.ignored_errors), (2000, 100, 3));
        assert_eq!(said.seconds, 2.0012);
        assert_eq!(said.rates, [15992.85, 16021.35]);
        for (percent, us) in [(50.0, 981.0), (99.0, 1021.0), (100.0, 44173.0)] {
            assert!((said.percentile_us(percent) - us).abs() < 1e-6, "{percent}");
        }
        assert_eq!(Said::default().percentile_us(99.0), 0.0);
    }
}
