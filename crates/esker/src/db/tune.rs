//! Settings that change while the database is open.

use std::sync::atomic::Ordering;

use super::{ColumnFamily, Db};
use crate::error::{Error, Result};
use crate::options::{CHANGEABLE, Durability};

impl Db {
    /// Changes settings of a column family: names as in [`ColumnFamilyOptions`](crate::ColumnFamilyOptions),
    /// values as decimal numbers, sizes also with `KiB`, `MiB` or `GiB`. Either all are changed or, on an error,
    /// none. The change is stored with the database.
    ///
    /// Can be changed: `memtable_bytes`, `memtables_max`, `filter_bits_per_key`, `block_bytes`, `compaction_style`
    /// (`leveled`, `manual`), `level0_compaction_trigger`, `level0_files_max`, `level_base_bytes`,
    /// `level_size_multiplier`, `file_bytes`, `blob_value_bytes_min`, `blob_compression`, `blob_space_percent`, `aging`.
    pub fn set_family_options(&self, family: &ColumnFamily, changes: &[(&str, &str)]) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        let family = core.family(family.id())?;
        let mut options = (**family.options()).clone();
        for (name, value) in changes {
            if !CHANGEABLE.contains(name) {
                let names = CHANGEABLE.join(", ");
                return Err(Error::invalid(format!(
                    "option {name} can't change while running; these can: {names}"
                )));
            }
            options.set(name, value)?;
        }
        options.validate()?;
        core.store_family_options(&family, options)?;
        core.share_memory();
        core.wake();
        Ok(())
    }

    /// Sets the durability of writes that name none.
    pub fn set_durability(&self, durability: Durability) {
        self.core().durability.store(durability as u8, Ordering::Relaxed);
    }

    /// Sets the rate at which background work may write, in bytes a second; 0: no limit.
    pub fn set_background_bytes_per_second(&self, rate: u64) {
        self.core().throttle.set(rate);
    }
}
