//! `repair`: a database again, of what is left of one.

use std::io::{self, Write};

use esker::{DamagedFile, LostRange, RepairOptions, RepairReport};
use serde_json::json;

use crate::args::{Common, Repair};
use crate::bytes::Form;
use crate::database::folder;
use crate::failure::{EXIT_DAMAGE, EXIT_OK, Result, error_json};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, repair: &Repair, output: &mut Output) -> Result<u8> {
    let options = RepairOptions {
        dry_run: repair.dry_run,
        ..RepairOptions::default()
    };
    let report = esker::repair(folder(common)?, &options)?;
    if output.json {
        print_json(&report, repair.dry_run, common.keys(), output)?;
    } else {
        print(&report, repair.dry_run, common.keys(), output)?;
    }
    Ok(if report.is_lossless() {
        EXIT_OK
    } else {
        EXIT_DAMAGE
    })
}

fn print(report: &RepairReport, dry_run: bool, form: Form, output: &mut Output) -> io::Result<()> {
    writeln!(output, "manifest: {}", report.manifest.name())?;
    for damage in &report.manifest_damages {
        writeln!(output, "         {damage}")?;
    }
    writeln!(output, "column families: {}", report.families.join(", "))?;
    for file in &report.damaged {
        print_file(file, form, output)?;
    }
    for name in &report.imported {
        writeln!(
            output,
            "IMPORTED {name}: a column family with the name that it was exported with; nothing says which it had here"
        )?;
    }
    for path in &report.unplaced {
        let path = path.display();
        writeln!(
            output,
            "UNPLACED {path}: it was ingested, nobody knows when; it counts as the oldest"
        )?;
    }
    write!(output, "log: {} batches", report.log_batches)?;
    if report.log_damages > 0 {
        let (places, bytes) = (report.log_damages, human_bytes(report.log_lost_bytes));
        write!(output, ", DAMAGED in {places} places, {bytes} lost")?;
    }
    if report.log_begins_late {
        write!(output, ", its front is MISSING")?;
    }
    if report.log_is_torn {
        write!(output, ", ends in a batch that is not whole")?;
    }
    writeln!(output)?;
    for name in &report.prepared {
        writeln!(output, "prepared: {}", form.text(name))?;
    }
    let (is, did) = if dry_run {
        ("would be", "would ")
    } else {
        ("is", "")
    };
    for path in &report.set_aside {
        writeln!(output, "{} {is} in the folder 'lost'", path.display())?;
    }
    let (kept, lost) = (
        report.tables_kept,
        if report.is_lossless() {
            "nothing"
        } else {
            "SOME DATA"
        },
    );
    writeln!(
        output,
        "{kept} tables {did}stay, {} written; {lost} lost",
        report.tables_written
    )
}

fn print_file(file: &DamagedFile, form: Form, output: &mut Output) -> io::Result<()> {
    let verdict = if file.is_loss() { "LOST" } else { "mended" };
    write!(output, "{verdict:<8} {}: ", file.path.display())?;
    match file.rows_lost {
        Some(lost) => write!(output, "{} rows kept, {lost} lost", file.rows_kept)?,
        None => write!(
            output,
            "{} rows kept, nobody knows how many are lost",
            file.rows_kept
        )?,
    }
    if file.values_lost > 0 {
        write!(output, ", {} without their values deleted", file.values_lost)?;
    }
    if file.lost_bytes > 0 {
        write!(output, ", {} unreadable", human_bytes(file.lost_bytes))?;
    }
    if file.range_deletions_lost {
        write!(output, ", range deletions lost")?;
    }
    writeln!(output)?;
    writeln!(output, "         {}", file.damage)?;
    for range in &file.lost_ranges {
        let bound = |key: &Option<Vec<u8>>, open: &str| match key {
            Some(key) => form.text(key),
            None => open.to_owned(),
        };
        let (after, before) = (bound(&range.after, "the first"), bound(&range.before, "the last"));
        writeln!(output, "         keys between {after} and {before}")?;
    }
    Ok(())
}

fn print_json(report: &RepairReport, dry_run: bool, form: Form, output: &mut Output) -> io::Result<()> {
    let range = |range: &LostRange| {
        json!({
            "after": range.after.as_ref().map(|key| form.json(key)),
            "before": range.before.as_ref().map(|key| form.json(key)), "bytes": range.bytes,
        })
    };
    let file = |file: &DamagedFile| {
        json!({
            "path": file.path.display().to_string(), "family": file.column_family, "damage": error_json(&file.damage),
            "rows_kept": file.rows_kept, "rows_lost": file.rows_lost, "values_lost": file.values_lost,
            "lost_bytes": file.lost_bytes, "range_deletions_lost": file.range_deletions_lost,
            "lost_ranges": file.lost_ranges.iter().map(range).collect::<Vec<_>>(),
        })
    };
    let paths = |paths: &[std::path::PathBuf]| {
        let text = paths.iter().map(|path| path.display().to_string());
        text.collect::<Vec<_>>()
    };
    output.json_line(&json!({
        "dry_run": dry_run, "lossless": report.is_lossless(), "manifest": report.manifest.name(),
        "manifest_damages": report.manifest_damages.iter().map(error_json).collect::<Vec<_>>(),
        "families": report.families, "tables_kept": report.tables_kept, "tables_written": report.tables_written,
        "damaged": report.damaged.iter().map(file).collect::<Vec<_>>(), "unplaced": paths(&report.unplaced), "imported": report.imported,
        "log_batches": report.log_batches, "log_damages": report.log_damages,
        "log_lost_bytes": report.log_lost_bytes, "log_begins_late": report.log_begins_late,
        "log_is_torn": report.log_is_torn,
        "prepared": report.prepared.iter().map(|name| form.json(name)).collect::<Vec<_>>(),
        "set_aside": paths(&report.set_aside),
    }))
}
