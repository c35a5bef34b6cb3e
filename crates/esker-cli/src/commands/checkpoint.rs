//! `checkpoint`: a copy of the database in a new folder.

use std::io::Write;

use esker::CheckpointOptions;
use serde_json::json;

use crate::args::{Checkpoint, Common};
use crate::database::{Access, open};
use crate::failure::{EXIT_OK, Result};
use crate::output::{Output, human_bytes};

pub fn run(common: &Common, checkpoint: &Checkpoint, output: &mut Output) -> Result<u8> {
    let mut options = CheckpointOptions::default();
    if let Some(bytes) = checkpoint.wal_bytes_max {
        options.wal_bytes_max = bytes;
    }
    let db = open(common, Access::Write, None)?;
    let made = db.checkpoint_with(&checkpoint.dir, &options)?;
    db.close()?;
    if output.json {
        output.json_line(&json!({
            "sequence": made.sequence, "linked_files": made.linked_files, "copied_bytes": made.copied_bytes,
            "written_bytes": made.written_bytes,
        }))?;
    } else {
        writeln!(
            output,
            "{} files linked, {} copied, {} written",
            made.linked_files,
            human_bytes(made.copied_bytes),
            human_bytes(made.written_bytes)
        )?;
    }
    Ok(EXIT_OK)
}
