//! The report's settings of LevelDB, scaled to the memory there is.

use std::ffi::c_int;

use esker_lab_core::engine::{Compression, OpenSettings, Profile};

pub(super) const MAX_OPEN_FILES: c_int = 500_000;

/// The report's settings, scaled to the memory there is.
pub(super) struct Plan {
    pub(super) write_buffer_bytes: usize,
    pub(super) cache_bytes: usize,
    pub(super) block_bytes: usize,
    pub(super) snappy: bool,
}

impl Plan {
    pub(super) fn new(settings: &OpenSettings) -> Plan {
        let memory = settings.memory_bytes as usize;
        // The report's buffer, of which there are two at a time, within a quarter of the memory.
        let report_buffer = if settings.profile == Profile::BulkSequential {
            128 << 20
        } else {
            256 << 20
        };
        Plan {
            write_buffer_bytes: (memory / 8).clamp(1 << 20, report_buffer),
            // 1 MiB in the report's tests 1 to 4; 16 GiB of 144 in test 5.
            cache_bytes: if settings.profile == Profile::Mixed {
                memory / 9
            } else {
                1 << 20
            },
            // LevelDB's report ran with its default of 4 KiB everywhere.
            block_bytes: 4096,
            // It knows no other compression than snappy.
            snappy: settings.compression.levels(settings.profile).1 != Compression::None,
        }
    }
}
