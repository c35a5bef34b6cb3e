//! What is said of a whole run: where, with what, and what the machine can do at most.

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::Run;
use esker_lab_core::size;

pub(super) fn facts(run: &Run) -> Vec<(String, String)> {
    let (machine, settings) = (&run.machine, &run.settings);
    let bytes = |b: u64| size::display(b as f64);
    let enforced = run.rows.iter().map(|r| r.memory_limit_bytes).max().unwrap_or(0);
    let limit = if enforced > 0 {
        "enforced by a control group"
    } else {
        "told, not enforced"
    };
    let facts = [
        ("Processor", format!("{} × {}", machine.cpus, machine.cpu)),
        ("Memory of the machine", bytes(machine.memory_bytes)),
        (
            "Storage",
            format!("{} on {}", machine.file_system, machine.device),
        ),
        ("Kernel", machine.kernel.clone()),
        (
            "Rows",
            format!(
                "{} of {} + {} B",
                count(settings.rows as f64),
                settings.key_bytes,
                settings.value_bytes
            ),
        ),
        (
            "Data",
            bytes(
                settings
                    .rows
                    .saturating_mul((settings.key_bytes + settings.value_bytes) as u64),
            ),
        ),
        (
            "Memory for each engine",
            format!("{} ({limit})", bytes(settings.memory_bytes)),
        ),
        ("Compression", settings.compression.clone()),
        (
            "Compressibility of values",
            format!("{:.1}", settings.compressibility),
        ),
        ("Seed", settings.seed.to_string()),
        ("Repetitions", settings.repeat.to_string()),
        ("Scale", settings.scale.clone()),
        ("Lab", run.lab_version.clone()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

pub(super) fn limits(run: &Run) -> Vec<(String, String)> {
    let Some(limits) = &run.limits else {
        return Vec::new();
    };
    let rate = |bytes: f64| format!("{}/s", size::display(bytes));
    let lines = [
        (
            "Sequential write, 1 MiB",
            rate(limits.sequential_write_bytes_per_s),
        ),
        ("Sequential read, 1 MiB", rate(limits.sequential_read_bytes_per_s)),
        (
            "Random 4 KiB reads, 1 thread",
            format!("{}/s", count(limits.random_reads_per_s_depth_1)),
        ),
        (
            "Random 4 KiB reads, 32 threads",
            format!("{}/s", count(limits.random_reads_per_s_depth_32)),
        ),
        ("4 KiB append and fdatasync, p50", micros(limits.fdatasync_p50_us)),
        ("4 KiB append and fdatasync, p99", micros(limits.fdatasync_p99_us)),
        ("Memory copy, 1 thread", rate(limits.memory_copy_bytes_per_s)),
        (
            "Memory latency",
            format!("{} ns", three_digits(limits.memory_latency_ns)),
        ),
        (
            "Page cache",
            if limits.direct {
                "bypassed"
            } else {
                "included: no direct I/O here"
            }
            .to_owned(),
        ),
    ];
    lines.map(|(name, value)| (name.to_owned(), value)).into()
}
