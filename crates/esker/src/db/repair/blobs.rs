//! Which blob files are whole, and single values of those that are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_env::{Env, IoMode, RandomFile};

use crate::blob::{BlobPointer, BlobReader, salvage_value};
use crate::error::{Error, Result};
use crate::version::{BlobFile, FileKind};

/// A blob file of the folder.
enum State {
    Whole(Arc<BlobFile>, u64),
    Damaged(Arc<dyn RandomFile>),
}

/// The blob files that count.
#[derive(Default)]
pub(super) struct Blobs {
    files: BTreeMap<u64, State>,
}

/// What became of the value that a row points to.
pub(super) enum Pointed {
    /// It is where it was, in a whole file.
    InPlace,
    /// It can be read; its file does not stay.
    Value(Vec<u8>),
    Gone,
}

impl Blobs {
    /// Reads all of file `number`; gives what is wrong with it.
    pub fn look_at(&mut self, env: &Env, dir: &std::path::Path, id: u64, number: u64) -> Result<(), Error> {
        let path = FileKind::Blob(number).path(dir);
        let failed = |error| Error::io("can't read a blob file", error).in_file(&path);
        let file = env.fs.open(&path, IoMode::Direct).map_err(failed)?;
        match whole(&file, &path, id, number) {
            Ok((blob, records_end)) => {
                self.files
                    .insert(number, State::Whole(Arc::new(blob), records_end));
                Ok(())
            }
            Err(error) => {
                self.files.insert(number, State::Damaged(file));
                Err(error)
            }
        }
    }

    /// The file, if it is whole.
    pub fn whole(&self, number: u64) -> Option<&Arc<BlobFile>> {
        match self.files.get(&number)? {
            State::Whole(blob, _) => Some(blob),
            State::Damaged(_) => None,
        }
    }

    /// Whether the record is in a whole file.
    pub fn holds(&self, pointer: &BlobPointer) -> bool {
        let end = pointer.end().unwrap_or(u64::MAX);
        matches!(self.files.get(&pointer.file), Some(State::Whole(_, records_end)) if end <= *records_end)
    }

    /// The value that a row of a damaged table, or one that points into a damaged file, has.
    pub fn value(&self, stored: &[u8]) -> Pointed {
        let Ok(pointer) = BlobPointer::decode(stored) else {
            return Pointed::Gone;
        };
        match self.files.get(&pointer.file) {
            Some(State::Whole(..)) if self.holds(&pointer) => Pointed::InPlace,
            Some(State::Damaged(file)) => {
                salvage_value(&**file, &pointer).map_or(Pointed::Gone, Pointed::Value)
            }
            _ => Pointed::Gone,
        }
    }
}

fn whole(
    file: &Arc<dyn RandomFile>,
    path: &std::path::Path,
    id: u64,
    number: u64,
) -> Result<(BlobFile, u64)> {
    let reader = BlobReader::open(Arc::clone(file), path, id, number)?;
    reader.walk(|_, _| Ok(()))?;
    let bytes = file
        .len()
        .map_err(|error| Error::io("can't read a blob file", error).in_file(path))?;
    let footer = reader.footer();
    let blob = BlobFile::new(number, bytes, footer.records, footer.record_bytes);
    Ok((blob, reader.records_end()))
}
