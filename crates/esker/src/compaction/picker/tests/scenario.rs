//! Golden scenarios: levels drawn as text, the decision as text.
//!
//! A file of `scenarios/` holds scenarios between lines of `---`:
//! ```text
//! # what it shows
//! options trigger=4 base=100 file=10 multiplier=10 levels=7 files_max=20 max_job=0 aging=60 now=500 hidden=900
//! L0: 9[a..z]10 8[a..z]10*          number[smallest..largest]bytes; * taken, ! marked, ~ all tombstones
//! L6: 1[a..m]50@30 2[n..z]50        @ when it was written
//! running 5->6 a..c                 a job
//! do pick | targets | debt | range a..z | range all | bulk | drop a..z c..d
//! => what comes out, in as many lines as it has
//! ```
//! Level 0 is written newest first. After a plan, `do` may be repeated: each acts on the version that a move leads to,
//! or, for a merge, on the same version with the plan claimed.
//!
//! With `ESKER_BLESS` set, the files are rewritten to what comes out; read the difference before it is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::check::check;
use crate::compaction::picker::{
    PickerContext, Plan, PlanKind, RangeCursor, RangeStep, RunningJob, estimate_debt, level_targets, pick,
    plan_bulk, plan_range, scores, tables_within,
};
use crate::key::{KeyOrder, ValueKind, internal_key};
use crate::options::{Aging, ColumnFamilyOptions};
use crate::version::{FileMeta, Version};

/// Runs every scenario of a file and gives the file as it should read.
fn run_file(text: &str) -> String {
    let scenarios: Vec<String> = text.split("---\n").map(run).collect();
    scenarios.join("---\n")
}

fn run(scenario: &str) -> String {
    let mut out = String::new();
    let mut options = ColumnFamilyOptions {
        file_bytes: 10,
        level_base_bytes: 100,
        ..Default::default()
    };
    let (mut max_job_bytes, mut now, mut hidden_rows) = (0, 0, 0);
    let mut levels: BTreeMap<usize, Vec<Arc<FileMeta>>> = BTreeMap::new();
    let mut running: Vec<RunningJob> = Vec::new();
    let mut version: Option<Version> = None;
    let mut cursor = RangeCursor::default();
    for line in scenario.lines() {
        if line.starts_with("=>") || line.starts_with("   ") {
            continue;
        }
        out += line;
        out.push('\n');
        if let Some(settings) = line.strip_prefix("options ") {
            for setting in settings.split_whitespace() {
                let (name, value) = setting.split_once('=').expect("name=value");
                let value: u64 = value.parse().expect("a number");
                match name {
                    "trigger" => options.level0_compaction_trigger = value as usize,
                    "files_max" => options.level0_files_max = value as usize,
                    "base" => options.level_base_bytes = value,
                    "file" => options.file_bytes = value,
                    "multiplier" => options.level_size_multiplier = value as u32,
                    "levels" => options.levels = value as usize,
                    "max_job" => max_job_bytes = value,
                    "aging" => options.aging = Aging::Expire(value),
                    "now" => now = value,
                    "hidden" => hidden_rows = value,
                    _ => panic!("no option {name}"),
                }
            }
        } else if let Some(job) = line.strip_prefix("running ") {
            let (ends, keys) = job.split_once(' ').expect("levels keys");
            let (level_in, level_out) = ends.split_once("->").expect("in->out");
            let (smallest, largest) = keys.split_once("..").expect("a..b");
            running.push(RunningJob {
                level_in: level_in.parse().expect("level"),
                level_out: level_out.parse().expect("level"),
                smallest: smallest.into(),
                largest: largest.into(),
            });
        } else if let Some(rest) = line.strip_prefix('L') {
            let (level, files) = rest.split_once(':').expect("Ln: files");
            let level: usize = level.parse().expect("level");
            let files: Vec<&str> = files.split_whitespace().collect();
            let count = files.len() as u64;
            let parsed = files
                .iter()
                .zip(0..)
                .map(|(text, i)| parse_file(text, level, count - i));
            levels.entry(level).or_default().extend(parsed);
        } else if let Some(action) = line.strip_prefix("do ") {
            let version = version.get_or_insert_with(|| {
                let depth = levels.keys().max().map_or(0, |max| max + 1);
                let files = (0..depth)
                    .map(|level| levels.remove(&level).unwrap_or_default())
                    .collect();
                Version::new(KeyOrder::Bytewise, options.levels, files).expect("a legal drawing")
            });
            let context = PickerContext {
                running: &running,
                max_job_bytes,
                now_unix_seconds: now,
                hidden_rows,
            };
            let (text, plan) = act(action, version, &options, &context, &mut cursor);
            for (i, line) in text.lines().enumerate() {
                out += if i == 0 { "=> " } else { "   " };
                out += line;
                out.push('\n');
            }
            if let Some(plan) = plan {
                check(version, &running, &plan).unwrap_or_else(|wrong| panic!("{scenario}: {wrong}"));
                if plan.kind == PlanKind::Move {
                    *version = version.apply(&plan.edit(0)).expect("a move fits");
                } else {
                    assert!(plan.claim(), "{scenario}: a file was taken");
                    running.push(plan.running());
                }
            }
        }
    }
    out
}

fn parse_file(text: &str, level: usize, age: u64) -> Arc<FileMeta> {
    let (number, rest) = text.split_once('[').expect("number[");
    let (keys, rest) = rest.split_once(']').expect("]");
    let (smallest, largest) = keys.split_once("..").expect("a..b");
    let size = rest.trim_end_matches(['*', '!', '~']);
    let number: u64 = number.parse().expect("number");
    let (size, created) = size.split_once('@').unwrap_or((size, "0"));
    let size_bytes = size.parse().expect("bytes");
    // Older levels hold older data; a key shared by two neighbours has its newer version on the left.
    let sequence = (16 - level as u64) * 1000 + age;
    Arc::new(FileMeta {
        number,
        size_bytes,
        smallest: internal_key(smallest.as_bytes(), sequence - 1, ValueKind::Put),
        largest: internal_key(largest.as_bytes(), sequence, ValueKind::Put),
        sequence_min: sequence - 1,
        sequence_max: sequence,
        entries: size_bytes,
        created_unix_seconds: created.parse().expect("seconds"),
        deletions: if rest.contains('~') { size_bytes } else { 0 },
        marked: AtomicBool::new(rest.contains('!')),
        being_compacted: AtomicBool::new(rest.contains('*')),
        ..FileMeta::default()
    })
}

fn act(
    action: &str,
    version: &Version,
    options: &ColumnFamilyOptions,
    context: &PickerContext<'_>,
    cursor: &mut RangeCursor,
) -> (String, Option<Plan>) {
    if let Some(ranges) = action.strip_prefix("drop ") {
        let ranges: Vec<(&[u8], &[u8])> = ranges
            .split_whitespace()
            .map(|range| range.split_once("..").expect("a..b"))
            .map(|(start, end)| (start.as_bytes(), end.as_bytes()))
            .collect();
        return (show_tables(&tables_within(version, &ranges)), None);
    }
    let plan = match action {
        "pick" => pick(version, options, context),
        "bulk" => plan_bulk(version, options, context),
        "debt" => return (estimate_debt(version, options).to_string(), None),
        "targets" => {
            let targets = level_targets(version, options);
            let used: Vec<String> = (1..version.level_count())
                .filter(|&level| targets.bytes[level] > 0)
                .map(|level| format!("L{level}:{}", targets.bytes[level]))
                .collect();
            let text = format!(
                "base L{}, level 0 to L{}, {}",
                targets.base_level,
                targets.level0_output,
                used.join(" ")
            );
            return (text, None);
        }
        "scores" => {
            let due: Vec<String> = scores(version, options)
                .iter()
                .filter(|score| score.size_bytes > 0)
                .map(|score| {
                    format!(
                        "L{}:{:.2} (priority {:.2})",
                        score.level, score.score, score.priority
                    )
                })
                .collect();
            return (due.join(" "), None);
        }
        _ => {
            let range = action.strip_prefix("range ").expect("an action");
            let (begin, end) = range.split_once("..").unzip();
            let (begin, end) = (begin.map(str::as_bytes), end.map(str::as_bytes));
            match plan_range(version, options, context, begin, end, cursor) {
                RangeStep::Run { plan, next } => {
                    *cursor = next;
                    Some(*plan)
                }
                RangeStep::Blocked => return ("blocked".to_owned(), None),
                RangeStep::Done => return ("done".to_owned(), None),
            }
        }
    };
    (plan.as_ref().map_or("nothing".to_owned(), show), plan)
}

/// Tables by level, the oldest first.
fn show_tables(tables: &[(usize, Arc<FileMeta>)]) -> String {
    let mut text = String::new();
    for level in tables.chunk_by(|a, b| a.0 == b.0) {
        let numbers: Vec<String> = level.iter().map(|(_, file)| file.number.to_string()).collect();
        text += &format!("L{}: {}\n", level[0].0, numbers.join(" "));
    }
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        text
    }
}

fn show(plan: &Plan) -> String {
    let kind = match plan.kind {
        PlanKind::Move => "move",
        PlanKind::Merge => "merge",
    };
    let mut text = format!("{kind} L{}->L{} {:?}", plan.level_in, plan.level_out, plan.reason);
    if plan.bottommost {
        text += " bottommost";
    }
    for input in &plan.inputs {
        let numbers: Vec<String> = input.files.iter().map(|file| file.number.to_string()).collect();
        text += &format!("\nL{}: {}", input.level, numbers.join(" "));
    }
    if !plan.grandparents.is_empty() {
        let numbers: Vec<String> = plan
            .grandparents
            .iter()
            .map(|file| file.number.to_string())
            .collect();
        text += &format!("\ncut along: {}", numbers.join(" "));
    }
    text
}

macro_rules! scenarios {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("scenarios/", stringify!($name), ".txt"));
            let actual = run_file(text);
            if std::env::var_os("ESKER_BLESS").is_some() && actual != text {
                let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/compaction/picker/tests/scenarios/");
                std::fs::write(format!("{dir}{}.txt", stringify!($name)), &actual).expect("written");
                return;
            }
            assert!(actual == text, "{}.txt reads now:\n{actual}", stringify!($name));
        }
    )*};
}

scenarios! { targets level0 level0_deep leveled moves parallel manual bulk marked hidden aged debt within }
