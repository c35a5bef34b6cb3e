//! What a listener can be called for: one table of methods and events, of which the trait and the calls are made.

use super::listener::{
    BackgroundError, BackgroundErrorOver, CheckpointMade, CompactionBegun, CompactionEnded, EventsLost,
    FamilyCreated, FamilyDropped, FileCreated, FileDeleted, FlushBegun, FlushEnded, MemtableSealed, Moment,
    SnapshotFreed, TablesDropped, TablesIngested, WriteStallChanged,
};

macro_rules! calls {
    ($($(#[$doc:meta])* $method:ident($event:ident);)*) => {
        /// Is told what happens in a database: given to [`Opener::listener`](crate::Opener::listener). Every method does
        /// nothing unless it is written.
        ///
        /// The calls come from one thread, `esker-events`, which holds no lock; a listener may call everything but
        /// [`Db::wait_for_listeners`](crate::Db::wait_for_listeners). The engine never waits for it. Events are told in the
        /// order in which they happened: of a job its begin, the files that it created, its end; a file's deletion after the
        /// end of the job that replaced it. A panic is caught and counted (`listener_panics`). 65,536 events may wait while a
        /// listener is busy; what comes beyond is not told, and [`events_lost`](Self::events_lost) says so at its place.
        ///
        /// [`Db::close`](crate::Db::close), and the last handle's going, wait until all was told, except when a listener calls
        /// it; then they let the listeners go. So who closes must not hold a lock that a listener takes. A listener that holds a
        /// [`Db`](crate::Db) of its own keeps the database open until somebody closes it.
        pub trait EventListener: Send + Sync {
            $($(#[$doc])*
            fn $method(&self, moment: &Moment, event: &$event) {
                let _ = (moment, event);
            })*
        }

        /// An event on its way.
        #[derive(Clone, Debug)]
        pub enum Event {
            $(
                #[allow(missing_docs, reason = "each stands for the struct of its name")]
                $event($event),
            )*
        }

        impl Event {
            /// Calls the listener's method for it.
            pub fn tell(&self, listener: &dyn EventListener, moment: &Moment) {
                match self {
                    $(Self::$event(event) => listener.$method(moment, event),)*
                }
            }
        }

        $(impl From<$event> for Event {
            fn from(event: $event) -> Self {
                Self::$event(event)
            }
        })*
    };
}

calls! {
    /// A flush begins.
    flush_begun(FlushBegun);
    /// A flush has ended.
    flush_ended(FlushEnded);
    /// A compaction begins.
    compaction_begun(CompactionBegun);
    /// A compaction has ended.
    compaction_ended(CompactionEnded);
    /// A table or blob file is in force.
    file_created(FileCreated);
    /// A table or blob file was removed.
    file_deleted(FileDeleted);
    /// A memtable takes no more rows.
    memtable_sealed(MemtableSealed);
    /// Writers are let in otherwise than before.
    write_stall_changed(WriteStallChanged);
    /// Background work or the log has failed.
    background_error(BackgroundError);
    /// What had failed works again.
    background_error_over(BackgroundErrorOver);
    /// Tables were ingested.
    tables_ingested(TablesIngested);
    /// Whole tables of key ranges were dropped.
    tables_dropped(TablesDropped);
    /// A checkpoint is complete.
    checkpoint_made(CheckpointMade);
    /// A column family was created.
    family_created(FamilyCreated);
    /// A column family was dropped.
    family_dropped(FamilyDropped);
    /// A snapshot is gone.
    snapshot_freed(SnapshotFreed);
    /// Events were not told.
    events_lost(EventsLost);
}
