//! Which blob files are whole, and single values of those that are not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use esker_env::{Env, IoMode, RandomFile};

use crate::blob::{BlobPointer, BlobReader, HEADER_LEN, check_header, salvage_value};
use crate::error::{Error, Result};
use crate::version::{BlobFile, BlobOrigin, FileKind};

/// A blob file of the folder.
enum State {
    Whole(Arc<BlobFile>, u64),
    Damaged(Arc<dyn RandomFile>),
}

/// The blob files that count.
#[derive(Default)]
pub(super) struct Blobs {
    /// Those that the database wrote itself.
    own: BTreeMap<u64, State>,
    /// Those that came with a family, by the database that wrote them, and the number that they had there and that rows have.
    imported: BTreeMap<(u64, u64), State>,
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
    /// Reads all of file `number`; gives what is wrong with it. `known`: where it comes from, if that is known; else its header says it.
    pub fn look_at(
        &mut self,
        env: &Env,
        dir: &Path,
        own: u64,
        number: u64,
        known: Option<Option<BlobOrigin>>,
    ) -> Result<(), Error> {
        let path = FileKind::Blob(number).path(dir);
        let failed = |error| Error::io("can't read a blob file", error).in_file(&path);
        let file = env.fs.open(&path, IoMode::Direct).map_err(failed)?;
        let origin = known.unwrap_or_else(|| {
            let mut header = [0; HEADER_LEN];
            file.read_exact_at(0, &mut header).ok()?;
            let (database_id, pointed_as) = check_header(&header).ok()?;
            let is_own = (database_id, pointed_as) == (own, number);
            (!is_own).then_some(BlobOrigin {
                database_id,
                number: pointed_as,
            })
        });
        let (state, found) = match whole(&file, &path, own, number, origin) {
            Ok((blob, records_end)) => (State::Whole(Arc::new(blob), records_end), Ok(())),
            Err(error) => (State::Damaged(file), Err(error)),
        };
        match origin {
            None => self.own.insert(number, state),
            Some(origin) => self.imported.insert((origin.database_id, origin.number), state),
        };
        found
    }

    /// The largest number by which rows may point to an imported file.
    pub fn pointed_as_max(&self) -> u64 {
        self.imported.keys().map(|&(_, number)| number).max().unwrap_or(0)
    }

    /// The file to which rows of a family point by `number`, if the family was imported with files of these databases. Those that it
    /// got later have larger numbers than all of them.
    fn find(&self, databases: &BTreeSet<u64>, number: u64) -> Option<&State> {
        let imported = databases.iter().find_map(|&id| self.imported.get(&(id, number)));
        imported.or_else(|| self.own.get(&number))
    }

    /// The file, if it is whole.
    pub fn whole(&self, databases: &BTreeSet<u64>, number: u64) -> Option<&Arc<BlobFile>> {
        match self.find(databases, number)? {
            State::Whole(blob, _) => Some(blob),
            State::Damaged(_) => None,
        }
    }

    /// Whether the record is in a whole file.
    pub fn holds(&self, databases: &BTreeSet<u64>, pointer: &BlobPointer) -> bool {
        let end = pointer.end().unwrap_or(u64::MAX);
        let file = self.find(databases, pointer.file);
        matches!(file, Some(State::Whole(_, records_end)) if end <= *records_end)
    }

    /// The value that a row of a damaged table, or one that points into a damaged file, has.
    pub fn value(&self, databases: &BTreeSet<u64>, stored: &[u8]) -> Pointed {
        let Ok(pointer) = BlobPointer::decode(stored) else {
            return Pointed::Gone;
        };
        match self.find(databases, pointer.file) {
            Some(State::Whole(..)) if self.holds(databases, &pointer) => Pointed::InPlace,
            Some(State::Damaged(file)) => {
                salvage_value(&**file, &pointer).map_or(Pointed::Gone, Pointed::Value)
            }
            _ => Pointed::Gone,
        }
    }
}

fn whole(
    file: &Arc<dyn RandomFile>,
    path: &Path,
    own: u64,
    number: u64,
    origin: Option<BlobOrigin>,
) -> Result<(BlobFile, u64)> {
    let (id, pointed_as) = origin.map_or((own, number), |origin| (origin.database_id, origin.number));
    let reader = BlobReader::open(Arc::clone(file), path, id, pointed_as)?;
    reader.walk(|_, _| Ok(()))?;
    let bytes = file
        .len()
        .map_err(|error| Error::io("can't read a blob file", error).in_file(path))?;
    let footer = reader.footer();
    let blob = BlobFile::new(number, bytes, footer.records, footer.record_bytes);
    Ok((blob.renamed(number, origin), reader.records_end()))
}
