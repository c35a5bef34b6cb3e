//! Repair: a database that opens again, of what is left of one.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use esker::{DamagedFile, KeyOrder, LostRange, ManifestState, RepairOptions, RepairReport, repair_on};

use crate::boundary::{answer, given, made, release};
use crate::comparator::{Order, esker_comparator};
use crate::environment::{esker_env, machine};
use crate::error::esker_error;
use crate::event::ESKER_UNNAMED;
use crate::list::{List, Texts, lend};
use crate::slice::esker_slice;
use crate::text;

/// How a database is repaired.
#[derive(Default)]
pub struct esker_repair_options(RepairOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_repair_options_create() -> Box<esker_repair_options> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_repair_options_free(options: Option<Box<esker_repair_options>>) {
    release(options);
}

/// Whether a repair only looks, and says what it would do: nothing is changed, and no lock is taken. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn esker_repair_options_set_dry_run(
    options: Option<&mut esker_repair_options>,
    dry_run: bool,
) {
    if let Some(options) = options {
        options.0.dry_run = dry_run;
    }
}

/// Adds an order of keys of the program's own, which column families have by its name. On success `state` is the library's.
/// Error: `ESKER_INVALID_ARGUMENT` without a name or function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_repair_options_add_comparator(
    options: Option<&mut esker_repair_options>,
    comparator: Option<&esker_comparator>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let order = unsafe { Order::new(given(comparator, "the comparator")?) }?;
        options.0.key_orders.push(KeyOrder::Custom(Arc::new(order)));
        Ok(())
    })
}

/// What was left of the manifest.
pub type esker_manifest_state = u32;
/// All of it: its tables are the database's, each in its level, and no others are.
pub const ESKER_MANIFEST_WHOLE: esker_manifest_state = 0;
/// A part: what it says to be dropped is, and all other tables count.
pub const ESKER_MANIFEST_DAMAGED: esker_manifest_state = 1;
/// Nothing: all tables count, in the column families that they name.
pub const ESKER_MANIFEST_LOST: esker_manifest_state = 2;

/// A stretch of a table in which rows are lost. Keys there may be missing, or show what they were before.
#[repr(C)]
pub struct esker_lost_range {
    /// Where it begins in the file.
    pub offset: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// The last key that was read before it; data is null if the table begins with it.
    pub after: esker_slice<'static>,
    /// The first key that was read behind it; data is null if the table ends with it.
    pub before: esker_slice<'static>,
}

/// A file of which something is lost, or that had to be written anew.
#[repr(C)]
pub struct esker_damaged_file {
    /// Its path before the repair.
    pub path: esker_slice<'static>,
    /// The name of its column family; data is null if it has none that is known.
    pub family: esker_slice<'static>,
    /// What is wrong with it: the first damage that was found.
    pub damage: esker_slice<'static>,
    /// Rows that were read from it and are kept.
    pub rows_kept: u64,
    /// Rows that are gone; `UINT64_MAX`: nobody knows how many there were.
    pub rows_lost: u64,
    /// Rows among those kept whose value was in a blob file and is gone: their keys are deleted now.
    pub values_lost: u64,
    /// Stored bytes that can't be read.
    pub lost_bytes: u64,
    /// The stretches of keys in which rows are lost.
    pub lost_ranges: *const esker_lost_range,
    /// How many.
    pub lost_range_count: usize,
    /// Whether deletions of ranges are lost, or may be: keys that they had deleted may be back.
    pub range_deletions_lost: bool,
    /// Whether anything of its content is gone.
    pub is_loss: bool,
}

/// What a repair found and did; of a dry run: what it would do.
#[repr(C)]
pub struct esker_repair_report {
    /// Whether nothing was lost as far as anybody can know.
    pub is_lossless: bool,
    /// What was left of the manifest.
    pub manifest: esker_manifest_state,
    /// What is wrong with it, and with `CURRENT`, in a line each.
    pub manifest_damages: *const esker_slice<'static>,
    /// How many.
    pub manifest_damage_count: usize,
    /// The names of the column families that the database has now.
    pub families: *const esker_slice<'static>,
    /// How many.
    pub family_count: usize,
    /// Tables that stay as they are.
    pub tables_kept: u64,
    /// Tables that were written: what could be read of damaged ones, the log's rows, and merged ones where no manifest said which
    /// are older. 0 in a dry run.
    pub tables_written: u64,
    /// Tables and blob files of which something is lost, or that had to be written anew.
    pub damaged: *const esker_damaged_file,
    /// How many.
    pub damaged_count: usize,
    /// Paths of tables that were ingested, and of which only the lost manifest knew when: they count as the oldest.
    pub unplaced: *const esker_slice<'static>,
    /// How many.
    pub unplaced_count: usize,
    /// Names of imported families that are those they were exported with: nothing says which they had here.
    pub imported: *const esker_slice<'static>,
    /// How many.
    pub imported_count: usize,
    /// Batches of the log that are in tables now.
    pub log_batches: u64,
    /// Damaged places in the log that were gone over.
    pub log_damages: u64,
    /// Bytes of the log that could not be used there.
    pub log_lost_bytes: u64,
    /// Whether the first segment that the manifest needs is not there: it is lost, or the database is a checkpoint that was never
    /// opened.
    pub log_begins_late: bool,
    /// Whether the log ends in a batch that is not whole: as a crash leaves it, or as one that was cut later.
    pub log_is_torn: bool,
    /// The names under which batches are still prepared, to be committed or rolled back.
    pub prepared: *const esker_slice<'static>,
    /// How many.
    pub prepared_count: usize,
    /// Files that are in the folder `lost` now, by their paths before: damaged ones, and those that are no part of the database.
    pub set_aside: *const esker_slice<'static>,
    /// How many.
    pub set_aside_count: usize,
}

/// A repair.
pub struct esker_repaired(List<esker_repair_report, Found>);

/// What a report points into.
struct Found {
    manifest_damages: Texts,
    families: Texts,
    damaged: List<esker_damaged_file, Vec<Damaged>>,
    unplaced: Texts,
    imported: Texts,
    prepared: Texts,
    set_aside: Texts,
}

struct Damaged {
    file: DamagedFile,
    damage: String,
    lost_ranges: Vec<esker_lost_range>,
}

/// Makes the database in the folder `path` one that opens again, of what can be read of its files, and says what is lost. No process may
/// have it open. What can't be used is not removed but moved into the folder `lost` in it. Takes the time of reading all files, and that
/// of writing those that are damaged. env: null for the real machine; options: null for the defaults. `repaired` is to be freed.
/// Errors: `ESKER_NOT_FOUND` (there is no database), `ESKER_LOCKED` (it is open), `ESKER_INVALID_ARGUMENT` (a family has an order of keys
/// that is neither built in nor given), `ESKER_UNSUPPORTED`, `ESKER_CORRUPTION` (nothing is left that says which database it was),
/// `ESKER_IO` and `ESKER_NO_SPACE` (the repair can be begun again).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_repair(
    env: Option<&esker_env>,
    path: *const c_char,
    options: Option<&esker_repair_options>,
    repaired: Option<&mut MaybeUninit<Option<Box<esker_repaired>>>>,
) -> Option<Box<esker_error>> {
    made(repaired, || {
        // SAFETY: the contract.
        let path = unsafe { text::path(path) }?;
        let defaults = RepairOptions::default();
        let options = options.map_or(&defaults, |options| &options.0);
        Ok(shown(repair_on(&machine(env), path, options)?))
    })
}

/// What the repair found and did, until it is freed; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_repaired_report(repaired: Option<&esker_repaired>) -> *const esker_repair_report {
    repaired.map_or(std::ptr::null(), |repaired| List::array(Some(&repaired.0), None))
}

/// Frees a repair's report.
#[unsafe(no_mangle)]
pub extern "C" fn esker_repaired_free(repaired: Option<Box<esker_repaired>>) {
    release(repaired);
}

fn shown(report: RepairReport) -> esker_repaired {
    let is_lossless = report.is_lossless();
    let damages = report.manifest_damages.iter();
    let damaged = report.damaged.into_iter().map(|file| Damaged {
        damage: file.damage.to_string(),
        lost_ranges: file.lost_ranges.iter().map(lost_range).collect(),
        file,
    });
    let found = Found {
        manifest_damages: Texts::new(damages.map(|damage| damage.to_string().into_bytes())),
        families: Texts::new(report.families.into_iter().map(String::into_bytes)),
        // SAFETY: texts and arrays are on the heap.
        damaged: unsafe {
            List::new(damaged.collect(), |damaged: &Vec<Damaged>| {
                damaged.iter().map(damaged_file).collect()
            })
        },
        unplaced: Texts::of_paths(&report.unplaced),
        imported: Texts::new(report.imported.into_iter().map(String::into_bytes)),
        prepared: Texts::new(report.prepared.into_iter()),
        set_aside: Texts::of_paths(&report.set_aside),
    };
    // SAFETY: all that it points to is on the heap.
    esker_repaired(unsafe {
        List::new(found, |found| {
            let (manifest_damages, manifest_damage_count) = found.manifest_damages.slices();
            let (families, family_count) = found.families.slices();
            let (damaged, damaged_count) = found.damaged.parts();
            let (unplaced, unplaced_count) = found.unplaced.slices();
            let (imported, imported_count) = found.imported.slices();
            let (prepared, prepared_count) = found.prepared.slices();
            let (set_aside, set_aside_count) = found.set_aside.slices();
            vec![esker_repair_report {
                is_lossless,
                manifest: match report.manifest {
                    ManifestState::Whole => ESKER_MANIFEST_WHOLE,
                    ManifestState::Damaged => ESKER_MANIFEST_DAMAGED,
                    ManifestState::Lost => ESKER_MANIFEST_LOST,
                    _ => ESKER_UNNAMED,
                },
                manifest_damages,
                manifest_damage_count,
                families,
                family_count,
                tables_kept: report.tables_kept,
                tables_written: report.tables_written,
                damaged,
                damaged_count,
                unplaced,
                unplaced_count,
                imported,
                imported_count,
                log_batches: report.log_batches,
                log_damages: report.log_damages,
                log_lost_bytes: report.log_lost_bytes,
                log_begins_late: report.log_begins_late,
                log_is_torn: report.log_is_torn,
                prepared,
                prepared_count,
                set_aside,
                set_aside_count,
            }]
        })
    })
}

/// The bytes, or none, of what the caller keeps.
///
/// # Safety
/// As for [`lend`].
unsafe fn lend_optional(bytes: Option<&[u8]>) -> esker_slice<'static> {
    // SAFETY: the caller's promise.
    bytes.map_or(esker_slice::NONE, |bytes| unsafe { lend(bytes) })
}

fn lost_range(range: &LostRange) -> esker_lost_range {
    // SAFETY: the file that the keys are of is kept beside the ranges, and keys are on the heap.
    let (after, before) = unsafe {
        (
            lend_optional(range.after.as_deref()),
            lend_optional(range.before.as_deref()),
        )
    };
    esker_lost_range {
        offset: range.offset,
        bytes: range.bytes,
        after,
        before,
    }
}

fn damaged_file(damaged: &Damaged) -> esker_damaged_file {
    let file = &damaged.file;
    let name = file.column_family.as_deref().map(str::as_bytes);
    // SAFETY: the list keeps the file and the text, and their bytes are on the heap.
    let (path, family, damage) = unsafe {
        (
            lend(file.path.as_os_str().as_encoded_bytes()),
            lend_optional(name),
            lend(damaged.damage.as_bytes()),
        )
    };
    esker_damaged_file {
        path,
        family,
        damage,
        rows_kept: file.rows_kept,
        rows_lost: file.rows_lost.unwrap_or(u64::MAX),
        values_lost: file.values_lost,
        lost_bytes: file.lost_bytes,
        lost_ranges: damaged.lost_ranges.as_ptr(),
        lost_range_count: damaged.lost_ranges.len(),
        range_deletions_lost: file.range_deletions_lost,
        is_loss: file.is_loss(),
    }
}
