//! What there is in the folder, and what is left of the manifest.

use std::collections::BTreeMap;
use std::path::Path;

use esker_env::{Env, IoMode};

use crate::blob;
use crate::error::{Error, ErrorKind, Result};
use crate::sstable::TableSalvage;
use crate::version::FileKind;
use crate::version::manifest::{self, Facts};
use crate::wal::{SEGMENT_HEADER_BYTES, segment_id};

/// The folder before the repair.
pub(super) struct Survey {
    pub facts: Facts,
    /// Whether the manifest says all: see the head of [`super`].
    pub trusted: bool,
    pub database_id: u128,
    pub tables: Vec<u64>,
    pub blobs: Vec<u64>,
    pub segments: Vec<u64>,
    /// Manifests, `CURRENT`, and what else is no data.
    pub others: Vec<FileKind>,
    pub next_file_number: u64,
}

impl Survey {
    /// # Errors
    /// `NotFound` if the folder holds nothing of a database; `Unsupported` if it is of a newer version.
    pub fn of(env: &Env, dir: &Path) -> Result<Self> {
        let gone = || Error::new(ErrorKind::NotFound, "there is no database").in_file(dir);
        if !env.fs.exists(dir).map_err(|error| failed(error, dir))? {
            return Err(gone());
        }
        let names = env.fs.list(dir).map_err(|error| failed(error, dir))?;
        let mut kinds: Vec<_> = names.iter().filter_map(|name| FileKind::parse(name)).collect();
        kinds.sort_unstable();
        let mut survey = Self {
            facts: manifest::salvage(&*env.fs, dir)?,
            trusted: false,
            database_id: 0,
            tables: Vec::new(),
            blobs: Vec::new(),
            segments: Vec::new(),
            others: Vec::new(),
            next_file_number: 1,
        };
        for kind in kinds {
            match kind {
                FileKind::Table(number) => survey.tables.push(number),
                FileKind::Blob(number) => survey.blobs.push(number),
                FileKind::Wal(number) => survey.segments.push(number),
                FileKind::Manifest(_) | FileKind::Current => survey.others.push(kind),
                // Of no use; a kept segment stays where it is.
                FileKind::Lock | FileKind::Temp(_) | FileKind::CurrentTemp | FileKind::DamagedWal(_) => {}
            }
            let next = kind.number().unwrap_or(0).saturating_add(1);
            survey.next_file_number = survey.next_file_number.max(next);
        }
        if survey.tables.is_empty()
            && survey.blobs.is_empty()
            && survey.segments.is_empty()
            && survey.others.is_empty()
        {
            return Err(gone());
        }
        survey.next_file_number = survey.next_file_number.max(survey.facts.next_file_number);
        survey.trusted = survey.facts.whole && !survey.is_cut();
        survey.database_id = match survey.facts.database_id {
            Some(id) => id,
            None => survey.most_common_id(env, dir)?,
        };
        Ok(survey)
    }

    /// The first WAL segment that some family needs, if it is not there.
    pub fn missing_segment(&self) -> Option<u64> {
        let needed = self.facts.families.values().map(|family| family.log_number).min();
        needed.filter(|number| self.segments.binary_search(number).is_err())
    }

    /// Tables that were begun after the last change that the manifest knows.
    pub fn newer_tables(&self) -> impl Iterator<Item = u64> {
        let next = self.facts.next_file_number;
        self.tables.iter().copied().filter(move |&number| number >= next)
    }

    /// Whether a manifest that seems whole has lost its end: there are tables newer than all it knows, and the files that it
    /// needs have left, as they do when newer ones have taken their place. A crash leaves newer tables too, but then
    /// the older files are there.
    fn is_cut(&self) -> bool {
        let is_missing = |number: &u64| self.tables.binary_search(number).is_err();
        let has_left = self.facts.tables.keys().any(is_missing) || self.missing_segment().is_some();
        has_left && self.newer_tables().next().is_some()
    }

    /// Whether the file was in the folder.
    pub fn has(&self, file: FileKind) -> bool {
        match file {
            FileKind::Table(number) => self.tables.contains(&number),
            FileKind::Blob(number) => self.blobs.contains(&number),
            FileKind::Wal(number) => self.segments.contains(&number),
            other => self.others.contains(&other),
        }
    }

    /// The id that most segments of the log have, which only the database itself writes; where there are none, that of most files.
    /// Tables and segments know only the lower half of it, which is all that counts.
    fn most_common_id(&self, env: &Env, dir: &Path) -> Result<u128> {
        let logged = self.segments.iter().filter_map(|&number| {
            let mut header = [0; SEGMENT_HEADER_BYTES];
            read_front(env, &FileKind::Wal(number).path(dir), &mut header).then_some(())?;
            segment_id(&header).map(|id| id.db_id)
        });
        let tables = self.tables.iter().filter_map(|&number| {
            let file = env.fs.open(&FileKind::Table(number).path(dir), IoMode::Buffered);
            // 0 is that of tables that were made outside of any database.
            TableSalvage::database_id_of(&*file.ok()?).filter(|&id| id != 0)
        });
        let blobs = self.blobs.iter().filter_map(|&number| {
            let mut header = [0; blob::HEADER_LEN];
            read_front(env, &FileKind::Blob(number).path(dir), &mut header).then_some(())?;
            blob::check_header(&header).ok().map(|(id, _)| id)
        });
        match most_common(logged).or_else(|| most_common(tables.chain(blobs))) {
            Some(id) => Ok(u128::from(id)),
            None => Err(Error::corruption(
                "no file is left that says which database this was: there is nothing to repair",
            )
            .in_file(dir)),
        }
    }
}

fn most_common(ids: impl Iterator<Item = u64>) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for id in ids {
        *counts.entry(id).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|&(_, count)| count)
        .map(|(id, _)| id)
}

fn read_front(env: &Env, path: &Path, bytes: &mut [u8]) -> bool {
    let file = env.fs.open(path, IoMode::Buffered);
    file.is_ok_and(|file| file.read_exact_at(0, bytes).is_ok())
}

fn failed(error: std::io::Error, dir: &Path) -> Error {
    Error::io("can't list the folder", error).in_file(dir)
}
