//! `get`: prints the value of one key.

use std::io::Write;

use esker::PinnedValue;

use crate::args::{Common, Get};
use crate::database::reading;
use crate::failure::{EXIT_NOT_FOUND, EXIT_OK, Failure, Result};
use crate::output::Output;

pub fn run(common: &Common, get: &Get, output: &mut Output) -> Result<u8> {
    show(common, get, output, |key| {
        reading(common, |db, family| Ok(db.get_cf(family, key)?))
    })
}

/// Prints what `read` finds.
pub fn show(
    common: &Common,
    get: &Get,
    output: &mut Output,
    read: impl FnOnce(&[u8]) -> Result<Option<PinnedValue>>,
) -> Result<u8> {
    if get.raw && output.json {
        return Err(Failure::usage(
            "--raw and --json exclude each other",
            "leave one out",
        ));
    }
    let (keys, values) = (common.keys(), common.values());
    let key = keys.parse("KEY", &get.key)?;
    let value = read(&key)?;
    if output.json {
        write!(output, "{{\"found\":{},\"key\":", value.is_some())?;
        keys.write_json(output, &key)?;
        if let Some(value) = &value {
            output.write_all(b",\"value\":")?;
            values.write_json(output, value)?;
        }
        output.write_all(b"}\n")?;
    } else if let Some(value) = &value {
        if get.raw {
            output.write_all(value)?;
        } else {
            values.write(output, value)?;
            output.write_all(b"\n")?;
        }
    } else {
        let (key, name) = (keys.text(&key), &common.family);
        eprintln!("esker: key '{key}' is not in column family '{name}'");
    }
    Ok(if value.is_some() { EXIT_OK } else { EXIT_NOT_FOUND })
}
