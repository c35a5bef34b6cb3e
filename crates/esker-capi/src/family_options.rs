//! Settings of a column family.

use std::ffi::c_char;
use std::sync::Arc;

use esker::inspect::{builtin_key_order, builtin_merge_operator};
use esker::{ColumnFamilyOptions, Error, KeyOrder};

use crate::boundary::{answer, given, release};
use crate::buffer::esker_buffer;
use crate::collector::{Collectors, esker_collector};
use crate::compaction_filter::{Filters, esker_compaction_filter};
use crate::comparator::{Order, esker_comparator};
use crate::error::esker_error;
use crate::merge_operator::{Merging, esker_merge_operator};
use crate::text;

/// Settings of a column family, with code of the program's own.
#[derive(Default)]
pub struct esker_family_options(pub ColumnFamilyOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_options_create() -> Box<esker_family_options> {
    Box::default()
}

/// A copy, which shares comparators and the like; the defaults for null.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_options_clone(
    options: Option<&esker_family_options>,
) -> Box<esker_family_options> {
    Box::new(esker_family_options(
        options.map(|options| options.0.clone()).unwrap_or_default(),
    ))
}

/// Frees settings. Databases and tables that were made with them keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_options_free(options: Option<Box<esker_family_options>>) {
    release(options);
}

/// Sets a setting by its name in docs/tuning.md: sizes as `1048576` or `64MiB`, `true` and `false`; `memtable_kind` (`ordered`,
/// `vector`), `prefix_extractor` (`none`, `fixed:LEN`, `capped:LEN`), `compression_per_level` (a list of `none`, `snappy`,
/// `zlib`, `lz4`, `zstd`), `blob_compression`, `compaction_style` (`leveled`, `manual`), `aging` (`none`, `rewrite:SECONDS`,
/// `expire:SECONDS`). Ranges are checked when the settings are used.
/// Error: `ESKER_INVALID_ARGUMENT` for an unknown name, or a value that is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set(
    options: Option<&mut esker_family_options>,
    name: *const c_char,
    value: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let (name, value) = unsafe { (text::string(name, "the name")?, text::string(value, "the value")?) };
        given(options, "options")?.0.set(name, value)
    })
}

/// Sets all that `text` names: `name=value;name=value`, such as `esker_family_options_text` gave. On an error those before the
/// wrong one are set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_text(
    options: Option<&mut esker_family_options>,
    text: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let text = unsafe { text::string(text, "the text") }?;
        given(options, "options")?.0.apply_text(text)
    })
}

/// All settings that are plain values, as `name=value;name=value`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_family_options_text(
    options: Option<&esker_family_options>,
    text: Option<&mut esker_buffer>,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(text, "the buffer")?.0 = given(options, "options")?.0.to_text().into_bytes();
        Ok(())
    })
}

/// Sets the order of keys to one that the engine has: `esker.bytewise` (the default) or `esker.reverse-bytewise`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_key_order(
    options: Option<&mut esker_family_options>,
    name: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let order = builtin_key_order(name)
            .ok_or_else(|| Error::invalid(format!("the engine has no key order named '{name}'")))?;
        given(options, "options")?.0.key_order = order;
        Ok(())
    })
}

/// Sets the order of keys to the program's own. On success `state` is the library's, which destroys it when nothing uses it any
/// more, perhaps on another thread; on failure it stays the program's. The same holds for the calls below.
/// Error: `ESKER_INVALID_ARGUMENT` without a name or function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_comparator(
    options: Option<&mut esker_family_options>,
    comparator: Option<&esker_comparator>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let order = unsafe { Order::new(given(comparator, "the comparator")?) }?;
        options.0.key_order = KeyOrder::Custom(Arc::new(order));
        Ok(())
    })
}

/// Sets the merge operator to one that the engine has: `esker.u64-add` adds little-endian numbers of 8 bytes, `esker.append`
/// and `esker.append:SEPARATOR` join. Null: none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_builtin_merge_operator(
    options: Option<&mut esker_family_options>,
    name: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        if name.is_null() {
            options.0.merge_operator = None;
            return Ok(());
        }
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let operator = builtin_merge_operator(name)
            .ok_or_else(|| Error::invalid(format!("the engine has no merge operator named '{name}'")))?;
        options.0.merge_operator = Some(operator);
        Ok(())
    })
}

/// Sets the merge operator to the program's own.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_merge_operator(
    options: Option<&mut esker_family_options>,
    operator: Option<&esker_merge_operator>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let operator = unsafe { Merging::new(given(operator, "the merge operator")?) }?;
        options.0.merge_operator = Some(Arc::new(operator));
        Ok(())
    })
}

/// Sets the compaction filter.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_set_compaction_filter(
    options: Option<&mut esker_family_options>,
    filter: Option<&esker_compaction_filter>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let filters = unsafe { Filters::new(given(filter, "the filter")?) }?;
        options.0.hooks.compaction_filter = Some(Arc::new(filters));
        Ok(())
    })
}

/// Adds a property collector. Their names must differ.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_family_options_add_collector(
    options: Option<&mut esker_family_options>,
    collector: Option<&esker_collector>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        // SAFETY: the contract.
        let collectors = unsafe { Collectors::new(given(collector, "the collector")?) }?;
        options.0.hooks.property_collectors.push(Arc::new(collectors));
        Ok(())
    })
}
