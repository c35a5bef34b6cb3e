//! Property collectors by functions of the program's: what a table is to say about its rows.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use esker::{CollectedRow, Error, PropertyCollector, PropertyCollectorFactory, Result, RowKind};

use crate::boundary::{answer, given};
use crate::comparator::{State, name_of};
use crate::error::esker_error;
use crate::slice::esker_slice;
use crate::text;

/// What a row, or a mutation of a batch, is.
pub type esker_row_kind = u32;
/// A value.
pub const ESKER_PUT: esker_row_kind = 0;
/// A delete.
pub const ESKER_DELETE: esker_row_kind = 1;
/// A delete of a key that was put once.
pub const ESKER_SINGLE_DELETE: esker_row_kind = 2;
/// An operand.
pub const ESKER_MERGE: esker_row_kind = 3;
/// A delete of all keys from `key` up to `value` (exclusive).
pub const ESKER_DELETE_RANGE: esker_row_kind = 4;
/// A kind that this version of the header has no name for.
pub const ESKER_OTHER_ROW: esker_row_kind = 5;

/// A row of a table that is written. Of a key there may be several, the newest first.
#[repr(C)]
pub struct esker_collected_row<'a> {
    /// The key.
    pub key: esker_slice<'a>,
    /// The value, operand or end; data is null where the value lies in a blob file. Empty for deletes.
    pub value: esker_slice<'a>,
    /// When it was written: numbers ascend. 0 where nobody needs to know any more, 1 in tables that are written outside of a database.
    pub sequence: u64,
    /// What it is.
    pub kind: esker_row_kind,
}

/// Where a collector puts what its table is to say.
#[derive(Default)]
pub struct esker_collected(Vec<(String, Vec<u8>)>);

/// Gathers what is to be known of tables as they are written. The functions must not throw.
#[repr(C)]
pub struct esker_collector {
    /// Given to `create`.
    pub state: *mut c_void,
    /// Called once with `state` when nothing uses the collector any more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Stands, with a dot behind it, before each name that the tables have. Copied.
    pub name: *const c_char,
    /// Makes a collector for a table. Called by several threads at once.
    pub create: Option<unsafe extern "C" fn(state: *mut c_void) -> *mut c_void>,
    /// Called with each that `create` made. May be null.
    pub destroy_collector: Option<unsafe extern "C" fn(collector: *mut c_void)>,
    /// Takes a row: point rows in the order of keys, then range deletes.
    pub add: Option<unsafe extern "C" fn(collector: *mut c_void, row: &esker_collected_row<'_>)>,
    /// Says what the table is to say, by `esker_collected_add`; at most some KiB.
    pub finish: Option<unsafe extern "C" fn(collector: *mut c_void, collected: &mut esker_collected)>,
}

/// Stores a value under a name of the collector's own with the table.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_collected_add(
    collected: Option<&mut esker_collected>,
    name: *const c_char,
    value: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let collected = given(collected, "the place")?;
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let value = value.get()?.to_vec();
        if collected.0.iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!("the name '{name}' was given already")));
        }
        collected.0.push((name.to_owned(), value));
        Ok(())
    })
}

type Add = unsafe extern "C" fn(*mut c_void, &esker_collected_row<'_>);
type Finish = unsafe extern "C" fn(*mut c_void, &mut esker_collected);

/// The collector's factory as the engine sees it.
pub struct Collectors {
    shared: Arc<State>,
    name: String,
    create: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    destroy_collector: Option<unsafe extern "C" fn(*mut c_void)>,
    add: Add,
    finish: Finish,
}

impl Collectors {
    /// Takes the functions, and on success the state.
    ///
    /// # Safety
    /// The contract, for the name; the functions keep theirs.
    pub unsafe fn new(given_by: &esker_collector) -> Result<Self> {
        let create = given(given_by.create, "the function create")?;
        let add = given(given_by.add, "the function add")?;
        let finish = given(given_by.finish, "the function finish")?;
        // SAFETY: the caller's promise.
        let name = unsafe { name_of(given_by.name) }?;
        Ok(Self {
            shared: Arc::new(State::new(given_by.state, given_by.destroy)),
            name,
            create,
            destroy_collector: given_by.destroy_collector,
            add,
            finish,
        })
    }
}

impl PropertyCollectorFactory for Collectors {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> Box<dyn PropertyCollector> {
        // SAFETY: the function's contract.
        let own = unsafe { (self.create)(self.shared.pointer) };
        Box::new(Collector {
            own: State::new(own, self.destroy_collector),
            add: self.add,
            finish: self.finish,
            _shared: Arc::clone(&self.shared),
        })
    }
}

/// A table's collector; the shared state outlives its own.
struct Collector {
    own: State,
    add: Add,
    finish: Finish,
    _shared: Arc<State>,
}

impl PropertyCollector for Collector {
    fn add(&mut self, row: &CollectedRow<'_>) {
        let row = esker_collected_row {
            key: esker_slice::new(row.key),
            value: esker_slice::optional(row.value),
            sequence: row.sequence,
            kind: match row.kind {
                RowKind::Put => ESKER_PUT,
                RowKind::Delete => ESKER_DELETE,
                RowKind::SingleDelete => ESKER_SINGLE_DELETE,
                RowKind::Merge => ESKER_MERGE,
                RowKind::RangeDelete => ESKER_DELETE_RANGE,
                _ => ESKER_OTHER_ROW,
            },
        };
        // SAFETY: the function's contract.
        unsafe { (self.add)(self.own.pointer, &row) };
    }

    fn finish(self: Box<Self>) -> Vec<(String, Vec<u8>)> {
        let mut collected = esker_collected::default();
        // SAFETY: the function's contract.
        unsafe { (self.finish)(self.own.pointer, &mut collected) };
        collected.0
    }
}
