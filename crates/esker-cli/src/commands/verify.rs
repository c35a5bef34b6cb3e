//! `verify`: a verdict on every file.

use std::io::{self, Write};

use esker::inspect::{FileReport, FileRole, Inspector, VerifySummary};
use serde_json::json;

use crate::args::{Common, Verify};
use crate::database::folder;
use crate::failure::{EXIT_DAMAGE, EXIT_OK, Result, error_json};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, verify: &Verify, output: &mut Output) -> Result<u8> {
    let mut written = Ok(());
    let summary = Inspector::new(folder(common)?).verify(|file| {
        let is_shown = !verify.quiet || !file.damages.is_empty();
        if is_shown && written.is_ok() {
            // Each file as soon as it is judged: a large database takes a while.
            written = print(file, output).and_then(|()| output.flush());
        }
    })?;
    written?;
    if output.json {
        output.json_line(&json!({
            "type": "summary", "ok": summary.damaged == 0, "files": summary.files, "bytes": summary.size_bytes,
            "damaged_files": summary.damaged,
        }))?;
    } else if !verify.quiet || summary.damaged > 0 {
        print_summary(&summary, output)?;
    }
    Ok(if summary.damaged == 0 {
        EXIT_OK
    } else {
        EXIT_DAMAGE
    })
}

fn print(file: &FileReport, output: &mut Output) -> io::Result<()> {
    if output.json {
        let damages: Vec<_> = file.damages.iter().map(error_json).collect();
        return output.json_line(&json!({
            "type": "file", "path": file.path.display().to_string(), "role": file.role.name(),
            "bytes": file.size_bytes, "records": file.records, "ok": damages.is_empty(), "note": file.note,
            "damages": damages,
        }));
    }
    let verdict = match file.role {
        FileRole::DamagedWal => "aside",
        _ if file.damages.is_empty() => "ok",
        _ => "DAMAGED",
    };
    write!(
        output,
        "{verdict:<8} {:<8} {}  {}, {} records",
        file.role.name(),
        file.path.display(),
        human_bytes(file.size_bytes),
        file.records
    )?;
    match &file.note {
        Some(note) => writeln!(output, " ({note})")?,
        None => writeln!(output)?,
    }
    for damage in &file.damages {
        writeln!(output, "         {damage}")?;
    }
    Ok(())
}

fn print_summary(summary: &VerifySummary, output: &mut Output) -> io::Result<()> {
    let (files, bytes) = (summary.files, human_bytes(summary.size_bytes));
    match summary.damaged {
        0 => writeln!(output, "{files} files, {bytes}: all whole"),
        damaged => {
            writeln!(output, "{files} files, {bytes}: {damaged} DAMAGED")?;
            writeln!(
                output,
                "keep a copy of the folder, then restore the damaged files or run 'esker repair'"
            )
        }
    }
}
