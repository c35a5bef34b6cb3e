//! `dump`: what is in a file. How entries of tables and of the log are shown is the same.

mod manifest;
mod segment;
mod table;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use esker::inspect::{BlobPointer, Inspector, ValueKind, kind_name};
use serde_json::{Value, json};

use crate::args::{Common, Dump, DumpFile};
use crate::bytes::Form;
use crate::database::folder;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Bytes of a value that are shown without `--full`.
const VALUE_BYTES_SHOWN: usize = 32;

pub fn run(common: &Common, dump: &Dump, output: &mut Output) -> Result<u8> {
    match dump {
        Dump::Sst(file) => table::run(common, file, output),
        Dump::Wal(file) => segment::run(common, file, output),
        Dump::Manifest(manifest) => manifest::run(common, manifest, output),
    }
}

/// The file that `named` is: a path, or a name or a number in the database's folder.
fn find(common: &Common, named: &OsStr, extension: &str) -> Result<(Inspector, PathBuf)> {
    let as_path = Path::new(named);
    let number = named.to_str().and_then(|text| text.parse::<u64>().ok());
    let (dir, path) = if number.is_none() && (as_path.components().count() > 1 || as_path.exists()) {
        let parent = as_path.parent().filter(|parent| !parent.as_os_str().is_empty());
        (parent.unwrap_or(Path::new(".")).to_owned(), as_path.to_owned())
    } else {
        let dir = folder(common)?;
        let path = match number {
            Some(number) => dir.join(format!("{number:06}.{extension}")),
            None => dir.join(as_path),
        };
        (dir, path)
    };
    if !path.exists() {
        return Err(Failure::usage(
            format!("there is no file {}", path.display()),
            "'esker dump manifest' lists the tables, 'esker verify' all files",
        ));
    }
    Ok((Inspector::new(dir), path))
}

/// Keys and values of entries, as the command line wants them.
pub(super) struct Shown {
    pub keys: Form,
    values: Form,
    full: bool,
    pub limit: u64,
}

impl Shown {
    pub fn new(common: &Common, file: &DumpFile) -> Self {
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

    pub fn text(
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
        if let Some(pointer) = pointer(kind, value) {
            return writeln!(
                out,
                "blob {:06} offset {} bytes {}",
                pointer.file, pointer.offset, pointer.bytes
            );
        }
        let (value, is_cut) = self.cut(value);
        self.value_form(kind).write(out, value)?;
        out.write_all(if is_cut { b"...\n" } else { b"\n" })
    }

    pub fn json(&self, sequence: u64, kind: ValueKind, key: &[u8], value: &[u8]) -> Value {
        if let Some(pointer) = pointer(kind, value) {
            return json!({
                "type": "entry", "sequence": sequence, "kind": kind_name(kind),
                "key": self.keys.json(key), "key_bytes": key.len(), "value_bytes": value.len(),
                "blob": {"file": pointer.file, "offset": pointer.offset, "bytes": pointer.bytes},
            });
        }
        let (shown, is_cut) = self.cut(value);
        json!({
            "type": "entry", "sequence": sequence, "kind": kind_name(kind),
            "key": self.keys.json(key), "key_bytes": key.len(),
            "value": self.value_form(kind).json(shown), "value_bytes": value.len(), "value_cut": is_cut,
        })
    }
}

/// Where the value of a row lies, if it is in a blob file. A pointer that can't be read is shown as the bytes it is.
fn pointer(kind: ValueKind, value: &[u8]) -> Option<BlobPointer> {
    let is_pointer = kind == ValueKind::BlobPointer;
    is_pointer.then(|| BlobPointer::decode(value).ok())?
}

const COLUMNS: &str = "sequence\tkind\tkey bytes\tvalue bytes\tkey\tvalue";
