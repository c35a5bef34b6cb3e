//! Event listeners by functions of the program's.

use std::ffi::c_void;
use std::sync::Arc;

use esker::{
    BackgroundError, BackgroundErrorOver, CheckpointMade, CompactionBegun, CompactionEnded, EventListener,
    EventsLost, FamilyCreated, FamilyDropped, FileCreated, FileDeleted, FlushBegun, FlushEnded,
    MemtableSealed, Moment, SnapshotFreed, TablesDropped, TablesIngested, WriteStallChanged,
};

use crate::boundary::{answer, given};
use crate::comparator::State;
use crate::database::esker_db;
use crate::error::esker_error;
use crate::event::{
    esker_background_error, esker_background_error_over, esker_checkpoint_made, esker_compaction_begun,
    esker_compaction_ended, esker_events_lost, esker_family_created, esker_family_dropped,
    esker_file_created, esker_file_deleted, esker_flush_begun, esker_flush_ended, esker_memtable_sealed,
    esker_moment, esker_snapshot_freed, esker_tables_dropped, esker_tables_ingested,
    esker_write_stall_changed,
};
use crate::options::esker_options;
use crate::shown::Shown;

/// Is told what happens in a database. Every function may be null, and must not throw; what it is shown stays for the call.
///
/// One thread of the database calls the listeners of it, one call after the other, in the order in which things happened: of a job its
/// begin, the files that it created, its end. It holds no lock, and the engine never waits for it: 65,536 events may wait while
/// a listener is busy, what comes beyond is not told, and `events_lost` says so at its place.
/// A listener may call everything on the database but `esker_db_wait_for_listeners`. `esker_db_close` waits until all was told,
/// except when a listener calls it: so who closes must not hold a lock that a listener takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_listener {
    /// Given to the functions.
    pub state: *mut c_void,
    /// Called once with `state` when nothing uses the listener any more: the options are freed, and each database that was opened with
    /// them is closed. On the thread that calls the listener, or the one that frees or closes. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// A flush begins.
    pub flush_begun: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_flush_begun<'_>),
    >,
    /// A flush has ended.
    pub flush_ended: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_flush_ended<'_>),
    >,
    /// A compaction begins.
    pub compaction_begun: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_compaction_begun<'_>),
    >,
    /// A compaction has ended.
    pub compaction_ended: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_compaction_ended<'_>),
    >,
    /// A table or blob file is in force.
    pub file_created: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_file_created<'_>),
    >,
    /// A table or blob file was removed.
    pub file_deleted:
        Option<unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_file_deleted)>,
    /// A memtable takes no more rows.
    pub memtable_sealed: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_memtable_sealed<'_>),
    >,
    /// Writers are let in otherwise than before.
    pub write_stall_changed: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            moment: &esker_moment,
            event: &esker_write_stall_changed<'_>,
        ),
    >,
    /// Background work or the log has failed.
    pub background_error: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_background_error<'_>),
    >,
    /// What had failed works again.
    pub background_error_over: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_background_error_over),
    >,
    /// Tables were ingested.
    pub tables_ingested: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_tables_ingested),
    >,
    /// Whole tables of key ranges were dropped.
    pub tables_dropped: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_tables_dropped<'_>),
    >,
    /// A checkpoint is complete.
    pub checkpoint_made: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_checkpoint_made<'_>),
    >,
    /// A column family was created.
    pub family_created: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_family_created<'_>),
    >,
    /// A column family was dropped.
    pub family_dropped: Option<
        unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_family_dropped<'_>),
    >,
    /// A snapshot is gone.
    pub snapshot_freed:
        Option<unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_snapshot_freed)>,
    /// Events were not told.
    pub events_lost:
        Option<unsafe extern "C" fn(state: *mut c_void, moment: &esker_moment, event: &esker_events_lost)>,
}

/// The listener as the engine sees it.
struct Listener {
    functions: esker_listener,
    state: State,
}

// SAFETY: the functions are code, and of the state, which `State` holds, the copy in them is not used.
unsafe impl Send for Listener {}
// SAFETY: as above.
unsafe impl Sync for Listener {}

macro_rules! tells {
    ($($method:ident($event:ident);)*) => {
        impl EventListener for Listener {
            $(fn $method(&self, moment: &Moment, event: &$event) {
                if let Some(call) = self.functions.$method {
                    let moment = esker_moment::new(moment);
                    event.show(|event| {
                        // SAFETY: the function's contract.
                        unsafe { call(self.state.pointer, &moment, event) }
                    });
                }
            })*
        }
    };
}

tells! {
    flush_begun(FlushBegun);
    flush_ended(FlushEnded);
    compaction_begun(CompactionBegun);
    compaction_ended(CompactionEnded);
    file_created(FileCreated);
    file_deleted(FileDeleted);
    memtable_sealed(MemtableSealed);
    write_stall_changed(WriteStallChanged);
    background_error(BackgroundError);
    background_error_over(BackgroundErrorOver);
    tables_ingested(TablesIngested);
    tables_dropped(TablesDropped);
    checkpoint_made(CheckpointMade);
    family_created(FamilyCreated);
    family_dropped(FamilyDropped);
    snapshot_freed(SnapshotFreed);
    events_lost(EventsLost);
}

/// Tells this listener, too, what happens in databases that are opened with these options. The functions are copied, and on success
/// `state` is the library's. A database that is opened read-only, and a follower, have nothing to tell.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_add_listener(
    options: Option<&mut esker_options>,
    listener: Option<&esker_listener>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        let functions = *given(listener, "the listener")?;
        let state = State::new(functions.state, functions.destroy);
        options.listeners.push(Arc::new(Listener { functions, state }));
        Ok(())
    })
}

/// Waits until the listeners were told everything that happened before this call; at once where there are none.
/// Error: `ESKER_INVALID_ARGUMENT` if a listener calls it: it would wait for itself.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_wait_for_listeners(db: Option<&esker_db>) -> Option<Box<esker_error>> {
    answer(|| given(db, "db")?.db.wait_for_listeners())
}
