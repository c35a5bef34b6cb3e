//! Which compression at which level.

use std::ffi::{c_int, c_uchar};

use esker::Compression;
use esker_compat::{Result, Status, bytes};

use super::Settings;

/// RocksDB's number for "none chosen".
const UNSET: c_int = 255;

/// LZ4: RocksDB's default and, below level 1, the engine's.
const DEFAULT: c_int = 4;

/// RocksDB's numbers of compressions.
fn compression(code: c_int) -> Result<Compression> {
    match code {
        0 => Ok(Compression::None),
        1 => Ok(Compression::Snappy),
        2 => Ok(Compression::Zlib),
        // LZ4HC is read by what reads LZ4; it only takes longer to write.
        4 | 5 => Ok(Compression::Lz4),
        7 => Ok(Compression::Zstd),
        _ => Err(Status::invalid(format_args!(
            "Compression type {code} is not linked with the binary; there are 0 (none), 1 (snappy), 2 (zlib), \
             4 and 5 (lz4), 7 (zstd)"
        ))),
    }
}

impl Settings {
    /// The compression of each level; `None` where the program said nothing.
    pub(super) fn compressions(&self, levels: usize) -> Result<Option<Vec<Compression>>> {
        let bottom = self.mapped.bottommost_compression;
        if self.compression.is_none() && self.compression_per_level.is_empty() && bottom == UNSET {
            return Ok(None);
        }
        let all = compression(self.compression.unwrap_or(DEFAULT))?;
        let mut of_levels = Vec::with_capacity(levels);
        for level in 0..levels {
            let given = self
                .compression_per_level
                .get(level)
                .or(self.compression_per_level.last());
            of_levels.push(match given {
                Some(&code) => compression(code)?,
                None => all,
            });
        }
        if bottom != UNSET
            && let Some(last) = of_levels.last_mut()
        {
            *last = compression(bottom)?;
        }
        Ok(Some(of_levels))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_compression(options: *mut Settings, code: c_int) {
    // SAFETY: the contract; options are changed by one thread at a time.
    unsafe { &mut *options }.compression = Some(code);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_get_compression(options: *mut Settings) -> c_int {
    // SAFETY: as above.
    unsafe { &*options }.compression.unwrap_or(DEFAULT)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_compression_per_level(
    options: *mut Settings,
    codes: *const c_int,
    count: usize,
) {
    // SAFETY: as above; there are `count` codes.
    unsafe { (*options).compression_per_level = bytes::array(codes, count).to_vec() };
}

/// No compression above `level`, the one of all from it on.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_min_level_to_compress(options: *mut Settings, level: c_int) {
    // SAFETY: as above.
    let options = unsafe { &mut *options };
    let levels = usize::try_from(options.mapped.num_levels).unwrap_or(0);
    if let Ok(level) = usize::try_from(level) {
        let of = |at| {
            if at < level {
                0
            } else {
                options.compression.unwrap_or(DEFAULT)
            }
        };
        options.compression_per_level = (0..levels).map(of).collect();
    }
}

macro_rules! without_meaning {
    ($($name:ident($($type:ty),*);)*) => {
        $(
            /// No meaning here: compressions have one level each and no dictionaries.
            #[unsafe(no_mangle)]
            extern "C" fn $name(_: *mut Settings, $(_: $type),*) {}
        )*
    };
}

without_meaning! {
    rocksdb_options_set_compression_options(c_int, c_int, c_int, c_int);
    rocksdb_options_set_bottommost_compression_options(c_int, c_int, c_int, c_int, c_uchar);
    rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(u64, c_uchar);
    rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(c_uchar, c_uchar);
    rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(c_int, c_uchar);
}
