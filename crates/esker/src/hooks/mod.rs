//! What a program adds to the engine: code that is called for rows as tables are written, or told what happens.
//!
//! - [`filter`](CompactionFilter): rows that have become worthless go, or change
//! - [`collector`](PropertyCollector): each table says something about its rows
//! - [`listener`](EventListener): what flushes, compactions and callers have done; one for the whole database
//!
//! Hooks are code, so they are not stored with the database: they are given whenever it is opened, and who opens it without them
//! (the command line, say) does everything but call them.

mod collector;
mod filter;
mod listener;
mod listener_calls;

use std::fmt;
use std::sync::Arc;

pub use collector::{CollectedRow, PropertyCollector, PropertyCollectorFactory, RowKind};
pub use filter::{CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision, RewriteCause};
pub(crate) use listener::EVENTS_WAITING_MAX;
pub use listener::{
    BackgroundError, BackgroundErrorOver, BackgroundTask, CheckpointMade, CompactionBegun, CompactionEnded,
    CompactionInput, CompactionReason, DataFileKind, EventFamily, EventsLost, FamilyCreated, FamilyDropped,
    FileCause, FileCreated, FileDeleted, FlushBegun, FlushEnded, JobOutcome, JobOutput, MemtableSealed,
    Moment, SnapshotFreed, TablesDropped, TablesIngested, WriteStall, WriteStallChanged,
};
pub use listener_calls::{Event, EventListener};

/// The hooks of a column family.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Makes a filter for each compaction.
    pub compaction_filter: Option<Arc<dyn CompactionFilterFactory>>,
    /// Each makes a collector for each table that is written. Their names must differ.
    pub property_collectors: Vec<Arc<dyn PropertyCollectorFactory>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.property_collectors.iter().map(|factory| factory.name());
        f.debug_struct("Hooks")
            .field("compaction_filter", &self.compaction_filter.is_some())
            .field("property_collectors", &names.collect::<Vec<_>>())
            .finish()
    }
}
