//! `compact`: merges tables by hand, and says what that saved.

use std::io::Write;

use esker::inspect::{FileRole, Inspector};
use serde_json::json;

use crate::args::{Common, Compact};
use crate::database::{Access, family, folder, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, compact: &Compact, output: &mut Output) -> Result<u8> {
    let parse = |what: &str, key: &Option<std::ffi::OsString>| {
        key.as_ref().map(|key| common.keys().parse(what, key)).transpose()
    };
    let (from, to) = (parse("--from", &compact.from)?, parse("--to", &compact.to)?);
    let db = open(common, Access::Write, None)?;
    let family = family(&db, common)?;
    // Rows that are in memory yet are written either way; counting them as before would show a growth.
    db.flush_cf(&family)?;
    let dir = Inspector::new(folder(common)?);
    let before = size(&dir)?;
    db.compact_range_cf(&family, from.as_deref(), to.as_deref())?;
    db.close()?;
    let after = size(&dir)?;
    if output.json {
        output.json_line(&json!({
            "tables_before": before.0, "bytes_before": before.1, "tables_after": after.0, "bytes_after": after.1,
        }))?;
    } else {
        let (was, is) = (human_bytes(before.1), human_bytes(after.1));
        writeln!(
            output,
            "{was} in {} tables before, {is} in {} tables now",
            before.0, after.0
        )?;
    }
    Ok(EXIT_OK)
}

/// Tables of all families, and their bytes.
fn size(dir: &Inspector) -> Result<(u64, u64)> {
    let files = dir.files()?;
    let tables = files.iter().filter(|file| file.role == Some(FileRole::Table));
    Ok(tables.fold((0, 0), |(count, bytes), file| {
        (count + 1, bytes + file.size_bytes)
    }))
}
