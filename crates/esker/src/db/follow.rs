//! FOLLOW: reads a database that another process writes, and catches up with it when told to.
//!
//! A follower takes no lock and writes nothing. What it shows is the database as it was at one moment for the writer: the tables
//! of a manifest's state, and above them, in memtables of its own, the rows of the log that those lack (`follow_log.rs`). A
//! catch-up goes in rounds:
//! 1. **Manifest**: the groups of edits that have come lead from one state to the next. Of each family, memtables go whose
//!    segments lie below its log number: their rows are in tables now.
//! 2. **Log**: what has come is read, to its end. Where the state needs none of the rest of the segment that was read last, reading
//!    goes on at the first segment that it needs.
//! 3. **Tables**: those that are new are opened, as a file that is removed can be read for as long as it is open.
//! 4. **Manifest**, looked at again. The writer gives segments up only after a group says that they are not needed, and removes
//!    tables only after a group removes them. So if all groups that have come since 1 still need the segment at which reading began
//!    in 2, then nothing of what was read was overwritten under the reader.
//!
//! And no more may be shown than the writer had published when it stored the first of those groups, which the group says: an
//! ingestion, or a family that was created, belongs before all that was logged behind it. State 1 with the log up to there is what
//! the writer's readers saw right before that group. If there is no such group, the whole log belongs to state 1.
//! A round that fails, or that may not show all that was logged before the call, is followed by another from where it stands.
//!
//! A new manifest (`CURRENT` names another) is read whole, and the log with it from the first segment that it needs: the one
//! before may have held groups that the writer has disowned.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker_env::Env;
use parking_lot::Mutex;

use super::Db;
use super::core::{Core, Families};
use super::follow_log::{Followed, Log};
use super::moment::Moment;
use super::open::{Opening, open_core};
use super::settings::{given_settings, settings_of};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Sequence;
use crate::options::{ColumnFamilyOptions, Options};
use crate::version::VersionState;
use crate::version::manifest::{ManifestTail, Next};

/// Rounds of a catch-up. Each one that has to be followed by another took a flush that ended meanwhile.
const ROUNDS_MAX: usize = 50;

/// Tables and blob files that are opened ahead: half of the files that a process usually may open.
const PINNED_FILES_MAX: usize = 512;

/// A database that another process has open for writing, read without its lock and without a change to its folder; opened by
/// [`Opener::follow`](crate::Opener::follow).
///
/// [`db`](Self::db) is read like any other; writes and all that would change files fail with `ReadOnly`. What it shows stays the
/// same until [`catch_up`](Self::catch_up) is called, which may be done from any thread while others read.
///
/// **What is promised.** Every read shows the database as it was at one moment for the writer, of all column families: of a batch
/// all or nothing, of a two-phase commit nothing before it is committed, and never an older moment than before. A
/// [`Snapshot`](crate::Snapshot) keeps its moment over catch-ups; an iterator shows that of its making.
///
/// **What is not.** A follower shows what is in the log, also what a sync still has to make durable. Rows that were written with
/// [`Durability::None`](crate::Durability::None) are in no log: they are shown once the writer has flushed them, apart from the batches
/// that they were written with. The writer doesn't know its followers, and removes tables that it needs no more. The first 512 (or
/// [`open_files_max`](crate::Options::open_files_max), if that is less) are open before a catch-up ends and can then
/// be read for as long as the moment lasts; of a larger database, a read that comes to a file which is gone fails with `Retry`, and
/// succeeds after the next catch-up. Damage in the log is not told from what is still to be written: where there is some, a
/// follower stands still until the writer has flushed what is behind it.
#[derive(Debug)]
pub struct Follower {
    db: Db,
    place: Mutex<Place>,
}

/// What a catch-up came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// The last sequence number that is seen now.
    pub sequence: Sequence,
    /// Batches of the log that were read.
    pub batches: u64,
    /// Groups of changes of the set of files that were read.
    pub edit_groups: u64,
}

/// How far manifest and log were read.
#[derive(Debug)]
struct Place {
    /// `None` before the first round.
    manifest: Option<ManifestTail>,
    /// What stands behind it, if somebody looked already.
    ahead: Option<Next>,
    log: Log,
    families: BTreeMap<u32, Followed>,
    named: BTreeMap<String, ColumnFamilyOptions>,
    /// Of this catch-up.
    caught: CaughtUp,
}

/// How a round ended.
enum Round {
    /// Everything up to this one may be shown.
    Shown(Sequence),
    /// The manifest has gone on; another round has to follow.
    Overtaken,
}

impl Follower {
    pub(super) fn open(
        env: &Env,
        dir: &Path,
        options: &Options,
        named: BTreeMap<String, ColumnFamilyOptions>,
    ) -> Result<Self> {
        let core = open_core(
            env.clone(),
            dir.to_owned(),
            options.clone(),
            &named,
            Opening::Follow,
        )?;
        let follower = Self {
            db: Db::from_core(core),
            place: Mutex::new(Place {
                manifest: None,
                ahead: None,
                log: Log::default(),
                families: BTreeMap::new(),
                named,
                caught: CaughtUp::default(),
            }),
        };
        follower.catch_up()?;
        Ok(follower)
    }

    /// The database as of the last catch-up. Handles of it, and clones, move on with the follower. A column family that was
    /// dropped can be read by its handle as it was last seen.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Moves on to a moment that holds all that was committed before the call, except for what was written without the log.
    /// Reads that are under way are not disturbed. O(log that has come), and O(tables) if the set of tables has changed.
    ///
    /// The memory of what the log holds, and tables don't yet, is about that of the writer's memtables.
    ///
    /// Errors: `Retry` if the writer flushes faster than its log can be read; `InvalidArgument` if a column family has come whose
    /// key order or merge operator was not [given](crate::Opener::column_family), or another database is in the folder;
    /// `NotFound`, `Corruption`, `Unsupported` and `Io` as of [`Db::open`]; `Closed`. What is shown then stays as it was, and the
    /// call may be repeated.
    pub fn catch_up(&self) -> Result<CaughtUp> {
        let core = self.db.core();
        let mut place = self.place.lock();
        core.check_open()?;
        place.caught = CaughtUp::default();
        let mut target = None;
        let mut last: Option<Error> = None;
        for _ in 0..ROUNDS_MAX {
            let error = match place.round(core, &mut target) {
                Ok(Round::Shown(sequence)) => return Ok(place.show(core, sequence)),
                Ok(Round::Overtaken) => continue,
                Err(error) => error,
            };
            place.ahead = None;
            // What comes twice in the same words is no race.
            let is_race = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption);
            if !is_race
                || last
                    .as_ref()
                    .is_some_and(|last| last.to_string() == error.to_string())
            {
                return Err(error);
            }
            last = Some(error);
        }
        Err(last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Retry,
                "the process that writes flushes faster than its log can be read",
            )
        }))
    }
}

impl Place {
    /// `target`: what has to be shown at least, once it is known.
    fn round(&mut self, core: &Core, target: &mut Option<Sequence>) -> Result<Round> {
        self.read_manifest(core)?;
        let Some(manifest) = &self.manifest else {
            return Err(Error::bug("a follower without a manifest"));
        };
        let state = manifest.state();
        let begin = self.log.go_to(state, core);
        let is_whole = self
            .log
            .read(core, state, &mut self.families, &mut self.caught.batches)?;
        let opened = open_files(core, &self.families);
        let logged = self.log.last_sequence().max(state.last_sequence);
        self.ahead = manifest.next(&*core.env.fs, &core.dir)?;
        let published = match &self.ahead {
            None => {
                opened?;
                if !is_whole {
                    return Err(Error::corruption(
                        "the log names a column family that there never was",
                    ));
                }
                logged
            }
            Some(Next::Groups(next, changes)) => {
                let needed = next.state().log_number_min().unwrap_or(0);
                if needed > begin || !is_whole || opened.is_err() {
                    return Ok(Round::Overtaken);
                }
                logged.min(changes.first_sequence.unwrap_or(logged))
            }
            Some(Next::Fresh(_)) => return Ok(Round::Overtaken),
        };
        if published < *target.get_or_insert(logged) {
            return Ok(Round::Overtaken);
        }
        Ok(Round::Shown(published))
    }

    /// Goes on to the state that the manifest has come to.
    fn read_manifest(&mut self, core: &Core) -> Result<()> {
        let fs = &*core.env.fs;
        let next = match (&self.manifest, self.ahead.take()) {
            (None, _) => Some(Next::Fresh(Box::new(ManifestTail::open(fs, &core.dir)?))),
            (_, Some(ahead)) => Some(ahead),
            (Some(manifest), None) => manifest.next(fs, &core.dir)?,
        };
        let tail = match next {
            None => return Ok(()),
            Some(Next::Groups(tail, changes)) => {
                self.take_state(core, tail.state(), |id| changes.families.contains(&id))?;
                self.caught.edit_groups += changes.groups;
                tail
            }
            Some(Next::Fresh(tail)) => {
                self.log = Log::default();
                core.prepared.lock().clear();
                self.families.values_mut().for_each(Followed::forget_rows);
                self.take_state(core, tail.state(), |_| true)?;
                self.caught.edit_groups += 1;
                tail
            }
        };
        self.manifest = Some(*tail);
        Ok(())
    }

    /// Makes the families those of a state. After an error it has to be done again.
    fn take_state(
        &mut self,
        core: &Core,
        state: &VersionState,
        is_changed: impl Fn(u32) -> bool,
    ) -> Result<()> {
        for stored in state.families().filter(|stored| is_changed(stored.id)) {
            let given = given_settings(stored, &self.named, &core.options);
            let options = settings_of(stored, given)?;
            let version = Arc::new(stored.version(options.key_order.clone(), options.levels)?);
            match self.families.get_mut(&stored.id) {
                Some(followed) => {
                    followed.family.set_options(options);
                    followed.version = version;
                    followed.forget_below(stored.log_number);
                }
                None => {
                    let record = (stored.id, &*stored.record.name, stored.log_number);
                    let known = core.families.load().get(stored.id).cloned();
                    let followed = Followed::new(record, known, version, options, core);
                    self.families.insert(stored.id, followed);
                }
            }
        }
        self.families.retain(|&id, _| state.family(id).is_some());
        Ok(())
    }

    /// Lets readers see everything up to `sequence`.
    fn show(&mut self, core: &Core, sequence: Sequence) -> CaughtUp {
        self.caught.sequence = sequence;
        let mut moment = Moment {
            sequence,
            ..Moment::default()
        };
        for (&id, followed) in &self.families {
            let view = Arc::new(followed.view());
            followed.family.set_view(Arc::clone(&view));
            moment.views.insert(id, view);
        }
        let before = core.families.load_full();
        let gone = |id: &u32| !self.families.contains_key(id);
        // A family without a view is a dropped one, so the mark comes first; and a family can be found only once it has a view.
        for (_, family) in before.by_id.iter().filter(|(id, _)| gone(id)) {
            family.mark_dropped();
        }
        if let Some(moments) = &core.moments {
            moments.store(Arc::new(moment));
        }
        core.published.advance(sequence);
        if !before.by_id.keys().eq(self.families.keys()) {
            let by_id = self
                .families
                .iter()
                .map(|(&id, followed)| (id, Arc::clone(&followed.family)))
                .collect();
            let default = Arc::clone(&before.default);
            core.families.store(Arc::new(Families { default, by_id }));
        }
        core.share_memory();
        self.caught
    }
}

/// Opens files of all families, as many as are pinned.
///
/// # Errors
/// `Retry` if one is gone. Other failures are told to whoever reads the file.
fn open_files(core: &Core, families: &BTreeMap<u32, Followed>) -> Result<()> {
    let mut left = PINNED_FILES_MAX.min(core.options.open_files_max);
    for followed in families.values() {
        let version = &followed.version;
        let tables = version
            .files()
            .map(|(_, file)| core.tables.get(file, &followed.family.order).map(drop));
        let blobs = version
            .blobs()
            .iter()
            .map(|blob| core.tables.blob(&blob.file).map(drop));
        for opened in tables.chain(blobs).take(left) {
            left -= 1;
            match opened {
                Err(error) if error.kind() == ErrorKind::Retry => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}
