//! `CURRENT`: one line of text that names the live manifest and proves itself: `MANIFEST-000003 9ab1c2d3\n`.

use std::path::Path;

use esker_env::{CreateOptions, Fs};

use crate::codec::checksum;
use crate::error::{Error, ErrorKind, Result};
use crate::version::names::FileKind;

fn line(number: u64) -> String {
    let name = FileKind::Manifest(number).name();
    format!("{name} {:08x}\n", checksum(&[name.as_bytes()]))
}

fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (name, _) = text.split_once(' ')?;
    match FileKind::parse(name)? {
        FileKind::Manifest(number) if line(number) == text => Some(number),
        _ => None,
    }
}

/// Writes `CURRENT.tmp`, naming manifest `number`, and syncs it. Changes nothing that a recovery looks at.
pub(super) fn prepare(fs: &dyn Fs, dir: &Path, number: u64) -> Result<()> {
    let path = FileKind::CurrentTemp.path(dir);
    let failed = |error| Error::io("can't write the name of the manifest", error).in_file(&path);
    let mut file = fs.create(&path, CreateOptions::default()).map_err(failed)?;
    file.append(line(number).as_bytes()).map_err(failed)?;
    file.finish(true).map_err(failed)
}

/// Puts `CURRENT.tmp` in the place of `CURRENT`. After an error either of them may be what a recovery finds.
pub(super) fn switch(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let current = FileKind::Current.path(dir);
    let failed = |error| Error::io("can't switch to a new manifest", error).in_file(&current);
    fs.rename(&FileKind::CurrentTemp.path(dir), &current)
        .map_err(failed)?;
    fs.sync_dir(dir).map_err(failed)
}

/// The number of the live manifest.
///
/// # Errors
/// `NotFound` if the folder is missing, is empty or holds only what an interrupted creation leaves;
/// `InvalidArgument` if it holds something else; `Corruption` if it holds a database's data without `CURRENT`, or
/// `CURRENT` is damaged.
pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<u64> {
    let path = FileKind::Current.path(dir);
    let failed = |error| Error::io("can't read the name of the manifest", error).in_file(&path);
    if !fs.exists(&path).map_err(failed)? {
        return Err(without_current(fs, dir));
    }
    let text = fs.read_all(&path).map_err(failed)?;
    parse(&text).ok_or_else(|| Error::corruption("CURRENT does not name a manifest").in_file(&path))
}

/// What it means that a folder has no `CURRENT`.
fn without_current(fs: &dyn Fs, dir: &Path) -> Error {
    let names = match fs.exists(dir) {
        Ok(false) => return Error::new(ErrorKind::NotFound, "there is no database").in_file(dir),
        Ok(true) => fs.list(dir),
        Err(error) => Err(error),
    };
    let names = match names {
        Ok(names) => names,
        Err(error) => return Error::io("can't list the folder", error).in_file(dir),
    };
    let kinds: Vec<_> = names.iter().map(|name| (name, FileKind::parse(name))).collect();
    // Only one name is given, and always the same, so that the message can be acted on and compared.
    let first = |matches: &dyn Fn(Option<FileKind>) -> bool| {
        let found = kinds.iter().filter(|(_, kind)| matches(*kind));
        found.map(|(name, _)| name.as_str()).min()
    };
    let is_data = |kind: Option<FileKind>| {
        matches!(
            kind,
            Some(FileKind::Table(_) | FileKind::Wal(_) | FileKind::DamagedWal(_) | FileKind::Blob(_))
        )
    };
    let manifests = kinds
        .iter()
        .filter(|(_, kind)| matches!(kind, Some(FileKind::Manifest(_))))
        .count();
    if let Some(name) = first(&is_data) {
        return Error::corruption(format!(
            "the folder holds a database's data ({name}) but no CURRENT: restore it, or repair the database"
        ))
        .in_file(dir);
    }
    if manifests > 1 {
        return Error::corruption(
            "the folder holds manifests but no CURRENT: restore it, or repair the database",
        )
        .in_file(dir);
    }
    if let Some(name) = first(&|kind| kind.is_none()) {
        return Error::invalid(format!("the folder is not empty ({name}) and holds no database"))
            .in_file(dir);
    }
    Error::new(ErrorKind::NotFound, "there is no database").in_file(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_line_is_read() {
        assert_eq!(parse(line(3).as_bytes()), Some(3));
        let good = line(1_234_567);
        assert_eq!(parse(good.as_bytes()), Some(1_234_567));
        for cut in 0..good.len() {
            assert_eq!(parse(&good.as_bytes()[..cut]), None);
            let mut flipped = good.clone().into_bytes();
            flipped[cut] ^= 1;
            assert_eq!(parse(&flipped), None, "{cut}");
        }
        assert_eq!(parse(b"LOCK 00000000\n"), None);
        assert_eq!(parse(&[0xff; 25]), None);
    }
}
