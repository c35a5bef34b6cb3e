//! Compaction filters by functions of the program's.

use std::ffi::c_void;

use esker::{CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision, Result, RewriteCause};
use std::sync::Arc;

use crate::boundary::given;
use crate::buffer::esker_buffer;
use crate::comparator::State;
use crate::slice::esker_slice;

/// What becomes of a row.
pub type esker_decision = u32;
/// It stays.
#[allow(
    dead_code,
    reason = "a program's answer; whatever is none of the others means the same"
)]
pub const ESKER_KEEP: esker_decision = 0;
/// The key is deleted.
pub const ESKER_REMOVE: esker_decision = 1;
/// The row gets the value that was put into `out`.
pub const ESKER_CHANGE: esker_decision = 2;
/// The key is deleted, and with it all that follow up to the one that was put into `out` (exclusive) of which no snapshot sees
/// anything.
pub const ESKER_SKIP_UNTIL: esker_decision = 3;
/// Of `decide_by_key` only: the value is needed.
pub const ESKER_NEED_VALUE: esker_decision = 4;

/// Why rows are written anew.
pub type esker_rewrite_cause = u32;
/// A memtable becomes a table.
pub const ESKER_CAUSE_FLUSH: esker_rewrite_cause = 0;
/// A compaction that the engine chose.
pub const ESKER_CAUSE_COMPACTION: esker_rewrite_cause = 1;
/// `esker_db_compact_range`.
pub const ESKER_CAUSE_MANUAL: esker_rewrite_cause = 2;

/// What a filter is made for.
#[repr(C)]
pub struct esker_filter_context {
    /// The level that is written.
    pub level: usize,
    /// Why.
    pub cause: esker_rewrite_cause,
    /// Whether nothing older exists for any key of the job: what is removed leaves no tombstone.
    pub bottommost: bool,
}

/// Decides on rows while they are rewritten. It sees each key once: the newest value. What is deleted it does not see, nor what a
/// snapshot sees that was alive when the job began. The functions must not throw.
#[repr(C)]
pub struct esker_compaction_filter {
    /// Given to `create`.
    pub state: *mut c_void,
    /// Called once with `state` when nothing uses the filter any more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Makes a filter for a job, or for a key range of a large one; false: every row stays. Called by several threads at once. May be
    /// null: `state` is the filter then, and `decide` is called by several threads at once.
    pub create: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            context: &esker_filter_context,
            filter: &mut *mut c_void,
        ) -> bool,
    >,
    /// Called with each filter that `create` made. May be null.
    pub destroy_filter: Option<unsafe extern "C" fn(filter: *mut c_void)>,
    /// Decides by the key alone, where it can; what it can't decide it answers by `ESKER_NEED_VALUE`. May be null.
    pub decide_by_key: Option<
        unsafe extern "C" fn(
            filter: *mut c_void,
            key: esker_slice<'_>,
            out: &mut esker_buffer,
        ) -> esker_decision,
    >,
    /// Decides by key and value, with ascending keys. `out` is empty. An unknown answer keeps the row.
    pub decide: Option<
        unsafe extern "C" fn(
            filter: *mut c_void,
            key: esker_slice<'_>,
            value: esker_slice<'_>,
            out: &mut esker_buffer,
        ) -> esker_decision,
    >,
    /// Whether flushes are filtered, too.
    pub filters_flushes: bool,
}

type Create = unsafe extern "C" fn(*mut c_void, &esker_filter_context, &mut *mut c_void) -> bool;
type DecideByKey = unsafe extern "C" fn(*mut c_void, esker_slice<'_>, &mut esker_buffer) -> esker_decision;
type Decide =
    unsafe extern "C" fn(*mut c_void, esker_slice<'_>, esker_slice<'_>, &mut esker_buffer) -> esker_decision;

/// The filter's factory as the engine sees it.
pub struct Filters {
    shared: Arc<State>,
    create: Option<Create>,
    destroy_filter: Option<unsafe extern "C" fn(*mut c_void)>,
    decide_by_key: Option<DecideByKey>,
    decide: Decide,
    filters_flushes: bool,
}

impl Filters {
    /// Takes the functions, and on success the state.
    ///
    /// # Safety
    /// The functions keep their contracts.
    pub unsafe fn new(given_by: &esker_compaction_filter) -> Result<Self> {
        Ok(Self {
            decide: given(given_by.decide, "the function decide")?,
            shared: Arc::new(State::new(given_by.state, given_by.destroy)),
            create: given_by.create,
            destroy_filter: given_by.destroy_filter,
            decide_by_key: given_by.decide_by_key,
            filters_flushes: given_by.filters_flushes,
        })
    }
}

impl CompactionFilterFactory for Filters {
    fn create(&self, context: &FilterContext) -> Option<Box<dyn CompactionFilter>> {
        let own = match self.create {
            None => State::new(self.shared.pointer, None),
            Some(create) => {
                let context = esker_filter_context {
                    level: context.level,
                    cause: match context.cause {
                        RewriteCause::Flush => ESKER_CAUSE_FLUSH,
                        RewriteCause::Manual => ESKER_CAUSE_MANUAL,
                        _ => ESKER_CAUSE_COMPACTION,
                    },
                    bottommost: context.bottommost,
                };
                let mut filter = std::ptr::null_mut();
                // SAFETY: the function's contract.
                let made = unsafe { create(self.shared.pointer, &context, &mut filter) };
                if !made {
                    return None;
                }
                State::new(filter, self.destroy_filter)
            }
        };
        Some(Box::new(Filter {
            own,
            decide_by_key: self.decide_by_key,
            decide: self.decide,
            out: esker_buffer::default(),
            _shared: Arc::clone(&self.shared),
        }))
    }

    fn filters_flushes(&self) -> bool {
        self.filters_flushes
    }
}

/// A filter of a job; the shared state outlives its own.
struct Filter {
    own: State,
    decide_by_key: Option<DecideByKey>,
    decide: Decide,
    out: esker_buffer,
    _shared: Arc<State>,
}

impl Filter {
    fn decision(&mut self, decision: esker_decision) -> Option<FilterDecision> {
        match decision {
            ESKER_NEED_VALUE => None,
            ESKER_REMOVE => Some(FilterDecision::Remove),
            ESKER_CHANGE => Some(FilterDecision::Change(std::mem::take(&mut self.out.0))),
            ESKER_SKIP_UNTIL => Some(FilterDecision::SkipUntil(std::mem::take(&mut self.out.0))),
            _ => Some(FilterDecision::Keep),
        }
    }
}

impl CompactionFilter for Filter {
    fn decide_by_key(&mut self, key: &[u8]) -> Option<FilterDecision> {
        let decide_by_key = self.decide_by_key?;
        self.out.0.clear();
        // SAFETY: the function's contract.
        let decision = unsafe { decide_by_key(self.own.pointer, esker_slice::new(key), &mut self.out) };
        self.decision(decision)
    }

    fn decide(&mut self, key: &[u8], value: &[u8]) -> FilterDecision {
        self.out.0.clear();
        let (key, value) = (esker_slice::new(key), esker_slice::new(value));
        // SAFETY: the function's contract.
        let decision = unsafe { (self.decide)(self.own.pointer, key, value, &mut self.out) };
        self.decision(decision).unwrap_or(FilterDecision::Keep)
    }
}
