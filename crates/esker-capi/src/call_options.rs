//! Settings of single calls: reads and writes.

use esker::{Durability, Error, ReadOptions, Result, WriteOptions};

use crate::boundary::{answer, given, release};
use crate::error::esker_error;
use crate::slice::esker_slice;
use crate::snapshot::esker_snapshot;

/// Settings of reads, used again and again. Where a call takes some, null means the defaults.
#[derive(Default)]
pub struct esker_read_options(pub ReadOptions);

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_create() -> Box<esker_read_options> {
    Box::default()
}

/// Frees settings. Iterators that were made with them keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_free(options: Option<Box<esker_read_options>>) {
    release(options);
}

/// Reads see what this snapshot sees, which they share from here on; null: all that was written before they began.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_snapshot(
    options: Option<&mut esker_read_options>,
    snapshot: Option<&esker_snapshot>,
) {
    if let Some(options) = options {
        options.0.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
    }
}

/// The first key that an iterator may give, and the first key past its end; both are copied. Data that is null: none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_bounds(
    options: Option<&mut esker_read_options>,
    lower: esker_slice<'_>,
    upper: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let options = given(options, "options")?;
        let (lower, upper) = (lower.get_optional()?, upper.get_optional()?);
        options.0.lower_bound = lower.map(<[u8]>::to_vec);
        options.0.upper_bound = upper.map(<[u8]>::to_vec);
        Ok(())
    })
}

/// Whether checksums of blocks are verified. Default: yes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_verify_checksums(
    options: Option<&mut esker_read_options>,
    verify: bool,
) {
    if let Some(options) = options {
        options.0.verify_checksums = verify;
    }
}

/// Whether blocks that are read enter the block cache. Default: yes.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_fill_cache(options: Option<&mut esker_read_options>, fill: bool) {
    if let Some(options) = options {
        options.0.fill_cache = fill;
    }
}

/// Whether an iterator stays within the prefix of the key it was last positioned to, as the family's `prefix_extractor` gives it.
/// Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_prefix_same(options: Option<&mut esker_read_options>, same: bool) {
    if let Some(options) = options {
        options.0.prefix_same = same;
    }
}

/// Bytes to read ahead when scanning; 0, the default: grows by itself.
#[unsafe(no_mangle)]
pub extern "C" fn esker_read_options_set_readahead_bytes(
    options: Option<&mut esker_read_options>,
    bytes: usize,
) {
    if let Some(options) = options {
        options.0.readahead_bytes = bytes;
    }
}

/// How safe a write is when it returns.
pub type esker_durability = u32;
/// As the database's settings say.
pub const ESKER_DURABILITY_DEFAULT: esker_durability = 0;
/// On the device: survives a power cut.
pub const ESKER_SYNC: esker_durability = 1;
/// With the operating system: survives the process. A power cut may take it.
pub const ESKER_BUFFERED: esker_durability = 2;
/// Only in memory, until it is flushed.
pub const ESKER_NO_LOG: esker_durability = 3;

/// What the number means; none for the default.
pub fn durability(durability: esker_durability) -> Result<Option<Durability>> {
    Ok(match durability {
        ESKER_DURABILITY_DEFAULT => None,
        ESKER_SYNC => Some(Durability::Sync),
        ESKER_BUFFERED => Some(Durability::Buffered),
        ESKER_NO_LOG => Some(Durability::None),
        _ => return Err(Error::invalid(format!("there is no durability {durability}"))),
    })
}

/// Settings of writes, used again and again. Where a call takes some, null means the defaults.
#[derive(Default)]
pub struct esker_write_options {
    pub write: WriteOptions,
    pub unlocked: bool,
}

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_create() -> Box<esker_write_options> {
    Box::default()
}

/// Frees settings.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_free(options: Option<Box<esker_write_options>>) {
    release(options);
}

/// How safe the write is when it returns. Error: `ESKER_INVALID_ARGUMENT` for an unknown number.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_durability(
    options: Option<&mut esker_write_options>,
    wanted: esker_durability,
) -> Option<Box<esker_error>> {
    answer(|| {
        given(options, "options")?.write.durability = durability(wanted)?;
        Ok(())
    })
}

/// Whether a write fails with `ESKER_RETRY` where it would have to wait for background work. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_no_wait(options: Option<&mut esker_write_options>, no_wait: bool) {
    if let Some(options) = options {
        options.write.no_wait = no_wait;
    }
}

/// Whether a write to a database of transactions asks none of them: for bulk loads of what no transaction touches. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn esker_write_options_set_unlocked(
    options: Option<&mut esker_write_options>,
    unlocked: bool,
) {
    if let Some(options) = options {
        options.unlocked = unlocked;
    }
}

/// The settings given, or the defaults.
pub fn write_options(options: Option<&esker_write_options>) -> WriteOptions {
    options.map(|options| options.write).unwrap_or_default()
}
