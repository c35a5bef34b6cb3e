//! Names of the files of a database: made and taken apart in one place.
//!
//! Numbers are drawn from one counter for all kinds, are never used twice, and are written with at least six
//! digits. Each name has exactly one number and each number exactly one name, so a folder can be listed, judged
//! and cleaned without opening a file.

use std::path::{Path, PathBuf};

/// The name of the file that names the live manifest.
pub const CURRENT: &str = "CURRENT";
/// The name of the file that `CURRENT` is renamed from.
pub const CURRENT_TEMP: &str = "CURRENT.tmp";
/// The name of the file that one process locks.
pub const LOCK: &str = "LOCK";

const MANIFEST_PREFIX: &str = "MANIFEST-";

/// What a file in a database's folder is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// `000007.sst`: a sorted table.
    Table(u64),
    /// `000007.wal`: a segment of the write-ahead log.
    Wal(u64),
    /// `000007.wal.damaged`: a segment in which recovery found damage. Never read by the engine.
    DamagedWal(u64),
    /// `000007.blob`: values outside the tree.
    Blob(u64),
    /// `MANIFEST-000003`: the history of versions.
    Manifest(u64),
    /// `000009.tmp`: a file that is not finished; worthless after a restart.
    Temp(u64),
    /// `CURRENT`: names the live manifest.
    Current,
    /// `CURRENT.tmp`: the next `CURRENT`; worthless after a restart.
    CurrentTemp,
    /// `LOCK`: held by the process that has the database open.
    Lock,
}

impl FileKind {
    /// The file's name.
    pub fn name(self) -> String {
        match self {
            Self::Table(number) => format!("{number:06}.sst"),
            Self::Wal(number) => format!("{number:06}.wal"),
            Self::DamagedWal(number) => format!("{number:06}.wal.damaged"),
            Self::Blob(number) => format!("{number:06}.blob"),
            Self::Temp(number) => format!("{number:06}.tmp"),
            Self::Manifest(number) => format!("{MANIFEST_PREFIX}{number:06}"),
            Self::Current => CURRENT.to_owned(),
            Self::CurrentTemp => CURRENT_TEMP.to_owned(),
            Self::Lock => LOCK.to_owned(),
        }
    }

    /// The file's path in the database's folder.
    pub fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.name())
    }

    /// What the file called `name` is; `None` if it is no file of a database.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            CURRENT => return Some(Self::Current),
            CURRENT_TEMP => return Some(Self::CurrentTemp),
            LOCK => return Some(Self::Lock),
            _ => {}
        }
        if let Some(digits) = name.strip_prefix(MANIFEST_PREFIX) {
            return Some(Self::Manifest(parse_number(digits)?));
        }
        let (digits, extension) = name.split_once('.')?;
        let number = parse_number(digits)?;
        Some(match extension {
            "sst" => Self::Table(number),
            "wal" => Self::Wal(number),
            "wal.damaged" => Self::DamagedWal(number),
            "blob" => Self::Blob(number),
            "tmp" => Self::Temp(number),
            _ => return None,
        })
    }

    /// The number in the name, if the kind has one.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Table(n)
            | Self::Wal(n)
            | Self::DamagedWal(n)
            | Self::Blob(n)
            | Self::Manifest(n)
            | Self::Temp(n) => Some(n),
            Self::Current | Self::CurrentTemp | Self::Lock => None,
        }
    }
}

/// Accepts exactly what `{:06}` writes.
fn parse_number(digits: &str) -> Option<u64> {
    if digits.len() < 6 || (digits.len() > 6 && digits.starts_with('0')) {
        return None;
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(n: u64) -> [FileKind; 9] {
        use FileKind::*;
        [
            Table(n),
            Wal(n),
            DamagedWal(n),
            Blob(n),
            Manifest(n),
            Temp(n),
            Current,
            CurrentTemp,
            Lock,
        ]
    }

    proptest! {
        #[test]
        fn names_come_back(number: u64) {
            for kind in kinds(number) {
                prop_assert_eq!(FileKind::parse(&kind.name()), Some(kind));
            }
        }

        #[test]
        fn a_parsed_name_is_the_only_one_of_its_file(
            name in "[0+]{0,4}[0-9]{0,8}(\\.sst|\\.wal(\\.damaged)?|\\.tmp|\\.blob)?|MANIFEST-[0-9]{0,8}|.{0,12}",
        ) {
            if let Some(kind) = FileKind::parse(&name) {
                prop_assert_eq!(kind.name(), name);
            }
        }
    }

    #[test]
    fn names_are_as_the_format_says() {
        assert_eq!(FileKind::Table(7).name(), "000007.sst");
        assert_eq!(FileKind::Manifest(3).name(), "MANIFEST-000003");
        assert_eq!(
            FileKind::Wal(12_345_678).path(Path::new("/db")),
            Path::new("/db/12345678.wal")
        );
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in [
            "",
            "7.sst",
            "0000007.sst",
            "+00007.sst",
            "000007.SST",
            "000007.sst.bak",
            "000007.sst.damaged",
            "000007",
            "MANIFEST-",
            "MANIFEST-1",
            "current",
            "18446744073709551616.sst",
            "０００００７.sst",
        ] {
            assert_eq!(FileKind::parse(name), None, "{name}");
        }
    }
}
