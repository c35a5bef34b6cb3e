//! `import`: what was exported becomes a new column family.

use std::io::Write;

use esker::ImportOptions;
use serde_json::json;

use crate::args::{Common, Import};
use crate::database::{Access, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, import: &Import, output: &mut Output) -> Result<u8> {
    let db = open(common, Access::Write, None)?;
    let options = ImportOptions {
        move_files: import.move_files,
        ..ImportOptions::default()
    };
    let (_, came) = db.import_column_family(&import.name, &import.dir, &options)?;
    db.close()?;
    if output.json {
        output.json_line(&json!({
            "sequence": came.sequence, "tables": came.tables, "blob_files": came.blob_files, "bytes": came.bytes,
            "copied_bytes": came.copied_bytes,
        }))?;
    } else {
        writeln!(
            output,
            "{} in {} tables and {} blob files",
            human_bytes(came.bytes),
            came.tables,
            came.blob_files
        )?;
    }
    Ok(EXIT_OK)
}
