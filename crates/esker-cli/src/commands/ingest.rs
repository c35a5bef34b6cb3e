//! `ingest`: tables that were written elsewhere become part of a column family.

use std::io::Write;

use esker::IngestOptions;
use serde_json::json;

use crate::args::{Common, Ingest};
use crate::database::{Access, family, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, ingest: &Ingest, output: &mut Output) -> Result<u8> {
    let db = open(common, Access::Write, None)?;
    let family = family(&db, common)?;
    let options = IngestOptions {
        move_files: ingest.move_files,
        behind: ingest.behind,
    };
    let made = db.ingest(&[(family, ingest.files.clone())], &options)?;
    db.close()?;
    if output.json {
        output.json_line(&json!({
            "sequence": made.sequence, "tables": made.tables, "bytes": made.bytes,
            "left_out": made.left_out,
        }))?;
    } else {
        writeln!(output, "{} in {} tables", human_bytes(made.bytes), made.tables)?;
    }
    Ok(EXIT_OK)
}
