//! `dump wal`: batches of a segment of the log, and how it ends.

use std::io::Write;
use std::ops::ControlFlow;

use esker::inspect::{Batch, Ending, StepKind};
use serde_json::json;

use super::{COLUMNS, Shown, find};
use crate::args::{Common, DumpFile};
use crate::failure::{EXIT_DAMAGE, EXIT_OK, Failure, Result};
use crate::output::Output;

pub fn run(common: &Common, file: &DumpFile, output: &mut Output) -> Result<u8> {
    let (inspector, path) = find(common, &file.file, "wal")?;
    let dump = inspector.segment_at(&path)?;
    let shown = Shown::new(common, file);
    if !output.json {
        writeln!(output, "# {}", path.display())?;
        writeln!(output, "# segment {}", dump.number())?;
        writeln!(output, "# {COLUMNS}")?;
    }
    let mut failure = None;
    let mut left = shown.limit;
    let summary = dump.batches(|batch| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        match print_batch(batch, &shown, &mut left, output) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(failure) = failure {
        return Err(match failure {
            Failure::Engine(error) => Failure::Engine(error.in_file(&path)),
            other => other,
        });
    }
    let ending = match summary.ending {
        Ending::Finished => "finished",
        Ending::Torn => "torn",
        Ending::NotStarted => "not-started",
        Ending::Clean | Ending::Damaged => "open",
    };
    if output.json {
        output.json_line(&json!({
            "type": "end", "ending": ending, "offset": summary.end_offset, "batches": summary.batches,
            "damages": summary.damages, "lost_bytes": summary.lost_bytes, "first_damage": summary.first_damage,
        }))?;
    } else {
        writeln!(
            output,
            "# end {ending} at offset {} after {} batches",
            summary.end_offset, summary.batches
        )?;
        if let Some(first) = summary.first_damage {
            let (damages, lost) = (summary.damages, summary.lost_bytes);
            writeln!(
                output,
                "# DAMAGED in {damages} places, {lost} bytes lost, the first at offset {first}"
            )?;
        }
    }
    Ok(if summary.damages == 0 {
        EXIT_OK
    } else {
        EXIT_DAMAGE
    })
}

/// What a record is called. In what is prepared or carried (a copy of what was prepared in an earlier segment), entries have
/// the sequence number 0.
fn step_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Batch => "batch",
        StepKind::Prepare => "prepare",
        StepKind::Carried => "carried",
        StepKind::Commit => "commit",
        StepKind::RollBack => "roll-back",
    }
}

fn print_batch(batch: &Batch, shown: &Shown, left: &mut u64, output: &mut Output) -> Result<()> {
    let (offset, sequence, count, bytes) = (batch.offset, batch.sequence(), batch.count(), batch.size_bytes);
    let step = step_name(batch.kind());
    if !output.json {
        write!(output, "# {step} ")?;
        if batch.kind() != StepKind::Batch {
            write!(output, "'{}' ", batch.name().escape_ascii())?;
        }
        writeln!(
            output,
            "at offset {offset}: sequence {sequence}, {count} entries, {bytes} bytes"
        )?;
    } else if batch.kind() != StepKind::Batch {
        output.json_line(&json!({
            "type": "step", "step": step, "name": batch.name().escape_ascii().to_string(), "sequence": sequence,
            "entries": count, "batch_offset": offset,
        }))?;
    }
    for mutation in batch.mutations() {
        let mutation = mutation?;
        if *left == 0 {
            break;
        }
        *left -= 1;
        let (sequence, kind, key, value) = (mutation.sequence, mutation.kind, mutation.key, mutation.value);
        if output.json {
            let mut line = shown.json(sequence, kind, key, value);
            line["family_id"] = mutation.column_family.into();
            line["batch_offset"] = offset.into();
            output.json_line(&line)?;
        } else {
            if mutation.column_family != 0 {
                write!(output, "@{} ", mutation.column_family)?;
            }
            shown.text(output, sequence, kind, key, value)?;
        }
    }
    Ok(())
}
