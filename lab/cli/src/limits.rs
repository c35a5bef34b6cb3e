//! `esker-lab limits`: what the disk and the memory can do at most.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::limits::{self, Limits};
use esker_lab_core::machine::Machine;
use esker_lab_core::{Error, Result, size};

use crate::args::LimitsArgs;
use crate::table;

/// Measures with a line of progress for each figure.
pub fn measure(dir: &Path, file_bytes: u64, seconds: f64) -> Result<Limits> {
    limits::measure(dir, file_bytes, Duration::from_secs_f64(seconds), &mut |what| {
        eprintln!("    measuring {what}");
    })
}

/// The limits as lines of a table.
pub fn lines(limits: &Limits) -> Vec<Vec<String>> {
    let rate = |bytes: f64| format!("{}/s", size::display(bytes));
    [
        (
            "sequential write, 1 MiB",
            rate(limits.sequential_write_bytes_per_s),
        ),
        ("sequential read, 1 MiB", rate(limits.sequential_read_bytes_per_s)),
        (
            "random read, 4 KiB, 1 thread",
            format!("{}/s", count(limits.random_reads_per_s_depth_1)),
        ),
        (
            "random read, 4 KiB, 32 threads",
            format!("{}/s", count(limits.random_reads_per_s_depth_32)),
        ),
        ("append 4 KiB and fdatasync, p50", micros(limits.fdatasync_p50_us)),
        ("append 4 KiB and fdatasync, p99", micros(limits.fdatasync_p99_us)),
        ("memory copy, 1 thread", rate(limits.memory_copy_bytes_per_s)),
        (
            "memory latency",
            format!("{} ns", three_digits(limits.memory_latency_ns)),
        ),
    ]
    .map(|(name, value)| vec![name.to_owned(), value])
    .into()
}

pub fn limits(args: &LimitsArgs) -> Result<ExitCode> {
    std::fs::create_dir_all(&args.dir).map_err(|e| Error::io(args.dir.display(), &e))?;
    let machine = Machine::look(&args.dir);
    let measured = measure(&args.dir, args.size, args.seconds)?;
    if args.json {
        let json = serde_json::json!({ "machine": machine, "limits": measured });
        println!("{json:#}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![
        vec!["processors".into(), format!("{} x {}", machine.cpus, machine.cpu)],
        vec!["memory".into(), size::display(machine.memory_bytes as f64)],
        vec![
            "memory limit of this process".into(),
            if machine.inherited_limit_bytes == 0 {
                "none".into()
            } else {
                size::display(machine.inherited_limit_bytes as f64)
            },
        ],
        vec![
            "storage".into(),
            format!("{} on {}", machine.file_system, machine.device),
        ],
    ];
    rows.extend(lines(&measured));
    print!(
        "{}",
        table::aligned(&["limit", "measured"], 2, &rows).replace("\n\n", "\n")
    );
    if !measured.direct {
        println!("This file system refuses direct I/O: the figures include the page cache.");
    }
    Ok(ExitCode::SUCCESS)
}
