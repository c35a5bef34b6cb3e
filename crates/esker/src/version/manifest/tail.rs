//! Reads the live manifest again and again while another process writes it.
//!
//! A group counts as soon as it is whole in the file. The writer may still be waiting for its sync, so a power cut may take it,
//! and where that sync fails the writer goes on in another manifest without it. `CURRENT` then names that one, and it is read
//! from its beginning.

use std::collections::BTreeSet;
use std::path::Path;

use esker_env::{Fs, IoMode};

use super::reader::{Recovered, apply, judge_tail, record_in};
use super::{HEADER_LEN, RECORD_HEADER_LEN, current, header, recover};
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::version::names::FileKind;
use crate::version::state::VersionState;

/// A state of the database, and the place in the manifest behind the groups of edits that led to it.
#[derive(Clone, Debug)]
pub struct ManifestTail {
    number: u64,
    offset: u64,
    state: VersionState,
}

/// What has come behind a place.
#[derive(Debug)]
pub enum Next {
    /// More groups of edits.
    Groups(Box<ManifestTail>, Changes),
    /// Another manifest is live: its state and place.
    Fresh(Box<ManifestTail>),
}

impl Next {
    /// The place behind it.
    pub fn tail(&self) -> &ManifestTail {
        match self {
            Self::Groups(tail, _) | Self::Fresh(tail) => tail,
        }
    }
}

/// What groups of edits changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// How many there are.
    pub groups: u64,
    /// What the writer had published when it stored the first of them.
    pub first_sequence: Option<Sequence>,
    /// The column families that they concern.
    pub families: BTreeSet<u32>,
}

impl ManifestTail {
    /// Behind all that the live manifest of the database in `dir` holds. O(manifest).
    ///
    /// # Errors
    /// As for [`recover`].
    pub fn open(fs: &dyn Fs, dir: &Path) -> Result<Self> {
        recover(fs, dir).map(Self::new)
    }

    pub(super) fn new(recovered: Recovered) -> Self {
        Self {
            number: recovered.manifest_number,
            offset: recovered.end_offset,
            state: recovered.state,
        }
    }

    /// The state here.
    pub fn state(&self) -> &VersionState {
        &self.state
    }

    /// Looks for what has come since; `None` if nothing has. Costs some system calls then, O(tables) otherwise.
    ///
    /// # Errors
    /// As for [`recover`]; `InvalidArgument` if there is another database in the folder now.
    pub fn next(&self, fs: &dyn Fs, dir: &Path) -> Result<Option<Next>> {
        let path = FileKind::Manifest(self.number).path(dir);
        let bytes = match current::read(fs, dir)? == self.number {
            true => self.read_behind(fs, &path),
            false => Ok(None),
        };
        let bytes = bytes.map_err(|error| Error::io("can't read the manifest", error).in_file(&path))?;
        let Some(bytes) = bytes else {
            let fresh = Self::open(fs, dir)?;
            if fresh.state.database_id != self.state.database_id {
                return Err(Error::invalid("another database is in the folder now").in_file(dir));
            }
            return Ok(Some(Next::Fresh(Box::new(fresh))));
        };
        if record_in(&bytes, self.number, self.offset).is_none() {
            return match bytes.is_empty() {
                true => Ok(None),
                // Half a record is what can be seen of a write.
                false => judge_tail(&bytes, self.number, self.offset).map(|_| None),
            }
            .map_err(|error| error.in_file(&path));
        }
        let mut tail = self.clone();
        let changes = tail.advance(&bytes).map_err(|error| error.in_file(&path))?;
        Ok(Some(Next::Groups(Box::new(tail), changes)))
    }

    /// The bytes of the manifest from here on; `None` if it is gone, or another database's.
    fn read_behind(&self, fs: &dyn Fs, path: &Path) -> std::io::Result<Option<Vec<u8>>> {
        let file = match fs.open(path, IoMode::Buffered) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut head = [0; HEADER_LEN];
        if file.read_at(0, &mut head)? < HEADER_LEN || head[..] != header(self.state.database_id, self.number)
        {
            return Ok(None);
        }
        let len = file.len()?.saturating_sub(self.offset);
        let mut bytes = vec![0; usize::try_from(len).map_err(std::io::Error::other)?];
        let read = file.read_at(self.offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    /// Goes on over the whole groups at the front of `bytes`, which stand here. After an error it is not to be used.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<Changes> {
        let mut changes = Changes::default();
        let mut rest = bytes;
        while let Some(payload) = record_in(rest, self.number, self.offset) {
            let before = self.state.last_sequence;
            let mut published = None;
            apply(&mut self.state, payload, false, &mut |_, edit| {
                changes.families.insert(edit.column_family);
                published = published.max(edit.last_sequence);
            })
            .map_err(|error| error.at_offset(self.offset))?;
            changes.first_sequence.get_or_insert(published.unwrap_or(before));
            changes.groups += 1;
            let len = RECORD_HEADER_LEN + payload.len();
            self.offset += len as u64;
            rest = &rest[len..];
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use esker_env::mem::MemFs;

    use crate::error::ErrorKind;
    use crate::version::manifest::ManifestWriter;
    use crate::version::{ColumnFamilyRecord, VersionEdit};

    fn dir() -> &'static Path {
        Path::new("/db")
    }

    fn database(fs: &Arc<dyn Fs>, id: u128, number: u64) -> (ManifestWriter, VersionState) {
        fs.create_dir_all(dir()).unwrap();
        let mut state = VersionState::new(id);
        state.next_file_number = number + 1;
        let mut create = VersionEdit::of(0);
        create.create = Some(ColumnFamilyRecord {
            name: "default".to_owned(),
            ..ColumnFamilyRecord::default()
        });
        state.apply(&create).unwrap();
        let writer = ManifestWriter::create(Arc::clone(fs), dir(), number, &state).unwrap();
        (writer, state)
    }

    fn group(number: u64) -> Vec<VersionEdit> {
        let mut edit = VersionEdit::of(0);
        edit.log_number = Some(number);
        edit.last_sequence = Some(10 * number);
        vec![edit]
    }

    fn log_number(tail: &ManifestTail) -> u64 {
        tail.state().log_number_min().unwrap()
    }

    #[test]
    fn groups_come_as_they_are_stored() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (mut writer, _) = database(&fs, 1, 7);
        let mut tail = ManifestTail::open(&*fs, dir()).unwrap();
        assert!(tail.next(&*fs, dir()).unwrap().is_none());
        for (first, count) in [(1, 1), (2, 3), (5, 2)] {
            (first..first + count).for_each(|number| writer.append(&group(number)).unwrap());
            let Some(Next::Groups(next, changes)) = tail.next(&*fs, dir()).unwrap() else {
                panic!("{count} groups were stored");
            };
            assert_eq!(
                (changes.groups, changes.first_sequence),
                (count, Some(10 * first))
            );
            assert_eq!(changes.families, BTreeSet::from([0]));
            assert_eq!(log_number(&next), first + count - 1);
            assert_ne!(
                log_number(&tail),
                log_number(&next),
                "the place before stays as it is"
            );
            tail = *next;
            assert!(tail.next(&*fs, dir()).unwrap().is_none());
        }
    }

    #[test]
    fn another_manifest_is_read_from_its_beginning() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (mut writer, mut state) = database(&fs, 1, 7);
        let tail = ManifestTail::open(&*fs, dir()).unwrap();
        // The writer gives up what it could not store for certain.
        writer.append(&group(9)).unwrap();
        state.next_file_number = 9;
        let old = writer.roll_over(8, &state).unwrap();
        fs.remove(&FileKind::Manifest(old).path(dir())).unwrap();
        writer.append(&group(3)).unwrap();
        let Some(Next::Fresh(next)) = tail.next(&*fs, dir()).unwrap() else {
            panic!("CURRENT names another manifest");
        };
        assert_eq!(log_number(&next), 3);
        assert!(next.next(&*fs, dir()).unwrap().is_none());
        // Also one whose manifest has the same number.
        for number in [11, 8] {
            database(&fs, 2, number);
            let error = next.next(&*fs, dir()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
    }

    /// A reader can find a write at any byte; damage is something else.
    #[test]
    fn half_a_group_is_none_and_damage_is_told() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (mut writer, _) = database(&fs, 1, 7);
        let tail = ManifestTail::open(&*fs, dir()).unwrap();
        let path = FileKind::Manifest(7).path(dir());
        writer.append(&group(1)).unwrap();
        let whole = fs.read_all(&path).unwrap();
        writer.append(&group(2)).unwrap();
        let two = fs.read_all(&path).unwrap();
        let put = |bytes: &[u8]| {
            let mut file = fs.create(&path, esker_env::CreateOptions::default()).unwrap();
            file.append(bytes).unwrap();
        };
        for len in tail.offset as usize..two.len() {
            put(&two[..len]);
            let next = tail.next(&*fs, dir()).unwrap();
            assert_eq!(
                next.map(|next| log_number(next.tail())),
                (len >= whole.len()).then_some(1)
            );
        }
        let mut damaged = two.clone();
        damaged[whole.len() - 1] ^= 1;
        put(&damaged);
        assert_eq!(tail.next(&*fs, dir()).unwrap_err().kind(), ErrorKind::Corruption);
    }
}
