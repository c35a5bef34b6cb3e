//! Opening: the manifest, recovery, what the threads share, and the start of background work.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use esker_env::{Env, FileLock};

use super::core::{Core, Families};
use super::edits::Manifest;
use super::folder;
use super::health::Health;
use super::kept_aside;
use super::moment::Moments;
use super::recover::{self, Recovered};
use super::running::Running;
use super::settings::{given_settings, record, settings_of};
use super::write::{Token, buffer};
use super::{Db, Follower};

use crate::background::{Events, FlushProgress, Scheduler};
use crate::batch::DEFAULT_COLUMN_FAMILY;
use crate::cache::BlockCache;
use crate::commit::{Admission, Pipeline};
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{EventListener, FileCause};
use crate::memtable::{InsertHint, MemtableArenaPool};
use crate::metrics::Metrics;
use crate::options::{ColumnFamilyOptions, Options};
use crate::rewrite::Throttle;
use crate::snapshot::{Published, SnapshotList};
use crate::version::manifest::ManifestTail;
use crate::version::{Family, FileKind, Graveyard, Tables, VersionEdit, VersionState};
use crate::wal::{SegmentSettings, WalSegments};

/// The name of the family that every database has.
pub(super) const DEFAULT_NAME: &str = "default";

/// Opens a database whose column families need more than stored settings: key orders and merge operators of the
/// user's own, or other settings than those stored.
#[derive(Clone, Debug)]
pub struct Opener {
    options: Options,
    families: BTreeMap<String, ColumnFamilyOptions>,
    create_missing: bool,
    background_work: bool,
    env: Option<Env>,
    listeners: Listeners,
}

/// The listeners of a database that is to be opened.
#[derive(Clone, Default)]
struct Listeners(Vec<Arc<dyn EventListener>>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listeners({})", self.0.len())
    }
}

impl Opener {
    /// With these settings.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            families: BTreeMap::new(),
            create_missing: false,
            background_work: true,
            env: None,
            listeners: Listeners::default(),
        }
    }

    /// Opens the family `name` with these settings instead of the stored ones.
    #[must_use]
    pub fn column_family(mut self, name: &str, options: ColumnFamilyOptions) -> Self {
        self.families.insert(name.to_owned(), options);
        self
    }

    /// Creates families that were named and do not exist.
    #[must_use]
    pub fn create_missing_column_families(mut self) -> Self {
        self.create_missing = true;
        self
    }

    /// Opens without background work: no flush and no compaction starts by itself until
    /// [`Db::start_background_work`]. For whoever wants to look at a database, change settings or load data before
    /// anything moves. What is asked for by name is done: [`Db::flush`], [`Db::compact_range`], ingestion, checkpoints, [`Db::close`].
    ///
    /// Writes go into memtables, as far as these go. A write that needs a flush, as its family has `memtables_max` memtables
    /// or memory is full, fails at once with an error of kind `Retry` and writes nothing; it succeeds after a
    /// [`flush`](Db::flush) or when background work was started. Writes are not held back for the sake of compactions. What
    /// recovery has to flush for want of memory, it flushes.
    #[must_use]
    pub fn background_work_off(mut self) -> Self {
        self.background_work = false;
        self
    }

    /// Runs on this machine instead of the real one: for tests and simulations.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Tells this listener, too, what happens in the database: see [`EventListener`]. A database that is opened read-only
    /// has nothing to tell.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listeners.0.push(listener);
        self
    }

    /// Opens it to be read while another process writes it, without its lock: see [`Follower`]. Families that were named and
    /// do not exist may come later. The options count as far as they concern reading: memory, open files, I/O.
    ///
    /// Errors: those of [`Db::open`] for a database that is opened read-only, and of [`Follower::catch_up`].
    pub fn follow(self, path: impl AsRef<Path>) -> Result<Follower> {
        let (mut options, env) = self.checked()?;
        options.read_only = true;
        Follower::open(&env, path.as_ref(), &options, self.families)
    }

    fn checked(&self) -> Result<(Options, Env)> {
        let mut options = self.options.clone();
        if let Some(default) = self.families.get(DEFAULT_NAME) {
            options.default_column_family = default.clone();
        }
        options.validate()?;
        for (name, family) in &self.families {
            family.validate().map_err(|error| error.in_column_family(name))?;
        }
        Ok((options, self.env.clone().unwrap_or_else(Env::posix)))
    }

    /// Opens it; errors as for [`Db::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        let (options, env) = self.checked()?;
        let dir = path.as_ref().to_owned();
        let named = self.families;
        let listeners = match options.read_only {
            true => Vec::new(),
            false => self.listeners.0,
        };
        let opening = Opening::Own {
            listeners,
            background_work: self.background_work,
        };
        let open = || open_core(env.clone(), dir.clone(), options.clone(), &named, opening.clone());
        let core = match options.read_only {
            true => super::read_only::open_settled(&env, &dir, open)?,
            false => open()?,
        };
        let db = Db::from_core(core);
        for (name, family) in named {
            if db.core().families.load().named(&name).is_some() {
                continue;
            }
            if !self.create_missing {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("there is no column family '{name}'"),
                ));
            }
            db.create_column_family(&name, family)?;
        }
        Ok(db)
    }
}

/// What a database is opened for.
#[derive(Clone)]
pub(super) enum Opening {
    /// To be this process's own, or to be read as it is.
    Own {
        listeners: Vec<Arc<dyn EventListener>>,
        background_work: bool,
    },
    /// To be followed: the log is left alone, as a follower reads it by itself.
    Follow,
}

pub(super) fn open_core(
    env: Env,
    dir: PathBuf,
    options: Options,
    named: &BTreeMap<String, ColumnFamilyOptions>,
    opening: Opening,
) -> Result<Arc<Core>> {
    let (listeners, background_work, follow) = match opening {
        Opening::Own {
            listeners,
            background_work,
        } => (listeners, background_work, false),
        Opening::Follow => (Vec::new(), false, true),
    };
    let lock = folder::prepare(&env, &dir, &options)?;
    let (state, place) = load_state(&env, &dir, &options)?;
    let fresh = place.is_none();
    // Only who can't lock the database has to look again.
    let place = place.filter(|_| options.read_only && !follow);
    let database_id = short_id(&state);
    let metrics = Arc::new(Metrics::default());
    let cache = Arc::new(BlockCache::new(options.memory_budget_bytes / 2));
    let mut tables = Tables::new(
        Arc::clone(&env.fs),
        dir.clone(),
        cache,
        Arc::clone(&metrics),
        options.read_io,
        database_id,
        options.open_files_max,
    );
    if follow {
        tables = tables.followed();
    }
    let tables = Arc::new(tables);
    // What flushes give back is what the next memtables take.
    let arena_pool = MemtableArenaPool::new(options.memtables_bytes_resolved() as usize / 2);

    let mut family_options = BTreeMap::new();
    for family in state.families() {
        let given = given_settings(family, named, &options);
        family_options.insert(family.id, settings_of(family, given)?);
    }

    let highest = folder::highest_number(&env, &dir)?;
    let next_file_number = state.next_file_number.max(highest + 1);
    let recovering = recover::Context {
        env: &env,
        dir: &dir,
        database_id,
        options: &options,
        state: &state,
        families: &family_options,
        arena_pool: &arena_pool,
        next_file_number: AtomicU64::new(next_file_number),
        metrics: &metrics,
        left_out: &BTreeSet::new(),
    };
    let recovered = if fresh || follow {
        Recovered::default()
    } else {
        recover::replay(&recovering)?
    };
    let next_file_number = recovering.next_file_number.into_inner();

    let core = assemble(Parts {
        env,
        dir,
        options,
        lock,
        state,
        place,
        tables,
        arena_pool,
        family_options,
        metrics,
        listeners,
        next_file_number,
        recovered,
        follow,
    })?;
    let core = Arc::new(core);
    if !core.options.read_only {
        start_threads(&core, background_work)?;
    }
    Ok(core)
}

struct Parts {
    env: Env,
    dir: PathBuf,
    options: Options,
    lock: Option<Box<dyn FileLock>>,
    state: VersionState,
    place: Option<ManifestTail>,
    tables: Arc<Tables>,
    arena_pool: Arc<MemtableArenaPool>,
    family_options: BTreeMap<u32, ColumnFamilyOptions>,
    metrics: Arc<Metrics>,
    listeners: Vec<Arc<dyn EventListener>>,
    next_file_number: u64,
    recovered: Recovered,
    follow: bool,
}

/// Builds the core: a fresh manifest that includes what recovery flushed, a fresh WAL segment, the families.
fn assemble(parts: Parts) -> Result<Core> {
    let Parts {
        env,
        dir,
        options,
        lock,
        mut state,
        tables,
        arena_pool,
        family_options,
        metrics,
        ..
    } = parts;
    let mut recovered = parts.recovered;
    let next_file_number = AtomicU64::new(parts.next_file_number);
    let new_number = || next_file_number.fetch_add(1, Ordering::Relaxed);
    let last_sequence = state.last_sequence.max(recovered.last_sequence);
    let database_id = short_id(&state);

    let segments = WalSegments::new(
        &env,
        &dir,
        SegmentSettings {
            db_id: database_id,
            segment_bytes: options.wal_segment_bytes,
            memory_bytes: options.wal_memory_bytes,
        },
    );
    let mut recovered_files = Vec::new();
    let mut wal = None;
    let mut wal_number = 0;
    let manifest = if options.read_only {
        Manifest::read_only(Arc::clone(&env.fs), dir.clone(), state.database_id, parts.place)
    } else {
        wal_number = new_number();
        let carried = recovered.prepared.all();
        let records: Vec<&[u8]> = carried.iter().map(|batch| batch.as_bytes()).collect();
        wal = Some(segments.start(wal_number, &records)?);
        for family in state.families().map(|family| family.id).collect::<Vec<_>>() {
            let mut edit = VersionEdit::of(family);
            edit.log_number = Some(wal_number);
            edit.last_sequence = Some(last_sequence);
            if let Some(written) = recovered.files.remove(&family) {
                written.add_to(&mut edit, 0);
                recovered_files.push(edit.clone());
            }
            if let Some(options) = family_options.get(&family) {
                edit.options = Some(options.to_text());
                edit.merge_operator = Some(
                    options
                        .merge_operator
                        .as_ref()
                        .map_or(String::new(), |m| m.name().to_owned()),
                );
            }
            state.apply(&edit)?;
        }
        kept_aside::name(&*env.fs, &dir, &recovered.aside)?;
        let number = new_number();
        state.next_file_number = state
            .next_file_number
            .max(next_file_number.load(Ordering::Relaxed));
        Manifest::create(Arc::clone(&env.fs), dir.clone(), state.clone(), number)?
    };

    let mut by_id = BTreeMap::new();
    for family in state.families() {
        let Some(options) = family_options.get(&family.id) else {
            return Err(Error::bug("a column family without settings"));
        };
        let version = family.version(options.key_order.clone(), options.levels)?;
        let active = match recovered.memtables.remove(&family.id) {
            Some(table) => Arc::new(crate::version::Buffer::new(table, wal_number)),
            None => buffer(options, &arena_pool, wal_number),
        };
        let name = family.record.name.clone();
        let family = Family::new(family.id, name, options.clone(), Arc::new(version), active);
        by_id.insert(family.id, Arc::new(family));
    }
    let Some(default) = by_id.get(&DEFAULT_COLUMN_FAMILY).cloned() else {
        return Err(Error::corruption("the manifest knows no column family 'default'").in_file(&dir));
    };
    let families = Arc::new(Families { default, by_id });
    if let Some(number) = manifest.number() {
        let bytes_max = options.wal_bytes_resolved();
        kept_aside::keep(&*env.fs, &dir, &recovered.aside, bytes_max, &mut recovered.report)?;
        folder::remove_dead_files(&env, &dir, &manifest.state, number, &segments, wal_number)?;
    }
    let token = Token {
        last_sequence,
        wal,
        wal_number,
        wal_broken: false,
        full: Vec::new(),
        families: Arc::clone(&families),
        default_hint: InsertHint::default(),
        bytes_to_check: 0,
        bytes_to_yield: 0,
        misses_seen: 0,
    };
    let events = Events::new(parts.listeners, Arc::clone(&env.clock), Arc::clone(&metrics));
    let events = Arc::new(events);
    let core = Core {
        dir,
        database_id,
        durability: AtomicU8::new(options.durability as u8),
        file_lock: Mutex::new(lock),
        families: ArcSwap::new(families),
        pipeline: Pipeline::new(token),
        published: Published::new(last_sequence),
        moments: parts.follow.then(Moments::default),
        next_file_number,
        manifest: Mutex::new(manifest),
        wal: segments,
        wal_rotation: Mutex::new(()),
        wal_unsynced: Mutex::new(Vec::new()),
        prepared: Mutex::new(recovered.prepared),
        tables,
        graveyard: Arc::new(Graveyard::default()),
        removing: Mutex::default(),
        arena_pool,
        snapshots: Arc::new(SnapshotList::default()),
        metrics,
        gets_at_flush: AtomicU64::new(0),
        admission: Admission::default(),
        throttle: Throttle::new(options.background_bytes_per_second),
        health: Health::new(Arc::clone(&events)),
        events,
        stall: AtomicU8::new(0),
        running: Mutex::new(Running::default()),
        scheduler: std::sync::OnceLock::new(),
        closed: AtomicBool::new(false),
        unlogged: AtomicBool::new(false),
        recovery: recovered.report,
        flushes: FlushProgress::default(),
        options,
        env,
    };
    core.share_memory();
    for edit in recovered_files {
        let family = core.family(edit.column_family)?;
        core.note_files(&family, &edit, FileCause::Recovery);
    }
    Ok(core)
}

fn start_threads(core: &Arc<Core>, background_work: bool) -> Result<()> {
    let threads = match core.options.compaction_threads {
        0 => core.env.spawn.parallelism().clamp(1, 64),
        given => given,
    };
    for family in core.families.load().by_id.values() {
        core.update_pressure(family);
    }
    core.events.start(&core.env)?;
    let work = Arc::clone(core) as Arc<dyn crate::background::Work>;
    let start = match background_work {
        true => Scheduler::start,
        false => Scheduler::start_off,
    };
    let scheduler = start(&core.env, work, threads)?;
    let _ = core.scheduler.set(scheduler);
    let waking = Arc::downgrade(core);
    core.graveyard.on_burial(move || {
        if let Some(core) = waking.upgrade() {
            core.wake();
        }
    });
    Ok(())
}

/// The state that the manifest gives, and where it was read; or that of a new database.
fn load_state(env: &Env, dir: &Path, options: &Options) -> Result<(VersionState, Option<ManifestTail>)> {
    let current = FileKind::Current.path(dir);
    let exists = env
        .fs
        .exists(&current)
        .map_err(|error| Error::io("can't look at the folder", error).in_file(dir))?;
    if exists {
        if options.error_if_exists {
            return Err(Error::invalid("a database exists already, and error_if_exists is set").in_file(dir));
        }
        let place = ManifestTail::open(&*env.fs, dir)?;
        return Ok((place.state().clone(), Some(place)));
    }
    if options.read_only {
        return Err(Error::new(ErrorKind::NotFound, "there is no database in this folder").in_file(dir));
    }
    let mut state =
        VersionState::new(u128::from(env.random.next_u64()) << 64 | u128::from(env.random.next_u64()));
    let default = &options.default_column_family;
    let mut edit = VersionEdit::of(DEFAULT_COLUMN_FAMILY);
    edit.create = Some(record(DEFAULT_NAME, default));
    edit.log_number = Some(0);
    state.apply(&edit)?;
    Ok((state, None))
}

/// The part of the database's id that WAL segments and tables carry.
fn short_id(state: &VersionState) -> u64 {
    state.database_id as u64
}
