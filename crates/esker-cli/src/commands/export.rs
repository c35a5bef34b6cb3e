//! `export`: a column family in a new folder.

use std::io::Write;

use serde_json::json;

use crate::args::{Common, Export};
use crate::database::{Access, family, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, export: &Export, output: &mut Output) -> Result<u8> {
    let db = open(common, Access::Write, None)?;
    let made = db.export_column_family(&family(&db, common)?, &export.dir)?;
    db.close()?;
    if output.json {
        output.json_line(&json!({
            "sequence": made.sequence, "tables": made.tables, "blob_files": made.blob_files, "bytes": made.bytes,
            "copied_bytes": made.copied_bytes,
        }))?;
    } else {
        writeln!(
            output,
            "{} in {} tables and {} blob files",
            human_bytes(made.bytes),
            made.tables,
            made.blob_files
        )?;
    }
    Ok(EXIT_OK)
}
