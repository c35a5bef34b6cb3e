//! Figures of an open database that both interfaces give under names of their own.

use std::fmt::Write as _;

use esker::{ColumnFamily, Db, LevelStats};

/// A property of the engine's as a number; 0 if it is none.
pub fn number(db: &Db, family: &ColumnFamily, name: &str) -> u64 {
    db.property(family, name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// The levels of a family.
pub fn levels(db: &Db, family: &ColumnFamily) -> Vec<LevelStats> {
    let stats = db.stats().levels.into_iter();
    stats
        .filter(|(name, _)| name == family.name())
        .map(|(_, levels)| levels)
        .next()
        .unwrap_or_default()
}

/// The property by which a program learns that Esker is behind the interface, and which.
pub const VERSION: &str = "esker.version";

/// The value of [`VERSION`].
pub fn version() -> String {
    format!("Esker {}", esker::VERSION)
}

/// The level that a property's name ends with, such as `prefix0`.
pub fn level_of(name: &str, prefix: &str) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

/// Files of each level with their keys, as `leveldb.sstables` and `rocksdb.sstables` show them.
pub fn tables(info: &esker::inspect::FamilyInfo) -> String {
    let mut text = String::new();
    let deepest = info.tables.iter().map(|table| table.level).max().unwrap_or(0);
    for level in 0..=deepest.max(6) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "--- level {level} ---");
        for table in info.tables.iter().filter(|table| table.level == level) {
            let _ = writeln!(
                text,
                " {}:{}['{}' .. '{}']",
                table.number,
                table.size_bytes,
                table.smallest.escape_ascii(),
                table.largest.escape_ascii()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::Options;

    #[test]
    fn a_level_is_a_plain_number() {
        let of = |name| level_of(name, "files-at-level");
        assert_eq!(of("files-at-level0"), Some(0));
        assert_eq!(of("files-at-level12"), Some(12));
        for name in ["files-at-level", "files-at-level-1", "files-at-level+1", "files"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn flushed_rows_show_in_the_levels() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = Db::open(&path, Options::default()).unwrap();
        let family = db.default_column_family();
        db.put(b"a'b", b"1").unwrap();
        db.flush().unwrap();
        assert_eq!(
            levels(&db, &family)
                .iter()
                .map(|level| level.files)
                .sum::<usize>(),
            1
        );
        assert_eq!(number(&db, &family, "estimate-keys"), 1);
        assert_eq!(number(&db, &family, "no-such-property"), 0);
        let info = esker::inspect::Inspector::new(&path).describe().unwrap();
        assert!(tables(&info.families[0]).contains("['a\\'b' .. 'a\\'b']"));
    }
}
