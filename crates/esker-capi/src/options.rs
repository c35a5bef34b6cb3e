//! What a database is opened with.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::Arc;

use ::esker_env::Env;
use esker::{ColumnFamilyOptions, EventListener, Opener, Options};

use crate::boundary::{answer, given, release};
use crate::environment::esker_env;
use crate::error::esker_error;
use crate::family_options::esker_family_options;
use crate::text;

/// What a database is opened with.
#[derive(Clone, Default)]
pub struct esker_options {
    pub options: Options,
    families: BTreeMap<String, ColumnFamilyOptions>,
    create_missing: bool,
    background_work_off: bool,
    env: Option<Env>,
    pub listeners: Vec<Arc<dyn EventListener>>,
}

impl esker_options {
    pub fn opener(&self) -> Opener {
        let mut opener = Opener::new(self.options.clone());
        for (name, options) in &self.families {
            opener = opener.column_family(name, options.clone());
        }
        if self.create_missing {
            opener = opener.create_missing_column_families();
        }
        if self.background_work_off {
            opener = opener.background_work_off();
        }
        for listener in &self.listeners {
            opener = opener.listener(Arc::clone(listener));
        }
        opener.env(self.env())
    }

    pub fn env(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::posix)
    }
}

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_create() -> Box<esker_options> {
    Box::default()
}

/// Frees options. Databases that were opened with them keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_free(options: Option<Box<esker_options>>) {
    release(options);
}

/// Sets a setting of the database by its name in docs/tuning.md: sizes as `1048576` or `64MiB`, `true` and `false`, `durability`
/// (`sync`, `buffered`, `none`), `recovery_mode` (`point-in-time`, `absolute`, `skip-corrupt`), `background_io` and `read_io`
/// (`direct`, `buffered`). Any other name is a setting of the column family `default`. Ranges are checked when the database is opened.
/// Error: `ESKER_INVALID_ARGUMENT` for an unknown name, or a value that is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set(
    options: Option<&mut esker_options>,
    name: *const c_char,
    value: *const c_char,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let (name, value) = unsafe { (text::string(name, "the name")?, text::string(value, "the value")?) };
        given(options, "options")?.options.set(name, value)
    })
}

/// Opens the column family `name` with these settings, which are copied, instead of the stored ones. Families with comparators,
/// merge operators, filters or collectors of the program's own have to be named; `default` can be.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_family(
    options: Option<&mut esker_options>,
    name: *const c_char,
    family: Option<&esker_family_options>,
) -> Option<Box<esker_error>> {
    answer(|| {
        // SAFETY: the contract.
        let name = unsafe { text::string(name, "the name") }?;
        let family = given(family, "the family's options")?.0.clone();
        given(options, "options")?
            .families
            .insert(name.to_owned(), family);
        Ok(())
    })
}

/// Whether families that were named and do not exist are created. Default: no, opening fails.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_create_missing_families(options: Option<&mut esker_options>, create: bool) {
    if let Some(options) = options {
        options.create_missing = create;
    }
}

/// Whether flushes and compactions start by themselves. Default: yes. Without it nothing moves before `esker_db_start_background_work`
/// but what is asked for by name (`esker_db_flush`, `esker_db_compact_range`, ingestion, checkpoints, `esker_db_close`), and a write that needs a
/// flush, as memory is full, fails with `ESKER_RETRY` and writes nothing; writes are not held back for the sake of compactions.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_background_work(options: Option<&mut esker_options>, on: bool) {
    if let Some(options) = options {
        options.background_work_off = !on;
    }
}

/// Runs the database on this machine; null: the real one.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_env(options: Option<&mut esker_options>, env: Option<&esker_env>) {
    if let Some(options) = options {
        options.env = env.map(|env| env.0.clone());
    }
}
