//! `dump manifest`: families, tables and blob files as the live manifest has them, or edit by edit.

use std::io::{self, Write};

use esker::inspect::{BlobInfo, BlobRef, DatabaseInfo, EditInfo, Inspector, TableInfo};
use serde_json::{Value, json};

use crate::args::{Common, DumpManifest};
use crate::bytes::Form;
use crate::commands::stats::options_json;
use crate::database::folder;
use crate::failure::{EXIT_OK, Result};
use crate::output::Output;

pub fn run(common: &Common, manifest: &DumpManifest, output: &mut Output) -> Result<u8> {
    let inspector = Inspector::new(folder(common)?);
    if manifest.edits {
        edits(common, &inspector, output)?;
    } else {
        state(common, &inspector, output)?;
    }
    Ok(EXIT_OK)
}

fn state(common: &Common, inspector: &Inspector, output: &mut Output) -> Result<()> {
    let info = inspector.describe()?;
    let keys = common.keys();
    if output.json {
        output.json_line(&database_json(&info))?;
        for family in &info.families {
            output.json_line(&json!({
                "type": "family", "id": family.id, "name": family.name, "key_order": family.key_order,
                "merge_operator": family.merge_operator, "log_number": family.log_number,
                "options": options_json(&family.options),
            }))?;
            for table in &family.tables {
                let mut line = table_json(table, keys);
                line["type"] = "table".into();
                line["family_id"] = family.id.into();
                output.json_line(&line)?;
            }
            for used in &family.blobs {
                let mut line = blob_json(&used.blob);
                line["type"] = "blob".into();
                line["family_id"] = family.id.into();
                line["live_records"] = used.live_records.into();
                line["live_bytes"] = used.live_bytes.into();
                output.json_line(&line)?;
            }
        }
        return Ok(());
    }
    writeln!(output, "# {}", info.manifest.display())?;
    writeln!(output, "# database_id {:032x}", info.database_id)?;
    writeln!(output, "# next_file_number {}", info.next_file_number)?;
    writeln!(output, "# last_sequence {}", info.last_sequence)?;
    writeln!(
        output,
        "# edit groups behind the snapshot {}",
        info.manifest_groups
    )?;
    if let Some((offset, bytes)) = info.torn_tail {
        writeln!(output, "# torn tail at offset {offset}, {bytes} bytes")?;
    }
    for family in &info.families {
        writeln!(output, "family {} {}", family.id, family.name)?;
        writeln!(output, "  key_order {}", family.key_order)?;
        writeln!(
            output,
            "  merge_operator {}",
            family.merge_operator.as_deref().unwrap_or("none")
        )?;
        writeln!(output, "  log_number {}", family.log_number)?;
        writeln!(output, "  options {}", family.options)?;
        for table in &family.tables {
            write!(output, "  ")?;
            print_table(table, keys, output)?;
        }
        for used in &family.blobs {
            write!(output, "  ")?;
            print_blob(&used.blob, output)?;
            writeln!(
                output,
                " live_records {} live_bytes {}",
                used.live_records, used.live_bytes
            )?;
        }
    }
    Ok(())
}

fn blob_json(blob: &BlobInfo) -> Value {
    json!({
        "number": blob.number, "bytes": blob.size_bytes, "records": blob.records,
        "record_bytes": blob.record_bytes, "pointed_as": blob.pointed_as,
    })
}

/// Without the end of the line.
fn print_blob(blob: &BlobInfo, output: &mut Output) -> io::Result<()> {
    write!(
        output,
        "blob {:06} bytes {} records {} record_bytes {}",
        blob.number, blob.size_bytes, blob.records, blob.record_bytes
    )?;
    if blob.pointed_as != blob.number {
        write!(output, " pointed_as {:06}", blob.pointed_as)?;
    }
    Ok(())
}

fn database_json(info: &DatabaseInfo) -> Value {
    json!({
        "type": "database", "database_id": format!("{:032x}", info.database_id),
        "manifest": info.manifest.display().to_string(), "edit_groups": info.manifest_groups,
        "next_file_number": info.next_file_number, "last_sequence": info.last_sequence,
        "torn_tail": info.torn_tail.map(|(offset, bytes)| json!({"offset": offset, "bytes": bytes})),
    })
}

fn table_json(table: &TableInfo, keys: Form) -> Value {
    let part = |part: &BlobRef| json!({"file": part.file, "records": part.records, "bytes": part.bytes});
    let blobs: Vec<_> = table.blobs.iter().map(part).collect();
    json!({
        "level": table.level, "number": table.number, "bytes": table.size_bytes, "entries": table.entries,
        "deletions": table.deletions, "range_tombstones": table.range_tombstones,
        "smallest": keys.json(&table.smallest), "largest": keys.json(&table.largest),
        "largest_is_exclusive": table.largest_is_exclusive,
        "sequence_min": table.sequence_min, "sequence_max": table.sequence_max,
        "created_unix_seconds": table.created_unix_seconds, "blobs": blobs,
        "sequence_shift": table.origin.map(|origin| origin.sequence_shift),
    })
}

fn print_table(table: &TableInfo, keys: Form, output: &mut Output) -> io::Result<()> {
    write!(
        output,
        "table {:06} level {} bytes {} entries {} deletions {} range_tombstones {} sequence {}..={} keys ",
        table.number,
        table.level,
        table.size_bytes,
        table.entries,
        table.deletions,
        table.range_tombstones,
        table.sequence_min,
        table.sequence_max
    )?;
    keys.write(output, &table.smallest)?;
    write!(
        output,
        "{}",
        if table.largest_is_exclusive {
            " .. "
        } else {
            " ..= "
        }
    )?;
    keys.write(output, &table.largest)?;
    if let Some(origin) = table.origin {
        write!(output, " ingested, sequence_shift {}", origin.sequence_shift)?;
    }
    for part in &table.blobs {
        write!(
            output,
            " blob {:06} records {} bytes {}",
            part.file, part.records, part.bytes
        )?;
    }
    writeln!(output)
}

fn edits(common: &Common, inspector: &Inspector, output: &mut Output) -> Result<()> {
    let keys = common.keys();
    let mut written = Ok(());
    let read = inspector.edits(|edit| {
        if written.is_ok() {
            written = if output.json {
                output.json_line(&edit_json(&edit, keys))
            } else {
                print_edit(&edit, keys, output)
            };
        }
    });
    written?;
    read?;
    Ok(())
}

fn edit_json(edit: &EditInfo, keys: Form) -> Value {
    let added: Vec<_> = edit.added.iter().map(|table| table_json(table, keys)).collect();
    let added_blobs: Vec<_> = edit.added_blobs.iter().map(blob_json).collect();
    let removed = edit
        .removed
        .iter()
        .map(|(level, number)| json!({"level": level, "number": number}));
    json!({
        "type": "edit", "offset": edit.offset, "in_snapshot": edit.in_snapshot, "family_id": edit.column_family,
        "create": edit.create, "drop": edit.drop, "log_number": edit.log_number,
        "last_sequence": edit.last_sequence,
        "options": edit.options.as_deref().map(options_json),
        "removed": removed.collect::<Vec<_>>(), "added": added,
        "added_blobs": added_blobs,
    })
}

fn print_edit(edit: &EditInfo, keys: Form, output: &mut Output) -> io::Result<()> {
    let what = if edit.in_snapshot { "snapshot" } else { "edit" };
    write!(
        output,
        "{what} at offset {} family {}",
        edit.offset, edit.column_family
    )?;
    if let Some(name) = &edit.create {
        write!(output, " create {name}")?;
    }
    if edit.drop {
        write!(output, " drop")?;
    }
    if let Some(number) = edit.log_number {
        write!(output, " log_number {number}")?;
    }
    if let Some(sequence) = edit.last_sequence {
        write!(output, " last_sequence {sequence}")?;
    }
    writeln!(output)?;
    if let Some(options) = &edit.options {
        writeln!(output, "  options {options}")?;
    }
    for blob in &edit.added_blobs {
        write!(output, "  add ")?;
        print_blob(blob, output)?;
        writeln!(output)?;
    }
    for (level, number) in &edit.removed {
        writeln!(output, "  remove table {number:06} level {level}")?;
    }
    for table in &edit.added {
        write!(output, "  add ")?;
        print_table(table, keys, output)?;
    }
    Ok(())
}
