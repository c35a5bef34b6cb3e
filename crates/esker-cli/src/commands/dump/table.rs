//! `dump sst`: properties and entries of a table.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use esker::inspect::{TableDump, TableProperties, ValueKind};
use serde_json::json;

use super::{COLUMNS, Shown, find};
use crate::args::{Common, DumpFile};
use crate::failure::{EXIT_OK, Result};
use crate::output::Output;

pub fn run(common: &Common, file: &DumpFile, output: &mut Output) -> Result<u8> {
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
