//! `put`, `delete`, `delete-range`, `merge`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use esker::{ColumnFamily, ColumnFamilyOptions, Db, Durability, ErrorKind, WriteBatch, WriteOptions};
use serde_json::json;

use crate::args::{Common, Delete, DeleteRange, Merge, Put, Writing};
use crate::database::{Access, family, open};
use crate::failure::{EXIT_OK, Failure, Result};
use crate::output::Output;

/// Lines of input become visible in batches of about so many bytes.
const BATCH_BYTES: usize = 1 << 20;

pub fn put(common: &Common, put: &Put, output: &mut Output) -> Result<u8> {
    let access = if put.create { Access::Create } else { Access::Write };
    // Arguments are judged before the database is touched.
    let row = match (&put.key, &put.value) {
        (Some(key), value) => {
            let key = common.keys().parse("KEY", key)?;
            let value = match (value, &put.file) {
                (Some(value), _) => common.values().parse("VALUE", value)?,
                (None, Some(path)) => read_value(path)?,
                (None, None) => Vec::new(),
            };
            Some((key, value))
        }
        (None, _) => None,
    };
    let db = open(common, access, None)?;
    let family = match family(&db, common) {
        Err(Failure::Engine(error)) if put.create && error.kind() == ErrorKind::NotFound => {
            db.create_column_family(&common.family, ColumnFamilyOptions::default())?
        }
        family => family?,
    };
    let written = match row {
        Some((key, value)) => {
            let mut batch = WriteBatch::new();
            batch.put_cf(&family, &key, &value)?;
            write(&db, &mut batch, put.writing)?;
            1
        }
        None => put_lines(&db, &family, common, put.writing)?,
    };
    done(&db, written, output)
}

fn read_value(path: &Path) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut value)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut value))
    };
    match read {
        Ok(_) => Ok(value),
        Err(error) => Err(Failure::Io(format!("can't read {}", path.display()), error)),
    }
}

/// Puts the rows of the standard input; gives their number.
fn put_lines(db: &Db, family: &ColumnFamily, common: &Common, writing: Writing) -> Result<u64> {
    let mut input = io::stdin().lock();
    let mut batch = WriteBatch::new();
    let mut line = Vec::new();
    let mut rows = 0;
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::Io("can't read the standard input".to_owned(), error))? == 0 {
            break;
        }
        let number = rows + 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let Some(tab) = text.iter().position(|&byte| byte == b'\t') else {
            return Err(Failure::usage(
                format!("line {number} has no tab between key and value"),
                format!(
                    "lines are as scan prints them; those before line {} are written",
                    number - batch.len() as u64
                ),
            ));
        };
        let key = common
            .keys()
            .parse(&format!("line {number}, key"), as_os(&text[..tab])?)?;
        let value = common
            .values()
            .parse(&format!("line {number}, value"), as_os(&text[tab + 1..])?)?;
        batch.put_cf(family, &key, &value)?;
        rows += 1;
        if batch.size_bytes() >= BATCH_BYTES {
            write(db, &mut batch, Writing { sync: false })?;
        }
    }
    write(db, &mut batch, Writing { sync: false })?;
    if writing.sync {
        // One sync makes all of them durable.
        db.sync_wal()?;
    }
    Ok(rows)
}

fn as_os(text: &[u8]) -> Result<&OsStr> {
    let text = std::str::from_utf8(text).map(OsStr::new);
    text.map_err(|_| {
        Failure::usage(
            "the input is not text",
            r"other bytes than printable ASCII are written \xNN",
        )
    })
}

pub fn delete(common: &Common, delete: &Delete, output: &mut Output) -> Result<u8> {
    let keys = delete.keys.iter().map(|key| common.keys().parse("KEY", key));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let db = open(common, Access::Write, None)?;
    let family = family(&db, common)?;
    let mut batch = WriteBatch::new();
    for key in &keys {
        batch.delete_cf(&family, key)?;
    }
    write(&db, &mut batch, delete.writing)?;
    done(&db, keys.len() as u64, output)
}

pub fn delete_range(common: &Common, range: &DeleteRange, output: &mut Output) -> Result<u8> {
    let from = common.keys().parse("FROM", &range.from)?;
    let to = common.keys().parse("TO", &range.to)?;
    let db = open(common, Access::Write, None)?;
    let family = family(&db, common)?;
    if family.options().key_order.compare(&from, &to).is_ge() {
        return Err(Failure::usage(
            "the range is empty: FROM does not come before TO",
            "TO is the first key to keep; is it the other way round?",
        ));
    }
    if range.drop_tables {
        db.flush_cf(&family)?;
        db.delete_files_in_ranges(&family, &[(&from, &to)])?;
    }
    let mut batch = WriteBatch::new();
    batch.delete_range_cf(&family, &from, &to)?;
    write(&db, &mut batch, range.writing)?;
    done(&db, 1, output)
}

pub fn merge(common: &Common, merge: &Merge, output: &mut Output) -> Result<u8> {
    let key = common.keys().parse("KEY", &merge.key)?;
    let operand = common.values().parse("OPERAND", &merge.operand)?;
    let db = open(common, Access::Write, merge.operator)?;
    let family = family(&db, common)?;
    let Some(operator) = family.options().merge_operator else {
        return Err(Failure::usage(
            format!("column family '{}' has no merge operator", family.name()),
            "add --operator append or --operator u64-add to give it one, for good",
        ));
    };
    // An operand that can't be folded would make the key unreadable.
    operator
        .full_merge(&key, None, &[&operand])
        .map_err(|error| Failure::usage(error.message(), "with --u64 the operand is a number"))?;
    let mut batch = WriteBatch::new();
    batch.merge_cf(&family, &key, &operand)?;
    write(&db, &mut batch, merge.writing)?;
    done(&db, 1, output)
}

fn write(db: &Db, batch: &mut WriteBatch, writing: Writing) -> Result<()> {
    let durability = if writing.sync {
        Durability::Sync
    } else {
        Durability::Buffered
    };
    Ok(db.write_with(batch, &WriteOptions::durability(durability))?)
}

/// Closes the database, since a write is done only when that succeeds too.
fn done(db: &Db, written: u64, output: &mut Output) -> Result<u8> {
    let sequence = db.last_sequence();
    db.close()?;
    if output.json {
        output.json_line(&json!({"written": written, "last_sequence": sequence}))?;
    }
    Ok(EXIT_OK)
}
