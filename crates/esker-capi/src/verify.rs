//! Checks of a database's files: every byte is read.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use esker::KeyOrder;
use esker::inspect::{FileReport, Inspector};

use crate::boundary::{answer, given, put, release};
use crate::comparator::{Order, esker_comparator};
use crate::environment::{esker_env, machine};
use crate::error::esker_error;
use crate::slice::esker_slice;
use crate::text;

/// How a database is verified.
#[derive(Default)]
pub struct esker_verify_options(Vec<KeyOrder>);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_verify_options_create() -> Box<esker_verify_options> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_verify_options_free(options: Option<Box<esker_verify_options>>) {
    release(options);
}

/// Adds an order of keys of the program's own, which column families have by its name: without it their tables are not read, which a
/// note says. On success `state` is the library's. Error: `ESKER_INVALID_ARGUMENT` without a name or function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_verify_options_add_comparator(
    options: Option<&mut esker_verify_options>,
    comparator: Option<&esker_comparator>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let order = unsafe { Order::new(given(comparator, "the comparator")?) }?;
        options.0.push(KeyOrder::Custom(Arc::new(order)));
        Ok(())
    })
}

/// The verdict on a file: whole if it has no damages.
#[repr(C)]
pub struct esker_file_report<'a> {
    /// Its path.
    pub path: esker_slice<'a>,
    /// What it is for: `manifest`, `sst`, `blob`, `wal`, `wal.damaged` or `other`.
    pub role: esker_slice<'a>,
    /// What is special about it without being a damage; data is null if nothing is.
    pub note: esker_slice<'a>,
    /// What is wrong with it, in a line each.
    pub damages: *const esker_slice<'a>,
    /// How many damages.
    pub damage_count: usize,
    /// Bytes read.
    pub size_bytes: u64,
    /// Entries, values, batches or groups of edits found in it.
    pub records: u64,
}

/// Called with each verdict, which stays for the call. May be null.
pub type esker_visit_file = Option<unsafe extern "C" fn(state: *mut c_void, report: &esker_file_report<'_>)>;

/// What all verdicts add up to.
#[repr(C)]
pub struct esker_verified {
    /// Files read.
    pub files: u64,
    /// Bytes of them.
    pub size_bytes: u64,
    /// Files with damages.
    pub damaged: u64,
}

/// Reads every file that the database in `path` needs and checks all that can be checked; it need not be closed. Damages are no error of
/// the call: `verified` (may be null) counts the files that have some. env: null for the real machine; options: null for the defaults.
/// Errors: those of the folder, or of the manifest, without which nothing can be checked.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_verify(
    env: Option<&esker_env>,
    path: *const c_char,
    options: Option<&esker_verify_options>,
    visit: esker_visit_file,
    state: *mut c_void,
    verified: Option<&mut MaybeUninit<esker_verified>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let orders = options.map_or(&[][..], |options| &options.0).iter().cloned();
        let inspector = Inspector::with_env(path, &machine(env));
        let inspector = orders.fold(inspector, Inspector::with_key_order);
        let summary = inspector.verify(|report| {
            if let Some(visit) = visit {
                show(report, |report| {
                    // SAFETY: the function's contract.
                    unsafe { visit(state, report) }
                });
            }
        })?;
        put(
            verified,
            esker_verified {
                files: summary.files,
                size_bytes: summary.size_bytes,
                damaged: summary.damaged,
            },
        );
        Ok(())
    })
}

fn show(report: &FileReport, visit: impl FnOnce(&esker_file_report<'_>)) {
    let damages: Vec<String> = report.damages.iter().map(ToString::to_string).collect();
    let damages: Vec<_> = damages
        .iter()
        .map(|text| esker_slice::new(text.as_bytes()))
        .collect();
    visit(&esker_file_report {
        path: esker_slice::new(report.path.as_os_str().as_encoded_bytes()),
        role: esker_slice::new(report.role.name().as_bytes()),
        note: esker_slice::optional(report.note.as_deref().map(str::as_bytes)),
        damages: damages.as_ptr(),
        damage_count: damages.len(),
        size_bytes: report.size_bytes,
        records: report.records,
    });
}
