//! `dump sst`, `dump wal`, `dump manifest`.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use esker::inspect::{
    DatabaseInfo, EditInfo, Ending, Inspector, TableDump, TableInfo, TableProperties, ValueKind, kind_name,
};
use serde_json::{Value, json};

use crate::args::{Common, Dump, DumpFile};
use crate::bytes::Form;
use crate::database::folder;
use crate::failure::{EXIT_DAMAGE, EXIT_OK, Failure, Result};
use crate::output::Output;

/// Bytes of a value that are shown without `--full`.
const VALUE_BYTES_SHOWN: usize = 32;

pub fn run(common: &Common, dump: &Dump, output: &mut Output) -> Result<u8> {
    match dump {
        Dump::Sst(file) => table(common, file, output),
        Dump::Wal(file) => segment(common, file, output),
        Dump::Manifest(manifest) => {
            let inspector = Inspector::new(folder(common)?);
            if manifest.edits {
                edits(common, &inspector, output)
            } else {
                state(common, &inspector, output)
            }
        }
    }
}

/// The file that `named` is: a path, or a name or a number in the database's folder.
fn find(common: &Common, named: &OsStr, extension: &str) -> Result<(Inspector, PathBuf)> {
    let as_path = Path::new(named);
    let number = named.to_str().and_then(|text| text.parse::<u64>().ok());
    if number.is_none() && (as_path.components().count() > 1 || as_path.exists()) {
        let parent = as_path.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok((
            Inspector::new(parent.unwrap_or(Path::new("."))),
            as_path.to_owned(),
        ));
    }
    let dir = folder(common)?;
    let path = match number {
        Some(number) => dir.join(format!("{number:06}.{extension}")),
        None => dir.join(as_path),
    };
    Ok((Inspector::new(dir), path))
}

/// Keys and values of entries, as the command line wants them.
struct Shown {
    keys: Form,
    values: Form,
    full: bool,
    limit: u64,
}

impl Shown {
    fn new(common: &Common, file: &DumpFile) -> Self {
        Self {
            keys: common.keys(),
            values: common.values(),
            full: file.shown.full,
            limit: file.shown.limit.unwrap_or(u64::MAX),
        }
    }

    fn cut<'a>(&self, value: &'a [u8]) -> (&'a [u8], bool) {
        let is_cut = !self.full && value.len() > VALUE_BYTES_SHOWN;
        (
            if is_cut {
                &value[..VALUE_BYTES_SHOWN]
            } else {
                value
            },
            is_cut,
        )
    }

    /// How what stands in the place of the value is written: the end of a deleted range is a key.
    fn value_form(&self, kind: ValueKind) -> Form {
        if kind == ValueKind::RangeDelete {
            self.keys
        } else {
            self.values
        }
    }

    fn text(
        &self,
        out: &mut Output,
        sequence: u64,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> io::Result<()> {
        write!(
            out,
            "{sequence}\t{}\t{}\t{}\t",
            kind_name(kind),
            key.len(),
            value.len()
        )?;
        self.keys.write(out, key)?;
        out.write_all(b"\t")?;
        let (value, is_cut) = self.cut(value);
        self.value_form(kind).write(out, value)?;
        out.write_all(if is_cut { b"...\n" } else { b"\n" })
    }

    fn json(&self, sequence: u64, kind: ValueKind, key: &[u8], value: &[u8]) -> Value {
        let (shown, is_cut) = self.cut(value);
        json!({
            "type": "entry", "sequence": sequence, "kind": kind_name(kind),
            "key": self.keys.json(key), "key_bytes": key.len(),
            "value": self.value_form(kind).json(shown), "value_bytes": value.len(), "value_cut": is_cut,
        })
    }
}

const COLUMNS: &str = "sequence\tkind\tkey bytes\tvalue bytes\tkey\tvalue";

fn table(common: &Common, file: &DumpFile, output: &mut Output) -> Result<u8> {
    let (inspector, path) = find(common, &file.file, "sst")?;
    let dump = inspector.table_at(&path)?;
    let shown = Shown::new(common, file);
    properties(&path, &dump, &shown, output)?;
    let mut written = Ok(());
    let mut left = shown.limit;
    let read = dump.entries(|entry| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        let (sequence, kind, key, value) = (entry.sequence, entry.kind, entry.key, entry.value);
        written = if output.json {
            output.json_line(&shown.json(sequence, kind, key, value))
        } else {
            shown.text(output, sequence, kind, key, value)
        };
        if written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    written?;
    read?;
    Ok(EXIT_OK)
}

fn properties(path: &Path, dump: &TableDump, shown: &Shown, output: &mut Output) -> Result<()> {
    let numbers = numbers(dump.properties());
    let properties = dump.properties();
    if output.json {
        let mut line = json!({
            "type": "properties", "path": path.display().to_string(), "bytes": dump.size_bytes(),
            "key_order": properties.comparator, "whole_key_filter": properties.whole_key_filter,
            "prefix_extractor": properties.prefix_extractor.map(|extractor| format!("{extractor:?}")),
        });
        for (name, number) in numbers {
            line[name] = number.into();
        }
        output.json_line(&line)?;
    } else {
        writeln!(output, "# {}", path.display())?;
        writeln!(output, "# bytes {}", dump.size_bytes())?;
        writeln!(output, "# key_order {}", properties.comparator)?;
        writeln!(output, "# whole_key_filter {}", properties.whole_key_filter)?;
        if let Some(extractor) = properties.prefix_extractor {
            writeln!(output, "# prefix_extractor {extractor:?}")?;
        }
        for (name, number) in numbers {
            writeln!(output, "# {name} {number}")?;
        }
        writeln!(output, "# {COLUMNS}")?;
    }
    for tombstone in dump.range_tombstones() {
        let (sequence, kind) = (tombstone.sequence, ValueKind::RangeDelete);
        if output.json {
            output.json_line(&shown.json(sequence, kind, tombstone.start, tombstone.end))?;
        } else {
            shown.text(output, sequence, kind, tombstone.start, tombstone.end)?;
        }
    }
    Ok(())
}

fn numbers(properties: &TableProperties) -> [(&'static str, u64); 13] {
    [
        ("entries", properties.entries),
        ("deletions", properties.deletions),
        ("merges", properties.merges),
        ("range_tombstones", properties.range_tombstones),
        ("raw_key_bytes", properties.raw_key_bytes),
        ("raw_value_bytes", properties.raw_value_bytes),
        ("sequence_min", properties.sequence_min),
        ("sequence_max", properties.sequence_max),
        ("data_blocks", properties.data_blocks),
        ("data_bytes", properties.data_bytes),
        ("index_bytes", properties.index_bytes),
        ("filter_bytes", properties.filter_bytes),
        ("creation_unix_seconds", properties.creation_unix_seconds),
    ]
}

fn segment(common: &Common, file: &DumpFile, output: &mut Output) -> Result<u8> {
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

fn print_batch(
    batch: &esker::inspect::Batch,
    shown: &Shown,
    left: &mut u64,
    output: &mut Output,
) -> Result<()> {
    let (offset, sequence, count, bytes) = (batch.offset, batch.sequence(), batch.count(), batch.size_bytes);
    if !output.json {
        writeln!(
            output,
            "# batch at offset {offset}: sequence {sequence}, {count} entries, {bytes} bytes"
        )?;
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

fn state(common: &Common, inspector: &Inspector, output: &mut Output) -> Result<u8> {
    let info = inspector.describe()?;
    let keys = common.keys();
    if output.json {
        output.json_line(&database_json(&info))?;
        for family in &info.families {
            output.json_line(&json!({
                "type": "family", "id": family.id, "name": family.name, "key_order": family.key_order,
                "merge_operator": family.merge_operator, "log_number": family.log_number,
                "options": super::stats::options_json(&family.options),
            }))?;
            for table in &family.tables {
                let mut line = table_json(table, keys);
                line["type"] = "table".into();
                line["family_id"] = family.id.into();
                output.json_line(&line)?;
            }
        }
        return Ok(EXIT_OK);
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
    }
    Ok(EXIT_OK)
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
    json!({
        "level": table.level, "number": table.number, "bytes": table.size_bytes, "entries": table.entries,
        "deletions": table.deletions, "range_tombstones": table.range_tombstones,
        "smallest": keys.json(&table.smallest), "largest": keys.json(&table.largest),
        "largest_is_exclusive": table.largest_is_exclusive,
        "sequence_min": table.sequence_min, "sequence_max": table.sequence_max,
        "created_unix_seconds": table.created_unix_seconds,
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
    writeln!(output)
}

fn edits(common: &Common, inspector: &Inspector, output: &mut Output) -> Result<u8> {
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
    Ok(EXIT_OK)
}

fn edit_json(edit: &EditInfo, keys: Form) -> Value {
    let added: Vec<_> = edit.added.iter().map(|table| table_json(table, keys)).collect();
    let removed = edit
        .removed
        .iter()
        .map(|(level, number)| json!({"level": level, "number": number}));
    json!({
        "type": "edit", "offset": edit.offset, "in_snapshot": edit.in_snapshot, "family_id": edit.column_family,
        "create": edit.create, "drop": edit.drop, "log_number": edit.log_number,
        "last_sequence": edit.last_sequence,
        "options": edit.options.as_deref().map(super::stats::options_json),
        "removed": removed.collect::<Vec<_>>(), "added": added,
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
    for (level, number) in &edit.removed {
        writeln!(output, "  remove table {number:06} level {level}")?;
    }
    for table in &edit.added {
        write!(output, "  add ")?;
        print_table(table, keys, output)?;
    }
    Ok(())
}
