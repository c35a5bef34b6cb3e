//! `leveldb_property_value`: LevelDB's four properties, out of the engine's.

use std::ffi::c_char;
use std::fmt::Write as _;

use esker::inspect::Inspector;
use esker_compat::{Result, bytes, memory, properties, report};

use crate::database::Database;

/// Levels that LevelDB knows.
const LEVELS: usize = 7;

const MIB: u64 = 1 << 20;

fn value(database: &Database, name: &str) -> Result<Option<String>> {
    let (db, family) = (&database.db, &database.family);
    if let Some(level) = properties::level_of(name, "leveldb.num-files-at-level") {
        let levels = properties::levels(db, family);
        let files = levels.get(level).map_or(0, |level| level.files);
        return Ok((level < LEVELS).then(|| files.to_string()));
    }
    Ok(match name {
        properties::VERSION => Some(properties::version()),
        "leveldb.stats" => Some(stats(database)),
        "leveldb.sstables" => {
            let info = Inspector::new(&database.path).describe()?;
            info.families.first().map(properties::tables)
        }
        "leveldb.approximate-memory-usage" => {
            let stats = db.stats();
            Some((stats.memtable_bytes + stats.cache_bytes).to_string())
        }
        _ => None,
    })
}

/// LevelDB's table. The engine does not count time and bytes by level, so those columns are 0.
fn stats(database: &Database) -> String {
    let mut text = String::from(
        "                               Compactions\n\
         Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
         --------------------------------------------------\n",
    );
    for (i, level) in properties::levels(&database.db, &database.family)
        .iter()
        .enumerate()
    {
        if level.files > 0 {
            let size = level.bytes / MIB;
            // Writing to a string can't fail.
            let _ = writeln!(text, "{i:3} {:8} {size:8} {:9} {:8} {:9}", level.files, 0, 0, 0);
        }
    }
    text
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_property_value(database: *mut Database, name: *const c_char) -> *mut c_char {
    // SAFETY: the contract.
    unsafe {
        let (database, name) = (&*database, bytes::text(name));
        let value = report(std::ptr::null_mut(), None, || value(database, &name));
        value.map_or(std::ptr::null_mut(), |text| memory::copy_text(&text))
    }
}
